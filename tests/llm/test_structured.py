"""Replies in a form: read strictly, repaired where only the wrapping is wrong, asked for twice."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.call import (
    Completion,
    Message,
    ReplySchema,
    UnusableReply,
    ask_structured,
    bound_schema,
    strip_bounds,
)
from core.runtime.errors import ModelRefused, ReplyError


class Mark(msgspec.Struct, frozen=True):
    """Words and how likely they are wrong."""

    quote: str
    p: Annotated[float, msgspec.Meta(ge=0, le=1)]


class Marks(msgspec.Struct, frozen=True):
    """A reply."""

    spans: list[Mark]


SCHEMA = ReplySchema(Marks)
GOOD = '{"spans": [{"quote": "in 1926", "p": 0.9}]}'
READ = Marks([Mark("in 1926", 0.9)])
FIRST = (Message("system", "mark"), Message("user", "the words"))


def said(text: str, finish: str = "stop") -> Completion:
    return Completion(text, finish, 1, 1, True, None, 0.1)  # type: ignore[arg-type]


class Asker:
    """Gives the replies in order and keeps the conversations."""

    def __init__(self, *replies: Completion | Exception) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[tuple[Message, ...], bool]] = []

    def __call__(self, messages: tuple[Message, ...], *, again: bool) -> Completion:
        self.asked.append((messages, again))
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


def mended(error: str) -> Message:
    return Message("user", f"MEND {error}")


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n  {GOOD}  ",
        f"```json\n{GOOD}\n```",
        f"Here is what I found:\n```\n{GOOD}\n```\nI hope that helps {{really}}.",
        f"Sure! {GOOD} Let me know if you need more.",
        "{'spans': [{'quote': 'in 1926', 'p': 0.9}]}",
        '{"spans": [{"quote": "in 1926", "p": 0.9,},],}',
        '{"spans": [{"quote": "in 1926", "p": 0.9}]',
        '{spans: [{quote: "in 1926", p: 0.9}]}',
        '{"note": "more than was asked", "spans": [{"quote": "in 1926", "p": 0.9}]}',
    ],
)
def test_wrapping_is_taken_off(text: str) -> None:
    asker = Asker(said(text))
    assert ask_structured(asker, FIRST, SCHEMA, mended) == READ
    assert len(asker.asked) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"spans": [{"quote": "in 1926"}]}', "p"),
        ('{"spans": [{"quote": "in 1926", "p": "high"}]}', "$.spans[0].p"),
        ('{"spans": [{"quote": "in 1926", "p": 9}]}', "$.spans[0].p"),
        ('{"spans": {"quote": "in 1926", "p": 0.9}}', "$.spans"),
        ("[1, 2]", "JSON object"),
        ("I cannot say.", "JSON object"),
        ("{" * 20_000, "JSON object"),
        ("", "JSON object"),
        (f"{GOOD} or {GOOD}", "several"),
    ],
)
def test_a_wrong_form_is_shown_to_the_model_once(text: str, shown: str) -> None:
    asker = Asker(said(text), said(GOOD))
    assert ask_structured(asker, FIRST, SCHEMA, mended) == READ
    (_, first_again), (conversation, again) = asker.asked
    assert (first_again, again) == (False, True)
    assert conversation[:3] == (*FIRST, Message("assistant", text))
    assert conversation[3].text.startswith("MEND ")
    assert shown in conversation[3].text


def test_wrong_twice_is_an_error_with_the_raw_text() -> None:
    asker = Asker(said("no"), said('{"spans": 7}'))
    with pytest.raises(ReplyError, match=r"asked again.*\$\.spans") as caught:
        ask_structured(asker, FIRST, SCHEMA, mended)
    assert caught.value.reply == '{"spans": 7}'


def test_half_an_answer_is_not_passed_off_as_the_whole() -> None:
    """json_repair would close the brackets; the places after the cut would be lost unseen."""
    half = said('{"spans": [{"quote": "in 1926", "p": 0.9}, {"quote": "by', "length")
    asker = Asker(half, said(GOOD))
    assert ask_structured(asker, FIRST, SCHEMA, mended) == READ
    assert "token limit" in asker.asked[1][0][-1].text


def test_what_a_schema_cannot_say_is_checked_too() -> None:
    def check(marks: Marks) -> None:
        if marks.spans:
            raise UnusableReply("that stands nowhere")

    asker = Asker(said(GOOD), said('{"spans": []}'))
    assert ask_structured(asker, FIRST, SCHEMA, mended, check) == Marks([])
    assert asker.asked[1][0][-1].text == "MEND that stands nowhere"


def test_a_refusal_is_not_asked_again() -> None:
    asker = Asker(ModelRefused("no", reply="no"))
    with pytest.raises(ModelRefused):
        ask_structured(asker, FIRST, SCHEMA, mended)
    assert len(asker.asked) == 1


@pytest.mark.parametrize(
    "bomb",
    ["{```" + "\n" * 90_000 + "x", "{```" + "a" * 90_000, "{" * 90_000, "{" + "word " * 30_000],
)
@pytest.mark.parametrize("end", ["", "}"])
def test_no_reply_takes_long_to_read(bomb: str, end: str) -> None:
    began = time.monotonic()
    with pytest.raises(UnusableReply):
        SCHEMA.read(said(bomb + end))
    assert time.monotonic() - began < 5.0


def test_a_lone_surrogate_never_gets_through() -> None:
    asker = Asker(said("{'spans': [{'quote': '\\ud800', 'p': 0.9}]}"), said(GOOD))
    assert ask_structured(asker, FIRST, SCHEMA, mended) == READ


def test_the_schema_is_one_object_that_allows_nothing_else() -> None:
    schema = SCHEMA.json_schema
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    mark = schema["$defs"]["Mark"]
    assert mark["additionalProperties"] is False
    assert sorted(mark["required"]) == ["p", "quote"]
    json.dumps(schema)


def test_a_provider_is_sent_no_bounds_and_a_grammar_only_what_it_can_keep() -> None:
    def p_of(schema: Any) -> Any:
        return schema["$defs"]["Mark"]["properties"]["p"]

    assert p_of(strip_bounds(SCHEMA.json_schema)) == {"type": "number"}
    choices = p_of(bound_schema(SCHEMA.json_schema))["enum"]
    assert (choices[0], choices[-1], len(choices)) == (0, 1, 101)


@given(st.text())
def test_nothing_but_the_form_or_unusable_comes_out(text: str) -> None:
    try:
        found = SCHEMA.read(said(text))
    except UnusableReply:
        return
    assert isinstance(found, Marks)


@given(st.lists(st.builds(Mark, st.text(), st.floats(0, 1)), max_size=4))
def test_what_is_written_is_read_back(marks: list[Mark]) -> None:
    text = msgspec.json.encode(Marks(marks)).decode()
    assert SCHEMA.read(said(f"```json\n{text}\n```")) == Marks(marks)
