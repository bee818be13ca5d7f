"""Protocols of debate; all argue over the same `DebateState` and yield the same events."""

from core.schema.rosters import NAMES

__all__ = ["NAMES"]
