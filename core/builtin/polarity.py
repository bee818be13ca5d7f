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

CLOSE = 1e-9
TWICE, SHORTEST_TWICE = "un", 5
LISTS_ON = frozenset(["or", "nor"])
NO_DENIAL_BEFORE = frozenset(
    ["only", "just", "merely", "until", "least", "more", "less", "fewer", "doubt"]
)


def denials(reading: Reading) -> tuple[Token, ...]:
    """The words that deny: "not", "failed" before "to"; "neither … nor" is one, "not only" none."""
    words = reading.words
    found: list[Token] = []
    following = [token.norm for token in reading.tokens[1:]] + [""]
    for token, next_word in zip(reading.tokens, following, strict=False):
        fails_to = token.norm in words.negating_verbs and next_word == "to"
        denies = token.norm in words.negation and not _is_undone(next_word)
        if fails_to or (denies and not (token.norm == "nor" and found)):
            found.append(token)
    return tuple(found)


def _is_undone(following: str) -> bool:
    """True before what makes no denial of a denial: "not only", "no doubt", "not uncommon"."""
    return following in NO_DENIAL_BEFORE or (
        following.startswith(TWICE) and len(following) > SHORTEST_TWICE
    )


def excepted(reading: Reading) -> frozenset[int]:
    """Indexes of the units that the sentence takes out: "every day except Monday"."""
    return frozenset(j for _, units in _exceptions(reading) for j in units)


def denials_of(pair: Pair) -> tuple[Token, ...]:
    """The evidence's denials and exceptions that reach what the claim says.

    They are read in the group that holds most of the claim; where several hold as much, in the one
    that agrees with the claim, for then nothing shows that the two differ.
    """
    evidence = pair.whole.evidence
    if evidence.words.language != "en":
        return denials(pair.clause.evidence)
    scopes = [(token, _scope(evidence, token)) for token in denials(evidence)]
    if not any(t.norm in pair.claim.words.exceptions for t in pair.claim.tokens):
        scopes += _exceptions(evidence)
    ours = len(denials(pair.claim)) % 2
    found = [
        tuple(token for token, scope in scopes if _reaches(pair, focus, token, scope))
        for focus in (_focuses(pair) if scopes else [])
    ]
    agreeing = (tokens for tokens in found if len(tokens) % 2 == ours)
    return next(agreeing, found[0] if found else ())


def _focuses(pair: Pair) -> list[Group]:
    """The groups of the evidence that hold most of the claim, by weight."""
    parts = groups(pair.whole.evidence)
    weights = [0.0] * len(parts)
    of_unit = {j: n for n, part in enumerate(parts) for j in part.units}
    for unit, twins in zip(pair.claim.units, pair.whole.twins, strict=True):
        for n in {of_unit[j] for j in twins}:
            weights[n] += unit.weight
    most = max(weights, default=0.0)
    return [part for part, weight in zip(parts, weights, strict=True) if weight >= most - CLOSE > 0]


def _reaches(pair: Pair, focus: Group, token: Token, scope: frozenset[int]) -> bool:
    """True when the scope holds what the claim says in the focus, or adds to it later.

    "… signed by France but not by Italy" adds to its focus; "nobody was hurt in the fire, which
    destroyed two houses" says nothing of the destroying.
    """
    inside = scope.intersection(focus.units)
    from_here = token.start >= focus.start
    for twins in pair.whole.twins:
        here = inside.intersection(twins)
        if here and here.issuperset(j for j in twins if j in focus.units):
            return True
        elsewhere = twins and not any(j in focus.units for j in twins)
        if from_here and elsewhere and scope.issuperset(twins):
            return True
    return False


def _scope(reading: Reading, token: Token) -> frozenset[int]:
    """Indexes of the units that the denial reaches."""
    parts = groups(reading)
    number = next(n for n, part in enumerate(parts) if part.holds(token.start))
    own = [j for j in parts[number].units if reading.units[j].start >= token.start]
    leads = len(own) == len(parts[number].units)
    if reading.words.quantifier(token.norm) == 0 and not leads:
        own = _phrase(reading, own)
    reached = set(own or parts[number].units)
    for part in parts[number + 1 :]:
        if not _goes_on(reading, part):
            break
        reached.update(part.units)
    return frozenset(reached)


def _phrase(reading: Reading, units: list[int]) -> list[int]:
    """The units up to the next function word: what "no" counts as none."""
    starts = {unit.start for unit in reading.units}
    functions = [t.start for t in reading.tokens if t.function and t.start not in starts]
    for place in range(1, len(units)):
        one, other = reading.units[units[place - 1]], reading.units[units[place]]
        if any(one.end <= start < other.start for start in functions):
            return units[:place]
    return units


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
