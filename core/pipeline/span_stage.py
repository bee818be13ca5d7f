"""Mark the words that are wrong: by extractor and adjudicator, or by a panel (MSA 3.2, 3.3).

In a panel each member extracts once and all others vote, on all its spans in one call: n members
make at most n² calls, in two sequential steps. In one run p of a span is the mean over the
adjudicators that answered; over the runs the mean of each character is its soft label, and words
are wrong where most of the runs give them p of the threshold or more (0.7 in the paper). If a rule
has weights, the weighted sum of the votes decides; if it names one member, that run alone does
(table 5).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from core.agents.agent_runner import RunContext, drain_calls, drain_notes, play_role
from core.baseline.span_panel import make_scored_span
from core.baseline.span_reader import ScoredRun, fill_gaps
from core.runtime.concurrency import StopSignal, merge_streams
from core.runtime.errors import ModelError, ReplyError, ReviewError, Stopped
from core.schema.events import (
    Event,
    ProblemMet,
    SoftLabel,
    SoftLabelled,
    SpanAdjudicated,
    SpanProposed,
    SpanRuling,
    SpanVote,
    SpanVoted,
    WordsScored,
)
from core.schema.records import (
    Judgement,
    Label,
    PanelRule,
    Span,
    Statement,
    Verdict,
    WordScore,
    get_base_language,
)
from core.schema.roles import CaseView, JudgeView, SpanPanelist, WordScorer
from core.schema.run_state import RunState

DEFAULT_VOTE_THRESHOLD = 0.7
SOFT_LABEL_DIGITS = 4
CONCURRENT_RULINGS = 8  # concurrent rulings
NO_VOTE = "It gave no vote."
SpanOffsets = tuple[int, int]  # [start, end) in the response


@dataclass(frozen=True)
class VotedSpan:
    """A span with its votes; `votes` are (adjudicator, p) of those that gave one."""

    span: Span
    votes: tuple[tuple[str, float], ...] = ()

    @property
    def p(self) -> float | None:
        """The mean of the votes; None if nobody voted."""
        return sum(p for _, p in self.votes) / len(self.votes) if self.votes else None


@dataclass(frozen=True)
class VotedRun:
    """One member's spans, with the votes of all others.

    `scores` are the member's scores of all words and of the spaces between, if it scores words.
    """

    extractor: str
    spans: tuple[VotedSpan, ...]
    scores: tuple[WordScore, ...] = ()

    def over(self, place: int) -> list[VotedSpan]:
        """Return the spans that cover a character."""
        return [s for s in self.spans if s.span.start <= place < s.span.end]

    def own(self, place: int) -> float:
        """Return the member's own p of a character: its word's score, else its surest span's."""
        if not self.scores:
            return max((s.span.p for s in self.over(place)), default=0.0)
        last = bisect_right(self.scores, place, key=lambda score: score.start) - 1
        is_scored = last >= 0 and place < self.scores[last].end
        return self.scores[last].p if is_scored else 0.0

    def by(self, adjudicator: str, place: int) -> float:
        """Return the p that a member gives a character of this run; the mean if it did not vote."""
        if adjudicator == self.extractor:
            return self.own(place)
        votes = [dict(s.votes).get(adjudicator, s.p) for s in self.over(place)]
        return max((p for p in votes if p is not None), default=0.0)


def compute_soft_labels(
    runs: Sequence[VotedRun], weights: Sequence[tuple[str, str, float]] = ()
) -> tuple[SoftLabel, ...]:
    """Return the stretches that any run marks, in order; offsets are in the response.

    A run that marked a stretch on which nobody voted does not count for its p. `level` is the
    highest threshold at which most of all runs, including that one, would mark the stretch: a
    missing vote makes no majority. With weights, both are the weighted sum of the votes, clipped to
    [0, 1].
    """
    places = [(s.span.start, s.span.end) for run in runs for s in run.spans]
    if weights:
        places += [(score.start, score.end) for run in runs for score in run.scores]
    by_name = {run.extractor: run for run in runs}
    labels = []
    for start, end in pairwise(sorted({cut for part in places for cut in part})):
        spans_over = [run.over(start) for run in runs]
        if weights:
            votes = (
                w * by_name[extractor].by(adjudicator, start)
                for extractor, adjudicator, w in weights
                if extractor in by_name
            )
            p = level = min(1.0, max(0.0, sum(votes)))
        else:
            p, level = _combine_equally(spans_over)
        if p > 0 or any(spans_over):
            labels.append(
                SoftLabel(start, end, round(p, SOFT_LABEL_DIGITS), round(level, SOFT_LABEL_DIGITS))
            )
    return tuple(labels)


def _combine_equally(spans_by_run: Sequence[Sequence[VotedSpan]]) -> tuple[float, float]:
    """Return the mean over the runs, and the highest threshold at which most runs mark them."""
    known_ps = [[s.p for s in spans if s.p is not None] for spans in spans_by_run]
    run_ps = [
        max(ps, default=0.0)
        for ps, spans in zip(known_ps, spans_by_run, strict=True)
        if ps or not spans
    ]
    ranked = sorted((max(ps, default=0.0) for ps in known_ps), reverse=True)
    return (sum(run_ps) / len(run_ps) if run_ps else 0.0), ranked[len(ranked) // 2]


def find_hard_spans(
    labels: Sequence[SoftLabel], threshold: float, response: str
) -> tuple[tuple[int, int], ...]:
    """Return the stretches whose level reaches the threshold, merged and without outer spaces."""
    stretches: list[tuple[int, int]] = []
    for label in labels:
        if label.level >= threshold:
            start = label.start
            if stretches and stretches[-1][1] == start:
                start = stretches.pop()[0]
            stretches.append((start, label.end))
    places = []
    for start, end in stretches:
        text = response[start:end]
        if text.strip():
            places.append((end - len(text.lstrip()), start + len(text.rstrip())))
    return tuple(places)


def name_members(panel: Sequence[SpanPanelist]) -> tuple[str, ...]:
    """Return each member's name, with a number if an earlier member has the same name."""
    names: list[str] = []
    for member in panel:
        times = sum(other.name == member.name for other in panel[: len(names)])
        names.append(f"{member.name} ({times + 1})" if times else member.name)
    return tuple(names)


def is_in_any_statement(span: Span | WordScore, statements: Sequence[Statement]) -> bool:
    """Return True for a span or word within one of the statements."""
    return any(s.start <= span.start and span.end <= s.end for s in statements)


def rotate_panel(
    panel: Sequence[SpanPanelist],
    view: CaseView,
    stop: StopSignal,
    now: Callable[[], float],
    *,
    aside: Sequence[Statement] = (),
) -> Generator[Event, None, tuple[VotedRun, ...]]:
    """Yield the events of all runs as they come; return the runs of the members that could extract.

    A member that fails is left out, and a problem says so. Spans in statements put `aside` are
    dropped.
    """
    names = name_members(panel)
    members = [_MemberRun(i, panel, names, view, stop, now, aside) for i in range(len(panel))]
    yield from merge_streams([member.events for member in members], workers=len(panel))
    return tuple(member.run for member in members if member.has_spoken)


@dataclass
class _MemberRun:
    """One member extracts, all others vote; `votes` are by the span's index and adjudicator."""

    number: int
    panel: Sequence[SpanPanelist]
    names: Sequence[str]
    view: CaseView
    stop: StopSignal
    now: Callable[[], float]
    aside: Sequence[Statement] = ()
    has_spoken: bool = False
    spans: tuple[Span, ...] = ()
    scores: tuple[WordScore, ...] = ()
    votes: dict[tuple[int, int], SpanVote] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.names[self.number]

    @property
    def voters(self) -> list[int]:
        return [i for i in range(len(self.panel)) if i != self.number]

    @property
    def run(self) -> VotedRun:
        voted_spans = []
        for place, span in enumerate(self.spans):
            cast_votes = ((i, self.votes.get((place, i))) for i in self.voters)
            votes = tuple((self.names[i], v.p) for i, v in cast_votes if v and v.p is not None)
            voted_spans.append(VotedSpan(span, votes))
        return VotedRun(self.name, tuple(voted_spans), fill_gaps(self.scores))

    def events(self) -> Iterator[Event]:
        self.stop.check()
        member = self.panel[self.number]
        try:
            if isinstance(member, WordScorer):
                self.scores = tuple(
                    replace(word, p=0.0) if is_in_any_statement(word, self.aside) else word
                    for word in member.score_words(self.view, self.stop)
                )
            spans = member.extract(self.view, self.stop)
        except Stopped:
            raise
        except ReviewError as error:
            yield self._make_problem(self.name, "marked nothing", error)
            return
        self.has_spoken = True
        remaining = (span for span in spans if not is_in_any_statement(span, self.aside))
        self.spans = tuple(replace(span, source=self.name) for span in remaining)
        if isinstance(member, WordScorer) and self.scores:
            threshold = member.threshold(self.view.case.language)
            yield WordsScored(self.now(), self.name, self.scores, threshold)
        for span in self.spans:
            yield SpanProposed(self.now(), span)
        if self.spans:
            streams = [partial(self._collect_votes, voter) for voter in self.voters]
            yield from merge_streams(streams, workers=len(streams))

    def _collect_votes(self, voter: int) -> Iterator[Event]:
        self.stop.check()
        name = self.names[voter]
        try:
            votes = self.panel[voter].vote(self.view, self.spans, self.stop)
        except Stopped:
            raise
        except ReviewError as error:
            yield self._make_problem(name, "did not vote", error)
            votes = (SpanVote(None, NO_VOTE),) * len(self.spans)
        for place, (span, vote) in enumerate(zip(self.spans, votes, strict=True)):
            self.votes[place, voter] = vote
            yield SpanVoted(self.now(), self.name, name, span, vote.p, vote.reason)

    def _make_problem(self, name: str, failure: str, error: ReviewError) -> Event:
        reply = error.reply if isinstance(error, ReplyError) else ""
        words = f"{name} {failure} and is left out of the count: {error}"
        return ProblemMet(self.now(), "marking", words, reply=reply)


@dataclass(frozen=True)
class PanelTally:
    """All runs of a panel over one response, the soft labels, and the threshold."""

    response: str
    runs: tuple[VotedRun, ...]
    used: tuple[VotedRun, ...]
    labels: tuple[SoftLabel, ...]
    threshold: float
    is_weighted: bool = False

    @property
    def alone(self) -> str:
        """The member whose run alone decided; empty if all did."""
        return self.used[0].extractor if len(self.used) < len(self.runs) else ""


def tally_votes(
    runs: Sequence[VotedRun], rule: PanelRule, response: str, language: str
) -> PanelTally:
    """Count the votes; a member that the rule names for the language decides alone."""
    language_base = get_base_language(language)
    alone = dict(rule.alone).get(language_base, "")
    deciding_runs = tuple(run for run in runs if run.extractor == alone) or tuple(runs)
    weights = rule.weights if len(deciding_runs) == len(runs) else ()
    learned_level = rule.levels.at(language_base)
    threshold = DEFAULT_VOTE_THRESHOLD if learned_level is None else learned_level
    return PanelTally(
        response,
        tuple(runs),
        deciding_runs,
        compute_soft_labels(deciding_runs, weights),
        threshold,
        bool(weights),
    )


def rule_on_spans(found: PanelTally, label: Label) -> Iterator[SpanRuling]:
    """Yield the wrong words (kept only if hallucinated), then the spans without any of them."""
    hard = find_hard_spans(found.labels, found.threshold, found.response)
    for place in hard:
        is_kept = label == "hallucinated"
        reason = _explain_kept(found, place) if is_kept else f"The verdict is {label}."
        yield SpanRuling(_merge_span(found, place), is_kept, reason)
    seen_places: set[tuple[int, int]] = set()
    for run in found.runs:
        for voted in run.spans:
            place = (voted.span.start, voted.span.end)
            if place not in seen_places and not any(_count_shared(place, other) for other in hard):
                seen_places.add(place)
                p = round(voted.span.p if voted.p is None else voted.p, 3)
                span = replace(voted.span, p=p, source=", ".join(_find_markers(found, place)))
                yield SpanRuling(span, False, _explain_dropped(found, voted))


def _merge_span(tally: PanelTally, place: SpanOffsets) -> Span:
    """Return the span of that place, described as in the run that marked most of it.

    Words whose scores alone reach the threshold of the weighted votes are marked by no run.
    """
    start, end = place
    overlaps = [(_count_shared(_get_place(s), place), s) for run in tally.used for s in run.spans]
    marking = [overlap for overlap in overlaps if overlap[0]]
    shares = (_count_shared((part.start, part.end), place) * part.p for part in tally.labels)
    p = round(sum(shares) / (end - start), 3)
    if not marking:
        scorers = ", ".join(run.extractor for run in tally.used if run.scores)
        return replace(make_scored_span(ScoredRun(start, end, p), tally.response), source=scorers)
    _, best = max(marking, key=lambda overlap: (overlap[0], overlap[1].p or 0.0))
    source, text = ", ".join(_find_markers(tally, place)), tally.response[start:end]
    return replace(best.span, start=start, end=end, text=text, p=p, source=source)


def _explain_kept(tally: PanelTally, place: SpanOffsets) -> str:
    levels = (p.level for p in tally.labels if _count_shared((p.start, p.end), place))
    level = min(levels)
    if tally.is_weighted:
        return f"The weighted votes come to {level:.2f}, kept from {tally.threshold:.2f}."
    if tally.alone:
        return f"{tally.alone} decides here: {level:.2f} by the others, from {tally.threshold:.2f}."
    count = f"more than half of {len(tally.used)} runs"
    return f"Marked by {count} with p of {level:.2f} or more, kept from {tally.threshold:.2f}."


def _explain_dropped(tally: PanelTally, voted: VotedSpan) -> str:
    if voted.p is None:
        return "Nobody could vote on it: it stays proposed and is not kept."
    if tally.is_weighted:
        return f"The weighted votes stay below {tally.threshold:.2f}."
    if voted.p < tally.threshold:
        return f"The votes come to {voted.p:.2f}, below {tally.threshold:.2f}."
    if tally.alone:
        return f"{tally.alone} decides here and does not mark it."
    times = len(_find_markers(tally, (voted.span.start, voted.span.end)))
    return f"Marked in {times} of {len(tally.used)} runs; more than half would have to."


def _find_markers(tally: PanelTally, place: SpanOffsets) -> list[str]:
    return [
        run.extractor
        for run in tally.runs
        if any(_count_shared(_get_place(span), place) for span in run.spans)
    ]


def _count_shared(one: SpanOffsets, other: SpanOffsets) -> int:
    """Return how many characters the two have in common."""
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def _get_place(voted: VotedSpan) -> SpanOffsets:
    return voted.span.start, voted.span.end


def rebuild_voted_runs(run: RunState) -> tuple[VotedRun, ...]:
    """Return the runs that a finished panel's votes were counted over; empty without a panel."""
    if run.soft is None:
        return ()
    voted_runs = []
    for name in run.soft.runs:
        spans = []
        for span in (span for span in run.proposed if span.source == name):
            cast_votes = [v for v in run.votes if v.extractor == name and v.span == span]
            votes = tuple((v.adjudicator, v.p) for v in cast_votes if v.p is not None)
            spans.append(VotedSpan(span, votes))
        scored = run.words
        scores = fill_gaps(scored.scores) if scored is not None and scored.agent == name else ()
        voted_runs.append(VotedRun(name, tuple(spans), scores))
    return tuple(voted_runs)


def mark_spans(
    play: RunContext,
    seen: JudgeView,
    judgement: Judgement,
    verdict: Verdict,
    progress: RunState,
    *,
    aside: Sequence[Statement] = (),
) -> Iterator[Event]:
    """Score words, propose spans and rule on them; the verdict stands even if this fails.

    Nothing is marked in statements that are put `aside`: they say nothing that could be wrong, or
    an audit found them right.
    """
    try:
        if len(play.roster.span_panel) > 1:
            yield from _mark_by_panel(play, seen, judgement, verdict, aside)
        else:
            yield from _mark_by_two(play, seen, judgement, verdict, progress, aside)
    except ModelError as error:
        message = f"The wrong words could not all be marked: {error}"
        yield ProblemMet(play.now(), "marking", message)
    yield from drain_calls(play)
    yield from drain_notes(play, "marking")


def _mark_by_panel(
    play: RunContext,
    seen: JudgeView,
    judgement: Judgement,
    verdict: Verdict,
    aside: Sequence[Statement],
) -> Iterator[Event]:
    """Let all members mark and vote on words, unless the judge calls the response supported."""
    if judgement.label == "supported":
        return
    roster, case, now = play.roster, seen.case_view.case, play.now

    def vote_and_rule() -> Iterator[Event]:
        runs = yield from rotate_panel(
            roster.span_panel, seen.case_view, play.stop, now, aside=aside
        )
        result = tally_votes(runs, roster.panel_rule, case.response, case.language)
        names = tuple(run.extractor for run in runs)
        yield SoftLabelled(now(), result.labels, result.threshold, names, result.alone)
        for ruling in rule_on_spans(result, verdict.label):
            yield SpanAdjudicated(now(), ruling.span, ruling.kept, ruling.reason)

    for event in vote_and_rule():
        yield from drain_calls(play)
        yield event


def _mark_by_two(
    play: RunContext,
    seen: JudgeView,
    judgement: Judgement,
    verdict: Verdict,
    progress: RunState,
    aside: Sequence[Statement],
) -> Iterator[Event]:
    """Let the extractor propose and the adjudicator rule on each span; always score words."""
    extractor = play.roster.span_extractor
    if isinstance(extractor, WordScorer) and progress.words is None:
        play.stop.check()
        if scores := extractor.score_words(seen.case_view, play.stop):
            threshold = extractor.threshold(seen.case_view.case.language)
            yield WordsScored(play.now(), extractor.name, scores, threshold)
    proposed, events = play_role(
        play,
        extractor,
        "marking",
        lambda: extractor.propose(seen, judgement, play.stop),
        lambda spare: spare.span_extractor.propose(seen, judgement, play.stop),
        role="Span extractor",
    )
    yield from events
    ruled = {(ruling.span.start, ruling.span.end) for ruling in progress.rulings}
    remaining = [span for span in proposed or () if not is_in_any_statement(span, aside)]
    waiting = [span for span in remaining if (span.start, span.end) not in ruled]
    for span in waiting:
        yield SpanProposed(play.now(), span)
    streams = [partial(_rule_on_span, play, seen, span, verdict) for span in waiting]
    yield from merge_streams(streams, workers=CONCURRENT_RULINGS)


def _rule_on_span(
    play: RunContext, seen: JudgeView, span: Span, verdict: Verdict
) -> Iterator[Event]:
    adjudicator = play.roster.span_adjudicator
    ruling, events = play_role(
        play,
        adjudicator,
        "marking",
        lambda: adjudicator.adjudicate(seen, span, verdict.label, play.stop),
        lambda spare: spare.span_adjudicator.adjudicate(seen, span, verdict.label, play.stop),
        role="Span adjudicator",
    )
    yield from events
    if ruling is not None:
        yield SpanAdjudicated(play.now(), ruling.span, ruling.kept, ruling.reason)
