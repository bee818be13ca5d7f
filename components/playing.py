"""Where a replay is and what the viewer asked of it; kept in the session under the replay's key."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import streamlit as st

from components.cues import STEPS, Cue


def _position(key: str) -> float:
    """Where the replay is, in seconds of its own time."""
    position = float(st.session_state.get(f"{key}.position", 0.0))
    since = st.session_state.get(f"{key}.since")
    if since:
        position += (time.time() - since) * float(st.session_state.get(f"{key}.held_speed", 1.0))
    return position


def hold(key: str) -> None:
    """Fix the position; go on playing at the speed that is chosen now."""
    st.session_state[f"{key}.position"] = _position(key)
    if st.session_state.get(f"{key}.since"):
        st.session_state[f"{key}.since"] = time.time()
    st.session_state[f"{key}.held_speed"] = st.session_state.get(f"{key}.speed") or 1.0


def _ask(key: str) -> None:
    """Whoever presses a button wants to see what it does."""
    st.session_state[f"{key}.asked"] = st.session_state.get(f"{key}.asked", 0) + 1


def toggle(key: str) -> None:
    """Play, or pause."""
    _ask(key)
    hold(key)
    playing = st.session_state.get(f"{key}.since")
    st.session_state[f"{key}.since"] = None if playing else time.time()


def seek(key: str, position: float) -> None:
    """Go to that second, and go on playing if it plays."""
    _ask(key)
    st.session_state[f"{key}.position"] = position
    if st.session_state.get(f"{key}.since"):
        st.session_state[f"{key}.since"] = time.time()


def go_to(key: str, places: Mapping[str, float]) -> None:
    """Go to where the round that was chosen begins."""
    chosen = str(st.session_state.get(f"{key}.place") or "")
    if chosen in places:
        seek(key, places[chosen])


def step(key: str, by: int) -> None:
    """Pause at the next or previous turn or verdict."""
    _ask(key)
    st.session_state[f"{key}.stepped"] = by
    hold(key)
    st.session_state[f"{key}.since"] = None


def stepped(placed: Sequence[Cue], key: str) -> float:
    """Where the replay is, after the step that was asked for, if one was."""
    by = st.session_state.pop(f"{key}.stepped", 0)
    position = _position(key)
    if by:
        stops = [0.0, *(c.at for c in placed if c.event.kind in STEPS)]
        ahead = [stop for stop in stops if stop > position + 1e-6]
        behind = [stop for stop in stops if stop < position - 1e-6]
        forward, backward = (ahead or [position])[0], (behind or [0.0])[-1]
        position = forward if by > 0 else backward
        st.session_state[f"{key}.position"] = position
    return position
