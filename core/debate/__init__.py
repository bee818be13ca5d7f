"""Ways to argue, one file each; all take the floor in `floor.py` and yield the same events."""

from core.seats import NAMES

__all__ = ["NAMES"]
