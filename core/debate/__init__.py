"""Debate protocols. All of them work on a `DebateState` and yield the same events."""

from core.schema.rosters import PROTOCOL_NAMES

__all__ = ["PROTOCOL_NAMES"]
