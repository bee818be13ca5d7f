"""The corrections as something to learn from: what is trained on, calibrated with, and held out.

A row is the judge's text of a run with the label that people gave it, or that a lead settled its
case as (CEDA 3.4). `unclear` is never trained on. Rows of one case (same question and response)
always lie on one side; a case keeps its side for ever.

Judge's texts for labelled claims, by running the built-in pipeline over them as it is. Used for
the seed head (trained once, over public sets) and for the seed texts that every retraining starts
from. Source: CEDA 4.2 (debate summaries are the training instances).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from core.agents.rosters import roster_named
from core.baseline.encoder import load_multilingual_encoder
from core.concurrency import Stop
from core.config import Settings
from core.errors import NotEnoughLabels
from core.learning.bench import Material, opened_bench
from core.llm.encoder import Embedder
from core.pipeline.review import Resources
from core.pipeline.run_factory import Staff
from core.progress import Progress
from core.records import Judgement, Label, Plan
from core.store import Store
from core.store.cases import fingerprint
from core.store.versions import Side
from core.verdict.classifier import Classifier
from core.verdict.head import Head


@dataclass(frozen=True)
class LabelledClaim:
    """A claim over texts, with the label people gave it; `group` holds related rows together."""

    claim: str
    texts: tuple[str, ...]
    label: Label
    group: str
    question: str = ""


@dataclass(frozen=True)
class Lesson:
    """What a head learns from: a judge's text with its own p, if it gave one, and the label.

    `group` holds the lessons of a case together.
    """

    text: str
    label: Label
    p: float | None = None
    group: str = ""


@dataclass(frozen=True)
class JudgedClaim:
    """What the built-in judge made of a labelled claim, and the debate that it heard."""

    row: LabelledClaim
    judgement: Judgement
    progress: Progress


def judged(rows: Iterable[LabelledClaim], encoder: Embedder) -> Iterator[JudgedClaim]:
    """Each row with its judgement, in order; everything happens in a folder that goes away."""
    roster = roster_named("builtin")
    silent = Classifier("none", Head((0.0,) * encoder.width, 0.0), encoder, {})
    settings = Settings()
    with opened_bench(settings) as bench:
        retriever = load_multilingual_encoder()
        staff = Staff(roster, Resources(bench.home, settings, retriever, silent, lambda: 0.0))
        for row in rows:
            material = Material(row.claim, row.question, row.texts)
            progress = bench.check(material, staff, Plan(), Stop())
            if progress.judgement is not None:
                yield JudgedClaim(row, progress.judgement, progress)


FEWEST_PER_LABEL = 8
HELD_SHARE = 0.25
CALIBRATION_SHARE = 0.15  # of the cases that are not held out
FEWEST_TO_SPLIT = 100  # such cases of each label; before, a calibration split would tell nothing
LABELS: tuple[Label, ...] = ("hallucinated", "supported")


@dataclass(frozen=True)
class Row:
    """One thing to learn: a verdict text and its right label; `group` holds a case together.

    `p` is the judge's own probability, None where it gave none. `author` is who decided.
    """

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
    """Rows to train on, held out and to calibrate with, and how many could not be used.

    `fresh` rows are usable but have no side yet: nothing is learned from them, for the next
    training may hold them out.
    """

    train: tuple[Row, ...]
    held: tuple[Row, ...]
    unusable: int
    fresh: tuple[Row, ...] = ()
    calibration: tuple[Row, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
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
        return {
            label: FEWEST_PER_LABEL - count
            for label, count in self.counts().items()
            if count < FEWEST_PER_LABEL
        }

    def require_enough(self) -> None:
        """Raise `NotEnoughLabels` when a label has too few corrections."""
        missing = self.missing()
        if missing:
            words = " and ".join(f"{n} more {label}" for label, n in missing.items())
            raise NotEnoughLabels(
                f"Expected at least {FEWEST_PER_LABEL} corrections of each label, found "
                f"{_words(self.counts())}; correct or confirm {words}.",
                counts=self.counts(),
            )


def _words(counts: Mapping[str, int]) -> str:
    return " and ".join(f"{count} {label}" for label, count in counts.items())


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


def _parted(rows: Iterable[Row], unusable: int, sides: Mapping[str, Side]) -> TrainingSet:
    by_side: dict[Side | None, list[Row]] = {
        "train": [], "holdout": [], "calibration": [], None: []
    }  # fmt: skip
    for row in rows:
        by_side[sides.get(row.group)].append(row)
    return TrainingSet(
        train=tuple(by_side["train"]),
        held=tuple(by_side["holdout"]),
        unusable=unusable,
        fresh=tuple(by_side[None]),
        calibration=tuple(by_side["calibration"]),
    )


def new_sides(rows: Iterable[Row], sides: Mapping[str, Side]) -> dict[str, Side]:
    """Sides for the groups that have none yet."""
    label_of: dict[str, Label] = {row.group: row.label for row in rows}
    groups = {label: [g for g, own in label_of.items() if own == label] for label in LABELS}
    held = {label: round(HELD_SHARE * len(own)) for label, own in groups.items()}
    is_split = all(len(own) - held[label] >= FEWEST_TO_SPLIT for label, own in groups.items())
    assigned: dict[str, Side] = {}
    for label, own in groups.items():
        known = Counter(sides.get(group) for group in own)
        fresh = sorted(group for group in own if group not in sides)
        to_hold = max(0, held[label] - known["holdout"])
        others = len(own) - held[label]
        calibrating = round(CALIBRATION_SHARE * others) if is_split else 0
        to_calibrate = max(0, calibrating - known["calibration"])
        for place, group in enumerate(fresh):
            if place < to_hold:
                assigned[group] = "holdout"
            else:
                assigned[group] = "calibration" if place < to_hold + to_calibrate else "train"
    return assigned


@dataclass(frozen=True)
class _Said:
    """What was decided on a run: by a person, or settled for its case, which then counts."""

    id: str
    case_id: str
    run_id: str
    label: Label
    author: str


def _decisions(store: Store) -> Iterator[_Said]:
    """Each corrected run with what counts for its case: what was settled, else the newest answer.

    Two runs over one case have two texts to learn from, but only one answer is right.
    """
    settled = store.golds.settled()
    newest = store.corrections.newest_by_case()
    known: set[str] = set()
    for correction in store.corrections.newest_by_run():
        known.add(correction.case_id)
        last = settled.get(correction.case_id) or newest[correction.case_id]
        yield _Said(last.id, correction.case_id, correction.run_id or "", last.label, last.author)
    for case_id, gold in settled.items():
        item = None if case_id in known else store.queue.get(case_id)
        if item is not None and item.run_id:
            yield _Said(gold.id, case_id, item.run_id, gold.label, gold.author)


def _rows(store: Store) -> tuple[list[Row], int]:
    """A row for each run that something was decided on; how many had no text to learn from."""
    rows: list[Row] = []
    unusable = 0
    for said in _decisions(store):
        case = store.cases.get(said.case_id)
        found = _judgement(store, said.run_id) if said.run_id else None
        if said.label == "unclear" or case is None or found is None or not found.text:
            unusable += 1
            continue
        key = fingerprint(case.response, case.question)
        rows.append(
            Row(
                text=found.text,
                label=said.label,
                group=key,
                correction_id=said.id,
                run_id=said.run_id,
                claim=case.response,
                p=found.p,
                case_id=said.case_id,
                author=said.author,
                language=case.language,
            )
        )
    return rows, unusable


def _judgement(store: Store, run_id: str) -> Judgement | None:
    """What the classifier read in that run; None where the judge reached no verdict."""
    found = store.runs.judgement(run_id)
    return None if found is None or found.label == "unclear" else found


def digest_of(rows: Iterable[Row]) -> str:
    """Names exactly which corrections a version was trained on."""
    ids = "\n".join(sorted(row.correction_id for row in rows))
    return hashlib.sha256(ids.encode()).hexdigest()
