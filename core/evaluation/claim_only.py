"""How much of a set's label shows in the claim alone: `python -m core.evaluation.claim_only`.

Words and word pairs of the claim, a logistic model, five folds by group: an AUROC far from one
one half means that a reader trained on the set would learn its style instead of reading evidence.
Without `--dataset` it goes through every task that the shipped weights are trained on.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from core.errors import ReviewError
from core.evaluation import reader_pairs, weighing_training
from core.evaluation.datasets import NAMES, load, rule_of, tasks_of
from core.evaluation.gold import GoldRow

MOST_ROWS = 6000
FOLDS = 5
FEWEST_ROWS = 50


def claim_only_auroc(rows: Sequence[GoldRow], seed: int = 0) -> float | None:
    """AUROC of “supported” from the claim's words; None where there are too few rows to say."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold, cross_val_predict

    taken = list(rows)
    random.Random(seed).shuffle(taken)
    taken = taken[:MOST_ROWS]
    supported = [row.label == "supported" for row in taken]
    groups = [row.group for row in taken]
    if len(taken) < FEWEST_ROWS or len(set(supported)) < 2 or len(set(groups)) < FOLDS:
        return None
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    claims = words.fit_transform(f"{row.question} {row.response}" for row in taken)
    model = LogisticRegression(C=2.0, max_iter=300)
    folds = GroupKFold(FOLDS)
    found = cross_val_predict(
        model, claims, supported, groups=groups, cv=folds, method="predict_proba"
    )
    return round(float(roc_auc_score(supported, found[:, 1])), 3)


def main(arguments: Sequence[str] | None = None) -> int:
    """A line a set and task: rows and AUROC; 2 for a folder that will not do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--dataset", action="append", choices=NAMES)
    given = parser.parse_args(arguments)
    for name, task in _tasks(given.dataset):
        try:
            rows = [row for row in load(name, given.path, task=task) if row.documents and row.label]
        except ReviewError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        found = claim_only_auroc(rows)
        words = "too few rows to say" if found is None else f"{found:.3f}"
        sys.stdout.write(f"{f'{name} {task}'.strip()} n={len(rows)} {words}\n")
        sys.stdout.flush()
    return 0


def _tasks(names: Sequence[str] | None) -> list[tuple[str, str]]:
    """(set, task) of all tasks of these sets; without any set, of all that is trained on."""
    if names:
        return [(name, task) for name in names for task in tasks_of(name)]
    read = [(one.name, rule_of(one.name, one.task).task) for one in reader_pairs.SOURCES]
    weighed = [(one.name, one.task) for one in weighing_training.SOURCES]
    return sorted({*read, *weighed})


if __name__ == "__main__":
    sys.exit(main())
