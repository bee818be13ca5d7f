"""The evidence model: a statement's features over its evidence, and a calibrated probability.

The model is the mean of boosted trees and a linear model, fitted on many public sets and on
constructed pairs, grouped by source (`training.train_evidence_model`). From `hallucinated_from` a
statement is hallucinated, below `supported_below` supported; calibration rows set both limits.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import regex

from core.baseline.evidence_windows import UNREAD_WINDOW, StatementReading
from core.baseline.exclusions import find_excluded_words
from core.baseline.negation import count_negations
from core.baseline.opening_times import compare_opening_times
from core.baseline.value_comparison import ValueFinding, compare_values, is_table_row
from core.documents.segmentation import WORD_TOKEN, extract_query_terms, extract_terms
from core.runtime.errors import ConfigError
from core.schema.records import Case, Label, MaterialKind, MeasuredAccuracy, Passage, Statement

FEATURE_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "reading": (
        "support_best", "support_second", "support_joined", "contradiction_best",
        "contradiction_second", "contradiction_joined", "neutral_least", "contradiction_share",
        "is_known",
    ),
    "retrieval": ("similarity_best", "similarity_third"),
    "coverage": (
        "terms_found", "terms_found_best", "rare_terms_missing", "names_missing", "names",
        "longest_run",
    ),
    "values": (
        "values", "values_same", "values_derived", "values_different", "values_unmatched",
        "dates_different", "digits_missing",
    ),
    "negation": ("denials", "denials_differ"),
    "question": ("is_answer",),
    "size": ("evidence_size", "table_share"),
}  # fmt: skip
FEATURES: tuple[str, ...] = tuple(name for names in FEATURE_FAMILIES.values() for name in names)
MAX_LOG_ODDS = 6.0
"""Log odds at which a reader's certainty is capped."""
CAPITAL_LETTER = regex.compile(r"\p{Lu}")
Numbers = npt.NDArray[np.float64]
TREE_ARRAYS = ("feature", "threshold", "left", "right", "value", "root")
EVIDENCE_MODEL_DIR = Path(__file__).parent / "weights" / "evidence"
CARD_FILE = "card.json"
TREES_FILE = "trees.npz"
LONG_EVIDENCE_CHARS = 1000
"""Characters of windows from which evidence counts as a long document's."""
MIN_PROBABILITY, MAX_PROBABILITY = 0.005, 0.995
MATERIALS: tuple[MaterialKind, ...] = get_args(MaterialKind)
FeatureFamily = Literal["reading", "values", "coverage"]


@dataclass(frozen=True)
class StatementFeatures:
    """A statement with its features and what they were computed from."""

    statement: Statement
    passages: tuple[Passage, ...]
    reading: StatementReading
    values: tuple[ValueFinding, ...]
    numbers: Mapping[str, float]
    """The value of each of `FEATURES`."""

    def row(self, names: Sequence[str] = FEATURES) -> list[float]:
        """Return the values of these features in order."""
        return [self.numbers[name] for name in names]


def measure_statement(
    case: Case, statement: Statement, passages: Sequence[Passage], reading: StatementReading
) -> StatementFeatures:
    """Compute all features of one statement from its passages, best first, and its readings."""
    texts = [window.text for window in reading.windows] or [p.text for p in passages]
    words = reading.claim[reading.own_start :]
    window_texts = [window.text for window in reading.windows if not window.is_joined]
    values = compare_words(reading, window_texts or texts, case.language)
    similar = sorted((p.similarity for p in passages if p.similarity is not None), reverse=True)
    similar = similar or [0.0]
    closest = reading.supporting.passage.text if reading.supporting else ""
    negations = count_negations(words, case.language)
    numbers = {
        **_reading_features(reading),
        "similarity_best": similar[0],
        "similarity_third": similar[min(2, len(similar) - 1)],
        **_coverage_features(words, texts, case.language),
        **_value_features(values, words, texts),
        "denials": float(negations),
        "denials_differ": float((negations > 0) != (count_negations(closest, case.language) > 0)),
        "is_answer": float(reading.own_start > 0),
        "evidence_size": math.log1p(sum(len(text) for text in texts)),
        "table_share": sum(is_table_row(text) for text in texts) / max(1, len(texts)),
    }
    return StatementFeatures(statement, tuple(passages), reading, values, numbers)


def compare_words(
    reading: StatementReading, texts: Sequence[str], language: str
) -> tuple[ValueFinding, ...]:
    """Return findings on words that the evidence rules out, opening times and all other values."""
    found: list[ValueFinding] = []
    for compare in (find_excluded_words, compare_opening_times, compare_values):
        for one in compare(reading.claim, reading.own_start, texts, language):
            if not any(one.start < other.end and other.start < one.end for other in found):
                found.append(one)
    return tuple(sorted(found, key=lambda finding: finding.start))


def bounded_log_odds(p: float) -> float:
    """Return the log odds of a probability, bounded."""
    bounded = min(max(p, 1e-6), 1 - 1e-6)
    return max(-MAX_LOG_ODDS, min(MAX_LOG_ODDS, math.log(bounded / (1 - bounded))))


def _reading_features(reading: StatementReading) -> dict[str, float]:
    """Return the windows' support and contradiction: best, second best and overall."""
    readings = [window.reading for window in reading.windows] if reading.is_known else []
    support = sorted((r.supported for r in readings), reverse=True) or [0.0]
    contradiction = sorted((r.contradicted for r in readings), reverse=True) or [0.0]
    joint = [w.reading for w in reading.windows if w.is_joined and readings] or readings[:1]
    joined = joint[0] if joint else UNREAD_WINDOW
    decided = np.array([1.0 - r.neutral for r in readings]) ** 2 + 1e-9
    weights = decided / decided.sum() if readings else decided
    share = float(
        weights @ np.array([r.contradicted / max(1e-6, 1.0 - r.neutral) for r in readings])
    )
    return {
        "support_best": bounded_log_odds(support[0]),
        "support_second": bounded_log_odds(support[min(1, len(support) - 1)]),
        "support_joined": bounded_log_odds(joined.supported),
        "contradiction_best": bounded_log_odds(contradiction[0]),
        "contradiction_second": bounded_log_odds(contradiction[min(1, len(contradiction) - 1)]),
        "contradiction_joined": bounded_log_odds(joined.contradicted),
        "neutral_least": bounded_log_odds(min((r.neutral for r in readings), default=1.0)),
        "contradiction_share": share if readings else 0.5,
        "is_known": float(reading.is_known),
    }


def _coverage_features(own: str, texts: Sequence[str], language: str) -> dict[str, float]:
    """Return the share of the statement's words in the evidence, overall and in the best window."""
    claim_terms = extract_query_terms(own, language)
    window_terms = [set(extract_terms(text, language)) for text in texts]
    all_terms: set[str] = set().union(*window_terms) if window_terms else set()
    is_found = [term in all_terms for term in claim_terms]
    best = max((sum(t in known for t in claim_terms) for known in window_terms), default=0)
    capitalised = (
        match.group()
        for match in list(WORD_TOKEN.finditer(own))[1:]
        if CAPITAL_LETTER.match(match.group()) and own[: match.start()].rstrip()[-1:] not in ".!?"
    )
    names = [term for word in capitalised for term in extract_terms(word, language)]
    missing_names = [name for name in names if name not in all_terms]
    rare = [term for term in claim_terms if len(term) > 4]
    return {
        "terms_found": sum(is_found) / max(1, len(claim_terms)),
        "terms_found_best": best / max(1, len(claim_terms)),
        "rare_terms_missing": sum(term not in all_terms for term in rare) / max(1, len(rare)),
        "names_missing": len(missing_names) / max(1, len(names)),
        "names": math.log1p(len(names)),
        "longest_run": _longest_run(own, texts, language),
    }


def _longest_run(own: str, texts: Sequence[str], language: str) -> float:
    """Return the longest run of the statement's terms that occurs in the evidence, as a share."""
    claim_terms = list(extract_terms(own, language))
    longest = 0
    joined = [" " + " ".join(extract_terms(text, language)) + " " for text in texts]
    for start in range(len(claim_terms)):
        size = longest + 1
        while start + size <= len(claim_terms):
            run = " " + " ".join(claim_terms[start : start + size]) + " "
            if not any(run in text for text in joined):
                break
            longest, size = size, size + 1
    return longest / max(1, len(claim_terms))


def _value_features(
    values: Sequence[ValueFinding], own: str, texts: Sequence[str]
) -> dict[str, float]:
    count = max(1, len(values))
    digits = {word for word in WORD_TOKEN.findall(own) if word[0].isdigit()}
    source_digits = {
        word for text in texts for word in WORD_TOKEN.findall(text) if word[0].isdigit()
    }

    def share(status: str) -> float:
        return sum(value.status == status for value in values) / count

    return {
        "values": math.log1p(len(values)),
        "values_same": share("same"),
        "values_derived": share("derived"),
        "values_different": float(any(value.status == "different" for value in values)),
        "values_unmatched": share("unmatched"),
        "dates_different": float(any(v.is_date and v.status == "different" for v in values)),
        "digits_missing": len(digits - source_digits) / max(1, len(digits)),
    }


@dataclass(frozen=True)
class BoostedTrees:
    """The nodes of all trees in sequence; a leaf is its own left and right child.

    A row goes left if its feature is at most the threshold.
    """

    feature: npt.NDArray[np.int32]
    threshold: Numbers
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: Numbers
    root: npt.NDArray[np.int32]
    """Index of each tree's root node."""
    depth: int
    """Depth of the deepest tree."""
    base: float
    """Constant added to the sum of the leaves' values."""

    def predict(self, rows: npt.NDArray[np.float32]) -> Numbers:
        """Return the summed values of the trees, (n,), for rows of (n, features)."""
        nodes = np.repeat(self.root[None], len(rows), axis=0)
        row_index = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            goes_left = rows[row_index, self.feature[nodes]] <= self.threshold[nodes]
            nodes = np.where(goes_left, self.left[nodes], self.right[nodes])
        summed: Numbers = self.base + self.value[nodes].sum(axis=1)
        return summed

    def save(self, path: Path) -> str:
        """Write the trees to a file and return its sha256."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in TREE_ARRAYS}
        with path.open("wb") as file:
            np.savez_compressed(
                file, **arrays, depth=np.array(self.depth), base=np.array(self.base)
            )
        return hashlib.sha256(path.read_bytes()).hexdigest()


def load_trees(path: Path, sha256: str) -> BoostedTrees:
    """Load the trees that `save` wrote.

    Raises ConfigError if the file is missing or its checksum differs.
    """
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
    if digest != sha256:
        raise ConfigError(
            f"Expected the weights in {path.name} with sha256 {sha256[:12]}…, found {digest[:12]}. "
            "Restore the file from the repository."
        )
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in TREE_ARRAYS}
        return BoostedTrees(**arrays, depth=int(stored["depth"]), base=float(stored["base"]))


def extract_trees(model: Any) -> BoostedTrees:
    """Extract the trees of a scikit-learn HistGradientBoosting model from its private parts."""
    parts: dict[str, list[Any]] = {name: [] for name in TREE_ARRAYS}
    first, depth = 0, 0
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        count = len(nodes)
        node_index = np.arange(count)
        is_leaf = nodes["is_leaf"].astype(bool)
        parts["feature"].append(np.where(is_leaf, 0, nodes["feature_idx"]).astype(np.int32))
        parts["threshold"].append(np.where(is_leaf, np.inf, nodes["num_threshold"]))
        for side in ("left", "right"):
            children = np.where(is_leaf, node_index, nodes[side])
            parts[side].append((children + first).astype(np.int32))
        parts["value"].append(np.where(is_leaf, nodes["value"], 0.0))
        parts["root"].append(np.array([first], dtype=np.int32))
        depth = max(depth, int(nodes["depth"].max()))
        first += count
    joined = {name: np.concatenate(rows) for name, rows in parts.items()}
    return BoostedTrees(**joined, depth=depth, base=float(np.ravel(model._baseline_prediction)[0]))


def to_feature_rows(rows: Sequence[Sequence[float]]) -> npt.NDArray[np.float32]:
    """Return rows as (n, features) float32, as the trees expect them."""
    return np.asarray(rows, dtype=np.float32)


@dataclass(frozen=True)
class LogisticModel:
    """A logistic model: a weight for each feature that it uses, and the intercept."""

    weights: Mapping[str, float]
    intercept: float

    def probability(self, numbers: Mapping[str, float]) -> float:
        """Return the probability for these features."""
        score = self.intercept + sum(w * numbers[name] for name, w in self.weights.items())
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, score))))


@dataclass(frozen=True)
class EvidenceModel:
    """The evidence model with its limits; deterministic."""

    trees: BoostedTrees
    linear: LogisticModel
    """Over the same features; it ranks unfamiliar material better, the trees familiar material."""
    features: tuple[str, ...]
    calibration: Mapping[MaterialKind, LogisticModel]
    """By material, from the mean log odds of both (`score`) to a probability; some kinds also use
    `values_different`."""
    parts: Mapping[FeatureFamily, LogisticModel]
    """Small models over one family of features each, used by the three built-in debaters."""
    addressed: LogisticModel
    """Model of whether the evidence is about the statement's subject."""
    addressed_from: float
    supported_below: float
    hallucinated_from: float
    card: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Return an id that changes whenever the same features could get another label."""
        state = json.dumps([self.card, self.supported_below, self.hallucinated_from], default=str)
        return hashlib.sha256(state.encode()).hexdigest()[:12]

    def probability(self, statement: StatementFeatures) -> float:
        """Return the probability that the statement is not supported."""
        score = float(self.scores(to_feature_rows([statement.row(self.features)]))[0])
        calibrated = self.calibration[classify_material(statement.numbers)]
        return _clip(calibrated.probability({**statement.numbers, "score": score}))

    def scores(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return the uncalibrated log odds, (n,), for rows of the features."""
        return average_scores(self.trees, self.linear, self.features, rows)

    def part(self, name: FeatureFamily, statement: StatementFeatures) -> float:
        """Return the probability that the statement is not supported, by one family of features."""
        return _clip(self.parts[name].probability(statement.numbers))

    def response(self, probabilities: Sequence[float]) -> float:
        """Return the response's probability of not being supported: that of its worst statement."""
        return max(probabilities)

    def measured_share(self, statement: StatementFeatures, p: float) -> MeasuredAccuracy | None:
        """Return how often verdicts as sure as `p` were right on the statement's kind of material.

        None if too few were measured, or if the reader does not know the language.
        """
        if not statement.reading.is_known:
            return None
        material, confidence = classify_material(statement.numbers), max(p, 1.0 - p)
        for band in self.card.get("measured", {}).get("reliability", {}).get(material, ()):
            if band["low"] <= confidence <= band["high"]:
                return MeasuredAccuracy(material, band["n"], band["right"])
        return None

    def is_addressed(self, statement: StatementFeatures) -> bool:
        """Return False if the evidence is about something else altogether."""
        return self.addressed.probability(statement.numbers) >= self.addressed_from

    def label(self, p: float) -> Label:
        """Return the label for a probability."""
        if p >= self.hallucinated_from:
            return "hallucinated"
        return "supported" if p < self.supported_below else "unclear"


def average_scores(
    trees: BoostedTrees,
    linear: LogisticModel,
    features: Sequence[str],
    rows: npt.NDArray[np.float32],
) -> npt.NDArray[np.float64]:
    """Return the mean of the trees' and the linear model's log odds, (n,); rows: (n, features)."""
    weights = np.array([linear.weights.get(name, 0.0) for name in features])
    linear_scores = rows.astype(np.float64) @ weights + linear.intercept
    return np.asarray((trees.predict(rows) + linear_scores) / 2)


def classify_material(numbers: Mapping[str, float]) -> MaterialKind:
    """Return the kind of material that a statement is checked against, by its features."""
    if numbers["table_share"] >= 0.5:
        return "table"
    if numbers["is_answer"]:
        return "answer"
    return "document" if math.expm1(numbers["evidence_size"]) >= LONG_EVIDENCE_CHARS else "claim"


def _clip(p: float) -> float:
    return min(MAX_PROBABILITY, max(MIN_PROBABILITY, p))


@lru_cache(maxsize=2)
def load_evidence_model(folder: Path = EVIDENCE_MODEL_DIR) -> EvidenceModel:
    """Load the model in that folder, once per process.

    Raises ConfigError if card or trees are missing, or do not belong together.
    """
    try:
        card = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
        limits = card["limits"]
        return EvidenceModel(
            trees=load_trees(folder / TREES_FILE, card["sha256"]),
            linear=parse_logistic(card["linear"]),
            features=tuple(card["features"]),
            calibration={name: parse_logistic(card["calibration"][name]) for name in MATERIALS},
            parts={name: parse_logistic(body) for name, body in card["parts"].items()},
            addressed=parse_logistic(card["addressed"]),
            addressed_from=float(limits["addressed_from"]),
            supported_below=float(limits["supported_below"]),
            hallucinated_from=float(limits["hallucinated_from"]),
            card=card,
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"Expected the evidence model's card and trees in {folder.name}, found: {error!r}. "
            "Restore the files from the repository."
        ) from error


def parse_logistic(body: Mapping[str, Any]) -> LogisticModel:
    """Build a logistic model from its entry in a card."""
    weights = {str(name): float(weight) for name, weight in body["weights"].items()}
    return LogisticModel(weights, float(body["intercept"]))
