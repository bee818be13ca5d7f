"""The unit converter: amounts, conversions that a text states, and that its docs quote it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.concurrency import Stop
from core.schema.events import ToolUse
from core.schema.records import Case
from core.tools import units
from core.tools.registry import Bench, read_input, use
from core.tools.units import convert
from tests.tools.corpus import Row, rows

ROOT = Path(__file__).resolve().parents[2]


def used(**given: object) -> ToolUse:
    return use(units.TOOL, read_input(units.TOOL, json.dumps(given)), Bench(Stop()))


def found(row: Row) -> bool:
    """True where the conversion holds, is marked as wrong, or is none, as the row says."""
    told = used(text=row["text"], language=row["language"])
    if row["wrong"] in ("holds", "none"):
        return told.label == {"holds": "supported", "none": "unclear"}[row["wrong"]]
    number, unit = told.instead.split()
    wanted, wanted_unit = row["instead"].split()
    is_right = float(number) == pytest.approx(float(wanted), rel=1e-9) and unit == wanted_unit
    return is_right and row["text"][told.start : told.end] == row["wrong"]


def test_conversions_of_the_corpus() -> None:
    corpus = rows("conversions")
    missed = [row for row in corpus if not found(row)]
    assert missed == []


@pytest.mark.parametrize("text", ["It is 5 m long.", "5 m (5 kg)", ""])
def test_a_text_without_a_conversion_is_nothing_to_look_at(text: str) -> None:
    assert used(text=text).outcome == "nothing"
    assert units.reads(None, Case("c", "p", text, language="en")) is None


def test_an_amount_is_converted() -> None:
    told = used(value=100, unit="km/h", to="mph")
    assert (told.outcome, told.label) == ("found", "unclear")
    assert json.loads(told.gave)["value"].startswith("62.137119")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"value": 1, "unit": "km/h", "to": "kg"}, "two units of one kind"),
        ({"value": 1, "unit": "m**9999999", "to": "kg"}, "Expected a unit such as"),
        ({"value": 1, "unit": "__import__", "to": "kg"}, "Expected a unit such as"),
        ({"value": 1e300, "unit": "km", "to": "m"}, "at most 1e+15"),
        ({"text": "5 km (3 miles) " * 2000}, "at most 20,000"),
    ],
)
def test_what_cannot_be_converted_fails_with_a_sentence(
    given: dict[str, object], said: str
) -> None:
    told = used(**given)
    assert (told.outcome, told.label) == ("failed", "unclear")
    assert said in told.words


@given(
    st.floats(-1e9, 1e9).filter(lambda value: abs(value) > 1e-6 or value == 0),
    st.sampled_from([("metres", "feet"), ("°C", "°F"), ("kg", "pounds"), ("km/h", "mph")]),
)
def test_there_and_back_is_where_one_began(value: float, pair: tuple[str, str]) -> None:
    there = float(convert(value, *pair))
    assert float(convert(there, *reversed(pair))) == pytest.approx(value, rel=1e-9, abs=1e-6)
