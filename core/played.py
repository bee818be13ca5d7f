"""Has each role of a review played, and lets its spare stand in where a reply is unusable.

An unusable reply costs only its role: the run says so and goes on with what is there; only the
judge's leaves the verdict unclear. A service that failed is another thing: it ends the run, which
can be resumed (`core/engine.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from core.concurrency import Stop, merged
from core.debate.ceda import run_debate
from core.errors import ModelError, ReplyError
from core.events import (
    ContextBuilt,
    Event,
    JudgementReached,
    ModelCalled,
    ProblemMet,
    SpanAdjudicated,
    SpanProposed,
    Stage,
    StatementFound,
    WordsScored,
)
from core.progress import Progress, total_cost
from core.records import Case, Judgement, Span, Statement, Verdict
from core.roles import Agent, CaseView, JudgeView, Roster, WordScorer
from core.spans.marking import mark
from core.spans.rotation import lies_in_any

Part = TypeVar("Part")
AT_ONCE = 8
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


def segmented(play: Play, case: Case, known: frozenset[int]) -> Iterator[Event]:
    """The statements that are not known yet."""
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
    for statement in statements or ():
        if statement.index not in known:
            yield StatementFound(play.now(), statement)


def context_built(play: Play, view: CaseView) -> Iterator[Event]:
    """Agent C's part (CEDA 3.3), after what people should know of the material."""
    yield from (ProblemMet(play.now(), "searching", w) for w in play.roster.notices(view))
    writer, names = play.roster.context_writer, list(play.roster.debaters)
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


def debated(play: Play, view: CaseView, progress: Progress, max_turns: int) -> Iterator[Event]:
    """Agent C's part, and the debate as far as it is not there yet (CEDA 3.1)."""
    if progress.context is None:
        yield from context_built(play, view)
    if progress.context is None:
        raise ModelError("The run has no context after the stage that makes it.")
    yield from run_debate(
        view,
        progress.context,
        play.roster.debaters,
        max_turns=max_turns,
        stop=play.stop,
        now=play.now,
        calls_made=play.roster.calls_made,
        past=tuple(progress.turns),
        is_consensus_told=progress.reached_consensus,
    )


def judged(play: Play, seen: JudgeView) -> Iterator[Event]:
    """The judge's part; nobody stands in for it: an unusable reply is no verdict."""
    began = play.now()
    judge = play.roster.judge
    try:
        judgement = judge.decide(seen, play.stop)
    except ReplyError as error:
        calls = calls_of(play)
        yield from calls
        why = why_unusable(judge, "Judge", error)
        words = f"{why} So there is no verdict."
        yield ProblemMet(play.now(), "judging", words, reply=error.reply)
        judgement = Judgement(
            agent=judge.name,
            label="unclear",
            text=UNREADABLE,
            cause="unreadable_reply",
            cause_words=words,
        )
    else:
        calls = calls_of(play)
        yield from calls
    cost = total_cost(event.call for event in calls)
    yield from notes_of(play, "judging")
    yield JudgementReached(play.now(), judgement, play.now() - began, cost)


def marked(
    play: Play,
    seen: JudgeView,
    judgement: Judgement,
    verdict: Verdict,
    ruled: frozenset[tuple[int, int]],
    *,
    are_words_scored: bool = False,
    aside: Sequence[Statement] = (),
) -> Iterator[Event]:
    """Words scored, spans proposed and ruled upon; the verdict stands even where this fails.

    Nothing is marked in statements that are put `aside`: they say nothing that could be wrong,
    or an audit holds them to be right.
    """
    try:
        if len(play.roster.span_panel) > 1:
            yield from _by_panel(play, seen, judgement, verdict, aside)
        else:
            yield from _by_two(play, seen, judgement, verdict, ruled, aside, are_words_scored)
    except ModelError as error:
        message = f"The wrong words could not all be marked: {error}"
        yield ProblemMet(play.now(), "marking", message)
    yield from calls_of(play)
    yield from notes_of(play, "marking")


def _by_two(
    play: Play,
    seen: JudgeView,
    judgement: Judgement,
    verdict: Verdict,
    ruled: frozenset[tuple[int, int]],
    aside: Sequence[Statement],
    are_words_scored: bool,
) -> Iterator[Event]:
    """The extractor proposes, the adjudicator rules on each span."""
    extractor = play.roster.span_extractor
    if isinstance(extractor, WordScorer) and not are_words_scored:
        yield from _scored(play, extractor, seen.view)
    found, told = part_played(
        play,
        extractor,
        "marking",
        lambda: extractor.propose(seen, judgement, play.stop),
        lambda spare: spare.span_extractor.propose(seen, judgement, play.stop),
        role="Span extractor",
    )
    yield from told
    waiting = [
        span
        for span in found or ()
        if (span.start, span.end) not in ruled and not lies_in_any(span, aside)
    ]
    for span in waiting:
        yield SpanProposed(play.now(), span)
    yield from merged([_ruling(play, seen, span, verdict) for span in waiting], workers=AT_ONCE)


def _by_panel(
    play: Play,
    seen: JudgeView,
    judgement: Judgement,
    verdict: Verdict,
    aside: Sequence[Statement],
) -> Iterator[Event]:
    """Words marked and voted on by all members; nobody marks what the judge calls supported."""
    if judgement.label == "supported":
        return
    roster = play.roster
    rule, panel = roster.panel_rule, roster.span_panel
    for event in mark(panel, rule, seen.view, verdict.label, play.stop, play.now, aside=aside):
        yield from calls_of(play)
        yield event


def _scored(play: Play, scorer: WordScorer, view: CaseView) -> Iterator[Event]:
    """Every word's score, also under a verdict that marks none of them."""
    play.stop.check()
    scores = scorer.score_words(view, play.stop)
    if scores:
        yield WordsScored(play.now(), scorer.name, scores, scorer.threshold(view.case.language))


def _ruling(
    play: Play, seen: JudgeView, span: Span, verdict: Verdict
) -> Callable[[], Iterator[Event]]:
    adjudicator = play.roster.span_adjudicator

    def events() -> Iterator[Event]:
        ruling, told = part_played(
            play,
            adjudicator,
            "marking",
            lambda: adjudicator.adjudicate(seen, span, verdict.label, play.stop),
            lambda spare: spare.span_adjudicator.adjudicate(seen, span, verdict.label, play.stop),
            role="Span adjudicator",
        )
        yield from told
        if ruling is not None:
            yield SpanAdjudicated(play.now(), ruling.span, ruling.kept, ruling.reason)

    return events


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
