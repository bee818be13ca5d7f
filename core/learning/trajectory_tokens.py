"""Trajectories as tokens, with the loss on thoughts and actions only (HaluAgent 2.4.2, equation 1).

Instruction, question, response and observations are read and not learned: their targets are
`IGNORED`. Reads the JSONL that `export --format trajectories` writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from core.errors import InputError

IGNORED = -100  # the target that torch's cross entropy leaves out
Place = tuple[int, int]


class Said(msgspec.Struct, frozen=True):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str
    trained: bool = False


class Chat(msgspec.Struct, frozen=True):
    """One trajectory; other fields of its row are passed over."""

    messages: list[Said]
    id: str = ""


@dataclass(frozen=True)
class Tokens:
    """A chat as `ids`, and `targets` of the same length: the id itself where it is learned."""

    ids: tuple[int, ...]
    targets: tuple[int, ...]

    @property
    def learned(self) -> int:
        """How many tokens the loss is taken over; the first has nothing before it."""
        return sum(target != IGNORED for target in self.targets[1:])


def chats_of(data: bytes, name: str) -> list[Chat]:
    """The trajectories of a file.

    Raises:
        InputError: a line is no chat, or none has anything to learn from.
    """
    found = []
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            try:
                found.append(msgspec.json.decode(line, type=Chat))
            except msgspec.MsgspecError as error:
                raise InputError(
                    f"Expected a trajectory in line {number} of {name} (messages with role, "
                    f"content and trained), found: {error}."
                ) from error
    if not any(said.trained for chat in found for said in chat.messages):
        raise InputError(
            f"Expected trajectories with trained messages in {name}, found {len(found)} rows "
            "without any; write them with: python -m core export --format trajectories."
        )
    return found


def tokens_of(chat: Chat, tokenizer: Any) -> Tokens | None:
    """The chat as the model's own template lays it out, or as a plain one where it has none.

    None where a message holds a special token of the tokenizer: its text would end a turn.

    Raises:
        InputError: the tokenizer says no places of its tokens, or its template drops messages.
    """
    if not tokenizer.is_fast:
        raise InputError(
            "Expected a fast tokenizer (tokenizer.json in the model's folder), which says which "
            "characters a token stands for; found a slow one. Convert it first."
        )
    special = special_tokens(tokenizer)
    if any(token in said.content for said in chat.messages for token in special):
        return None
    text, learned = laid_out(chat, tokenizer, special)
    has_template = bool(tokenizer.chat_template)
    coded = tokenizer(text, add_special_tokens=not has_template, return_offsets_mapping=True)
    ids, places = coded["input_ids"], coded["offset_mapping"]
    targets = (
        token if _is_within(place, text, learned) else IGNORED
        for token, place in zip(ids, places, strict=True)
    )
    return Tokens(tuple(ids), tuple(targets))


def special_tokens(tokenizer: Any) -> tuple[str, ...]:
    """All texts that this tokenizer takes for marks, the longest first."""
    added = (str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)
    return tuple(sorted({*added, *tokenizer.all_special_tokens}, key=len, reverse=True))


def laid_out(chat: Chat, tokenizer: Any, special: Sequence[str]) -> tuple[str, list[Place]]:
    """(the whole text, `[start, end)` in it of what is learned).

    The template is filled with marks first, which say where each message comes to stand: its words
    alone may stand elsewhere too. What ends a learned message is learned with it, or the agent
    would never stop.

    Raises:
        InputError: the template drops a message, or takes no such chat.
    """
    marks = [f"⟪{number}:7d1f0c⟫" for number in range(len(chat.messages))]
    left = _template_text(chat, marks, tokenizer)
    text, learned = "", []
    for said, mark in zip(chat.messages, marks, strict=True):
        before, found, left = left.partition(mark)
        if not found:
            raise InputError(
                "Expected the model's chat template to keep every message in its order, found "
                f"none for one by {said.role} of trajectory {chat.id}; give it another template."
            )
        content = said.content.strip()
        start = len(text) + len(before)
        text += before + content
        if said.trained and content:
            end = next((token for token in special if left.startswith(token)), "")
            learned.append((start, len(text) + len(end)))
    return text + left, learned


def _template_text(chat: Chat, contents: Sequence[str], tokenizer: Any) -> str:
    """The chat with these contents instead of its own."""
    pairs = [(said.role, own) for said, own in zip(chat.messages, contents, strict=True)]
    if not tokenizer.chat_template:
        return "".join(_plain(role, own, tokenizer.eos_token or "") for role, own in pairs)
    from jinja2.exceptions import TemplateError

    messages = [{"role": role, "content": own} for role, own in pairs]
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False))
    except TemplateError as error:
        raise InputError(
            "Expected a chat template that takes a system message and turns of user and "
            f"assistant, found one that says: {error}."
        ) from error


def _plain(role: str, content: str, end: str) -> str:
    """A message without a template: its role, its text, and the end mark after the agent's own."""
    return f"{role}:\n{content}{end if role == 'assistant' else ''}\n\n"


def _is_within(place: Place, text: str, learned: Sequence[Place]) -> bool:
    """Whether a token begins within what is learned; blanks before its first letter are no part."""
    first, last = place
    if first == last:
        return False
    piece = text[first:last]
    if piece.strip():
        first += len(piece) - len(piece.lstrip())
    return any(start <= first < end for start, end in learned)


def batches(rows: Sequence[Tokens], size: int) -> Iterator[Sequence[Tokens]]:
    """The rows in their order, `size` at a time."""
    return (rows[start : start + size] for start in range(0, len(rows), size))
