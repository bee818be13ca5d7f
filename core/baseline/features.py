"""What is measured of a statement beside its evidence: a few dozen numbers with plain names.

The evidence model weighs them (`evidence_model`); explanations are drawn from the same readings.
They come in families, each of which can be left out to see what it is worth: reading, retrieval,
coverage, values, negation, question, size.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import regex

from core.baseline.evidence import UNREAD, StatementReading
from core.baseline.values import ValueFinding, compare_values, is_row
from core.documents.terms import IS_UNSPACED, WORD, fold, query_terms, terms
from core.records import Case, Passage, Statement

NEGATIONS_FILE = Path(__file__).parent / "negations.json"
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "reading": (
        "support_best", "support_second", "support_joined", "contradiction_best",
        "contradiction_second", "contradiction_joined", "neutral_least", "contradiction_share",
        "is_known",
    ),
    "retrieval": ("similarity_best", "similarity_third"),
    "coverage": (
        "terms_found", "terms_found_best", "rare_terms_missing", "names_missing", "names",
        "longest_run",
    ),
    "values": (
        "values", "values_same", "values_derived", "values_different", "values_unmatched",
        "dates_different", "digits_missing",
    ),
    "negation": ("denials", "denials_differ"),
    "question": ("is_answer",),
    "size": ("evidence_size", "table_share"),
}  # fmt: skip
FEATURES: tuple[str, ...] = tuple(name for names in FAMILIES.values() for name in names)
FARTHEST = 6.0
"""Log odds beyond which a reader's certainty counts no further."""
CAPITALISED = regex.compile(r"\p{Lu}")


@dataclass(frozen=True)
class StatementFeatures:
    """A statement with all that was measured of it."""

    statement: Statement
    passages: tuple[Passage, ...]
    reading: StatementReading
    values: tuple[ValueFinding, ...]
    numbers: Mapping[str, float]
    """Each of `FEATURES`."""

    def row(self, names: Sequence[str] = FEATURES) -> list[float]:
        """The named features in order."""
        return [self.numbers[name] for name in names]


def measure(
    case: Case, statement: Statement, passages: Sequence[Passage], reading: StatementReading
) -> StatementFeatures:
    """All features of one statement over its passages, best first, and the reader's readings."""
    texts = [window.text for window in reading.windows] or [p.text for p in passages]
    own = reading.claim[reading.own_start :]
    single = [window.text for window in reading.windows if not window.is_joined]
    values = compare_values(reading.claim, reading.own_start, single or texts, case.language)
    numbers = {
        **_reading_features(reading),
        **_retrieval_features(passages),
        **_coverage_features(own, texts, case.language),
        **_value_features(values, own, texts),
        **_negation_features(own, reading, case.language),
        "is_answer": float(reading.own_start > 0),
        "evidence_size": math.log1p(sum(len(text) for text in texts)),
        "table_share": sum(is_row(text) for text in texts) / max(1, len(texts)),
    }
    return StatementFeatures(statement, tuple(passages), reading, values, numbers)


def log_odds(p: float) -> float:
    """The log odds of a probability, bounded."""
    bounded = min(max(p, 1e-6), 1 - 1e-6)
    return max(-FARTHEST, min(FARTHEST, math.log(bounded / (1 - bounded))))


def _reading_features(reading: StatementReading) -> dict[str, float]:
    """Best, second best and over all: what the windows say for and against."""
    read = [window.reading for window in reading.windows] if reading.is_known else []
    support = sorted((r.supported for r in read), reverse=True) or [0.0]
    against = sorted((r.contradicted for r in read), reverse=True) or [0.0]
    joining = [w.reading for w in reading.windows if w.is_joined and read] or read[:1]
    joined = joining[0] if joining else UNREAD
    decided = np.array([1.0 - r.neutral for r in read]) ** 2 + 1e-9
    weights = decided / decided.sum() if read else decided
    share = float(weights @ np.array([r.contradicted / max(1e-6, 1.0 - r.neutral) for r in read]))
    return {
        "support_best": log_odds(support[0]),
        "support_second": log_odds(support[min(1, len(support) - 1)]),
        "support_joined": log_odds(joined.supported),
        "contradiction_best": log_odds(against[0]),
        "contradiction_second": log_odds(against[min(1, len(against) - 1)]),
        "contradiction_joined": log_odds(joined.contradicted),
        "neutral_least": log_odds(min((r.neutral for r in read), default=1.0)),
        "contradiction_share": share if read else 0.5,
        "is_known": float(reading.is_known),
    }


def _retrieval_features(passages: Sequence[Passage]) -> dict[str, float]:
    """How like the statement its passages are."""
    known = sorted((p.similarity for p in passages if p.similarity is not None), reverse=True)
    return {
        "similarity_best": known[0] if known else 0.0,
        "similarity_third": known[min(2, len(known) - 1)] if known else 0.0,
    }


def _coverage_features(own: str, texts: Sequence[str], language: str) -> dict[str, float]:
    """How much of the statement's words stands in the evidence, in all of it and in one window."""
    wanted = query_terms(own, language)
    held = [set(terms(text, language)) for text in texts]
    every: set[str] = set().union(*held) if held else set()
    found = [term in every for term in wanted]
    best = max((sum(t in h for t in wanted) for h in held), default=0)
    names = _names(own, language)
    missing_names = [name for name in names if name not in every]
    rare = [term for term in wanted if len(term) > 4]
    return {
        "terms_found": sum(found) / max(1, len(wanted)),
        "terms_found_best": best / max(1, len(wanted)),
        "rare_terms_missing": sum(term not in every for term in rare) / max(1, len(rare)),
        "names_missing": len(missing_names) / max(1, len(names)),
        "names": math.log1p(len(names)),
        "longest_run": _longest_run(own, texts, language),
    }


def _names(own: str, language: str) -> list[str]:
    """Terms of words with a capital letter that do not open a sentence; German nouns among them."""
    words = list(WORD.finditer(own))
    inside = [
        match.group()
        for match in words[1:]
        if CAPITALISED.match(match.group()) and own[: match.start()].rstrip()[-1:] not in ".!?"
    ]
    return [term for word in inside for term in terms(word, language)]


def _longest_run(own: str, texts: Sequence[str], language: str) -> float:
    """The longest run of the statement's terms that stands so in the evidence, as a share."""
    wanted = list(terms(own, language))
    longest = 0
    joined = [" " + " ".join(terms(text, language)) + " " for text in texts]
    for start in range(len(wanted)):
        size = longest + 1
        while start + size <= len(wanted):
            run = " " + " ".join(wanted[start : start + size]) + " "
            if not any(run in text for text in joined):
                break
            longest, size = size, size + 1
    return longest / max(1, len(wanted))


def _value_features(
    values: Sequence[ValueFinding], own: str, texts: Sequence[str]
) -> dict[str, float]:
    """How the statement's numbers and dates stand to the evidence's."""
    count = max(1, len(values))
    digits = {word for word in WORD.findall(own) if word[0].isdigit()}
    inside = {word for text in texts for word in WORD.findall(text) if word[0].isdigit()}

    def share(status: str) -> float:
        return sum(value.status == status for value in values) / count

    return {
        "values": math.log1p(len(values)),
        "values_same": share("same"),
        "values_derived": share("derived"),
        "values_different": float(any(value.status == "different" for value in values)),
        "values_unmatched": share("unmatched"),
        "dates_different": float(any(v.is_date and v.status == "different" for v in values)),
        "digits_missing": len(digits - inside) / max(1, len(digits)),
    }


@cache
def _negations() -> Mapping[str, frozenset[str]]:
    table: dict[str, list[str]] = json.loads(NEGATIONS_FILE.read_text(encoding="utf-8"))
    return {language: frozenset(words) for language, words in table.items()}


def _denials(text: str, language: str) -> int:
    words = _negations().get(language, frozenset())
    if IS_UNSPACED.search(text):
        return sum(text.count(word) for word in words)
    return sum(fold(match.group()) in words for match in WORD.finditer(text))


def _negation_features(own: str, reading: StatementReading, language: str) -> dict[str, float]:
    """Whether one of statement and closest window denies what the other does not."""
    closest = reading.supporting
    own_denials = _denials(own, language)
    passage = closest.passage.text if closest else ""
    return {
        "denials": float(own_denials),
        "denials_differ": float((own_denials > 0) != (_denials(passage, language) > 0)),
    }
