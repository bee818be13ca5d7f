"""When each event of a stored run plays, and how the debate stands at a moment: pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from components.audit_rows import has_audit
from components.rounds import Speaking, rounds_of
from core.events import Event, TurnStarted
from core.progress import Progress
from core.records import Turn

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
