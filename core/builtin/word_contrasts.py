"""Contrasts of words: opposites, negation, quantifiers, ranks, "only"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.builtin.contrast import Contrast, Kind, Pair, contrast, says
from core.builtin.polarity import denials, denials_of
from core.builtin.reading import Reading, Token, Unit

QUANTIFIER_ALL = 4
LONGEST_SHOWN = 60
NEARLY_ALL = 99.0


def opposite_contrasts(pair: Pair) -> Iterator[Contrast]:
    """Opposites and members of one exclusive family, as words the other side lacks."""
    words = pair.claim.words
    evidence = pair.clause.evidence
    theirs = {t.stem for t in evidence.tokens}
    ours = {t.stem for t in pair.claim.tokens}
    for token in (t for t in pair.claim.tokens if t.stem not in theirs):
        for other in (t for t in evidence.tokens if t.stem not in ours):
            kind: Kind | None = None
            if words.are_opposites(token.norm, other.norm):
                kind = "opposite"
            elif words.family_shared(token.norm, other.norm) and _same_slot(pair, token, other):
                kind = "family"
            if kind:
                unit = [u for u in pair.claim.units if u.start <= token.start < u.end]
                yield from contrast(
                    kind,
                    pair,
                    token.start,
                    token.end,
                    other.text,
                    says(other.text, token.text),
                    unit,
                )
                break


def _same_slot(pair: Pair, token: Token, other: Token) -> bool:
    return any(
        _holds(slot.claim, token) and _holds(slot.evidence, other)
        for side in (pair.clause, pair.whole)
        for slot in side.slots
    )


def _holds(units: Sequence[Unit], token: Token) -> bool:
    return any(u.start <= token.start < u.end for u in units)


def negation_contrasts(pair: Pair) -> Iterator[Contrast]:
    """One side denies what the other says, all else being the same."""
    ours, theirs = denials(pair.claim), denials_of(pair)
    if len(ours) % 2 == len(theirs) % 2:
        return
    if ours:
        token = ours[0]
        shown, but = pair.clause.evidence.text.strip(), "the evidence says this without the denial"
        yield from contrast("negation", pair, token.start, token.end, shown, but, [])
        return
    denied = _denied_stretch(pair, theirs[0])
    if denied is not None:
        start, end, shown = denied
        counted = [u for u in pair.claim.units if u.quantity and _is_none(pair, theirs[0])]
        but = f"the evidence denies this: “{shown}”"
        yield from contrast("negation", pair, start, end, shown, but, counted)


def _is_none(pair: Pair, negation: Token) -> bool:
    """True for "no" as a count: "no leave" stands against "25 days of leave"."""
    return pair.claim.words.quantifier(negation.norm) == 0


def _denied_stretch(pair: Pair, negation: Token) -> tuple[int, int, str] | None:
    """`[start, end)` of the claim's first words that the denial stands before, and the denial."""
    evidence, ours = pair.whole.evidence, pair.claim.units
    twins = {j: i for i, there in enumerate(pair.whole.twins) for j in there}
    first = next(
        (j for j, u in enumerate(evidence.units) if u.start >= negation.start and j in twins), None
    )
    if first is None:
        return None
    last = first
    while twins.get(last + 1, -1) == twins[last] + 1 and _touch(
        ours[twins[last]], ours[twins[last + 1]]
    ):
        last += 1
    shown = evidence.text[negation.start : evidence.units[last].end]
    if len(shown) > LONGEST_SHOWN:
        words = evidence.text[evidence.units[first].start : evidence.units[last].end]
        shown = f"{negation.text} … {words}"
    return ours[twins[first]].start, ours[twins[last]].end, shown


def _touch(one: Unit, other: Unit) -> bool:
    """True for words with nothing but a space between them."""
    return other.start - one.end <= 1


def quantifier_contrasts(pair: Pair) -> Iterator[Contrast]:
    """All against most, some, few or none; only what cannot both hold counts."""
    words = pair.claim.words
    ours = [(t, q) for t in pair.claim.tokens if (q := words.quantifier(t.norm)) is not None]
    theirs = [
        (t, q) for t in pair.clause.evidence.tokens if (q := words.quantifier(t.norm)) is not None
    ]
    if ours and not theirs and ours[0][1] == QUANTIFIER_ALL:
        yield from _of_some_only(pair, ours[0][0])
        yield from _of_a_part(pair, ours[0][0])
    if not ours or not theirs:
        return
    token, mine = ours[0]
    other, its = theirs[0]
    excluded = (mine == 4 and its < 4) or (mine == 0 and its > 0) or abs(mine - its) >= 2
    if mine != its and excluded and not (mine == 2 and its == 4):
        yield from contrast(
            "quantifier",
            pair,
            token.start,
            token.end,
            other.text,
            says(other.text, token.text),
            [],
        )


def _of_some_only(pair: Pair, token: Token) -> Iterator[Contrast]:
    """All against a few: "everyone may enter" against "only members may enter"."""
    evidence = pair.whole.evidence
    only = next((t for t in evidence.tokens if t.norm in evidence.words.only), None)
    after = next((u for u in evidence.units if only and u.start >= only.end), None)
    if only is None or after is None:
        return
    if evidence.units.index(after) in pair.whole.matched.values():
        return
    shown = evidence.text[only.start : after.end]
    but = says(shown, token.text)
    yield from contrast("quantifier", pair, token.start, token.end, shown, but, [])


def _of_a_part(pair: Pair, token: Token) -> Iterator[Contrast]:
    """All against a share: "all adults" against "half of whom", "40 % of the adults"."""
    evidence = pair.whole.evidence
    for unit in evidence.units:
        quantity = unit.quantity
        if quantity is None or quantity.unit != "percent" or quantity.high >= NEARLY_ALL:
            continue
        if evidence.text[unit.end :].lstrip().startswith("of "):
            but = says(unit.text, token.text)
            yield from contrast("quantifier", pair, token.start, token.end, unit.text, but, [])
            return


def rank_contrasts(pair: Pair) -> Iterator[Contrast]:
    """The largest against the second-largest, or against one of the largest."""
    ours, theirs = _ranked(pair.claim), _ranked(pair.whole.evidence)
    for stem, (token, rank) in ours.items():
        other = theirs.get(stem)
        if other is None or other[1] == rank:
            continue
        shown = f"{other[1]} {other[0].text}".strip()
        yield from contrast(
            "rank",
            pair,
            token.start,
            token.end,
            shown,
            says(shown, f"{rank} {token.text}".strip()),
            [],
        )


def _ranked(reading: Reading) -> dict[str, tuple[Token, str]]:
    """Stem of each superlative to its token and the rank before it ("second", "one of the")."""
    words = reading.words
    found: dict[str, tuple[Token, str]] = {}
    for place, token in enumerate(reading.tokens):
        if token.norm not in words.superlatives or token.norm in words.rank_words:
            continue
        before = reading.tokens[max(0, place - 2) : place]
        rank = next((t.text.lower() for t in before if t.norm in words.rank_words), "")
        lead = reading.text[: token.start].casefold().rstrip()
        many = next((phrase for phrase in words.one_of if lead.endswith(phrase)), "")
        found[token.stem] = (token, rank or many)
    return found


def only_contrasts(pair: Pair) -> Iterator[Contrast]:
    """Against "only X": evidence that names others beside X."""
    words = pair.claim.words
    ours = next((t for t in pair.claim.tokens if t.norm in words.only), None)
    evidence = pair.clause.evidence
    if ours is None or any(t.norm in words.only for t in evidence.tokens):
        return
    added = next((t for t in evidence.tokens if t.norm in words.also and t.norm != "other"), None)
    extra = [j for j in range(len(evidence.units)) if j not in pair.clause.matched.values()]
    if added is not None and extra:
        shown = evidence.units[extra[0]].text
        yield from contrast(
            "only",
            pair,
            ours.start,
            ours.end,
            shown,
            f"the evidence also names “{shown}”",
            [],
        )
