"""What the entailment reader sees in training, in which order and in which batches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import InputError
from core.evaluation.reader_near import Near
from core.evaluation.reader_negatives import Maker
from core.evaluation.reader_pairs import Pair
from core.models.reader import cut_to_fit

Integers = npt.NDArray[np.int64]
WIDTHS = (32, 48, 64, 96, 128, 192, 256, 384, 512)  # above MAX_TOKENS only for long statements
BLOCK = 8192
SHORT_EVIDENCE = 250


@dataclass(frozen=True)
class Recipe:
    """What a training run depends on, besides the data. `views`: pairs seen in all."""

    views: int = 420_000
    made_share: float = 0.3
    short_share: float = 0.5
    rate: float = 1e-4
    warm_up: float = 0.05
    decay: float = 0.05
    tokens_per_batch: int = 4096
    averaging: float = 0.999
    dropout: float = 0.1  # of what each block of a layer gives, not of attention
    hidden_words: float = 0.05  # share of the evidence's tokens that are hidden in a view
    seed: int = 7  # of the fresh head: runs that are averaged share it
    order: int = 7  # of what is seen when, and of what is dropped


@dataclass(frozen=True)
class Batch:
    """Encoded pairs, each (n, length), and the classes each may be."""

    ids: Integers
    mask: Integers
    kinds: Integers
    allowed: tuple[tuple[int, int, int], ...]


def views_of(pairs: Sequence[Pair], recipe: Recipe, near: Near | None = None) -> list[Pair]:
    """What is seen in training, in order: short evidence first, then everything.

    Rows come as often as their set says, mixed with made cases, among them, with `near`, statements
    over evidence that is only on their topic.

    Raises:
        InputError: there is no pair, or none with short evidence though some are to come first.
    """
    chance = random.Random(recipe.order)
    short = [pair for pair in pairs if len(pair.evidence) <= SHORT_EVIDENCE]
    early = round(recipe.views * recipe.short_share)
    seen = _mixed(short, early, recipe.made_share / 2, chance)
    return seen + _mixed(pairs, recipe.views - early, recipe.made_share, chance, near)


def _mixed(
    pairs: Sequence[Pair],
    views: int,
    made_share: float,
    chance: random.Random,
    near: Near | None = None,
) -> list[Pair]:
    if not views:
        return []
    if not any(pair.times > 0 for pair in pairs):
        raise InputError(
            "Expected labelled pairs to train on, some with evidence of at most "
            f"{SHORT_EVIDENCE} characters, found none; give a folder that holds more of the sets, "
            "or --short-share 0."
        )
    wanted = round(views * (1 - made_share))
    pool: list[Pair] = []
    while len(pool) < wanted:
        once = [pair for pair in pairs for _ in range(_times(pair.times, chance))]
        chance.shuffle(once)
        pool += once
    maker = Maker(pairs, chance.randrange(2**32), near)
    seen = pool[:wanted] + list(maker.made(views - wanted))
    chance.shuffle(seen)
    return seen


def _times(times: float, chance: random.Random) -> int:
    whole = int(times)
    return whole + (chance.random() < times - whole)


def batches(pairs: Sequence[Pair], tokenizer: Any, recipe: Recipe) -> Iterator[Batch]:
    """Batches of similar length in random order, all of a few shapes.

    The processor's matrix kernels are compiled for each new shape, which costs more than padding.
    Some tokens of the evidence are hidden, others in each view: rows of small sets come often, and
    would be learned by heart.
    """
    chance = random.Random(recipe.order)
    hiding = np.random.default_rng(recipe.order)
    hidden = tokenizer.token_to_id("[MASK]")
    special = [tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]", "[PAD]")]
    for begin in range(0, len(pairs), BLOCK):
        rows = pairs[begin : begin + BLOCK]
        items = encoded(rows, tokenizer)
        order = sorted(range(len(rows)), key=lambda i: len(items[i].ids))
        made: list[Batch] = []
        while order:
            # the longest first, so that only the batch of the shortest is not full
            length = next(w for w in WIDTHS if w >= len(items[order[-1]].ids))
            count = recipe.tokens_per_batch // length
            taken, order = order[-count:], order[:-count]
            ids, mask, kinds = padded([items[i] for i in taken], length)
            hit = (hiding.random(ids.shape) < recipe.hidden_words) & (kinds == 0)
            ids[hit & ~np.isin(ids, special)] = hidden
            made.append(Batch(ids, mask, kinds, tuple(rows[i].allowed for i in taken)))
        chance.shuffle(made)
        yield from made


@dataclass(frozen=True)
class Encoded:
    """A pair's tokens with its marks; `type_ids`: 0 for the evidence, 1 for the statement."""

    ids: list[int]
    type_ids: list[int]


def encoded(pairs: Sequence[Pair], tokenizer: Any) -> list[Encoded]:
    """Each pair as the reader will read it."""
    begin, between = (tokenizer.token_to_id(name) for name in ("[CLS]", "[SEP]"))
    sides = (
        tokenizer.encode_batch(texts, add_special_tokens=False)
        for texts in ([pair.evidence for pair in pairs], [pair.statement for pair in pairs])
    )
    made = []
    for evidence, statement in zip(*sides, strict=True):
        one, other = cut_to_fit(evidence.ids, statement.ids)
        first, second = [begin, *one, between], [*other, between]
        made.append(Encoded(first + second, [0] * len(first) + [1] * len(second)))
    return made


def padded(items: Sequence[Encoded], length: int) -> tuple[Integers, Integers, Integers]:
    """Ids, mask and segment ids of encoded pairs, (n, length)."""
    ids, mask, kinds = (np.zeros((len(items), length), dtype=np.int64) for _ in range(3))
    for row, item in enumerate(items):
        size = len(item.ids)
        ids[row, :size] = item.ids
        mask[row, :size] = 1
        kinds[row, :size] = item.type_ids
    return ids, mask, kinds


def tokenizer_of(folder: Path) -> Any:
    """MiniLM's tokenizer; it cuts nothing, for the reader's own rule does."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
