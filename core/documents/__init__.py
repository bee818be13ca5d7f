"""Documents: from bytes to a `Source`, to passages. Nothing is imported here: a start counts."""
