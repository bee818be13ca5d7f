"""The screens that start checks and list them."""
