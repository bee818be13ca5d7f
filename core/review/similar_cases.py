"""Cases much like one at hand, and what people decided on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.documents.terms import query_terms, terms
from core.records import Case, Label
from core.reviews import Correction, Gold
from core.store import Store

LOOKED_AT = 20  # closest by words; most of them nobody has reviewed


@dataclass(frozen=True)
class Decided:
    """A case that people reviewed: its right answer if it was settled, and what each said."""

    case: Case
    is_same: bool
    gold: Gold | None
    said: tuple[Correction, ...]

    @property
    def label(self) -> Label | None:
        """What was decided; None where people differ."""
        if self.gold is not None:
            return self.gold.label
        labels = {correction.label for correction in self.said}
        return labels.pop() if len(labels) == 1 else None


def same_or_alike(
    store: Store, project_id: str, response: str, question: str, language: str
) -> tuple[list[Case], list[Case]]:
    """Earlier cases of the same text, newest first, and those that share most words, closest first.

    Alike is what holds more than half of the words that the text is found by.
    """
    same = store.cases.same(project_id, response, question)
    known = {case.id for case in same}
    words = query_terms(response, language)
    alike = [
        case
        for case in store.cases.similar(project_id, words, LOOKED_AT)
        if case.id not in known
        and len(set(words) & set(terms(case.response, case.language))) > len(words) / 2
    ]
    return same, alike


def decided(store: Store, cases: Sequence[Case], is_same: bool) -> list[Decided]:
    """Those of the cases that people have decided something on."""
    found: list[Decided] = []
    for case in cases:
        gold = store.golds.that_counts(case.id)
        said = tuple(store.corrections.newest_of_case(case.id))
        if gold is not None or said:
            found.append(Decided(case, is_same, gold, said))
    return found
