"""Has the words that do not hold marked: by extractor and adjudicator, or by a panel of members.

Source: MSA 3.2, 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from core.acting import Play, calls_of, notes_of, part_played
from core.concurrency import merged
from core.errors import ModelError
from core.events import Event, ProblemMet, SpanAdjudicated, SpanProposed, WordsScored
from core.records import Judgement, Span, Statement, Verdict
from core.roles import CaseView, JudgeView, WordScorer
from core.spans.marking import mark
from core.spans.rotation import lies_in_any

AT_ONCE = 8


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
