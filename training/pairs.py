"""Pairs of evidence and claim that the readers are trained on, of shared and of collected sets.

Never trained on: rows of the `dev` and `calibration` parts (by hash of the group) of shared sets,
of the `dev` part of collected ones, and collected claims that stand in a set measured whole.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencex

from core.evaluation.datasets import load, rule_of
from core.evaluation.files import Part, normalised, part_of

Allowed = tuple[int, int, int]
SUPPORTED: Allowed = (1, 0, 0)
CONTRADICTED: Allowed = (0, 1, 0)
NEUTRAL: Allowed = (0, 0, 1)
NOT_SUPPORTED: Allowed = (0, 1, 1)
ALLOWED = {
    "supported": SUPPORTED,
    "contradicted": CONTRADICTED,
    "neutral": NEUTRAL,
    "not_supported": NOT_SUPPORTED,
}
Marks = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Pair:
    """One claim over one evidence text."""

    evidence: str
    claim: str
    """With its question before it, where it is an answer to one."""
    allowed: Allowed
    """Which of supported, contradicted and neutral it may be."""
    name: str
    """Of the set."""
    group: str
    language: str = "en"
    times: float = 1.0
    """How often it is seen in an epoch."""
    question: str = ""
    """What `claim` begins with, where it answers a question."""
    wrong: Marks | None = None
    """`[start, end)` in `claim` of the words that are wrong; None where nobody marked them."""


@dataclass(frozen=True)
class SharedSet:
    """How a set of the shared folder takes part."""

    name: str
    times: float = 1.0
    task: str | None = None
    hallucinated: Allowed = CONTRADICTED
    unclear: Allowed = NEUTRAL


# Left out: sets that are measured whole (qags, halueval, bamboo, faithbench, mushroom), and those
# whose licence forbids commercial use (anli, averitec, ocnli, scifact_rte, sick) or whose label
# shows in the claim alone (breaking_nli, conjnli, help, begin).
SHARED = (
    SharedSet("entailment_lingnli"),
    SharedSet("entailment_sanli"),
    SharedSet("entailment_cad_nli"),
    SharedSet("entailment_med", 0.5, unclear=NOT_SUPPORTED),
    SharedSet("entailment_rte", unclear=NOT_SUPPORTED),
    SharedSet("entailment_control"),
    SharedSet("entailment_q2", hallucinated=NOT_SUPPORTED),
    SharedSet("entailment_climate_fever", 0.7, task="pairs"),
    SharedSet("entailment_covidfact", hallucinated=NOT_SUPPORTED),
    SharedSet("entailment_dialfact", 2.0),
    SharedSet("entailment_fm2", 2.0),
    SharedSet("entailment_fm2", 1.0, task="retrieved"),
    SharedSet("entailment_healthver", 2.0),
    SharedSet("entailment_wice", 2.0, hallucinated=NOT_SUPPORTED),
    SharedSet("fever_symmetric", 2.0),
    SharedSet("factcheck_gpt", task="subtask3"),
)
UNSPACED = ("zh", "ja", "th")
MOST_CHARACTERS = 800
"""Of evidence; with a claim it stays within the reader's 256 tokens."""
MEASURED = (
    ("fever_symmetric", None),
    ("entailment_fm2", None),
    ("entailment_healthver", None),
    ("qags", None),
    ("halueval", "qa"),
    ("bamboo", None),
)


def claim_with_question(question: str, answer: str) -> str:
    """An answer is read behind its question; a claim stands alone. Blanks become single spaces."""
    return " ".join(f"{question} {answer}".split())


def fitting_evidence(evidence: str, claim: str, language: str) -> str:
    """The evidence; where it is longer than the reader reads, the sentences nearest the claim."""
    most = MOST_CHARACTERS // 3 if language in UNSPACED else MOST_CHARACTERS
    if len(evidence) <= most:
        return evidence
    wanted = _words_of(claim, language)
    parts = sentencex.segment(language, evidence)
    shares = [len(_words_of(part, language) & wanted) / (6 + len(part) ** 0.5) for part in parts]
    chosen: set[int] = set()
    room = most
    for place in sorted(range(len(parts)), key=lambda i: -shares[i]):
        if len(parts[place]) <= room:
            chosen.add(place)
            room -= len(parts[place])
    return " ".join(parts[place].strip() for place in sorted(chosen)) or evidence[:most]


def _words_of(text: str, language: str) -> frozenset[str]:
    if language in UNSPACED:
        return frozenset(text[i : i + 2] for i in range(len(text) - 1))
    return frozenset(word[:6] for word in re.findall(r"\w{3,}", text.casefold()))


def shared_pairs(folder: Path, parts: Iterable[Part]) -> Iterator[Pair]:
    """Every labelled row of the shared training sets whose group lies in one of the parts."""
    wanted = frozenset(parts)
    for source in SHARED:
        labels = {"supported": SUPPORTED, "hallucinated": source.hallucinated}
        for row in load(source.name, folder, task=source.task):
            if part_of(row.group) not in wanted or not row.documents or row.label is None:
                continue
            claim, whole = claim_with_question(row.question, row.response), " ".join(row.documents)
            evidence = fitting_evidence(" ".join(whole.split()), claim, row.language)
            told = (labels.get(row.label, source.unclear), source.name, row.group, row.language)
            yield Pair(evidence, claim, *told, source.times, " ".join(row.question.split()))


def collected_pairs(
    folder: Path, parts: Iterable[Part], taboo: frozenset[str], *, is_whole: bool = False
) -> Iterator[Pair]:
    """Rows of the collected sets less those whose claim is in `taboo`; `is_whole`: not cut."""
    wanted = frozenset(parts)
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                group = row["group"]
                if not group.startswith("t:"):
                    group = f"{row['set']}:{group}"
                if part_of(group) not in wanted or normalised(row["claim"]) in taboo:
                    continue
                question, language = row.get("question", ""), row["language"]
                claim = claim_with_question(question, row["claim"])
                evidence = " ".join(row["evidence"].split())
                if not is_whole:
                    evidence = fitting_evidence(evidence, claim, language)
                told = (ALLOWED[row["label"]], row["set"], group, language)
                yield Pair(evidence, claim, *told, question=" ".join(question.split()))


def provenance_of(
    folder: Path, name: str, task: str | None = None, used: str = ""
) -> dict[str, Any]:
    """Licence of a shared set, and checksums of files that the expression `used` finds."""
    rule = rule_of(name, task)
    files = {
        path.relative_to(folder).as_posix(): path for path in sorted((folder / name).rglob("*"))
    }
    digests = {
        place: hashlib.sha256(path.read_bytes()).hexdigest()
        for place, path in files.items()
        if path.is_file() and re.search(used, place)
    }
    return {"licence": rule.licence, "permits": rule.permits, "files": digests}


def measured_claims(folder: Path) -> frozenset[str]:
    """The claims, normalised, of all sets that the product's figures are measured on."""
    return frozenset(
        normalised(row.response)
        for name, task in MEASURED
        for row in load(name, folder, task=task)
        if part_of(row.group) == "dev" or name in ("qags", "halueval", "bamboo")
    )
