"""Replies in prose, asked for as fields where a server decodes by a grammar.

Our prompts want words in a fixed place: a verdict in the last line, two words at the beginning.
Small models miss it. A grammar does not, so such a server is sent the fields of the reply; what it
writes is put together as the prose that was asked for, also while it streams.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.llm.call import THOUGHT, UNFINISHED_THOUGHT, UnusableReply, find_object

# An escape of which only half has come; of an emoji the first of two.
GROWTH = 1.01
HALF_ESCAPE = re.compile(
    r"(?<!\\)((?:\\\\)*)"
    r"\\(?:u(?:[0-9a-f]{0,3}|d[89ab][0-9a-f]{2}(?:\\(?:u[0-9a-f]{0,3})?)?)?)?\Z",
    re.IGNORECASE,
)
TEXT: Mapping[str, Any] = {"type": "string", "maxLength": 700}
SHORT: Mapping[str, Any] = {"type": "string", "maxLength": 160}
CLAIM: Mapping[str, Any] = {"enum": ["CORRECT", "WRONG", "OPEN"]}
REPLY: Mapping[str, Any] = {"enum": ["AGREE", "DENY"]}
SURE: Mapping[str, Any] = {"type": "integer", "minimum": 0, "maximum": 100}
PLACES: Mapping[str, Any] = {"type": "array", "maxItems": 8, "items": dict(SHORT)}
MENDED: Mapping[str, Any] = {
    "type": "array",
    "maxItems": 8,
    "items": {
        "type": "object",
        "properties": {"wrong": dict(SHORT), "right": dict(SHORT)},
        "required": ["wrong", "right"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True)
class ReplyPart:
    """A field of a reply: its name, its schema, and what stands before it in the prose."""

    name: str
    schema: Mapping[str, Any]
    before: str = ""

    def format_value(self, value: Any) -> str:
        """Return the field's value as prose; a list has a line for each item."""
        if isinstance(value, list):
            pairs = (tuple(one.values()) if isinstance(one, dict) else (one,) for one in value)
            return "".join(self.before + " -> ".join(f"“{x}”" for x in pair) for pair in pairs)
        return f"{self.before}{value}"


@dataclass(frozen=True)
class ReplyForm:
    """The fields of a reply, in the order in which the prose has them."""

    parts: Sequence[ReplyPart]

    @property
    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the fields."""
        return {
            "type": "object",
            "properties": {part.name: dict(part.schema) for part in self.parts},
            "required": [part.name for part in self.parts],
            "additionalProperties": False,
        }

    @property
    def description(self) -> str:
        """Return a phrase for the object that is asked for."""
        names = ", ".join(f'"{part.name}"' for part in self.parts)
        return f"one JSON object with the fields {names}, in this order"

    @property
    def asked(self) -> str:
        """Return what the last message adds to the prompt."""
        return f"\n\nWrite all this as {self.description}."

    def prose(self, text: str) -> str:
        """Return the prose of a whole reply; a reply that is no such object stays as it is.

        Prose that only quotes such an object, as of a document, names a choice of its own.
        """
        try:
            found = find_object(text, [part.name for part in self.parts])
        except (UnusableReply, ValueError, RecursionError):
            return text
        around = text[: text.find("{")] + text[text.rfind("}") + 1 :]
        choices = {str(choice) for part in self.parts for choice in part.schema.get("enum", ())}
        if any(part.name not in found for part in self.parts) or choices & set(
            re.findall(r"\w+", around)
        ):
            return text
        return "".join(part.format_value(found[part.name]) for part in self.parts)

    def beginning(self, text: str) -> str:
        """Return the prose of a reply still being written; a choice shows whole or not at all."""
        found = _object(HALF_ESCAPE.sub(r"\1", text), '"}') or _object(text) or {}
        names = list(found)
        prose = ""
        for part in self.parts:
            is_last = part.name == names[-1] if names else True
            if part.name not in found or (is_last and part.schema.get("type") != "string"):
                break
            prose += part.format_value(found[part.name])
        return prose


@dataclass
class ProseStream:
    """Passes on a reply's prose while its fields arrive; nothing is taken back.

    The reply is parsed again once it has grown by a hundredth: its last words may be missing here.
    """

    form: ReplyForm
    speak: Callable[[str], None]
    received: str = ""
    passed_on: str = field(default="", init=False)
    parsed_chars: int = field(default=0, init=False)  # characters, when it was last parsed

    def add(self, piece: str) -> None:
        """Take the next piece of the reply."""
        self.received += piece
        if len(self.received) < GROWTH * self.parsed_chars:
            return
        self.parsed_chars = len(self.received)
        answer = THOUGHT.sub("", self.received, count=1).lstrip()
        if UNFINISHED_THOUGHT.match(answer):
            return
        is_object = answer[:1] in ("", "{", "`", "<")  # or a fence or a thought before it
        prose = self.form.beginning(answer[answer.find("{") :]) if is_object else answer
        if len(prose) > len(self.passed_on) and prose.startswith(self.passed_on):
            self.speak(prose[len(self.passed_on) :])
            self.passed_on = prose


def _object(text: str, ending: str = "") -> dict[str, Any] | None:
    try:
        found = json.loads(text + ending)
    except (ValueError, RecursionError):  # no JSON, or nested without end
        return None
    return found if isinstance(found, dict) else None


def _judge(*choices: str) -> ReplyForm:
    verdict = ReplyPart("verdict", {"enum": list(choices)}, "\nVerdict: ")
    return ReplyForm((ReplyPart("reasons", TEXT), verdict))


_SURE = (ReplyPart("confidence", SURE, "\nConfidence: "), ReplyPart("doubt", SHORT, "\nDoubt: "))
_WORDS = ReplyPart("wrong_words", PLACES, "\nWords: ")
_ANSWER = (ReplyPart("claim", CLAIM), ReplyPart("argument", TEXT, ". "))
_TURN = (ReplyPart("reply", REPLY), ReplyPart("claim", CLAIM, ", "), _ANSWER[1])
# By prompt. (CEDA A.3, ColMAD 2.3, SC-MAKS 3.3, MAD, MAMM-REFINE)
REPLY_FORMS: Mapping[str, ReplyForm] = {
    **dict.fromkeys(("debate", "advise", "attack"), ReplyForm(_TURN)),
    "tit_for_tat": ReplyForm((*_TURN, *_SURE)),
    **dict.fromkeys(
        ("answer", "collaborate", "compete", "reconsider"), ReplyForm((*_ANSWER, *_SURE))
    ),
    "detect": ReplyForm((*_ANSWER, _WORDS, *_SURE)),
    "critique": ReplyForm((*_TURN, ReplyPart("places", MENDED, "\nWords: "), *_SURE)),
    **dict.fromkeys(
        "judge judge_plain judge_thought judge_examples judge_collaborate judge_compete".split(),
        _judge("1", "0"),
    ),
    "judge_moderate": _judge("1", "0", "go on"),
}
