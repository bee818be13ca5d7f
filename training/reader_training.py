"""Trains an encoder to read pairs: encoding, batches, loss, the loop and its figures.

A cross-encoder over (evidence, claim): three classes from the first token, and of each token of the
claim whether it is wrong. It learns from a file of `training.reader_pairs` alone, so that it can be
trained on a machine that has nothing but torch; a student also from what trained readers say.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
CHUNK = 20_000  # pairs sorted by length together
STEP = 16  # lengths are padded up to a multiple
LEAST = 1e-6


@dataclass(frozen=True)
class Recipe:
    """What a training run depends on, besides the data. `views`: pairs seen in all."""

    views: int = 2_000_000
    minutes: float = 8.0
    """The rate falls as if the views were through by then."""
    rate: float = 1.5e-4
    warm_up: float = 0.05
    decay: float = 0.05
    tokens_per_batch: int = 16_384
    averaging: float = 0.999
    hidden_words: float = 0.05
    word_loss: float = 0.3
    taught: float = 0.7
    """Share of the loss that a student takes from its teachers."""
    seed: int = 7


@dataclass(frozen=True)
class TrainingPair:
    """A pair of the file: which classes it may be, and the wrong words of the claim if known."""

    evidence: str
    claim: str
    allowed: tuple[int, int, int]
    wrong: tuple[tuple[int, int], ...] | None
    name: str
    language: str
    times: float


def add_recipe(parser: argparse.ArgumentParser, *names: str) -> None:
    """Options for these fields of a recipe, and for where training runs."""
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=0)
    for name in names:
        default = getattr(Recipe, name)
        flags = dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}"))
        parser.add_argument(*flags, type=type(default), default=default)


def recipe_of(given: argparse.Namespace, *names: str) -> Recipe:
    """The recipe with what was given."""
    return replace(Recipe(), **{name: getattr(given, name) for name in names})


def read_pairs(path: Path) -> tuple[list[TrainingPair], list[TrainingPair]]:
    """Pairs to learn from, and pairs to measure on."""
    texts: list[str] = []

    def text_of(told: str | int) -> str:
        if isinstance(told, int):
            return texts[told]
        texts.append(told)
        return told

    found: dict[str, list[TrainingPair]] = {"seen": [], "dev": []}
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for part, evidence, claim, allowed, wrong, *rest in map(json.loads, lines):
            marks = None if wrong is None else tuple((start, end) for start, end in wrong)
            told = (text_of(evidence), text_of(claim), tuple(allowed))
            found[part].append(TrainingPair(*told, marks, *rest))
    return found["seen"], found["dev"]


@dataclass(frozen=True)
class Layout:
    """How a model wants a pair: `<begin> evidence <between> claim <end>`, and its other tokens."""

    tokenizer: Any
    begin: int
    between: tuple[int, ...]
    end: int
    pad: int
    mask: int
    max_tokens: int = 256
    least_evidence: int = 64
    ids: npt.NDArray[np.int32] | None = None
    """Where the vocabulary was cut down: the new id of each token, -1 where it was left out."""


class EncodedPairs:
    """All pairs as token ids, each distinct text once."""

    def __init__(self, pairs: Sequence[TrainingPair], layout: Layout) -> None:
        self.pairs, self.layout = pairs, layout
        texts = list(dict.fromkeys(t for pair in pairs for t in (pair.evidence, pair.claim)))
        number = {text: place for place, text in enumerate(texts)}
        self._tokens: list[npt.NDArray[np.int32]] = []
        self._offsets: list[list[tuple[int, int]]] = []
        claims = {pair.claim for pair in pairs}
        for begin in range(0, len(texts), 4096):
            part = texts[begin : begin + 4096]
            items = layout.tokenizer.encode_batch(part, add_special_tokens=False)
            for text, item in zip(part, items, strict=True):
                ids = np.array(item.ids, dtype=np.int32)
                self._tokens.append(ids if layout.ids is None else layout.ids[ids])
                self._offsets.append(item.offsets if text in claims else [])
        self._sides = np.array([(number[p.evidence], number[p.claim]) for p in pairs])
        sizes = np.array([len(ids) for ids in self._tokens])
        joints = 2 + len(layout.between)
        lengths = sizes[self._sides].sum(axis=1) + joints
        self.lengths = np.minimum(lengths, layout.max_tokens)

    def batch(self, rows: Sequence[int]) -> EncodedBatch:
        """Padded arrays; evidence is cut so that the claim is whole, or nearly."""
        layout = self.layout
        joints = 2 + len(layout.between)
        length = -(-int(self.lengths[list(rows)].max()) // STEP) * STEP
        ids = np.full((len(rows), length), layout.pad, np.int64)
        sides = np.zeros((len(rows), length), np.int64)
        mask = np.zeros((len(rows), length), bool)
        wrong = np.full((len(rows), length), -1, np.int8)
        for place, row in enumerate(rows):
            one, two = self._sides[row]
            claim = self._tokens[two][: layout.max_tokens - joints - layout.least_evidence]
            evidence = self._tokens[one][: layout.max_tokens - joints - len(claim)]
            start = 1 + len(evidence) + len(layout.between)
            size = start + len(claim) + 1
            ids[place, 0] = layout.begin
            ids[place, 1 : 1 + len(evidence)] = evidence
            ids[place, 1 + len(evidence) : start] = layout.between
            ids[place, start : size - 1] = claim
            ids[place, size - 1] = layout.end
            mask[place, :size] = True
            sides[place, start:size] = 1
            marks = self.pairs[row].wrong
            if marks is not None:
                for at, (s, e) in enumerate(self._offsets[two][: len(claim)], start):
                    wrong[place, at] = any(s < end and begin < e for begin, end in marks)
        allowed = np.array([self.pairs[row].allowed for row in rows], np.float32)
        return EncodedBatch(np.array(rows), ids, mask, sides, allowed, wrong)


@dataclass(frozen=True)
class EncodedBatch:
    """Encoded pairs, (n, length); `wrong` is 1, 0, or -1 where nobody knows."""

    rows: Integers
    ids: Integers
    mask: npt.NDArray[np.bool_]
    sides: Integers
    allowed: Floats
    wrong: npt.NDArray[np.int8]


def batch_rows(encoded: EncodedPairs, recipe: Recipe) -> Iterator[list[int]]:
    """Which pairs stand in one batch: of similar length, in random order, epoch upon epoch."""
    chance = random.Random(recipe.seed)
    left = recipe.views
    while left > 0:
        epoch = [
            place
            for place, pair in enumerate(encoded.pairs)
            for _ in range(int(pair.times) + (chance.random() < pair.times % 1))
        ]
        chance.shuffle(epoch)
        epoch = epoch[:left]
        left -= len(epoch)
        for begin in range(0, len(epoch), CHUNK):
            rows = sorted(epoch[begin : begin + CHUNK], key=lambda row: int(encoded.lengths[row]))
            made = filled(rows, encoded.lengths, recipe.tokens_per_batch)
            chance.shuffle(made)
            yield from made


def filled(rows: list[int], lengths: Integers, tokens: int) -> list[list[int]]:
    """Rows, sorted by length, in batches of about so many tokens, the longest first."""
    made: list[list[int]] = []
    while rows:
        count = max(1, tokens // int(lengths[rows[-1]]))
        made.append(rows[-count:])
        rows = rows[:-count]
    return made


def prepared_batches(
    encoded: EncodedPairs, wanted: Sequence[Sequence[int]], workers: int
) -> Iterator[EncodedBatch]:
    """The batches of these rows, made by processes beside this one."""
    if not workers:
        yield from (encoded.batch(rows) for rows in wanted)
        return
    from torch.utils.data import DataLoader

    class Batches:
        def __len__(self) -> int:
            return len(wanted)

        def __getitem__(self, place: int) -> EncodedBatch:
            return encoded.batch(wanted[place])

    loader: Any = DataLoader(
        Batches(),  # type: ignore[arg-type]
        batch_size=None, num_workers=workers, prefetch_factor=8,
    )  # fmt: skip
    yield from loader


def has_bfloat16(device: str) -> bool:
    """True where the device multiplies in bfloat16; some processors do, and train twice as fast."""
    import torch

    return device == "cuda" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def forward(model: Any, ids: Any, mask: Any, sides: Any) -> tuple[Any, Any]:
    """Logits of the classes (n, 3) and of the words (n, length)."""
    import torch

    types = sides if model.tells_sides else torch.zeros_like(sides)
    told = {"input_ids": ids, "attention_mask": mask.long(), "token_type_ids": types}
    hidden = model["encoder"](**told).last_hidden_state
    pooled = torch.tanh(model["pooler"](hidden[:, 0]))
    words = model["words"](hidden).squeeze(-1)
    return model["classes"](model["drop"](pooled)).float(), words.float()


def loss_of(
    classes: Any, words: Any, allowed: Any, wrong: Any, taught: Any | None, recipe: Recipe
) -> Any:
    """How unlikely the model finds an allowed class, what its teachers say, and the marks."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    logs = torch.log_softmax(classes, dim=-1)
    loss = -torch.logsumexp(logs + torch.log(allowed + 1e-9), dim=-1).mean()
    if taught is not None:
        loss = (1 - recipe.taught) * loss - recipe.taught * (taught * logs).sum(dim=-1).mean()
    known = wrong >= 0
    target = wrong.clamp(min=0).float()
    each = binary_cross_entropy_with_logits(words, target, reduction="none")
    return loss + recipe.word_loss * (each * known).sum() / known.sum().clamp(min=1)


def train(
    model: Any,
    encoded: EncodedPairs,
    recipe: Recipe,
    *,
    device: str = "cpu",
    workers: int = 0,
    teachers: Floats | None = None,
) -> None:
    """Train, to the mean of its weights; `teachers` (pairs, 3) are p that trained readers gave."""
    import torch

    model.to(device).train()
    free = [p for p in model.parameters() if p.requires_grad]
    averaged = [p.detach().clone() for p in free]
    optimizer = torch.optim.AdamW(free, lr=recipe.rate, weight_decay=recipe.decay, fused=True)
    hiding = torch.Generator(device=device).manual_seed(recipe.seed)
    layout = encoded.layout
    special = torch.tensor([layout.begin, *layout.between, layout.end, layout.pad], device=device)
    lost, done, began, told = 0.0, 0, time.monotonic(), 0.0
    wanted = list(batch_rows(encoded, recipe))
    for step, batch in enumerate(prepared_batches(encoded, wanted, workers)):
        share = max(done / recipe.views, (time.monotonic() - began) / 60 / recipe.minutes)
        if share >= 1:
            break
        for group in optimizer.param_groups:
            rest = math.pi * max(0.0, share - recipe.warm_up) / (1 - recipe.warm_up)
            falling = 0.01 + 0.99 * 0.5 * (1 + math.cos(rest))  # linear up, cosine to a hundredth
            group["lr"] = recipe.rate * min(share / recipe.warm_up, falling)
        ids, mask, sides, allowed, wrong = (
            torch.from_numpy(part).to(device, non_blocking=True)
            for part in (batch.ids, batch.mask, batch.sides, batch.allowed, batch.wrong)
        )
        hit = torch.rand(ids.shape, generator=hiding, device=device) < recipe.hidden_words
        hit &= (sides == 0) & ~torch.isin(ids, special)
        ids = torch.where(hit, layout.mask, ids)
        taught = None if teachers is None else torch.from_numpy(teachers[batch.rows]).to(device)
        with torch.autocast(device, torch.bfloat16, enabled=has_bfloat16(device)):
            classes, words = forward(model, ids, mask, sides)
        loss = loss_of(classes, words, allowed, wrong, taught, recipe)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(free, 1.0)
        optimizer.step()
        keep = min(recipe.averaging, (1 + step) / (10 + step))
        with torch.no_grad():
            torch._foreach_lerp_(averaged, [p.detach() for p in free], 1 - keep)
        done += len(batch.rows)
        if step % 100 == 0:
            lost = float(loss.detach())
            pace = done / (time.monotonic() - began)
            if time.monotonic() - told > 15:
                told = time.monotonic()
                _say(f"{done}/{recipe.views} loss {lost:.3f} {pace:.0f} pairs/s share {share:.2f}")
    with torch.no_grad():
        for own, mean in zip(free, averaged, strict=True):
            own.copy_(mean)
    _say(f"{done} views in {time.monotonic() - began:.0f} s, loss {lost:.3f}")


def probabilities(
    model: Any, encoded: EncodedPairs, *, device: str = "cpu", workers: int = 0, tokens: int = 8192
) -> Floats:
    """(n, 3) of each pair, in order."""
    import torch

    model.to(device).eval()
    order = np.argsort(encoded.lengths, kind="stable").tolist()
    wanted = filled(order, encoded.lengths, tokens)
    found = np.zeros((len(encoded.pairs), 3), np.float32)
    for batch in prepared_batches(encoded, wanted, workers):
        parts = (batch.ids, batch.mask, batch.sides)
        ids, mask, sides = (torch.from_numpy(part).to(device) for part in parts)
        with torch.no_grad(), torch.autocast(device, torch.bfloat16, enabled=has_bfloat16(device)):
            classes, _ = forward(model, ids, mask, sides)
        found[batch.rows] = torch.softmax(classes, dim=-1).cpu().numpy()
    return found


def mean_of(told: Sequence[Floats]) -> Floats:
    """Readers' normalised geometric mean, (n, 3); rows of zeros were not read."""
    weights = [(one.sum(axis=1, keepdims=True) > 0).astype(np.float32) for one in told]
    logs = sum(np.log(np.clip(one, 1e-5, 1)) * w for one, w in zip(told, weights, strict=True))
    shares = np.exp(logs / np.maximum(1, sum(weights)))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float32)


def figures_of(pairs: Sequence[Any], wrong: npt.NDArray[np.float64]) -> dict[str, dict[str, float]]:
    """By set and language: rows, AUROC of not supported, balanced accuracy at one half."""
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    by_set: dict[str, list[int]] = defaultdict(list)
    for place, pair in enumerate(pairs):
        by_set[f"{pair.name}.{pair.language}"].append(place)
    told = {}
    for name, places in sorted(by_set.items()):
        gold, p = np.array([pairs[i].allowed[0] == 0 for i in places]), wrong[places]
        if gold.any() and not gold.all():
            auroc, balanced = roc_auc_score(gold, p), balanced_accuracy_score(gold, p >= 0.5)
            own = {"auroc": round(float(auroc), 3), "balanced": round(float(balanced), 3)}
            told[name] = {"n": len(places), **own}
    return told


def show(found: dict[str, dict[str, float]]) -> None:
    """A line a set on stderr, and the means of all and of the English ones."""
    for name, line in found.items():
        _say(f"  {name} {line['n']} {line['auroc']} {line['balanced']}")
    mean = np.mean([line["auroc"] for line in found.values()])
    english = np.mean([line["auroc"] for name, line in found.items() if name.endswith(".en")])
    _say(f"  mean AUROC {mean:.4f}, of English sets {english:.4f}")


def save(model: Any, path: Path, kept: Callable[[str], bool]) -> None:
    """Write the weights that `kept` names, as float16 safetensors."""
    import torch
    from safetensors.torch import save_file

    state = {n: v.to("cpu", torch.float16).contiguous() for n, v in model.state_dict().items()}
    save_file({name: value for name, value in state.items() if kept(name)}, path)


def load_weights(model: Any, path: Path) -> None:
    """Put weights that `save` wrote into the model; what was not kept stays as it is."""
    from safetensors.torch import load_file

    model.load_state_dict({n: v.float() for n, v in load_file(path).items()}, strict=False)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
