"""Trains a causal language model on trajectories, with the loss on thoughts and actions only.

`python -m core.learning.trajectory_training --model FOLDER --trajectories FILE --out FOLDER` reads
the JSONL that `export --format trajectories` writes. The loss is ordinary cross entropy; the paper
prints it with the logarithm outside of the sum (HaluAgent 2.4.2, equation 1).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from core.runtime.config import MEGABYTE
from core.runtime.errors import InputError, ReviewError

IGNORED_TARGET = -100  # the target that torch's cross entropy leaves out
TokenRange = tuple[int, int]
CARD_NAME = "training.json"
MAX_FILE_MEGABYTES = 2_000
MAX_GRADIENT_NORM = 1.0  # the largest gradient norm of a step
MessagePrinter = Callable[[str], None]


class TrainedMessage(msgspec.Struct, frozen=True):
    """A message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str
    trained: bool = False


class TrajectoryChat(msgspec.Struct, frozen=True):
    """A trajectory; other fields of its row are ignored."""

    messages: list[TrainedMessage]
    id: str = ""


@dataclass(frozen=True)
class ChatTokens:
    """A chat as token `ids`, and `targets` of the same length: the id where it is learned."""

    ids: tuple[int, ...]
    targets: tuple[int, ...]

    @property
    def learned(self) -> int:
        """The number of tokens the loss is taken over; the first has no token before it."""
        return sum(target != IGNORED_TARGET for target in self.targets[1:])


def parse_chats(data: bytes, name: str) -> list[TrajectoryChat]:
    """Return the trajectories of a file. Raises InputError: a line is none, or none is trained."""
    chats = []
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            try:
                chats.append(msgspec.json.decode(line, type=TrajectoryChat))
            except msgspec.MsgspecError as error:
                raise InputError(
                    f"Expected a trajectory in line {number} of {name} (messages with role, "
                    f"content and trained), found: {error}."
                ) from error
    if not any(message.trained for chat in chats for message in chat.messages):
        raise InputError(
            f"Expected trajectories with trained messages in {name}, found {len(chats)} rows "
            "without any; write them with: python -m core export --format trajectories."
        )
    return chats


def tokenize_chat(chat: TrajectoryChat, tokenizer: Any) -> ChatTokens | None:
    """Return the chat in the model's template or a plain one; None if it has a special token."""
    if not tokenizer.is_fast:
        raise InputError(
            "Expected a fast tokenizer (tokenizer.json in the model's folder), which says which "
            "characters a token stands for; found a slow one. Convert it first."
        )
    special = list_special_tokens(tokenizer)
    if any(token in message.content for message in chat.messages for token in special):
        return None
    text, learned = render_chat(chat, tokenizer, special)
    has_template = bool(tokenizer.chat_template)
    encoding = tokenizer(text, add_special_tokens=not has_template, return_offsets_mapping=True)
    targets = (
        token if _is_within(place, text, learned) else IGNORED_TARGET
        for token, place in zip(encoding["input_ids"], encoding["offset_mapping"], strict=True)
    )
    return ChatTokens(tuple(encoding["input_ids"]), tuple(targets))


def list_special_tokens(tokenizer: Any) -> tuple[str, ...]:
    """Return all special tokens of the tokenizer as texts, the longest first."""
    added = (str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)
    return tuple(sorted({*added, *tokenizer.all_special_tokens}, key=len, reverse=True))


def render_chat(
    chat: TrajectoryChat, tokenizer: Any, special: Sequence[str]
) -> tuple[str, list[TokenRange]]:
    """Return the whole text, and the `[start, end)` offsets in it that are learned.

    The template is rendered with markers first, which show where each message ends up: its words
    alone may occur elsewhere too. The token that ends a learned message is learned with it, or the
    agent would never stop. Raises InputError: the template drops a message or changes their order.
    """
    markers = [f"⟪{number}:7d1f0c⟫" for number in range(len(chat.messages))]
    rest = _render_template(chat, markers, tokenizer)
    text, learned = "", []
    for message, marker in zip(chat.messages, markers, strict=True):
        before, matched, rest = rest.partition(marker)
        if not matched:
            raise InputError(
                "Expected the model's chat template to keep every message in its order, found "
                f"none for one by {message.role} of trajectory {chat.id}; give it another template."
            )
        content = message.content.strip()
        start = len(text) + len(before)
        text += before + content
        if message.trained and content:
            end = next((token for token in special if rest.startswith(token)), "")
            learned.append((start, len(text) + len(end)))
    return text + rest, learned


def _render_template(chat: TrajectoryChat, contents: Sequence[str], tokenizer: Any) -> str:
    pairs = [(message.role, text) for message, text in zip(chat.messages, contents, strict=True)]
    if not tokenizer.chat_template:  # role, text, and an end token after the agent's messages
        ends = {"assistant": tokenizer.eos_token or ""}
        return "".join(f"{role}:\n{text}{ends.get(role, '')}\n\n" for role, text in pairs)
    from jinja2.exceptions import TemplateError

    messages = [{"role": role, "content": text} for role, text in pairs]
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False))
    except TemplateError as error:
        raise InputError(
            "Expected a chat template that takes a system message and turns of user and "
            f"assistant, found one that says: {error}."
        ) from error


def _is_within(place: TokenRange, text: str, learned: Sequence[TokenRange]) -> bool:
    """Return True if a token's first non-blank character lies within what is learned."""
    token_text = text[slice(*place)]
    first = place[0] + (len(token_text) - len(token_text.lstrip()) if token_text.strip() else 0)
    return bool(token_text) and any(start <= first < end for start, end in learned)


@dataclass(frozen=True)
class TrajectoryOptions:
    """The options of a training; trajectories of more than `longest` tokens are left out."""

    epochs: int = 3
    rate: float = 1e-5
    batch: int = 1
    longest: int = 8192
    seed: int = 7


@dataclass(frozen=True)
class TrajectoryMaterial:
    """The trajectories to learn from, and how many were left out for each reason."""

    rows: tuple[ChatTokens, ...]
    too_long: int = 0
    with_marks: int = 0

    @property
    def learned(self) -> int:
        """The number of tokens the loss is taken over in one epoch."""
        return sum(row.learned for row in self.rows)


def load_material(data: bytes, name: str, tokenizer: Any, longest: int) -> TrajectoryMaterial:
    """Return the trajectories of a file as tokens. Raises InputError: none can be used."""
    tokenized = [tokenize_chat(chat, tokenizer) for chat in parse_chats(data, name)]
    plain = [row for row in tokenized if row is not None]
    short = [row for row in plain if len(row.ids) <= longest]
    rows = tuple(row for row in short if row.learned)
    material = TrajectoryMaterial(rows, len(plain) - len(short), len(tokenized) - len(plain))
    if not rows:
        raise InputError(
            f"Expected trajectories of at most {longest:,} tokens in {name}, found none: "
            f"{material.too_long} longer ones, {material.with_marks} with marks of the tokenizer "
            "in their text. Raise --max-length, or take another file."
        )
    return material


def compute_loss(model: Any, rows: Sequence[ChatTokens], padding: int) -> Any:
    """Return the mean cross entropy over a batch's learned tokens, a tensor with gradient."""
    import torch

    longest = max(len(row.ids) for row in rows)
    device = next(model.parameters()).device

    def padded(values: Sequence[tuple[int, ...]], fill: int) -> Any:
        return torch.tensor(
            [(*row_values, *[fill] * (longest - len(row_values))) for row_values in values]
        ).to(device)

    ids = padded([row.ids for row in rows], padding)
    targets = padded([row.targets for row in rows], IGNORED_TARGET)
    attention = padded([(1,) * len(row.ids) for row in rows], 0)
    logits = model(input_ids=ids, attention_mask=attention).logits
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].float().flatten(0, 1), targets[:, 1:].flatten(), ignore_index=IGNORED_TARGET
    )


def train_model(
    model: Any,
    rows: Sequence[ChatTokens],
    options: TrajectoryOptions,
    padding: int,
    tell: MessagePrinter,
) -> list[float]:
    """Train in place and return the mean loss of each epoch; the order depends on the seed only."""
    import torch

    torch.manual_seed(options.seed)
    order, losses = list(rows), []
    shuffler = random.Random(options.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    model.train()
    for epoch in range(1, options.epochs + 1):
        shuffler.shuffle(order)
        total, started = 0.0, time.monotonic()
        for start in range(0, len(order), options.batch):
            batch = order[start : start + options.batch]
            loss = compute_loss(model, batch, padding)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRADIENT_NORM)
            optimizer.step()
            total += float(loss.detach()) * len(batch)
        losses.append(total / len(order))
        seconds = time.monotonic() - started
        tell(f"Epoch {epoch} of {options.epochs}: loss {losses[-1]:.4f}, {seconds:.0f} s")
    return losses


def train_folder(
    source: Path, trajectories: Path, out: Path, options: TrajectoryOptions, tell: MessagePrinter
) -> dict[str, Any]:
    """Train a folder's model into another as safetensors; no code in the folder is run."""
    data, name = _read_file(trajectories), trajectories.name
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"Expected a new or empty folder at {out}, found something in it.")
    tokenizer, model = _load_model(source)
    material = load_material(data, name, tokenizer, options.longest)
    tell(
        f"{len(material.rows)} trajectories with {material.learned:,} tokens to learn; left out: "
        f"{material.too_long} too long, {material.with_marks} with marks of the tokenizer."
    )
    padding = tokenizer.pad_token_id
    padding = tokenizer.eos_token_id or 0 if padding is None else padding
    losses = train_model(model, material.rows, options, padding, tell)
    model.save_pretrained(str(out))
    tokenizer.save_pretrained(str(out))
    card = {
        "model": str(source),
        "trajectories": {"file": name, "sha256": hashlib.sha256(data).hexdigest()},
        "options": asdict(options),
        "rows": len(material.rows),
        "learned_tokens": material.learned,
        "left_out": {"too_long": material.too_long, "with_marks": material.with_marks},
        "losses": [round(loss, 6) for loss in losses],
    }
    (out / CARD_NAME).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return card


def _load_model(source: Path) -> tuple[Any, Any]:
    """Return (tokenizer, model) of a folder, the model on the first GPU if there is one."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if not (source / "config.json").is_file():
        raise InputError(f"Expected a model's folder with config.json at {source}, found none.")
    safe: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    weights: dict[str, Any] = {"use_safetensors": True, "dtype": torch.float32}
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(source), **safe)
        model = AutoModelForCausalLM.from_pretrained(str(source), **safe, **weights)
    except (OSError, ValueError) as error:
        raise InputError(
            f"Expected a causal language model with safetensors and a tokenizer that need no code "
            f"of their own at {source}, found: {' '.join(str(error).split())[:300]}."
        ) from error
    return tokenizer, model.to("cuda" if torch.cuda.is_available() else "cpu")


def _read_file(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_FILE_MEGABYTES * MEGABYTE:
            raise InputError(f"Expected at most {MAX_FILE_MEGABYTES:,} MB at {path}; cut the file.")
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"Expected a file of trajectories at {path}, found: {error.strerror}."
        ) from error


def read_training_options(given: argparse.Namespace) -> TrajectoryOptions:
    """Return the options of the command line. Raises InputError: one is out of bounds."""
    options = TrajectoryOptions(given.epochs, given.rate, given.batch, given.max_length, given.seed)
    integers = {
        "--epochs": options.epochs,
        "--batch": options.batch,
        "--max-length": options.longest,
    }
    for name, value in integers.items():
        if not 1 <= value <= 1_000_000:
            raise InputError(f"Expected a number from 1 to 1,000,000 for {name}, found {value}.")
    if not 0.0 < options.rate <= 1.0:
        raise InputError(f"Expected a number above 0 and up to 1 for --rate, found {options.rate}.")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and print the card as JSON; return 0, or 2 for bad input after one line about it."""
    parser = argparse.ArgumentParser(
        prog="python -m core.learning.trajectory_training",
        description=(__doc__ or "").partition("\n\n")[0],
    )
    for name, metavar in (("--model", "FOLDER"), ("--trajectories", "FILE"), ("--out", "FOLDER")):
        parser.add_argument(name, type=Path, required=True, metavar=metavar)
    defaults = TrajectoryOptions()
    parser.add_argument("--epochs", type=int, default=defaults.epochs)
    parser.add_argument("--rate", type=float, default=defaults.rate, help="AdamW's learning rate")
    parser.add_argument("--batch", type=int, default=defaults.batch, help="trajectories a step")
    parser.add_argument("--max-length", type=int, default=defaults.longest, help="in tokens")
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parsed = parser.parse_args(arguments)

    def tell(message: str) -> None:
        sys.stderr.write(f"{message}\n")

    try:
        options = read_training_options(parsed)
        card = train_folder(parsed.model, parsed.trajectories, parsed.out, options, tell)
    except ReviewError as error:
        tell(str(error))
        return 2
    sys.stdout.write(json.dumps(card) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
