"""Trains the entailment reader that ships: `python -m core.evaluation.reader_training --path DATA`.

all-MiniLM-L6-v2 as a cross-encoder over (evidence, statement) with three classes. Weights are
averaged over the steps (exponentially), the temperature is fitted on rows of the `calibration`
part, figures are on the `dev` part; the reader is trained on neither. No row is kept.

On two cores half the time goes into fresh memory unless the process keeps what it freed:
`MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=8000000000 GLIBC_TUNABLES=glibc.malloc.hugetlb=1`.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from core.config import ENCODER_DIR, READER_DIR
from core.errors import ReviewError
from core.evaluation.reader_batches import Batch, Recipe, batches, tokenizer_of, views_of
from core.evaluation.reader_card import card_of, note_as_shipped
from core.evaluation.reader_figures import figures, forward, logits_of, temperature_of
from core.evaluation.reader_near import Near
from core.evaluation.reader_pairs import Pair, labelled_pairs
from core.models.encoder import load_encoder
from core.models.export import wheel_folder
from core.models.reader_export import export_reader

LOOKS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8)  # shares of the way at which figures are shown
SHOWN_OF_A_SET = 300
MEASURED_OF_A_SET = 600
MASK_LENGTH = 1 << 24  # values; several times the largest block of a batch
PARTS = ("train", "calibration", "dev")


def new_model(recipe: Recipe) -> Any:
    """MiniLM with a fresh head of three classes; eager attention is twice as fast here in bf16."""
    import torch
    from transformers import AutoModelForSequenceClassification

    torch.manual_seed(recipe.seed)
    model = AutoModelForSequenceClassification.from_pretrained(
        wheel_folder(), num_labels=3, attn_implementation="eager",
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    # The words' own vectors stay: few are seen often, and the rest must still mean the same.
    model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    return model


def drop(model: Any, recipe: Recipe) -> list[Any]:
    """Dropout behind each block of each layer while `model.training`; the hooks, to be removed.

    The usual layer draws anew for each value, which takes longer here than the matrix products; a
    window at a random place of one long drawn mask serves as well.
    """
    import torch

    chance = torch.Generator().manual_seed(recipe.order)
    mask = torch.rand(MASK_LENGTH, generator=chance) >= recipe.dropout
    pool = mask.to(torch.bfloat16) / (1 - recipe.dropout)

    def hook(block: Any, _: Any, out: Any) -> Any:
        if not block.training:
            return out
        begin = int(torch.randint(MASK_LENGTH - out.numel(), (1,), generator=chance))
        return out * pool[begin : begin + out.numel()].view(out.shape)

    blocks = [
        b
        for layer in model.bert.encoder.layer
        for b in (layer.attention.output.dense, layer.output.dense)
    ]
    return [block.register_forward_hook(hook) for block in blocks]


def train(
    model: Any,
    seen: Sequence[Pair],
    tokenizer: Any,
    recipe: Recipe,
    report: Callable[[int, int, float, dict[str, Any]], None],
) -> dict[str, Any]:
    """Train; returns the averaged weights in float32. `report`: done, of, loss, average.

    The model computes in bfloat16 and is left so; the optimizer's own copy stays float32.
    """
    import torch

    exact = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
    average = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.bfloat16()
    hooks = drop(model, recipe)
    free = [p for p in model.parameters() if p.requires_grad]
    weights, averaged = list(exact.values()), [average[name] for name in exact]
    optimizer = torch.optim.AdamW(weights, lr=recipe.rate, weight_decay=recipe.decay, fused=True)
    model.train()
    lost, done = 0.0, 0
    for step, batch in enumerate(batches(seen, tokenizer, recipe)):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate * _schedule(done / len(seen), recipe.warm_up)
        loss = _loss(model, batch)
        model.zero_grad(set_to_none=True)
        loss.backward()
        _move(optimizer, weights, free)
        keep = min(recipe.averaging, (1 + step) / (10 + step))
        with torch.no_grad():
            torch._foreach_lerp_(averaged, weights, 1 - keep)
        lost, done = 0.98 * lost + 0.02 * float(loss.detach()), done + len(batch.allowed)
        if step % 50 == 0:
            report(done, len(seen), lost / (1 - 0.98 ** (step + 1)), average)
    for hook in hooks:
        hook.remove()
    return average


def _loss(model: Any, batch: Batch) -> Any:
    """How unlikely the model finds it that each pair is one of the classes it may be."""
    import torch

    allowed = torch.tensor(batch.allowed, dtype=torch.float32)
    logs = torch.log_softmax(forward(model, batch.ids, batch.mask, batch.kinds), dim=-1)
    return -torch.logsumexp(logs + torch.log(allowed + 1e-9), dim=-1).mean()


def _move(optimizer: Any, weights: list[Any], free: list[Any]) -> None:
    """One step of the exact weights by the model's gradients; the model's own follow."""
    import torch

    for weight, own in zip(weights, free, strict=True):
        weight.grad = own.grad.float()
    torch.nn.utils.clip_grad_norm_(weights, 1.0)
    optimizer.step()
    with torch.no_grad():
        torch._foreach_copy_(free, weights)


def _schedule(share: float, warm_up: float) -> float:
    """Linear up, cosine down to a fiftieth."""
    if share < warm_up:
        return share / warm_up
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (share - warm_up) / (1 - warm_up)))


class Watch:
    """Tells how training goes, and keeps the average so far at each look."""

    def __init__(self, model: Any, tokenizer: Any, dev: Sequence[Pair], kept: Path) -> None:
        self._model, self._tokenizer, self._kept = model, tokenizer, kept
        self._dev = _some_of_each(dev, SHOWN_OF_A_SET)
        self._looks = list(LOOKS)
        self._began = time.monotonic()

    def __call__(self, done: int, of: int, loss: float, average: dict[str, Any]) -> None:
        """A line on stderr; figures at a look."""
        pace = done / (time.monotonic() - self._began)
        sys.stderr.write(f"{done}/{of} loss {loss:.3f} {pace:.0f} pairs/s\n")
        if self._looks and done / of >= self._looks[0]:
            self._looks.pop(0)
            save(average, self._kept)
            now = {name: value.clone() for name, value in self._model.state_dict().items()}
            self._model.load_state_dict(average)
            show(figures(self._dev, logits_of(self._model, self._dev, self._tokenizer)))
            self._model.load_state_dict(now)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train (or average runs that were kept), print the figures, write the reader's folder."""
    given = _given(arguments)
    named = ("views", "rate", "short_share", "made_share", "order")
    recipe = replace(Recipe(), **{name: getattr(given, name) for name in named})
    try:
        parts = {part: list(labelled_pairs(given.path, [part])) for part in PARTS}
        seen = [] if given.mean_of else views_of(parts["train"], recipe, _near(parts, recipe))
        tokenizer = tokenizer_of(wheel_folder())
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    model = new_model(recipe)
    if given.start:
        model.load_state_dict(load(given.start))
    if given.mean_of:
        model.load_state_dict(mean_of([load(path) for path in given.mean_of]))
    else:
        watch = Watch(model, tokenizer, parts["dev"], given.kept)
        average = train(model, seen, tokenizer, recipe, watch)
        model.float().load_state_dict(average)
    save(model.state_dict(), given.kept)
    told = asdict(recipe) | {"history": given.history}
    _write(model, tokenizer, parts, told, given)
    return 0


def _near(parts: Mapping[str, Sequence[Pair]], recipe: Recipe) -> Near:
    return Near(parts["train"], load_encoder(ENCODER_DIR), recipe.order)


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True, help="the folder of the sets' folders")
    parser.add_argument("--out", type=Path, default=READER_DIR)
    parser.add_argument("--kept", type=Path, default=Path("reader.safetensors"))
    parser.add_argument("--views", type=int, default=Recipe.views)
    parser.add_argument("--rate", type=float, default=Recipe.rate)
    parser.add_argument("--short-share", type=float, default=Recipe.short_share)
    parser.add_argument("--made-share", type=float, default=Recipe.made_share)
    parser.add_argument("--order", type=int, default=Recipe.order, help="seed of the views")
    parser.add_argument("--start", type=Path, help="weights of a stage before; go on from there")
    parser.add_argument("--history", default="one stage", help="how the weights came about")
    parser.add_argument("--mean-of", type=Path, nargs="+", help="train nothing; average these")
    return parser.parse_args(arguments)


def _write(
    model: Any,
    tokenizer: Any,
    parts: Mapping[str, Sequence[Pair]],
    recipe: Mapping[str, Any],
    given: argparse.Namespace,
) -> None:
    """Fit the temperature, show the figures, write the reader with its card."""
    calibration = _some_of_each(parts["calibration"], MEASURED_OF_A_SET)
    heat = temperature_of(calibration, logits_of(model, calibration, tokenizer))
    dev = _some_of_each(parts["dev"], MEASURED_OF_A_SET)
    found = figures(dev, logits_of(model, dev, tokenizer))
    show(found)
    card = card_of(given.path, recipe, parts, found, heat)
    export_reader(model, wheel_folder() / "tokenizer.json", given.out, card)
    show(note_as_shipped(given.out, dev))


def _some_of_each(pairs: Sequence[Pair], most: int) -> list[Pair]:
    """A seeded sample of each set: a large one must not outweigh the others."""
    chance = random.Random(3)
    by_name: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_name[pair.name].append(pair)
    return [pair for own in by_name.values() for pair in chance.sample(own, min(most, len(own)))]


def mean_of(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean of several runs' weights, which reads better than any of them.

    It does so for runs from the same weights and head; source: Wortsman et al. 2022, model soups.
    """
    first = runs[0]
    return {
        name: (sum(run[name].double() for run in runs) / len(runs)).to(value.dtype)
        for name, value in first.items()
    }


def save(weights: dict[str, Any], path: Path) -> None:
    """Write weights as safetensors."""
    from safetensors.torch import save_file

    save_file({name: value.contiguous() for name, value in weights.items()}, path)


def load(path: Path) -> dict[str, Any]:
    """Weights that `save` wrote."""
    from safetensors.torch import load_file

    return dict(load_file(path))


def show(found: dict[str, dict[str, float]]) -> None:
    """A line a set on stderr."""
    for name, line in found.items():
        sys.stderr.write(f"  {name} {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
