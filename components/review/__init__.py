"""Screens on which people answer cases and adjudicate them."""
