"""Replay of a stored run: at its recorded pace or at a reading pace, or step by step.

The same functions draw it as the live debate, and it is always marked as a replay. Pure functions
make the schedule; the position of a replay is kept in the session.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from components.app import state
from components.run.audit import draw_audit_so_far, has_audit, list_link_targets
from components.run.debate import explain_silence
from components.run.run_view import can_replay, draw_debate_so_far, is_timed, load_classifier_card
from components.run.transcript import OpenTurn, split_rounds
from components.run.verdict import render_verdict
from components.widgets.controls import draw_button, draw_link, get_component
from components.widgets.html import draw_html, number_spans, render_marked_text
from components.widgets.wording import clip_text, escape_markdown, format_duration
from core.schema.events import Event, TurnStarted
from core.schema.records import Case, Run, Turn
from core.schema.run_state import RunState, fold_events

TICK_SECONDS = 0.25
MAX_TITLE_CHARS = 40
PACES = ("recorded", "reading")
SPEEDS = (0.5, 1.0, 2.0, 4.0)
WORDS_PER_SECOND = 3.5
EVENT_SECONDS = {
    "judgement_reached": 1.5, "tool_called": 0.8, "document_read": 0.5, "image_described": 0.5,
    "context_built": 0.5, "turn_started": 0.5,
}  # fmt: skip
STEP_KINDS = frozenset(
    "turn_finished person_spoke memory_updated reflection_changed judgement_sampled "
    "judgement_reached run_finished".split()
)


@dataclass(frozen=True)
class Cue:
    """An event and when it plays, in seconds from the start."""

    at: float
    event: Event


def schedule_events(events: Sequence[Event], pace: str) -> list[Cue]:
    """Schedule each event: as recorded, or with time to read what each turn says."""
    progress, clock = RunState(), 0.0
    schedule: list[Cue] = []
    for event in events:
        if pace == "recorded":  # the pause before a Resume is not part of the debate
            progress.add(event)
            clock = progress.seconds()
        else:
            clock += _reading_seconds(event)
        schedule.append(Cue(clock, event))
    return schedule


def _reading_seconds(event: Event) -> float:
    match event.kind:
        case "turn_finished":
            words = event.turn.text
        case "person_spoke":
            words = event.text
        case "judgement_sampled":
            words = event.judgement.prose or event.judgement.text
        case "memory_updated":
            words = event.entry.evidence
        case "reflection_changed":
            words = event.change.reason
        case _:
            return EVENT_SECONDS.get(event.kind, 0.0)
    return len(words.split()) / WORDS_PER_SECOND


def replay_until(placed: Sequence[Cue], position: float) -> tuple[RunState, dict[int, OpenTurn]]:
    """Return the state at `position` and the words so far of each turn under way.

    Older runs store what was asked of a turn only with the finished turn.
    """
    progress = RunState()
    speaking: dict[int, OpenTurn] = {}
    started: dict[int, tuple[float, TurnStarted]] = {}
    for cue in placed:
        event = cue.event
        if cue.at <= position + 1e-9:
            progress.add(event)
            if event.kind == "turn_started":
                started[event.number] = cue.at, event
        elif event.kind == "turn_finished" and event.turn.number in started:
            turn = event.turn
            began, start = started[turn.number]
            share = (position - began) / max(1e-6, cue.at - began)
            words = turn.text.split(" ")
            spoken = " ".join(words[: max(0, int(share * len(words)))])
            start = replace(start, manner=turn.manner, about=turn.about, assigned=turn.assigned)
            speaking.setdefault(turn.number, OpenTurn(start, spoken))
    return progress, speaking


def find_landmarks(placed: Sequence[Cue]) -> dict[str, float]:
    """Return where each round begins and where the verdict falls, in seconds and in order."""
    start_of: dict[int, float] = {}
    turns: list[Turn] = []
    for cue in placed:
        event = cue.event
        if event.kind == "turn_started":
            start_of.setdefault(event.number, cue.at)
        elif event.kind == "turn_finished":
            start_of.setdefault(event.turn.number, cue.at)
            turns.append(event.turn)
    places = {
        round_.heading: min(start_of[turn.number] for turn in round_.turns)
        for round_ in split_rounds(turns)
    }
    if any(cue.event.kind == "judgement_reached" for cue in placed):
        places["The verdict"] = placed[-1].at
    return dict(sorted(places.items(), key=lambda item: item[1]))


def draw_replay(run: Run, case: Case) -> None:
    """Draw the controls, and the debate as it stands at the current position."""
    key = f"replay.{run.id}"
    st.session_state.setdefault(f"{key}.position", 0.0)
    with st.container(key="replay-head"):
        left, right = st.columns([4, 1], vertical_alignment="center")
        title = f"{clip_text(run.name or case.response, MAX_TITLE_CHARS)} · Replay"
        st.set_page_config(page_title=f"{title} · Counterpoint")
        left.title(escape_markdown(title), anchor=False)
        left.caption("Plays back a stored debate; nothing is computed again.")
        with right:
            draw_link("pages/check/run.py", "Back to the run", "arrow_back", run=run.id)
    events = _load_events(run.id)
    progress = fold_events(events)
    if not can_replay(progress):
        st.info(f"There is nothing to play. {escape_markdown(explain_silence(progress))}")
        return
    if not progress.turns and not has_audit(progress):
        st.caption(escape_markdown(explain_silence(progress)))
    paces = PACES if is_timed(progress) else PACES[1:]
    if len(paces) == 1:
        st.caption("The recording has no times, so it plays at reading speed.")
    playing = bool(st.session_state.get(f"{key}.since"))
    _draw_controls(key, paces, find_landmarks(_load_cues(events, key)), playing=playing)
    # While paused nothing changes, so nothing is redrawn until a button is pressed.
    st.fragment(_play, run_every=TICK_SECONDS if playing else None)(run, case, key)


def _load_events(run_id: str) -> list[Event]:
    with state.open_store() as store:
        return [event for _, event in store.runs.events(run_id)]


def _load_cues(events: Sequence[Event], key: str) -> list[Cue]:
    return schedule_events(events, st.session_state.get(f"{key}.pace") or "reading")


def _draw_controls(
    key: str, paces: Sequence[str], places: Mapping[str, float], *, playing: bool
) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="replay-controls"):
        words, icon = ("Pause", "pause") if playing else ("Play", "play_arrow")
        draw_button(
            words,
            f"{key}.toggle",
            _toggle_play,
            key,
            icon=icon,
            type="primary",
            shortcut="Ctrl+Space",
        )
        for words, name, by, icon, shortcut in (
            ("Step back", "back", -1, "skip_previous", "Ctrl+Left"),
            ("Step", "step", 1, "skip_next", "Ctrl+Right"),
        ):
            draw_button(words, f"{key}.{name}", _step, key, by, icon=icon, shortcut=shortcut)
        draw_button("From the start", f"{key}.start", _seek, key, 0.0, icon="replay")
        if len(places) > 1:
            st.menu_button(
                "Go to",
                list(places),
                key=f"{key}.place",
                icon=":material/format_list_numbered:",
                on_click=_go_to,
                args=(key, places),
            )
        choices: Sequence[tuple[Any, ...]] = (
            ("Pace", paces, "reading", str, _seek, (key, 0.0)),
            ("Speed", SPEEDS, 1.0, "{:g}×".format, _rebase_clock, (key,)),
        )
        for words, values, default, format_value, on_change, args in choices:
            st.segmented_control(
                words,
                values,
                label_visibility="collapsed",
                default=default,
                required=True,
                format_func=format_value,
                key=f"{key}.{words.lower()}",
                on_change=on_change,
                args=args,
            )
        get_component("fullscreen")(key=f"{key}.full")  # app.css hides the sidebar and header then


def _play(run: Run, case: Case, key: str) -> None:
    schedule = _load_cues(_load_events(run.id), key)
    position = _apply_step(schedule, key)
    length = schedule[-1].at if schedule else 0.0
    if position >= length and st.session_state.get(f"{key}.since"):
        st.session_state.update({f"{key}.position": length, f"{key}.since": None})
        st.rerun()
    progress, speaking = replay_until(schedule, position)
    with st.container(key="replay-status"):  # stays on screen, so that it is not taken for live
        words = f"Replay · {format_duration(min(position, length))} of {format_duration(length)}"
        st.progress(min(1.0, position / length) if length else 1.0, text=words)
    marked = number_spans(progress.spans)
    response = render_marked_text(case.response, marked, list_link_targets(progress))
    if progress.verdict is None:
        draw_html(response)
    draw_audit_so_far(progress, f"{key}.audit", len(case.response))
    draw_debate_so_far(run, progress, speaking)
    if progress.verdict is not None:  # the end: what all of it was about, marked
        draw_html(render_verdict(progress, load_classifier_card(progress.classifier)))
        with st.container(key="replay-response"):
            draw_html(response)
    audited = len(progress.tool_uses) + len(progress.memory) + len(progress.reconsidered)
    words_spoken = sum(len(one.words) for one in speaking.values())
    # Drawn below the debate. `moment` changes whenever there is something new to see; `asked`
    # counts the viewer's requests to see it: each one scrolls back to the newest words.
    moment = f"{len(progress.turns)} {words_spoken} {audited} {progress.verdict is not None}"
    asked = int(st.session_state.get(f"{key}.asked", 0))
    with st.container(key="follow-speaker"):  # app.css takes it out of the flow
        get_component("follow")(key=f"{key}.follow", data={"moment": moment, "asked": asked})


def _current_position(key: str) -> float:
    position = float(st.session_state.get(f"{key}.position", 0.0))
    since = st.session_state.get(f"{key}.since")
    if since:
        position += (time.time() - since) * float(st.session_state.get(f"{key}.held_speed", 1.0))
    return position


def _rebase_clock(key: str, position: float | None = None) -> None:
    """Store the position and the speed, and let the clock run from now."""
    session = st.session_state
    session[f"{key}.position"] = _current_position(key) if position is None else position
    if session.get(f"{key}.since"):
        session[f"{key}.since"] = time.time()
    session[f"{key}.held_speed"] = session.get(f"{key}.speed") or 1.0


def _count_request(key: str) -> None:
    """Count that a person pressed a button, and so wants to see what it does."""
    st.session_state[f"{key}.asked"] = st.session_state.get(f"{key}.asked", 0) + 1


def _toggle_play(key: str) -> None:
    _count_request(key)
    _rebase_clock(key)
    playing = st.session_state.get(f"{key}.since")
    st.session_state[f"{key}.since"] = None if playing else time.time()


def _seek(key: str, position: float) -> None:
    _count_request(key)
    _rebase_clock(key, position)


def _go_to(key: str, places: Mapping[str, float]) -> None:
    chosen = str(st.session_state.get(f"{key}.place") or "")
    if chosen in places:
        _seek(key, places[chosen])


def _step(key: str, by: int) -> None:
    _count_request(key)
    _rebase_clock(key)
    st.session_state.update({f"{key}.stepped": by, f"{key}.since": None})


def _apply_step(placed: Sequence[Cue], key: str) -> float:
    """Return the current position, after the requested step if there was one."""
    by = st.session_state.pop(f"{key}.stepped", 0)
    position = _current_position(key)
    if by:
        stops = [0.0, *(c.at for c in placed if c.event.kind in STEP_KINDS)]
        ahead = [stop for stop in stops if stop > position + 1e-6]
        behind = [stop for stop in stops if stop < position - 1e-6]
        position = (ahead or [position])[0] if by > 0 else (behind or [0.0])[-1]
        st.session_state[f"{key}.position"] = position
    return position
