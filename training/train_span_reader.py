"""Trains the span reader on words that people marked, and says how well it does on rows unseen.

    python -m training.train_span_reader --path ../shared/data

writes `trees.npz`, `common_terms.json` and `card.json` beside the reader. Every figure is on rows
that took no part in the training that it measures: five folds by group, and each language in turn
left out. The threshold is one for all languages.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.baseline.entailment import load_multilingual_reader
from core.baseline.evidence_model import Trees, trees_of
from core.baseline.span_features import FOLDER
from core.baseline.span_reader import LEAST, MOST
from core.evaluation.datasets import load, rule_of
from training.span_figures import all_marked, best_threshold, measured, rule_of_thumb
from training.span_rows import (
    FOLDS,
    Features,
    MarkedRow,
    Numbers,
    common_terms,
    marked_rows,
    sampled,
    write_common_terms,
)

SETS = (("mushroom", None), ("entailment_wice", "tokens"))
CHOSEN_ON = "mushroom"
FEATURES_KEPT = 64
SEED = 0
PARAMETERS: Mapping[str, Any] = {
    "max_iter": 130, "learning_rate": 0.07, "max_leaf_nodes": 12, "max_depth": 7,
    "min_samples_leaf": 60, "l2_regularization": 10.0, "max_features": 0.3,
    "early_stopping": False,
}  # fmt: skip
log = logging.getLogger(__name__)
Places = npt.NDArray[np.int64]


def fitted(rows: Sequence[MarkedRow], columns: Places) -> Any:
    """Boosted trees that tell the share of people who mark a word."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    features, shares, weights = sampled(rows, SEED)
    model = HistGradientBoostingRegressor(**PARAMETERS, random_state=SEED)
    return model.fit(features[:, columns], shares, sample_weight=weights * len(shares))


def chosen_columns(rows: Sequence[MarkedRow]) -> Places:
    """The features by which trees over all of them gain most, in their order."""
    model = fitted(rows, np.arange(len(rows[0].names)))
    gains = np.zeros(len(rows[0].names))
    for (tree,) in model._predictors:
        inner = tree.nodes[tree.nodes["is_leaf"] == 0]
        np.add.at(gains, inner["feature_idx"], inner["gain"])
    return np.sort(np.argsort(-gains)[:FEATURES_KEPT])


def out_of_fold(rows: Sequence[MarkedRow], columns: Places) -> list[Numbers]:
    """Every row's shares as told by trees that saw none of its fold."""
    told: dict[int, Numbers] = {}
    for fold in range(FOLDS):
        trees = trees_of(fitted([row for row in rows if row.fold != fold], columns))
        for i, row in enumerate(rows):
            if row.fold == fold:
                told[i] = _told(trees, row.features[:, columns])
        log.info("fold %d of %d", fold + 1, FOLDS)
    return [told[i] for i in range(len(rows))]


def leave_language_out(rows: Sequence[MarkedRow], columns: Places) -> list[Numbers]:
    """Every row's shares as told by trees that saw no row of its language, nor its common terms."""
    told: dict[int, Numbers] = {}
    for language in sorted({row.row.language for row in rows}):
        trees = trees_of(fitted([row for row in rows if row.row.language != language], columns))
        for i, row in enumerate(rows):
            if row.row.language == language:
                told[i] = _told(trees, row.unlisted[:, columns])
        log.info("without %s", language)
    return [told[i] for i in range(len(rows))]


def _told(trees: Trees, features: Features) -> Numbers:
    return np.clip(trees.predict(features), LEAST, MOST)


@dataclass(frozen=True)
class Learnt:
    """What training came to; `told` and `left_out` are the shares out of fold, row by row."""

    rows: Sequence[MarkedRow]
    columns: Places
    told: Sequence[Numbers]
    left_out: Sequence[Numbers]
    threshold: float

    def of(self, chosen: bool) -> list[int]:
        """Places of the rows of the set that the threshold is chosen on, or of the others."""
        return [i for i, row in enumerate(self.rows) if row.is_chosen_on == chosen]

    def figures(self) -> dict[str, Any]:
        """Everything measured on rows unseen, with the trivial answers beside it."""
        own, other = self.of(True), self.of(False)
        marked, rest = [self.rows[i] for i in own], [self.rows[i] for i in other]
        at = self.threshold
        rule = [rule_of_thumb(row) for row in marked]
        return {
            "rows": len(marked),
            "five_folds": measured(marked, [self.told[i] for i in own], at),
            "each_language_left_out": measured(marked, [self.left_out[i] for i in own], at),
            "rule_neither_evidence_nor_question": measured(marked, rule, 0.5),
            "mark_all": all_marked(marked),
            "wice_tokens_rows": len(rest),
            "wice_tokens_five_folds": measured(rest, [self.told[i] for i in other], at),
            "wice_tokens_mark_all": all_marked(rest),
        }


def learn(rows: Sequence[MarkedRow]) -> Learnt:
    """Choose features and threshold, and tell every row's shares without having seen it."""
    columns = chosen_columns(rows)
    told = out_of_fold(rows, columns)
    own = [i for i, row in enumerate(rows) if row.is_chosen_on]
    threshold = best_threshold([rows[i] for i in own], [told[i] for i in own])
    return Learnt(rows, columns, told, leave_language_out(rows, columns), threshold)


def train(data: Path, out: Path) -> dict[str, Any]:
    """Train, measure and write; the card."""
    gold = {name: list(load(name, data, task=task)) for name, task in SETS}
    lists = common_terms(gold[CHOSEN_ON])
    rows = [
        replace(row, is_chosen_on=name == CHOSEN_ON)
        for name in gold
        for row in marked_rows(gold[name], lists, _every(200))
    ]
    learnt = learn(rows)
    out.mkdir(parents=True, exist_ok=True)
    terms = write_common_terms(lists, out / "common_terms.json")
    sha256 = trees_of(fitted(rows, learnt.columns)).save(out / "trees.npz")
    card = {
        "id": f"span-reader-{sha256[:12]}",
        "sha256": sha256,
        "common_terms_sha256": terms,
        "threshold": learnt.threshold,
        "reader": load_multilingual_reader().id,
        "features": [rows[0].names[i] for i in learnt.columns],
        "parameters": {**PARAMETERS, "seed": SEED},
        "trained_on": [_trained_on(data, name, task, len(gold[name])) for name, task in SETS],
        "measured": learnt.figures(),
        "notes": NOTES,
    }
    text = json.dumps(card, indent=1, ensure_ascii=False)
    (out / "card.json").write_text(text + "\n", encoding="utf-8")
    return card


NOTES = (
    "Shares of annotators are the target; a word's score is the share expected to mark it. The "
    "lists of common terms are counted in the evidence texts of all rows, whose labels play no "
    "part in them; with a language left out its list is left out too. The threshold is chosen on "
    "the five folds and is one for all languages; the features were chosen once, by their gains "
    "over all rows, so both sets of figures are out of sample for the trees alone. The licence of "
    "Mu-SHROOM's own data is not stated where the copy was taken from (the repository that holds "
    "it: Apache-2.0); of WiCE, Wikipedia text is CC BY-SA, web text under Common Crawl's terms. "
    "No language model's weights are contained."
)


def _trained_on(data: Path, name: str, task: str | None, rows: int) -> dict[str, Any]:
    rule = rule_of(name, task)
    return {
        "name": name,
        "task": task or "",
        "rows": rows,
        "licence": rule.licence,
        "permits": rule.permits,
        "files": {
            path.relative_to(data).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((data / name).rglob("*"))
            if path.is_file() and ("non_supported" in path.name if task else _is_used(path))
        },
    }


def _is_used(path: Path) -> bool:
    return path.parent.name in ("val", "test_labeled", "context_val", "context_tst") and (
        ".jsonl" in path.name
    )


def _every(step: int) -> Callable[[int], None]:
    def tell(number: int) -> None:
        if number % step == 0:
            log.info("row %d", number)

    return tell


def main() -> None:
    """Read the command line, train, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the weights go")
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    card = train(chosen.path, chosen.out)
    json.dump(card["measured"], sys.stdout, indent=1)


if __name__ == "__main__":
    main()
