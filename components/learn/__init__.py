"""The screens on which the product is retrained."""
