"""Import and export rows in several formats, and whole projects as archives."""
