"""Who extracts and who adjudicates: each member of a panel marks words once, all others vote.

Of n members each is extractor once; the n - 1 others vote on each of its spans, so that a span has
at most n - 1 votes (MSA 3.3, iterative model rotation; four runs there). Calls of a round of n
language models: n extractions, and for every extractor that marked anything one adjudication by
each other member, `n + m * (n - 1)` in all where m of the n marked something, n² at most. All
spans of an extractor go to an adjudicator in one call: each still has a vote of its own, and the
response and the evidence are paid for once instead of once a span. Extractions go out at once, an
extractor's adjudications as soon as it has spoken: the longest chain is two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from core.baseline.span_reader import between
from core.concurrency import Stop, merged
from core.errors import ReplyError, ReviewError, Stopped
from core.events import Event, ProblemMet, SpanProposed, SpanVoted, WordsScored
from core.records import Span, Statement, WordScore
from core.roles import CaseView, SpanPanelist, WordScorer
from core.spans.voting import VotedRun, VotedSpan
from core.voted import SpanVote

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

    Whoever fails is absent, and said to be; the others go on. Spans in statements that are put
    `aside` are nobody's.

    Raises:
        Stopped: somebody stopped the run.
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
    def run(self) -> VotedRun:
        """The spans with the votes that were given, in the panel's order."""
        voters = [i for i in range(len(self.panel)) if i != self.number]
        found = []
        for place, span in enumerate(self.spans):
            given = ((i, self.votes.get((place, i))) for i in voters)
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
            voters = [i for i in range(len(self.panel)) if i != self.number]
            streams = [self._voting(i) for i in voters]
            yield from merged(streams, workers=len(streams))

    def _voting(self, voter: int) -> Callable[[], Iterator[Event]]:
        def events() -> Iterator[Event]:
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

        return events

    def _problem(self, name: str, what: str, error: ReviewError) -> Event:
        reply = error.reply if isinstance(error, ReplyError) else ""
        words = f"{name} {what} and is left out of the count: {error}"
        return ProblemMet(self.now(), "marking", words, reply=reply)
