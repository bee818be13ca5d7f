"""Where a claim and a passage that speak of the same thing say different things: all checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from core.builtin.asked import kind_contrasts
from core.builtin.contrast import Contrast, Pair
from core.builtin.mixed import mixed_contrasts
from core.builtin.modality import condition_contrasts, hedge_contrasts
from core.builtin.parts_played import (
    converse,
    order_contrasts,
    place_contrasts,
    role_contrasts,
)
from core.builtin.polarity import denials, denials_of
from core.builtin.value_contrasts import answer_contrasts, name_contrasts, value_contrasts
from core.builtin.word_contrasts import (
    negation_contrasts,
    only_contrasts,
    opposite_contrasts,
    quantifier_contrasts,
    rank_contrasts,
)

SUBJECTS = ("name", "word")
TURNED = ("opposite", "quantity", "date", "name", "family", "place")
AFFIRMED_FROM = 0.8
CHECKS: tuple[Callable[[Pair], Iterator[Contrast]], ...] = (
    mixed_contrasts,
    value_contrasts,
    name_contrasts,
    answer_contrasts,
    kind_contrasts,
    opposite_contrasts,
    negation_contrasts,
    quantifier_contrasts,
    rank_contrasts,
    only_contrasts,
    role_contrasts,
    order_contrasts,
    place_contrasts,
    hedge_contrasts,
    condition_contrasts,
)


@dataclass(frozen=True)
class Contrasts:
    """Contrasts, strongest first, one for each stretch of the claim.

    `affirmed` is True when two turns make none: "not 600 m" against "412 m", "not closed" against
    "open", "Bob is older than Anna" against "Anna is younger than Bob".
    """

    found: tuple[Contrast, ...]
    affirmed: bool = False


def find_contrasts(pair: Pair) -> Contrasts:
    """Every contrast with a frame that bears it; none against what stands there word for word."""
    if _is_verbatim(pair):
        return Contrasts(())
    found = [item for check in CHECKS for item in check(pair)]
    found = [item for item in found if not _is_of_another_subject(pair, item)]
    turned = [item for item in found if item.kind in TURNED]
    affirmed = False
    if turned and is_turned(pair):
        affirmed = any(_frame(pair, item) >= AFFIRMED_FROM for item in turned)
        found = [c for c in found if c.kind not in (*TURNED, "negation", "quantifier")]
    elif any(c.kind == "opposite" for c in found) and (kind := converse(pair)):
        affirmed = kind == "comparison"
        found = [c for c in found if c.kind not in ("opposite", "roles", "name")]
    found.sort(key=lambda c: (-c.weight, c.start))
    kept: list[Contrast] = []
    for item in found:
        if not any(item.start < k.end and k.start < item.end for k in kept):
            kept.append(item)
    return Contrasts(tuple(kept), affirmed and not kept)


def _is_verbatim(pair: Pair) -> bool:
    """True when the evidence holds the claim's words, in their order and without a gap."""
    if not pair.claim.tokens:
        return True
    ours = [token.norm for token in pair.claim.tokens]
    theirs = [token.norm for token in pair.whole.evidence.tokens]
    last = len(theirs) - len(ours)
    starts = (i for i in range(last + 1) if theirs[i] == ours[0])
    whole = len(ours) == len(theirs)  # a part alone may stand in a condition or a denial
    return whole and any(theirs[i : i + len(ours)] == ours for i in starts)


def _frame(pair: Pair, item: Contrast) -> float:
    """What is carried of the claim beside the contested words."""
    contested = [u for u in pair.claim.units if u.start < item.end and item.start < u.end]
    return max(pair.clause.frame(contested), pair.whole.frame(contested))


def is_turned(pair: Pair) -> bool:
    """True when just one of the two denies."""
    return len(denials(pair.claim)) % 2 != len(denials_of(pair)) % 2


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
