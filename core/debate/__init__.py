"""Protocols of debate; all argue on the floor of `floor.py` and yield the same events."""

from core.seats import NAMES

__all__ = ["NAMES"]
