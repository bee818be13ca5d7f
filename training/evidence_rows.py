"""Rows that the evidence model is fitted on; the reader has seen none of them in training.

They come from the calibration and dev parts of the training sets, and from sets that took no part
in training the reader. Some evidence is hidden in a longer document made of other rows' evidence,
and some claims over one evidence are joined into a response, so that documents and responses are
met too.
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
    return [
        EvidenceRow(
            pair.name,
            pair.group,
            pair.language,
            response,
            pair.question,
            (pair.evidence,),
            pair.allowed != SUPPORTED,
        )
        for pair in chosen
        if (response := pair.claim[len(pair.question) :].strip())
    ]


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


def joined_responses(rows: Sequence[EvidenceRow], count: int, seed: int) -> list[EvidenceRow]:
    """Responses of two to six claims over one evidence; wrong where one claim is."""
    chance = random.Random(seed)
    by_evidence: dict[tuple[str, ...], list[EvidenceRow]] = defaultdict(list)
    for row in rows:
        if not row.question and len(row.response) < 300:
            by_evidence[row.documents].append(row)
    several = [own for own in by_evidence.values() if len(own) > 1]
    made = []
    for _ in range(count if several else 0):
        own = chance.choice(several)
        taken = chance.sample(own, chance.randint(2, min(6, len(own))))
        if chance.random() < 0.5:  # half of the responses are right as a whole, where they can be
            taken = [row for row in taken if not row.wrong] or taken
        text = " ".join(row.response.rstrip(" .") + "." for row in taken)
        wrong = any(row.wrong for row in taken)
        made.append(replace(own[0], name="joined", response=text, wrong=wrong))
    return made
