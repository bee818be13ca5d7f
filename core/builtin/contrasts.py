"""Where a claim and a passage that speak of the same thing say different things: all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from core.builtin.contrast import Contrast, Pair
from core.builtin.value_contrasts import answer_contrasts, name_contrasts, value_contrasts
from core.builtin.word_contrasts import (
    negation_contrasts,
    only_contrasts,
    opposite_contrasts,
    quantifier_contrasts,
    rank_contrasts,
    role_contrasts,
)

CHECKS: tuple[Callable[[Pair], Iterator[Contrast]], ...] = (
    value_contrasts,
    name_contrasts,
    answer_contrasts,
    opposite_contrasts,
    negation_contrasts,
    quantifier_contrasts,
    rank_contrasts,
    only_contrasts,
    role_contrasts,
)


def find_contrasts(pair: Pair) -> list[Contrast]:
    """Every contrast with a frame that bears it, strongest first, one for each stretch."""
    found = [item for check in CHECKS for item in check(pair)]
    opposites = [c for c in found if c.kind == "opposite"]
    negations = [c for c in found if c.kind == "negation"]
    if opposites and negations:  # "not closed" against "open": two turns make none
        found = [c for c in found if c.kind not in ("opposite", "negation")]
    found.sort(key=lambda c: (-c.weight, c.start))
    kept: list[Contrast] = []
    for item in found:
        if not any(item.start < k.end and k.start < item.end for k in kept):
            kept.append(item)
    return kept
