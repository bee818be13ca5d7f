"""Who does what to whom, and what lies where: swapped parts, converses, prepositions of place."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Literal

from core.builtin.contrast import Contrast, Pair, contrast, says
from core.builtin.groups import groups, preposition
from core.builtin.reading import Reading, Token, Unit

# What holds both ways round: "Anna married Karl", "Oslo lies near Moss".
SYMMETRIC = tuple(
    "marri met meet wed friend sibl twin cousin neighb border equal same differ similar near next "
    "togeth with between join merg collabor partner play share and".split()
)
BY, THAN = "by", "than"
AFTER, BEFORE = "after", "before"
LONGEST_SHOWN = 60
NAMED = ("name", "date", "quantity")


def role_contrasts(pair: Pair) -> Iterator[Contrast]:
    """Two that change parts around the same words; a passive turns them rightly."""
    if any(t.stem.startswith(SYMMETRIC) for t in pair.claim.tokens):
        return
    matched = pair.whole.matched
    actors = [i for i in sorted(matched) if _kind(pair, i) in NAMED]
    pairs = itertools.pairwise(actors) if len(actors) > 1 else iter(())
    found = [(a, b) for a, b in pairs if _kind(pair, a) == _kind(pair, b) == "name"]
    for first, second in found or _around_a_verb(pair):
        if _is_swapped(pair, first, second):
            one, other = pair.claim.units[first], pair.claim.units[second]
            yield from contrast(
                "roles",
                pair,
                one.start,
                other.end,
                _stretch(pair, first, second),
                f"in the evidence “{other.text}” and “{one.text}” have each other's part",
                [],
            )


def _stretch(pair: Pair, first: int, second: int) -> str:
    """The evidence's own words from the one to the other; only its ends where it is long."""
    evidence, matched = pair.whole.evidence, pair.whole.matched
    low, high = sorted((matched[first], matched[second]))
    one, other = evidence.units[low], evidence.units[high]
    words = evidence.text[one.start : other.end]
    return words if len(words) <= LONGEST_SHOWN else f"{one.text} … {other.text}"


def _kind(pair: Pair, place: int) -> str:
    """A name if either side shows that it is one."""
    other = pair.whole.evidence.units[pair.whole.matched[place]]
    return "name" if other.kind == "name" else pair.claim.units[place].kind


def _around_a_verb(pair: Pair) -> Iterator[tuple[int, int]]:
    """Three matched units in a row, of which the outer two may be doer and done to."""
    matched, units = pair.whole.matched, pair.claim.units
    for i in range(len(units) - 2):
        row = (i, i + 1, i + 2)
        if not all(j in matched and units[j].kind in ("word", "name") for j in row):
            continue
        theirs = sorted(matched[j] for j in row)
        in_a_row = theirs == list(range(theirs[0], theirs[0] + 3))
        if in_a_row and matched[i + 1] == theirs[1] and _is_direct(pair, i, i + 2):
            yield i, i + 2


def _is_direct(pair: Pair, first: int, second: int) -> bool:
    """True when no preposition but "by" joins the two to what stands between them."""
    evidence, matched = pair.whole.evidence, pair.whole.matched
    last = evidence.units[max(matched[first], matched[second])]
    joined = preposition(pair.claim, pair.claim.units[second]), preposition(evidence, last)
    return all(word in ("", BY) for word in joined)


def _is_swapped(pair: Pair, first: int, second: int) -> bool:
    """True when order or voice is turned round, not both."""
    matched, evidence = pair.whole.matched, pair.whole.evidence
    between = [i for i in sorted(matched) if first < i < second]
    low, high = sorted((matched[first], matched[second]))
    follows = first + 1
    is_verb_shared = follows in matched or pair.claim.units[follows].kind != "word"
    if not between or not is_verb_shared or not all(low < matched[i] < high for i in between[:1]):
        return False
    turned = matched[first] > matched[second]
    one, other = pair.claim.units[first], pair.claim.units[second]
    ours = _is_passive(pair.claim, one, other)
    theirs = _is_passive(evidence, evidence.units[low], evidence.units[high])
    return turned != (ours != theirs)


def _is_passive(reading: Reading, first: Unit, second: Unit) -> bool:
    """True for "by" between the two, after what is done: "written by Anna and Karl"."""
    between = [t.norm for t in reading.tokens if first.end <= t.start < second.start]
    return BY in between[1:]


def converse(pair: Pair) -> Literal["", "comparison", "exchange"]:
    """Whether opposites are said the other way round: older/younger than, bought/sold."""
    sides = _opposing(pair)
    if sides is None:
        return ""
    ours, theirs = sides
    matched, evidence = pair.whole.matched, pair.whole.evidence
    before = [i for i in matched if pair.claim.units[i].end <= ours.start]
    moved = [i for i in before if evidence.units[matched[i]].start >= theirs.end]
    if not moved:
        return ""
    compares = all(THAN in reading.norms() for reading in (pair.claim, evidence))
    stayed = [i for i in before if i not in moved]
    return "comparison" if compares and not stayed else "exchange"


def _opposing(pair: Pair) -> tuple[Token, Token] | None:
    words = pair.claim.words
    for token in pair.claim.tokens:
        for other in pair.whole.evidence.tokens:
            if token.stem != other.stem and words.are_opposites(token.norm, other.norm):
                return token, other
    return None


def order_contrasts(pair: Pair) -> Iterator[Contrast]:
    """What comes first in time: "A after B" against "B after A"."""
    evidence = pair.whole.evidence
    ours, theirs = _in_time(pair.claim), _in_time(evidence)
    if ours is None or theirs is None:
        return
    (word, first, then), (_, its_first, its_then) = ours, theirs
    matched = pair.whole.matched
    crossed = _maps(matched, first, its_then) and _maps(matched, then, its_first)
    kept = _maps(matched, first, its_first) or _maps(matched, then, its_then)
    if crossed and not kept:
        but = "in the evidence the two happen the other way round"
        shown = evidence.text.strip()
        yield from contrast("roles", pair, word.start, word.end, shown, but, [])


def _in_time(reading: Reading) -> tuple[Token, frozenset[int], frozenset[int]] | None:
    """The word "after" or "before", the units of what comes first, the units of what follows."""
    word = next((t for t in reading.tokens if t.norm in (AFTER, BEFORE)), None)
    if word is None:
        return None
    lead = frozenset(i for i, u in enumerate(reading.units) if u.end <= word.start)
    rest = frozenset(i for i, u in enumerate(reading.units) if u.start >= word.end)
    if not lead:  # "After B, A"
        parts = groups(reading)
        part = next(part for part in parts if part.holds(word.start))
        rest = frozenset(part.units)
        lead = frozenset(range(len(reading.units))) - rest
    first, then = (rest, lead) if word.norm == AFTER else (lead, rest)
    return word, first, then


def _maps(matched: dict[int, int], ours: frozenset[int], theirs: frozenset[int]) -> bool:
    return any(matched[i] in theirs for i in ours if i in matched)


def place_contrasts(pair: Pair) -> Iterator[Contrast]:
    """The same thing after prepositions of which only one can hold: on and under the table."""
    words, evidence = pair.claim.words, pair.whole.evidence
    for unit, twins in zip(pair.claim.units, pair.whole.twins, strict=True):
        ours = preposition(pair.claim, unit)
        if not ours:
            continue
        theirs = [preposition(evidence, evidence.units[j]) for j in twins]
        rival = next((word for word in theirs if frozenset((ours, word)) in words.places), "")
        if rival and ours not in theirs:
            token = [t for t in pair.claim.tokens if t.norm == ours and t.end <= unit.start][-1]
            but = says(rival, token.text)
            yield from contrast("place", pair, token.start, token.end, rival, but, [])
