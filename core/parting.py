"""Where several runs over one case part: verdicts, words, statements, and whose mind changed."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.progress import Progress
from core.records import Label, Stance


@dataclass(frozen=True)
class Stretch:
    """`[start, end)` of the response that some of the runs mark and others do not."""

    start: int
    end: int
    text: str
    marked_by: tuple[str, ...]
    passed_by: tuple[str, ...]


@dataclass(frozen=True)
class Held:
    """A sentence of the response on which runs differ; by run, whether it marks words in it."""

    start: int
    end: int
    text: str
    is_marked: Mapping[str, bool]


@dataclass(frozen=True)
class Turned:
    """A debater of a run that took another stance in a later turn, and in which round."""

    run: str
    debater: str
    before: Stance
    after: Stance
    round: int


def verdicts(runs: Mapping[str, Progress]) -> dict[Label, tuple[str, ...]]:
    """Which runs came to which label; runs without a verdict are in none."""
    found: dict[Label, tuple[str, ...]] = {}
    for name, progress in runs.items():
        if progress.verdict is not None:
            label = progress.verdict.label
            found[label] = (*found.get(label, ()), name)
    return found


def words_apart(response: str, runs: Mapping[str, Progress]) -> list[Stretch]:
    """The longest stretches that the same runs mark, where others with a verdict do not."""
    judged = {name: own for name, own in runs.items() if own.verdict is not None}
    spans = {name: [(s.start, s.end) for s in own.spans] for name, own in judged.items()}
    cuts = sorted({place for own in spans.values() for span in own for place in span})
    found: list[Stretch] = []
    for start, end in itertools.pairwise(cuts):
        by = tuple(
            name for name, own in spans.items() if any(s <= start and end <= e for s, e in own)
        )
        if not by or len(by) == len(judged):
            continue
        last = found[-1] if found else None
        begin = start
        if last is not None and last.end == start and last.marked_by == by:
            begin = found.pop().start
        others = tuple(name for name in judged if name not in by)
        found.append(Stretch(begin, end, response[begin:end], by, others))
    return found


def statements_apart(runs: Mapping[str, Progress]) -> list[Held]:
    """The sentences in which some runs mark words and others none.

    They are those of the run that parted the response into most; a run without a verdict is
    silent on all.
    """
    judged = {name: own for name, own in runs.items() if own.verdict is not None}
    parted = max((own.statements for own in judged.values()), key=len, default={})
    found = []
    for _, statement in sorted(parted.items()):
        inside = {
            name: any(s.start < statement.end and statement.start < s.end for s in own.spans)
            for name, own in judged.items()
        }
        if len(set(inside.values())) > 1:
            found.append(Held(statement.start, statement.end, statement.text, inside))
    return found


def turned(runs: Mapping[str, Progress]) -> list[Turned]:
    """Every change of a debater's stance within a run, in the order of turns.

    A side that it was assigned is not what it holds, and is passed over.
    """
    found = []
    for name, progress in runs.items():
        held: dict[str, Stance] = {}
        for turn in sorted(progress.turns, key=lambda own: own.number):
            if turn.assigned is not None:
                continue
            before = held.get(turn.debater)
            if before is not None and before != turn.stance:
                found.append(Turned(name, turn.debater, before, turn.stance, turn.round))
            held[turn.debater] = turn.stance
    return found


def same_agent_apart(runs: Mapping[str, Progress]) -> list[tuple[str, dict[Stance, list[str]]]]:
    """(agent, runs by the stance it ended with) of agents that ended differently in two runs."""
    ended: dict[str, dict[str, Stance]] = {}
    for name, progress in runs.items():
        for turn in progress.turns:
            if turn.assigned is None:  # a side that it was given says nothing of what it holds
                ended.setdefault(turn.agent, {})[name] = turn.stance
    found = []
    for agent, stances in ended.items():
        if len(set(stances.values())) > 1:
            by_stance: dict[Stance, list[str]] = {}
            for name, stance in stances.items():
                by_stance.setdefault(stance, []).append(name)
            found.append((agent, by_stance))
    return found


def letters(count: int) -> Sequence[str]:
    """A letter for each run, as the marks in the text have them."""
    return [chr(ord("A") + place) for place in range(count)]
