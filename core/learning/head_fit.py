"""Fits the head of the classifier to verdict texts: embedding, judge's p, words, and calibration.

CEDA 3.4 reads embeddings alone; on a few hundred texts n-grams tell more. How much a head reads
them is weighed on the calibration split, which neither has seen: fine-tuned embeddings of the cases
that tuned them look better than they are.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.learning.metrics import (
    FOLDS,
    Flags,
    Numbers,
    Places,
    fold_numbers,
    grouped_folds,
    log_loss,
    subset,
)
from core.learning.options import Options
from core.learning.training_set import Lesson, TrainingRow
from core.llm.encoder import Embedder, Matrix
from core.verdict.classifier import (
    Calibrator,
    CalibratorKind,
    Head,
    WordPart,
    grams,
    logit_of,
    sigmoid,
)

# Of the rarer label; isotonic regression has as many free numbers as it finds steps.
FEWEST: dict[CalibratorKind, int] = {"none": 0, "temperature": 10, "platt": 20, "isotonic": 150}
WORTH = 1e-4  # nats by which another curve must be better than a simpler one
LEAST_SLOPE, MOST_SLOPE = 0.05, 20.0  # a slope of 0 would call everything hallucinated


@dataclass(frozen=True)
class FittedCurve:
    """A curve, and the log loss of every kind that was tried, out of fold."""

    calibrator: Calibrator
    log_loss: dict[str, float]
    n: int

    def card(self, *, is_cross_fitted: bool) -> dict[str, Any]:
        """What the version's card says of it."""
        own = {"kind": self.calibrator.kind, "n": self.n, "cross_fitted": is_cross_fitted}
        return own | {"log_loss": self.log_loss}


def calibrated(
    log_odds: Numbers, truth: Flags, groups: Sequence[str], *, may_sharpen: bool
) -> FittedCurve:
    """The curve with the least log loss, cross-validated by case; a simpler one where none wins."""
    rarer = int(min(truth.sum(), (~truth).sum()))
    kinds: list[CalibratorKind] = [kind for kind, fewest in FEWEST.items() if rarer >= fewest]
    folds = fold_numbers(groups)
    losses = {kind: _out_of_fold(kind, log_odds, truth, folds, may_sharpen) for kind in kinds}
    best: CalibratorKind = "none"
    for kind in kinds:
        if losses[kind] < losses[best] - WORTH:
            best = kind
    told = {str(kind): round(loss, 4) for kind, loss in losses.items() if np.isfinite(loss)}
    return FittedCurve(_fitted(best, log_odds, truth, may_sharpen), told, len(truth))


def _out_of_fold(
    kind: CalibratorKind, log_odds: Numbers, truth: Flags, folds: Places, may_sharpen: bool
) -> float:
    p = np.zeros(len(truth))
    for fold in set(folds.tolist()):
        inside = folds == fold
        rest = truth[~inside]
        if kind != "none" and (rest.all() or not rest.any()):
            return float("inf")
        curve = _fitted(kind, log_odds[~inside], rest, may_sharpen)
        p[inside] = curve.probability(log_odds[inside])
    return log_loss(truth, p) if len(truth) else float("inf")


def _fitted(kind: CalibratorKind, log_odds: Numbers, truth: Flags, may_sharpen: bool) -> Calibrator:
    if kind == "none":
        return Calibrator()
    if kind == "isotonic":
        return _isotonic(log_odds, truth)
    from scipy.optimize import minimize

    signs = np.where(truth, 1.0, -1.0)
    is_moved = kind == "platt"

    def loss(shape: Numbers) -> float:
        shift = shape[1] if is_moved else 0.0
        return float(np.logaddexp(0.0, -signs * (shape[0] * log_odds + shift)).mean())

    bounds = [(LEAST_SLOPE, MOST_SLOPE if may_sharpen else 1.0)] + [(-20.0, 20.0)] * is_moved
    found = minimize(loss, np.array([1.0, 0.0][: 1 + is_moved]), bounds=bounds, method="L-BFGS-B").x
    slope, shift = (*map(float, found), 0.0)[:2]
    return Calibrator(kind, (slope,), (shift,))


def _isotonic(log_odds: Numbers, truth: Flags) -> Calibrator:
    """A rising curve; shares are kept from 0 and 1 by what a row more would change."""
    from sklearn.isotonic import IsotonicRegression

    least = 1.0 / (len(truth) + 2)
    model = IsotonicRegression(y_min=least, y_max=1.0 - least).fit(log_odds, truth)
    knots, places = np.unique(model.X_thresholds_, return_index=True)
    shares = model.y_thresholds_[places]
    return Calibrator("isotonic", knots=tuple(map(float, knots)), shares=tuple(map(float, shares)))


Scorer = Callable[[Places, Places], Numbers]  # (cases to fit on, cases to score) to their scores
SHRINKAGE = 1.0  # on squared weights of scores of unit spread
SUREST = 0.995  # nothing that some hundred cases taught is surer


@dataclass(frozen=True)
class Stack:
    """p = sigmoid(intercept + Σ weight · (score - centre) / spread), weights at least 0."""

    centres: Numbers
    spreads: Numbers
    weights: Numbers
    intercept: float

    def p(self, scores: Numbers) -> Numbers:
        """(n,) p_hallucinated of (n, k) scores."""
        leaning = ((scores - self.centres) / self.spreads) @ self.weights + self.intercept
        return np.asarray(np.clip(sigmoid(leaning), 1.0 - SUREST, SUREST))


def cross_fitted(
    scorers: Sequence[Scorer], cases: Places, is_wrong: Flags, groups: Places, seed: int
) -> Numbers:
    """(cases, scorers): scores by models that saw nothing of the case's group (Wolpert 1992)."""
    scores = np.zeros((len(cases), len(scorers)))
    for fit, test in grouped_folds(is_wrong, groups, seed):
        scores[test] = np.column_stack([scorer(cases[fit], cases[test]) for scorer in scorers])
    return scores


def fit_stack(scores: Numbers, is_wrong: Flags) -> Stack:
    """The likeliest weights of (n, k) scores, none below 0 (Breiman 1996), drawn towards 0."""
    from scipy.optimize import minimize

    centres, spreads = scores.mean(axis=0), scores.std(axis=0)
    spreads = np.where(spreads > 0, spreads, 1.0)
    level = (scores - centres) / spreads
    sign = np.where(is_wrong, 1.0, -1.0)

    def loss(values: Numbers) -> tuple[float, Numbers]:
        margin = sign * (level @ values[1:] + values[0])
        pull = -sign / (1.0 + np.exp(margin))
        gradient = np.r_[pull.sum(), level.T @ pull + SHRINKAGE * values[1:]]
        total = np.logaddexp(0.0, -margin).sum() + SHRINKAGE * (values[1:] ** 2).sum() / 2
        return float(total), gradient

    many = level.shape[1]
    base = float(np.log((is_wrong.sum() + 0.5) / ((~is_wrong).sum() + 0.5)))
    start, bounds = np.r_[base, np.full(many, 1.0 / many)], [(None, None), *[(0.0, None)] * many]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Stack(centres, spreads, found[1:], float(found[0]))


FEWEST_CASES = 2  # an n-gram of one case alone tells nothing of others
REGULARISATION = 10.0  # scikit-learn's C
KIND_STEP = 0.3
FEWEST_ON_SPLIT = 10  # rows of each label; with fewer a calibration split says too little
TEXT, BOTH = "embedding", "embedding and words"


@dataclass(frozen=True)
class Numbered:
    """Rows as a head reads them, with what is right: (n, width), the judge's p, truth, case."""

    texts: tuple[str, ...]
    vectors: Matrix
    judged: tuple[float | None, ...]
    truth: Flags
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.truth)

    def at(self, places: Places) -> Numbered:
        """Only the rows at these places."""
        return subset(self, places, "texts", "vectors", "judged", "truth", "groups")

    def with_others(self, other: Numbered) -> Numbered:
        """These rows and the others after them."""
        return Numbered(
            self.texts + other.texts,
            np.concatenate([self.vectors, other.vectors]),
            self.judged + other.judged,
            np.concatenate([self.truth, other.truth]),
            self.groups + other.groups,
        )


def encoded(rows: Sequence[Lesson | TrainingRow], encoder: Embedder) -> Numbered:
    """What a head reads of each row: its text's embedding, made alone, and the judge's p."""
    none = np.zeros((0, encoder.width), np.float32)
    return Numbered(
        tuple(row.text for row in rows),
        np.concatenate([none, *(encoder.encode([row.text]) for row in rows)]),
        tuple(row.p for row in rows),
        np.array([row.label == "hallucinated" for row in rows], dtype=bool),
        tuple(row.group for row in rows),
    )


def fit_head(data: Numbered, options: Options) -> Head:
    """Logistic regression over p and embedding; each row also without p, as models give none."""
    from sklearn.linear_model import LogisticRegression

    with_p = [place for place, p in enumerate(data.judged) if p is not None]
    places = [*range(len(data)), *with_p]
    own = [logit_of(p) for p in data.judged] + [0.0] * len(with_p)
    fitted = LogisticRegression(
        C=options.regularisation, class_weight="balanced", max_iter=1000, random_state=options.seed
    ).fit(np.column_stack([data.vectors[places], own]), data.truth[places])
    *weights, judge_weight = (float(w) for w in fitted.coef_[0])
    return Head(tuple(weights), float(fitted.intercept_[0]), judge_weight)


def has_enough(split: Numbered) -> bool:
    """True where a calibration split says enough of what it has not taught."""
    return bool(min(split.truth.sum(), (~split.truth).sum()) >= FEWEST_ON_SPLIT)


@dataclass(frozen=True)
class Weighed:
    """The head that did better on cases not seen, and the log loss of both; none was tried: {}."""

    head: Head
    log_loss: dict[str, float]
    n: int

    def card(self) -> dict[str, Any]:
        """What the version's card says of it."""
        read = BOTH if self.head.words is not None else TEXT
        return {"read": read, "n": self.n, "log_loss": self.log_loss}


def weighed(head: Head, learned: Numbered, split: Numbered) -> Weighed:
    """The head with words of the texts `learned`, where they tell more on the calibration split."""
    if not has_enough(split):
        return Weighed(head, {}, len(split))
    found = counted([CaseTexts(((text,),)) for text in learned.texts])
    words = fit_words(found, np.arange(len(learned)), learned.truth).part(found)
    told = head.log_odds(split.vectors, split.judged, split.texts)
    both = np.column_stack([told, words.scores(split.texts)])
    losses = {TEXT: _unseen_loss(told[:, None], split), BOTH: _unseen_loss(both, split)}
    if losses[BOTH] > losses[TEXT] - WORTH:
        return Weighed(head, losses, len(split))
    stack = fit_stack(both, split.truth)
    main, own = (float(share) for share in stack.weights / stack.spreads)
    shift = stack.intercept - float((stack.weights * stack.centres / stack.spreads).sum())
    return Weighed(replace(head, words=words, shares=(main, own, shift)), losses, len(split))


def _unseen_loss(scores: Numbers, split: Numbered) -> float:
    folds = fold_numbers(split.groups)
    p = np.full(len(split), 0.5)
    for fold in range(FOLDS):
        inside, rest = folds == fold, folds != fold
        if inside.any() and len(set(split.truth[rest].tolist())) == 2:
            p[inside] = fit_stack(scores[rest], split.truth[rest]).p(scores[inside])
    return round(log_loss(split.truth, p), 4)


def fit_calibration(
    head: Head, corrections: Numbered, seeds: Numbered, split: Numbered, options: Options
) -> tuple[FittedCurve, bool]:
    """The head's calibration, and whether it was cross-fitted on the training cases.

    It is fitted to the calibration split as soon as that has FEWEST_ON_SPLIT rows of each label.
    Cross-fitted cases look surer than new ones will, for the encoder has seen them, and a head with
    words was weighed on the split: both curves may cool the probabilities but never sharpen them.
    """
    if has_enough(split):
        told = head.log_odds(split.vectors, split.judged, split.texts)
        may_sharpen = head.words is None
        return calibrated(told, split.truth, split.groups, may_sharpen=may_sharpen), False
    folds = fold_numbers(corrections.groups)
    told, known = np.zeros(len(corrections)), np.zeros(len(corrections), dtype=bool)
    for fold in range(FOLDS):
        inside, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        others = corrections.at(rest).with_others(seeds)
        if len(inside) and len(set(others.truth.tolist())) == 2:
            own = corrections.at(inside)
            told[inside] = fit_head(others, options).log_odds(own.vectors, own.judged)
            known[inside] = True
    rows = corrections.at(np.flatnonzero(known))
    return calibrated(told[known], rows.truth, rows.groups, may_sharpen=False), True


@dataclass(frozen=True)
class CaseTexts:
    """A case: for each view its texts (an n-gram counts once in each), and its kind."""

    views: tuple[tuple[str, ...], ...]
    kind: str = ""


@dataclass(frozen=True)
class CountedWords:
    """Cases as numbers: for each view a sparse matrix (cases, n-grams) of counts, and `names`."""

    views: tuple[Any, ...]
    kinds: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]

    def of_views(self, wanted: Sequence[int]) -> CountedWords:
        """The same cases with these views alone."""
        views = tuple(self.views[place] for place in wanted)
        return CountedWords(views, self.kinds, tuple(self.names[place] for place in wanted))


@dataclass(frozen=True)
class WordModel:
    """By view the n-grams and idf; `weights` (1 + kinds, n-grams): of all cases, of kinds."""

    columns: tuple[Places, ...]
    idf: tuple[Numbers, ...]
    kinds: tuple[str, ...]
    weights: Numbers
    offsets: Numbers
    intercept: float

    def scores(self, counted: CountedWords, cases: Places) -> Numbers:
        """(cases,) how far each leans to hallucinated: log-odds as fitted, not calibrated."""
        rows = _weighed(counted, cases, self.columns, self.idf)
        own = _kinds(counted, cases, self.kinds)
        shared = rows @ self.weights[0] + self.intercept + own @ self.offsets
        return np.asarray(shared + ((rows @ self.weights[1:].T) * own).sum(axis=1))

    def part(self, counted: CountedWords) -> WordPart:
        """The model as a head keeps it; `counted` is what it read, in one view and of no kinds."""
        if len(self.columns) != 1 or self.kinds:
            raise ValueError("a head reads one text and knows no kinds")
        names = tuple(counted.names[0][column] for column in self.columns[0])
        idf, weights = tuple(self.idf[0].tolist()), tuple(self.weights[0].tolist())
        return WordPart(names, idf, weights, self.intercept)


def counted(readings: Sequence[CaseTexts]) -> CountedWords:
    """Count once what many models are fitted on."""
    views = range(len(readings[0].views)) if readings else range(0)
    found = [_counts([reading.views[view] for reading in readings]) for view in views]
    kinds = tuple(reading.kind for reading in readings)
    return CountedWords(tuple(m for m, _ in found), kinds, tuple(names for _, names in found))


def fit_words(found: CountedWords, cases: Places, is_wrong: Flags) -> WordModel:
    """Fit on these cases; `is_wrong` (cases,) must hold both. Labels weigh alike.

    Each n-gram is scaled by how it parts the labels (Wang and Manning 2012), over all cases and
    once more over those of a kind (Daumé 2007): words mean other things of a sum than of a fact.
    """
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    columns = tuple(
        np.flatnonzero(np.asarray((view[cases] > 0).sum(axis=0)).ravel() >= FEWEST_CASES)
        for view in found.views
    )
    idf = tuple(
        np.log((1.0 + len(cases)) / (1.0 + view[cases][:, own].getnnz(axis=0))) + 1.0
        for view, own in zip(found.views, columns, strict=True)
    )
    seen = sorted({found.kinds[case] for case in cases})
    kinds = tuple(seen) if len(seen) > 1 else ()  # one kind is all cases
    rows = _weighed(found, cases, columns, idf)
    own = _kinds(found, cases, kinds)
    inside = [np.ones(len(cases), dtype=bool), *(own.T > 0)]
    ratios = [_label_ratio(rows[here], is_wrong[here]) for here in inside]
    copies = [rows.multiply(ratio) for ratio in ratios]
    copies[1:] = [copy.multiply(own[:, [kind]]) for kind, copy in enumerate(copies[1:])]
    fitted = LogisticRegression(C=REGULARISATION, class_weight="balanced", max_iter=3000).fit(
        hstack([*copies, csr_matrix(KIND_STEP * own)]).tocsr(), is_wrong
    )
    parts, many = len(ratios), rows.shape[1]
    weights = fitted.coef_[0][: many * parts].reshape(parts, many) * np.stack(ratios)
    offsets = KIND_STEP * fitted.coef_[0][many * parts :]
    return WordModel(columns, idf, kinds, weights, offsets, float(fitted.intercept_[0]))


def _counts(cases: Sequence[Sequence[str]]) -> tuple[Any, tuple[str, ...]]:
    """(cases, n-grams), sparse: in how many of a case's texts each n-gram stands; the n-grams."""
    from scipy.sparse import csr_matrix

    places: dict[str, int] = defaultdict(lambda: len(places))
    own = [
        Counter(places[gram] for t in texts for gram in dict.fromkeys(grams(t))) for texts in cases
    ]
    starts = [0, *itertools.accumulate(map(len, own))]
    columns, values = ([n for case in own for n in part(case)] for part in (dict.keys, dict.values))
    shape = (len(cases), len(places))
    return csr_matrix((values, columns, starts), shape=shape, dtype=np.float64), tuple(places)


def _weighed(
    found: CountedWords, cases: Places, columns: Sequence[Places], idf: Sequence[Numbers]
) -> Any:
    """(cases, n-grams of all views): tf-idf with dampened counts, of unit length in each view."""
    from scipy.sparse import csr_matrix, diags, hstack

    parts = []
    for view, own, weight in zip(found.views, columns, idf, strict=True):
        part = view[cases][:, own].astype(np.float64)
        part.data = 1.0 + np.log(part.data)
        part = part @ diags(weight)
        length = np.sqrt(np.asarray(part.multiply(part).sum(axis=1)).ravel())
        parts.append(diags(1.0 / np.where(length > 0, length, 1.0)) @ part)
    return csr_matrix(hstack(parts))


def _kinds(found: CountedWords, cases: Places, kinds: Sequence[str]) -> Numbers:
    """(cases, kinds): 1 in a case's own kind; nowhere for a kind that was not seen."""
    own = [[1.0 if found.kinds[case] == kind else 0.0 for kind in kinds] for case in cases]
    return np.array(own, dtype=np.float64).reshape(len(cases), len(kinds))


def _label_ratio(rows: Any, is_wrong: Flags) -> Numbers:
    """(n-grams,) log of how much more each weighs in hallucinated cases than in supported ones."""
    up = np.asarray(rows[is_wrong].sum(axis=0)).ravel() + 1.0
    down = np.asarray(rows[~is_wrong].sum(axis=0)).ravel() + 1.0
    return np.asarray(np.log((up / up.sum()) / (down / down.sum())))
