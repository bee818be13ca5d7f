"""The corrections as training data: what is trained on, calibrated with, and held out.

A row is the judge's text of a run with the label that people gave it, or that a lead settled its
case as (CEDA 3.4). `unclear` is never trained on. Rows of one case (same question and response)
always lie on one side, and a case keeps its side for ever.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from core.exchange.rows import IMPORTED_SUFFIX
from core.runtime.errors import NotEnoughLabels
from core.schema.records import Label
from core.schema.reviews import Correction, GoldAnswer
from core.store import Store
from core.store.cases import compute_fingerprint
from core.store.review_queue import ItemFilter
from core.store.versions import HoldoutSide

MIN_CORRECTIONS_PER_LABEL = 8
HOLDOUT_SHARE = 0.25
CALIBRATION_SHARE = 0.15  # of the cases that are not held out
MIN_CASES_TO_SPLIT = 100  # such cases of each label, below which there is no calibration split
TRAINED_LABELS: tuple[Label, ...] = ("hallucinated", "supported")
LabelOrigin = Literal["answered", "settled", "imported"]
UnusableReason = Literal["unclear", "no_run", "no_verdict"]
DIFFERING_FILTER = ItemFilter(differ=True)


@dataclass(frozen=True)
class LabelledText:
    """A judge's text with its own p, if it gave one, and the right label; `group` is its case."""

    text: str
    label: Label
    p: float | None = None
    group: str = ""


@dataclass(frozen=True)
class TrainingRow:
    """A verdict text, its right label and its case (`group`); `p` is the judge's own."""

    text: str
    label: Label
    group: str
    correction_id: str
    run_id: str
    claim: str
    p: float | None = None
    case_id: str = ""
    author: str = ""
    language: str = "und"


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


def load_training_set(store: Store) -> TrainingSet:
    """Return all usable corrections by the sides that their cases have now."""
    return _split_by_side(*_collect_rows(store), store.versions.sides())


def grow_holdout(store: Store, now: float) -> TrainingSet:
    """Give every new case its side by rule, and return the set.

    A quarter of each label's cases is held out. Of the others about one in seven calibrates, as
    soon as each label has MIN_CASES_TO_SPLIT of them. New cases are taken in the order of their
    digests, which nobody can choose. Cases that have a side keep it.
    """
    with store.writing():
        rows, unusable = _collect_rows(store)
        sides = store.versions.sides()
        assigned = choose_sides(rows, sides)
        store.versions.assign_sides(assigned, now)
    return _split_by_side(rows, unusable, sides | assigned)


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


def _list_decisions(store: Store) -> Iterator[tuple[str, Correction | GoldAnswer]]:
    """Yield each corrected run with what counts for its case: settled, else the newest answer."""
    settled = store.golds.settled()
    newest = store.corrections.newest_by_case()
    seen_cases: set[str] = set()
    for correction in store.corrections.newest_by_run():
        seen_cases.add(correction.case_id)
        decision = settled.get(correction.case_id) or newest[correction.case_id]
        yield correction.run_id or "", decision
    for case_id, gold in settled.items():
        item = None if case_id in seen_cases else store.queue.get(case_id)
        if item is not None and item.run_id:
            yield item.run_id, gold


def _collect_rows(store: Store) -> tuple[list[TrainingRow], int]:
    rows: list[TrainingRow] = []
    unusable = 0
    for run_id, decision in _list_decisions(store):
        case = store.cases.get(decision.case_id)
        judgement = store.runs.judgement(run_id) if run_id else None
        if case is None or judgement is None or not judgement.text:
            unusable += 1
            continue
        if "unclear" in (decision.label, judgement.label):
            unusable += 1
            continue
        rows.append(
            TrainingRow(
                text=judgement.text,
                label=decision.label,
                group=compute_fingerprint(case.response, case.question),
                correction_id=decision.id,
                run_id=run_id,
                claim=case.response,
                p=judgement.p,
                case_id=case.id,
                author=decision.author,
                language=case.language,
            )
        )
    return rows, unusable


def compute_rows_digest(rows: Iterable[TrainingRow]) -> str:
    """Return a digest of which corrections a version was trained on."""
    ids = "\n".join(sorted(row.correction_id for row in rows))
    return hashlib.sha256(ids.encode()).hexdigest()


@dataclass(frozen=True)
class AttributedRow:
    """A usable row with the person whose label it carries, and where that comes from."""

    row: TrainingRow
    case_id: str
    project_id: str
    author: str
    language: str
    origin: LabelOrigin


@dataclass(frozen=True)
class LabelCounts:
    """Numbers of labels by person, language and origin; a person is (project, name)."""

    by_person: Mapping[tuple[str, str], Mapping[Label, int]]
    by_language: Mapping[str, Mapping[Label, int]]
    by_origin: Mapping[LabelOrigin, Mapping[Label, int]]


@dataclass(frozen=True)
class CorrectionOverview:
    """All corrections in numbers; `unusable` counts those without a lesson, by reason.

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
    data = load_training_set(store)
    decided = _decisions_by_id(store)
    usable = attribute_rows(store, data, decided)
    unusable = _count_unusable(data, decided)
    if unchecked := store.corrections.unchecked():
        unusable["no_run"] = unchecked
    return CorrectionOverview(
        data.counts(),
        data.missing(),
        len(data.held),
        len(data.train),
        len(data.calibration),
        len(data.fresh),
        _count_labels(usable),
        unusable,
    )


def count_conflicts(store: Store, project_id: str, now: float) -> int:
    """Return how many open cases of a project have answers that differ in label or marked words."""
    return store.queue.count(project_id, DIFFERING_FILTER, ("open",), now)


def attribute_rows(
    store: Store,
    data: TrainingSet | None = None,
    decided: Mapping[str, Correction | GoldAnswer] | None = None,
) -> tuple[AttributedRow, ...]:
    """Return all usable rows with the person whose label they carry, the newest answers last."""
    decisions = decided or _decisions_by_id(store)
    places = store.cases.places()
    dated: list[tuple[float, AttributedRow]] = []
    for row in (data or load_training_set(store)).rows:
        decision = decisions.get(row.correction_id)
        if decision is None:  # it was taken back meanwhile
            continue
        project_id, language = places.get(decision.case_id, ("", "und"))
        is_imported = decision.author.endswith(IMPORTED_SUFFIX)
        origin: LabelOrigin = "imported" if is_imported else "answered"
        if isinstance(decision, GoldAnswer):
            origin = "settled"
        taught_row = AttributedRow(
            row, decision.case_id, project_id, decision.author, language, origin
        )
        dated.append((decision.at, taught_row))
    return tuple(taught_row for _, taught_row in sorted(dated, key=lambda pair: pair[0]))


def _decisions_by_id(store: Store) -> dict[str, Correction | GoldAnswer]:
    decisions: dict[str, Correction | GoldAnswer] = {
        c.id: c for c in store.corrections.newest_by_run()
    }
    return decisions | {gold.id: gold for gold in store.golds.settled().values()}


def _count_labels(found: Iterable[AttributedRow]) -> LabelCounts:
    people: dict[tuple[str, str], Counter[Label]] = defaultdict(Counter)
    languages: dict[str, Counter[Label]] = defaultdict(Counter)
    origins: dict[LabelOrigin, Counter[Label]] = defaultdict(Counter)
    for one in found:
        people[one.project_id, one.author][one.row.label] += 1
        languages[one.language][one.row.label] += 1
        origins[one.origin][one.row.label] += 1
    return LabelCounts(people, languages, origins)


def _count_unusable(
    data: TrainingSet, decided: Mapping[str, Correction | GoldAnswer]
) -> dict[UnusableReason, int]:
    """Return how many decisions teach nothing, by reason; a settled case counts once."""
    used = {row.correction_id for row in data.rows}
    settled = {
        decision.case_id for decision in decided.values() if isinstance(decision, GoldAnswer)
    }
    reasons: Counter[UnusableReason] = Counter(
        "unclear" if decision.label == "unclear" else "no_verdict"
        for decision in decided.values()
        if decision.id not in used
        and (isinstance(decision, GoldAnswer) or decision.case_id not in settled)
    )
    return dict(reasons)
