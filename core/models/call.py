"""A question to a language model and its answer, as plain values.

Agents make calls and hand them to a `Desk`; the desk keeps the ledger and the caps and hands them
to a `Model`. Neither knows which provider answers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from core.concurrency import Stop
from core.records import ModelCall
from core.seats import Seat

Speak = Callable[[str], None]


@dataclass(frozen=True)
class Picture:
    """An image that goes with a message: its media type and the encoded bytes."""

    media_type: str
    data: bytes


@dataclass(frozen=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class Call:
    """What is sent: who is asked (model, temperature, token limit), what, and in which form.

    `schema` is the JSON schema of the reply, None for plain text. `fence` is the random delimiter
    inside the messages; it differs from run to run and is left out of the digest.
    """

    seat: Seat
    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    fence: str = ""

    @property
    def digest(self) -> str:
        """Names everything that decides about the answer: two equal calls have one digest."""
        seat = self.seat
        body = [seat.model, seat.api_base, seat.temperature, seat.max_tokens, self.schema]
        for message in self.messages:
            text = message.text.replace(self.fence, "FENCE") if self.fence else message.text
            pictures = [hashlib.sha256(p.data).hexdigest() for p in message.pictures]
            body.append([message.role, text, pictures])
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Completion:
    """A whole answer. `finish` is `length` when the token limit cut it.

    `is_counted` says that the provider counted the tokens; else they are our estimate. `cost` is in
    US dollars, None where the price is not known. `seconds` is the call's own time.
    """

    text: str
    finish: Literal["stop", "length"]
    tokens_in: int
    tokens_out: int
    is_counted: bool
    cost: float | None
    seconds: float


@dataclass(frozen=True)
class Asked:
    """A call with what the ledger and the trace say about it.

    `role` is the roster's name for the role, `slot` tells the calls of one run apart (“turn 3”,
    “image 5f2c prompt”); n samples of one prompt are n slots. `prompt` and `prompt_hash` name the
    prompt file and its text; `cut` says in words what did not fit the model's window.
    """

    role: str
    slot: str
    call: Call
    prompt: str = ""
    prompt_hash: str = ""
    cut: str = ""


class Model(Protocol):
    """Anything that answers calls."""

    def complete(self, call: Call, speak: Speak, stop: Stop) -> Completion:
        """The whole answer; `speak` is called with its pieces as they come.

        Raises:
            ModelError: the service failed, after retries (ModelTimeout when it was silent).
            ModelRefused: the model or a filter declined.
            ReplyError: the answer is empty, or longer than any.
            ConfigError: the key is wrong or missing, or the model is unknown.
            Stopped: `stop` was set; the connection is closed by then.
        """
        ...


class Desk(Protocol):
    """Where the agents of one run have their calls made."""

    def ask(self, asked: Asked, stop: Stop, speak: Speak = ...) -> Completion:
        """The answer from the ledger, or from the model within the caps.

        Raises:
            BudgetReached: a cap leaves no room; nothing was sent.
            ReviewError: whatever `Model.complete` raises.
        """
        ...

    def drain(self) -> tuple[ModelCall, ...]:
        """The calls made since this was last asked, each handed out once."""
        ...


def in_silence(piece: str) -> None:
    """For calls whose words nobody watches."""
