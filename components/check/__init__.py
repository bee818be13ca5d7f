"""Screens that start checks and list them."""
