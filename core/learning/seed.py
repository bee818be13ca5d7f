"""The seed texts of every retraining: the built-in judge over small cases of our own writing.

They keep a retrained head from forgetting what a plain verdict looks like when people have
corrected only a few odd ones (setfit #430: heads trained on new data alone forget).
"""

from __future__ import annotations

import json
from pathlib import Path

from core.learning.verdict_texts import LabelledClaim, judged
from core.models.encoder import Embedder
from core.records import Label

SEED_CASES = Path(__file__).parent / "seed_cases.json"


def seed_claims() -> list[LabelledClaim]:
    """Our own cases: each text with claims that it supports and claims that it contradicts."""
    found: list[LabelledClaim] = []
    for number, entry in enumerate(json.loads(SEED_CASES.read_text(encoding="utf-8"))):
        for label in ("supported", "hallucinated"):
            for claim in entry[label]:
                found.append(LabelledClaim(claim, (entry["text"],), label, str(number)))
    return found


def seed_rows(encoder: Embedder) -> list[tuple[str, Label]]:
    """(judge's text, label) of the seed cases on which the judge reached a verdict."""
    return [
        (item.judgement.text, item.row.label)
        for item in judged(seed_claims(), encoder)
        if item.judgement.label != "unclear"
    ]
