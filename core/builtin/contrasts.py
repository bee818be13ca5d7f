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

SUBJECTS = ("name", "word")
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


TURNED = ("opposite", "quantity", "date", "name", "family")


def _is_turned(pair: Pair) -> bool:
    """True when just one of the two denies."""
    ours, theirs = pair.claim.negations(), pair.clause.evidence.negations()
    return len(ours) % 2 != len(theirs) % 2


def _is_of_another_subject(pair: Pair, item: Contrast) -> bool:
    """True when claim and evidence open with different things and the contrast lies elsewhere.

    “The church was built in 1880” says nothing against “The bridge was built in 1932”.
    """
    whole = pair.whole
    if not whole.claim.units or not whole.evidence.units or pair.own_start:
        return False
    subject, other = whole.claim.units[0], whole.evidence.units[0]
    if subject.kind not in SUBJECTS or other.kind not in SUBJECTS:
        return False
    is_shared = 0 in whole.matched or 0 in whole.nearby
    is_contested = item.start < subject.end and subject.start < item.end
    return not (is_shared or is_contested or 0 in whole.matched.values())


def find_contrasts(pair: Pair) -> list[Contrast]:
    """Every contrast with a frame that bears it, strongest first, one for each stretch."""
    found = [item for check in CHECKS for item in check(pair)]
    found = [item for item in found if not _is_of_another_subject(pair, item)]
    if _is_turned(pair) and any(c.kind in TURNED for c in found):
        # "not closed" against "open", "not 600 m" against "500 m": two turns make none
        found = [c for c in found if c.kind not in (*TURNED, "negation")]
    found.sort(key=lambda c: (-c.weight, c.start))
    kept: list[Contrast] = []
    for item in found:
        if not any(item.start < k.end and k.start < item.end for k in kept):
            kept.append(item)
    return kept
