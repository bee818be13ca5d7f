"""The registry: every tool keeps what it promises, and a use never makes a label of a failure."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Literal

import msgspec
import pytest

from core.runtime.concurrency import Stop
from core.runtime.errors import InputError, ModelError, ReplyError, Stopped
from core.schema.records import CATEGORY_WORDS, Case, Statement
from core.tools.registry import (
    MOST_SHOWN,
    Answer,
    Bench,
    Example,
    Tool,
    describe_tools,
    read_input,
    signature,
    tool_named,
    toolbox,
    use,
)

BENCH = Bench(Stop())
NAMES = list(toolbox())
CASE = Case(
    "c", "p", "The legs took 2 hours + 3 hours = 6 hours. Thanks!", "How long?", language="en"
)


def tool(name: str) -> Tool[Any]:
    return tool_named(name)


def test_tools_are_listed_by_name() -> None:
    assert sorted(NAMES) == NAMES
    assert {"calculator", "units"} <= set(NAMES)
    assert all(name == toolbox()[name].name for name in NAMES)


def test_an_unknown_tool_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InputError, match=r"Expected one of the tools calculator, .*found “nope”"):
        tool_named("nope")


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
            told = use(tool(name), example.given, BENCH)
            assert (told.outcome, told.label, told.words) == ("off", "unclear", why)
        return
    for example in tool(name).examples:
        told = use(tool(name), example.given, BENCH)
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
    def work(given: Given, bench: Bench) -> Answer:
        raise error

    told = use(made(work), Given("3 + 5 = 9"), BENCH)
    assert (told.outcome, told.label, told.p, told.words) == ("failed", "unclear", None, str(error))
    assert json.loads(told.gave) == {}


def test_a_stop_and_a_fault_of_ours_are_no_answers() -> None:
    def stopped(given: Given, bench: Bench) -> Answer:
        raise Stopped("stopped")

    def broken(given: Given, bench: Bench) -> Answer:
        raise ZeroDivisionError

    with pytest.raises(Stopped):
        use(made(stopped), Given(""), BENCH)
    with pytest.raises(ZeroDivisionError):
        use(made(broken), Given(""), BENCH)


def test_a_tool_that_is_off_is_not_called() -> None:
    def work(given: Given, bench: Bench) -> Answer:
        raise AssertionError("called")

    off = replace(made(work), why_off=lambda bench: "There is no library.")
    told = use(off, Given(""), BENCH)
    assert (told.outcome, told.label, told.words) == ("off", "unclear", "There is no library.")


def test_long_input_and_output_are_cut_in_the_trace() -> None:
    def work(given: Given, bench: Bench) -> Answer:
        return Answer("supported", "fine", {"text": given.text, "count": len(given.text)})

    told = use(made(work), Given("é" * (2 * MOST_SHOWN)), BENCH)
    assert len(told.given) <= MOST_SHOWN
    assert json.loads(told.given)["text"] == "é" * 1000 + "…"
    assert json.loads(told.gave) == {"text": "é" * 1000 + "…", "count": 2 * MOST_SHOWN}


def test_output_that_is_long_all_over_is_left_out_whole() -> None:
    def work(given: Given, bench: Bench) -> Answer:
        return Answer("supported", "fine", {"list": ["x" * 100] * 1000})

    assert json.loads(use(made(work), Given(""), BENCH).gave) == {"cut": True}


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


def weigh(given: Weight, bench: Bench) -> Answer:
    return Answer("supported", f"{given.load} {given.unit}")


def example(load: float) -> Example[Weight]:
    return Example("How heavy is it?", f"{load} kg.", Weight(load), "supported", "Weigh it.")


SCALES = Tool("scales", "Weighs a load.\nSays how heavy it is.", Weight, weigh,
            (example(1.0), example(2.0)))  # fmt: skip


def test_the_signature_names_fields_types_and_defaults() -> None:
    assert signature(SCALES) == (
        "scales(load: float, unit: Literal['kg', 'lb'] = 'kg', notes: tuple[str, ...] = (), "
        "parts: list[{name: str}] = [])"
    )


def test_the_description_and_the_input_stand_below_it_indented() -> None:
    own = [
        signature(SCALES),
        "  Weighs a load.",
        "  Says how heavy it is.",
        "  What is weighed.",
        "  `load` is in kilograms.",
    ]
    assert describe_tools([SCALES]).splitlines() == own
    assert describe_tools([SCALES, SCALES]).splitlines() == [*own, "", *own]
    assert describe_tools([]) == ""
