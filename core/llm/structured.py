"""Asks a model for a reply of a certain form, once more when the first cannot be read.

Schema, then repair (code fences, prose around, single quotes, trailing commas), then one retry in
the same conversation that shows the model what was wrong, then `ReplyError` with the raw text.
Nothing in a reply is ever executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any, Generic, Protocol, TypeVar

import json_repair
import msgspec

from core.errors import ReplyError
from core.llm.call import Completion, Message

Kind = TypeVar("Kind")
LONGEST = 200_000
# What repair reads of deeper ones takes minutes, and what reads them later may break off.
DEEPEST = 100
# Possessive: a fence that never ends is gone over once.
FENCED = re.compile(r"```[a-zA-Z]*+\s*+(.*?)```", re.DOTALL)
MARK = re.compile(r"\\.|[\"{}\[\]]", re.DOTALL)
# What only some providers allow in a schema; our own decoder checks it anyway.
LEFT_OUT = frozenset({"title", "minimum", "maximum", "minLength", "maxLength", "maxItems"})


class Unusable(ValueError):
    """Raised while a reply is read; its words are for the model that is to mend it."""


class Ask(Protocol):
    """Puts a conversation to the model; `again` says that it is the retry."""

    def __call__(self, messages: tuple[Message, ...], *, again: bool) -> Completion:
        """The model's reply."""
        ...


class Shape(Generic[Kind]):
    """The form of a reply.

    Make shapes at import: msgspec's first look at a type is not safe in two threads at once.
    """

    def __init__(self, kind: type[Kind]) -> None:
        self._decoder = msgspec.json.Decoder(kind)
        whole = msgspec.json.schema(kind)
        rest = dict(whole.get("$defs", {}))
        root = rest.pop(kind.__name__)
        self.schema: Mapping[str, Any] = _closed({**root, "$defs": rest} if rest else root)

    def read(self, completion: Completion) -> Kind:
        """The reply as a value.

        Raises:
            Unusable: it is cut off, holds no JSON object, or one of another form.
        """
        text = completion.text.strip()[:LONGEST]
        if _depth(text) > DEEPEST and _nesting(text) > DEEPEST:
            raise Unusable(
                "Expected a JSON object of the form asked for, found one nested more than "
                f"{DEEPEST} deep."
            )
        try:
            return self._decoder.decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass
        if completion.finish == "length":
            # Repair would close what is open and pass half an answer off as the whole.
            raise Unusable("The reply was cut off at its token limit; say the same in fewer words.")
        try:
            return self._decoder.decode(_repaired(_object_in(text)))
        except msgspec.ValidationError as error:
            raise Unusable(f"The JSON object has not the form asked for: {error}.") from error
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Unusable("Expected one JSON object and nothing else; found none.") from error


def ask_structured(
    ask: Ask,
    messages: tuple[Message, ...],
    shape: Shape[Kind],
    mend: Callable[[str], Message],
    check: Callable[[Kind], None] = lambda _value: None,
) -> Kind:
    """The reply in that shape; `check` may raise `Unusable` for what a schema cannot say.

    Raises:
        ReplyError: two replies could not be read; the second one's raw text goes along.
    """

    def read(completion: Completion) -> Kind:
        value = shape.read(completion)
        check(value)
        return value

    return ask_readable(ask, messages, read, mend)


def ask_readable(
    ask: Ask,
    messages: tuple[Message, ...],
    read: Callable[[Completion], Kind],
    mend: Callable[[str], Message],
) -> Kind:
    """What `read` makes of the reply, or of the one after the model was shown what was wrong.

    Raises:
        ReplyError: `read` found both unusable.
    """
    first = ask(messages, again=False)
    try:
        return read(first)
    except Unusable as error:
        wrong = str(error)
    second = ask((*messages, Message("assistant", first.text), mend(wrong)), again=True)
    try:
        return read(second)
    except Unusable as error:
        message = (
            f"Its reply could not be used, nor could the one after it was asked again: {error}"
        )
        raise ReplyError(message, reply=second.text) from error


def _object_in(text: str) -> str:
    """The likeliest JSON object in a reply: inside a code fence, else between the outer braces."""
    fenced = FENCED.search(text)
    inner = fenced.group(1) if fenced and "{" in fenced.group(1) else text
    start, end = inner.find("{"), inner.rfind("}")
    if start < 0 or end < start:
        raise Unusable("no object")
    return inner[start : end + 1]


def _repaired(text: str) -> bytes:
    """Strict JSON of what json_repair reads; encoding it again refuses lone surrogates."""
    if _depth(text) > DEEPEST:
        raise Unusable("no object")
    found = json_repair.loads(text)
    if not isinstance(found, dict):
        raise Unusable("no object")
    return msgspec.json.encode(found)


def _depth(text: str) -> int:
    """How many brackets are open at once at most, those within strings counted too."""
    steps = (1 if char in "{[(" else -1 for char in text if char in "{[()]}")
    return max(accumulate(steps, lambda depth, step: max(0, depth + step)), default=0)


def _nesting(text: str) -> int:
    """As `_depth` for strict JSON: brackets within strings are words."""
    depth = deepest = 0
    is_string = False
    for found in MARK.finditer(text):
        mark = found.group()
        if mark == '"':
            is_string = not is_string
        elif not is_string and mark in "{[]}":
            depth += 1 if mark in "{[" else -1
            deepest = max(deepest, depth)
    return deepest


def _closed(schema: Any) -> Any:
    """The schema with objects that allow no other fields, without what providers refuse."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _closed(value) for key, value in schema.items() if key not in LEFT_OUT}
    if kept.get("type") == "object" and "properties" in kept:
        kept["additionalProperties"] = False
    return kept
