"""Traces that a change of structure must not change."""
