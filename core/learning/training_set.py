"""The corrections as training data: what is trained on, calibrated with, and held out.

A row is the judge's text of a run with the label that counts as true for its case (CEDA 3.4). An
undecided case has none, and `unclear` is never trained on. Rows of one case (same question and
response) always lie on one side, and a case keeps its side for ever.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from core.runtime.errors import NotEnoughLabels
from core.schema.records import Label
from core.store import Store
from core.store.cases import compute_fingerprint
from core.store.ground_truth import GroundTruth, TruthBasis
from core.store.queries import find_taught_runs
from core.store.review_queue import DISPUTED_STATES, build_disputed_filter
from core.store.versions import HoldoutSide

MIN_CORRECTIONS_PER_LABEL = 8
HOLDOUT_SHARE = 0.25
CALIBRATION_SHARE = 0.15  # of the cases that are not held out
MIN_CASES_TO_SPLIT = 100  # such cases of each label, below which there is no calibration split
TRAINED_LABELS: tuple[Label, ...] = ("hallucinated", "supported")
UnusableReason = Literal["disputed", "waiting", "unclear", "no_run", "no_verdict"]


@dataclass(frozen=True)
class LabelledText:
    """A judge's text with its own p, if it gave one, and the right label; `group` is its case."""

    text: str
    label: Label
    p: float | None = None
    group: str = ""


@dataclass(frozen=True)
class TrainingRow:
    """A verdict text, its right label and its case (`group`); `judged` and `p` are the judge's own.

    `correction_id` names what the label rests on; `people` are all who gave it. `by_tool`: a tool
    computed the judge's result, so no classifier changes it.
    """

    text: str
    label: Label
    group: str
    correction_id: str
    run_id: str
    claim: str
    p: float | None = None
    case_id: str = ""
    people: tuple[str, ...] = ()
    language: str = "und"
    judged: Label | None = None
    by_tool: bool = False


@dataclass(frozen=True)
class TrainingSet:
    """Rows by side; `fresh` rows have no side yet and may be held out by the next training."""

    train: tuple[TrainingRow, ...]
    held: tuple[TrainingRow, ...]
    unusable: int
    fresh: tuple[TrainingRow, ...] = ()
    calibration: tuple[TrainingRow, ...] = ()

    @property
    def rows(self) -> tuple[TrainingRow, ...]:
        """All usable rows."""
        return (*self.train, *self.calibration, *self.held, *self.fresh)

    @property
    def settled(self) -> TrainingSet:
        """The set without its fresh rows."""
        return replace(self, fresh=())

    def counts(self) -> dict[str, int]:
        """Return how many usable corrections each label has."""
        counter = Counter(row.label for row in self.rows)
        return {label: counter[label] for label in TRAINED_LABELS}

    def missing(self) -> dict[str, int]:
        """Return how many more corrections each label needs before training may start."""
        lacking = {label: MIN_CORRECTIONS_PER_LABEL - n for label, n in self.counts().items()}
        return {label: n for label, n in lacking.items() if n > 0}

    def require_enough(self) -> None:
        """Raise NotEnoughLabels if a label has too few corrections."""
        if missing := self.missing():
            words = " and ".join(f"{n} more {label}" for label, n in missing.items())
            counts = " and ".join(f"{n} {label}" for label, n in self.counts().items())
            raise NotEnoughLabels(
                f"Expected at least {MIN_CORRECTIONS_PER_LABEL} corrections of each label, found "
                f"{counts}; correct or confirm {words}.",
                counts=self.counts(),
            )


def load_training_set(store: Store, truths: Mapping[str, GroundTruth] | None = None) -> TrainingSet:
    """Return all usable corrections by the sides that their cases have now."""
    return _split_by_side(*_collect_rows(store, truths), store.versions.sides())


def grow_holdout(store: Store, now: float) -> TrainingSet:
    """Give every new case its side by rule, and return the set.

    A quarter of each label's cases is held out. Of the others about one in seven calibrates, as
    soon as each label has MIN_CASES_TO_SPLIT of them. New cases are taken in the order of their
    digests, which nobody can choose. Cases that have a side keep it.
    """
    rows, unusable = _collect_rows(store)  # outside the transaction: others want to write
    assigned = choose_sides(rows, store.versions.sides())
    with store.writing():
        store.versions.assign_sides(assigned, now)
    return _split_by_side(rows, unusable, store.versions.sides())


def _split_by_side(
    rows: Iterable[TrainingRow], unusable: int, sides: Mapping[str, HoldoutSide]
) -> TrainingSet:
    by_side: dict[HoldoutSide | None, list[TrainingRow]] = defaultdict(list)
    for row in rows:
        by_side[sides.get(row.group)].append(row)
    names: tuple[HoldoutSide | None, ...] = ("train", "holdout", None, "calibration")
    train, held, fresh, calibration = (tuple(by_side[name]) for name in names)
    return TrainingSet(train, held, unusable, fresh, calibration)


def choose_sides(
    rows: Iterable[TrainingRow], sides: Mapping[str, HoldoutSide]
) -> dict[str, HoldoutSide]:
    """Return sides for the groups that have none yet."""
    label_of: dict[str, Label] = {row.group: row.label for row in rows}
    groups = {label: [g for g, own in label_of.items() if own == label] for label in TRAINED_LABELS}
    held = {label: round(HOLDOUT_SHARE * len(own)) for label, own in groups.items()}
    is_split = all(len(own) - held[label] >= MIN_CASES_TO_SPLIT for label, own in groups.items())
    assigned: dict[str, HoldoutSide] = {}
    for label, label_groups in groups.items():
        taken = Counter(sides.get(group) for group in label_groups)
        wanted_calibration = 0
        if is_split:
            wanted_calibration = round(CALIBRATION_SHARE * (len(label_groups) - held[label]))
        n_holdout = max(0, held[label] - taken["holdout"])
        n_calibration = max(0, wanted_calibration - taken["calibration"])
        for place, group in enumerate(sorted(set(label_groups) - set(sides))):
            if place < n_holdout:
                assigned[group] = "holdout"
            elif place < n_holdout + n_calibration:
                assigned[group] = "calibration"
            else:
                assigned[group] = "train"
    return assigned


def _collect_rows(
    store: Store, truths: Mapping[str, GroundTruth] | None = None
) -> tuple[list[TrainingRow], int]:
    truths = store.truths.labels() if truths is None else truths
    rows: list[TrainingRow] = []
    unusable = 0
    for case_id, run_ids in find_taught_runs(store).items():
        truth = truths.get(case_id)
        if truth is None or truth.label is None:
            continue
        case = store.cases.get(case_id)
        for run_id in run_ids:
            judgement = store.runs.judgement(run_id)
            if case is None or judgement is None or not judgement.text:
                unusable += 1
                continue
            if "unclear" in (truth.label, judgement.label):
                unusable += 1
                continue
            rows.append(
                TrainingRow(
                    text=judgement.text,
                    label=truth.label,
                    group=compute_fingerprint(case.response, case.question),
                    correction_id="+".join(truth.ids),
                    run_id=run_id,
                    claim=case.response,
                    p=judgement.p,
                    case_id=case.id,
                    people=truth.people,
                    language=case.language,
                    judged=judgement.label,
                    by_tool=bool(judgement.by_tool),
                )
            )
    return rows, unusable


def compute_rows_digest(rows: Iterable[TrainingRow]) -> str:
    """Return a digest of which corrections a version was trained on."""
    ids = "\n".join(sorted(row.correction_id for row in rows))
    return hashlib.sha256(ids.encode()).hexdigest()


@dataclass(frozen=True)
class AttributedRow:
    """A usable row with all people whose answer its label is, and what makes it count."""

    row: TrainingRow
    case_id: str
    project_id: str
    people: tuple[str, ...]
    language: str
    basis: TruthBasis


@dataclass(frozen=True)
class LabelCounts:
    """Numbers of labels by person, language and basis; a person is (project, name).

    A label that several people gave counts for each of them.
    """

    by_person: Mapping[tuple[str, str], Mapping[Label, int]]
    by_language: Mapping[str, Mapping[Label, int]]
    by_basis: Mapping[TruthBasis, Mapping[Label, int]]


@dataclass(frozen=True)
class CorrectionOverview:
    """All corrections in numbers; `unusable` counts cases without a lesson, by reason.

    Those of `labels` are held out, trained on, used for calibration, or have no side yet (`fresh`).
    """

    labels: Mapping[str, int]
    missing: Mapping[str, int]
    held: int
    trained: int
    calibration: int
    fresh: int
    counts: LabelCounts
    unusable: Mapping[UnusableReason, int]


def summarize_corrections(store: Store) -> CorrectionOverview:
    """Return the numbers over all projects; one classifier learns from all of them."""
    truths = store.truths.labels()
    data = load_training_set(store, truths)
    return CorrectionOverview(
        data.counts(),
        data.missing(),
        len(data.held),
        len(data.train),
        len(data.calibration),
        len(data.fresh),
        _count_labels(attribute_rows(store, data, truths)),
        _count_unusable(store, data, truths),
    )


def count_disputed(store: Store, project_id: str, now: float) -> int:
    """Return how many cases of a project wait for a lead because people do not agree."""
    project = store.projects.get(project_id)
    if project is None:
        return 0
    return store.queue.count(project_id, build_disputed_filter(project), DISPUTED_STATES, now)


def attribute_rows(
    store: Store,
    data: TrainingSet | None = None,
    truths: Mapping[str, GroundTruth] | None = None,
) -> tuple[AttributedRow, ...]:
    """Return all usable rows with the people whose label they carry, the newest answers last."""
    known = store.truths.labels() if truths is None else truths
    places = store.cases.places()
    dated: list[tuple[float, AttributedRow]] = []
    for row in (data or load_training_set(store, known)).rows:
        truth = known.get(row.case_id)
        if truth is None or truth.basis is None:  # it was taken back meanwhile
            continue
        project_id, language = places.get(row.case_id, ("", "und"))
        attributed = AttributedRow(
            row, row.case_id, project_id, truth.people, language, truth.basis
        )
        dated.append((truth.at, attributed))
    return tuple(attributed for _, attributed in sorted(dated, key=lambda pair: pair[0]))


def _count_labels(found: Iterable[AttributedRow]) -> LabelCounts:
    people: dict[tuple[str, str], Counter[Label]] = defaultdict(Counter)
    languages: dict[str, Counter[Label]] = defaultdict(Counter)
    bases: dict[TruthBasis, Counter[Label]] = defaultdict(Counter)
    for one in found:
        for person in one.people:
            people[one.project_id, person][one.row.label] += 1
        languages[one.language][one.row.label] += 1
        bases[one.basis][one.row.label] += 1
    return LabelCounts(people, languages, bases)


def _count_unusable(
    store: Store, data: TrainingSet, truths: Mapping[str, GroundTruth]
) -> dict[UnusableReason, int]:
    """Return how many cases teach nothing though somebody answered them, by reason."""
    used = {row.case_id for row in data.rows}
    runs = find_taught_runs(store)
    reasons: Counter[UnusableReason] = Counter()
    for case_id, truth in truths.items():
        if truth.state != "decided":
            reasons[truth.state] += 1
        elif case_id not in used:
            is_unclear = truth.label == "unclear"
            reasons["unclear" if is_unclear else "no_verdict" if case_id in runs else "no_run"] += 1
    return dict(reasons)
