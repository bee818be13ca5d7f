"""Trains a causal language model on trajectories, with the loss on thoughts and actions only.

`python -m core.learning.trajectory_training --model FOLDER --trajectories FILE --out FOLDER`. Reads
the JSONL that `export --format trajectories` writes. The paper prints equation 1 with the logarithm
outside of the sum; what is trained is the usual cross entropy (HaluAgent 2.4.2, equation 1).
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

IGNORED = -100  # the target that torch's cross entropy leaves out
Place = tuple[int, int]


class TrainedMessage(msgspec.Struct, frozen=True):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str
    trained: bool = False


class Chat(msgspec.Struct, frozen=True):
    """One trajectory; other fields of its row are passed over."""

    messages: list[TrainedMessage]
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
    """The trajectories of a file."""
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
    """The chat in the model's template, or a plain one; None where it holds a special token."""
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
    targets = (
        token if _is_within(place, text, learned) else IGNORED
        for token, place in zip(coded["input_ids"], coded["offset_mapping"], strict=True)
    )
    return Tokens(tuple(coded["input_ids"]), tuple(targets))


def special_tokens(tokenizer: Any) -> tuple[str, ...]:
    """All texts that this tokenizer takes for marks, the longest first."""
    added = (str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)
    return tuple(sorted({*added, *tokenizer.all_special_tokens}, key=len, reverse=True))


def laid_out(chat: Chat, tokenizer: Any, special: Sequence[str]) -> tuple[str, list[Place]]:
    """(the whole text, `[start, end)` in it of what is learned).

    The template is filled with marks first, which say where each message comes to stand: its words
    alone may stand elsewhere too. What ends a learned message is learned with it, or the agent
    would never stop.
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
    pairs = [(said.role, own) for said, own in zip(chat.messages, contents, strict=True)]
    if not tokenizer.chat_template:  # the role, the text, and the end mark after the agent's own
        ends = {"assistant": tokenizer.eos_token or ""}
        return "".join(f"{role}:\n{own}{ends.get(role, '')}\n\n" for role, own in pairs)
    from jinja2.exceptions import TemplateError

    messages = [{"role": role, "content": own} for role, own in pairs]
    try:
        return str(tokenizer.apply_chat_template(messages, tokenize=False))
    except TemplateError as error:
        raise InputError(
            "Expected a chat template that takes a system message and turns of user and "
            f"assistant, found one that says: {error}."
        ) from error


def _is_within(place: Place, text: str, learned: Sequence[Place]) -> bool:
    """Whether a token begins within what is learned; blanks before its first letter are no part."""
    piece = text[slice(*place)]
    first = place[0] + (len(piece) - len(piece.lstrip()) if piece.strip() else 0)
    return bool(piece) and any(start <= first < end for start, end in learned)


CARD = "training.json"
MOST_MEGABYTES = 2_000
CLIP = 1.0  # the largest norm of a step's gradient
Tell = Callable[[str], None]


@dataclass(frozen=True)
class TrajectoryOptions:
    """Every training choice; trajectories of more tokens than `longest` are left out."""

    epochs: int = 3
    rate: float = 1e-5
    batch: int = 1
    longest: int = 8192
    seed: int = 7


@dataclass(frozen=True)
class TrajectoryMaterial:
    """What there is to learn from, and how many trajectories were left out for which reason."""

    rows: tuple[Tokens, ...]
    too_long: int = 0
    with_marks: int = 0

    @property
    def learned(self) -> int:
        """Tokens that the loss is taken over, in one epoch."""
        return sum(row.learned for row in self.rows)


def material_of(data: bytes, name: str, tokenizer: Any, longest: int) -> TrajectoryMaterial:
    """The trajectories of a file as tokens, if any is left."""
    coded = [tokens_of(chat, tokenizer) for chat in chats_of(data, name)]
    there = [row for row in coded if row is not None]
    short = [row for row in there if len(row.ids) <= longest]
    rows = tuple(row for row in short if row.learned)
    found = TrajectoryMaterial(rows, len(there) - len(short), len(coded) - len(there))
    if not rows:
        raise InputError(
            f"Expected trajectories of at most {longest:,} tokens in {name}, found none: "
            f"{found.too_long} longer ones, {found.with_marks} with marks of the tokenizer in "
            "their text. Raise --max-length, or take another file."
        )
    return found


def loss_of(model: Any, rows: Sequence[Tokens], padding: int) -> Any:
    """The mean cross entropy over the learned tokens of a batch, a scalar tensor with gradient."""
    import torch

    longest = max(len(row.ids) for row in rows)
    device = next(model.parameters()).device

    def padded(values: Sequence[tuple[int, ...]], fill: int) -> Any:
        return torch.tensor([(*own, *[fill] * (longest - len(own))) for own in values]).to(device)

    ids = padded([row.ids for row in rows], padding)
    targets = padded([row.targets for row in rows], IGNORED)
    there = padded([(1,) * len(row.ids) for row in rows], 0)
    logits = model(input_ids=ids, attention_mask=there).logits
    return torch.nn.functional.cross_entropy(
        logits[:, :-1].float().flatten(0, 1), targets[:, 1:].flatten(), ignore_index=IGNORED
    )


def train(
    model: Any, rows: Sequence[Tokens], options: TrajectoryOptions, padding: int, tell: Tell
) -> list[float]:
    """Train in place; the mean loss of each epoch. The same seed goes through the same order."""
    import torch

    torch.manual_seed(options.seed)
    order, losses = list(rows), []
    chance = random.Random(options.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
    model.train()
    for epoch in range(1, options.epochs + 1):
        chance.shuffle(order)
        total, began = 0.0, time.monotonic()
        for start in range(0, len(order), options.batch):
            batch = order[start : start + options.batch]
            loss = loss_of(model, batch, padding)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            total += float(loss.detach()) * len(batch)
        losses.append(total / len(order))
        seconds = time.monotonic() - began
        tell(f"Epoch {epoch} of {options.epochs}: loss {losses[-1]:.4f}, {seconds:.0f} s")
    return losses


def trained_folder(
    source: Path, trajectories: Path, out: Path, options: TrajectoryOptions, tell: Tell
) -> dict[str, Any]:
    """Train one folder's model into another as safetensors; no code in the folder is run."""
    data, name = _bytes(trajectories), trajectories.name
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"Expected a new or empty folder at {out}, found something in it.")
    tokenizer, model = _loaded(source)
    found = material_of(data, name, tokenizer, options.longest)
    tell(
        f"{len(found.rows)} trajectories with {found.learned:,} tokens to learn; left out: "
        f"{found.too_long} too long, {found.with_marks} with marks of the tokenizer."
    )
    padding = tokenizer.pad_token_id
    padding = tokenizer.eos_token_id or 0 if padding is None else padding
    losses = train(model, found.rows, options, padding, tell)
    model.save_pretrained(str(out))
    tokenizer.save_pretrained(str(out))
    card = {
        "model": str(source),
        "trajectories": {"file": name, "sha256": hashlib.sha256(data).hexdigest()},
        "options": asdict(options),
        "rows": len(found.rows),
        "learned_tokens": found.learned,
        "left_out": {"too_long": found.too_long, "with_marks": found.with_marks},
        "losses": [round(loss, 6) for loss in losses],
    }
    (out / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    return card


def _loaded(source: Path) -> tuple[Any, Any]:
    """(tokenizer, model) of a folder, the model on the first graphics card where there is one."""
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


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_MEGABYTES * MEGABYTE:
            raise InputError(f"Expected at most {MOST_MEGABYTES:,} MB at {path}; cut the file.")
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"Expected a file of trajectories at {path}, found: {error.strerror}."
        ) from error


def options_of(given: argparse.Namespace) -> TrajectoryOptions:
    """The options that were given, within their bounds."""
    found = TrajectoryOptions(given.epochs, given.rate, given.batch, given.max_length, given.seed)
    whole = {"--epochs": found.epochs, "--batch": found.batch, "--max-length": found.longest}
    for name, value in whole.items():
        if not 1 <= value <= 1_000_000:
            raise InputError(f"Expected a number from 1 to 1,000,000 for {name}, found {value}.")
    if not 0.0 < found.rate <= 1.0:
        raise InputError(f"Expected a number above 0 and up to 1 for --rate, found {found.rate}.")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print the card as JSON; 0, or 2 for bad input with one line that says so."""
    parser = argparse.ArgumentParser(
        prog="python -m core.learning.trajectory_training",
        description=(__doc__ or "").partition("\n\n")[0],
    )
    for name, words in (("--model", "FOLDER"), ("--trajectories", "FILE"), ("--out", "FOLDER")):
        parser.add_argument(name, type=Path, required=True, metavar=words)
    usual = TrajectoryOptions()
    parser.add_argument("--epochs", type=int, default=usual.epochs)
    parser.add_argument("--rate", type=float, default=usual.rate, help="AdamW's learning rate")
    parser.add_argument("--batch", type=int, default=usual.batch, help="trajectories a step")
    parser.add_argument("--max-length", type=int, default=usual.longest, help="in tokens")
    parser.add_argument("--seed", type=int, default=usual.seed)
    given = parser.parse_args(arguments)

    def tell(words: str) -> None:
        sys.stderr.write(f"{words}\n")

    try:
        options = options_of(given)
        card = trained_folder(given.model, given.trajectories, given.out, options, tell)
    except ReviewError as error:
        tell(str(error))
        return 2
    sys.stdout.write(json.dumps(card) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
