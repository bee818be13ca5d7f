"""Finds two passages that contradict each other on a statement, in two sources or in one.

Two sentences contradict each other if they use the same words, but state another number or date, or
if only one of them has a negation. If one of them says more than the other, its words may name
another case, so the entailment reader must see the contradiction too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from core.baseline.evidence_model import StatementFeatures
from core.baseline.evidence_windows import EvidenceWindow
from core.baseline.negation import NEGATION_WORDS, count_negations
from core.baseline.value_comparison import find_values, is_table_row
from core.documents.segmentation import extract_query_terms, extract_terms
from core.schema.records import Passage
from core.tools.date_values import DateValue, compare_dates
from core.tools.quantities import Quantity, match_quantities

READER_DISAGREES_FROM = 0.8
"""Probability of support and of contradiction from which the reader sees two sources disagree."""
SUPPORTS_FROM = 0.5
CONTRADICTS_FROM = 0.5
"""Probability of contradiction that confirms other values in sentences of unequal length."""
MIN_SHARED_SHARE = 0.5
"""Share of the statement's terms that a passage needs to be about the same thing."""
Value = Quantity | DateValue


@dataclass(frozen=True)
class _Content:
    """What a sentence says: its words, its values, and its numbers that are no values."""

    words: frozenset[str]
    values: tuple[Value, ...]
    numbers: frozenset[str]
    is_negated: bool


_Sentence = tuple[Passage, _Content]


def find_conflict(measured: StatementFeatures, language: str) -> tuple[Passage, Passage] | None:
    """Return (a passage that supports the statement, one that contradicts it), if there are both.

    `language` is the statement's.
    """
    windows = [window for window in measured.reading.windows if not window.is_joined]
    claim = _parse_content(measured.reading.claim[measured.reading.own_start :], language)
    if pair := _find_read_conflict(claim, windows, language):
        return pair
    contents = [(p, _parse_content(p.text, language)) for p in measured.passages]
    is_known = measured.reading.is_known
    for sentence in contents:
        one, own = sentence
        terms = claim.words | claim.numbers
        shared = terms & (own.words | own.numbers)
        is_read = any(one in w.passages and w.reading.supported >= SUPPORTS_FROM for w in windows)
        if len(shared) < MIN_SHARED_SHARE * len(terms) or (is_known and not is_read):
            continue
        for other in contents:
            if (
                claim.words & own.words <= other[1].words
                and _may_be_same_case(claim, sentence, other, windows)
                and _differs_in_one_point(claim, own, other[1])
            ):
                return one, other[0]
    return None


def _find_read_conflict(
    claim: _Content, windows: Sequence[EvidenceWindow], language: str
) -> tuple[Passage, Passage] | None:
    """Return passages of two sources of which the reader is sure that they disagree.

    If they differ in two points of the statement, such as a name and a value, each is about another
    case.
    """
    level = READER_DISAGREES_FROM
    contradicting = [w for w in windows if w.reading.contradicted >= level]
    for one in (w for w in windows if w.reading.supported >= level):
        for other in contradicting:
            own, theirs = (_parse_content(w.text, language) for w in (one, other))
            named = [v for v in _subtract(own.values, theirs.values) if _is_in(v, claim.values)]
            points = (
                len(named)
                + bool(claim.words & own.words - theirs.words)
                + bool(claim.numbers & own.numbers - theirs.numbers)
                + (own.is_negated != theirs.is_negated)
            )
            if one.passage.source_id != other.passage.source_id and points <= 1:
                return one.passage, other.passage
    return None


@lru_cache(maxsize=4096)
def _parse_content(text: str, language: str) -> _Content:
    quantities, dates = find_values(text, language)
    values: tuple[Value, ...] = (*quantities, *dates)
    rest = "".join(
        " " if any(v.start <= place < v.end for v in values) else char
        for place, char in enumerate(text)
    )
    terms = frozenset(extract_query_terms(rest, language))
    numbers = frozenset(term for term in terms if term[0].isnumeric())
    negations = " ".join(NEGATION_WORDS.get(language, ()))
    words = terms - numbers - set(extract_terms(negations, language))
    return _Content(words, values, numbers, count_negations(text, language) > 0)


def _may_be_same_case(
    claim: _Content, sentence: _Sentence, opposite: _Sentence, windows: Iterable[EvidenceWindow]
) -> bool:
    """Return False if the words of the two passages, or their headings, name different cases."""
    (one, own), (other, theirs) = sentence, opposite
    is_one_source = one.source_id == other.source_id
    if one.id == other.id or (
        is_one_source and (one.heading != other.heading or is_table_row(one.text))
    ):
        return False
    if own.words == theirs.words:
        return True
    level = READER_DISAGREES_FROM if is_one_source else CONTRADICTS_FROM
    is_nested = own.words <= theirs.words or theirs.words <= own.words
    has_claim = not is_one_source and claim.words <= theirs.words
    return (is_nested or has_claim) and any(
        w.passages == (other,) and w.reading.contradicted >= level for w in windows
    )


def _differs_in_one_point(claim: _Content, own: _Content, theirs: _Content) -> bool:
    """Return True if the passages differ in one value of the statement, or in a negation."""
    own_only = _subtract(own.values, theirs.values)
    their_only = _subtract(theirs.values, own.values)
    own_numbers, their_numbers = own.numbers - theirs.numbers, theirs.numbers - own.numbers
    if own.is_negated != theirs.is_negated:
        return not (own_only or their_only or own_numbers or their_numbers)
    if own_numbers or their_numbers:
        return bool(own_numbers and their_numbers and own_numbers <= claim.numbers) and not (
            own_only or their_only
        )
    return (
        len(own_only) == 1
        and _is_in(own_only[0], claim.values)
        and any(_compare(own_only[0], value) == "different" for value in their_only)
    )


def _subtract(values: Sequence[Value], others: Sequence[Value]) -> list[Value]:
    """Return the values that agree with none of the others."""
    return [value for value in values if not _is_in(value, others)]


def _is_in(value: Value, others: Sequence[Value]) -> bool:
    return any(_compare(value, other) == "same" for other in others)


def _compare(one: Value, other: Value) -> str:
    if isinstance(one, DateValue) and isinstance(other, DateValue):
        return compare_dates(one, other)
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return match_quantities(one, other)
    return "incomparable"
