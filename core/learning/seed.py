"""The seed texts of every retraining: the built-in judge over small cases of our own writing.

They keep a retrained head from forgetting what a plain verdict looks like when people have
corrected only a few odd ones (setfit #430: heads trained on new data alone forget).
"""

from __future__ import annotations

import json
from pathlib import Path

from core.learning.verdict_texts import LabelledClaim, Lesson, judged
from core.models.encoder import Embedder

SEED_CASES = Path(__file__).parent / "seed_cases.json"


def seed_claims() -> list[LabelledClaim]:
    """Our own cases: each text with claims that it supports and claims that it contradicts."""
    found: list[LabelledClaim] = []
    for number, entry in enumerate(json.loads(SEED_CASES.read_text(encoding="utf-8"))):
        for label in ("supported", "hallucinated"):
            for claim in entry[label]:
                found.append(LabelledClaim(claim, (entry["text"],), label, str(number)))
    return found


def seed_rows(encoder: Embedder) -> list[Lesson]:
    """The judge's text and p, with the label, of the seed cases on which it reached a verdict."""
    return [
        Lesson(item.judgement.text, item.row.label, item.judgement.p)
        for item in judged(seed_claims(), encoder)
        if item.judgement.label != "unclear"
    ]
