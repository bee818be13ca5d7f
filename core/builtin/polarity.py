"""What a sentence denies, and how far the denial reaches: its scope.

"Penguins cannot fly but they swim well" denies the flying only. In English a denial reaches from
its word to the end of its group and through a list ("no meat or fish"); in other languages, whose
denials may stand at the end, it reaches over the clause.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.builtin.contrast import Pair
from core.builtin.groups import MARKS, Group, groups, opens_with_predicate
from core.builtin.reading import Reading, Token, Unit

LISTS_ON = frozenset(["or", "nor"])
NO_DENIAL_BEFORE = frozenset(["only", "just", "merely", "until", "least", "more", "less", "fewer"])


def denials(reading: Reading) -> tuple[Token, ...]:
    """The words that deny: "not", "failed" before "to"; "neither … nor" is one, "not only" none."""
    words = reading.words
    found: list[Token] = []
    following = (*reading.tokens[1:], None)
    for token, after in zip(reading.tokens, following, strict=True):
        next_word = after.norm if after else ""
        fails_to = token.norm in words.negating_verbs and next_word == "to"
        denies = token.norm in words.negation and next_word not in NO_DENIAL_BEFORE
        if fails_to or (denies and not (token.norm == "nor" and found)):
            found.append(token)
    return tuple(found)


def denials_of(pair: Pair) -> tuple[Token, ...]:
    """The evidence's denials and exceptions that reach what the claim says."""
    evidence = pair.whole.evidence
    if evidence.words.language != "en":
        return denials(pair.clause.evidence)
    found = [token for token in denials(evidence) if _reaches(pair, _scope(evidence, token))]
    if not any(t.norm in pair.claim.words.exceptions for t in pair.claim.tokens):
        found += [t for t, units in _exceptions(evidence) if _reaches(pair, units)]
    return tuple(found)


def _reaches(pair: Pair, scope: frozenset[int]) -> bool:
    """True when a unit of the claim stands in the scope and nowhere else in the evidence."""
    return any(twins and scope.issuperset(twins) for twins in pair.whole.twins)


def _scope(reading: Reading, token: Token) -> frozenset[int]:
    """Indexes of the units that the denial reaches."""
    parts = groups(reading)
    number = next(n for n, part in enumerate(parts) if part.holds(token.start))
    own = [j for j in parts[number].units if reading.units[j].start >= token.start]
    reached = set(own or parts[number].units)
    for part in parts[number + 1 :]:
        if not _goes_on(reading, part):
            break
        reached.update(part.units)
    return frozenset(reached)


def _goes_on(reading: Reading, part: Group) -> bool:
    """True for a list's next member: "or fish", ", meat"; not for a clause of its own."""
    if part.opener is not None:
        return part.opener.norm in LISTS_ON
    return not opens_with_predicate(reading, part)


def _exceptions(reading: Reading) -> Iterator[tuple[Token, frozenset[int]]]:
    """Each "except" with the units it takes out: the next, and those joined to it."""
    for token in reading.tokens:
        if token.norm not in reading.words.exceptions:
            continue
        after = [j for j, unit in enumerate(reading.units) if unit.start >= token.end]
        taken: list[int] = []
        for j in after:
            if taken and not _is_joined(reading, reading.units[taken[-1]], reading.units[j]):
                break
            taken.append(j)
        yield token, frozenset(taken)


def _is_joined(reading: Reading, one: Unit, other: Unit) -> bool:
    between = [t for t in reading.tokens if one.end <= t.start < other.start]
    joins = all(token.norm in reading.words.coordinators for token in between)
    return joins and (bool(between) or bool(MARKS.search(reading.text, one.end, other.start)))
