"""Trains the seed classifier: `python -m training.train_seed_classifier --path DATA` (CEDA 4.2).

On the built-in judge's texts over public sets. The text decides where a judge gives no probability;
where it gives one the seed passes that on, for it is calibrated on more kinds of material.
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

from core.agents.llm_judge import verdict_text
from core.evaluation.datasets import load
from core.evaluation.files import fold_of
from core.learning.bench import JudgedClaim, LabelledClaim, judged
from core.learning.head_fit import encoded, fit_head
from core.learning.metrics import reliability, scores
from core.learning.options import Options
from core.learning.training_set import Lesson
from core.llm.encoder import Embedder, load_encoder
from core.runtime.config import ENCODER_DIR
from core.runtime.errors import InputError, ReviewError
from core.verdict.classifier import SEED_FOLDER, logit_of, save_head, sigmoid
from training.pairs import provenance_of

# How many rows of each set at most. The entailment reader has not seen them: of rows that it was
# trained on the judge would be surer than it is of others. No set whose label shows in the claim:
# the texts repeat its words.
SETS = {
    "fever_symmetric": 200,
    "entailment_fm2": 200,
    "entailment_healthver": 200,
    "entailment_climate_fever": 200,
    "entailment_covidfact": 400,
    "entailment_q2": 100,
    "entailment_cad_nli": 400,
    "entailment_sanli": 300,
}
SPLIT: str | None = "calibration10"
FOLDS = 5
SEED = 11
RECIPE = Options(regularisation=0.2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print the out-of-fold figures, write the seed folder; 2 for data that will not do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=None, help="rows a set, for a quick look")
    given = parser.parse_args(arguments)
    began = time.time()
    try:
        samples = labelled_sample(given.path, given.limit)
        encoder = load_encoder(ENCODER_DIR)
        checked = judged([row for rows in samples.values() for row in rows], encoder)
        spoken = [item for item in checked if item.judgement.label != "unclear"]
        told = _out_of_fold(spoken, encoder)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    gain, judge_weight = _shares(spoken, told)
    card = _card(given.path, samples, spoken, sigmoid(np.array(told)).tolist())
    card |= {
        "encoder": encoder.id.rsplit("-", 1)[0],
        "seconds": round(time.time() - began),
        "fitted_shares": {"text_gain": gain, "judge_weight": judge_weight},
    }
    by_text = fit_head(encoded(_rows(spoken), encoder), RECIPE)
    save_head(SEED_FOLDER, replace(by_text, text_gain=0.0, judge_weight=1.0), card)
    sys.stdout.write(f"{card['text_alone']}\n{card['judge_alone']}\n{card['fitted_shares']}\n")
    return 0


def _rows(spoken: Iterable[JudgedClaim]) -> list[Lesson]:
    """Each verdict as the built-in judge gives it, and in the frame of a language model's."""
    found = []
    for said, label in ((item.judgement, item.row.label) for item in spoken):
        reasons = ". ".join(said.text.split(". ")[1:-1])
        found += [Lesson(text, label) for text in (said.text, verdict_text(said.label, reasons))]
    return found


def _out_of_fold(spoken: Sequence[JudgedClaim], encoder: Embedder) -> list[float]:
    """What the text says of each row, as log odds, by a head that has not seen its evidence."""
    folds = [fold_of(item.row.group, FOLDS) for item in spoken]
    out = [0.0] * len(spoken)
    for fold in range(FOLDS):
        others = _rows(item for item, own in zip(spoken, folds, strict=True) if own != fold)
        if len({row.label for row in others}) < 2:
            raise InputError(
                "Expected rows of both labels in every fold, found too few; "
                "give more rows with --limit, or leave it out."
            )
        head = fit_head(encoded(others, encoder), RECIPE)
        for place in (i for i, own in enumerate(folds) if own == fold):
            vector = encoder.encode([spoken[place].judgement.text])
            out[place] = logit_of(head.probability(vector)[0])
    return out


def _shares(spoken: Sequence[JudgedClaim], told: Sequence[float]) -> tuple[float, float]:
    """(gain of the text, weight of the judge's p), neither below nought."""
    from scipy.optimize import minimize

    own = np.array([logit_of(item.judgement.p) for item in spoken])
    signs = np.array([1.0 if item.row.label == "hallucinated" else -1.0 for item in spoken])
    values = np.column_stack([told, own])

    def loss(shares: npt.NDArray[np.float64]) -> float:
        return float(np.logaddexp(0.0, -signs * (values @ shares)).mean())

    found = minimize(loss, np.array([0.1, 1.0]), bounds=[(0.0, None)] * 2, method="L-BFGS-B")
    gain, judge_weight = (round(float(share), 4) for share in found.x)
    return gain, judge_weight


def _card(
    folder: Path, samples: Mapping[str, Sequence[LabelledClaim]], spoken: Sequence[JudgedClaim],
    probabilities: Sequence[float],
) -> dict[str, Any]:  # fmt: skip
    labels = [item.row.label for item in spoken]
    told = (item.judgement for item in spoken)
    judged_p = [float(j.label == "hallucinated") if j.p is None else j.p for j in told]
    rows = sum(len(sample) for sample in samples.values())
    return {
        "name": "seed",
        "author": "Counterpoint",
        "trained_on": {
            name: provenance_of(folder, name) | {"rows": len(sample)}
            for name, sample in samples.items()
        },
        "rows": rows,
        "unclear": rows - len(spoken),
        "text_alone": scores(labels, probabilities),
        "judge_alone": scores(labels, judged_p),
        "reliability": reliability(labels, judged_p),  # of what ships, which passes it on
        "folds": FOLDS,
    }


def labelled_sample(folder: Path, limit: int | None) -> dict[str, list[LabelledClaim]]:
    """A seeded sample of each set, both labels alike, less what the evidence does not decide."""
    chosen: dict[str, list[LabelledClaim]] = {}
    for name, wanted in SETS.items():
        rows = [
            LabelledClaim(row.response, row.documents, row.label, row.group, row.question)
            for row in load(name, folder, split=SPLIT)
            if row.label is not None and row.label != "unclear"
        ]
        random.Random(SEED).shuffle(rows)
        half = min(limit or wanted, wanted) // 2
        by_label = (
            [r for r in rows if r.label == label] for label in ("supported", "hallucinated")
        )
        chosen[name] = [row for own in by_label for row in own[:half]]
    return chosen


if __name__ == "__main__":
    sys.exit(main())
