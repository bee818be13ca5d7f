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
class RunContext:
    """What all roles of one run share."""

    roster: Roster
    stop: Stop
    now: Callable[[], float]


def calls_of(run: RunContext) -> tuple[ModelCalled, ...]:
    """The calls to models that were made since this was last asked."""
    return tuple(ModelCalled(run.now(), call) for call in run.roster.calls_made())


def notes_of(run: RunContext, stage: Stage) -> Iterator[Event]:
    """What agents want said of their work."""
    yield from (ProblemMet(run.now(), stage, words) for words in run.roster.notes_made())


def segmented(run: RunContext, case: Case, known: Mapping[int, Statement]) -> Iterator[Event]:
    """The statements after those that are known: what was cut once is not cut otherwise."""
    segmenter = run.roster.segmenter
    statements, told = part_played(
        run,
        segmenter,
        "searching",
        lambda: segmenter.segment(case, run.stop),
        lambda spare: spare.segmenter.segment(case, run.stop),
        role="Segmenter",
    )
    yield from told
    end = max((statement.end for statement in known.values()), default=0)
    rest = [statement for statement in statements or () if statement.start >= end]
    for index, statement in enumerate(rest, max(known, default=-1) + 1):
        yield StatementFound(run.now(), replace(statement, index=index))


def context_built(run: RunContext, view: CaseView, names: Sequence[str]) -> Iterator[Event]:
    """Agent C's part for debaters of these names (CEDA 3.3)."""
    writer = run.roster.context_writer
    context, told = part_played(
        run,
        writer,
        "debating",
        lambda: writer.write(view, names, run.stop),
        lambda spare: spare.context_writer.write(view, names, run.stop),
        role="Context writer",
    )
    yield from told
    if context is None:
        raise ModelError(f"{writer.name} put no context together and nobody stands in for it.")
    yield ContextBuilt(run.now(), writer.name, context)
    yield from notes_of(run, "debating")


def judged(run: RunContext, seen: JudgeView) -> Iterator[Event]:
    """The judge's part; nobody stands in for it: an unusable reply is no verdict."""
    run.stop.check()
    yield ProgressMade(run.now(), "judging", "Weighing what was said")
    judgement, seconds, cost = yield from _heard_out(run, seen, "So there is no verdict.")
    yield JudgementReached(run.now(), judgement, seconds, cost)


def sampled(run: RunContext, seen: JudgeView, note: str) -> Iterator[Event]:
    """One judgement of several; an unusable reply is one that is `unclear`, and counts for none."""
    judgement, seconds, cost = yield from _heard_out(run, seen, "So it counts for no label.")
    yield JudgementSampled(run.now(), judgement, seen.number, note, seconds, cost)


def _heard_out(
    run: RunContext, seen: JudgeView, so: str
) -> Generator[Event, None, tuple[Judgement, float, float | None]]:
    """The events of one judgement; returns it, the seconds it took and the cost of its calls."""
    began = run.now()
    judgement, told = _decided(run, seen, so)
    yield from told
    yield from notes_of(run, "judging")
    cost = total_cost(event.call for event in told if event.kind == "model_called")
    return judgement, run.now() - began, cost


def _decided(run: RunContext, seen: JudgeView, so: str) -> tuple[Judgement, list[Event]]:
    """What the judge concludes, and what there is to tell of it; `so` is what a loss means."""
    run.stop.check()
    judge = run.roster.judge
    try:
        judgement = judge.decide(seen, run.stop)
    except ReplyError as error:
        words = f"{why_unusable(judge, 'Judge', error)} {so}"
        unusable = ProblemMet(run.now(), "judging", words, reply=error.reply)
        judgement = Judgement(
            agent=judge.name,
            label="unclear",
            text=UNREADABLE,
            cause="unreadable_reply",
            cause_words=words,
        )
        return judgement, [*calls_of(run), unusable]
    return judgement, [*calls_of(run)]


def part_played(
    run: RunContext,
    agent: Agent,
    stage: Stage,
    act: Callable[[], Part],
    stand_in: Callable[[Roster], Part],
    *,
    role: str,
) -> tuple[Part | None, list[Event]]:
    """What the agent did, or its spare where its reply is unusable, and what there is to tell."""
    run.stop.check()
    try:
        part = act()
    except ReplyError as error:
        spare = run.roster.spare
        rest = "The built-in agent stands in." if spare else "Nobody stands in."
        message = f"{why_unusable(agent, role, error)} {rest}"
        unusable = ProblemMet(run.now(), stage, message, reply=error.reply)
        return (stand_in(spare) if spare else None), [*calls_of(run), unusable]
    told: list[Event] = [*calls_of(run)]
    return part, told


def why_unusable(agent: Agent, role: str, error: ReplyError) -> str:
    """Which role's reply it is and what is wrong with it; a refusal names its role itself."""
    words = str(error)
    return words if words.startswith(f"{role} (") else f"{role} ({agent.name}): {words}"
