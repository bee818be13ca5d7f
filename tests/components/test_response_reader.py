"""A response beside its sources: what the browser is given, and what is saved of its labels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.review.correction_draft import CorrectionTarget
from components.run.response_reader import (
    ReaderMark,
    build_reader_rows,
    build_statement_correction,
    cut_pieces,
    list_reader_marks,
    parse_reader,
)
from core.runtime.errors import InputError
from core.schema.events import SpanProposed, WordsScored
from core.schema.records import Label, Plan, Quote, Run, Span, WordScore
from core.schema.reviews import Correction, StatementLabel
from core.schema.run_state import RunState, fold_events
from tests.audit.audit_events import CASE, PASSAGE, RESPONSE, SENTENCES, told

DONE = fold_events(told())
MARKS = list_reader_marks(DONE)
ROWS = build_reader_rows(DONE, MARKS)
RUN = Run("r", CASE.id, CASE.project_id, Plan(), "finished", 1.0)
AS_MACHINE: dict[str, Label] = {
    "0": "supported", "1": "hallucinated", "2": "hallucinated", "3": "hallucinated",
}  # fmt: skip


def marked(words: str, quote: Quote | None = None) -> Span:
    """A span of the response by the machine."""
    start = RESPONSE.index(words)
    return Span(start, start + len(words), words, 0.9, "number_or_date", "A", quote=quote)


def corrected(
    labels: dict[str, Label], own: Correction | None = None, progress: RunState = DONE
) -> Correction:
    """What is saved of these labels."""
    rows = build_reader_rows(progress, list_reader_marks(progress))
    target = CorrectionTarget(RUN, CASE, progress)
    return build_statement_correction(target, rows, labels, "Mira", own)


def test_wrong_statements_come_first_and_what_cannot_be_checked_last() -> None:
    ordered = sorted(ROWS, key=lambda row: row.gravity)
    assert [row.row.number for row in ordered] == [2, 3, 4, 1, 5]


def test_what_was_kept_is_strong_and_what_was_dropped_or_is_suspected_is_weak() -> None:
    day, length = RESPONSE.index("Monday"), RESPONSE.index("412")
    scores = (
        WordScore(length, length + 3, 0.3),
        WordScore(0, 3, 0.05),
        WordScore(day, day + 6, 0.9),
        WordScore(day, day + 3, 0.9),
    )
    events = [*told(), SpanProposed(12.0, marked("6 years.")), WordsScored(12.1, "A", scores, 0.5)]
    marks = list_reader_marks(fold_events(events))
    shown = [(RESPONSE[m.start : m.end], m.is_weak, m.kind) for m in marks]
    assert shown == [
        ("Monday", False, "number_or_date"),
        ("6 years.", True, "number_or_date"),
        ("412", True, ""),
    ]


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200)), max_size=6))
def test_pieces_make_up_the_statement_and_carry_the_marks_over_them(
    places: list[tuple[int, int]],
) -> None:
    marks = [ReaderMark(min(place), max(place), 0.5, "", "", True) for place in places]
    for row in build_reader_rows(DONE, marks):
        place = row.row.statement.start
        pieces = cut_pieces(row, marks)
        assert "".join(words for words, _ in pieces) == SENTENCES[row.row.statement.index]
        for words, numbers in pieces:
            inside = range(place, place + len(words))
            assert numbers == [
                n for n, m in enumerate(marks) if m.start < inside.stop and place < m.end
            ]
            place = inside.stop


def test_the_place_that_says_what_is_wrong_is_shown_first() -> None:
    quote = Quote("The bridge is 400 m long.", "verified", source_id="c", source="c.txt", start=9)
    events = told()
    judged = next(event for event in events if event.kind == "span_adjudicated")
    assert judged.kind == "span_adjudicated"
    events.insert(-1, type(judged)(11.25, marked("412 m", quote), True, "kept"))
    progress = fold_events(events)
    row = build_reader_rows(progress, list_reader_marks(progress))[0]
    assert [place.source_id for place, _ in row.places] == ["c", PASSAGE.source_id]
    assert row.places[0][1] == "about “412 m”"


def test_agreeing_keeps_the_marks_of_a_wrong_statement_though_others_have_none() -> None:
    """Two of three wrong statements have no marks: nothing is learned from where words lack."""
    correction = corrected(AS_MACHINE)
    assert (correction.label, correction.machine_label) == ("hallucinated", "hallucinated")
    assert [span.text for span in correction.spans] == ["Monday"]
    assert correction.lacks_marks
    assert corrected({"1": "hallucinated"}).spans == (), "others are not labelled yet"
    assert [one.label for one in correction.statements] == list(AS_MACHINE.values())
    assert correction.statements[1] == StatementLabel(
        RESPONSE.index(SENTENCES[1]),
        RESPONSE.index(SENTENCES[1]) + len(SENTENCES[1]),
        "hallucinated",
    )
    assert correction.reason == "Every statement keeps the label it had"


def test_marks_are_accepted_where_every_wrong_statement_has_one() -> None:
    correction = corrected({**AS_MACHINE, "2": "supported", "3": "unclear"})
    assert [span.text for span in correction.spans] == ["Monday"]
    assert correction.accepted_all
    assert not correction.lacks_marks
    assert correction.reason == "Changed: statement 4: unclear; statement 3: supported"


def test_marks_in_a_statement_that_is_right_are_rejected() -> None:
    correction = corrected(dict.fromkeys(map(str, range(4)), "supported"))
    assert correction.label == "supported"
    assert [span.text for span in correction.rejected] == ["Monday"]
    assert correction.reason == "Changed: statements 2, 3, 4: supported"


def test_some_labels_are_enough_only_if_one_is_hallucinated() -> None:
    with pytest.raises(InputError, match="found 3 without a label"):
        corrected({"0": "supported"})
    assert corrected({"2": "hallucinated"}).label == "hallucinated"


def test_what_the_person_had_said_otherwise_stays() -> None:
    own = Correction("c", "r", CASE.id, "Mira", 1.0, "hallucinated", (marked("6 years."),),
                     reason="sums", corrected_answer="5 years", comment="see p. 2")  # fmt: skip
    correction = corrected(AS_MACHINE, own)
    assert correction.spans == own.spans
    assert (correction.reason, correction.corrected_answer) == ("sums", "5 years")
    assert correction.comment == "see p. 2"
    assert correction.id != own.id
    assert corrected(AS_MACHINE, replace(own, is_blind=True)).is_blind is False
    labelled = corrected(AS_MACHINE, replace(own, reason=""))
    assert corrected(AS_MACHINE | {"0": "unclear"}, labelled).reason != labelled.reason
    typed = corrected(AS_MACHINE | {"0": "unclear"}, replace(labelled, reason="typed"))
    assert typed.reason == "typed"


def test_own_decisions_on_marks_are_not_replaced_by_the_machines() -> None:
    labels: dict[str, Label] = {**AS_MACHINE, "2": "supported", "3": "unclear"}
    assert [span.text for span in corrected(labels).spans] == ["Monday"]
    own = Correction("c", "older run", CASE.id, "Mira", 1.0, "hallucinated")
    unmarked = corrected(labels, replace(own, is_unmarked=True))
    assert (unmarked.spans, unmarked.is_unmarked, unmarked.run_id) == ((), True, "r")
    refused = corrected(labels, replace(own, rejected=DONE.spans))
    assert (refused.spans, refused.rejected) == ((), DONE.spans)


def test_what_does_not_fit_the_statements_is_refused() -> None:
    choices = [{"id": row.id, "label": ""} for row in ROWS]
    assert parse_reader({"statements": choices, "shown": "0"}, ROWS).labels == {}
    for odd in (
        {"statements": choices[1:], "shown": "0"},
        {"statements": choices, "shown": "7"},
        {"statements": [*choices[:-1], {"id": "4", "label": "wrong"}], "shown": "0"},
        {"statements": choices, "shown": "0", "place": -1},
    ):
        with pytest.raises(InputError):
            parse_reader(odd, ROWS)
