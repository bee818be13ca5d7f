"""Bytes become a `Source`: every reader, its limits, and the sentences for what cannot be read.

Files are untrusted. They are read and drawn in a child process (`isolation`, `worker`) that a
time limit, a memory limit and Stop can end. Nothing is imported here: the child's start counts.
"""
