"""A replay: when each event plays, how the debate stands at a moment, full screen, following.

The schedule is made of pure functions; where a replay is stays in the session.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import streamlit as st

from components.run.audit import has_audit
from components.run.transcript import Speaking, rounds_of
from components.widgets.controls import component
from core.schema.events import Event, TurnStarted
from core.schema.progress import Progress
from core.schema.records import Turn


def follow_speaker(key: str, moment: str, asked: int) -> None:
    """Draw it below the debate.

    `moment` differs whenever there is something new to see; `asked` counts how often the viewer
    asked to see it, which ends having scrolled away.
    """
    with st.container(key="follow-speaker"):  # app.css takes it out of the flow
        component("follow")(key=key, data={"moment": moment, "asked": asked})


def fullscreen_button(key: str) -> None:
    """Draw the button; in full screen the sidebar and header are hidden by app.css."""
    component("fullscreen")(key=key)


WORDS_A_SECOND = 3.5
TOOL_SECONDS = 0.8
STEPS = frozenset(
    "turn_finished person_spoke memory_updated reflection_changed judgement_sampled "
    "judgement_reached run_finished".split()
)


@dataclass(frozen=True)
class Cue:
    """One event and when it plays, in seconds from the start."""

    at: float
    event: Event


def is_timed(progress: Progress) -> bool:
    """False for a debate from elsewhere whose record knows no times."""
    return progress.last_at > progress.began_at


def can_play(progress: Progress) -> bool:
    """True where somebody said something on the way to the verdict."""
    return bool(progress.turns or progress.samples or progress.remarks) or has_audit(progress)


def cues(events: Sequence[Event], pace: str) -> list[Cue]:
    """When each event plays: as recorded, or with time to read what each turn says."""
    if not events:
        return []
    if pace == "recorded":
        progress, recorded = Progress(), []
        for event in events:  # the pause before a Resume is not part of the debate
            progress.add(event)
            recorded.append(Cue(progress.seconds(), event))
        return recorded
    placed: list[Cue] = []
    clock = 0.0
    for event in events:
        clock += _reading_seconds(event)
        placed.append(Cue(clock, event))
    return placed


def _reading_seconds(event: Event) -> float:
    """What it takes to read what the event says."""
    match event.kind:
        case "turn_finished":
            return _words_seconds(event.turn.text)
        case "person_spoke":
            return _words_seconds(event.text)
        case "judgement_sampled":
            return _words_seconds(event.judgement.prose or event.judgement.text)
        case "memory_updated":
            return _words_seconds(event.entry.evidence)
        case "reflection_changed":
            return _words_seconds(event.change.reason)
        case "judgement_reached":
            return 1.5
        case "tool_called":
            return TOOL_SECONDS
        case "document_read" | "image_described" | "context_built" | "turn_started":
            return 0.5
        case _:
            return 0.0


def _words_seconds(text: str) -> float:
    return len(text.split()) / WORDS_A_SECOND


def at_moment(placed: Sequence[Cue], position: float) -> tuple[Progress, dict[int, Speaking]]:
    """The state at that moment, and how much of each turn under way has been said.

    What was asked of a turn is read from the turn: older runs did not keep it at its start.
    """
    progress = Progress()
    speaking: dict[int, Speaking] = {}
    started: dict[int, tuple[float, TurnStarted]] = {}
    for cue in placed:
        event = cue.event
        if cue.at <= position + 1e-9:
            progress.add(event)
            if event.kind == "turn_started":
                started[event.number] = cue.at, event
        elif event.kind == "turn_finished" and event.turn.number in started:
            turn = event.turn
            began, asked = started[turn.number]
            share = (position - began) / max(1e-6, cue.at - began)
            words = turn.text.split(" ")
            said = " ".join(words[: max(0, int(share * len(words)))])
            told = replace(asked, manner=turn.manner, about=turn.about, assigned=turn.assigned)
            speaking.setdefault(turn.number, Speaking(told, said))
    return progress, speaking


def landmarks(placed: Sequence[Cue]) -> dict[str, float]:
    """Where each round begins, and where the verdict falls, in seconds; in their order."""
    began: dict[int, float] = {}
    turns: list[Turn] = []
    for cue in placed:
        event = cue.event
        if event.kind == "turn_started":
            began.setdefault(event.number, cue.at)
        elif event.kind == "turn_finished":
            began.setdefault(event.turn.number, cue.at)
            turns.append(event.turn)
    found = {one.heading: min(began[turn.number] for turn in one.turns) for one in rounds_of(turns)}
    if any(cue.event.kind == "judgement_reached" for cue in placed):
        found["The verdict"] = placed[-1].at
    return dict(sorted(found.items(), key=lambda item: item[1]))


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
