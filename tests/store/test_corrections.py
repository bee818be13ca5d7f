"""Corrections are appended, reasoned, and true to the text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.runtime.errors import InputError
from core.schema.records import BoundingBox, Label, Plan, Project, Run, Source, Span
from core.schema.reviews import Correction, EvidenceMark, ImageBox, StatementLabel
from core.store import Store
from tests.fakes import make_case

RESPONSE = "The tower is 512 m tall."


@pytest.fixture
def corrected(store: Store) -> Store:
    """A store with one run to correct."""
    store.projects.save(Project("project", "Ours", 1.0))
    store.cases.add(make_case(RESPONSE), [])
    store.runs.add(Run("r", "case", "project", Plan(), "queued", 1.0), "me", 1.0)
    return store


def correction(number: int, label: Label = "hallucinated", **fields: object) -> Correction:
    values: dict[str, object] = {"machine_label": "supported", "reason": "p. 3"} | fields
    return Correction(
        f"k{number}",
        "r",
        "case",
        "Mira",
        float(number),
        label,
        **values,  # type: ignore[arg-type]
    )


def test_corrections_append_and_the_newest_counts(corrected: Store) -> None:
    first, second = correction(1), correction(2, "supported", reason="")
    for item in (first, second):
        with corrected.writing():
            corrected.corrections.add(item, RESPONSE)
    assert corrected.corrections.of_run("r") == [first, second]
    assert corrected.corrections.of_case("case") == [first, second]
    assert corrected.corrections.newest_of_case("case") == [second]


def test_only_a_persons_first_answer_on_a_case_is_blind(corrected: Store) -> None:
    entries = [
        correction(1, is_blind=True),
        correction(2, withdraws="k1"),
        correction(3, is_blind=True),  # having seen what others said
        replace(correction(4, is_blind=True), author="Karl"),
        replace(correction(5), author="Ida"),
    ]
    with corrected.writing():
        for entry in entries:
            corrected.corrections.add(entry, RESPONSE)
    assert corrected.corrections.list_blind_ids("project") == {"k1", "k4"}
    assert corrected.corrections.list_blind_ids("another") == set()


def test_overturning_takes_a_reason(corrected: Store) -> None:
    with pytest.raises(InputError, match="takes a reason"), corrected.writing():
        corrected.corrections.add(correction(1, reason="  "), RESPONSE)
    assert corrected.corrections.of_run("r") == []


def test_agreeing_takes_none(corrected: Store) -> None:
    with corrected.writing():
        corrected.corrections.add(correction(1, "supported", reason=""), RESPONSE)
    assert len(corrected.corrections.of_run("r")) == 1


@pytest.mark.parametrize("place", [(12, 17), (13, 13), (-1, 4), (13, 99)])
def test_a_span_that_is_not_the_text_there_is_refused(
    corrected: Store, place: tuple[int, int]
) -> None:
    span = Span(*place, "512 m", 1.0, "number_or_date", "Mira")
    with pytest.raises(InputError, match="mark them again"), corrected.writing():
        corrected.corrections.add(correction(1, spans=(span,)), RESPONSE)
    assert corrected.corrections.of_run("r") == []


def test_a_true_span_is_kept(corrected: Store) -> None:
    span = Span(13, 18, "512 m", 1.0, "number_or_date", "Mira")
    with corrected.writing():
        corrected.corrections.add(correction(1, spans=(span,)), RESPONSE)
    assert corrected.corrections.of_run("r")[0].spans == (span,)


def mark(start: int, end: int, text: str = "412 m") -> dict[str, Any]:
    return {"evidence": (EvidenceMark("facts", start, end, text),)}


def drawn(*sides: float, comment: str = "") -> dict[str, Any]:
    return {"boxes": (ImageBox("photo", BoundingBox(*sides), "number_or_date", comment),)}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (mark(-1, 4), "-1 to 4"),
        (mark(4, 4), "4 to 4"),
        (mark(9, 4), "9 to 4"),
        (mark(0, 5), "not at characters 0 to 5"),
        (mark(7, 99), "not at characters 7 to 99"),
        (drawn(-0.1, 0, 1, 1), "within its image"),
        (drawn(0, 0, 1.1, 1), "within its image"),
        (drawn(0.5, 0, 0.4, 1), "within its image"),
        (drawn(0, 0.5, 1, 0.5), "within its image"),
        (drawn(0, float("nan"), 1, 1), "within its image"),
        (drawn(0, 0, 1, 1, comment="x" * 4001), "4,000 characters"),
        ({"comment": "x" * 4001}, "4,000 characters"),
        ({"statements": (StatementLabel(0, 999, "supported"),)}, "found one from 0 to 999"),
        ({"statements": (StatementLabel(4, 4, "supported"),)}, "found one from 4 to 4"),
    ],
)
def test_evidence_and_boxes_lie_where_they_can_and_comments_end(
    corrected: Store, fields: dict[str, Any], words: str
) -> None:
    source = Source("facts", "facts.txt", "text", "It is 👩‍👩‍👧 412 m tall.")
    corrected.readings.save(source, reader="1", seconds=0.0, now=1.0)
    with pytest.raises(InputError, match=words), corrected.writing():
        corrected.corrections.add(correction(1, **fields), RESPONSE)
    assert corrected.corrections.history("case") == []


def test_evidence_that_stands_there_is_kept_and_so_is_that_of_an_unread_source(
    corrected: Store,
) -> None:
    text = "It is 👩‍👩‍👧 412 m tall."
    at = text.index("412")
    source = Source("facts", "facts.txt", "text", text)
    corrected.readings.save(source, reader="1", seconds=0.0, now=1.0)
    true = correction(1, **mark(at, at + 5), **drawn(0, 0, 1, 1, comment="x" * 4000))
    unread = correction(2, evidence=(EvidenceMark("unread", 0, 5, "412 m"),))
    with corrected.writing():
        corrected.corrections.add(true, RESPONSE)
        corrected.corrections.add(unread, RESPONSE)
    assert corrected.corrections.history("case") == [true, unread]
