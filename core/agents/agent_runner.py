"""Has one role play its part, and its spare where the reply is unusable.

An unusable reply costs only its role: the run says so and goes on with what is there; only the
judge's leaves the verdict unclear. A service that failed is another thing: it ends the run, which
can be resumed (`core/pipeline/review.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from core.concurrency import Stop
from core.errors import ModelError, ReplyError
from core.events import (
    ContextBuilt,
    Event,
    JudgementReached,
    JudgementSampled,
    ModelCalled,
    ProblemMet,
    ProgressMade,
    Stage,
    StatementFound,
)
from core.progress import total_cost
from core.records import Case, Judgement, Statement
from core.roles import Agent, CaseView, JudgeView, Roster

Part = TypeVar("Part")
UNREADABLE = "The judge gave no reply that could be used, so there is no verdict."


@dataclass(frozen=True)
class Play:
    """What all roles of one run share."""

    roster: Roster
    stop: Stop
    now: Callable[[], float]


def calls_of(play: Play) -> tuple[ModelCalled, ...]:
    """The calls to models that were made since this was last asked."""
    return tuple(ModelCalled(play.now(), call) for call in play.roster.calls_made())


def notes_of(play: Play, stage: Stage) -> Iterator[Event]:
    """What agents want said of their work."""
    yield from (ProblemMet(play.now(), stage, words) for words in play.roster.notes_made())


def segmented(play: Play, case: Case, known: Mapping[int, Statement]) -> Iterator[Event]:
    """The statements after those that are known: what was cut once is not cut otherwise."""
    segmenter = play.roster.segmenter
    statements, told = part_played(
        play,
        segmenter,
        "searching",
        lambda: segmenter.segment(case, play.stop),
        lambda spare: spare.segmenter.segment(case, play.stop),
        role="Segmenter",
    )
    yield from told
    end = max((statement.end for statement in known.values()), default=0)
    rest = [statement for statement in statements or () if statement.start >= end]
    for index, statement in enumerate(rest, max(known, default=-1) + 1):
        yield StatementFound(play.now(), replace(statement, index=index))


def context_built(play: Play, view: CaseView, names: Sequence[str]) -> Iterator[Event]:
    """Agent C's part for debaters of these names (CEDA 3.3)."""
    writer = play.roster.context_writer
    context, told = part_played(
        play,
        writer,
        "debating",
        lambda: writer.write(view, names, play.stop),
        lambda spare: spare.context_writer.write(view, names, play.stop),
        role="Context writer",
    )
    yield from told
    if context is None:
        raise ModelError(f"{writer.name} put no context together and nobody stands in for it.")
    yield ContextBuilt(play.now(), writer.name, context)
    yield from notes_of(play, "debating")


def judged(play: Play, seen: JudgeView) -> Iterator[Event]:
    """The judge's part; nobody stands in for it: an unusable reply is no verdict."""
    play.stop.check()
    yield ProgressMade(play.now(), "judging", "Weighing what was said")
    judgement, seconds, cost = yield from _heard_out(play, seen, "So there is no verdict.")
    yield JudgementReached(play.now(), judgement, seconds, cost)


def sampled(play: Play, seen: JudgeView, note: str) -> Iterator[Event]:
    """One judgement of several; an unusable reply is one that is `unclear`, and counts for none."""
    judgement, seconds, cost = yield from _heard_out(play, seen, "So it counts for no label.")
    yield JudgementSampled(play.now(), judgement, seen.number, note, seconds, cost)


def _heard_out(
    play: Play, seen: JudgeView, so: str
) -> Generator[Event, None, tuple[Judgement, float, float | None]]:
    """The events of one judgement; returns it, the seconds it took and the cost of its calls."""
    began = play.now()
    judgement, told = _decided(play, seen, so)
    yield from told
    yield from notes_of(play, "judging")
    cost = total_cost(event.call for event in told if event.kind == "model_called")
    return judgement, play.now() - began, cost


def _decided(play: Play, seen: JudgeView, so: str) -> tuple[Judgement, list[Event]]:
    """What the judge concludes, and what there is to tell of it; `so` is what a loss means."""
    play.stop.check()
    judge = play.roster.judge
    try:
        judgement = judge.decide(seen, play.stop)
    except ReplyError as error:
        words = f"{why_unusable(judge, 'Judge', error)} {so}"
        unusable = ProblemMet(play.now(), "judging", words, reply=error.reply)
        judgement = Judgement(
            agent=judge.name,
            label="unclear",
            text=UNREADABLE,
            cause="unreadable_reply",
            cause_words=words,
        )
        return judgement, [*calls_of(play), unusable]
    return judgement, [*calls_of(play)]


def part_played(
    play: Play,
    agent: Agent,
    stage: Stage,
    act: Callable[[], Part],
    stand_in: Callable[[Roster], Part],
    *,
    role: str,
) -> tuple[Part | None, list[Event]]:
    """What the agent did, or its spare where its reply is unusable, and what there is to tell."""
    play.stop.check()
    try:
        part = act()
    except ReplyError as error:
        spare = play.roster.spare
        rest = "The built-in agent stands in." if spare else "Nobody stands in."
        message = f"{why_unusable(agent, role, error)} {rest}"
        unusable = ProblemMet(play.now(), stage, message, reply=error.reply)
        return (stand_in(spare) if spare else None), [*calls_of(play), unusable]
    told: list[Event] = [*calls_of(play)]
    return part, told


def why_unusable(agent: Agent, role: str, error: ReplyError) -> str:
    """Which role's reply it is and what is wrong with it; a refusal names its role itself."""
    words = str(error)
    return words if words.startswith(f"{role} (") else f"{role} ({agent.name}): {words}"
