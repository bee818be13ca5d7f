"""Lets a tool ask a language model: one question by a prompt's name, one reply in its shape.

The calls go over the run's desk like any other: reserved under the caps, counted, found again on
Resume. Source: HaluAgent 2.2 (the semantic checker asks a model).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from core.agents.ask import Asking, Work
from core.concurrency import Stop
from core.models.structured import Shape, ask_structured
from core.seats import Seat

Given = TypeVar("Given", bound=msgspec.Struct)
_shapes: dict[type, Shape[Any]] = {}
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class SeatAsker:
    """The `Asker` of tools over one seat; used from several threads at once.

    `language` (a BCP 47 tag or `und`) picks the prompt's language; `role` names who asks in the
    ledger and in messages.
    """

    seat: Seat
    work: Work
    language: str
    stop: Stop
    role: str = "tool"

    def __call__(self, prompt: str, fields: Mapping[str, str], shape: type[Given]) -> Given:
        """The reply to the prompt of that name; every field is fenced, an empty one too.

        Raises:
            ModelError: the service failed, or the question does not fit the model's window.
            ReplyError: two replies could not be read.
            ConfigError: there is no such prompt, or its fields are others.
        """
        form = _shape_of(shape)
        book = self.work.book
        chosen, mend = (book.prompt(name, self.language) for name in (prompt, "mend"))
        slot = _slot(prompt, fields)
        asking = Asking(self.seat, self.work, self.role, slot, chosen, mend, self.stop, form.schema)
        fenced = {name: asking.fenced(_kind(name), text) for name, text in fields.items()}
        reply: Given = ask_structured(asking.say, asking.whole(fenced), form, asking.mend)
        return reply


def _shape_of(kind: type[Given]) -> Shape[Given]:
    """The form of a reply, made once: msgspec's first look at a type is not safe in two threads."""
    with _one_at_a_time:
        if kind not in _shapes:
            _shapes[kind] = Shape(kind)
        return _shapes[kind]


def _slot(prompt: str, fields: Mapping[str, str]) -> str:
    """The same for the same question, in whatever order a resumed run comes to it."""
    body = msgspec.json.encode(sorted(fields.items()))
    return f"{prompt} {hashlib.sha256(body).hexdigest()[:12]}"


def _kind(name: str) -> str:
    """A field's name as a fence says it."""
    return name.replace("_", " ")
