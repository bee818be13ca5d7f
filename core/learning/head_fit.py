"""Fits the classifier's head to verdict texts: embedding, judge's p, words and calibration.

CEDA 3.4 reads embeddings alone; on a few hundred texts n-grams say more. Their share in the head is
fitted on the calibration split, which neither part has seen, because fine-tuned embeddings of the
cases that tuned them look better than they are.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.learning.metrics import (
    FOLD_COUNT,
    BoolArray,
    FloatArray,
    IndexArray,
    compute_log_loss,
    get_folds,
    iter_grouped_folds,
    select_rows,
)
from core.learning.options import TrainingOptions
from core.learning.training_set import LabelledText, TrainingRow
from core.llm.encoder import Embedder, Matrix
from core.verdict.classifier import (
    Calibrator,
    CalibratorKind,
    ClassifierHead,
    NgramModel,
    compute_logit,
    extract_ngrams,
    sigmoid,
)

# Rows of the rarer label; isotonic regression has as many free numbers as it finds steps.
MIN_ROWS_BY_CALIBRATOR: dict[CalibratorKind, int] = {
    "none": 0,
    "temperature": 10,
    "platt": 20,
    "isotonic": 150,
}
MIN_LOSS_GAIN = 1e-4  # nats by which a curve must be better than a simpler one
MIN_SLOPE, MAX_SLOPE = 0.05, 20.0  # a slope of 0 would call everything hallucinated
CaseScorer = Callable[
    [IndexArray, IndexArray], FloatArray
]  # (cases to fit on, cases to score) to their scores
STACK_PENALTY = 1.0  # on squared weights of scores of unit spread
MAX_STACK_PROBABILITY = 0.995  # a few hundred cases justify no higher probability
MIN_NGRAM_CASES = 2  # an n-gram of one case alone says nothing about others
NGRAM_C = 10.0  # scikit-learn's C
KIND_COLUMN_WEIGHT = 0.3
MIN_SPLIT_ROWS = 10  # rows of each label that a calibration split must have to be used
TEXT_INPUT, TEXT_AND_WORDS_INPUT = "embedding", "embedding and words"


@dataclass(frozen=True)
class FittedCalibrator:
    """A calibrator, and the out-of-fold log loss of every kind that was tried."""

    calibrator: Calibrator
    log_loss: dict[str, float]
    n: int

    def card(self, *, is_cross_fitted: bool) -> dict[str, Any]:
        """Return the part of the version's card about it."""
        facts = {"kind": self.calibrator.kind, "n": self.n, "cross_fitted": is_cross_fitted}
        return facts | {"log_loss": self.log_loss}


def fit_calibrator(
    log_odds: FloatArray, truth: BoolArray, groups: Sequence[str], *, may_sharpen: bool
) -> FittedCalibrator:
    """Return the calibrator with the least cross-validated log loss; on a tie the simpler one."""
    rarer_count = int(min(truth.sum(), (~truth).sum()))
    kinds: list[CalibratorKind] = [
        kind for kind, fewest in MIN_ROWS_BY_CALIBRATOR.items() if rarer_count >= fewest
    ]
    folds = get_folds(groups)
    losses = {kind: _out_of_fold_loss(kind, log_odds, truth, folds, may_sharpen) for kind in kinds}
    best: CalibratorKind = "none"
    for kind in kinds:
        if losses[kind] < losses[best] - MIN_LOSS_GAIN:
            best = kind
    rounded = {str(kind): round(loss, 4) for kind, loss in losses.items() if np.isfinite(loss)}
    return FittedCalibrator(
        _fit_calibrator(best, log_odds, truth, may_sharpen), rounded, len(truth)
    )


def _out_of_fold_loss(
    kind: CalibratorKind,
    log_odds: FloatArray,
    truth: BoolArray,
    folds: IndexArray,
    may_sharpen: bool,
) -> float:
    p = np.zeros(len(truth))
    for fold in set(folds.tolist()):
        inside = folds == fold
        rest = truth[~inside]
        if kind != "none" and (rest.all() or not rest.any()):
            return float("inf")
        curve = _fit_calibrator(kind, log_odds[~inside], rest, may_sharpen)
        p[inside] = curve.probability(log_odds[inside])
    return compute_log_loss(truth, p) if len(truth) else float("inf")


def _fit_calibrator(
    kind: CalibratorKind, log_odds: FloatArray, truth: BoolArray, may_sharpen: bool
) -> Calibrator:
    if kind == "none":
        return Calibrator()
    if kind == "isotonic":
        return _fit_isotonic(log_odds, truth)
    from scipy.optimize import minimize

    signs = np.where(truth, 1.0, -1.0)
    has_shift = kind == "platt"

    def loss(shape: FloatArray) -> float:
        shift = shape[1] if has_shift else 0.0
        return float(np.logaddexp(0.0, -signs * (shape[0] * log_odds + shift)).mean())

    start, bounds = [1.0], [(MIN_SLOPE, MAX_SLOPE if may_sharpen else 1.0)]
    if has_shift:
        start.append(0.0)
        bounds.append((-20.0, 20.0))
    solution = minimize(loss, np.array(start), bounds=bounds, method="L-BFGS-B").x
    shift = float(solution[1]) if has_shift else 0.0
    return Calibrator(kind, (float(solution[0]),), (shift,))


def _fit_isotonic(log_odds: FloatArray, truth: BoolArray) -> Calibrator:
    """Fit a rising curve; its shares stay away from 0 and 1 by what one more row would change."""
    from sklearn.isotonic import IsotonicRegression

    least = 1.0 / (len(truth) + 2)
    model = IsotonicRegression(y_min=least, y_max=1.0 - least).fit(log_odds, truth)
    knots, places = np.unique(model.X_thresholds_, return_index=True)
    shares = model.y_thresholds_[places]
    return Calibrator("isotonic", knots=tuple(map(float, knots)), shares=tuple(map(float, shares)))


@dataclass(frozen=True)
class StackedModel:
    """p = sigmoid(intercept + Σ weight · (score - centre) / spread), no weight below 0."""

    centres: FloatArray
    spreads: FloatArray
    weights: FloatArray
    intercept: float

    def p(self, scores: FloatArray) -> FloatArray:
        """Return (n,) p_hallucinated of (n, k) scores."""
        log_odds = ((scores - self.centres) / self.spreads) @ self.weights + self.intercept
        return np.asarray(
            np.clip(sigmoid(log_odds), 1.0 - MAX_STACK_PROBABILITY, MAX_STACK_PROBABILITY)
        )


def cross_fit_scores(
    scorers: Sequence[CaseScorer],
    cases: IndexArray,
    is_wrong: BoolArray,
    groups: IndexArray,
    seed: int,
) -> FloatArray:
    """Return (cases, scorers) scores by models fitted without the case's group (Wolpert 1992)."""
    scores = np.zeros((len(cases), len(scorers)))
    for fit, test in iter_grouped_folds(is_wrong, groups, seed):
        scores[test] = np.column_stack([scorer(cases[fit], cases[test]) for scorer in scorers])
    return scores


def fit_stack(scores: FloatArray, is_wrong: BoolArray) -> StackedModel:
    """Fit weights of (n, k) scores, none below 0 (Breiman 1996), with an L2 penalty."""
    from scipy.optimize import minimize

    centres, spreads = scores.mean(axis=0), scores.std(axis=0)
    spreads = np.where(spreads > 0, spreads, 1.0)
    level = (scores - centres) / spreads
    sign = np.where(is_wrong, 1.0, -1.0)

    def loss(values: FloatArray) -> tuple[float, FloatArray]:
        margin = sign * (level @ values[1:] + values[0])
        pull = -sign / (1.0 + np.exp(margin))
        gradient = np.r_[pull.sum(), level.T @ pull + STACK_PENALTY * values[1:]]
        total = np.logaddexp(0.0, -margin).sum() + STACK_PENALTY * (values[1:] ** 2).sum() / 2
        return float(total), gradient

    score_count = level.shape[1]
    base = float(np.log((is_wrong.sum() + 0.5) / ((~is_wrong).sum() + 0.5)))
    start = np.r_[base, np.full(score_count, 1.0 / score_count)]
    bounds = [(None, None), *[(0.0, None)] * score_count]
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return StackedModel(centres, spreads, solution[1:], float(solution[0]))


@dataclass(frozen=True)
class EncodedRows:
    """Rows as a head reads them, and what is right.

    `vectors` are (n, width) embeddings, `judged` the judge's p, `truth` (n,) True for hallucinated,
    `groups` the case of each row.
    """

    texts: tuple[str, ...]
    vectors: Matrix
    judged: tuple[float | None, ...]
    truth: BoolArray
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.truth)

    def at(self, places: IndexArray) -> EncodedRows:
        """Return only the rows at these places."""
        return select_rows(self, places, "texts", "vectors", "judged", "truth", "groups")

    def with_others(self, other: EncodedRows) -> EncodedRows:
        """Return these rows followed by the others."""
        return EncodedRows(
            self.texts + other.texts,
            np.concatenate([self.vectors, other.vectors]),
            self.judged + other.judged,
            np.concatenate([self.truth, other.truth]),
            self.groups + other.groups,
        )


def encode_rows(rows: Sequence[LabelledText | TrainingRow], encoder: Embedder) -> EncodedRows:
    """Return what a head reads of each row: its text's embedding, made alone, and the judge's p."""
    no_vectors = np.zeros((0, encoder.width), np.float32)
    return EncodedRows(
        tuple(row.text for row in rows),
        np.concatenate([no_vectors, *(encoder.encode([row.text]) for row in rows)]),
        tuple(row.p for row in rows),
        np.array([row.label == "hallucinated" for row in rows], dtype=bool),
        tuple(row.group for row in rows),
    )


def fit_head(data: EncodedRows, options: TrainingOptions) -> ClassifierHead:
    """Fit logistic regression over embedding and p; each row also without p, for models' texts."""
    from sklearn.linear_model import LogisticRegression

    with_p = [place for place, p in enumerate(data.judged) if p is not None]
    places = [*range(len(data)), *with_p]
    judge_log_odds = [compute_logit(p) for p in data.judged] + [0.0] * len(with_p)
    fitted = LogisticRegression(
        C=options.regularisation, class_weight="balanced", max_iter=1000, random_state=options.seed
    ).fit(np.column_stack([data.vectors[places], judge_log_odds]), data.truth[places])
    *weights, judge_weight = (float(w) for w in fitted.coef_[0])
    return ClassifierHead(tuple(weights), float(fitted.intercept_[0]), judge_weight)


def has_enough_rows(split: EncodedRows) -> bool:
    """Return True if a calibration split has enough rows of each label."""
    return bool(min(split.truth.sum(), (~split.truth).sum()) >= MIN_SPLIT_ROWS)


@dataclass(frozen=True)
class HeadSelection:
    """The head that did better on unseen cases; log loss of both, empty if none was tried."""

    head: ClassifierHead
    log_loss: dict[str, float]
    n: int

    def card(self) -> dict[str, Any]:
        """Return the part of the version's card about it."""
        read = TEXT_AND_WORDS_INPUT if self.head.words is not None else TEXT_INPUT
        return {"read": read, "n": self.n, "log_loss": self.log_loss}


def select_head(head: ClassifierHead, learned: EncodedRows, split: EncodedRows) -> HeadSelection:
    """Add a model of the `learned` rows' words to the head if it helps on the calibration split."""
    if not has_enough_rows(split):
        return HeadSelection(head, {}, len(split))
    counts = count_ngrams([CaseTexts(((text,),)) for text in learned.texts])
    word_part = fit_ngram_model(counts, np.arange(len(learned)), learned.truth).part(counts)
    text_scores = head.log_odds(split.vectors, split.judged, split.texts)
    both_scores = np.column_stack([text_scores, word_part.scores(split.texts)])
    losses = {
        TEXT_INPUT: _cross_fitted_loss(text_scores[:, None], split),
        TEXT_AND_WORDS_INPUT: _cross_fitted_loss(both_scores, split),
    }
    if losses[TEXT_AND_WORDS_INPUT] > losses[TEXT_INPUT] - MIN_LOSS_GAIN:
        return HeadSelection(head, losses, len(split))
    stack = fit_stack(both_scores, split.truth)
    text_share, word_share = (float(share) for share in stack.weights / stack.spreads)
    shift = stack.intercept - float((stack.weights * stack.centres / stack.spreads).sum())
    shares = (text_share, word_share, shift)
    return HeadSelection(replace(head, words=word_part, shares=shares), losses, len(split))


def _cross_fitted_loss(scores: FloatArray, split: EncodedRows) -> float:
    folds = get_folds(split.groups)
    p = np.full(len(split), 0.5)
    for fold in range(FOLD_COUNT):
        inside, rest = folds == fold, folds != fold
        if inside.any() and len(set(split.truth[rest].tolist())) == 2:
            p[inside] = fit_stack(scores[rest], split.truth[rest]).p(scores[inside])
    return round(compute_log_loss(split.truth, p), 4)


def fit_calibration(
    head: ClassifierHead,
    corrections: EncodedRows,
    seeds: EncodedRows,
    split: EncodedRows,
    options: TrainingOptions,
) -> tuple[FittedCalibrator, bool]:
    """Return the head's calibration, and whether it was cross-fitted on the training cases.

    It is fitted to the calibration split if that has MIN_SPLIT_ROWS rows of each label.
    Cross-fitted cases look surer than new ones will, because the encoder has seen them, and a head
    with words was chosen on the split: in both cases the curve may cool the probabilities but never
    sharpen them.
    """
    if has_enough_rows(split):
        log_odds = head.log_odds(split.vectors, split.judged, split.texts)
        may_sharpen = head.words is None
        return fit_calibrator(log_odds, split.truth, split.groups, may_sharpen=may_sharpen), False
    folds = get_folds(corrections.groups)
    log_odds, is_scored = np.zeros(len(corrections)), np.zeros(len(corrections), dtype=bool)
    for fold in range(FOLD_COUNT):
        inside, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        others = corrections.at(rest).with_others(seeds)
        if len(inside) and len(set(others.truth.tolist())) == 2:
            held = corrections.at(inside)
            log_odds[inside] = fit_head(others, options).log_odds(held.vectors, held.judged)
            is_scored[inside] = True
    rows = corrections.at(np.flatnonzero(is_scored))
    return fit_calibrator(log_odds[is_scored], rows.truth, rows.groups, may_sharpen=False), True


@dataclass(frozen=True)
class CaseTexts:
    """The texts of a case by view (an n-gram counts once in each text), and its kind."""

    views: tuple[tuple[str, ...], ...]
    kind: str = ""


@dataclass(frozen=True)
class NgramCounts:
    """N-gram counts of cases: for each view a sparse matrix (cases, n-grams), and the n-grams."""

    views: tuple[Any, ...]
    kinds: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]

    def of_views(self, wanted: Sequence[int]) -> NgramCounts:
        """Return the same cases with only these views."""
        views = tuple(self.views[place] for place in wanted)
        return NgramCounts(views, self.kinds, tuple(self.names[place] for place in wanted))


@dataclass(frozen=True)
class FittedNgramModel:
    """N-grams and idf by view; `weights` (1 + kinds, n-grams): of all cases, then of each kind."""

    columns: tuple[IndexArray, ...]
    idf: tuple[FloatArray, ...]
    kinds: tuple[str, ...]
    weights: FloatArray
    offsets: FloatArray
    intercept: float

    def scores(self, counted: NgramCounts, cases: IndexArray) -> FloatArray:
        """Return (cases,) uncalibrated log odds of hallucinated."""
        rows = _tf_idf(counted, cases, self.columns, self.idf)
        kind_flags = _kind_flags(counted, cases, self.kinds)
        overall = rows @ self.weights[0] + self.intercept + kind_flags @ self.offsets
        return np.asarray(overall + ((rows @ self.weights[1:].T) * kind_flags).sum(axis=1))

    def part(self, counted: NgramCounts) -> NgramModel:
        """Return the model as a head stores it. Raises ValueError: several views, or kinds."""
        if len(self.columns) != 1 or self.kinds:
            raise ValueError("a head reads one text and knows no kinds")
        names = tuple(counted.names[0][column] for column in self.columns[0])
        idf, weights = tuple(self.idf[0].tolist()), tuple(self.weights[0].tolist())
        return NgramModel(names, idf, weights, self.intercept)


def count_ngrams(cases: Sequence[CaseTexts]) -> NgramCounts:
    """Count the n-grams of all cases once, for all models that are fitted on them."""
    views = range(len(cases[0].views)) if cases else range(0)
    view_counts = [_count_grams([case.views[view] for case in cases]) for view in views]
    kinds = tuple(case.kind for case in cases)
    matrices = tuple(matrix for matrix, _ in view_counts)
    return NgramCounts(matrices, kinds, tuple(names for _, names in view_counts))


def fit_ngram_model(
    counts: NgramCounts, cases: IndexArray, is_wrong: BoolArray
) -> FittedNgramModel:
    """Fit to these cases; `is_wrong` (cases,) must hold both labels, which weigh alike.

    Each n-gram is scaled by how it separates the labels (Wang and Manning 2012), over all cases and
    once more over those of a kind (Daumé 2007): words mean other things in a sum than in a fact.
    """
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    columns = tuple(
        np.flatnonzero(np.asarray((view[cases] > 0).sum(axis=0)).ravel() >= MIN_NGRAM_CASES)
        for view in counts.views
    )
    idf = tuple(
        np.log((1.0 + len(cases)) / (1.0 + view[cases][:, view_columns].getnnz(axis=0))) + 1.0
        for view, view_columns in zip(counts.views, columns, strict=True)
    )
    seen_kinds = sorted({counts.kinds[case] for case in cases})
    kinds = tuple(seen_kinds) if len(seen_kinds) > 1 else ()  # a single kind holds all cases
    rows = _tf_idf(counts, cases, columns, idf)
    kind_flags = _kind_flags(counts, cases, kinds)
    inside = [np.ones(len(cases), dtype=bool), *(kind_flags.T > 0)]
    ratios = [_label_ratio(rows[places], is_wrong[places]) for places in inside]
    copies = [rows.multiply(ratio) for ratio in ratios]
    copies[1:] = [copy.multiply(kind_flags[:, [kind]]) for kind, copy in enumerate(copies[1:])]
    fitted = LogisticRegression(C=NGRAM_C, class_weight="balanced", max_iter=3000).fit(
        hstack([*copies, csr_matrix(KIND_COLUMN_WEIGHT * kind_flags)]).tocsr(), is_wrong
    )
    part_count, gram_count = len(ratios), rows.shape[1]
    coefficients, end = fitted.coef_[0], gram_count * part_count
    weights = coefficients[:end].reshape(part_count, gram_count) * np.stack(ratios)
    offsets = KIND_COLUMN_WEIGHT * coefficients[end:]
    return FittedNgramModel(columns, idf, kinds, weights, offsets, float(fitted.intercept_[0]))


def _count_grams(cases: Sequence[Sequence[str]]) -> tuple[Any, tuple[str, ...]]:
    """Return (cases, n-grams) sparse counts of a case's texts with each n-gram, and the n-grams."""
    from scipy.sparse import csr_matrix

    places: dict[str, int] = defaultdict(lambda: len(places))
    own = [
        Counter(places[gram] for t in texts for gram in dict.fromkeys(extract_ngrams(t)))
        for texts in cases
    ]
    starts = [0, *itertools.accumulate(map(len, own))]
    columns, values = ([n for case in own for n in part(case)] for part in (dict.keys, dict.values))
    shape = (len(cases), len(places))
    return csr_matrix((values, columns, starts), shape=shape, dtype=np.float64), tuple(places)


def _tf_idf(
    counts: NgramCounts, cases: IndexArray, columns: Sequence[IndexArray], idf: Sequence[FloatArray]
) -> Any:
    """Return (cases, n-grams): tf-idf with dampened counts, of unit length in each view."""
    from scipy.sparse import csr_matrix, diags, hstack

    parts = []
    for view, view_columns, weight in zip(counts.views, columns, idf, strict=True):
        part = view[cases][:, view_columns].astype(np.float64)
        part.data = 1.0 + np.log(part.data)
        part = part @ diags(weight)
        length = np.sqrt(np.asarray(part.multiply(part).sum(axis=1)).ravel())
        parts.append(diags(1.0 / np.where(length > 0, length, 1.0)) @ part)
    return csr_matrix(hstack(parts))


def _kind_flags(counts: NgramCounts, cases: IndexArray, kinds: Sequence[str]) -> FloatArray:
    """Return (cases, kinds): 1 in the case's own kind, 0 elsewhere."""
    flags = [[1.0 if counts.kinds[case] == kind else 0.0 for kind in kinds] for case in cases]
    return np.array(flags, dtype=np.float64).reshape(len(cases), len(kinds))


def _label_ratio(rows: Any, is_wrong: BoolArray) -> FloatArray:
    """Return (n-grams,) log of the weight in hallucinated cases over that in supported ones."""
    wrong_weight = np.asarray(rows[is_wrong].sum(axis=0)).ravel() + 1.0
    right_weight = np.asarray(rows[~is_wrong].sum(axis=0)).ravel() + 1.0
    return np.asarray(
        np.log((wrong_weight / wrong_weight.sum()) / (right_weight / right_weight.sum()))
    )
