"""What is decided about spans, and what the members of a panel say of each other's.

Offsets are half-open, count Unicode code points, and lie in `Case.response`. Source: MSA 3.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.records import Span


@dataclass(frozen=True)
class SpanRuling:
    """What was decided about one span."""

    span: Span
    kept: bool
    reason: str


@dataclass(frozen=True)
class SpanVote:
    """One adjudicator's vote on one span: the probability that its words are hallucinated.

    `p` is None where it gave no vote that can be used; that is no vote, not one half.
    """

    p: float | None
    reason: str


@dataclass(frozen=True)
class SoftLabel:
    """How wrong a stretch of the response is by all runs of a panel.

    `p` is the mean over the runs, `level` the highest threshold at which most of them mark it.
    """

    start: int
    end: int
    p: float
    level: float
