"""Compares what several people and the machine answered on one case, so that it can be settled.

Also records answers, so that the queue knows at once whether people differ, and finds similar
cases with what people decided on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from core.documents.segmentation import extract_query_terms, extract_terms
from core.review.people import can_see_answers, find_visible_truths, has_answered
from core.runtime.errors import NotAllowed
from core.schema.records import Case, Label, Span
from core.schema.reviews import Correction, GoldAnswer, GoldOrigin, QueueEvent
from core.store import Store
from core.store.ground_truth import GroundTruth, find_majority_label
from core.store.projects import GUEST
from core.store.review_queue import LABELS_DIFFER, MARKS_DIFFER, NO_MAJORITY, QueueRules

MAX_SIMILAR_CASES = 20  # cases closest by words; most of them are not reviewed
DifferenceKind = Literal["labels", "marks", "kinds", "nothing"]


@dataclass(frozen=True)
class DecidedCase:
    """A case with a right answer or answers of people, and what counts as true for it."""

    case: Case
    is_same: bool
    truth: GroundTruth


def find_similar_cases(
    store: Store, project_id: str, response: str, question: str, language: str
) -> tuple[list[Case], list[Case]]:
    """Return earlier cases of the same text, newest first, and similar ones, closest first.

    A case is similar if it shares more than half of this text's search terms.
    """
    same = store.cases.same(project_id, response, question)
    same_ids = {case.id for case in same}
    words = extract_query_terms(response, language)
    similar = [
        case
        for case in store.cases.similar(project_id, words, MAX_SIMILAR_CASES)
        if case.id not in same_ids
        and len(set(words) & set(extract_terms(case.response, case.language))) > len(words) / 2
    ]
    return same, similar


def load_decided_cases(
    store: Store, cases: Sequence[Case], person: str, *, is_same: bool
) -> list[DecidedCase]:
    """Return the cases that people have decided, with the decisions that this person may see."""
    truths = store.truths.of_cases([case.id for case in cases])
    visible: dict[str, GroundTruth] = {}
    for project_id in {case.project_id for case in cases}:
        own = {c.id: truths[c.id] for c in cases if c.project_id == project_id and c.id in truths}
        visible |= find_visible_truths(store, project_id, person, own)
    return [
        DecidedCase(case, is_same, visible[case.id])
        for case in cases
        if case.id in visible and visible[case.id].records
    ]


@dataclass(frozen=True)
class AnswerVersion:
    """One answer to a case; a person's has a `correction_id`, and `is_right` marks the gold one."""

    who: str
    label: Label | None
    spans: tuple[Span, ...] = ()
    reason: str = ""
    corrected_answer: str = ""
    correction_id: str = ""
    is_right: bool = False

    @property
    def is_persons(self) -> bool:
        """Return True for a person's answer; only these count towards agreement."""
        return bool(self.correction_id)


@dataclass(frozen=True)
class MergedAnswers:
    """The spans that all of several people marked alike, and the other ones."""

    agreed: tuple[Span, ...]
    open: tuple[Span, ...]


def build_answer_version(correction: Correction) -> AnswerVersion:
    """Return a person's correction as an answer version."""
    return AnswerVersion(
        who=correction.author,
        label=correction.label,
        spans=correction.spans,
        reason=correction.reason,
        corrected_answer=correction.corrected_answer,
        correction_id=correction.id,
    )


def rate_difference(said: Sequence[Correction]) -> int:
    """Return how people's newest answers differ: 0 not at all, 2 in labels, 3 without a majority.

    1 is a difference in marked words, or in the label of a statement that several labelled.
    """
    labels = [correction.label for correction in said]
    if len(set(labels)) > 1:
        return LABELS_DIFFER if find_majority_label(labels) else NO_MAJORITY
    marked_spans = {frozenset((s.start, s.end, s.category) for s in c.spans) for c in said}
    return MARKS_DIFFER if len(marked_spans) > 1 or _differ_in_statements(said) else 0


@dataclass(frozen=True)
class AnswerDifference:
    """In what people's newest answers to a case differ.

    `labels` are those given, each with how many gave it, the most frequent first; `majority` is
    the one that more than half of two people or more gave. Marks are compared among answers of the
    same label: whether they mark different words or label a statement differently, and by words
    that all of these marked the different kinds given.
    """

    labels: tuple[tuple[Label, int], ...] = ()
    has_other_marks: bool = False
    kinds: tuple[tuple[str, ...], ...] = ()
    majority: Label | None = None

    @property
    def kind(self) -> DifferenceKind:
        """Return the gravest difference; `kinds` if only the kinds of the same words differ."""
        if len(self.labels) > 1:
            return "labels"
        if self.has_other_marks:
            return "marks"
        return "kinds" if self.kinds else "nothing"


def find_difference(said: Sequence[Correction]) -> AnswerDifference:
    """Return in what people's newest answers to a case differ."""
    by_label: dict[Label, list[Correction]] = {}
    for correction in said:
        by_label.setdefault(correction.label, []).append(correction)
    has_other_marks = False
    kinds: dict[tuple[str, ...], None] = {}
    for alike in by_label.values():
        places = [{(span.start, span.end) for span in one.spans} for one in alike]
        has_other_marks |= any(own != places[0] for own in places) or _differ_in_statements(alike)
        for place in sorted(set.intersection(*places)):
            given = {s.category for one in alike for s in one.spans if (s.start, s.end) == place}
            if len(given) > 1:
                kinds[tuple(sorted(given))] = None
    labels = sorted(by_label, key=lambda label: (-len(by_label[label]), label))
    counts = tuple((label, len(by_label[label])) for label in labels)
    majority = find_majority_label(one.label for one in said) if len(said) > 1 else None
    return AnswerDifference(counts, has_other_marks, tuple(kinds), majority)


def _differ_in_statements(said: Sequence[Correction]) -> bool:
    labels_by_place: dict[tuple[int, int], set[Label]] = {}
    for one in (one for correction in said for one in correction.statements):
        labels_by_place.setdefault((one.start, one.end), set()).add(one.label)
    return any(len(labels) > 1 for labels in labels_by_place.values())


def merge_answers(versions: Sequence[AnswerVersion]) -> MergedAnswers:
    """Merge versions into the spans that all of several people marked alike, and the rest.

    A span's `source` names who marked it. Its `p` is the share of people who marked it, and the
    machine's own if no person did.
    """
    people = [version for version in versions if version.is_persons]
    markers_by_span: dict[tuple[int, int, str], dict[str, Span]] = {}
    for version in versions:
        for span in version.spans:
            place = (span.start, span.end, span.category)
            markers_by_span.setdefault(place, {}).setdefault(version.who, span)
    agreed: list[Span] = []
    open_spans: list[Span] = []
    for _, names in sorted(markers_by_span.items(), key=lambda entry: entry[0]):
        first = next(iter(names.values()))
        markers = sum(person.who in names for person in people)
        p = markers / len(people) if markers else first.p
        span_with_share = replace(first, p=p, source=", ".join(names))
        if markers == len(people) > 1:
            agreed.append(span_with_share)
        else:
            open_spans.append(span_with_share)
    return MergedAnswers(tuple(agreed), tuple(open_spans))


def record_correction(store: Store, correction: Correction, case: Case) -> None:
    """Append an answer, or take one back; call inside `Store.writing()`.

    Raises NotAllowed: it is a guest's.
    """
    if correction.author == GUEST:
        raise NotAllowed("An answer takes the name of who gave it; type yours, then save again.")
    store.corrections.add(correction, case.response)
    store.queue.update_answers(case.id, rate_difference(store.corrections.newest_of_case(case.id)))


def choose_gold_origin(gold: GoldAnswer, before: GoldAnswer | None) -> GoldOrigin:
    """Return “corrected” if the gold changes the one that counted, else “adjudicated”."""
    is_change = before is not None and _get_content(gold) != _get_content(before)
    return "corrected" if is_change else "adjudicated"


def _get_content(gold: GoldAnswer) -> tuple[object, ...]:
    marks = {(span.start, span.end, span.category, span.instead) for span in gold.spans}
    return gold.label, marks, gold.corrected_answer


def record_gold(store: Store, gold: GoldAnswer, case: Case) -> None:
    """Append a gold answer and close the case's item; call inside `Store.writing()`."""
    store.golds.add(gold, case.response)
    store.queue.set_state(case.id, "adjudicated")
    store.queue_events.add(QueueEvent(case.id, gold.author, gold.at, "adjudicated"))


def request_new_answers(
    store: Store, case_id: str, by: str, rules: QueueRules, now: float, *, why: str
) -> int:
    """Give a case back to all who answered it and to the queue; return how many they are.

    Their answers stand until they answer anew. Call inside `Store.writing()`.
    """
    answered = [
        assignment
        for assignment in store.queue.people_of(case_id)
        if assignment.state == "submitted"
    ]
    for assignment in answered:
        store.queue.again(case_id, assignment.person, rules, now, why)
    reopen_case(store, case_id, by, now, why)
    return len(answered)


def reopen_case(store: Store, case_id: str, person: str, now: float, why: str = "") -> None:
    """Give an item back to the queue and to whoever flagged it; call inside `Store.writing()`.

    What was settled stays on record and no longer counts.
    """
    store.queue.set_state(case_id, "open")
    store.queue.unflag(case_id, now)
    store.queue_events.add(QueueEvent(case_id, person, now, "reopened", why))


def list_visible_comments(
    store: Store, case: Case, person: str, *, is_settling: bool = False
) -> list[QueueEvent]:
    """Return the comments on a case that the person may be shown, oldest first.

    In a blind project that is their own, and those of others once they have answered the case or
    where they settle it as a lead.
    """
    comments = [each for each in store.queue_events.of_case(case.id) if each.did == "commented"]
    if has_answered(store, case.id, person) or can_see_answers(
        store, case.project_id, person, is_settling=is_settling
    ):
        return comments
    return [each for each in comments if each.person == person]
