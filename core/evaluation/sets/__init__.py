"""Loaders of the public sets by family: their formats, and what their labels mean."""
