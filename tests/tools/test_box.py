"""Conditions, calendar and code as tools: what they take, say and give for their own views."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from core.runtime.concurrency import StopSignal
from core.schema.events import ToolUse
from core.schema.records import Case, Statement
from core.tools.registry import ToolContext, get_tool, read_input, use_tool
from tests.needs import need
from tests.tools.corpus import table


def used(name: str, **given: Any) -> ToolUse:
    """One call with its input as JSON, as a language model gives it."""
    tool = get_tool(name)
    need(not tool.why_off(ToolContext(StopSignal())), tool.why_off(ToolContext(StopSignal())))
    return use_tool(tool, read_input(tool, json.dumps(given)), ToolContext(StopSignal()))


def read(name: str, question: str, response: str, statement: int | None = None) -> Any:
    """The input that the tool takes from a case by itself."""
    reads = get_tool(name).reads
    assert reads is not None
    case = Case("c", "p", response, question, language="en")
    one = Statement(0, 0, len(response), response, response) if statement is not None else None
    return reads(one, case)


def test_a_length_that_a_model_gives_is_counted() -> None:
    text = "Boats come and go with every tide."
    told = used("conditions", text=text, unit="word", least=10, most=10)
    assert (told.label, told.outcome) == ("hallucinated", "found")
    (condition,) = json.loads(told.gave)["conditions"]
    assert condition == {
        "kind": "length",
        "asked": "10 words",
        "found": "7 words",
        "holds": False,
        "start": None,
        "end": None,
    }
    assert used("conditions", text=text, least=6, most=9).label == "supported"


@pytest.mark.parametrize(*table("box: conditions of other kinds"))
def test_conditions_of_other_kinds(given: dict[str, Any], kind: str, label: str) -> None:
    text = "Boats come and go with every tide, and the lamps are lit at night."
    told = used("conditions", text=text, **given)
    assert told.label == label
    assert [one["kind"] for one in json.loads(told.gave)["conditions"]] == ([kind] if kind else [])


def test_a_word_that_must_not_be_there_is_where_the_answer_breaks() -> None:
    told = used("conditions", text="A blue bell.", question="Describe it without the word 'blue'.")
    assert (told.label, told.start, told.end) == ("hallucinated", 2, 6)
    assert told.category == "instruction_not_followed"


def test_what_cannot_be_told_leaves_the_kept_rest_open() -> None:
    told = used("conditions", text="Tide.", must_have=["tide"], answer_in="fr")
    assert (told.label, told.outcome) == ("unclear", "found")
    assert "cannot be told" in told.words


def test_a_question_without_a_condition_is_nothing_to_look_at() -> None:
    told = used("conditions", text="It rose.", question="Who built the tower?")
    assert (told.outcome, told.label, told.p) == ("nothing", "unclear", None)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("conditions", {"text": "It rose."}, "Expected a question or a condition"),
        ("calendar", {"text": "x", "first": "6 Feb 2014"}, "as 2014-02-06, found “6 Feb 2014”"),
        ("calendar", {"first": "2014-02-06", "later": 10**9}, "within the years 1 to 9999"),
        ("calendar", {"first": "2014-02-06", "second": "2013-01-01", "is_birth": True}, "birth"),
        ("calendar", {}, "Expected a text or a first date"),
    ],
)
def test_what_cannot_be_worked_on_fails_with_a_sentence(
    name: str, given: dict[str, Any], said: str
) -> None:
    told = used(name, **given)
    assert (told.outcome, told.label, told.p) == ("failed", "unclear", None)
    assert said in told.words


@pytest.mark.parametrize(*table("box: dates that a model gives are worked out"))
def test_dates_that_a_model_gives_are_worked_out(
    text: str, given: dict[str, Any], label: str, worked_out: str, wrong: str
) -> None:
    told = used("calendar", text=text, first="2014-02-06", language="en", **given)
    assert told.label == label
    gave = json.loads(told.gave)
    assert gave["worked_out"].startswith(worked_out)
    assert gave["dates"][0] == {"date": "2014-02-06", "weekday": "Thursday"}
    if wrong:
        assert told.start is not None
        assert wrong.startswith(text[told.start : told.end])
        assert told.instead == gave["worked_out"]


def test_what_a_statement_says_of_dates_is_held_against_the_calendar() -> None:
    right, wrong = "12 March 2024 was a Tuesday.", "The ship sailed on Monday, 12 March 2024."
    assert used("calendar", text=right, language="en").label == "supported"
    told = used("calendar", text=wrong, language="en")
    assert (told.label, told.instead) == ("hallucinated", "Tuesday")
    assert wrong[told.start : told.end] == "Monday"
    assert json.loads(told.gave)["claims"] == 1
    also = "The ship sailed on Tuesday, 12 March 2024."
    assert used("calendar", text=also, language="en").label == "unclear"


def test_a_statement_goes_with_what_stands_before_it() -> None:
    response = "The firm was founded in 1990. Ten years later, in 2010, it was sold."
    second = Statement(1, 30, len(response), response[30:], response[30:])
    tool = get_tool("calendar")
    assert tool.reads is not None
    given = tool.reads(second, Case("c", "p", response, language="en"))
    told = use_tool(tool, given, ToolContext(StopSignal()))
    assert (told.label, told.instead) == ("hallucinated", "2000")
    assert told.start is not None
    assert second.text[told.start : told.end] == "2010"
    assert tool.reads(replace(second, text="It was sold."), Case("c", "p", response)) is None


def test_dates_alone_are_worked_out_and_no_verdict() -> None:
    told = used("calendar", first="2014-02-06", second="2014-05-21")
    assert (told.label, told.outcome) == ("unclear", "found")
    assert json.loads(told.gave)["days_between"] == 104
    assert "104 days" in told.words


def test_a_figure_that_is_denied_is_left_open() -> None:
    text = "It was not 114 days."
    told = used("calendar", text=text, first="2014-02-06", second="2014-05-21", language="en")
    assert told.label == "unclear"
    assert json.loads(told.gave)["holds"] is None


def test_a_run_shows_its_checks_output_and_error() -> None:
    code = "def half(x):\n    return x * 2\nprint('so')\nassert half(1) == 2\nassert half(4) == 2\n"
    told = used("code", text=code)
    assert told.label == "hallucinated"
    gave = json.loads(told.gave)
    assert (gave["checks"], gave["held"], gave["error_line"]) == (2, 1, 5)
    assert (gave["output"], gave["code"]) == ("so\n", code)
    passed = json.loads(used("code", text=code.replace("== 2", "in (2, 8)")).gave)
    assert (passed["held"], passed["error"], passed["error_line"]) == (2, "", None)


def test_tools_read_cases_where_they_are_meant_and_nowhere_else() -> None:
    length, days = "Describe the sea in five words.", "How many days from 2014-02-06 to 2014-05-21?"
    code = "def half(x):\n    return x / 2\nassert half(4) == 2\n"
    assert read("conditions", length, "Blue and deep.").question == length
    assert read("calendar", days, "104").text == "104"
    assert read("code", "", code).text == code
    for name in ("conditions", "calendar", "code"):
        assert read(name, "Who built the tower?", "Stephen Sauvestre.") is None
        assert read(name, length, code, 0) is None
