"""Labelled public data and what is measured on it."""
