"""The runs of a panel as a trace tells them: who marked what, and who voted what on it."""

from __future__ import annotations

from core.baseline.span_reader import between
from core.progress import Progress
from core.spans.voting import VotedRun, VotedSpan


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
