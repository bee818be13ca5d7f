"""Documents: from bytes to a `Source`, to passages, to what a statement is checked against.

Files are untrusted. They are read and drawn in a child process (`isolation`, `worker`) that a
time limit, a memory limit and Stop can end. Nothing is imported here: the child's start counts.
"""
