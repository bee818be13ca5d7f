"""The registry: every tool keeps what it promises, and a failure makes no label; translations."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import msgspec
import pytest

from core.runtime.concurrency import StopSignal
from core.runtime.errors import InputError, ModelError, ReplyError, Stopped
from core.schema.records import CATEGORY_WORDS, Case, Statement
from core.tools.registry import (
    MAX_TRACE_CHARS,
    Tool,
    ToolAnswer,
    ToolContext,
    ToolExample,
    describe_tools,
    format_signature,
    get_tool,
    load_tools,
    read_input,
    use_tool,
)
from core.tools.text_tools import TRANSLATE as TOOL
from core.tools.text_tools import TranslationInput
from tests.tools.benches import ScriptedAsker, bench

BENCH = ToolContext(StopSignal())
NAMES = list(load_tools())
CASE = Case(
    "c", "p", "The legs took 2 hours + 3 hours = 6 hours. Thanks!", "How long?", language="en"
)


def tool(name: str) -> Tool[Any]:
    return get_tool(name)


def test_tools_are_listed_by_name() -> None:
    assert sorted(NAMES) == NAMES
    assert {"calculator", "units"} <= set(NAMES)
    assert all(name == load_tools()[name].name for name in NAMES)


def test_an_unknown_tool_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InputError, match=r"Expected one of the tools calculator, .*found “nope”"):
        get_tool("nope")


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_says_what_it_is_for_and_what_it_takes(name: str) -> None:
    assert len(tool(name).description.split()) >= 10
    assert (tool(name).takes.__doc__ or "").strip()
    assert issubclass(tool(name).takes, msgspec.Struct)
    assert tool(name).takes.__struct_config__.frozen
    assert len(tool(name).examples) == 2
    assert all(example.thought.strip() for example in tool(name).examples)


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_tool_give_the_labels_that_they_state(name: str) -> None:
    if why := tool(name).why_off(BENCH):
        for example in tool(name).examples:
            told = use_tool(tool(name), example.given, BENCH)
            assert (told.outcome, told.label, told.words) == ("off", "unclear", why)
        return
    for example in tool(name).examples:
        told = use_tool(tool(name), example.given, BENCH)
        assert told.outcome in ("found", "nothing"), told.words
        assert told.label == example.label
        assert told.category in ("", *CATEGORY_WORDS)
        assert told.label == "unclear" or told.words


@pytest.mark.parametrize("name", NAMES)
def test_an_example_goes_through_json_and_back(name: str) -> None:
    for example in tool(name).examples:
        written = msgspec.json.encode(example.given).decode()
        assert read_input(tool(name), written) == example.given


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("given", ["", "[]", "3", "{", '{"nothing_of_it": 1}', '"text"', "\ud800"])
def test_input_of_another_shape_is_refused(name: str, given: str) -> None:
    with pytest.raises(InputError, match=f"Expected a JSON object with .* for the tool {name}"):
        read_input(tool(name), given)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_tool_reads_by_itself_is_its_own_input(name: str) -> None:
    reads = tool(name).reads
    if reads is None:
        return
    end = CASE.response.index(" Thanks")
    words = CASE.response[:end]
    for statement in (None, Statement(0, 0, end, words, words)):
        given = reads(statement, CASE)
        assert given is None or isinstance(given, tool(name).takes)


class Given(msgspec.Struct, frozen=True):
    """Anything."""

    text: str


def made(work: Any) -> Tool[Given]:
    """A tool of the test's own."""
    model: Tool[Any] = tool("calculator")
    return replace(model, name="made", takes=Given, work=work, reads=None)


@pytest.mark.parametrize(
    "error", [InputError("not that"), ModelError("is down"), ReplyError("unreadable", reply="x")]
)
def test_a_tool_that_fails_has_no_label(error: Exception) -> None:
    def work(given: Given, bench: ToolContext) -> ToolAnswer:
        raise error

    told = use_tool(made(work), Given("3 + 5 = 9"), BENCH)
    assert (told.outcome, told.label, told.p, told.words) == ("failed", "unclear", None, str(error))
    assert json.loads(told.gave) == {}


def test_a_stop_and_a_fault_of_ours_are_no_answers() -> None:
    def stopped(given: Given, bench: ToolContext) -> ToolAnswer:
        raise Stopped("stopped")

    def broken(given: Given, bench: ToolContext) -> ToolAnswer:
        raise ZeroDivisionError

    with pytest.raises(Stopped):
        use_tool(made(stopped), Given(""), BENCH)
    with pytest.raises(ZeroDivisionError):
        use_tool(made(broken), Given(""), BENCH)


def test_a_tool_that_is_off_is_not_called() -> None:
    def work(given: Given, bench: ToolContext) -> ToolAnswer:
        raise AssertionError("called")

    off = replace(made(work), why_off=lambda bench: "There is no library.")
    told = use_tool(off, Given(""), BENCH)
    assert (told.outcome, told.label, told.words) == ("off", "unclear", "There is no library.")


def test_long_input_and_output_are_cut_in_the_trace() -> None:
    def work(given: Given, bench: ToolContext) -> ToolAnswer:
        return ToolAnswer("supported", "fine", {"text": given.text, "count": len(given.text)})

    told = use_tool(made(work), Given("é" * (2 * MAX_TRACE_CHARS)), BENCH)
    assert len(told.given) <= MAX_TRACE_CHARS
    assert json.loads(told.given)["text"] == "é" * 1000 + "…"
    assert json.loads(told.gave) == {"text": "é" * 1000 + "…", "count": 2 * MAX_TRACE_CHARS}


def test_output_that_is_long_all_over_is_left_out_whole() -> None:
    def work(given: Given, bench: ToolContext) -> ToolAnswer:
        return ToolAnswer("supported", "fine", {"list": ["x" * 100] * 1000})

    assert json.loads(use_tool(made(work), Given(""), BENCH).gave) == {"cut": True}


class Part(msgspec.Struct, frozen=True):
    """A part of a load."""

    name: str


class Weight(msgspec.Struct, frozen=True):
    """What is weighed.

    `load` is in kilograms.
    """

    load: float
    unit: Literal["kg", "lb"] = "kg"
    notes: tuple[str, ...] = ()
    parts: list[Part] = []
    beside: float | None = None


def weigh(given: Weight, bench: ToolContext) -> ToolAnswer:
    return ToolAnswer("supported", f"{given.load} {given.unit}")


def example(load: float) -> ToolExample[Weight]:
    return ToolExample("How heavy is it?", f"{load} kg.", Weight(load), "supported", "Weigh it.")


SCALES = Tool("scales", "Weighs a load.", Weight, weigh,
            (example(1.0), example(2.0)))  # fmt: skip


def test_the_signature_names_fields_and_types_and_what_may_be_left_out() -> None:
    assert format_signature(SCALES) == (
        "scales(load: float, unit?: kg|lb, notes?: [text], parts?: [{name}], beside?: float)"
    )


def test_the_description_stands_below_it_indented() -> None:
    own = [format_signature(SCALES), "  Weighs a load."]
    assert describe_tools([SCALES]).splitlines() == own
    assert describe_tools([SCALES, SCALES]).splitlines() == [*own, *own]
    assert describe_tools([]) == ""


GIVEN = TranslationInput(
    "It leaves before seven.", "Sie fährt nach sieben ab.", "English", "German"
)
BACK = {"translation": "It leaves after seven."}
WRONG = {
    "reason": "“nach” is after.",
    "same_meaning": False,
    "words": "nach sieben",
    "instead": "vor sieben",
    "p": 0.97,
}


def test_the_first_question_does_not_show_the_text() -> None:
    ask = ScriptedAsker([BACK, WRONG])
    used = use_tool(TOOL, GIVEN, bench(ask))
    first, second = ask.asked
    assert first[0] == "back_translation"
    assert GIVEN.text not in str(first)
    assert first[1]["from_language"] == "German"
    assert second[1]["back"] == "It leaves after seven."
    assert (used.label, used.p, used.instead) == ("hallucinated", 0.97, "vor sieben")
    assert GIVEN.claimed[used.start : used.end] == "nach sieben"
    assert json.loads(used.gave)["back"] == "It leaves after seven."


def test_the_same_meaning_is_supported_and_marks_nothing() -> None:
    right = WRONG | {"same_meaning": True, "p": 0.04}
    used = use_tool(TOOL, GIVEN, bench(ScriptedAsker([BACK, right])))
    assert (used.label, used.p, used.start, used.instead) == ("supported", 0.04, None, "")


def test_it_is_off_without_a_model_and_says_so() -> None:
    used = use_tool(TOOL, GIVEN, bench())
    assert (used.outcome, used.label) == ("off", "unclear")
    assert "needs a language model" in used.words


def test_a_reply_that_cannot_be_used_is_no_label() -> None:
    ask = ScriptedAsker([BACK, ReplyError("Unusable.", reply="?")])
    used = use_tool(TOOL, GIVEN, bench(ask))
    assert (used.outcome, used.label) == ("failed", "unclear")


@pytest.mark.parametrize("name", TranslationInput.__struct_fields__)
def test_what_is_missing_is_named_before_anything_is_asked(name: str) -> None:
    ask = ScriptedAsker([])
    values = {field: getattr(GIVEN, field) for field in TranslationInput.__struct_fields__}
    used = use_tool(TOOL, TranslationInput(**(values | {name: " "})), bench(ask))
    assert used.outcome == "failed"
    assert name in used.words
    assert ask.asked == []
