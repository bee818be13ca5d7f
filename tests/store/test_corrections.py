"""Corrections are appended, reasoned, and true to the text."""

from __future__ import annotations

import pytest

from core.errors import InputError
from core.records import Label, Plan, Project, Run, Span
from core.reviews import Correction
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
    assert corrected.corrections.newest_by_run() == [second]


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
