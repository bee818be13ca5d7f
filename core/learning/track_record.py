"""How often past verdicts at a level of confidence were right, and which need no person.

The record is updated with what was said since: going through 100,000 corrections takes seconds,
looking at the cases that changed a few milliseconds. A limit is the confidence from which on a
project's verdicts need no person (selective prediction).
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

from core.learning.metrics import make_aurc
from core.review.queue_ranking import (
    ASSURANCE,
    LIMIT_KIND,
    AutomationPolicy,
    ConfidenceLimit,
    apply_policy,
    check_error_rate,
    dump_limits,
    load_policy,
)
from core.runtime.errors import ReviewError
from core.schema.records import Label, Project
from core.store import Store
from core.store.answered_verdicts import AnsweredVerdict, VerdictKey
from core.store.versions import NOTHING_LEARNED, ArtefactChoice, LearnedArtefact

LEVEL_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
# The one rule of all pages: of fewer cases only the count is shown and no point is drawn, because
# the 95% interval of their share may be wider than a third of the scale.
MIN_CASES = 30
LEVEL_COUNT = len(LEVEL_EDGES) - 1
Z_95 = 1.959964
RecordCell = tuple[str, str, bool, int]  # a version, a roster, whether tools decided, a level
LOGGER = logging.getLogger(__name__)
# Fixed in advance: a threshold chosen from the answers would promise too much.
CONFIDENCE_THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99)
MIN_RANDOM_VERDICTS = 100  # drawn at random or known before; from these on no others are used
ERROR_RATE_CHOICES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
MAX_CURVE_POINTS = 200


@dataclass(frozen=True)
class WilsonShare:
    """A share, `right` of `n`, with Wilson's 95 % interval.

    `design_effect` is by how much groups of related cases widen its variance.
    """

    right: int
    n: int
    design_effect: float = 1.0

    @property
    def value(self) -> float:
        """The share; 0 if `n` is 0."""
        return self.right / self.n if self.n else 0.0

    @cached_property
    def interval(self) -> tuple[float, float]:
        """(lower, upper) bound; (0, 1) without any data."""
        if not self.n:
            return 0.0, 1.0
        p, z_squared, n = self.value, Z_95 * Z_95, self.n / self.design_effect
        centre = (p + z_squared / (2 * n)) / (1 + z_squared / n)
        deviation = math.sqrt(p * (1 - p) / n + z_squared / (4 * n * n))
        half = Z_95 * deviation / (1 + z_squared / n)
        return max(0.0, centre - half), min(1.0, centre + half)

    @property
    def is_thin(self) -> bool:
        """True if there are too few to say anything."""
        return self.n < MIN_CASES


@dataclass(frozen=True)
class LevelRecord:
    """How verdicts at a level of confidence did; `label` None means both labels together."""

    low: float
    high: float
    looked_at: int
    share: WilsonShare | None = None
    label: Label | None = None
    is_random: bool = False


@dataclass(frozen=True)
class TrackRecord:
    """All answered verdicts of a project, with the marks up to which they were counted."""

    cells: Mapping[RecordCell, Mapping[VerdictKey, AnsweredVerdict]]
    corrections: float = 0.0
    golds: float = 0.0
    ended: float = 0.0
    runs: float = 0.0
    scores: str = ""

    @cached_property
    def groups(self) -> dict[tuple[str, str], tuple[AnsweredVerdict, ...]]:
        """The verdicts by version and roster, the largest group first."""
        verdicts: dict[tuple[str, str], tuple[AnsweredVerdict, ...]] = defaultdict(tuple)
        for (version, roster, _, _), cell in self.cells.items():
            verdicts[version, roster] += tuple(cell.values())
        return dict(sorted(verdicts.items(), key=lambda item: (-len(item[1]), item[0])))

    def standing(
        self, version: str, roster: str, label: Label, confidence: float, *, by_tool: bool = False
    ) -> LevelRecord:
        """Return how such verdicts did: of this label, else of both; first those at random."""
        level = find_level(confidence)
        at_level = list(self.cells.get((version, roster, by_tool, level), {}).values())
        of_label = [one for one in at_level if one.label == label]
        low, high = LEVEL_EDGES[level], LEVEL_EDGES[level + 1]
        for verdicts, set_label in ((of_label, label), (at_level, None)):
            at_random = [one for one in verdicts if one.is_random]
            for chosen, is_random in ((at_random, True), (verdicts, False)):
                if len(chosen) >= MIN_CASES:
                    share = compute_right_share(chosen)
                    return LevelRecord(low, high, len(at_level), share, set_label, is_random)
        return LevelRecord(low, high, len(at_level))


def find_level(confidence: float) -> int:
    """Return the number of the `LEVEL_EDGES` interval that holds a confidence in [0.5, 1]."""
    return max(0, bisect_right(LEVEL_EDGES, confidence, hi=LEVEL_COUNT) - 1)


def compute_right_share(verdicts: Iterable[AnsweredVerdict]) -> WilsonShare:
    """Return the share of verdicts that are right."""
    right = [one.is_right for one in verdicts]
    return WilsonShare(sum(right), len(right))


def group_by_level(verdicts: Iterable[AnsweredVerdict]) -> list[list[AnsweredVerdict]]:
    """Return the verdicts by level, in the order of `LEVEL_EDGES`."""
    by_level: list[list[AnsweredVerdict]] = [[] for _ in range(LEVEL_COUNT)]
    for one in verdicts:
        by_level[find_level(one.confidence)].append(one)
    return by_level


def count_track_record(store: Store, project_id: str) -> TrackRecord:
    """Count the project's record from the beginning; seconds if there are very many answers."""
    marks = _read_marks(store)  # before the answers, so that nothing in between is missed
    return TrackRecord(group_into_cells(store.answered.of(project_id)), *marks)


def renew_track_record(store: Store, project_id: str, before: TrackRecord) -> TrackRecord | None:
    """Return the record with what changed since, or None if old verdicts changed: count anew."""
    marks = _read_marks(store)
    texts, new_runs = store.answered.changed(
        project_id, before.corrections, before.golds, before.ended
    )
    if marks[-1] != before.scores or marks[3] != before.runs + new_runs:
        return None
    if not texts:  # all changes were in other projects
        counts = (before.corrections, before.golds, before.ended, before.runs)
        return TrackRecord(before.cells, *marks) if marks[:4] != counts else before
    changed = set(texts.values())
    cells = {cell: _without(verdicts, cell, changed) for cell, verdicts in before.cells.items()}
    for cell, verdicts in group_into_cells(store.answered.of(project_id, list(texts))).items():
        cells[cell] = {**cells.get(cell, {}), **verdicts}
    return TrackRecord({cell: verdicts for cell, verdicts in cells.items() if verdicts}, *marks)


def group_into_cells(
    verdicts: Iterable[AnsweredVerdict],
) -> dict[RecordCell, Mapping[VerdictKey, AnsweredVerdict]]:
    """Return the verdicts by cell, as a record stores them."""
    cells: dict[RecordCell, dict[VerdictKey, AnsweredVerdict]] = defaultdict(dict)
    for one in verdicts:
        cell = (one.version, one.roster, one.by_tool, find_level(one.confidence))
        cells[cell][one.text, one.version, one.roster] = one
    return dict(cells)


def _without(
    verdicts: Mapping[VerdictKey, AnsweredVerdict], cell: RecordCell, texts: Collection[str]
) -> Mapping[VerdictKey, AnsweredVerdict]:
    """Return the cell without these texts; the same object if it has none of them."""
    removed = {key for text in texts if (key := (text, cell[0], cell[1])) in verdicts}
    if not removed:
        return verdicts
    return {key: one for key, one in verdicts.items() if key not in removed}


def _read_marks(store: Store) -> tuple[float, float, float, float, str]:
    corrections, golds, rules = store.changes.of_corrections()
    runs, ended, _, scored_again = store.changes.of_runs()
    scores = f"{store.versions.active()} {scored_again:.0f} {rules}"
    return corrections, golds, ended, runs, scores


@dataclass(frozen=True)
class ThresholdPoint:
    """A threshold with the share of verdicts answered at or above it, and how many were wrong."""

    threshold: float
    answered: float
    wrong: WilsonShare


def count_needed_verdicts(wanted: float) -> int:
    """Return how many answered verdicts a promise takes if none of them is wrong."""
    return math.ceil(math.log(1.0 - ASSURANCE) / math.log(1.0 - wanted))


def select_fitting_verdicts(
    verdicts: Sequence[AnsweredVerdict],
) -> tuple[Sequence[AnsweredVerdict], bool]:
    """Return (verdicts to fit a limit on, whether these are only unselected ones)."""
    at_random = [one for one in verdicts if one.is_random]
    return (at_random, True) if len(at_random) >= MIN_RANDOM_VERDICTS else (verdicts, False)


def fit_limit(verdicts: Sequence[AnsweredVerdict], wanted: float) -> ConfidenceLimit:
    """Return the lowest threshold that keeps the error rate, for verdicts of one kind.

    From the strictest on, thresholds are tested against the hypothesis that the share of wrong
    verdicts is the wanted one or more; those that pass hold together with 90 % certainty (Learn
    then Test: Angelopoulos and others 2022). The answered verdicts must be like future ones; if
    people were asked about unsure ones first, the limit is rather too strict. Raises InputError:
    the rate cannot be kept.
    """
    check_error_rate(wanted)
    used, is_random = select_fitting_verdicts(verdicts)
    tested = []
    for threshold in reversed(CONFIDENCE_THRESHOLDS):
        right = compute_right_share(one for one in used if one.confidence >= threshold)
        # Start where the test can pass: the number of verdicts does not depend on the wrong ones.
        if right.n >= count_needed_verdicts(wanted):
            tested.append((threshold, WilsonShare(right.n - right.right, right.n)))
    n_passed = _count_passed([wrong for _, wrong in tested], wanted)
    lowest, wrong = tested[n_passed - 1] if n_passed else (None, WilsonShare(0, 0))
    version, roster = verdicts[0].version, verdicts[0].roster
    return ConfidenceLimit(version, roster, lowest, len(used), wrong.n, wrong.right, is_random)


def _count_passed(tested: Sequence[WilsonShare], wanted: float) -> int:
    """Return how many thresholds hold, strictest first; MAPIE's controller would reorder them."""
    if not tested:
        return 0
    from mapie.risk_control.fwer_control import control_fwer
    from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

    shares = np.array([wrong.value for wrong in tested])
    sizes = np.array([wrong.n for wrong in tested])
    p_values = compute_hoeffding_bentkus_p_value(shares, sizes, wanted, binary=True)[:, 0]
    return len(control_fwer(p_values, 1.0 - ASSURANCE, "fixed_sequence"))


def build_risk_curve(verdicts: Sequence[AnsweredVerdict]) -> list[ThresholdPoint]:
    """Return the risk-coverage curve, the strictest threshold first; thinned out if long."""
    ordered = sorted(verdicts, key=lambda one: -one.confidence)
    points: list[ThresholdPoint] = []
    wrong = 0
    for place, one in enumerate(ordered, start=1):
        wrong += not one.is_right
        if place == len(ordered) or ordered[place].confidence < one.confidence:
            points.append(
                ThresholdPoint(one.confidence, place / len(ordered), WilsonShare(wrong, place))
            )
    step = -(-len(points) // MAX_CURVE_POINTS) or 1
    return points[::-1][::step][::-1]


def compute_aurc(verdicts: Sequence[AnsweredVerdict]) -> float:
    """Return the mean error rate over all coverages (AURC); equal confidences in any order."""
    if not verdicts:
        return 0.0
    wrong = np.array([not one.is_right for one in verdicts])
    confidence = np.array([one.confidence for one in verdicts])
    return float(make_aurc(wrong, confidence)(np.ones((1, len(verdicts))))[0])


def fit_limits(
    store: Store, project: Project, by: str, now: float, known: TrackRecord | None = None
) -> AutomationPolicy | None:
    """Fit a project's limits anew, outside of a transaction; None if it wants no error rate."""
    if project.error_rate is None:
        with store.writing():
            # Not `in_use`: a policy that was tampered with cannot be read, but must go as well.
            choices = store.learned.choices(LIMIT_KIND, project.id)
            if choices and choices[0].number != NOTHING_LEARNED:
                store.learned.use(
                    ArtefactChoice(
                        LIMIT_KIND, project.id, NOTHING_LEARNED, now, by, "no target is set"
                    )
                )
            apply_policy(store, project)
        return None
    record = known or count_track_record(store, project.id)
    limits = [fit_limit(verdicts, project.error_rate) for verdicts in record.groups.values()]
    body = dump_limits(project.error_rate, limits)
    with store.writing():
        number = store.learned.add(LearnedArtefact(LIMIT_KIND, project.id, now, by, body))
        store.learned.use(ArtefactChoice(LIMIT_KIND, project.id, number, now, by, ""))
        apply_policy(store, project)
    return load_policy(store, project)


def fit_all_limits(store: Store, by: str, now: float) -> None:
    """Fit the limits of each project that wants an error rate; after a failure it has none."""
    for project in store.projects.all():
        if project.error_rate is not None:
            try:
                fit_limits(store, project, by, now)
            except (ReviewError, sqlite3.Error) as error:
                LOGGER.warning("no limits were fitted for project %s: %r", project.id, error)
