"""Loaders of the public sets by family, with their formats and the meaning of their labels."""
