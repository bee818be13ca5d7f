"""What ratings of runs' explanations come to: beside others' reasons, by protocol, and in pairs.

Whoever rates is given: `core/evaluation/alignment.py` asks a language model. Source: ColMAD 4,
figure 5b.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import BudgetReached
from core.evaluation.metrics import figures
from core.evaluation.outcomes import Numbers
from core.learning.reasoning import Reasons
from core.learning.weights import numbered

SEED = 11
MOST = 200
Rate = Callable[[Reasons, str], int | None]  # with whose reason; None: no usable reply


@dataclass(frozen=True)
class Rated:
    """Runs by one protocol: each interval is 95 % of a bootstrap over cases, None where nothing is.

    `agreement` is the mean over the `rated` runs, `unlike` the same against other cases' reasons.
    `quoted` and `found` are shares of people's `marks`.
    """

    protocol: str
    runs: int
    rated: int
    unusable: int
    agreement: dict[str, float] | None
    unlike: dict[str, float] | None
    marks: int
    quoted: dict[str, float] | None
    found: float | None


@dataclass(frozen=True)
class Paired:
    """Two protocols on the `n` cases on which both were right: the first's mean lead in rating."""

    one: str
    other: str
    n: int
    lead: dict[str, float]


@dataclass(frozen=True)
class Ratings:
    """By run: how far its explanation gives the person's reason, and one from another case.

    `unusable` are the runs of which no usable reply came. `ended` says what ended the rating before
    all were rated; empty where nothing did.
    """

    own: Mapping[str, int]
    unlike: Mapping[str, int]
    unusable: frozenset[str] = frozenset()
    ended: str = ""


UNRATED = Ratings({}, {})


def ratings_of(reasons: Sequence[Reasons], rate: Rate, most: int = MOST) -> Ratings:
    """The ratings of `most` runs at most, where there is a reason and an explanation.

    Raises:
        BudgetReached: a cap leaves no room for the first rating.
        ModelError: the service failed; what was rated stays in the ledger.
    """
    own: dict[str, int] = {}
    other: dict[str, int] = {}
    unusable: set[str] = set()
    try:
        for reason in [r for r in reasons if r.reason and r.rationale][:most]:
            said = rate(reason, reason.reason)
            if said is None:
                unusable.add(reason.run_id)
                continue
            own[reason.run_id] = said
            unlike = _reason_of_another(reason, reasons)
            against = rate(reason, unlike) if unlike else None
            if against is not None:
                other[reason.run_id] = against
    except BudgetReached as error:
        if not own:
            raise
        return Ratings(own, other, frozenset(unusable), str(error))
    return Ratings(own, other, frozenset(unusable))


def aligned(
    reasons: Sequence[Reasons], ratings: Ratings = UNRATED
) -> tuple[list[Rated], list[Paired]]:
    """Every protocol's figures, and pairs of protocols; without ratings quotes are counted."""
    protocols = sorted({reason.protocol for reason in reasons})
    rated = [
        _rated(name, [r for r in reasons if r.protocol == name], ratings) for name in protocols
    ]
    return rated, _paired(reasons, ratings.own)


def _reason_of_another(reason: Reasons, reasons: Sequence[Reasons]) -> str:
    """What a person gave on the next case of that label; empty where there is none."""
    same = [r for r in reasons if r.label == reason.label and r.reason]
    places = [place for place, r in enumerate(same) if r.run_id == reason.run_id]
    for step in range(1, len(same)):
        candidate = same[(places[0] + step) % len(same)]
        if candidate.group != reason.group:
            return candidate.reason
    return ""


def _rated(protocol: str, runs: Sequence[Reasons], ratings: Ratings) -> Rated:
    own, other = ratings.own, ratings.unlike
    marked = [run for run in runs if run.marks]
    marks = sum(run.marks for run in marked)
    quoted = [(float(run.quoted), float(run.marks), run.group) for run in marked]
    told = [(float(own[r.run_id]), 1.0, r.group) for r in runs if r.run_id in own]
    against = [(float(other[r.run_id]), 1.0, r.group) for r in runs if r.run_id in other]
    return Rated(
        protocol,
        len(runs),
        len(told),
        sum(run.run_id in ratings.unusable for run in runs),
        _share(told),
        _share(against),
        marks,
        _share(quoted),
        sum(run.found for run in marked) / marks if marks else None,
    )


def _share(parts: Sequence[tuple[float, float, str]]) -> dict[str, float] | None:
    """Sum of the first over sum of the second, with its interval; the third are groups."""
    if not parts:
        return None
    value, weight = (np.array([part[place] for part in parts]) for place in (0, 1))

    def measure(times: Numbers) -> Numbers:
        found: Numbers = (times @ value) / np.maximum(times @ weight, 1e-9)
        return found

    return figures({"share": measure}, numbered([part[2] for part in parts]), SEED)["share"]


def _paired(reasons: Sequence[Reasons], own: Mapping[str, int]) -> list[Paired]:
    """All pairs of protocols with a rated case in common."""
    by_protocol: dict[str, dict[str, int]] = defaultdict(dict)
    for reason in reasons:
        if reason.run_id in own:
            by_protocol[reason.protocol][reason.group] = own[reason.run_id]
    names = sorted(by_protocol)
    found = []
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            first, second = by_protocol[one], by_protocol[other]
            common = sorted(first.keys() & second.keys())
            lead = _share([(float(first[g] - second[g]), 1.0, g) for g in common])
            if lead is not None:
                found.append(Paired(one, other, len(common), lead))
    return found
