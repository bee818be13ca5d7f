"""Pairs of evidence and claim that readers are trained on, from shared and collected sets.

Never trained on are rows of the `dev` and `calibration` parts (by hash of the group) of shared
sets, of the `dev` part of collected ones, and collected claims that are in a set measured whole.
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

from core.evaluation.dataset_files import SplitPart, assign_part, normalize_key
from core.evaluation.datasets import get_task_rule, load_dataset_rows

AllowedClasses = tuple[int, int, int]
SUPPORTED: AllowedClasses = (1, 0, 0)
CONTRADICTED: AllowedClasses = (0, 1, 0)
NEUTRAL: AllowedClasses = (0, 0, 1)
NOT_SUPPORTED: AllowedClasses = (0, 1, 1)
ALLOWED_BY_LABEL = {
    "supported": SUPPORTED,
    "contradicted": CONTRADICTED,
    "neutral": NEUTRAL,
    "not_supported": NOT_SUPPORTED,
}
WrongMarks = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class LabelledPair:
    """One claim over one evidence text."""

    evidence: str
    claim: str
    """The claim, after its question if it answers one."""
    allowed: AllowedClasses
    """Flags for supported, contradicted and neutral: the classes it may be."""
    name: str
    """The name of the set."""
    group: str
    language: str = "en"
    times: float = 1.0
    """Number of times it is seen in an epoch."""
    question: str = ""
    """The question with which `claim` begins, if it answers one."""
    wrong: WrongMarks | None = None
    """`[start, end)` in `claim` of the wrong words; None if nobody marked them."""


@dataclass(frozen=True)
class SharedSet:
    """How a set of the shared folder is used."""

    name: str
    times: float = 1.0
    task: str | None = None
    hallucinated: AllowedClasses = CONTRADICTED
    unclear: AllowedClasses = NEUTRAL


# Left out are sets that are measured whole (qags, halueval, bamboo, faithbench, mushroom), sets
# whose licence forbids commercial use (anli, averitec, ocnli, scifact_rte, sick), and sets whose
# claims alone reveal the label (breaking_nli, conjnli, help, begin).
SHARED_SETS = (
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
UNSPACED_LANGUAGES = ("zh", "ja", "th")
MAX_EVIDENCE_CHARS = 800
"""Characters of evidence; with a claim it stays within the reader's 256 tokens."""
MEASURED_SETS = (
    ("fever_symmetric", None),
    ("entailment_fm2", None),
    ("entailment_healthver", None),
    ("qags", None),
    ("halueval", "qa"),
    ("bamboo", None),
)


def join_question(question: str, answer: str) -> str:
    """Join question and answer; a claim has no question. Whitespace becomes single spaces."""
    return " ".join(f"{question} {answer}".split())


def fit_evidence(evidence: str, claim: str, language: str) -> str:
    """Return the evidence, or of long evidence the sentences nearest to the claim."""
    limit = MAX_EVIDENCE_CHARS // 3 if language in UNSPACED_LANGUAGES else MAX_EVIDENCE_CHARS
    if len(evidence) <= limit:
        return evidence
    words = _content_words(claim, language)
    parts = sentencex.segment(language, evidence)
    shares = [
        len(_content_words(part, language) & words) / (6 + len(part) ** 0.5) for part in parts
    ]
    chosen: set[int] = set()
    remaining = limit
    for place in sorted(range(len(parts)), key=lambda i: -shares[i]):
        if len(parts[place]) <= remaining:
            chosen.add(place)
            remaining -= len(parts[place])
    return " ".join(parts[place].strip() for place in sorted(chosen)) or evidence[:limit]


def _content_words(text: str, language: str) -> frozenset[str]:
    if language in UNSPACED_LANGUAGES:
        return frozenset(text[i : i + 2] for i in range(len(text) - 1))
    return frozenset(word[:6] for word in re.findall(r"\w{3,}", text.casefold()))


def load_shared_pairs(folder: Path, parts: Iterable[SplitPart]) -> Iterator[LabelledPair]:
    """Yield the labelled rows of the shared training sets whose group is in one of the parts."""
    allowed_parts = frozenset(parts)
    for source in SHARED_SETS:
        labels = {"supported": SUPPORTED, "hallucinated": source.hallucinated}
        for row in load_dataset_rows(source.name, folder, task=source.task):
            if (
                assign_part(row.group) not in allowed_parts
                or not row.documents
                or row.label is None
            ):
                continue
            claim = join_question(row.question, row.response)
            text = " ".join(" ".join(row.documents).split())
            yield LabelledPair(
                evidence=fit_evidence(text, claim, row.language),
                claim=claim,
                allowed=labels.get(row.label, source.unclear),
                name=source.name,
                group=row.group,
                language=row.language,
                times=source.times,
                question=" ".join(row.question.split()),
            )


def load_collected_pairs(
    folder: Path, parts: Iterable[SplitPart], taboo: frozenset[str], *, is_whole: bool = False
) -> Iterator[LabelledPair]:
    """Yield the collected rows without claims in `taboo`; `is_whole` keeps evidence in full."""
    allowed_parts = frozenset(parts)
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                group = row["group"]
                if not group.startswith("t:"):
                    group = f"{row['set']}:{group}"
                if assign_part(group) not in allowed_parts or normalize_key(row["claim"]) in taboo:
                    continue
                question, language = row.get("question", ""), row["language"]
                claim = join_question(question, row["claim"])
                evidence = " ".join(row["evidence"].split())
                if not is_whole:
                    evidence = fit_evidence(evidence, claim, language)
                yield LabelledPair(
                    evidence=evidence,
                    claim=claim,
                    allowed=ALLOWED_BY_LABEL[row["label"]],
                    name=row["set"],
                    group=group,
                    language=language,
                    question=" ".join(question.split()),
                )


def describe_provenance(
    folder: Path, name: str, task: str | None = None, used: str = ""
) -> dict[str, Any]:
    """Return a shared set's licence, and checksums of the files that the pattern `used` finds."""
    rule = get_task_rule(name, task)
    files = {
        path.relative_to(folder).as_posix(): path for path in sorted((folder / name).rglob("*"))
    }
    digests = {
        place: hashlib.sha256(path.read_bytes()).hexdigest()
        for place, path in files.items()
        if path.is_file() and re.search(used, place)
    }
    return {"licence": rule.licence, "permits": rule.permits, "files": digests}


def load_measured_claims(folder: Path) -> frozenset[str]:
    """Return the normalised claims of all sets that the product's figures are measured on."""
    return frozenset(
        normalize_key(row.response)
        for name, task in MEASURED_SETS
        for row in load_dataset_rows(name, folder, task=task)
        if assign_part(row.group) == "dev" or name in ("qags", "halueval", "bamboo")
    )
