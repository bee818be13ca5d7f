"""Plays a stored run again: at its recorded pace or at a reading pace, step by step if wanted.

It is drawn by the same functions as the live debate and always marked as a replay.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components import state
from components.cues import STEPS, Cue, at_moment, cues
from components.fullscreen import fullscreen_button
from components.highlight import marked_text
from components.run_view import classifier_card
from components.show import show
from components.trace import debate_html
from components.verdict import verdict_html
from components.words import seconds
from core.events import Event
from core.records import Case, Run

TICK_SECONDS = 0.25
PACES = ("recorded", "reading")
SPEEDS = (0.5, 1.0, 2.0, 4.0)


def draw_replay(run: Run, case: Case) -> None:
    """Controls and the debate as it stood at the moment that is played."""
    key = f"replay.{run.id}"
    st.session_state.setdefault(f"{key}.position", 0.0)
    left, right = st.columns([4, 1], vertical_alignment="center")
    with left:
        st.title("Replay", anchor=False)
        st.caption("A stored debate is played again; nothing is computed.")
    with right:
        st.page_link("pages/check/run.py", label="Back to the run", query_params={"run": run.id})
    _controls(key)
    _play(run, case, key)


def _controls(key: str) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        playing = bool(st.session_state.get(f"{key}.since"))
        st.button(
            "Pause" if playing else "Play",
            key=f"{key}.toggle",
            icon=":material/pause:" if playing else ":material/play_arrow:",
            type="primary",
            shortcut="Ctrl+Space",
            on_click=_toggle,
            args=(key,),
        )
        st.button(
            "Step back",
            key=f"{key}.back",
            icon=":material/skip_previous:",
            shortcut="Ctrl+Left",
            on_click=_step,
            args=(key, -1),
        )
        st.button(
            "Step",
            key=f"{key}.step",
            icon=":material/skip_next:",
            shortcut="Ctrl+Right",
            on_click=_step,
            args=(key, 1),
        )
        st.button("From the start", key=f"{key}.start", on_click=_seek, args=(key, 0.0))
        st.segmented_control(
            "Pace",
            PACES,
            default="reading",
            required=True,
            key=f"{key}.pace",
            on_change=_seek,
            args=(key, 0.0),
        )
        st.segmented_control(
            "Speed",
            SPEEDS,
            default=1.0,
            required=True,
            format_func=lambda speed: f"{speed:g}×",
            key=f"{key}.speed",
            on_change=_hold,
            args=(key,),
        )
        fullscreen_button(f"{key}.full")


def _position(key: str) -> float:
    """Where the replay is, in seconds of its own time."""
    position = float(st.session_state.get(f"{key}.position", 0.0))
    since = st.session_state.get(f"{key}.since")
    if since:
        position += (time.time() - since) * float(st.session_state.get(f"{key}.held_speed", 1.0))
    return position


def _hold(key: str) -> None:
    """Fix the position; go on playing at the speed that is chosen now."""
    st.session_state[f"{key}.position"] = _position(key)
    if st.session_state.get(f"{key}.since"):
        st.session_state[f"{key}.since"] = time.time()
    st.session_state[f"{key}.held_speed"] = st.session_state.get(f"{key}.speed") or 1.0


def _toggle(key: str) -> None:
    _hold(key)
    playing = st.session_state.get(f"{key}.since")
    st.session_state[f"{key}.since"] = None if playing else time.time()


def _seek(key: str, position: float) -> None:
    st.session_state[f"{key}.position"] = position
    if st.session_state.get(f"{key}.since"):
        st.session_state[f"{key}.since"] = time.time()


def _step(key: str, by: int) -> None:
    """Pause at the next or previous turn or verdict."""
    st.session_state[f"{key}.stepped"] = by
    _hold(key)
    st.session_state[f"{key}.since"] = None


@st.fragment(run_every=TICK_SECONDS)
def _play(run: Run, case: Case, key: str) -> None:
    pace = st.session_state.get(f"{key}.pace") or "reading"
    placed = cues(_events(run.id), pace)
    position = _stepped(placed, key)
    length = placed[-1].at if placed else 0.0
    if position >= length and st.session_state.get(f"{key}.since"):
        st.session_state[f"{key}.position"] = length
        st.session_state[f"{key}.since"] = None
        st.rerun()
    progress, speaking = at_moment(placed, position)
    st.progress(
        min(1.0, position / length) if length else 1.0,
        text=f"Replay · {seconds(min(position, length))} of {seconds(length)}",
    )
    show(marked_text(case.response, []))
    if progress.verdict is not None:
        show(verdict_html(progress.verdict, classifier_card(run.plan.classifier)))
    show(debate_html(progress.turns, speaking))


def _events(run_id: str) -> list[Event]:
    with state.open_store() as store:
        return [event for _, event in store.runs.events(run_id)]


def _stepped(placed: Sequence[Cue], key: str) -> float:
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
