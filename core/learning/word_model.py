"""What the words of verdict texts tell: n-grams in a linear model, with weights by kind of case.

Each n-gram is scaled by how it parts the two labels before the weights are fitted (Wang and Manning
2012), and counts once for all cases and once more for those of its kind (Daumé 2007), scaled by how
it parts them there: the same words mean other things of a sum than of a fact. On a few hundred
texts this tells more than embeddings do (CEDA 3.4 reads embeddings alone).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.verdict.head import WordPart, grams

Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
FEWEST_CASES = 2  # an n-gram of one case alone tells nothing of others
REGULARISATION = 10.0  # scikit-learn's C
KIND_STEP = 0.3


@dataclass(frozen=True)
class Reading:
    """What is read of one case: for each view its texts, and what kind of case it is.

    An n-gram counts in how many of a view's texts it stands.
    """

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
    """What was fitted: for each view the n-grams that count, with their idf, and the weights.

    `weights` are (1 + kinds, n-grams of all views): those of all cases, then those of each kind.
    """

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
        by_kind = (rows @ self.weights[1:].T) * own
        found: Numbers = shared + by_kind.sum(axis=1)
        return found

    def part(self, counted: CountedWords) -> WordPart:
        """The model as a head keeps it, if it has one view and no kinds; `counted` is what it read.

        Raises:
            ValueError: it has several views, or kinds.
        """
        if len(self.columns) != 1 or self.kinds:
            raise ValueError("a head reads one text and knows no kinds")
        return WordPart(
            tuple(counted.names[0][column] for column in self.columns[0]),
            tuple(self.idf[0].tolist()),
            tuple(self.weights[0].tolist()),
            self.intercept,
        )


def counted(readings: Sequence[Reading]) -> CountedWords:
    """Count once what many models are fitted on."""
    views = range(len(readings[0].views)) if readings else range(0)
    found = [_counts([reading.views[view] for reading in readings]) for view in views]
    kinds = tuple(reading.kind for reading in readings)
    return CountedWords(tuple(m for m, _ in found), kinds, tuple(names for _, names in found))


def fit_words(
    found: CountedWords, cases: Places, is_wrong: Flags, regularisation: float = REGULARISATION
) -> WordModel:
    """Fit on these cases; `is_wrong` (cases,) must hold both. Labels weigh alike."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression

    columns = tuple(
        np.flatnonzero(np.asarray((view[cases] > 0).sum(axis=0)).ravel() >= FEWEST_CASES)
        for view in found.views
    )
    idf = tuple(_idf(view[cases][:, own]) for view, own in zip(found.views, columns, strict=True))
    seen = sorted({found.kinds[case] for case in cases})
    kinds = tuple(seen) if len(seen) > 1 else ()  # one kind is all cases
    rows = _weighed(found, cases, columns, idf)
    own = _kinds(found, cases, kinds)
    ratios = [_label_ratio(rows, is_wrong)]
    ratios += [_label_ratio(rows[inside], is_wrong[inside]) for inside in own.T > 0]
    copies = [rows.multiply(ratio) for ratio in ratios]
    copies[1:] = [copy.multiply(own[:, [kind]]) for kind, copy in enumerate(copies[1:])]
    fitted = LogisticRegression(C=regularisation, class_weight="balanced", max_iter=3000).fit(
        hstack([*copies, csr_matrix(KIND_STEP * own)]).tocsr(), is_wrong
    )
    parts = 1 + len(kinds)
    many = rows.shape[1]
    weights = fitted.coef_[0][: many * parts].reshape(parts, many) * np.stack(ratios)
    offsets = KIND_STEP * fitted.coef_[0][many * parts :]
    return WordModel(columns, idf, kinds, weights, offsets, float(fitted.intercept_[0]))


def _counts(cases: Sequence[Sequence[str]]) -> tuple[Any, tuple[str, ...]]:
    """(cases, n-grams), sparse: in how many of a case's texts each n-gram stands; the n-grams."""
    from scipy.sparse import csr_matrix

    places: dict[str, int] = defaultdict(lambda: len(places))
    starts: list[int] = [0]
    columns: list[int] = []
    values: list[int] = []
    for texts in cases:
        own = Counter(places[gram] for text in texts for gram in dict.fromkeys(grams(text)))
        columns.extend(own.keys())
        values.extend(own.values())
        starts.append(len(columns))
    shape = (len(cases), len(places))
    return csr_matrix((values, columns, starts), shape=shape, dtype=np.float64), tuple(places)


def _idf(counts: Any) -> Numbers:
    cases = counts.shape[0]
    seen = np.asarray((counts > 0).sum(axis=0)).ravel()
    smoothed: Numbers = np.log((1.0 + cases) / (1.0 + seen)) + 1.0
    return smoothed


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
    ratio: Numbers = np.log((up / up.sum()) / (down / down.sum()))
    return ratio
