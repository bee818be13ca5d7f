"""Plays a stored run again: at its recorded pace or at a reading pace, step by step if wanted.

It is drawn by the same functions as the live debate and always marked as a replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from components.app import state
from components.run.audit import draw_audit_so_far, has_audit, parts_of
from components.run.debate import silence_words
from components.run.playback import (
    Cue,
    at_moment,
    can_play,
    cues,
    follow_speaker,
    fullscreen_button,
    go_to,
    hold,
    is_timed,
    landmarks,
    seek,
    step,
    stepped,
    toggle,
)
from components.run.run_view import classifier_card, draw_debate_so_far
from components.run.verdict import verdict_html
from components.widgets.controls import button, link
from components.widgets.html import Mark, marked_text, show
from components.widgets.wording import escaped, seconds
from core.schema.events import Event
from core.schema.progress import folded
from core.schema.records import Case, Run

TICK_SECONDS = 0.25
PACES = ("recorded", "reading")
SPEEDS = (0.5, 1.0, 2.0, 4.0)


def draw_replay(run: Run, case: Case) -> None:
    """Controls and the debate as it stood at the moment that is played."""
    key = f"replay.{run.id}"
    st.session_state.setdefault(f"{key}.position", 0.0)
    with st.container(key="replay-head"):
        left, right = st.columns([4, 1], vertical_alignment="center")
        with left:
            st.title("Replay", anchor=False)
            st.caption("Plays back a stored debate; nothing is computed again.")
        with right:
            link("pages/check/run.py", "Back to the run", "arrow_back", run=run.id)
    events = _events(run.id)
    progress = folded(events)
    if not can_play(progress):
        st.info(f"There is nothing to play. {escaped(silence_words(progress))}")
        return
    if not progress.turns and not has_audit(progress):
        st.caption(escaped(silence_words(progress)))
    paces = PACES if is_timed(progress) else PACES[1:]
    if len(paces) == 1:
        st.caption("The record knows no times: it plays at a pace at which one can read it.")
    playing = bool(st.session_state.get(f"{key}.since"))
    _controls(key, paces, landmarks(_placed(events, key)), playing=playing)
    # Whoever has paused sees nothing change: nothing is drawn again until they press something.
    st.fragment(_play, run_every=TICK_SECONDS if playing else None)(run, case, key)


def _placed(events: Sequence[Event], key: str) -> list[Cue]:
    return cues(events, st.session_state.get(f"{key}.pace") or "reading")


def _controls(
    key: str, paces: Sequence[str], places: Mapping[str, float], *, playing: bool
) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="replay-controls"):
        st.button(
            "Pause" if playing else "Play",
            key=f"{key}.toggle",
            icon=":material/pause:" if playing else ":material/play_arrow:",
            type="primary",
            shortcut="Ctrl+Space",
            on_click=toggle,
            args=(key,),
        )
        button(
            "Step back", f"{key}.back", step, key, -1, icon="skip_previous", shortcut="Ctrl+Left"
        )
        button("Step", f"{key}.step", step, key, 1, icon="skip_next", shortcut="Ctrl+Right")
        button("From the start", f"{key}.start", seek, key, 0.0, icon="replay")
        if len(places) > 1:
            st.menu_button(
                "Go to",
                list(places),
                key=f"{key}.place",
                icon=":material/format_list_numbered:",
                on_click=go_to,
                args=(key, places),
            )
        st.segmented_control(
            "Pace",
            paces,
            label_visibility="collapsed",
            default="reading",
            required=True,
            key=f"{key}.pace",
            on_change=seek,
            args=(key, 0.0),
        )
        st.segmented_control(
            "Speed",
            SPEEDS,
            label_visibility="collapsed",
            default=1.0,
            required=True,
            format_func=lambda speed: f"{speed:g}×",
            key=f"{key}.speed",
            on_change=hold,
            args=(key,),
        )
        fullscreen_button(f"{key}.full")


def _play(run: Run, case: Case, key: str) -> None:
    placed = _placed(_events(run.id), key)
    position = stepped(placed, key)
    length = placed[-1].at if placed else 0.0
    if position >= length and st.session_state.get(f"{key}.since"):
        st.session_state[f"{key}.position"] = length
        st.session_state[f"{key}.since"] = None
        st.rerun()
    progress, speaking = at_moment(placed, position)
    with st.container(key="replay-status"):  # stays on screen: nobody takes it for a live debate
        st.progress(
            min(1.0, position / length) if length else 1.0,
            text=f"Replay · {seconds(min(position, length))} of {seconds(length)}",
        )
    marks = [Mark(s.start, s.end, str(n)) for n, s in enumerate(progress.spans, start=1)]
    show(marked_text(case.response, marks, parts_of(progress)))
    draw_audit_so_far(progress, f"{key}.audit", len(case.response))
    draw_debate_so_far(run, progress, speaking)
    if progress.verdict is not None:
        show(verdict_html(progress, classifier_card(progress.classifier)))
    audited = len(progress.tool_uses) + len(progress.memory) + len(progress.reconsidered)
    said = sum(len(one.words) for one in speaking.values())
    follow_speaker(
        f"{key}.follow",
        f"{len(progress.turns)} {said} {audited} {progress.verdict is not None}",
        int(st.session_state.get(f"{key}.asked", 0)),
    )


def _events(run_id: str) -> list[Event]:
    with state.open_store() as store:
        return [event for _, event in store.runs.events(run_id)]
