"""A record is read field by field; what is not as expected is said with place, field and value."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.exchange.rows import FileRecord
from core.runtime.errors import InputError

RECORD = FileRecord(
    {
        "text": " one ", "blank": " ", "number": "2.5", "whole": 3, "flag": True, "null": None,
        "list": ["a", 1], "texts": ["a", "b"], "objects": [{"text": "x"}], "inside": {"text": "y"},
        "word": " Refutes",
    },
    "x.jsonl",
    7,
)  # fmt: skip


def test_fields_come_as_what_they_are() -> None:
    assert RECORD.text("text") == RECORD.plain("text") == " one "
    assert RECORD.plain("blank") == " "
    assert RECORD.number("number") == 2.5
    assert RECORD.number("whole") == 3.0
    assert RECORD.items("list") == ["a", 1]
    assert RECORD.texts("texts") == ("a", "b")
    assert [one.text("text") for one in RECORD.records("objects")] == ["x"]
    assert RECORD.inner("inside").text("text") == "y"
    assert RECORD.chosen({"refutes": 1}, "word") == 1


def test_the_first_name_that_is_there_is_read() -> None:
    assert RECORD.text("missing", "text") == " one "
    with pytest.raises(InputError, match="expected a text called null or text, found: “null”"):
        RECORD.text("null", "text")


def test_what_may_be_missing_is_empty_then() -> None:
    assert RECORD.spare("missing", "null", "blank", "text") == "one"
    assert RECORD.spare("missing", "null", "list") == ""
    assert RECORD.spare() == ""


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: RECORD.text("blank"), "expected some text in blank"),
        (lambda: RECORD.text("whole"), "expected a text called whole, found: “3”"),
        (lambda: RECORD.text("missing"), r"expected a text called missing among the fields \(text"),
        (lambda: RECORD.number("text"), "expected a number called text, found: “ one ”"),
        (lambda: RECORD.number("flag"), "expected a number called flag"),
        (lambda: RECORD.items("text"), "expected a list called text"),
        (lambda: RECORD.texts("list"), "expected a list of texts called list"),
        (lambda: RECORD.records("texts"), "expected a list of objects called texts"),
        (lambda: RECORD.inner("texts"), "expected an object called texts"),
        (lambda: RECORD.chosen({"yes": 1, "no": 0}, "word"), "word to be one of yes, no, found"),
    ],
)
def test_what_is_not_as_expected_is_named(read: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=f"x.jsonl, line 7: .*{message}"):
        read()


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(InputError) as raised:
        FileRecord({"a": "x" * 5000}, "f", 1).number("a")
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("name", ["half", "halves"])
def test_half_a_character_is_no_text(name: str) -> None:
    record = FileRecord({"half": "so \ud83d", "halves": ["a", "\udc00"]}, "x.jsonl", 3)
    with pytest.raises(InputError, match=r"x\.jsonl, line 3: expected whole characters"):
        record.texts(name) if name == "halves" else record.text(name)
    if name == "half":
        with pytest.raises(InputError, match="whole characters"):
            record.spare(name)
