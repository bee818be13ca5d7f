"""Whether a condition on an answer is kept, in one shape for lengths, formats, languages and words.

Source: HaluAgent 2.1 (conditional text generation), 2.2 (condition verifier).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from core.tools.lengths import LengthCheck, length_words

ConditionKind = Literal["length", "format", "language", "wording"]

# No error on 100 shared answers: with 95 % confidence fewer than three in a hundred go wrong.
DOUBT = 0.03
# Formats, languages and words are read from freer words than figures are.
LOOSE_DOUBT = 0.1
# Shared answers called right strain up to two thirds of what is allowed, wrong ones from four.
SURE_BELOW, SURE_FROM = 2 / 3, 4 / 3


@dataclass(frozen=True)
class Kept:
    """One condition and what became of it.

    `asked` and `found` are words for people ("100 words", "87 words"). `holds` is None where it
    cannot be told. `p` is the probability that it is broken. `[start, end)` in the answer are the
    words that break it, None where that is all of it.
    """

    kind: ConditionKind
    asked: str
    found: str
    holds: bool | None
    p: float
    words: str
    start: int | None = None
    end: int | None = None


def kept_length(check: LengthCheck) -> Kept:
    """A checked length: sure that it is kept, sure that it is not, evenly in between."""
    share = min(1.0, max(0.0, (check.strain - SURE_BELOW) / (SURE_FROM - SURE_BELOW)))
    p = DOUBT + share * (1.0 - 2 * DOUBT)
    # At the very edge the rule decides, not the rounding.
    p = round(min(p, 0.49) if check.holds else max(p, 0.51), 4)
    unit = check.asked.unit if check.counted == 1 else f"{check.asked.unit}s"
    found = f"{check.counted:,} {unit}"
    return Kept("length", length_words(check.asked), found, check.holds, p, check.words)


def kept_otherwise(
    kind: ConditionKind,
    asked: str,
    found: str,
    *,
    holds: bool,
    place: tuple[int, int] | None = None,
) -> Kept:
    """A condition that is kept or is not, with nothing in between."""
    verb, p = ("and", LOOSE_DOUBT) if holds else ("but", 1.0 - LOOSE_DOUBT)
    words = f"{asked[0].upper()}{asked[1:]} was asked for {verb} the answer {found}."
    start, end = place or (None, None)
    return Kept(kind, asked, found, holds, round(p, 4), words, start, end)


def not_told(kind: ConditionKind, asked: str, why: str) -> Kept:
    """A condition that nothing here can hold against the answer."""
    return Kept(kind, asked, why, None, 0.5, f"Asked for: {asked}. This cannot be told: {why}.")


def worst_of(checks: Sequence[Kept]) -> Kept | None:
    """The condition that decides: the one most likely broken; None where too little is known.

    Where one cannot be told and the others hold, nothing follows for the answer.
    """
    known = [check for check in checks if check.holds is not None]
    if not known:
        return None
    worst = max(known, key=lambda check: (not check.holds, check.p))
    return None if worst.holds and len(known) < len(checks) else worst
