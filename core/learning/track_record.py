"""How often past verdicts at a level of confidence turned out right, and which may stand alone.

What is kept is brought up to date with what was said since: going through 100,000 corrections
takes seconds, looking at the cases that changed a few milliseconds. A limit is the confidence from
which on a project's verdicts need no person (selective answers).
"""

from __future__ import annotations

import logging
import math
import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.review.queue_ranking import (
    ASSURANCE,
    KIND,
    Limit,
    Policy,
    body_of,
    policy_of,
    reorder,
    require_rate,
)
from core.runtime.errors import ReviewError
from core.schema.records import Label, Project
from core.store import Store
from core.store.answered import AnsweredVerdict, Key
from core.store.versions import NONE, Choice, Learned

EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
LEVELS = len(EDGES) - 1
FEWEST = 20  # verdicts at a level below which a share says nothing
Z_95 = 1.959964
Cell = tuple[str, str, bool, int]  # a version, a roster, whether tools decided, a level


@dataclass(frozen=True)
class WilsonShare:
    """`right` of `n`, and where the true share lies in 95 of 100 cases (Wilson's interval)."""

    right: int
    n: int

    @property
    def value(self) -> float:
        """The share itself; 0 of none."""
        return self.right / self.n if self.n else 0.0

    @cached_property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end; from 0 to 1 where there is nothing to go by."""
        if not self.n:
            return 0.0, 1.0
        p, square = self.value, Z_95 * Z_95
        middle = (p + square / (2 * self.n)) / (1 + square / self.n)
        root = math.sqrt(p * (1 - p) / self.n + square / (4 * self.n * self.n))
        half = Z_95 * root / (1 + square / self.n)
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Standing:
    """What became of verdicts at one's level; `label` None: both labels were taken together."""

    low: float
    high: float
    looked_at: int
    share: WilsonShare | None = None
    label: Label | None = None
    is_random: bool = False


@dataclass(frozen=True)
class TrackRecord:
    """All answered verdicts of a project with the marks up to which they were counted."""

    cells: Mapping[Cell, Mapping[Key, AnsweredVerdict]]
    corrections: float = 0.0
    golds: float = 0.0
    ended: float = 0.0
    runs: float = 0.0
    scores: str = ""

    @cached_property
    def groups(self) -> dict[tuple[str, str], tuple[AnsweredVerdict, ...]]:
        """The groups of verdicts by version and roster, the largest first."""
        found: dict[tuple[str, str], tuple[AnsweredVerdict, ...]] = defaultdict(tuple)
        for (version, roster, _, _), ones in self.cells.items():
            found[version, roster] += tuple(ones.values())
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))

    def standing(
        self, version: str, roster: str, label: Label, confidence: float, *, by_tool: bool = False
    ) -> Standing:
        """Of its label and drawn at random where enough; else of its label; else of both."""
        level = level_of(confidence)
        there = list(self.cells.get((version, roster, by_tool, level), {}).values())
        own = [one for one in there if one.label == label]
        low, high = EDGES[level], EDGES[level + 1]
        for ones, said in ((own, label), (there, None)):
            drawn = [one for one in ones if one.is_random]
            for taken, is_random in ((drawn, True), (ones, False)):
                if len(taken) >= FEWEST:
                    return Standing(low, high, len(there), share_of(taken), said, is_random)
        return Standing(low, high, len(there))


def level_of(confidence: float) -> int:
    """Which pair of neighbouring `EDGES` a confidence in [0.5, 1] lies between."""
    return max(0, bisect_right(EDGES, confidence, hi=LEVELS) - 1)


def share_of(verdicts: Iterable[AnsweredVerdict]) -> WilsonShare:
    """How many of them are right."""
    right = [one.is_right for one in verdicts]
    return WilsonShare(sum(right), len(right))


def bands(verdicts: Iterable[AnsweredVerdict]) -> list[list[AnsweredVerdict]]:
    """The verdicts by level, in the order of `EDGES`."""
    found: list[list[AnsweredVerdict]] = [[] for _ in range(LEVELS)]
    for one in verdicts:
        found[level_of(one.confidence)].append(one)
    return found


def counted(store: Store, project_id: str) -> TrackRecord:
    """The project's record from the beginning: seconds where very much was said."""
    marks = _marks(store)  # before the answers: what comes in between is looked at once more
    return TrackRecord(cells_of(store.answered.of(project_id)), *marks)


def renewed(store: Store, project_id: str, before: TrackRecord) -> TrackRecord | None:
    """The record with what changed since; None where old verdicts changed: count anew."""
    marks = _marks(store)
    texts, more = store.answered.changed(project_id, before.corrections, before.golds, before.ended)
    if marks[-1] != before.scores or marks[3] != before.runs + more:
        return None
    if not texts:  # whatever happened was in other projects
        counts = (before.corrections, before.golds, before.ended, before.runs)
        return TrackRecord(before.cells, *marks) if marks[:4] != counts else before
    changed = set(texts.values())
    cells = {cell: _without(ones, cell, changed) for cell, ones in before.cells.items()}
    for cell, ones in cells_of(store.answered.of(project_id, list(texts))).items():
        cells[cell] = {**cells.get(cell, {}), **ones}
    return TrackRecord({cell: ones for cell, ones in cells.items() if ones}, *marks)


def cells_of(verdicts: Iterable[AnsweredVerdict]) -> dict[Cell, Mapping[Key, AnsweredVerdict]]:
    """The verdicts as a record keeps them."""
    found: dict[Cell, dict[Key, AnsweredVerdict]] = defaultdict(dict)
    for one in verdicts:
        cell = (one.version, one.roster, one.by_tool, level_of(one.confidence))
        found[cell][one.text, one.version, one.roster] = one
    return dict(found)


def _without(
    ones: Mapping[Key, AnsweredVerdict], cell: Cell, texts: Collection[str]
) -> Mapping[Key, AnsweredVerdict]:
    """The cell without these texts: itself where it holds none of them."""
    gone = {key for text in texts if (key := (text, cell[0], cell[1])) in ones}
    return {key: one for key, one in ones.items() if key not in gone} if gone else ones


def _marks(store: Store) -> tuple[float, float, float, float, str]:
    corrections, golds = store.changes.of_corrections()
    runs, ended, _, scored_again = store.changes.of_runs()
    scores = f"{store.versions.active()} {scored_again:.0f}"
    return corrections, golds, ended, runs, scores


LOGGER = logging.getLogger(__name__)
# Fixed, not chosen from the answers: a threshold that was looked for would promise too much.
THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99)
ENOUGH_AT_RANDOM = 100  # from here on the others are not needed
RATES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
MOST_POINTS = 200


@dataclass(frozen=True)
class ThresholdPoint:
    """Where verdicts of at least that confidence are answered: the share of all, and the errors."""

    threshold: float
    answered: float
    wrong: WilsonShare


def fewest_for(wanted: float) -> int:
    """How many answered verdicts it takes to promise anything, if not one of them is wrong."""
    return math.ceil(math.log(1.0 - ASSURANCE) / math.log(1.0 - wanted))


def evidence(verdicts: Sequence[AnsweredVerdict]) -> tuple[Sequence[AnsweredVerdict], bool]:
    """(those to fit a limit on, whether these are only the ones drawn at random)."""
    drawn = [one for one in verdicts if one.is_random]
    return (drawn, True) if len(drawn) >= ENOUGH_AT_RANDOM else (verdicts, False)


def limit_of(verdicts: Sequence[AnsweredVerdict], wanted: float) -> Limit:
    """The lowest threshold that holds the target error rate, for verdicts of one kind.

    Tested from the strictest on is that the share of wrong verdicts is the wanted one or more;
    those refused hold together with 90 % certainty (Learn then Test: Angelopoulos and others 2022).
    The answered verdicts must be such as will come; where people were asked about unsure ones
    first, the limit is rather too strict. Raises InputError for a rate that cannot be held.
    """
    require_rate(wanted)
    taken, is_random = evidence(verdicts)
    tested = []
    for threshold in reversed(THRESHOLDS):
        right = share_of(one for one in taken if one.confidence >= threshold)
        # how many there are says nothing of how many are wrong: the row begins where it can pass
        if right.n >= fewest_for(wanted):
            tested.append((threshold, WilsonShare(right.n - right.right, right.n)))
    passed = _passed([wrong for _, wrong in tested], wanted)
    least, wrong = tested[passed - 1] if passed else (None, WilsonShare(0, 0))
    version, roster = verdicts[0].version, verdicts[0].roster
    return Limit(version, roster, least, len(taken), wrong.n, wrong.right, is_random)


def _passed(tested: Sequence[WilsonShare], wanted: float) -> int:
    """How many thresholds hold, the strictest first: MAPIE's controller would reorder them."""
    if not tested:
        return 0
    from mapie.risk_control.fwer_control import control_fwer
    from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

    shares = np.array([wrong.value for wrong in tested])
    sizes = np.array([wrong.n for wrong in tested])
    p_values = compute_hoeffding_bentkus_p_value(shares, sizes, wanted, binary=True)[:, 0]
    return len(control_fwer(p_values, 1.0 - ASSURANCE, "fixed_sequence"))


def curve(verdicts: Sequence[AnsweredVerdict]) -> list[ThresholdPoint]:
    """What answering from each confidence on gives, the strictest first; thinned out if many."""
    ordered = sorted(verdicts, key=lambda one: -one.confidence)
    points: list[ThresholdPoint] = []
    wrong = 0
    for place, one in enumerate(ordered, start=1):
        wrong += not one.is_right
        if place == len(ordered) or ordered[place].confidence < one.confidence:
            points.append(
                ThresholdPoint(one.confidence, place / len(ordered), WilsonShare(wrong, place))
            )
    step = -(-len(points) // MOST_POINTS) or 1
    return points[::-1][::step][::-1]


def area(verdicts: Sequence[AnsweredVerdict]) -> float:
    """The mean error rate over all shares answered (AURC), one confidence in any order."""
    total, before, wrong = 0.0, 0, 0.0
    groups: dict[float, list[AnsweredVerdict]] = defaultdict(list)
    for one in verdicts:
        groups[one.confidence].append(one)
    for _, own in sorted(groups.items(), reverse=True, key=lambda item: item[0]):
        rate = 1.0 - share_of(own).value
        total += sum((wrong + rate * k) / (before + k) for k in range(1, len(own) + 1))
        before, wrong = before + len(own), wrong + rate * len(own)
    return total / before if before else 0.0


def fit(
    store: Store, project: Project, by: str, now: float, known: TrackRecord | None = None
) -> Policy | None:
    """Fit a project's limits anew, outside of a transaction; None where it wants no rate."""
    if project.error_rate is None:
        with store.writing():
            # not `in_use`: one that was tampered with cannot be read, and must go as well
            choices = store.learned.choices(KIND, project.id)
            if choices and choices[0].number != NONE:
                store.learned.use(Choice(KIND, project.id, NONE, now, by, "no target is set"))
            reorder(store, project)
        return None
    found = known or counted(store, project.id)
    limits = [limit_of(verdicts, project.error_rate) for verdicts in found.groups.values()]
    body = body_of(project.error_rate, limits)
    with store.writing():
        number = store.learned.add(Learned(KIND, project.id, now, by, body))
        store.learned.use(Choice(KIND, project.id, number, now, by, ""))
        reorder(store, project)
    return policy_of(store, project)


def fit_all(store: Store, by: str, now: float) -> None:
    """Fit the limits of every project that wants a rate; one that fails has none till refitted."""
    for project in store.projects.all():
        if project.error_rate is not None:
            try:
                fit(store, project, by, now)
            except (ReviewError, sqlite3.Error) as error:
                LOGGER.warning("no limits were fitted for project %s: %r", project.id, error)
