"""Training of a cross-encoder over (evidence, claim): encoding, batches, loss, loop and figures.

It predicts three classes from the first token, and for each token of the claim whether it is wrong.
The data is one file of `training.reader_pairs`, so that it can be trained on a machine with nothing
but torch; a student also learns from the probabilities of trained readers.
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
SORTED_CHUNK_PAIRS = 20_000  # pairs sorted by length together
PADDING_MULTIPLE = 16  # lengths are padded up to a multiple


@dataclass(frozen=True)
class TrainingRecipe:
    """The settings of a training run. `views` is the total number of pairs seen."""

    views: int = 2_000_000
    minutes: float = 8.0
    """Time limit; the learning rate decays as if the views ended then."""
    rate: float = 1.5e-4
    warm_up: float = 0.05
    decay: float = 0.05
    tokens_per_batch: int = 16_384
    averaging: float = 0.999
    hidden_words: float = 0.05
    word_loss: float = 0.3
    taught: float = 0.7
    """Share of a student's loss that comes from its teachers."""
    seed: int = 7


@dataclass(frozen=True)
class TrainingPair:
    """A pair of the file, with the classes it may be and the claim's wrong words if known."""

    evidence: str
    claim: str
    allowed: tuple[int, int, int]
    wrong: tuple[tuple[int, int], ...] | None
    name: str
    language: str
    times: float


def add_recipe(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add options for these fields of a recipe, and for the device and workers."""
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=0)
    for name in names:
        default = getattr(TrainingRecipe, name)
        flags = dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}"))
        parser.add_argument(*flags, type=type(default), default=default)


def build_recipe(given: argparse.Namespace, *names: str) -> TrainingRecipe:
    """Return the recipe with the options that were given."""
    return replace(TrainingRecipe(), **{name: getattr(given, name) for name in names})


def read_pairs(path: Path) -> tuple[list[TrainingPair], list[TrainingPair]]:
    """Return the training pairs and the dev pairs."""
    texts: list[str] = []

    def text_of(entry: str | int) -> str:
        if isinstance(entry, int):
            return texts[entry]
        texts.append(entry)
        return entry

    pairs: dict[str, list[TrainingPair]] = {"seen": [], "dev": []}
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for part, evidence, claim, allowed, wrong, *rest in map(json.loads, lines):
            marks = None if wrong is None else tuple((start, end) for start, end in wrong)
            entry = (text_of(evidence), text_of(claim), tuple(allowed))
            pairs[part].append(TrainingPair(*entry, marks, *rest))
    return pairs["seen"], pairs["dev"]


@dataclass(frozen=True)
class PairLayout:
    """A model's encoding of a pair: `<begin> evidence <between> claim <end>`, and other tokens."""

    tokenizer: Any
    begin: int
    between: tuple[int, ...]
    end: int
    pad: int
    mask: int
    max_tokens: int = 256
    least_evidence: int = 64
    ids: npt.NDArray[np.int32] | None = None
    """For a reduced vocabulary, the new id of each token; -1 for tokens left out."""


class EncodedPairs:
    """All pairs as token ids; each distinct text is encoded once."""

    def __init__(self, pairs: Sequence[TrainingPair], layout: PairLayout) -> None:
        self.pairs, self.layout = pairs, layout
        texts = list(dict.fromkeys(t for pair in pairs for t in (pair.evidence, pair.claim)))
        number = {text: position for position, text in enumerate(texts)}
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
        """Return padded arrays; evidence is truncated so that the claim stays nearly whole."""
        layout = self.layout
        joints = 2 + len(layout.between)
        length = -(-int(self.lengths[list(rows)].max()) // PADDING_MULTIPLE) * PADDING_MULTIPLE
        ids = np.full((len(rows), length), layout.pad, np.int64)
        sides = np.zeros((len(rows), length), np.int64)
        mask = np.zeros((len(rows), length), bool)
        wrong = np.full((len(rows), length), -1, np.int8)
        for place, row in enumerate(rows):
            evidence_index, claim_index = self._sides[row]
            claim = self._tokens[claim_index][: layout.max_tokens - joints - layout.least_evidence]
            evidence = self._tokens[evidence_index][: layout.max_tokens - joints - len(claim)]
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
                for token, (low, high) in enumerate(
                    self._offsets[claim_index][: len(claim)], start
                ):
                    wrong[place, token] = any(low < end and begin < high for begin, end in marks)
        allowed = np.array([self.pairs[row].allowed for row in rows], np.float32)
        return EncodedBatch(np.array(rows), ids, mask, sides, allowed, wrong)


@dataclass(frozen=True)
class EncodedBatch:
    """Encoded pairs, (n, length); `wrong` is 1, 0, or -1 if unknown."""

    rows: Integers
    ids: Integers
    mask: npt.NDArray[np.bool_]
    sides: Integers
    allowed: Floats
    wrong: npt.NDArray[np.int8]


def iterate_batch_rows(encoded: EncodedPairs, recipe: TrainingRecipe) -> Iterator[list[int]]:
    """Yield the rows of each batch: pairs of similar length, in random order, epoch by epoch."""
    rng = random.Random(recipe.seed)
    remaining = recipe.views
    while remaining > 0:
        epoch = [
            place
            for place, pair in enumerate(encoded.pairs)
            for _ in range(int(pair.times) + (rng.random() < pair.times % 1))
        ]
        rng.shuffle(epoch)
        epoch = epoch[:remaining]
        remaining -= len(epoch)
        for begin in range(0, len(epoch), SORTED_CHUNK_PAIRS):
            rows = sorted(
                epoch[begin : begin + SORTED_CHUNK_PAIRS], key=lambda row: int(encoded.lengths[row])
            )
            batches = fill_batches(rows, encoded.lengths, recipe.tokens_per_batch)
            rng.shuffle(batches)
            yield from batches


def fill_batches(rows: list[int], lengths: Integers, tokens: int) -> list[list[int]]:
    """Split rows, sorted by length, into batches of about `tokens` tokens, the longest first."""
    batches: list[list[int]] = []
    while rows:
        count = max(1, tokens // int(lengths[rows[-1]]))
        batches.append(rows[-count:])
        rows = rows[:-count]
    return batches


def iterate_batches(
    encoded: EncodedPairs, wanted: Sequence[Sequence[int]], workers: int
) -> Iterator[EncodedBatch]:
    """Yield the batches of these rows, made by worker processes."""
    if not workers:
        yield from (encoded.batch(rows) for rows in wanted)
        return
    from torch.utils.data import DataLoader

    class Batches:
        def __len__(self) -> int:
            return len(wanted)

        def __getitem__(self, place: int) -> EncodedBatch:
            return encoded.batch(wanted[place])

    batches: Any = Batches()
    loader: Any = DataLoader(batches, batch_size=None, num_workers=workers, prefetch_factor=8)
    yield from loader


def is_bfloat16_supported(device: str) -> bool:
    """Return True if the device multiplies in bfloat16, which trains twice as fast."""
    import torch

    return device == "cuda" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def compute_logits(model: Any, ids: Any, mask: Any, sides: Any) -> tuple[Any, Any]:
    """Return the logits of the classes (n, 3) and of the words (n, length)."""
    import torch

    types = sides if model.tells_sides else torch.zeros_like(sides)
    inputs = {"input_ids": ids, "attention_mask": mask.long(), "token_type_ids": types}
    hidden = model["encoder"](**inputs).last_hidden_state
    pooled = torch.tanh(model["pooler"](hidden[:, 0]))
    words = model["words"](hidden).squeeze(-1)
    return model["classes"](model["drop"](pooled)).float(), words.float()


def compute_loss(
    classes: Any, words: Any, allowed: Any, wrong: Any, taught: Any | None, recipe: TrainingRecipe
) -> Any:
    """Return the loss over allowed classes, the teachers' probabilities and the word marks."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits

    logs = torch.log_softmax(classes, dim=-1)
    loss = -torch.logsumexp(logs + torch.log(allowed + 1e-9), dim=-1).mean()
    if taught is not None:
        loss = (1 - recipe.taught) * loss - recipe.taught * (taught * logs).sum(dim=-1).mean()
    known = wrong >= 0
    target = wrong.clamp(min=0).float()
    word_losses = binary_cross_entropy_with_logits(words, target, reduction="none")
    return loss + recipe.word_loss * (word_losses * known).sum() / known.sum().clamp(min=1)


def train_model(
    model: Any,
    encoded: EncodedPairs,
    recipe: TrainingRecipe,
    *,
    device: str = "cpu",
    workers: int = 0,
    teachers: Floats | None = None,
) -> None:
    """Train the model to its averaged weights; `teachers` are trained readers' p, (pairs, 3)."""
    import torch

    model.to(device).train()
    trainable = [p for p in model.parameters() if p.requires_grad]
    averaged = [p.detach().clone() for p in trainable]
    optimizer = torch.optim.AdamW(trainable, lr=recipe.rate, weight_decay=recipe.decay, fused=True)
    generator = torch.Generator(device=device).manual_seed(recipe.seed)
    layout = encoded.layout
    special = torch.tensor([layout.begin, *layout.between, layout.end, layout.pad], device=device)
    last_loss, seen, started, last_report = 0.0, 0, time.monotonic(), 0.0
    batches = list(iterate_batch_rows(encoded, recipe))
    for step, batch in enumerate(iterate_batches(encoded, batches, workers)):
        share = max(seen / recipe.views, (time.monotonic() - started) / 60 / recipe.minutes)
        if share >= 1:
            break
        for group in optimizer.param_groups:
            angle = math.pi * max(0.0, share - recipe.warm_up) / (1 - recipe.warm_up)
            decay = 0.01 + 0.99 * 0.5 * (1 + math.cos(angle))  # linear up, cosine to 1 %
            group["lr"] = recipe.rate * min(share / recipe.warm_up, decay)
        ids, mask, sides, allowed, wrong = (
            torch.from_numpy(part).to(device, non_blocking=True)
            for part in (batch.ids, batch.mask, batch.sides, batch.allowed, batch.wrong)
        )
        is_masked = torch.rand(ids.shape, generator=generator, device=device) < recipe.hidden_words
        is_masked &= (sides == 0) & ~torch.isin(ids, special)
        ids = torch.where(is_masked, layout.mask, ids)
        targets = None if teachers is None else torch.from_numpy(teachers[batch.rows]).to(device)
        with torch.autocast(device, torch.bfloat16, enabled=is_bfloat16_supported(device)):
            classes, words = compute_logits(model, ids, mask, sides)
        loss = compute_loss(classes, words, allowed, wrong, targets, recipe)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
        keep = min(recipe.averaging, (1 + step) / (10 + step))
        with torch.no_grad():
            torch._foreach_lerp_(averaged, [p.detach() for p in trainable], 1 - keep)
        seen += len(batch.rows)
        if step % 100 == 0:
            last_loss = float(loss.detach())
            pace = seen / (time.monotonic() - started)
            if time.monotonic() - last_report > 15:
                last_report = time.monotonic()
                progress = f"{seen}/{recipe.views} loss {last_loss:.3f}"
                _write_line(f"{progress} {pace:.0f} pairs/s share {share:.2f}")
    with torch.no_grad():
        for parameter, average in zip(trainable, averaged, strict=True):
            parameter.copy_(average)
    _write_line(f"{seen} views in {time.monotonic() - started:.0f} s, loss {last_loss:.3f}")


def predict_probabilities(
    model: Any, encoded: EncodedPairs, *, device: str = "cpu", workers: int = 0, tokens: int = 8192
) -> Floats:
    """Return the class probabilities of each pair in order, (n, 3)."""
    import torch

    model.to(device).eval()
    order = np.argsort(encoded.lengths, kind="stable").tolist()
    batches = fill_batches(order, encoded.lengths, tokens)
    probabilities = np.zeros((len(encoded.pairs), 3), np.float32)
    for batch in iterate_batches(encoded, batches, workers):
        parts = (batch.ids, batch.mask, batch.sides)
        ids, mask, sides = (torch.from_numpy(part).to(device) for part in parts)
        with (
            torch.no_grad(),
            torch.autocast(device, torch.bfloat16, enabled=is_bfloat16_supported(device)),
        ):
            classes, _ = compute_logits(model, ids, mask, sides)
        probabilities[batch.rows] = torch.softmax(classes, dim=-1).cpu().numpy()
    return probabilities


def average_teachers(told: Sequence[Floats]) -> Floats:
    """Return the readers' normalised geometric mean, (n, 3); rows of zeros are ignored."""
    weights = [(reader.sum(axis=1, keepdims=True) > 0).astype(np.float32) for reader in told]
    logs = sum(
        np.log(np.clip(reader, 1e-5, 1)) * w for reader, w in zip(told, weights, strict=True)
    )
    shares = np.exp(logs / np.maximum(1, sum(weights)))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True), dtype=np.float32)


def measure_by_set(
    pairs: Sequence[Any], wrong: npt.NDArray[np.float64]
) -> dict[str, dict[str, float]]:
    """Return by set and language: rows, AUROC of not supported, balanced accuracy at one half."""
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    by_set: dict[str, list[int]] = defaultdict(list)
    for place, pair in enumerate(pairs):
        by_set[f"{pair.name}.{pair.language}"].append(place)
    figures = {}
    for name, places in sorted(by_set.items()):
        gold, p = np.array([pairs[i].allowed[0] == 0 for i in places]), wrong[places]
        if gold.any() and not gold.all():
            auroc, balanced = roc_auc_score(gold, p), balanced_accuracy_score(gold, p >= 0.5)
            scores = {"auroc": round(float(auroc), 3), "balanced": round(float(balanced), 3)}
            figures[name] = {"n": len(places), **scores}
    return figures


def print_figures(found: dict[str, dict[str, float]]) -> None:
    """Write a line for each set to stderr, and the means over all and over the English sets."""
    for name, line in found.items():
        _write_line(f"  {name} {line['n']} {line['auroc']} {line['balanced']}")
    mean = np.mean([line["auroc"] for line in found.values()])
    english = np.mean([line["auroc"] for name, line in found.items() if name.endswith(".en")])
    _write_line(f"  mean AUROC {mean:.4f}, of English sets {english:.4f}")


def save_weights(model: Any, path: Path, kept: Callable[[str], bool]) -> None:
    """Write the weights whose names `kept` accepts, as float16 safetensors."""
    import torch
    from safetensors.torch import save_file

    state = {n: v.to("cpu", torch.float16).contiguous() for n, v in model.state_dict().items()}
    save_file({name: value for name, value in state.items() if kept(name)}, path)


def load_weights(model: Any, path: Path) -> None:
    """Load weights that `save` wrote into the model; weights not in the file stay unchanged."""
    from safetensors.torch import load_file

    model.load_state_dict({n: v.float() for n, v in load_file(path).items()}, strict=False)


def _write_line(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
