"""What the evidence says only perhaps, or only on a condition, and the claim as a fact."""

from __future__ import annotations

from collections.abc import Iterator

from core.builtin.contrast import Contrast, Pair, contrast
from core.builtin.groups import MARKS, groups
from core.builtin.reading import Reading, Token

ALSO_NAMES = frozenset(["may", "will"])


def hedge_contrasts(pair: Pair) -> Iterator[Contrast]:
    """A fact against a possibility: "causes" against "may cause"."""
    evidence = pair.clause.evidence
    hedge = _first(evidence, evidence.words.hedges) or _planned(pair)
    if hedge is None or _first(pair.claim, pair.claim.words.hedges):
        return
    verb = next((u for u in evidence.units if u.start >= hedge.end), None)
    twins = {j: i for i, j in pair.clause.matched.items()}
    place = twins.get(evidence.units.index(verb)) if verb else None
    if verb is None or place is None:
        return
    unit = pair.claim.units[place]
    shown = evidence.text[hedge.start : verb.end]
    but = f"the evidence says “{shown}”, no more"
    yield from contrast("hedge", pair, unit.start, unit.end, shown, but, [])


def _planned(pair: Pair) -> Token | None:
    """The evidence's "will" where the claim says that it has happened."""
    words = pair.claim.words
    if _first(pair.claim, words.past) is None or _first(pair.claim, words.future):
        return None
    return _first(pair.clause.evidence, words.future)


def condition_contrasts(pair: Pair) -> Iterator[Contrast]:
    """A fact against one on a condition: "the match is cancelled" against "if it rains, …"."""
    evidence, words = pair.whole.evidence, pair.claim.words
    opener = _first(evidence, words.conditions)
    if opener is None or _first(pair.claim, words.conditions):
        return
    parts = groups(evidence)
    part = next(part for part in parts if part.holds(opener.start))
    condition = [j for j in part.units if evidence.units[j].start >= opener.end]
    matched = set(pair.whole.matched.values())
    if not condition or matched & set(condition) or not matched:
        return
    end = evidence.units[condition[-1]].end
    shown = MARKS.split(evidence.text[opener.start : end])[0].strip()
    start, stop = pair.claim.units[0].start, pair.claim.units[-1].end
    but = f"the evidence says this only under a condition: “{shown}”"
    yield from contrast("condition", pair, start, stop, shown, but, [])


def _first(reading: Reading, words: frozenset[str]) -> Token | None:
    named = [unit for unit in reading.units if unit.kind in ("date", "name")]
    return next(
        (
            token
            for token in reading.tokens
            if token.norm in words
            and not (token.capital and token.norm in ALSO_NAMES)
            and not any(unit.start <= token.start < unit.end for unit in named)
        ),
        None,
    )
