"""The features of a statement beside its evidence, and one calibrated probability made of them.

The model is the mean of boosted trees and a linear model, fitted on many public sets and on
constructed pairs, grouped by source (`training.train_evidence_model`). From `hallucinated_from` on
a statement is hallucinated, below `supported_below` supported; calibration rows set both limits.
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

from core.baseline.evidence import UNREAD, StatementReading
from core.baseline.values import ValueFinding, compare_values, is_row
from core.documents.segmentation import IS_UNSPACED, WORD, fold, query_terms, terms
from core.runtime.errors import ConfigError
from core.schema.records import Case, Label, MaterialKind, MeasuredShare, Passage, Statement

NEGATIONS: Mapping[str, Sequence[str]] = json.loads(
    Path(__file__).with_name("negations.json").read_text(encoding="utf-8")
)
FAMILIES: Mapping[str, tuple[str, ...]] = {
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
FEATURES: tuple[str, ...] = tuple(name for names in FAMILIES.values() for name in names)
FARTHEST = 6.0
"""Log odds beyond which a reader's certainty counts no further."""
CAPITALISED = regex.compile(r"\p{Lu}")


@dataclass(frozen=True)
class StatementFeatures:
    """A statement with all that was measured of it."""

    statement: Statement
    passages: tuple[Passage, ...]
    reading: StatementReading
    values: tuple[ValueFinding, ...]
    numbers: Mapping[str, float]
    """Each of `FEATURES`."""

    def row(self, names: Sequence[str] = FEATURES) -> list[float]:
        """The named features in order."""
        return [self.numbers[name] for name in names]


def measure(
    case: Case, statement: Statement, passages: Sequence[Passage], reading: StatementReading
) -> StatementFeatures:
    """All features of one statement over its passages, best first, and the reader's readings."""
    texts = [window.text for window in reading.windows] or [p.text for p in passages]
    own = reading.claim[reading.own_start :]
    single = [window.text for window in reading.windows if not window.is_joined]
    values = compare_values(reading.claim, reading.own_start, single or texts, case.language)
    known = sorted((p.similarity for p in passages if p.similarity is not None), reverse=True)
    known = known or [0.0]
    closest = reading.supporting.passage.text if reading.supporting else ""
    denials = _denials(own, case.language)
    numbers = {
        **_reading_features(reading),
        "similarity_best": known[0],
        "similarity_third": known[min(2, len(known) - 1)],
        **_coverage_features(own, texts, case.language),
        **_value_features(values, own, texts),
        "denials": float(denials),
        "denials_differ": float((denials > 0) != (_denials(closest, case.language) > 0)),
        "is_answer": float(reading.own_start > 0),
        "evidence_size": math.log1p(sum(len(text) for text in texts)),
        "table_share": sum(is_row(text) for text in texts) / max(1, len(texts)),
    }
    return StatementFeatures(statement, tuple(passages), reading, values, numbers)


def log_odds(p: float) -> float:
    """The log odds of a probability, bounded."""
    bounded = min(max(p, 1e-6), 1 - 1e-6)
    return max(-FARTHEST, min(FARTHEST, math.log(bounded / (1 - bounded))))


def _reading_features(reading: StatementReading) -> dict[str, float]:
    """Best, second best and over all: what the windows say for and against."""
    read = [window.reading for window in reading.windows] if reading.is_known else []
    support = sorted((r.supported for r in read), reverse=True) or [0.0]
    against = sorted((r.contradicted for r in read), reverse=True) or [0.0]
    joining = [w.reading for w in reading.windows if w.is_joined and read] or read[:1]
    joined = joining[0] if joining else UNREAD
    decided = np.array([1.0 - r.neutral for r in read]) ** 2 + 1e-9
    weights = decided / decided.sum() if read else decided
    share = float(weights @ np.array([r.contradicted / max(1e-6, 1.0 - r.neutral) for r in read]))
    return {
        "support_best": log_odds(support[0]),
        "support_second": log_odds(support[min(1, len(support) - 1)]),
        "support_joined": log_odds(joined.supported),
        "contradiction_best": log_odds(against[0]),
        "contradiction_second": log_odds(against[min(1, len(against) - 1)]),
        "contradiction_joined": log_odds(joined.contradicted),
        "neutral_least": log_odds(min((r.neutral for r in read), default=1.0)),
        "contradiction_share": share if read else 0.5,
        "is_known": float(reading.is_known),
    }


def _coverage_features(own: str, texts: Sequence[str], language: str) -> dict[str, float]:
    """How much of the statement's words stands in the evidence, in all of it and in one window."""
    wanted = query_terms(own, language)
    held = [set(terms(text, language)) for text in texts]
    every: set[str] = set().union(*held) if held else set()
    found = [term in every for term in wanted]
    best = max((sum(t in h for t in wanted) for h in held), default=0)
    inside = (
        match.group()
        for match in list(WORD.finditer(own))[1:]
        if CAPITALISED.match(match.group()) and own[: match.start()].rstrip()[-1:] not in ".!?"
    )
    names = [term for word in inside for term in terms(word, language)]
    missing_names = [name for name in names if name not in every]
    rare = [term for term in wanted if len(term) > 4]
    return {
        "terms_found": sum(found) / max(1, len(wanted)),
        "terms_found_best": best / max(1, len(wanted)),
        "rare_terms_missing": sum(term not in every for term in rare) / max(1, len(rare)),
        "names_missing": len(missing_names) / max(1, len(names)),
        "names": math.log1p(len(names)),
        "longest_run": _longest_run(own, texts, language),
    }


def _longest_run(own: str, texts: Sequence[str], language: str) -> float:
    """The longest run of the statement's terms that stands so in the evidence, as a share."""
    wanted = list(terms(own, language))
    longest = 0
    joined = [" " + " ".join(terms(text, language)) + " " for text in texts]
    for start in range(len(wanted)):
        size = longest + 1
        while start + size <= len(wanted):
            run = " " + " ".join(wanted[start : start + size]) + " "
            if not any(run in text for text in joined):
                break
            longest, size = size, size + 1
    return longest / max(1, len(wanted))


def _value_features(
    values: Sequence[ValueFinding], own: str, texts: Sequence[str]
) -> dict[str, float]:
    count = max(1, len(values))
    digits = {word for word in WORD.findall(own) if word[0].isdigit()}
    inside = {word for text in texts for word in WORD.findall(text) if word[0].isdigit()}

    def share(status: str) -> float:
        return sum(value.status == status for value in values) / count

    return {
        "values": math.log1p(len(values)),
        "values_same": share("same"),
        "values_derived": share("derived"),
        "values_different": float(any(value.status == "different" for value in values)),
        "values_unmatched": share("unmatched"),
        "dates_different": float(any(v.is_date and v.status == "different" for v in values)),
        "digits_missing": len(digits - inside) / max(1, len(digits)),
    }


def _denials(text: str, language: str) -> int:
    words = NEGATIONS.get(language, ())
    if IS_UNSPACED.search(text):
        return sum(text.count(word) for word in words)
    return sum(fold(match.group()) in words for match in WORD.finditer(text))


Numbers = npt.NDArray[np.float64]
ARRAYS = ("feature", "threshold", "left", "right", "value", "root")


@dataclass(frozen=True)
class Trees:
    """All nodes of all trees, one after another; a leaf is its own left and right.

    A row goes left where its feature is at most the threshold.
    """

    feature: npt.NDArray[np.int32]
    threshold: Numbers
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: Numbers
    root: npt.NDArray[np.int32]
    """Each tree's first node."""
    depth: int
    """The longest way down."""
    base: float
    """What is added to the sum of the leaves' values."""

    def predict(self, rows: npt.NDArray[np.float32]) -> Numbers:
        """The summed values of the trees, (n,), for rows of (n, features)."""
        at = np.repeat(self.root[None], len(rows), axis=0)
        which = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            goes_left = rows[which, self.feature[at]] <= self.threshold[at]
            at = np.where(goes_left, self.left[at], self.right[at])
        summed: Numbers = self.base + self.value[at].sum(axis=1)
        return summed

    def save(self, path: Path) -> str:
        """Write the trees to a file and return its sha256."""
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        with path.open("wb") as file:
            np.savez_compressed(
                file, **arrays, depth=np.array(self.depth), base=np.array(self.base)
            )
        return hashlib.sha256(path.read_bytes()).hexdigest()


def load_trees(path: Path, sha256: str) -> Trees:
    """The trees that `save` wrote.

    Raises ConfigError if the file is not there, or is not the one of that checksum.
    """
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
    if found != sha256:
        raise ConfigError(
            f"Expected the weights in {path.name} with sha256 {sha256[:12]}…, found {found[:12]}. "
            "Restore the file from the repository."
        )
    with np.load(path, allow_pickle=False) as held:
        arrays = {name: held[name] for name in ARRAYS}
        return Trees(**arrays, depth=int(held["depth"]), base=float(held["base"]))


def trees_of(model: Any) -> Trees:
    """The trees of scikit-learn's HistGradientBoosting models, which nothing public hands out."""
    parts: dict[str, list[Any]] = {name: [] for name in ARRAYS}
    first, depth = 0, 0
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        count = len(nodes)
        own = np.arange(count)
        is_leaf = nodes["is_leaf"].astype(bool)
        parts["feature"].append(np.where(is_leaf, 0, nodes["feature_idx"]).astype(np.int32))
        parts["threshold"].append(np.where(is_leaf, np.inf, nodes["num_threshold"]))
        for side in ("left", "right"):
            children = np.where(is_leaf, own, nodes[side])
            parts[side].append((children + first).astype(np.int32))
        parts["value"].append(np.where(is_leaf, nodes["value"], 0.0))
        parts["root"].append(np.array([first], dtype=np.int32))
        depth = max(depth, int(nodes["depth"].max()))
        first += count
    joined = {name: np.concatenate(rows) for name, rows in parts.items()}
    return Trees(**joined, depth=depth, base=float(np.ravel(model._baseline_prediction)[0]))


def as_rows(rows: Sequence[Sequence[float]]) -> npt.NDArray[np.float32]:
    """(n, features) as the trees take them."""
    return np.asarray(rows, dtype=np.float32)


FOLDER = Path(__file__).parent / "weights" / "evidence"
CARD = "card.json"
TREES = "trees.npz"
LONG_EVIDENCE = 1000
"""Characters of windows from which evidence counts as a long document's."""
LEAST, MOST = 0.005, 0.995
MATERIALS: tuple[MaterialKind, ...] = get_args(MaterialKind)
Part = Literal["reading", "values", "coverage"]


@dataclass(frozen=True)
class Logistic:
    """A weight for each feature that it uses, and the intercept."""

    weights: Mapping[str, float]
    intercept: float

    def probability(self, numbers: Mapping[str, float]) -> float:
        """The probability of the features."""
        score = self.intercept + sum(w * numbers[name] for name, w in self.weights.items())
        return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, score))))


@dataclass(frozen=True)
class EvidenceModel:
    """The model with its limits; deterministic."""

    trees: Trees
    linear: Logistic
    """Over the same features; it ranks unlike material better, the trees what they have seen."""
    features: tuple[str, ...]
    calibration: Mapping[MaterialKind, Logistic]
    """From the mean log odds of both (`score`) to a probability, by material; some kinds also go by
    `values_different`."""
    parts: Mapping[Part, Logistic]
    """Small models over one family each: what the three built-in debaters go by."""
    addressed: Logistic
    """Whether the evidence speaks of what the statement is about."""
    addressed_from: float
    supported_below: float
    hallucinated_from: float
    card: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Changes whenever the same features could get another label."""
        told = json.dumps([self.card, self.supported_below, self.hallucinated_from], default=str)
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def probability(self, statement: StatementFeatures) -> float:
        """How likely the statement is not supported."""
        score = float(self.scores(as_rows([statement.row(self.features)]))[0])
        calibrated = self.calibration[material_of(statement.numbers)]
        return _bounded(calibrated.probability({**statement.numbers, "score": score}))

    def scores(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """(n,) log odds of rows of the features, not yet calibrated."""
        return mean_scores(self.trees, self.linear, self.features, rows)

    def part(self, name: Part, statement: StatementFeatures) -> float:
        """The same by one family of features alone."""
        return _bounded(self.parts[name].probability(statement.numbers))

    def response(self, probabilities: Sequence[float]) -> float:
        """How likely the response is not supported: as likely as its worst statement."""
        return max(probabilities)

    def measured_share(self, statement: StatementFeatures, p: float) -> MeasuredShare | None:
        """How often verdicts as sure as `p` were right on material of the statement's kind.

        None where too few were measured, and in languages that the reader does not know.
        """
        if not statement.reading.is_known:
            return None
        material, confidence = material_of(statement.numbers), max(p, 1.0 - p)
        for one in self.card.get("measured", {}).get("reliability", {}).get(material, ()):
            if one["low"] <= confidence <= one["high"]:
                return MeasuredShare(material, one["n"], one["right"])
        return None

    def is_addressed(self, statement: StatementFeatures) -> bool:
        """False where the evidence is about something else altogether."""
        return self.addressed.probability(statement.numbers) >= self.addressed_from

    def label(self, p: float) -> Label:
        """The label that follows from a probability."""
        if p >= self.hallucinated_from:
            return "hallucinated"
        return "supported" if p < self.supported_below else "unclear"


def mean_scores(
    trees: Trees, linear: Logistic, features: Sequence[str], rows: npt.NDArray[np.float32]
) -> npt.NDArray[np.float64]:
    """(n,) the mean of the trees' log odds and the linear model's; `rows`: (n, features)."""
    weights = np.array([linear.weights.get(name, 0.0) for name in features])
    own = rows.astype(np.float64) @ weights + linear.intercept
    return np.asarray((trees.predict(rows) + own) / 2)


def material_of(numbers: Mapping[str, float]) -> MaterialKind:
    """What kind of material a statement is checked against, by its features."""
    if numbers["table_share"] >= 0.5:
        return "table"
    if numbers["is_answer"]:
        return "answer"
    return "document" if math.expm1(numbers["evidence_size"]) >= LONG_EVIDENCE else "claim"


def _bounded(p: float) -> float:
    return min(MOST, max(LEAST, p))


@lru_cache(maxsize=2)
def load_evidence_model(folder: Path = FOLDER) -> EvidenceModel:
    """The model in that folder, loaded once per process.

    Raises ConfigError if card or trees are missing, or do not belong together.
    """
    try:
        card = json.loads((folder / CARD).read_text(encoding="utf-8"))
        limits = card["limits"]
        return EvidenceModel(
            trees=load_trees(folder / TREES, card["sha256"]),
            linear=logistic_of(card["linear"]),
            features=tuple(card["features"]),
            calibration={name: logistic_of(card["calibration"][name]) for name in MATERIALS},
            parts={name: logistic_of(body) for name, body in card["parts"].items()},
            addressed=logistic_of(card["addressed"]),
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


def logistic_of(body: Mapping[str, Any]) -> Logistic:
    """A logistic model as a card keeps it."""
    weights = {str(name): float(weight) for name, weight in body["weights"].items()}
    return Logistic(weights, float(body["intercept"]))
