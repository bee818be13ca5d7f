"""Plays a stored run again: at its recorded pace or at a reading pace, step by step if wanted.

It is drawn by the same functions as the live debate and always marked as a replay. The schedule is
made of pure functions; where a replay is stays in the session.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from components.app import state
from components.run.audit import draw_audit_so_far, has_audit, parts_of
from components.run.debate import silence_words
from components.run.run_view import can_play, classifier_card, draw_debate_so_far, is_timed
from components.run.transcript import Speaking, rounds_of
from components.run.verdict import verdict_html
from components.widgets.controls import button, component, link
from components.widgets.html import marked_text, numbered, show
from components.widgets.wording import escaped, seconds
from core.schema.events import Event, TurnStarted
from core.schema.progress import Progress, folded
from core.schema.records import Case, Run, Turn

TICK_SECONDS = 0.25
PACES = ("recorded", "reading")
SPEEDS = (0.5, 1.0, 2.0, 4.0)
WORDS_A_SECOND = 3.5
FIXED_SECONDS = {
    "judgement_reached": 1.5, "tool_called": 0.8, "document_read": 0.5, "image_described": 0.5,
    "context_built": 0.5, "turn_started": 0.5,
}  # fmt: skip
STEPS = frozenset(
    "turn_finished person_spoke memory_updated reflection_changed judgement_sampled "
    "judgement_reached run_finished".split()
)


@dataclass(frozen=True)
class Cue:
    """One event and when it plays, in seconds from the start."""

    at: float
    event: Event


def cues(events: Sequence[Event], pace: str) -> list[Cue]:
    """When each event plays: as recorded, or with time to read what each turn says."""
    progress, placed, clock = Progress(), list[Cue](), 0.0
    for event in events:
        if pace == "recorded":  # the pause before a Resume is not part of the debate
            progress.add(event)
            clock = progress.seconds()
        else:
            clock += _reading_seconds(event)
        placed.append(Cue(clock, event))
    return placed


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
            return FIXED_SECONDS.get(event.kind, 0.0)
    return len(words.split()) / WORDS_A_SECOND


def at_moment(placed: Sequence[Cue], position: float) -> tuple[Progress, dict[int, Speaking]]:
    """The state then, and what has been said of each turn; older runs keep what was asked in it."""
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


def draw_replay(run: Run, case: Case) -> None:
    """Controls and the debate as it stood at the moment that is played."""
    key = f"replay.{run.id}"
    st.session_state.setdefault(f"{key}.position", 0.0)
    with st.container(key="replay-head"):
        left, right = st.columns([4, 1], vertical_alignment="center")
        left.title("Replay", anchor=False)
        left.caption("Plays back a stored debate; nothing is computed again.")
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
        st.caption("The recording has no times, so it plays at reading speed.")
    playing = bool(st.session_state.get(f"{key}.since"))
    _draw_controls(key, paces, landmarks(_placed(events, key)), playing=playing)
    # Whoever has paused sees nothing change: nothing is drawn again until they press something.
    st.fragment(_play, run_every=TICK_SECONDS if playing else None)(run, case, key)


def _events(run_id: str) -> list[Event]:
    with state.open_store() as store:
        return [event for _, event in store.runs.events(run_id)]


def _placed(events: Sequence[Event], key: str) -> list[Cue]:
    return cues(events, st.session_state.get(f"{key}.pace") or "reading")


def _draw_controls(
    key: str, paces: Sequence[str], places: Mapping[str, float], *, playing: bool
) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="replay-controls"):
        words, icon = ("Pause", "pause") if playing else ("Play", "play_arrow")
        options = {"type": "primary", "shortcut": "Ctrl+Space"}
        button(words, f"{key}.toggle", _toggle, key, icon=icon, **options)
        for words, name, by, icon, shortcut in (
            ("Step back", "back", -1, "skip_previous", "Ctrl+Left"),
            ("Step", "step", 1, "skip_next", "Ctrl+Right"),
        ):
            button(words, f"{key}.{name}", _step, key, by, icon=icon, shortcut=shortcut)
        button("From the start", f"{key}.start", _seek, key, 0.0, icon="replay")
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
            ("Speed", SPEEDS, 1.0, "{:g}×".format, _hold, (key,)),
        )
        for words, options_of, usual, shown, act, args in choices:
            st.segmented_control(
                words,
                options_of,
                label_visibility="collapsed",
                default=usual,
                required=True,
                format_func=shown,
                key=f"{key}.{words.lower()}",
                on_change=act,
                args=args,
            )
        component("fullscreen")(key=f"{key}.full")  # app.css hides the sidebar and header then


def _play(run: Run, case: Case, key: str) -> None:
    placed = _placed(_events(run.id), key)
    position = _stepped(placed, key)
    length = placed[-1].at if placed else 0.0
    if position >= length and st.session_state.get(f"{key}.since"):
        st.session_state.update({f"{key}.position": length, f"{key}.since": None})
        st.rerun()
    progress, speaking = at_moment(placed, position)
    with st.container(key="replay-status"):  # stays on screen: nobody takes it for a live debate
        words = f"Replay · {seconds(min(position, length))} of {seconds(length)}"
        st.progress(min(1.0, position / length) if length else 1.0, text=words)
    show(marked_text(case.response, numbered(progress.spans), parts_of(progress)))
    draw_audit_so_far(progress, f"{key}.audit", len(case.response))
    draw_debate_so_far(run, progress, speaking)
    if progress.verdict is not None:
        show(verdict_html(progress, classifier_card(progress.classifier)))
    audited = len(progress.tool_uses) + len(progress.memory) + len(progress.reconsidered)
    said = sum(len(one.words) for one in speaking.values())
    # It stands below the debate. `moment` differs whenever there is something new to see; `asked`
    # counts how often the viewer asked to see it, which ends having scrolled away.
    moment = f"{len(progress.turns)} {said} {audited} {progress.verdict is not None}"
    asked = int(st.session_state.get(f"{key}.asked", 0))
    with st.container(key="follow-speaker"):  # app.css takes it out of the flow
        component("follow")(key=f"{key}.follow", data={"moment": moment, "asked": asked})


def _position(key: str) -> float:
    position = float(st.session_state.get(f"{key}.position", 0.0))
    since = st.session_state.get(f"{key}.since")
    if since:
        position += (time.time() - since) * float(st.session_state.get(f"{key}.held_speed", 1.0))
    return position


def _hold(key: str, position: float | None = None) -> None:
    kept = st.session_state
    kept[f"{key}.position"] = _position(key) if position is None else position
    if kept.get(f"{key}.since"):
        kept[f"{key}.since"] = time.time()
    kept[f"{key}.held_speed"] = kept.get(f"{key}.speed") or 1.0


def _ask(key: str) -> None:
    """Whoever presses a button wants to see what it does."""
    st.session_state[f"{key}.asked"] = st.session_state.get(f"{key}.asked", 0) + 1


def _toggle(key: str) -> None:
    _ask(key)
    _hold(key)
    playing = st.session_state.get(f"{key}.since")
    st.session_state[f"{key}.since"] = None if playing else time.time()


def _seek(key: str, position: float) -> None:
    _ask(key)
    _hold(key, position)


def _go_to(key: str, places: Mapping[str, float]) -> None:
    chosen = str(st.session_state.get(f"{key}.place") or "")
    if chosen in places:
        _seek(key, places[chosen])


def _step(key: str, by: int) -> None:
    _ask(key)
    _hold(key)
    st.session_state.update({f"{key}.stepped": by, f"{key}.since": None})


def _stepped(placed: Sequence[Cue], key: str) -> float:
    """Where the replay is, after the step that was asked for, if one was."""
    by = st.session_state.pop(f"{key}.stepped", 0)
    position = _position(key)
    if by:
        stops = [0.0, *(c.at for c in placed if c.event.kind in STEPS)]
        ahead = [stop for stop in stops if stop > position + 1e-6]
        behind = [stop for stop in stops if stop < position - 1e-6]
        position = (ahead or [position])[0] if by > 0 else (behind or [0.0])[-1]
        st.session_state[f"{key}.position"] = position
    return position
