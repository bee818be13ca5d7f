"""Train the span reader on marked words: `python -m training.train_span_reader --path DATA`.

It writes `trees.npz`, `common_terms.json` and `card.json` beside the reader. All figures are
on rows that were not trained on: five folds by group, and each language left out in turn.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.baseline.entailment import load_multilingual_reader
from core.baseline.evidence_model import extract_trees
from core.baseline.span_features import (
    CITATION_MARK,
    SPAN_READER_DIR,
    TermFrequencies,
    compute_word_features,
    count_repeated_terms,
    index_evidence,
    split_words,
)
from core.baseline.span_reader import (
    MAX_SCORE,
    MIN_SCORE,
    fill_gaps,
    merge_scored_words,
    read_sentences,
)
from core.evaluation.dataset_files import GoldRow, GoldSpan, normalize_key
from core.evaluation.datasets import load_dataset_rows
from core.evaluation.metrics import score_spans
from core.evaluation.outcomes import Outcomes, Prediction, predict_all_marked
from core.schema.records import WordScore
from training.pairs import describe_provenance

Numbers = npt.NDArray[np.float64]
FeatureMatrix = npt.NDArray[np.float32]
TermLists = Mapping[str, Mapping[str, float]]
FOLD_COUNT = 5
MIN_TERM_ROWS = 6  # rows that must have a term for it to count as common in its language
MIN_TERM_SHARE = 0.0004
MAX_TERM_CHARS = 20
MAX_WORDS_PER_RESPONSE = 70  # of one response; longer ones are sampled
THRESHOLDS = (0.3, 0.35, 0.38, 0.4, 0.42, 0.45, 0.5)
MARKED_SETS = (("mushroom", None), ("entailment_wice", "tokens"))
THRESHOLD_SET = "mushroom"
FILE_PATTERNS = {  # files of each set
    "mushroom": r"/(val|test_labeled|context_val|context_tst)/[^/]*\.jsonl[^/]*$",
    "entailment_wice": r"non_supported[^/]*$",
}
MAX_FEATURES = 64
SEED = 0
TREE_PARAMETERS: Mapping[str, Any] = {
    "max_iter": 130, "learning_rate": 0.07, "max_leaf_nodes": 12, "max_depth": 7,
    "min_samples_leaf": 60, "l2_regularization": 10.0, "max_features": 0.3,
    "early_stopping": False,
}  # fmt: skip
IntegerArray = npt.NDArray[np.int64]
CARD_NOTES = (
    "Shares of annotators are the target; a word's score is the share expected to mark it. The "
    "lists of common terms are counted in the evidence texts of all rows, whose labels play no "
    "part in them; with a language left out its list is left out too. The threshold is chosen on "
    "the five folds and is one for all languages; the features were chosen once, by their gains "
    "over all rows, so both sets of figures are out of sample for the trees alone. The licence of "
    "Mu-SHROOM's own data is not stated where the copy was taken from (the repository that holds "
    "it: Apache-2.0); of WiCE, Wikipedia text is CC BY-SA, web text under Common Crawl's terms. "
    "No language model's weights are contained."
)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MarkedRow:
    """A row's words as `[start, end)`, features (n, f) and shares of annotators who marked them.

    `unlisted` holds the features computed without a list of common terms.
    """

    row: GoldRow
    places: tuple[tuple[int, int], ...]
    features: FeatureMatrix
    unlisted: FeatureMatrix
    shares: Numbers
    names: tuple[str, ...]
    is_chosen_on: bool = True

    @property
    def fold(self) -> int:
        """Return the fold of the row; related rows have the same one."""
        digest = hashlib.sha256(normalize_key(self.row.group).encode("utf-8", "surrogatepass"))
        return int.from_bytes(digest.digest(), "big") // 100 % FOLD_COUNT


def count_common_terms(rows: Sequence[GoldRow]) -> dict[str, dict[str, float]]:
    """Count each language's common terms in the evidence; return their shares of all words."""
    lists: dict[str, dict[str, float]] = {}
    for language in sorted({row.language for row in rows}):
        terms = [_evidence_terms(row) for row in rows if row.language == language]
        counts = Counter(term for row_terms in terms for term in row_terms)
        row_counts = Counter(term for row_terms in terms for term in set(row_terms))
        total = max(1, counts.total())
        lists[language] = {
            term: float(f"{count / total:.3g}")
            for term, count in counts.most_common()
            if row_counts[term] >= MIN_TERM_ROWS
            and count / total >= MIN_TERM_SHARE
            and len(term) <= MAX_TERM_CHARS
        }
    return lists


def iterate_marked_rows(
    rows: Iterable[GoldRow], lists: TermLists, progress: Callable[[int], None]
) -> Iterator[MarkedRow]:
    """Yield every row with words and evidence, with features with and without the lists."""
    for number, row in enumerate(rows):
        words = split_words(row.response, row.language)
        if row.documents and row.spans is not None and words:
            reader = load_multilingual_reader()
            readings = read_sentences(
                row.response, row.question, row.documents, row.language, reader
            )
            versions: list[FeatureMatrix] = []
            names: Sequence[str] = ()
            for common in (
                TermFrequencies(lists[row.language]),
                count_repeated_terms(Counter(_evidence_terms(row))),
            ):
                evidence = index_evidence(row.question, row.documents, row.language, common)
                names, columns = compute_word_features(row.response, words, evidence, readings)
                versions.append(columns)
            # the marks, if there are no shares
            shares = compute_marked_shares(row.soft or row.spans or (), len(row.response))
            means = np.array([shares[word.start : word.end].mean() for word in words])
            places = tuple((word.start, word.end) for word in words)
            yield MarkedRow(row, places, versions[0], versions[1], means, tuple(names))
        progress(number)


def compute_marked_shares(marks: Sequence[GoldSpan], length: int) -> Numbers:
    """Return the share of people who marked each character, (length,)."""
    shares = np.zeros(length)
    for span in marks:
        inside = slice(span.start, span.end)
        shares[inside] = np.maximum(shares[inside], span.p)
    return shares


def _evidence_terms(row: GoldRow) -> list[str]:
    return [
        word.term
        for text in row.documents
        for word in split_words(CITATION_MARK.sub("", text), row.language)
    ]


def sample_words(rows: Sequence[MarkedRow], seed: int) -> tuple[FeatureMatrix, Numbers, Numbers]:
    """Sample words of each row: features, shares and weights; languages weigh the same."""
    rng = np.random.default_rng(seed)
    sizes = Counter(row.row.language for row in rows)
    features, shares, weights = [], [], []
    for row in rows:
        chosen = np.sort(rng.permutation(len(row.places))[:MAX_WORDS_PER_RESPONSE])
        lengths = np.diff(np.array(row.places, dtype=np.float64), axis=1).ravel()[chosen]
        features.append(row.features[chosen])
        shares.append(row.shares[chosen])
        weights.append(lengths / lengths.sum() / sizes[row.row.language])
    return np.concatenate(features), np.concatenate(shares), np.concatenate(weights)


def _make_prediction(row: MarkedRow, shares: Numbers, threshold: float) -> Prediction:
    scored = zip(row.places, shares, strict=True)
    scores = [WordScore(start, end, float(p)) for (start, end), p in scored]
    spans = tuple(
        GoldSpan(s.start, s.end) for s in merge_scored_words(scores, row.row.response, threshold)
    )
    soft = tuple(GoldSpan(s.start, s.end, s.p) for s in fill_gaps(scores))
    return Prediction("hallucinated", spans=spans, soft=soft)


def compute_figures(rows: Sequence[GoldRow], said: Sequence[Prediction]) -> dict[str, Any]:
    """Return IoU and correlation by language, and their means over languages."""
    scores = score_spans(Outcomes(rows, said))
    if scores is None:
        return {}
    languages = np.array([row.language for row in rows])
    report: dict[str, Any] = {}
    for kind, values in (("iou", scores.iou), ("correlation", scores.correlation)):
        if values is not None:
            by_language = {
                name: round(float(values[languages == name].mean()), 4)
                for name in sorted(set(languages.tolist()))
            }
            report[kind] = round(float(np.mean(list(by_language.values()))), 4)
            report[f"{kind}_by_language"] = by_language
    return report


def measure_rows(
    rows: Sequence[MarkedRow], told: Sequence[Numbers], threshold: float
) -> dict[str, Any]:
    """Return the figures of the rows at that threshold."""
    said = [_make_prediction(row, p, threshold) for row, p in zip(rows, told, strict=True)]
    return compute_figures([row.row for row in rows], said)


def choose_threshold(rows: Sequence[MarkedRow], told: Sequence[Numbers]) -> float:
    """Return the threshold with the greatest mean IoU over languages, smoothed over neighbours."""
    means = [measure_rows(rows, told, threshold)["iou"] for threshold in THRESHOLDS]
    smooth = np.convolve(means, (0.25, 0.5, 0.25), mode="valid")
    for threshold, iou in zip(THRESHOLDS, means, strict=True):
        log.info("threshold %.2f: IoU %.4f", threshold, iou)
    return THRESHOLDS[1 + int(np.argmax(smooth))]


def measure_all_marked(rows: Sequence[MarkedRow]) -> dict[str, Any]:
    """Return the figures of the trivial answer that marks every character."""
    gold = [row.row for row in rows]
    return compute_figures(gold, predict_all_marked(gold).said)


def fit_trees(rows: Sequence[MarkedRow], columns: IntegerArray) -> Any:
    """Fit boosted trees to the share of people who mark a word."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    features, shares, weights = sample_words(rows, SEED)
    model = HistGradientBoostingRegressor(**TREE_PARAMETERS, random_state=SEED)
    return model.fit(features[:, columns], shares, sample_weight=weights * len(shares))


def choose_columns(rows: Sequence[MarkedRow]) -> IntegerArray:
    """Return the columns with the greatest gains in trees over all columns, in order."""
    model = fit_trees(rows, np.arange(len(rows[0].names)))
    gains = np.zeros(len(rows[0].names))
    for (tree,) in model._predictors:
        inner = tree.nodes[tree.nodes["is_leaf"] == 0]
        np.add.at(gains, inner["feature_idx"], inner["gain"])
    return np.sort(np.argsort(-gains)[:MAX_FEATURES])


def predict_out_of_fold(rows: Sequence[MarkedRow], columns: IntegerArray) -> list[Numbers]:
    """Predict every row's shares by trees that were not trained on its fold."""
    return _predict_unseen(
        rows, columns, [row.fold for row in rows], [row.features for row in rows]
    )


def _predict_unseen(
    rows: Sequence[MarkedRow],
    columns: IntegerArray,
    parts: Sequence[int | str],
    seen: Sequence[FeatureMatrix],
) -> list[Numbers]:
    """Predict each row's shares from its features in `seen`, by trees not trained on its part."""
    predicted: dict[int, Numbers] = {}
    for part in sorted(set(parts), key=str):
        others = [row for row, its_part in zip(rows, parts, strict=True) if its_part != part]
        trees = extract_trees(fit_trees(others, columns))
        for i in (i for i, its_part in enumerate(parts) if its_part == part):
            predicted[i] = np.clip(trees.predict(seen[i][:, columns]), MIN_SCORE, MAX_SCORE)
        log.info("without %s", part)
    return [predicted[i] for i in range(len(rows))]


def predict_left_out_languages(rows: Sequence[MarkedRow], columns: IntegerArray) -> list[Numbers]:
    """Predict every row's shares by trees without its language, and without its common terms."""
    return _predict_unseen(
        rows, columns, [row.row.language for row in rows], [r.unlisted for r in rows]
    )


@dataclass(frozen=True)
class TrainingResult:
    """The result of training; `told` and `left_out` are the out-of-fold shares, row by row."""

    rows: Sequence[MarkedRow]
    columns: IntegerArray
    told: Sequence[Numbers]
    left_out: Sequence[Numbers]
    threshold: float

    def figures(self) -> dict[str, Any]:
        """Return all figures on unseen rows, with those of the trivial answers."""
        chosen_rows, other_rows = (
            [i for i, row in enumerate(self.rows) if row.is_chosen_on == chosen]
            for chosen in (True, False)
        )
        marked, rest = [self.rows[i] for i in chosen_rows], [self.rows[i] for i in other_rows]
        threshold = self.threshold
        # the baseline rule: a word is wrong if neither evidence nor question has it
        rule = [1.0 - row.features[:, row.names.index("held")].astype(np.float64) for row in marked]
        return {
            "rows": len(marked),
            "five_folds": measure_rows(marked, [self.told[i] for i in chosen_rows], threshold),
            "each_language_left_out": measure_rows(
                marked, [self.left_out[i] for i in chosen_rows], threshold
            ),
            "rule_neither_evidence_nor_question": measure_rows(marked, rule, 0.5),
            "mark_all": measure_all_marked(marked),
            "wice_tokens_rows": len(rest),
            "wice_tokens_five_folds": measure_rows(
                rest, [self.told[i] for i in other_rows], threshold
            ),
            "wice_tokens_mark_all": measure_all_marked(rest),
        }


def fit_out_of_fold(rows: Sequence[MarkedRow]) -> TrainingResult:
    """Choose features and threshold, and predict every row's shares out of fold."""
    columns = choose_columns(rows)
    shares = predict_out_of_fold(rows, columns)
    indices = [i for i, row in enumerate(rows) if row.is_chosen_on]
    threshold = choose_threshold([rows[i] for i in indices], [shares[i] for i in indices])
    return TrainingResult(
        rows, columns, shares, predict_left_out_languages(rows, columns), threshold
    )


def train_and_write(data: Path, out: Path) -> dict[str, Any]:
    """Train, measure and write the weights; return the card."""
    gold = {name: list(load_dataset_rows(name, data, task=task)) for name, task in MARKED_SETS}
    lists = count_common_terms(gold[THRESHOLD_SET])
    rows = [
        replace(row, is_chosen_on=name == THRESHOLD_SET)
        for name in gold
        for row in iterate_marked_rows(gold[name], lists, log_every(200, len(gold[name])))
    ]
    learnt = fit_out_of_fold(rows)
    out.mkdir(parents=True, exist_ok=True)
    terms = out / "common_terms.json"
    terms.write_text(json.dumps(lists, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    sha256 = extract_trees(fit_trees(rows, learnt.columns)).save(out / "trees.npz")
    card = {
        "id": f"span-reader-{sha256[:12]}",
        "sha256": sha256,
        "common_terms_sha256": hashlib.sha256(terms.read_bytes()).hexdigest(),
        "threshold": learnt.threshold,
        "reader": load_multilingual_reader().id,
        "features": [rows[0].names[i] for i in learnt.columns],
        "parameters": {**TREE_PARAMETERS, "seed": SEED},
        "trained_on": [
            {"name": name, "task": task or "", "rows": len(gold[name])}
            | describe_provenance(data, name, task, FILE_PATTERNS[name])
            for name, task in MARKED_SETS
        ],
        "measured": learnt.figures(),
        "notes": CARD_NOTES,
    }
    text = json.dumps(card, indent=1, ensure_ascii=False)
    (out / "card.json").write_text(text + "\n", encoding="utf-8")
    return card


def log_every(step: int, total: int) -> Callable[[int], None]:
    """Return a progress function that logs each `step`th row of `total`."""

    def log_row(number: int) -> None:
        if number % step == 0:
            log.info("row %d of %d", number, total)

    return log_row


def main() -> None:
    """Parse the command line, train and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--out", type=Path, default=SPAN_READER_DIR, help="where the weights go")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    card = train_and_write(options.path, options.out)
    json.dump(card["measured"], sys.stdout, indent=1)


if __name__ == "__main__":
    main()
