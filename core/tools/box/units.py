"""Converts units, and checks the conversions that a text states: 26.2 miles (42.2 km)."""

from __future__ import annotations

import msgspec

from core.records import Case, Statement
from core.tools.conversions import LONGEST, convert, stated_conversions
from core.tools.rounding import shown
from core.tools.toolbox import Answer, Bench, Example, Tool

RIGHT_P, WRONG_P = 0.1, 0.9


class Conversion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that states conversions, or one amount to convert.

    `text` is the statement, in `language` (an ISO 639-1 code). Or give `value` with its `unit` and
    the unit wanted in `to`, as words or signs: 100, km/h, mph.
    """

    text: str = ""
    language: str = "en"
    value: float = 0.0
    unit: str = ""
    to: str = ""


def work(given: Conversion, bench: Bench) -> Answer:
    """The amount in the other unit, or whether the conversions that the text states are right.

    Raises:
        InputError: a unit is not known, or the two measure different things.
    """
    if given.unit or given.to:
        there = shown(convert(given.value, given.unit, given.to))
        words = f"{given.value:g} {given.unit} is {there} {given.to}."
        return Answer("unclear", words, {"value": there, "unit": given.to})
    found = stated_conversions(given.text, given.language)
    gave = {
        "conversions": [
            {"from": one.first, "to": one.second, "holds": one.holds, "worked_out": one.instead}
            for one in found
        ]
    }
    if not found:
        return Answer("unclear", "The text states no conversion.", gave, has_something=False)
    wrong = next((one for one in found if not one.holds), None)
    if wrong is None:
        return Answer("supported", f"{found[0].first} is {found[0].second}.", gave, RIGHT_P)
    words = f"{wrong.first} is {wrong.instead}, not {wrong.second}."
    return Answer(
        "hallucinated", words, gave, WRONG_P, wrong.start, wrong.end, wrong.instead,
        "number_or_date",
    )  # fmt: skip


def reads(statement: Statement | None, case: Case) -> Conversion | None:
    """The statement, where it states a conversion."""
    text = case.response if statement is None else case.response[statement.start : statement.end]
    if len(text) > LONGEST or not stated_conversions(text, case.language):
        return None
    return Conversion(text, case.language)


TOOL = Tool(
    name="units",
    description=(
        "Converts units of length, area, volume, mass, time, speed, temperature and more. Use it "
        "for a statement that gives one amount in two units, as in 26.2 miles (42.2 km): give the "
        "statement as text. Or give a value, its unit and the unit wanted. Comes back: what the "
        "amount is in the other unit, and whether the statement has it right."
    ),
    takes=Conversion,
    work=work,
    examples=(
        Example(
            question="How hot does the kiln get?",
            response="The kiln reaches 950 °C (1,542 °F).",
            given=Conversion("The kiln reaches 950 °C (1,542 °F)."),
            label="hallucinated",
            thought="One temperature is given in two units; I convert it.",
        ),
        Example(
            question="这条路有多长？",
            response="这条路长5公里，约3.1英里。",
            given=Conversion("5公里约3.1英里", "zh"),
            label="supported",
            thought="同一个长度写了两种单位，换算一下。",
        ),
    ),
    reads=reads,
)
