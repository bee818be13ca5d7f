"""What the votes of a panel come to: soft labels over characters, and the words that are wrong.

In one run p of a span is the mean over the adjudicators that answered; whoever failed or gave no
vote is absent from it. Over the runs the mean of each character is its soft label, and words are
wrong where most of the runs give them p of the threshold or more (MSA 3.3, consensus-based
labelling; 0.7 is the paper's). Where a rule has weights, the weighted sum of the votes is the soft
label and decides by itself; where it names one member, that member's run alone does (table 5).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.learned_marks import PanelRule
from core.records import Span, WordScore
from core.voted import SoftLabel

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

    def vote_of(self, adjudicator: str) -> float | None:
        """That adjudicator's p; who is absent counts as the others do."""
        return dict(self.votes).get(adjudicator, self.p)


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
        """What that member gives a character of this run; 0 where nothing is marked."""
        if adjudicator == self.extractor:
            return self.own(place)
        given = [s.vote_of(adjudicator) for s in self.over(place)]
        return max((p for p in given if p is not None), default=0.0)


def counted(runs: Sequence[VotedRun], rule: PanelRule, language: str) -> tuple[VotedRun, ...]:
    """The runs that decide: that of the member named for the language if it spoke, else all."""
    named = dict(rule.alone).get(language, "")
    return tuple(run for run in runs if run.extractor == named) or tuple(runs)


def soft_labels(
    runs: Sequence[VotedRun], weights: Sequence[tuple[str, str, float]] = ()
) -> tuple[SoftLabel, ...]:
    """The stretches that any run marks, in order; their offsets are in the response.

    A run that marked a stretch on which nobody voted says nothing of it. `level` is where most of
    all runs, that one included, would mark the stretch: silence makes no majority.
    """
    parts = [(s.span.start, s.span.end) for run in runs for s in run.spans]
    if weights:
        parts += [(score.start, score.end) for run in runs for score in run.scores]
    cuts = sorted({cut for part in parts for cut in part})
    labels = []
    for start, end in pairwise(cuts):
        if weights:
            p, level = _weighted(runs, start, weights)
        else:
            p, level = _alike([run.over(start) for run in runs])
        if p > 0 or any(run.over(start) for run in runs):
            labels.append(SoftLabel(start, end, round(p, DIGITS), round(level, DIGITS)))
    return tuple(labels)


def _alike(over: Sequence[Sequence[VotedSpan]]) -> tuple[float, float]:
    """The mean over the runs, and the highest threshold at which more than half of them mark it."""
    given = [[s.p for s in spans if s.p is not None] for spans in over]
    said = [max(ps, default=0.0) for ps, spans in zip(given, over, strict=True) if ps or not spans]
    ranked = sorted((max(ps, default=0.0) for ps in given), reverse=True)
    return (sum(said) / len(said) if said else 0.0), ranked[len(ranked) // 2]


def _weighted(
    runs: Sequence[VotedRun], place: int, weights: Sequence[tuple[str, str, float]]
) -> tuple[float, float]:
    """The weighted sum of the votes, within 0 and 1, which is its own level."""
    by_name = {run.extractor: run for run in runs}
    total = sum(
        weight * by_name[extractor].by(adjudicator, place)
        for extractor, adjudicator, weight in weights
        if extractor in by_name
    )
    p = min(1.0, max(0.0, total))
    return p, p


def hard_places(
    labels: Sequence[SoftLabel], threshold: float, response: str
) -> tuple[tuple[int, int], ...]:
    """Stretches whose level is the threshold or more, neighbours as one, without outer blanks."""
    whole: list[tuple[int, int]] = []
    for label in labels:
        if label.level < threshold:
            continue
        if whole and whole[-1][1] == label.start:
            whole[-1] = (whole[-1][0], label.end)
        else:
            whole.append((label.start, label.end))
    stripped = (_without_blanks(start, end, response) for start, end in whole)
    return tuple((start, end) for start, end in stripped if start < end)


def _without_blanks(start: int, end: int, response: str) -> tuple[int, int]:
    text = response[start:end]
    return end - len(text.lstrip()), start + len(text.rstrip())
