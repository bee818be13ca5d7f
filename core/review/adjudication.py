"""What several people and the machine said of one case, side by side, so that it can be settled.

Answers are recorded here too, so that the queue knows at once whether people differ. Also finds
cases much like one at hand, with what people decided on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.documents.segmentation import query_terms, terms
from core.schema.records import Case, Label, Span
from core.schema.reviews import Correction, Gold, Handling
from core.store import Store
from core.store.queue import Rules

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
    """The cases that people have decided something on."""
    found = [
        Decided(
            case,
            is_same,
            store.golds.that_counts(case.id),
            tuple(store.corrections.newest_of_case(case.id)),
        )
        for case in cases
    ]
    return [one for one in found if one.gold is not None or one.said]


LABELS_DIFFER, MARKS_DIFFER = 2, 1


@dataclass(frozen=True)
class AnswerVersion:
    """An answer to a case, a person's if it has a `correction_id`; `is_right`: it is the gold."""

    who: str
    label: Label | None
    spans: tuple[Span, ...] = ()
    reason: str = ""
    corrected_answer: str = ""
    correction_id: str = ""
    is_right: bool = False

    @property
    def is_persons(self) -> bool:
        """True for a person's answer, which counts when it is asked what people agree on."""
        return bool(self.correction_id)


@dataclass(frozen=True)
class Merged:
    """What all people agree on, and who else marked what: a settlement begins with it."""

    label: Label | None
    agreed: tuple[Span, ...]
    open: tuple[Span, ...]


def version_of(correction: Correction) -> AnswerVersion:
    """A person's answer as a version."""
    told = (correction.label, correction.spans, correction.reason, correction.corrected_answer)
    return AnswerVersion(correction.author, *told, correction.id)


def differ(said: Sequence[Correction]) -> int:
    """How people's newest answers differ: not (0), in marked words (1), in labels (2)."""
    if len({correction.label for correction in said}) > 1:
        return LABELS_DIFFER
    marks = {frozenset((s.start, s.end, s.category) for s in c.spans) for c in said}
    return MARKS_DIFFER if len(marks) > 1 else 0


def merged(versions: Sequence[AnswerVersion]) -> Merged:
    """Versions as one: the label of all people, the words that all marked alike, and the others.

    An open span's `source` names who marked it and its `p` is their share among the versions.
    """
    people = [version for version in versions if version.is_persons]
    labels = {version.label for version in people}
    by: dict[tuple[int, int, str], dict[str, Span]] = {}
    for version in versions:
        for span in version.spans:
            place = (span.start, span.end, span.category)
            by.setdefault(place, {}).setdefault(version.who, span)
    agreed: list[Span] = []
    rest: list[Span] = []
    for _, names in sorted(by.items(), key=lambda one: one[0]):
        first = next(iter(names.values()))
        told = replace(first, p=len(names) / len(versions), source=", ".join(names))
        is_agreed = bool(people) and all(person.who in names for person in people)
        (agreed if is_agreed else rest).append(told)
    label = labels.pop() if len(labels) == 1 else None
    return Merged(label, tuple(agreed), tuple(rest))


def most_said(versions: Sequence[AnswerVersion]) -> Label | None:
    """The label that more people gave than any other; None on a tie."""
    counted = Counter(v.label for v in versions if v.is_persons and v.label).most_common(2)
    if not counted or (len(counted) > 1 and counted[0][1] == counted[1][1]):
        return None
    return counted[0][0]


def record(store: Store, correction: Correction, case: Case) -> None:
    """Append an answer, or take one back; call inside `Store.writing()`."""
    store.corrections.add(correction, case.response)
    store.queue.set_differ(case.id, differ(store.corrections.newest_of_case(case.id)))


def settle(store: Store, gold: Gold, case: Case) -> None:
    """Append a right answer and close the case's item; call inside `Store.writing()`."""
    store.golds.add(gold, case.response)
    store.queue.set_state(case.id, "adjudicated")
    store.handlings.add(Handling(case.id, gold.author, gold.at, "adjudicated"))


def ask_again(store: Store, case_id: str, by: str, rules: Rules, now: float, *, why: str) -> int:
    """Give a case back to all who answered it, and to the queue; how many they are.

    What they said stands until they answer anew. Call inside `Store.writing()`.
    """
    asked = [one for one in store.queue.people_of(case_id) if one.state == "submitted"]
    for one in asked:
        store.queue.again(case_id, one.person, rules, now, why)
    open_again(store, case_id, by, now, why)
    return len(asked)


def open_again(store: Store, case_id: str, person: str, now: float, why: str = "") -> None:
    """Give an item back to the queue, and to who flagged it; call inside `Store.writing()`."""
    store.queue.set_state(case_id, "open")
    store.queue.unflag(case_id, now)
    store.handlings.add(Handling(case_id, person, now, "opened", why))
