"""Trains the seed head that ships: `python -m core.evaluation.seed_head --path DATA`.

As CEDA 4.2 trains its classifier on debate summaries, here on the built-in judge's texts over
public sets whose licences permit it. Figures in the card are out of fold, folds keep rows with the
same evidence together. Only weights and the card are kept, no row.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.config import ENCODER_DIR
from core.errors import ReviewError
from core.evaluation.datasets import load
from core.learning.scores import reliability, scores
from core.learning.train import Recipe, fit_head
from core.learning.verdict_texts import LabelledClaim, judged
from core.models.encoder import load_encoder
from core.records import Label
from core.verdict.classifier import SEED_FOLDER, save_head

SETS = {
    "fever_symmetric": ("CC BY-SA 3.0 (Wikipedia)", 700),
    "entailment_fm2": ("Apache-2.0", 700),
    "entailment_breaking_nli": ("CC BY-SA 4.0", 300),
    "entailment_cad_nli": ("Apache-2.0", 400),
}
FOLDS = 5
SEED = 11


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print the out-of-fold figures, write the seed folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=None, help="rows a set, for a quick look")
    given = parser.parse_args(arguments)
    began = time.time()
    try:
        samples = _sample(given.path, given.limit)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    rows = [row for sample in samples.values() for row in sample]
    encoder = load_encoder(ENCODER_DIR)
    spoken = [item for item in judged(rows, encoder) if item.judgement.label != "unclear"]
    texts = [(item.judgement.text, item.row.label) for item in spoken]
    groups = [_fold(item.row.group) for item in spoken]
    recipe = Recipe(regularisation=0.5)
    out_of_fold = [0.0] * len(texts)
    for fold in range(FOLDS):
        head = fit_head(
            [t for t, g in zip(texts, groups, strict=True) if g != fold], encoder, recipe
        )
        for place, (text, _) in enumerate(texts):
            if groups[place] == fold:
                out_of_fold[place] = head.probability(encoder.encode([text]))[0]
    labels: list[Label] = [label for _, label in texts]
    verdicts = [float(item.judgement.label == "hallucinated") for item in spoken]
    card: dict[str, Any] = {
        "name": "seed",
        "author": "Counterpoint",
        "trained_on": {
            name: {"licence": SETS[name][0], "rows": len(sample)}
            for name, sample in samples.items()
        },
        "rows": len(rows),
        "unclear": len(rows) - len(texts),
        "out_of_fold": scores(labels, out_of_fold),
        "judge_alone": scores(labels, verdicts),
        "reliability": reliability(labels, out_of_fold),
        "encoder": encoder.id.rsplit("-", 1)[0],
        "folds": FOLDS,
        "seconds": round(time.time() - began),
    }
    save_head(SEED_FOLDER, fit_head(texts, encoder, recipe), card)
    sys.stdout.write(f"{card['out_of_fold']}\n{card['judge_alone']}\n{card['reliability']}\n")
    return 0


def _sample(folder: Path, limit: int | None) -> dict[str, list[LabelledClaim]]:
    """A seeded sample of each set, both labels alike."""
    chosen: dict[str, list[LabelledClaim]] = {}
    for name, (_, wanted) in SETS.items():
        rows = load(name, folder)
        random.Random(SEED).shuffle(rows)
        half = min(limit or wanted, wanted) // 2
        chosen[name] = [
            row
            for label in ("supported", "hallucinated")
            for row in [r for r in rows if r.label == label][:half]
        ]
    return chosen


def _fold(group: str) -> int:
    return int.from_bytes(hashlib.sha256(group.encode()).digest()[:4], "big") % FOLDS


if __name__ == "__main__":
    sys.exit(main())
