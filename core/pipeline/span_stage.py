"""Marks the words that do not hold: by extractor and adjudicator, or by a panel (MSA 3.2, 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from core.agents.agent_runner import RunContext, calls_of, notes_of, part_played
from core.baseline.span_reader import between
from core.concurrency import Stop, merged
from core.errors import ModelError
from core.events import (
    Event,
    ProblemMet,
    SoftLabel,
    SoftLabelled,
    SpanAdjudicated,
    SpanProposed,
    SpanRuling,
    WordsScored,
)
from core.pipeline.span_voting import (
    KEPT_FROM,
    VotedRun,
    VotedSpan,
    counted,
    hard_places,
    lies_in_any,
    rotate,
    soft_labels,
)
from core.progress import Progress
from core.records import Judgement, Label, PanelRule, Span, Statement, Verdict, base_of
from core.roles import CaseView, JudgeView, SpanPanelist, WordScorer


@dataclass(frozen=True)
class Tally:
    """All runs of a panel over one response, the soft labels, and the threshold."""

    response: str
    runs: tuple[VotedRun, ...]
    used: tuple[VotedRun, ...]
    labels: tuple[SoftLabel, ...]
    threshold: float
    is_weighted: bool = False

    @property
    def alone(self) -> str:
        """The member whose run alone decided; empty where all did."""
        return self.used[0].extractor if len(self.used) < len(self.runs) else ""


def tally(runs: Sequence[VotedRun], rule: PanelRule, response: str, language: str) -> Tally:
    """What the votes come to under the rule for a text in that language."""
    base = base_of(language)
    used = counted(runs, rule, base)
    weights = rule.weights if len(used) == len(runs) else ()
    learned = rule.levels.at(base)
    threshold = KEPT_FROM if learned is None else learned
    labels = soft_labels(used, weights)
    return Tally(response, tuple(runs), used, labels, threshold, bool(weights))


def mark(
    panel: Sequence[SpanPanelist],
    rule: PanelRule,
    view: CaseView,
    label: Label,
    stop: Stop,
    now: Callable[[], float],
    *,
    aside: Sequence[Statement] = (),
) -> Iterator[Event]:
    """The events of a panel's work under a verdict; only under hallucinated are words kept.

    Nothing is marked in statements that are put `aside`.
    """
    runs = yield from rotate(panel, view, stop, now, aside=aside)
    found = tally(runs, rule, view.case.response, view.case.language)
    names = tuple(run.extractor for run in found.runs)
    yield SoftLabelled(now(), found.labels, found.threshold, names, found.alone)
    for ruling in rulings(found, label):
        yield SpanAdjudicated(now(), ruling.span, ruling.kept, ruling.reason)


def rulings(found: Tally, label: Label) -> Iterator[SpanRuling]:
    """The words that are wrong, and every marked place that has none of them, with the reason."""
    hard = hard_places(found.labels, found.threshold, found.response)
    for place in hard:
        ruling = SpanRuling(_kept(found, place), True, _why_kept(found, place))
        if label != "hallucinated":
            ruling = replace(ruling, kept=False, reason=f"The verdict is {label}.")
        yield ruling
    told: set[tuple[int, int]] = set()
    for run in found.runs:
        for voted in run.spans:
            place = (voted.span.start, voted.span.end)
            if place not in told and not any(_meet(place, other) for other in hard):
                told.add(place)
                p = round(voted.span.p if voted.p is None else voted.p, 3)
                span = replace(voted.span, p=p, source=", ".join(_markers(found, place)))
                yield SpanRuling(span, False, _why_dropped(found, voted))


def _kept(found: Tally, place: tuple[int, int]) -> Span:
    """The words of that place, with what the run says of them that marked most of it."""
    start, end = place
    voted = [s for run in found.used for s in run.spans if _shared(s, place)]
    best = max(voted, key=lambda s: (_shared(s, place), s.p or 0.0))
    p = sum(_length(label, place) * label.p for label in found.labels) / (end - start)
    source = ", ".join(_markers(found, place))
    text = found.response[start:end]
    return replace(best.span, start=start, end=end, text=text, p=round(p, 3), source=source)


def _why_kept(found: Tally, place: tuple[int, int]) -> str:
    level = min(label.level for label in found.labels if _length(label, place))
    if found.is_weighted:
        return f"The weighted votes come to {level:.2f}, kept from {found.threshold:.2f}."
    if found.alone:
        return f"{found.alone} decides here: {level:.2f} by the others, from {found.threshold:.2f}."
    count = f"more than half of {len(found.used)} runs"
    return f"Marked by {count} with p of {level:.2f} or more, kept from {found.threshold:.2f}."


def _why_dropped(found: Tally, voted: VotedSpan) -> str:
    if voted.p is None:
        return "Nobody could vote on it: it stays proposed and is not kept."
    if found.is_weighted:
        return f"The weighted votes stay below {found.threshold:.2f}."
    if voted.p < found.threshold:
        return f"The votes come to {voted.p:.2f}, below {found.threshold:.2f}."
    if found.alone:
        return f"{found.alone} decides here and does not mark it."
    times = len(_markers(found, (voted.span.start, voted.span.end)))
    return f"Marked in {times} of {len(found.used)} runs; more than half would have to."


def _markers(found: Tally, place: tuple[int, int]) -> list[str]:
    runs = found.runs
    return [run.extractor for run in runs if any(_shared(s, place) for s in run.spans)]


def _shared(voted: VotedSpan, place: tuple[int, int]) -> int:
    """How many characters of the place the span has."""
    return max(0, min(voted.span.end, place[1]) - max(voted.span.start, place[0]))


def _length(label: SoftLabel, place: tuple[int, int]) -> int:
    return max(0, min(label.end, place[1]) - max(label.start, place[0]))


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def runs_of(run: Progress) -> tuple[VotedRun, ...]:
    """The runs that a finished panel's votes were counted over; none where no panel marked."""
    if run.soft is None:
        return ()
    found = []
    for name in run.soft.runs:
        spans = []
        for span in (span for span in run.proposed if span.source == name):
            given = [v for v in run.votes if v.extractor == name and v.span == span]
            votes = tuple((v.adjudicator, v.p) for v in given if v.p is not None)
            spans.append(VotedSpan(span, votes))
        words = run.words
        scores = between(words.scores) if words is not None and words.agent == name else ()
        found.append(VotedRun(name, tuple(spans), scores))
    return tuple(found)


AT_ONCE = 8


def marked(
    play: RunContext,
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
    play: RunContext,
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
    play: RunContext,
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


def _scored(play: RunContext, scorer: WordScorer, view: CaseView) -> Iterator[Event]:
    """Every word's score, also under a verdict that marks none of them."""
    play.stop.check()
    scores = scorer.score_words(view, play.stop)
    if scores:
        yield WordsScored(play.now(), scorer.name, scores, scorer.threshold(view.case.language))


def _ruling(
    play: RunContext, seen: JudgeView, span: Span, verdict: Verdict
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
