"""Documents: from bytes to a `Source` to passages. Imports nothing, to keep start-up fast."""
