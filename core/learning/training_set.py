"""The corrections as something to learn from: what is trained on, calibrated with, and held out.

A row is the judge's text of a run with the label that people gave it, or that a lead settled its
case as (CEDA 3.4). `unclear` is never trained on. Rows of one case (same question and response)
always lie on one side; a case keeps its side for ever.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from core.exchange.rows import IMPORTED
from core.runtime.errors import NotEnoughLabels
from core.schema.records import Label
from core.schema.reviews import Correction, Gold
from core.store import Store
from core.store.cases import fingerprint
from core.store.queue import ItemFilter
from core.store.versions import Side


@dataclass(frozen=True)
class Lesson:
    """A judge's text with its own p, if it gave one, and the label; `group` is its case."""

    text: str
    label: Label
    p: float | None = None
    group: str = ""


FEWEST_PER_LABEL = 8
HELD_SHARE = 0.25
CALIBRATION_SHARE = 0.15  # of the cases that are not held out
FEWEST_TO_SPLIT = 100  # such cases of each label; before, a calibration split would tell nothing
LABELS: tuple[Label, ...] = ("hallucinated", "supported")


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
    """Rows by side; `fresh` have none yet: the next training may hold them out."""

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
        """How many usable corrections each label has."""
        counted = Counter(row.label for row in self.rows)
        return {label: counted[label] for label in LABELS}

    def missing(self) -> dict[str, int]:
        """How many more corrections each label needs before training may start."""
        lacking = {label: FEWEST_PER_LABEL - n for label, n in self.counts().items()}
        return {label: n for label, n in lacking.items() if n > 0}

    def require_enough(self) -> None:
        """Raise `NotEnoughLabels` when a label has too few corrections."""
        if missing := self.missing():
            words = " and ".join(f"{n} more {label}" for label, n in missing.items())
            found = " and ".join(f"{n} {label}" for label, n in self.counts().items())
            raise NotEnoughLabels(
                f"Expected at least {FEWEST_PER_LABEL} corrections of each label, found "
                f"{found}; correct or confirm {words}.",
                counts=self.counts(),
            )


def training_set(store: Store) -> TrainingSet:
    """All usable corrections as the hold-out has them."""
    return _parted(*_rows(store), store.versions.sides())


def grow_holdout(store: Store, now: float) -> TrainingSet:
    """Give every new case its side by rule, then return the set.

    Within each label a quarter of the cases is held out, and of the others about one in seven
    calibrates as soon as each label has FEWEST_TO_SPLIT of them. New cases are taken in the order
    of their digests, which nobody can choose. Cases that have a side keep it.
    """
    with store.writing():
        rows, unusable = _rows(store)
        sides = store.versions.sides()
        assigned = new_sides(rows, sides)
        store.versions.assign_sides(assigned, now)
    return _parted(rows, unusable, sides | assigned)


def _parted(rows: Iterable[TrainingRow], unusable: int, sides: Mapping[str, Side]) -> TrainingSet:
    by_side: dict[Side | None, list[TrainingRow]] = defaultdict(list)
    for row in rows:
        by_side[sides.get(row.group)].append(row)
    names: tuple[Side | None, ...] = ("train", "holdout", None, "calibration")
    train, held, fresh, calibration = (tuple(by_side[name]) for name in names)
    return TrainingSet(train, held, unusable, fresh, calibration)


def new_sides(rows: Iterable[TrainingRow], sides: Mapping[str, Side]) -> dict[str, Side]:
    """Sides for the groups that have none yet."""
    label_of: dict[str, Label] = {row.group: row.label for row in rows}
    groups = {label: [g for g, own in label_of.items() if own == label] for label in LABELS}
    held = {label: round(HELD_SHARE * len(own)) for label, own in groups.items()}
    is_split = all(len(own) - held[label] >= FEWEST_TO_SPLIT for label, own in groups.items())
    assigned: dict[str, Side] = {}
    for label, own in groups.items():
        known = Counter(sides.get(group) for group in own)
        calibrating = round(CALIBRATION_SHARE * (len(own) - held[label])) if is_split else 0
        to_hold = max(0, held[label] - known["holdout"])
        to_calibrate = max(0, calibrating - known["calibration"])
        for place, group in enumerate(sorted(group for group in own if group not in sides)):
            is_spared = place >= to_hold + to_calibrate
            assigned[group] = (
                "holdout" if place < to_hold else "train" if is_spared else "calibration"
            )
    return assigned


def _decisions(store: Store) -> Iterator[tuple[str, Correction | Gold]]:
    """Each corrected run with what counts for its case: settled, else the newest answer."""
    settled = store.golds.settled()
    newest = store.corrections.newest_by_case()
    known: set[str] = set()
    for correction in store.corrections.newest_by_run():
        known.add(correction.case_id)
        last = settled.get(correction.case_id) or newest[correction.case_id]
        yield correction.run_id or "", last
    for case_id, gold in settled.items():
        item = None if case_id in known else store.queue.get(case_id)
        if item is not None and item.run_id:
            yield item.run_id, gold


def _rows(store: Store) -> tuple[list[TrainingRow], int]:
    rows: list[TrainingRow] = []
    unusable = 0
    for run_id, said in _decisions(store):
        case = store.cases.get(said.case_id)
        found = store.runs.judgement(run_id) if run_id else None
        if found is None or "unclear" in (said.label, found.label) or not case or not found.text:
            unusable += 1
            continue
        key, who = fingerprint(case.response, case.question), (case.id, said.author, case.language)
        own = (said.id, run_id, case.response, found.p)
        rows.append(TrainingRow(found.text, said.label, key, *own, *who))
    return rows, unusable


def digest_of(rows: Iterable[TrainingRow]) -> str:
    """Names exactly which corrections a version was trained on."""
    ids = "\n".join(sorted(row.correction_id for row in rows))
    return hashlib.sha256(ids.encode()).hexdigest()


Origin = Literal["answered", "settled", "imported"]
Reason = Literal["unclear", "no_run", "no_verdict"]
DIFFERING = ItemFilter(differ=True)


@dataclass(frozen=True)
class Taught:
    """A usable row with whose label it carries, and where that comes from."""

    row: TrainingRow
    case_id: str
    project_id: str
    author: str
    language: str
    origin: Origin


@dataclass(frozen=True)
class Counts:
    """Labels counted by person, language and origin; a person is (project, name)."""

    by_person: Mapping[tuple[str, str], Mapping[Label, int]]
    by_language: Mapping[str, Mapping[Label, int]]
    by_origin: Mapping[Origin, Mapping[Label, int]]


@dataclass(frozen=True)
class Overview:
    """Everything in numbers; `unusable` counts what nothing can be learned from, by reason."""

    labels: Mapping[str, int]
    missing: Mapping[str, int]
    held: int
    counts: Counts
    unusable: Mapping[Reason, int]


def overview(store: Store) -> Overview:
    """The numbers over all projects: one classifier learns from all of them."""
    data = training_set(store)
    decided = _decided(store)
    found = taught(store, data, decided)
    unusable = _unusable(data, decided)
    if unchecked := store.corrections.unchecked():
        unusable["no_run"] = unchecked
    return Overview(data.counts(), data.missing(), len(data.held), _counts(found), unusable)


def conflicts(store: Store, project_id: str, now: float) -> int:
    """How many open cases of a project people answer differently, in labels or marked words."""
    return store.queue.count(project_id, DIFFERING, ("open",), now)


def taught(
    store: Store,
    data: TrainingSet | None = None,
    decided: Mapping[str, Correction | Gold] | None = None,
) -> tuple[Taught, ...]:
    """All usable rows with whose label they carry, the newest answers last."""
    known = decided or _decided(store)
    places = store.cases.places()
    found: list[tuple[float, Taught]] = []
    for row in (data or training_set(store)).rows:
        said = known.get(row.correction_id)
        if said is None:  # somebody took it back meanwhile
            continue
        project_id, language = places.get(said.case_id, ("", "und"))
        is_imported = said.author.endswith(IMPORTED)
        origin: Origin = "imported" if is_imported else "answered"
        if isinstance(said, Gold):
            origin = "settled"
        one = Taught(row, said.case_id, project_id, said.author, language, origin)
        found.append((said.at, one))
    return tuple(one for _, one in sorted(found, key=lambda pair: pair[0]))


def _decided(store: Store) -> dict[str, Correction | Gold]:
    found: dict[str, Correction | Gold] = {c.id: c for c in store.corrections.newest_by_run()}
    return found | {gold.id: gold for gold in store.golds.settled().values()}


def _counts(found: Iterable[Taught]) -> Counts:
    people: dict[tuple[str, str], Counter[Label]] = defaultdict(Counter)
    languages: dict[str, Counter[Label]] = defaultdict(Counter)
    origins: dict[Origin, Counter[Label]] = defaultdict(Counter)
    for one in found:
        people[one.project_id, one.author][one.row.label] += 1
        languages[one.language][one.row.label] += 1
        origins[one.origin][one.row.label] += 1
    return Counts(people, languages, origins)


def _unusable(data: TrainingSet, decided: Mapping[str, Correction | Gold]) -> dict[Reason, int]:
    """Why decisions teach nothing; a settled case's earlier answers are not counted again."""
    used = {row.correction_id for row in data.rows}
    settled = {said.case_id for said in decided.values() if isinstance(said, Gold)}
    found: Counter[Reason] = Counter(
        "unclear" if said.label == "unclear" else "no_verdict"
        for said in decided.values()
        if said.id not in used and (isinstance(said, Gold) or said.case_id not in settled)
    )
    return dict(found)
