"""Rows that the evidence model is fitted on; the reader has seen none of them in training.

They come from the calibration and dev parts of the training sets, and from sets that took no part
in training the reader. Some evidence is hidden in a longer document made of other rows' evidence,
so that documents are met too.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from core.learning.measured_rows import EvidenceRow
from training.pairs import SUPPORTED, Pair


def rows_of(pairs: Iterable[Pair], most: int, seed: int) -> list[EvidenceRow]:
    """At most so many rows of each set and language, balanced by label where there are enough."""
    chance = random.Random(seed)
    by_set: dict[tuple[str, str, bool], list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_set[pair.name, pair.language, pair.allowed == SUPPORTED].append(pair)
    chosen = [
        pair for own in by_set.values() for pair in chance.sample(own, min(most // 2, len(own)))
    ]
    rows = []
    for pair in chosen:
        # a constructed claim may have lost the question before it
        question = pair.question if pair.claim.startswith(pair.question) else ""
        if response := pair.claim[len(question) :].strip():
            wrong = pair.allowed != SUPPORTED
            evidence = (pair.evidence,)
            rows.append(
                EvidenceRow(
                    pair.name, pair.group, pair.language, response, question, evidence, wrong
                )
            )
    return rows


def in_documents(rows: Sequence[EvidenceRow], count: int, seed: int) -> list[EvidenceRow]:
    """Some rows with their evidence inside a document of other evidence of the same language."""
    chance = random.Random(seed)
    by_language: dict[str, list[EvidenceRow]] = defaultdict(list)
    for row in rows:
        by_language[row.language].append(row)
    made = []
    for row in chance.sample(list(rows), min(count, len(rows))):
        others = by_language[row.language]
        parts = [chance.choice(others) for _ in range(chance.randint(8, 30))]
        texts = [" ".join(p.documents) for p in parts if p.group != row.group]
        texts.insert(chance.randint(0, len(texts)), " ".join(row.documents))
        document = "\n\n".join(dict.fromkeys(texts))
        made.append(replace(row, name=f"{row.name} in a document", documents=(document,)))
    return made
