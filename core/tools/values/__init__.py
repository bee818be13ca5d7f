"""Numbers, units, dates and times in a text, and whether two of them agree."""
