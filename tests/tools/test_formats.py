"""Formats that a question asks of its answer, and whether the answer has them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tools.asked_format import asked_formats
from core.tools.formats import NAMES, Format, FormatName, check_format


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("List the planets as JSON.", Format("json")),
        ("Give me the opening times in valid JSON format", Format("json")),
        ("Respond only with a JSON object.", Format("json")),
        ("Compare tea and coffee in a table.", Format("table")),
        ("Create a markdown table of the three rivers.", Format("table")),
        ("Return the prices as CSV.", Format("csv")),
        ("Summarise the plan in three bullet points.", Format("bullets", 3)),
        ("List the risks using exactly 5 bullet points.", Format("bullets", 5)),
        ("Answer with bullet points.", Format("bullets")),
        ("Give the steps as a numbered list.", Format("numbers")),
        ("Describe the sea in all caps.", Format("upper")),
        ("Your entire response should be in lowercase.", Format("lower")),
        ("Write about tides. Begin with a title.", Format("title")),
        ("Describe the sea. Do not use any commas.", Format("no_commas")),
        ("Describe the sea without commas.", Format("no_commas")),
        ("请用JSON格式列出行星。", Format("json")),
        ("用表格比较茶和咖啡。", Format("table")),
        ("介绍大海，不要使用逗号。", Format("no_commas")),
        ("用三个要点列表总结。", Format("bullets", 3)),
        ("用英语描述大海，全部大写。", Format("upper")),
    ],
)
def test_a_format_that_is_asked_for(question: str, expected: Format) -> None:
    assert asked_formats(question) == (expected,)


@pytest.mark.parametrize(
    "question",
    [
        "Write a function that returns the result as JSON.",
        "How do I export a table in CSV format?",
        "Why do articles begin with a title?",
        "What is the difference between JSON and CSV?",
        "Who invented the table of contents?",
        "Describe the dining table in the hall.",
        "Which letters are written in all caps?",
        "Describe the sea, not in a table.",
        "How many bullet points are in the list?",
        "Put the vase on the table.",
        "如何用JSON格式保存数据？",
        "为什么不用逗号？",
        "Write it in all caps and in all lowercase.",
        "",
    ],
)
def test_a_format_that_is_only_told_of(question: str) -> None:
    assert asked_formats(question) == ()


TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"


@pytest.mark.parametrize(
    ("name", "items", "right", "wrong"),
    [
        ("json", None, '{"a": [1, 2]}', "a: 1"),
        ("json", None, 'Here it is:\n```json\n{"a": 1}\n```', '{"a": 1,}'),
        ("json", None, "[]", "12"),
        ("table", None, TABLE, "a is 1 and b is 2."),
        ("csv", None, "name,size\noak,12\nelm,9", "name,size\noak"),
        ("bullets", None, "- one\n- two", "One and two."),
        ("bullets", 3, "- one\n- two\n  - so\n- three", "- one\n- two"),
        ("bullets", 2, "* one\n* two", "1. one\n2. two"),
        ("numbers", 2, "1. one\n2. two", "1. one\n2. two\n3. three"),
        ("upper", None, "THE SEA IS 4 KM DEEP.", "THE SEA IS 4 km DEEP."),
        ("lower", None, "the sea.", "The sea."),
        ("title", None, "Of tides\n\nThe moon pulls the sea.", "The moon pulls the sea."),
        ("title", None, "# Tides.\nThe moon.", "The moon pulls.\n\nThe sea rises."),
        ("no_commas", None, "It rises and falls.", "It rises, and falls."),
        ("no_commas", None, "海水上涨。", "海水上涨，又落下。"),
    ],
)
def test_a_format_is_kept_or_not(
    name: FormatName, items: int | None, right: str, wrong: str
) -> None:
    good, bad = (check_format(text, Format(name, items)) for text in (right, wrong))
    assert (good.holds, bad.holds) == (True, False)
    assert good.p < 0.5 < bad.p


def test_the_place_that_breaks_it_is_told() -> None:
    comma = check_format("It rises, and falls.", Format("no_commas"))
    assert (comma.start, comma.end) == (8, 9)
    assert comma.words == "No comma was asked for but the answer has one."
    assert check_format("ABc", Format("upper")).start == 2
    three = check_format("- a", Format("bullets", 3)).words
    assert three == "A bulleted list of 3 entries was asked for but the answer has 1."


@given(st.text(max_size=200), st.sampled_from(sorted(NAMES)))
def test_any_text_can_be_looked_at(text: str, name: FormatName) -> None:
    found = check_format(text, Format(name, 2))
    assert found.holds is not None
    assert all(asked.name in NAMES for asked in asked_formats(f"In JSON, {text} as a table"))
