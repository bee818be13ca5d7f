"""Screens for training the classifier and tuning the span marks."""
