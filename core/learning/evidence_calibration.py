"""Fits what the evidence model's scores are worth: probabilities by material, and both limits.

Used for the model that ships, and for each reader that people bring. What is measured of the
statements of labelled rows comes from the real pipeline up to the judge's seat, in which an
observer writes the features down.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.agents.rosters import roster_named
from core.baseline.assessment import Assessor
from core.baseline.evidence_model import FEATURES, MATERIALS, EvidenceModel, as_rows, material_of
from core.baseline.export import load_multilingual_encoder
from core.learning.bench import BenchHome, BenchMaterial, opened_bench
from core.learning.metrics import (
    Flags,
    Numbers,
    auroc,
    balanced_accuracy,
    confidence_bands,
    ece,
    fold_of,
    subset,
)
from core.llm.encoder import load_encoder
from core.pipeline.review import Resources
from core.pipeline.run_factory import Staff
from core.runtime.concurrency import Stop
from core.runtime.config import ENCODER_DIR, PROJECT_ROOT, Settings
from core.runtime.errors import InputError
from core.schema.records import Judgement, Label, MaterialKind, Plan, Span, Turn
from core.schema.roles import DebateView, Judge, JudgeView, SpanRuling, Speak
from core.schema.rosters import BUILT_IN
from core.verdict.classifier import Classifier, Head, sigmoid

KEPT_FEATURES = "features.jsonl"
MEASURED_BY = ("baseline", "documents", "tools")


@dataclass(frozen=True)
class EvidenceRow:
    """A response over its evidence; `wrong` is what people say of it."""

    name: str
    group: str
    language: str
    response: str
    question: str
    documents: tuple[str, ...]
    wrong: bool

    @property
    def digest(self) -> str:
        """Names all that is read of the row."""
        told = json.dumps([self.response, self.question, self.documents], ensure_ascii=False)
        return hashlib.sha256(told.encode()).hexdigest()


@dataclass(frozen=True)
class MeasuredRow:
    """A row with the features of each of its statements."""

    row: EvidenceRow
    statements: tuple[tuple[float, ...], ...]
    """In the order of `FEATURES`; none where nothing could be checked."""


class _Observer:
    """Sits in the judge's seat and writes down what was measured; decides nothing."""

    name = "Observer"
    built_in = True
    rule = "Writes down what is measured."

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor
        self.seen: tuple[tuple[float, ...], ...] = ()

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        own = view.view
        measured = (
            self._assessor.measure(own, statement, own.evidence.of(statement.index))
            for statement in own.statements
        )
        self.seen = ()
        if own.evidence.passages:
            self.seen = tuple(tuple(one.row(FEATURES)) for one in measured)
        return Judgement(self.name, "unclear", "Observed.", cause="not_addressed")


class Silent:
    """Sits where nothing is to be said or marked."""

    name = "Nobody"
    built_in = True
    rule = "Says nothing."

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """Return a turn that says nothing."""
        return Turn(view.debater, self.name, view.number, view.round, "agree", "unclear", "AGREE.")

    def propose(self, view: JudgeView, judgement: Judgement, stop: Stop) -> tuple[Span, ...]:
        """Propose no span."""
        return ()

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: Stop) -> SpanRuling:
        """Never asked, for nothing is proposed."""
        return SpanRuling(span, False, "Nothing is marked.")


def measured_rows(
    rows: Sequence[EvidenceRow], assessor: Assessor, cache: Path
) -> Iterator[MeasuredRow]:
    """The rows' features; from the folder `cache` where this code and reader measured them."""
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"{assessor.reader.id}-{code_digest_of(MEASURED_BY)}-{KEPT_FEATURES}"
    known = dict(_known(path))
    with opened_bench(Settings()) as bench, path.open("a", encoding="utf-8") as kept:
        observer = _Observer(assessor)
        staff = observed_staff(bench, observer)
        for row in rows:
            if row.digest not in known:
                observer.seen = ()
                material = BenchMaterial(row.response, row.question, row.documents)
                bench.check(material, staff, Plan(max_turns=1, protocol="single"), Stop())
                known[row.digest] = observer.seen
                kept.write(json.dumps({"row": row.digest, "statements": observer.seen}) + "\n")
                kept.flush()
            yield MeasuredRow(row, known[row.digest])


def observed_staff(bench: BenchHome, judge: Judge) -> Staff:
    """The built-in pipeline up to the judge, who only looks; nothing is debated or marked."""
    encoder, silent = load_encoder(ENCODER_DIR), Silent()
    roster = replace(
        roster_named(BUILT_IN),
        debaters={"Nobody": silent},
        judge=judge,
        span_extractor=silent,
        span_adjudicator=silent,
    )
    unasked = Classifier("none", Head((0.0,) * encoder.width, 0.0), encoder, {})
    retriever = load_multilingual_encoder()
    resources = Resources(bench.home, bench.settings, retriever, unasked, lambda: 0.0)
    return Staff(roster, resources)


def code_digest_of(folders: Sequence[str]) -> str:
    """Names the code in these folders of `core`."""
    whole = hashlib.sha256()
    for folder in folders:
        for path in sorted((PROJECT_ROOT / "core" / folder).rglob("*")):
            if path.suffix in {".py", ".json"} and "weights" not in path.parts:
                whole.update(path.read_bytes())
    return whole.hexdigest()[:12]


def _known(path: Path) -> Iterator[tuple[str, tuple[tuple[float, ...], ...]]]:
    """What was kept; a line cut off is measured again from its row."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            told = json.loads(line)
            yield told["row"], tuple(tuple(row) for row in told["statements"])
        except (ValueError, TypeError, KeyError):
            continue


SUPPORTED_ERROR, HALLUCINATED_ERROR = 0.3, 0.25
"""How many of what is called so may be otherwise, on calibration rows, half of which are wrong.

Less where a statement is called hallucinated: most statements that people check are right, so an
alarm is false more often there than here, and what is called supported is wrong less often.
"""
CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
FEWEST_IN_BIN = 20
FEWEST_OF_MATERIAL = 300  # rows of one material from which it gets a curve of its own
FEWEST_OF_LABEL = 20
FEWEST_DIFFERENT = 50  # that state another value than their evidence, from which that counts
INPUTS = ("score", "values_different")


@dataclass(frozen=True)
class ScoredStatements:
    """Statements with the model's log odds; `different`: the evidence has another value."""

    scores: Numbers
    different: Flags
    wrong: Flags
    weights: Numbers
    folds: npt.NDArray[np.int64]
    materials: Sequence[MaterialKind]

    def taken(self, which: Flags) -> ScoredStatements:
        """The rows that `which` selects."""
        names = ("scores", "different", "wrong", "weights", "folds", "materials")
        return subset(self, which, *names)

    def of(self, material: MaterialKind) -> Flags:
        """Flags of the rows that are of that material."""
        return np.array([own == material for own in self.materials], dtype=bool)

    def logistic(self, inputs: Sequence[str]) -> dict[str, Any]:
        """A logistic model over that many of `INPUTS`."""
        columns = np.column_stack([self.scores, self.different])[:, : len(inputs)]
        return logistic(columns, self.wrong, self.weights, inputs)


def single_statements(
    measured: Sequence[MeasuredRow],
) -> list[tuple[tuple[float, ...], EvidenceRow]]:
    """Rows of one statement each, and every statement of responses that are right as a whole."""
    return [
        (statement, own.row)
        for own in measured
        for statement in own.statements
        if len(own.statements) == 1 or not own.row.wrong
    ]


def scored_statements(measured: Sequence[MeasuredRow], model: EvidenceModel) -> ScoredStatements:
    """The statements of `single_statements` with the model's scores."""
    held = single_statements(measured)
    rows = as_rows([list(statement) for statement, _ in held])
    return ScoredStatements(
        model.scores(rows[:, [FEATURES.index(name) for name in model.features]]),
        rows[:, FEATURES.index("values_different")] > 0,
        np.array([row.wrong for _, row in held], dtype=bool),
        np.ones(len(held)),
        np.array([fold_of(row.group) for _, row in held], dtype=np.int64),
        [material_of(dict(zip(FEATURES, statement, strict=True))) for statement, _ in held],
    )


def calibrations(
    rows: ScoredStatements, inputs: Mapping[MaterialKind, Sequence[str]] | None = None
) -> dict[MaterialKind, dict[str, Any]]:
    """From the model's log odds to probabilities, by material; rare ones go with all.

    Another value in the statement's place makes it less likely by itself where enough rows of the
    material have one and bear that out: trees and readings are too timid about plain wrong numbers.
    `inputs` are what an earlier call chose, where the same is to be fitted on a part of the rows.
    """
    chosen = calibration_inputs(rows) if inputs is None else inputs
    told = {}
    for material in MATERIALS:
        names = chosen[material]
        own = rows.taken(rows.of(material)) if names else rows
        told[material] = own.logistic(names or INPUTS[:1])
        if told[material]["weights"]["score"] < 0:  # the scores tell nothing; never turned round
            constant = np.zeros((len(own.wrong), 1))
            told[material] = logistic(constant, own.wrong, own.weights, INPUTS[:1])
    return told


def calibration_inputs(rows: ScoredStatements) -> dict[MaterialKind, Sequence[str]]:
    """What each material's calibration goes by; nothing where it goes with all others."""
    chosen: dict[MaterialKind, Sequence[str]] = {}
    for material in MATERIALS:
        own = rows.taken(rows.of(material))
        n, wrong = len(own.wrong), int(own.wrong.sum())
        chosen[material] = ()
        if n >= FEWEST_OF_MATERIAL and min(wrong, n - wrong) >= FEWEST_OF_LABEL:
            is_told = own.different.sum() >= FEWEST_DIFFERENT
            is_worse = is_told and own.logistic(INPUTS)["weights"]["values_different"] > 0
            chosen[material] = INPUTS if is_worse else INPUTS[:1]
    return chosen


def calibrated(rows: ScoredStatements, told: dict[MaterialKind, dict[str, Any]]) -> Numbers:
    """The probabilities of the rows."""
    weights = [told[m]["weights"] for m in rows.materials]
    slopes = np.array([own["score"] for own in weights])
    steps = np.array([own.get("values_different", 0.0) for own in weights])
    intercepts = np.array([told[m]["intercept"] for m in rows.materials])
    return sigmoid(intercepts + slopes * rows.scores + steps * rows.different)


def cross_calibrated(rows: ScoredStatements, taught: ScoredStatements) -> Numbers:
    """Each row's probability by calibrations that were fitted on `taught` without its fold."""
    inputs = calibration_inputs(taught)
    p = np.zeros(len(rows.scores))
    for fold in np.unique(rows.folds):
        rest = taught.taken(taught.folds != fold)
        if rest.wrong.all() or not rest.wrong.any():
            raise InputError(
                "Expected hallucinated and supported rows about many different texts, found that "
                "those of a label are all about the same few; give more rows."
            )
        # where this fold holds all of a material's rows of one label, the material goes with all
        held = {m for m in MATERIALS if len(np.unique(rest.wrong[rest.of(m)])) == 2}
        own = {m: names if m in held else () for m, names in inputs.items()}
        inside = rows.folds == fold
        p[inside] = calibrated(rows.taken(inside), calibrations(rest, own))
    return p


def limits(wrong: Flags, p: Numbers) -> tuple[float, float]:
    """(supported_below, hallucinated_from) that hold the error rates, where any does."""
    grid = np.round(np.arange(0.02, 0.99, 0.01), 2)

    def holds(inside: Flags, bad: Flags, rate: float) -> bool:
        return bool(inside.sum() >= FEWEST_IN_BIN and bad[inside].mean() <= rate)

    lows = (t for t in grid if t <= 0.5 and holds(p < t, wrong, SUPPORTED_ERROR))
    highs = (t for t in grid if t >= 0.5 and holds(p >= t, ~wrong, HALLUCINATED_ERROR))
    return float(max(lows, default=0.0)), float(min(highs, default=1.0))


def answered_unseen(rows: ScoredStatements, p: Numbers) -> dict[str, float]:
    """Share of verdicts given, and of them right, by limits chosen without the row's own fold."""
    given = np.zeros(len(p), dtype=bool)
    for fold in np.unique(rows.folds):
        inside = rows.folds == fold
        low, high = limits(rows.wrong[~inside], p[~inside])
        given[inside] = (p[inside] < low) | (p[inside] >= high)
    right = (p >= 0.5) == rows.wrong
    return {
        "coverage": round(float(given.mean()), 3),
        "accuracy": round(float(right[given].mean()), 3) if given.any() else 0.0,
    }


def figures(wrong: Flags, p: Numbers) -> dict[str, float]:
    """AUROC, balanced accuracy at one half and ECE."""
    return {
        "n": len(wrong),
        "auroc": round(auroc(wrong, p) or 0.0, 3),
        "balanced": round(balanced_accuracy(wrong, p >= 0.5) or 0.0, 3),
        "ece": round(ece(wrong, p), 3),
    }


def figures_by_material(rows: ScoredStatements, p: Numbers) -> dict[MaterialKind, dict[str, float]]:
    """The same of each material that has both kinds of rows."""
    told: dict[MaterialKind, dict[str, float]] = {}
    for material in MATERIALS:
        inside = rows.of(material)
        if rows.wrong[inside].any() and not rows.wrong[inside].all():
            told[material] = figures(rows.wrong[inside], p[inside])
    return told


def reliability_by_material(
    rows: ScoredStatements, p: Numbers, low: float, high: float
) -> dict[MaterialKind, list[dict[str, float]]]:
    """Of the verdicts let through, by confidence: how many and right; thin bins are left out."""
    given = (p < low) | (p >= high)
    told: dict[MaterialKind, list[dict[str, float]]] = {}
    for material in MATERIALS:
        inside = rows.of(material) & given
        bands = confidence_bands(rows.wrong[inside], p[inside], CONFIDENCES)
        told[material] = [band for band in bands if band["n"] >= FEWEST_IN_BIN]
    return told


def logistic(rows: Numbers, wrong: Flags, weights: Numbers, names: Sequence[str]) -> dict[str, Any]:
    """A logistic model as a card keeps it: weights for the plain features, and the intercept."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(rows)
    model = LogisticRegression(C=1.0, max_iter=2000)
    model.fit(scaler.transform(rows), wrong, sample_weight=weights)
    slopes = model.coef_[0] / scaler.scale_
    intercept = float(model.intercept_[0] - slopes @ scaler.mean_)
    rounded = {name: float(f"{w:.5g}") for name, w in zip(names, slopes, strict=True)}
    return {"weights": rounded, "intercept": float(f"{intercept:.5g}")}
