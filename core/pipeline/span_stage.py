"""Marks the words that are wrong: by extractor and adjudicator, or by a panel (MSA 3.2, 3.3).

In a panel each member extracts once and all others vote, on all its spans in one call: n members
make n² calls at most, in a chain of two. In one run p of a span is the mean over the adjudicators
that answered; over the runs the mean of each character is its soft label, and words are wrong where
most of the runs give them p of the threshold or more (0.7 in the paper). Where a rule has weights,
the weighted sum of the votes decides; where it names one member, that run alone does (table 5).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

from core.agents.agent_runner import RunContext, calls_of, notes_of, part_played
from core.baseline.span_reader import between
from core.runtime.concurrency import Stop, merged
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
from core.schema.progress import Progress
from core.schema.records import (
    Judgement,
    Label,
    PanelRule,
    Span,
    Statement,
    Verdict,
    WordScore,
    base_of,
)
from core.schema.roles import CaseView, JudgeView, SpanPanelist, WordScorer

KEPT_FROM = 0.7
DIGITS = 4


@dataclass(frozen=True)
class VotedSpan:
    """A span with the votes on it; `votes` are (adjudicator, p) of those that gave one."""

    span: Span
    votes: tuple[tuple[str, float], ...] = ()

    @property
    def p(self) -> float | None:
        """The mean of the votes; None where nobody voted."""
        return sum(p for _, p in self.votes) / len(self.votes) if self.votes else None


@dataclass(frozen=True)
class VotedRun:
    """One member's spans, as all others voted on them.

    `scores` are what a member that scores every word says of them and of the blanks between.
    """

    extractor: str
    spans: tuple[VotedSpan, ...]
    scores: tuple[WordScore, ...] = ()

    def over(self, place: int) -> list[VotedSpan]:
        """The spans over a character."""
        return [s for s in self.spans if s.span.start <= place < s.span.end]

    def own(self, place: int) -> float:
        """The member's own p of a character: its word's score, else that of its surest span."""
        if not self.scores:
            return max((s.span.p for s in self.over(place)), default=0.0)
        last = bisect_right(self.scores, place, key=lambda score: score.start) - 1
        is_scored = last >= 0 and place < self.scores[last].end
        return self.scores[last].p if is_scored else 0.0

    def by(self, adjudicator: str, place: int) -> float:
        """What that member gives a character of this run; whoever is absent gives the mean."""
        if adjudicator == self.extractor:
            return self.own(place)
        given = [dict(s.votes).get(adjudicator, s.p) for s in self.over(place)]
        return max((p for p in given if p is not None), default=0.0)


def soft_labels(
    runs: Sequence[VotedRun], weights: Sequence[tuple[str, str, float]] = ()
) -> tuple[SoftLabel, ...]:
    """The stretches that any run marks, in order; their offsets are in the response.

    A run that marked a stretch on which nobody voted says nothing of it. `level` is where most of
    all runs, that one included, would mark the stretch: silence makes no majority. With weights it
    is their sum, within 0 and 1.
    """
    parts = [(s.span.start, s.span.end) for run in runs for s in run.spans]
    if weights:
        parts += [(score.start, score.end) for run in runs for score in run.scores]
    by_name = {run.extractor: run for run in runs}
    labels = []
    for start, end in pairwise(sorted({cut for part in parts for cut in part})):
        over = [run.over(start) for run in runs]
        if weights:
            votes = (
                w * by_name[own].by(other, start) for own, other, w in weights if own in by_name
            )
            p = level = min(1.0, max(0.0, sum(votes)))
        else:
            p, level = _alike(over)
        if p > 0 or any(over):
            labels.append(SoftLabel(start, end, round(p, DIGITS), round(level, DIGITS)))
    return tuple(labels)


def _alike(over: Sequence[Sequence[VotedSpan]]) -> tuple[float, float]:
    """The mean over the runs, and the highest threshold at which more than half of them mark it."""
    given = [[s.p for s in spans if s.p is not None] for spans in over]
    said = [max(ps, default=0.0) for ps, spans in zip(given, over, strict=True) if ps or not spans]
    ranked = sorted((max(ps, default=0.0) for ps in given), reverse=True)
    return (sum(said) / len(said) if said else 0.0), ranked[len(ranked) // 2]


def hard_places(
    labels: Sequence[SoftLabel], threshold: float, response: str
) -> tuple[tuple[int, int], ...]:
    """Stretches whose level is the threshold or more, neighbours as one, without outer blanks."""
    whole: list[tuple[int, int]] = []
    for label in labels:
        if label.level >= threshold:
            start = whole.pop()[0] if whole and whole[-1][1] == label.start else label.start
            whole.append((start, label.end))
    found = []
    for start, end in whole:
        text = response[start:end]
        if text.strip():
            found.append((end - len(text.lstrip()), start + len(text.rstrip())))
    return tuple(found)


NO_VOTE = "It gave no vote."


def named(panel: Sequence[SpanPanelist]) -> tuple[str, ...]:
    """Each member's name; who has the name of an earlier one has a number behind it."""
    names: list[str] = []
    for member in panel:
        times = sum(other.name == member.name for other in panel[: len(names)])
        names.append(f"{member.name} ({times + 1})" if times else member.name)
    return tuple(names)


def lies_in_any(span: Span, statements: Sequence[Statement]) -> bool:
    """True for a span within one of the statements."""
    return any(s.start <= span.start and span.end <= s.end for s in statements)


def rotate(
    panel: Sequence[SpanPanelist],
    view: CaseView,
    stop: Stop,
    now: Callable[[], float],
    *,
    aside: Sequence[Statement] = (),
) -> Generator[Event, None, tuple[VotedRun, ...]]:
    """The events of all runs as they come; then the runs of those members that could extract.

    Whoever fails is absent, and said to be. Spans in statements put `aside` are nobody's.
    """
    names = named(panel)
    rounds = [_Round(i, panel, names, view, stop, now, aside) for i in range(len(panel))]
    yield from merged([one.events for one in rounds], workers=len(panel))
    return tuple(one.run for one in rounds if one.has_spoken)


@dataclass
class _Round:
    """One member extracts, all others vote; `votes` are by span's place and adjudicator."""

    number: int
    panel: Sequence[SpanPanelist]
    names: Sequence[str]
    view: CaseView
    stop: Stop
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
        found = []
        for place, span in enumerate(self.spans):
            given = ((i, self.votes.get((place, i))) for i in self.voters)
            votes = tuple((self.names[i], v.p) for i, v in given if v and v.p is not None)
            found.append(VotedSpan(span, votes))
        return VotedRun(self.name, tuple(found), between(self.scores))

    def events(self) -> Iterator[Event]:
        self.stop.check()
        member = self.panel[self.number]
        try:
            if isinstance(member, WordScorer):
                self.scores = member.score_words(self.view, self.stop)
            spans = member.extract(self.view, self.stop)
        except Stopped:
            raise
        except ReviewError as error:
            yield self._problem(self.name, "marked nothing", error)
            return
        self.has_spoken = True
        open_ones = (span for span in spans if not lies_in_any(span, self.aside))
        self.spans = tuple(replace(span, source=self.name) for span in open_ones)
        if isinstance(member, WordScorer) and self.scores:
            threshold = member.threshold(self.view.case.language)
            yield WordsScored(self.now(), self.name, self.scores, threshold)
        for span in self.spans:
            yield SpanProposed(self.now(), span)
        if self.spans:
            streams = [partial(self._votes, voter) for voter in self.voters]
            yield from merged(streams, workers=len(streams))

    def _votes(self, voter: int) -> Iterator[Event]:
        self.stop.check()
        name = self.names[voter]
        try:
            votes = self.panel[voter].vote(self.view, self.spans, self.stop)
        except Stopped:
            raise
        except ReviewError as error:
            yield self._problem(name, "did not vote", error)
            votes = (SpanVote(None, NO_VOTE),) * len(self.spans)
        for place, (span, vote) in enumerate(zip(self.spans, votes, strict=True)):
            self.votes[place, voter] = vote
            yield SpanVoted(self.now(), self.name, name, span, vote.p, vote.reason)

    def _problem(self, name: str, what: str, error: ReviewError) -> Event:
        reply = error.reply if isinstance(error, ReplyError) else ""
        words = f"{name} {what} and is left out of the count: {error}"
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
        """The member whose run alone decided; empty where all did."""
        return self.used[0].extractor if len(self.used) < len(self.runs) else ""


def tally(runs: Sequence[VotedRun], rule: PanelRule, response: str, language: str) -> PanelTally:
    """What the votes come to; a member that the rule names for the language decides alone."""
    base = base_of(language)
    alone = dict(rule.alone).get(base, "")
    used = tuple(run for run in runs if run.extractor == alone) or tuple(runs)
    weights = rule.weights if len(used) == len(runs) else ()
    learned = rule.levels.at(base)
    threshold = KEPT_FROM if learned is None else learned
    return PanelTally(
        response, tuple(runs), used, soft_labels(used, weights), threshold, bool(weights)
    )


def rulings(found: PanelTally, label: Label) -> Iterator[SpanRuling]:
    """The words that are wrong (only under hallucinated kept), and marked places without any."""
    hard = hard_places(found.labels, found.threshold, found.response)
    for place in hard:
        is_kept = label == "hallucinated"
        why = _why_kept(found, place) if is_kept else f"The verdict is {label}."
        yield SpanRuling(_kept(found, place), is_kept, why)
    told: set[tuple[int, int]] = set()
    for run in found.runs:
        for voted in run.spans:
            place = (voted.span.start, voted.span.end)
            if place not in told and not any(_shared(place, other) for other in hard):
                told.add(place)
                p = round(voted.span.p if voted.p is None else voted.p, 3)
                span = replace(voted.span, p=p, source=", ".join(_markers(found, place)))
                yield SpanRuling(span, False, _why_dropped(found, voted))


Place = tuple[int, int]


def _kept(found: PanelTally, place: Place) -> Span:
    """The words of that place, with what the run says of them that marked most of it."""
    start, end = place
    voted = [(_shared(_place(s), place), s) for run in found.used for s in run.spans]
    _, best = max((one for one in voted if one[0]), key=lambda one: (one[0], one[1].p or 0.0))
    p = sum(_shared((part.start, part.end), place) * part.p for part in found.labels) / (
        end - start
    )
    source, text = ", ".join(_markers(found, place)), found.response[start:end]
    return replace(best.span, start=start, end=end, text=text, p=round(p, 3), source=source)


def _why_kept(found: PanelTally, place: Place) -> str:
    level = min(part.level for part in found.labels if _shared((part.start, part.end), place))
    if found.is_weighted:
        return f"The weighted votes come to {level:.2f}, kept from {found.threshold:.2f}."
    if found.alone:
        return f"{found.alone} decides here: {level:.2f} by the others, from {found.threshold:.2f}."
    count = f"more than half of {len(found.used)} runs"
    return f"Marked by {count} with p of {level:.2f} or more, kept from {found.threshold:.2f}."


def _why_dropped(found: PanelTally, voted: VotedSpan) -> str:
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


def _markers(found: PanelTally, place: Place) -> list[str]:
    runs = found.runs
    return [run.extractor for run in runs if any(_shared(_place(s), place) for s in run.spans)]


def _shared(one: Place, other: Place) -> int:
    """How many characters the two have in common."""
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def _place(voted: VotedSpan) -> Place:
    return voted.span.start, voted.span.end


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
    progress: Progress,
    *,
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
            yield from _by_two(play, seen, judgement, verdict, progress, aside)
    except ModelError as error:
        message = f"The wrong words could not all be marked: {error}"
        yield ProblemMet(play.now(), "marking", message)
    yield from calls_of(play)
    yield from notes_of(play, "marking")


def _by_panel(
    play: RunContext,
    seen: JudgeView,
    judgement: Judgement,
    verdict: Verdict,
    aside: Sequence[Statement],
) -> Iterator[Event]:
    """Words marked and voted on by all members; nobody marks what the judge calls supported."""
    panel, rule, case, now = (
        play.roster.span_panel,
        play.roster.panel_rule,
        seen.view.case,
        play.now,
    )

    def work() -> Iterator[Event]:
        runs = yield from rotate(panel, seen.view, play.stop, now, aside=aside)
        found = tally(runs, rule, case.response, case.language)
        names = tuple(run.extractor for run in runs)
        yield SoftLabelled(now(), found.labels, found.threshold, names, found.alone)
        for ruling in rulings(found, verdict.label):
            yield SpanAdjudicated(now(), ruling.span, ruling.kept, ruling.reason)

    for event in work() if judgement.label != "supported" else ():
        yield from calls_of(play)
        yield event


def _by_two(
    play: RunContext,
    seen: JudgeView,
    judgement: Judgement,
    verdict: Verdict,
    progress: Progress,
    aside: Sequence[Statement],
) -> Iterator[Event]:
    """The extractor proposes, the adjudicator rules on each span; words are scored in any case."""
    extractor = play.roster.span_extractor
    if isinstance(extractor, WordScorer) and progress.words is None:
        play.stop.check()
        if scores := extractor.score_words(seen.view, play.stop):
            threshold = extractor.threshold(seen.view.case.language)
            yield WordsScored(play.now(), extractor.name, scores, threshold)
    found, told = part_played(
        *(play, extractor, "marking"),
        lambda: extractor.propose(seen, judgement, play.stop),
        lambda spare: spare.span_extractor.propose(seen, judgement, play.stop),
        role="Span extractor",
    )
    yield from told
    ruled = {(ruling.span.start, ruling.span.end) for ruling in progress.rulings}
    open_ones = [span for span in found or () if not lies_in_any(span, aside)]
    waiting = [span for span in open_ones if (span.start, span.end) not in ruled]
    for span in waiting:
        yield SpanProposed(play.now(), span)
    streams = [partial(_ruling, play, seen, span, verdict) for span in waiting]
    yield from merged(streams, workers=AT_ONCE)


def _ruling(play: RunContext, seen: JudgeView, span: Span, verdict: Verdict) -> Iterator[Event]:
    adjudicator = play.roster.span_adjudicator
    ruling, told = part_played(
        *(play, adjudicator, "marking"),
        lambda: adjudicator.adjudicate(seen, span, verdict.label, play.stop),
        lambda spare: spare.span_adjudicator.adjudicate(seen, span, verdict.label, play.stop),
        role="Span adjudicator",
    )
    yield from told
    if ruling is not None:
        yield SpanAdjudicated(play.now(), ruling.span, ruling.kept, ruling.reason)
