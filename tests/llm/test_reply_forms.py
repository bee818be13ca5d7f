"""Replies as fields, put together as the prose that was asked for, also while they come."""

from __future__ import annotations

import json

import pytest

from core.agents.llm_judge import parse_contested
from core.agents.reply_parser import infer_stance, parse_reply, parse_stated_verdict
from core.llm.prompting import NAMES
from core.llm.reply_forms import REPLY_FORMS, ProseStream
from tests.fakes import make_case

WHY = "The page says “412 m”. \\ 😀 ok"
SAYS = {
    "reply": "DENY", "claim": "WRONG", "argument": WHY, "confidence": 80,
    "doubt": "another bridge", "reasons": WHY, "verdict": "0",
    "wrong_words": ["512 m"], "places": [{"wrong": "512 m", "right": "412 m"}],
}  # fmt: skip


def reply(name: str) -> str:
    """A reply to the prompt of that name, as a server writes it."""
    return json.dumps({part.name: SAYS[part.name] for part in REPLY_FORMS[name].parts})


@pytest.mark.parametrize("name", REPLY_FORMS)
def test_every_form_is_a_prompts_and_reads_as_its_prose(name: str) -> None:
    assert name in NAMES
    text = REPLY_FORMS[name].prose(reply(name))
    if name.startswith("judge"):
        assert text == f"{WHY}\nVerdict: 0"
        return
    if "reply" in json.loads(reply(name)):
        assert infer_stance(*parse_reply(text), "supported") == "hallucinated"
    else:
        assert parse_stated_verdict(text).stance == "hallucinated"
    if "confidence" in reply(name):
        assert "\nConfidence: 80\nDoubt: another bridge" in text


@pytest.mark.parametrize(("name", "instead"), [("detect", ""), ("critique", "412 m")])
def test_contested_words_are_lines_of_their_own(name: str, instead: str) -> None:
    text = REPLY_FORMS[name].prose(reply(name))
    case = make_case("The bridge is 512 m long.")
    (point,) = parse_contested(text, case, (), None).points
    assert (point.text, point.evidence) == ("512 m", instead)


@pytest.mark.parametrize("name", REPLY_FORMS)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_prose_streams_as_the_fields_come(name: str, size: int) -> None:
    said: list[str] = []
    stream, whole = ProseStream(REPLY_FORMS[name], said.append), reply(name)
    for start in range(0, len(whole), size):
        stream.add(whole[start : start + size])
    assert REPLY_FORMS[name].prose(whole).startswith("".join(said))
    assert WHY in "".join(said)


DRAFT = '{"reply": "AGREE", "claim": "CORRECT", "argument": "A draft."}'


@pytest.mark.parametrize(
    "wrapping",
    [
        "```json\n{}\n```",
        "<think>\nIs it {x}?\n</think>\n{}",
        f"<think>\nSo: {DRAFT}\n</think>\n{{}}",
    ],
)
def test_prose_streams_from_within_a_wrapping(wrapping: str) -> None:
    shown: list[str] = []
    stream = ProseStream(REPLY_FORMS["debate"], shown.append)
    whole = wrapping.replace("{}", reply("debate"))
    for start in range(0, len(whole), 3):
        stream.add(whole[start : start + 3])
    assert f"DENY, WRONG. {WHY}".startswith("".join(shown))
    assert "412 m" in "".join(shown)


def test_a_long_reply_is_not_parsed_at_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, plain = reply("debate").replace(WHY[:8], "word " * 5000), json.loads
    parsed: list[int] = []

    def load(text: str) -> object:
        parsed.append(len(text))
        return plain(text)

    monkeypatch.setattr(json, "loads", load)
    stream = ProseStream(REPLY_FORMS["debate"], lambda _: None)
    for start in range(0, len(whole), 4):
        stream.add(whole[start : start + 4])
    assert sum(parsed) < 2_000 * len(whole), "a piece has four characters of 25,000"


NESTED = '{"reply": ' + "[" * 50_000


@pytest.mark.parametrize(
    "text", ["DENY, WRONG. The page says so.", "{", '{"reply": "DENY"}', "[]", NESTED]
)
def test_a_reply_that_is_no_such_object_is_left_as_it_is(text: str) -> None:
    assert REPLY_FORMS["debate"].prose(text) == text
