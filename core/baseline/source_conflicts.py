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


def find_conflict(measured: StatementFeatures, language: str) -> tuple[Passage, Passage] | None:
    """Return (a passage that supports the statement, one that contradicts it), if there are both.

    `language` is the statement's.
    """
    windows = [window for window in measured.reading.windows if not window.is_joined]
    if pair := _find_read_conflict(windows):
        return pair
    claim = _parse_content(measured.reading.claim[measured.reading.own_start :], language)
    contents = [(p, _parse_content(p.text, language)) for p in measured.passages]
    is_known = measured.reading.is_known
    for one, own in contents:
        terms = claim.words | claim.numbers
        shared = terms & (own.words | own.numbers)
        is_read = any(one in w.passages and w.reading.supported >= SUPPORTS_FROM for w in windows)
        if len(shared) < MIN_SHARED_SHARE * len(terms) or (is_known and not is_read):
            continue
        for other, theirs in contents:
            is_aligned = claim.words & own.words <= theirs.words and _may_be_same_case(
                one, other, own, theirs, windows
            )
            if is_aligned and _differs_in_one_point(claim, own, theirs):
                return one, other
    return None


def _find_read_conflict(windows: Sequence[EvidenceWindow]) -> tuple[Passage, Passage] | None:
    """Return passages of two sources of which the reader is sure that they disagree."""
    level = READER_DISAGREES_FROM
    supporting = [w.passage for w in windows if w.reading.supported >= level]
    contradicting = [w.passage for w in windows if w.reading.contradicted >= level]
    pairs = ((one, other) for one in supporting for other in contradicting)
    return next((pair for pair in pairs if pair[0].source_id != pair[1].source_id), None)


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
    one: Passage, other: Passage, own: _Content, theirs: _Content, windows: Iterable[EvidenceWindow]
) -> bool:
    """Return False if the words of the two passages, or their headings, name different cases."""
    is_one_source = one.source_id == other.source_id
    if one.id == other.id or (
        is_one_source and (one.heading != other.heading or is_table_row(one.text))
    ):
        return False
    if own.words == theirs.words:
        return True
    alone = [w.reading for w in windows if w.passages == (other,)]
    level = READER_DISAGREES_FROM if is_one_source else CONTRADICTS_FROM
    is_read = any(reading.contradicted >= level for reading in alone)
    return is_read and (own.words <= theirs.words or theirs.words <= own.words)


def _differs_in_one_point(claim: _Content, own: _Content, theirs: _Content) -> bool:
    """Return True if the passages differ in one value of the statement, or in a negation."""
    own_only, their_only = (
        _subtract(own.values, theirs.values),
        _subtract(theirs.values, own.values),
    )
    own_numbers, their_numbers = own.numbers - theirs.numbers, theirs.numbers - own.numbers
    if own.is_negated != theirs.is_negated:
        return not (own_only or their_only or own_numbers or their_numbers)
    if own_numbers or their_numbers:
        return bool(own_numbers and their_numbers and own_numbers <= claim.numbers) and not (
            own_only or their_only
        )
    return (
        len(own_only) == 1
        and any(_compare(own_only[0], value) == "same" for value in claim.values)
        and any(_compare(own_only[0], value) == "different" for value in their_only)
    )


def _subtract(values: Sequence[Value], others: Sequence[Value]) -> list[Value]:
    """Return the values that agree with none of the others."""
    return [v for v in values if not any(_compare(v, other) == "same" for other in others)]


def _compare(one: Value, other: Value) -> str:
    if isinstance(one, DateValue) and isinstance(other, DateValue):
        return compare_dates(one, other)
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return match_quantities(one, other)
    return "incomparable"
