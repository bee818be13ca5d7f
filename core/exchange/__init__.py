"""In and out of a store: rows of any format, and whole projects as archives."""
