"""Train the seed classifier: `python -m training.train_seed_classifier --path DATA` (CEDA 4.2).

It is trained on the built-in judge's texts over public sets. The text decides if a judge gives no
probability; otherwise the seed passes the probability on, which is calibrated on more material.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.baseline.wording import frame_verdict
from core.evaluation.dataset_files import assign_fold
from core.evaluation.datasets import load_dataset_rows
from core.learning.head_fit import encode_rows, fit_head
from core.learning.metrics import compute_classifier_figures, compute_reliability
from core.learning.options import TrainingOptions
from core.learning.train import JudgedClaim, LabelledClaim, judge_claims
from core.learning.training_set import LabelledText
from core.llm.encoder import Embedder, load_encoder
from core.runtime.config import ENCODER_DIR
from core.runtime.errors import InputError, ReviewError
from core.verdict.classifier import SEED_FOLDER, compute_logit, save_head, sigmoid
from training.pairs import describe_provenance

# The most rows of each set. The entailment reader was not trained on them, since the judge would be
# more certain of such rows. Sets whose claims reveal the label are left out: the texts repeat them.
ROWS_BY_SET = {
    "fever_symmetric": 200,
    "entailment_fm2": 200,
    "entailment_healthver": 200,
    "entailment_climate_fever": 200,
    "entailment_covidfact": 400,
    "entailment_q2": 100,
    "entailment_cad_nli": 400,
    "entailment_sanli": 300,
}
CALIBRATION_SPLIT: str | None = "calibration10"
FOLD_COUNT = 5
SEED = 11
HEAD_OPTIONS = TrainingOptions(regularisation=0.2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print out-of-fold figures and write the seed folder; return 2 for unsuitable data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=None, help="rows a set, for a quick look")
    options = parser.parse_args(arguments)
    started = time.time()
    try:
        samples = draw_labelled_sample(options.path, options.limit)
        encoder = load_encoder(ENCODER_DIR)
        judged_claims = judge_claims([row for rows in samples.values() for row in rows], encoder)
        decided = [item for item in judged_claims if item.judgement.label != "unclear"]
        text_log_odds = _predict_out_of_fold(decided, encoder)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    gain, judge_weight = _fit_shares(decided, text_log_odds)
    card = _make_card(options.path, samples, decided, sigmoid(np.array(text_log_odds)).tolist())
    card |= {
        "encoder": encoder.id.rsplit("-", 1)[0],
        "seconds": round(time.time() - started),
        "fitted_shares": {"text_gain": gain, "judge_weight": judge_weight},
    }
    by_text = fit_head(encode_rows(_make_lessons(decided), encoder), HEAD_OPTIONS)
    save_head(SEED_FOLDER, replace(by_text, text_gain=0.0, judge_weight=1.0), card)
    sys.stdout.write(f"{card['text_alone']}\n{card['judge_alone']}\n{card['fitted_shares']}\n")
    return 0


def _make_lessons(decided: Iterable[JudgedClaim]) -> list[LabelledText]:
    """Return each verdict's text as the built-in judge words it, and as a language model's is."""
    lessons = []
    for judgement, label in ((item.judgement, item.row.label) for item in decided):
        reasons = ". ".join(judgement.text.split(". ")[1:-1])
        lessons += [
            LabelledText(text, label)
            for text in (judgement.text, frame_verdict(judgement.label, reasons))
        ]
    return lessons


def _predict_out_of_fold(decided: Sequence[JudgedClaim], encoder: Embedder) -> list[float]:
    """Return each row's log odds by its text, from a head that has not seen its evidence."""
    folds = [assign_fold(item.row.group, FOLD_COUNT) for item in decided]
    log_odds = [0.0] * len(decided)
    for fold in range(FOLD_COUNT):
        others = _make_lessons(
            item for item, its_fold in zip(decided, folds, strict=True) if its_fold != fold
        )
        if len({row.label for row in others}) < 2:
            raise InputError(
                "Expected rows of both labels in every fold, found too few; "
                "give more rows with --limit, or leave it out."
            )
        head = fit_head(encode_rows(others, encoder), HEAD_OPTIONS)
        for index in (i for i, its_fold in enumerate(folds) if its_fold == fold):
            vector = encoder.encode([decided[index].judgement.text])
            log_odds[index] = compute_logit(head.probability(vector)[0])
    return log_odds


def _fit_shares(
    decided: Sequence[JudgedClaim], text_log_odds: Sequence[float]
) -> tuple[float, float]:
    """Fit (gain of the text, weight of the judge's p), neither below zero."""
    from scipy.optimize import minimize

    judge_log_odds = np.array([compute_logit(item.judgement.p) for item in decided])
    signs = np.array([1.0 if item.row.label == "hallucinated" else -1.0 for item in decided])
    values = np.column_stack([text_log_odds, judge_log_odds])

    def loss(shares: npt.NDArray[np.float64]) -> float:
        return float(np.logaddexp(0.0, -signs * (values @ shares)).mean())

    result = minimize(loss, np.array([0.1, 1.0]), bounds=[(0.0, None)] * 2, method="L-BFGS-B")
    gain, judge_weight = (round(float(share), 4) for share in result.x)
    return gain, judge_weight


def _make_card(
    folder: Path,
    samples: Mapping[str, Sequence[LabelledClaim]],
    decided: Sequence[JudgedClaim],
    probabilities: Sequence[float],
) -> dict[str, Any]:
    labels = [item.row.label for item in decided]
    judgements = (item.judgement for item in decided)
    judged_p = [float(j.label == "hallucinated") if j.p is None else j.p for j in judgements]
    rows = sum(len(sample) for sample in samples.values())
    return {
        "name": "seed",
        "author": "Counterpoint",
        "trained_on": {
            name: describe_provenance(folder, name) | {"rows": len(sample)}
            for name, sample in samples.items()
        },
        "rows": rows,
        "unclear": rows - len(decided),
        "text_alone": compute_classifier_figures(labels, probabilities),
        "judge_alone": compute_classifier_figures(labels, judged_p),
        "reliability": compute_reliability(
            labels, judged_p
        ),  # the shipped head passes the judge's p on
        "folds": FOLD_COUNT,
    }


def draw_labelled_sample(folder: Path, limit: int | None) -> dict[str, list[LabelledClaim]]:
    """Draw a seeded sample of each set, balanced by label, without undecided rows."""
    chosen: dict[str, list[LabelledClaim]] = {}
    for name, wanted in ROWS_BY_SET.items():
        rows = [
            LabelledClaim(row.response, row.documents, row.label, row.group, row.question)
            for row in load_dataset_rows(name, folder, split=CALIBRATION_SPLIT)
            if row.label is not None and row.label != "unclear"
        ]
        random.Random(SEED).shuffle(rows)
        half = min(limit or wanted, wanted) // 2
        by_label = (
            [r for r in rows if r.label == label] for label in ("supported", "hallucinated")
        )
        chosen[name] = [row for group in by_label for row in group[:half]]
    return chosen


if __name__ == "__main__":
    sys.exit(main())
