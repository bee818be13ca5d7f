"""Trains the built-in judge's weights: `python -m core.evaluation.weighing_training --path DATA`.

The rows are the calibration parts of public sets whose licence permits it or states nothing: the
entailment reader was trained on none of them. Each set counts alike, so that no style of evidence
rules. What the readers found on a row is kept in `--cache`, outside the project, so that a second
call takes seconds. Figures in the card are those of sets left out of the training, one at a time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.builtin.weighing import READ as READER_FEATURES
from core.builtin.weighing import (
    WEIGHTS,
    Logistic,
    Weights,
    any_of,
    probability,
    save_weights,
    shifted,
)
from core.config import ENCODER_DIR
from core.errors import ReviewError
from core.evaluation.datasets import load
from core.evaluation.gold import GoldRow
from core.evaluation.metrics import calibration_error
from core.evaluation.reader_card import origin_of
from core.evaluation.sample import sampled
from core.evaluation.weighing_fit import MUTED_LIMITS, OPEN_LIMITS, fit
from core.evaluation.weighing_rows import FeatureRow, feature_rows
from core.learning.seed import seed_claims
from core.models.encoder import load_encoder
from core.models.reader import load_reader

Array = npt.NDArray[np.float64]
SEED = 17
ROWS = 400
SPLIT = "calibration10"
OWN = "plain cases of our own"
# Sets that only measure, whatever their licence says: nothing is ever learned from them.
NEVER = ("halueval", "qags", "faithbench", "bamboo", "refchecker", "ragtruth_sample")
READ = (
    "read_against",
    "none_carries",
    "read_contrary",
    "read_open",
    "together_against",
    "contrast",
    "soft_contrast",
    "clear_contrast",
    "rules_carry",
    "overlap_misses",
    "overlap_carries",
    "uncarried",
    "uncovered",
    "missing_values",
    "missing_words",
    "sure_contrast",
    "whole_contrast",
    "rules_carry_all",
    "adds_up",
)
MUTED = tuple(name for name in READ if name not in READER_FEATURES)
OPEN = ("read_open", "contrast", "soft_contrast", "uncarried", "uncovered", "unlike")
OPEN_MUTED = tuple(name for name in OPEN if name not in READER_FEATURES)


@dataclass(frozen=True)
class Source:
    """A set that the weights learn from; `is_open` where it knows of a neutral label."""

    name: str
    task: str = ""
    is_open: bool = False

    @property
    def title(self) -> str:
        """Set and task as one name."""
        return f"{self.name} {self.task}".strip()


# Of two (begin, breaking_nli) the label shows in the claim's wording; the features do not see that,
# only how claim and evidence lie to each other.
SOURCES = (
    Source("fever_symmetric"),
    Source("entailment_fm2", "gold"),
    Source("entailment_fm2", "retrieved"),
    Source("entailment_healthver", is_open=True),
    Source("entailment_climate_fever", "pairs", is_open=True),
    Source("entailment_climate_fever", "claims", is_open=True),
    Source("entailment_covidfact"),
    Source("entailment_dialfact", is_open=True),
    Source("entailment_begin"),
    Source("entailment_q2", "responses"),
    Source("entailment_wice", "claims"),
    Source("entailment_wice", "pages"),
    Source("entailment_control", is_open=True),
    Source("entailment_cad_nli", is_open=True),
    Source("entailment_breaking_nli", is_open=True),
    Source("entailment_sanli", is_open=True),
    Source("entailment_rte"),
    Source("factcheck_gpt", "subtask3", is_open=True),
    Source("pubmedqa"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print what sets left out come to, write the weights; 2 for data that will not do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "weighing")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each set, at most")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    given = parser.parse_args(arguments)
    try:
        rows = _collected(given.path, given.cache, given.rows)
        left_out = leave_one_out(rows)
        models = fitted(rows)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for name, told in left_out.items():
        words = ", ".join(f"{key} {value}" for key, value in told.items())
        sys.stdout.write(f"{name}: {words}\n")
    save_weights(given.out, models, _card(given.path, rows, left_out))
    return 0


def _collected(folder: Path, cache: Path, limit: int) -> dict[str, list[FeatureRow]]:
    """Each set's rows with their features."""
    found: dict[str, list[FeatureRow]] = {}
    for source in SOURCES:
        all_rows = list(load(source.name, folder, task=source.task, split=SPLIT))
        rows = sampled([row for row in all_rows if row.label], limit, SEED)
        observed = feature_rows(source.title, rows, cache)
        found[source.title] = [row for row in observed if row.statements]
        sys.stderr.write(f"{source.title}: {len(found[source.title])} rows\n")
    found[OWN] = [row for row in feature_rows(OWN, _own_rows(), cache) if row.statements]
    return found


def _own_rows() -> list[GoldRow]:
    """The plain cases of our own that every retraining starts from."""
    return [
        GoldRow(str(n), OWN, claim.claim, claim.label, claim.group, documents=claim.texts)
        for n, claim in enumerate(seed_claims())
    ]


def fitted(rows: dict[str, list[FeatureRow]]) -> dict[str, Logistic]:
    """The four models that the judge needs.

    Raises:
        InputError: the rows are all of one kind.
    """
    is_open = {source.title for source in SOURCES if source.is_open}
    against = {
        name: [row for row in own if row.label != "supported"]
        for name, own in rows.items()
        if name in is_open
    }
    return {
        "wrong": fit(_read(rows), READ, "supported", invert=True),
        "wrong, muted": fit(rows, MUTED, "supported", invert=True, limits=MUTED_LIMITS),
        "open": fit(_read(against), OPEN, "unclear", limits=OPEN_LIMITS),
        "open, muted": fit(against, OPEN_MUTED, "unclear", limits=OPEN_LIMITS),
    }


def _read(rows: dict[str, list[FeatureRow]]) -> dict[str, list[FeatureRow]]:
    """The rows that the entailment reader could read throughout."""
    return {
        name: [row for row in own if not any(s["muted"] for s in row.statements)]
        for name, own in rows.items()
    }


def leave_one_out(rows: dict[str, list[FeatureRow]]) -> dict[str, dict[str, float]]:
    """Each set as judged by weights that have not seen it."""
    found: dict[str, dict[str, float]] = {}
    for name in rows:
        same = name.split(" ")[0]
        others = {n: own for n, own in rows.items() if n.split(" ")[0] != same}
        found[name] = figures(rows[name], Weights(fitted(others), {}))
    return found


def figures(rows: Sequence[FeatureRow], weights: Weights) -> dict[str, float]:
    """Balanced accuracy, AUROC and calibration of `wrong` against “not supported”."""
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    truth = np.asarray([row.label != "supported" for row in rows])
    p = np.asarray([p_of(row, weights) for row in rows])
    told: dict[str, float] = {"n": len(rows), "ece": round(calibration_error(p, truth), 3)}
    if 0 < truth.sum() < len(truth):
        told["balanced_accuracy"] = round(float(balanced_accuracy_score(truth, p >= 0.5)), 3)
        told["auroc"] = round(float(roc_auc_score(truth, p)), 3)
    return told


def p_of(row: FeatureRow, weights: Weights) -> float:
    """The row's p as the judge gives it."""
    count = len(row.statements)
    return any_of([probability(shifted(weights.wrong(s), count)) for s in row.statements])


def _card(
    folder: Path, rows: dict[str, list[FeatureRow]], left_out: dict[str, Any]
) -> dict[str, Any]:
    """What the weights were learned from, with which reader, and how sets left out came off."""
    return {
        "name": "Weights of the built-in judge",
        "reader": load_reader().id,
        "encoder": load_encoder(ENCODER_DIR).id.rsplit("-", 1)[0],
        "split": SPLIT,
        "trained_on": {
            s.title: origin_of(folder, s.name, s.task) | {"rows": len(rows[s.title])}
            for s in SOURCES
        }
        | {OWN: {"licence": "our own", "rows": len(rows[OWN])}},
        "left_out": left_out,
    }


if __name__ == "__main__":
    sys.exit(main())
