"""Calibrates the evidence model: probabilities from its scores by material, and its two limits.

Used for the model that ships and for each reader that people add. The features of the statements of
labelled rows come from the real pipeline: an observer in the judge's seat records them.
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

from core.agents.rosters import make_built_in_roster
from core.baseline.assessment import Assessor
from core.baseline.evidence_model import (
    FEATURES,
    MATERIALS,
    EvidenceModel,
    classify_material,
    to_feature_rows,
)
from core.learning.metrics import (
    BoolArray,
    FloatArray,
    compute_auroc,
    compute_balanced_accuracy,
    compute_confidence_bands,
    compute_ece,
    get_folds,
    select_rows,
)
from core.llm.encoder import load_encoder
from core.pipeline.run_factory import RunAgents
from core.pipeline.temporary_home import CheckMaterial, TemporaryHome, open_temporary_home
from core.runtime.concurrency import StopSignal
from core.runtime.config import ENCODER_DIR, PROJECT_ROOT, Settings
from core.runtime.errors import InputError
from core.schema.records import Judgement, Label, MaterialKind, Plan, Span, Turn
from core.schema.roles import DebateView, Judge, JudgeView, SpanRuling, SpeakCallback
from core.schema.rosters import BUILT_IN_ROSTER
from core.verdict.classifier import sigmoid

FEATURE_CACHE_NAME = "features.jsonl"
MEASURING_FOLDERS = ("baseline", "documents", "tools")
MAX_SUPPORTED_ERROR, MAX_HALLUCINATED_ERROR = 0.3, 0.25
"""The allowed share of wrong verdicts of each label, on calibration rows, half of which are wrong.

It is lower for hallucinated: most statements that people check are right, so alarms are false more
often there than on these rows, and verdicts of supported are wrong less often.
"""
CONFIDENCE_EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
MIN_ROWS_IN_BIN = 20
MIN_ROWS_OF_MATERIAL = 300  # rows that a material needs for a curve of its own
MIN_ROWS_OF_LABEL = 20
MIN_ROWS_WITH_OTHER_VALUE = 50  # rows stating another value than their evidence, for that to count
CALIBRATION_INPUTS = ("score", "values_different")


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
        """A digest of all that is read of the row."""
        content = json.dumps([self.response, self.question, self.documents], ensure_ascii=False)
        return hashlib.sha256(content.encode()).hexdigest()


@dataclass(frozen=True)
class MeasuredRow:
    """A row with the features of each of its statements."""

    row: EvidenceRow
    statements: tuple[tuple[float, ...], ...]
    """In the order of `FEATURES`; empty if nothing could be checked."""


class _Observer:
    """A judge that records what was measured and decides nothing."""

    name = "Observer"
    built_in = True
    rule = "Writes down what is measured."

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor
        self.seen: tuple[tuple[float, ...], ...] = ()

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        debate = view.case_view
        measured = (
            self._assessor.measure(debate, statement, debate.evidence.of(statement.index))
            for statement in debate.statements
        )
        self.seen = ()
        if debate.evidence.passages:
            self.seen = tuple(tuple(one.row(FEATURES)) for one in measured)
        return Judgement(self.name, "unclear", "Observed.", cause="not_addressed")


class SilentAgent:
    """An agent that says and marks nothing."""

    name = "Nobody"
    built_in = True
    rule = "Says nothing."

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        """Return a turn that says nothing."""
        return Turn(view.debater, self.name, view.number, view.round, "agree", "unclear", "AGREE.")

    def propose(self, view: JudgeView, judgement: Judgement, stop: StopSignal) -> tuple[Span, ...]:
        """Return no spans."""
        return ()

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: StopSignal) -> SpanRuling:
        """Reject the span; never called, because nothing is proposed."""
        return SpanRuling(span, False, "Nothing is marked.")


def measure_rows(
    rows: Sequence[EvidenceRow], assessor: Assessor, cache: Path
) -> Iterator[MeasuredRow]:
    """Yield the rows' features, cached in the folder `cache` by this code and reader."""
    cache.mkdir(parents=True, exist_ok=True)
    path = (
        cache
        / f"{assessor.reader.id}-{compute_folder_digest(MEASURING_FOLDERS)}-{FEATURE_CACHE_NAME}"
    )
    known = dict(_read_cached(path))
    with open_temporary_home(Settings()) as bench, path.open("a", encoding="utf-8") as file:
        observer = _Observer(assessor)
        staff = build_observed_agents(bench, observer)
        for row in rows:
            if row.digest not in known:
                observer.seen = ()
                material = CheckMaterial(row.response, row.question, row.documents)
                bench.check(material, staff, Plan(max_turns=1, protocol="single"), StopSignal())
                known[row.digest] = observer.seen
                file.write(json.dumps({"row": row.digest, "statements": observer.seen}) + "\n")
                file.flush()
            yield MeasuredRow(row, known[row.digest])


def build_observed_agents(bench: TemporaryHome, judge: Judge) -> RunAgents:
    """Return the built-in pipeline up to an observing judge; nothing is debated or marked."""
    silent = SilentAgent()
    roster = replace(
        make_built_in_roster(BUILT_IN_ROSTER),
        debaters={"Nobody": silent},
        judge=judge,
        span_extractor=silent,
        span_adjudicator=silent,
    )
    return bench.build_agents(roster, load_encoder(ENCODER_DIR))


def compute_folder_digest(folders: Sequence[str]) -> str:
    """Return a digest of the code in these folders of `core`."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((PROJECT_ROOT / "core" / folder).rglob("*")):
            if path.suffix in {".py", ".json"} and "weights" not in path.parts:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _read_cached(path: Path) -> Iterator[tuple[str, tuple[tuple[float, ...], ...]]]:
    """Yield the cached features; a truncated line is skipped, and its row measured again."""
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            entry = json.loads(line)
            yield entry["row"], tuple(tuple(row) for row in entry["statements"])
        except (ValueError, TypeError, KeyError):
            continue


@dataclass(frozen=True)
class ScoredStatements:
    """Statements with the model's log odds; `different` means the evidence has another value."""

    scores: FloatArray
    different: BoolArray
    wrong: BoolArray
    weights: FloatArray
    folds: npt.NDArray[np.int64]
    materials: Sequence[MaterialKind]

    def taken(self, which: BoolArray) -> ScoredStatements:
        """Return the rows that `which` selects."""
        names = ("scores", "different", "wrong", "weights", "folds", "materials")
        return select_rows(self, which, *names)

    def of(self, material: MaterialKind) -> BoolArray:
        """Return flags of the rows of that material."""
        return np.array([row_material == material for row_material in self.materials], dtype=bool)

    def logistic(self, inputs: Sequence[str]) -> dict[str, Any]:
        """Fit a logistic model over as many of `CALIBRATION_INPUTS`."""
        columns = np.column_stack([self.scores, self.different])[:, : len(inputs)]
        return fit_logistic_card(columns, self.wrong, self.weights, inputs)


def select_single_statements(
    measured: Sequence[MeasuredRow],
) -> list[tuple[tuple[float, ...], EvidenceRow]]:
    """Return rows of one statement, and every statement of responses that are right as a whole."""
    return [
        (statement, measured_row.row)
        for measured_row in measured
        for statement in measured_row.statements
        if len(measured_row.statements) == 1 or not measured_row.row.wrong
    ]


def score_statements(measured: Sequence[MeasuredRow], model: EvidenceModel) -> ScoredStatements:
    """Return the statements of `select_single_statements` with the model's scores."""
    held = select_single_statements(measured)
    rows = to_feature_rows([list(statement) for statement, _ in held])
    return ScoredStatements(
        model.scores(rows[:, [FEATURES.index(name) for name in model.features]]),
        rows[:, FEATURES.index("values_different")] > 0,
        np.array([row.wrong for _, row in held], dtype=bool),
        np.ones(len(held)),
        get_folds([row.group for _, row in held]),
        [classify_material(dict(zip(FEATURES, statement, strict=True))) for statement, _ in held],
    )


def fit_calibrations(
    rows: ScoredStatements, inputs: Mapping[MaterialKind, Sequence[str]] | None = None
) -> dict[MaterialKind, dict[str, Any]]:
    """Fit logistic models from the model's log odds to probabilities, by material.

    Rare materials use that of all. Another value in the statement's place makes it less likely by
    itself if enough rows of the material have one and bear that out: trees and readings are too
    timid about plain wrong numbers. `inputs` are what an earlier call chose, for fitting the same
    to a part of the rows.
    """
    chosen = choose_calibration_inputs(rows) if inputs is None else inputs
    models = {}
    for material in MATERIALS:
        names = chosen[material]
        material_rows = rows.taken(rows.of(material)) if names else rows
        models[material] = material_rows.logistic(names or CALIBRATION_INPUTS[:1])
        if models[material]["weights"]["score"] < 0:  # the scores say nothing; never invert them
            constant = np.zeros((len(material_rows.wrong), 1))
            wrong, weights = material_rows.wrong, material_rows.weights
            models[material] = fit_logistic_card(constant, wrong, weights, CALIBRATION_INPUTS[:1])
    return models


def choose_calibration_inputs(rows: ScoredStatements) -> dict[MaterialKind, Sequence[str]]:
    """Return the inputs of each material's calibration; none if it uses that of all."""
    chosen: dict[MaterialKind, Sequence[str]] = {}
    for material in MATERIALS:
        material_rows = rows.taken(rows.of(material))
        n, wrong = len(material_rows.wrong), int(material_rows.wrong.sum())
        chosen[material] = ()
        if n >= MIN_ROWS_OF_MATERIAL and min(wrong, n - wrong) >= MIN_ROWS_OF_LABEL:
            is_frequent = material_rows.different.sum() >= MIN_ROWS_WITH_OTHER_VALUE
            chosen[material] = CALIBRATION_INPUTS[:1]
            if (
                is_frequent
                and material_rows.logistic(CALIBRATION_INPUTS)["weights"]["values_different"] > 0
            ):
                chosen[material] = CALIBRATION_INPUTS
    return chosen


def apply_calibrations(
    rows: ScoredStatements, told: dict[MaterialKind, dict[str, Any]]
) -> FloatArray:
    """Return the probabilities of the rows; `told` are the models of `fit_calibrations`."""
    weights = [told[m]["weights"] for m in rows.materials]
    slopes = np.array([row_weights["score"] for row_weights in weights])
    steps = np.array([row_weights.get("values_different", 0.0) for row_weights in weights])
    intercepts = np.array([told[m]["intercept"] for m in rows.materials])
    return sigmoid(intercepts + slopes * rows.scores + steps * rows.different)


def cross_calibrate(rows: ScoredStatements, taught: ScoredStatements) -> FloatArray:
    """Return (n,) probabilities by calibrations fitted on `taught` without the row's fold."""
    inputs = choose_calibration_inputs(taught)
    p = np.zeros(len(rows.scores))
    for fold in np.unique(rows.folds):
        rest = taught.taken(taught.folds != fold)
        if rest.wrong.all() or not rest.wrong.any():
            raise InputError(
                "Expected hallucinated and supported rows about many different texts, found that "
                "those of a label are all about the same few; give more rows."
            )
        # If this fold holds all of a material's rows of one label, the material uses that of all.
        complete = {m for m in MATERIALS if len(np.unique(rest.wrong[rest.of(m)])) == 2}
        fold_inputs = {m: names if m in complete else () for m, names in inputs.items()}
        inside = rows.folds == fold
        p[inside] = apply_calibrations(rows.taken(inside), fit_calibrations(rest, fold_inputs))
    return p


def choose_limits(wrong: BoolArray, p: FloatArray) -> tuple[float, float]:
    """Return (supported_below, hallucinated_from), the widest limits that keep the error rates."""
    grid = np.round(np.arange(0.02, 0.99, 0.01), 2)

    def holds(inside: BoolArray, bad: BoolArray, rate: float) -> bool:
        return bool(inside.sum() >= MIN_ROWS_IN_BIN and bad[inside].mean() <= rate)

    lows = (t for t in grid if t <= 0.5 and holds(p < t, wrong, MAX_SUPPORTED_ERROR))
    highs = (t for t in grid if t >= 0.5 and holds(p >= t, ~wrong, MAX_HALLUCINATED_ERROR))
    return float(max(lows, default=0.0)), float(min(highs, default=1.0))


def measure_coverage(rows: ScoredStatements, p: FloatArray) -> dict[str, float]:
    """Return the share of verdicts given, and of them right, by limits fitted without the fold."""
    is_given = np.zeros(len(p), dtype=bool)
    for fold in np.unique(rows.folds):
        inside = rows.folds == fold
        low, high = choose_limits(rows.wrong[~inside], p[~inside])
        is_given[inside] = (p[inside] < low) | (p[inside] >= high)
    right = (p >= 0.5) == rows.wrong
    return {
        "coverage": round(float(is_given.mean()), 3),
        "accuracy": round(float(right[is_given].mean()), 3) if is_given.any() else 0.0,
    }


def compute_evidence_figures(wrong: BoolArray, p: FloatArray) -> dict[str, float]:
    """Return AUROC, balanced accuracy at one half and ECE."""
    return {
        "n": len(wrong),
        "auroc": round(compute_auroc(wrong, p) or 0.0, 3),
        "balanced": round(compute_balanced_accuracy(wrong, p >= 0.5) or 0.0, 3),
        "ece": round(compute_ece(wrong, p), 3),
    }


def compute_figures_by_material(
    rows: ScoredStatements, p: FloatArray
) -> dict[MaterialKind, dict[str, float]]:
    """Return `figures` of each material that has both labels."""
    by_material: dict[MaterialKind, dict[str, float]] = {}
    for material in MATERIALS:
        inside = rows.of(material)
        if rows.wrong[inside].any() and not rows.wrong[inside].all():
            by_material[material] = compute_evidence_figures(rows.wrong[inside], p[inside])
    return by_material


def compute_reliability_by_material(
    rows: ScoredStatements, p: FloatArray, low: float, high: float
) -> dict[MaterialKind, list[dict[str, float]]]:
    """Return (number, right) of the verdicts given, by confidence; small bins are left out."""
    is_given = (p < low) | (p >= high)
    by_material: dict[MaterialKind, list[dict[str, float]]] = {}
    for material in MATERIALS:
        inside = rows.of(material) & is_given
        bands = compute_confidence_bands(rows.wrong[inside], p[inside], CONFIDENCE_EDGES)
        by_material[material] = [band for band in bands if band["n"] >= MIN_ROWS_IN_BIN]
    return by_material


def fit_logistic_card(
    rows: FloatArray, wrong: BoolArray, weights: FloatArray, names: Sequence[str]
) -> dict[str, Any]:
    """Fit a logistic model and return weights of the unscaled features, and the intercept."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(rows)
    model = LogisticRegression(C=1.0, max_iter=2000)
    model.fit(scaler.transform(rows), wrong, sample_weight=weights)
    slopes = model.coef_[0] / scaler.scale_
    intercept = float(model.intercept_[0] - slopes @ scaler.mean_)
    rounded = {name: float(f"{w:.5g}") for name, w in zip(names, slopes, strict=True)}
    return {"weights": rounded, "intercept": float(f"{intercept:.5g}")}
