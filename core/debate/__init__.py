"""Debate protocols. All of them work on a `DebateState` and yield the same events."""

from core.schema.rosters import NAMES

__all__ = ["NAMES"]
