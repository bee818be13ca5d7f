"""The unit converter: amounts, conversions that a text states, and that its docs quote it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.concurrency import Stop
from core.events import ToolUse
from core.records import Case
from core.tools import units
from core.tools.registry import Bench, read_input, use
from core.tools.units import convert

ROOT = Path(__file__).resolve().parents[2]


def used(**given: object) -> ToolUse:
    return use(units.TOOL, read_input(units.TOOL, json.dumps(given)), Bench(Stop()))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The marathon is 26.2 miles (42.2 km).", "en"),
        ("It is 26.2 miles (42.195 km).", "en"),
        ("37 °C = 98.6 °F", "en"),
        ("-40 °C (-40 °F), 0 °F (-17.8 °C)", "en"),
        ("100 km/h is about 62 mph", "en"),
        ("He is 6 ft (183 cm) tall", "en"),
        ("5公里约3.1英里", "zh"),
        ("It lasted 3 hours (about 180 minutes).", "en"),
        ("The estate has 1,250 acres (506 hectares).", "en"),
    ],
)
def test_right_conversions_hold(text: str, language: str) -> None:
    assert used(text=text, language=language).label == "supported"


@pytest.mark.parametrize("text", ["从2005年5月1日到2018年5月1日是13年。", "2024年 5月 1日是13周"])
def test_the_day_of_a_date_is_no_amount_of_time(text: str) -> None:
    assert used(text=text, language="zh").label == "unclear"


@pytest.mark.parametrize(
    ("text", "wrong", "instead"),
    [
        ("😀 The kiln reaches 950 °C (1,542 °F).", "1,542 °F", "1742 °F"),
        ("It weighs 5 kg (12 lb).", "12 lb", "11.0231131091 lb"),
        ("5 m is 5 feet", "5 feet", "16.4041994751 feet"),
        ("10 km (6.2 miles) and 10 km (16 miles)", "16 miles", "6.2137119224 miles"),
    ],
)
def test_wrong_conversions_are_marked(text: str, wrong: str, instead: str) -> None:
    told = used(text=text)
    assert told.label == "hallucinated"
    assert text[told.start : told.end] == wrong
    assert told.instead.split()[1:] == instead.split()[1:]
    assert float(told.instead.split()[0]) == pytest.approx(float(instead.split()[0]), rel=1e-9)


@pytest.mark.parametrize(
    "text", ["It is 5 m long.", "5 m (5 kg)", "5 km (5 km)", "Room 5 (3 m)", ""]
)
def test_a_text_without_a_conversion_is_nothing_to_look_at(text: str) -> None:
    assert (used(text=text).outcome, used(text=text).label) == ("nothing", "unclear")
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


def test_the_docs_show_the_tool_as_it_is() -> None:
    docs = (ROOT / "docs/tools.md").read_text(encoding="utf-8")
    shown = docs.split("```python\n")[1].split("```")[0]
    assert "TOOL = Tool(" in shown
    assert (ROOT / "core/tools/units.py").read_text(encoding="utf-8").endswith(shown)
