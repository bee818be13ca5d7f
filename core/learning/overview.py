"""What there is to learn from, counted: by label, person, language and source; what is unusable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from core.exchange.rows import IMPORTED
from core.learning.training_set import Row, TrainingSet, training_set
from core.records import Label
from core.reviews import Correction, Gold
from core.store import Store
from core.store.queue import ItemFilter

Origin = Literal["answered", "settled", "imported"]
Reason = Literal["unclear", "no_run", "no_verdict"]
DIFFERING = ItemFilter(differ=True)


@dataclass(frozen=True)
class Taught:
    """A usable row with whose label it carries, and where that comes from."""

    row: Row
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
    rows = (data or training_set(store)).rows
    known = decided or _decided(store)
    places = store.cases.places()
    found: list[tuple[float, Taught]] = []
    for row in rows:
        said = known.get(row.correction_id)
        if said is None:  # somebody took it back meanwhile
            continue
        project_id, language = places.get(said.case_id, ("", "und"))
        one = Taught(row, said.case_id, project_id, said.author, language, _origin_of(said))
        found.append((said.at, one))
    return tuple(one for _, one in sorted(found, key=lambda pair: pair[0]))


def _decided(store: Store) -> dict[str, Correction | Gold]:
    """What may count for a run or a case, by id."""
    found: dict[str, Correction | Gold] = {c.id: c for c in store.corrections.newest_by_run()}
    return found | {gold.id: gold for gold in store.golds.settled().values()}


def _origin_of(said: Correction | Gold) -> Origin:
    if isinstance(said, Gold):
        return "settled"
    return "imported" if said.author.endswith(IMPORTED) else "answered"


def _counts(found: Iterable[Taught]) -> Counts:
    people: dict[tuple[str, str], Counter[Label]] = {}
    languages: dict[str, Counter[Label]] = {}
    origins: dict[Origin, Counter[Label]] = {}
    for one in found:
        people.setdefault((one.project_id, one.author), Counter())[one.row.label] += 1
        languages.setdefault(one.language, Counter())[one.row.label] += 1
        origins.setdefault(one.origin, Counter())[one.row.label] += 1
    return Counts(people, languages, origins)


def _unusable(data: TrainingSet, decided: Mapping[str, Correction | Gold]) -> dict[Reason, int]:
    """Why decisions teach nothing; a settled case's earlier answers are not counted again."""
    used = {row.correction_id for row in data.rows}
    settled = {said.case_id for said in decided.values() if isinstance(said, Gold)}
    found: Counter[Reason] = Counter()
    for said in decided.values():
        is_gold = isinstance(said, Gold)
        if said.id in used or (not is_gold and said.case_id in settled):
            continue
        found["unclear" if said.label == "unclear" else "no_verdict"] += 1
    return dict(found)
