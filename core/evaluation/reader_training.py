"""Trains the entailment reader that ships: `python -m core.evaluation.reader_training --path DATA`.

all-MiniLM-L6-v2 as a cross-encoder over (evidence, statement) with three classes. Weights are
averaged over the steps (exponentially), the temperature is fitted on rows of the `calibration`
part, figures are on the `dev` part; the reader is trained on neither. No row is kept.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from core.config import READER_DIR
from core.errors import ReviewError
from core.evaluation.reader_batches import Recipe, batches, tokenizer_of, views_of
from core.evaluation.reader_card import card_of, note_as_shipped
from core.evaluation.reader_figures import figures, forward, logits_of, temperature_of
from core.evaluation.reader_pairs import Pair, labelled_pairs
from core.models.export import wheel_folder
from core.models.reader_export import export_reader

LOOKS = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8)  # shares of the way at which figures are shown
SHOWN_OF_A_SET = 300
MEASURED_OF_A_SET = 600
PARTS = ("train", "calibration", "dev")


def new_model(recipe: Recipe) -> Any:
    """MiniLM with a fresh head of three classes; eager attention is twice as fast here in bf16."""
    import torch
    from transformers import AutoModelForSequenceClassification

    torch.manual_seed(recipe.seed)
    model = AutoModelForSequenceClassification.from_pretrained(
        wheel_folder(),
        num_labels=3,
        attn_implementation="eager",
        hidden_dropout_prob=recipe.dropout,
        attention_probs_dropout_prob=recipe.dropout,
    )
    # The words' own vectors stay: few are seen often, and the rest must still mean the same.
    model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    return model


def train(
    model: Any,
    seen: Sequence[Pair],
    tokenizer: Any,
    recipe: Recipe,
    report: Callable[[int, int, float, dict[str, Any]], None],
) -> dict[str, Any]:
    """Train in place; returns the averaged weights. `report`: done, of, loss, average."""
    import torch

    free = {name: p for name, p in model.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW(
        free.values(), lr=recipe.rate, weight_decay=recipe.decay, fused=True
    )
    average = {name: value.detach().clone() for name, value in model.state_dict().items()}
    model.train()
    lost, done = 0.0, 0
    for step, batch in enumerate(batches(seen, tokenizer, recipe)):
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate * _schedule(done / len(seen), recipe.warm_up)
        allowed = torch.tensor(batch.allowed, dtype=torch.float32)
        logs = torch.log_softmax(forward(model, batch.ids, batch.mask, batch.kinds), dim=-1)
        loss = -torch.logsumexp(logs + torch.log(allowed + 1e-9), dim=-1).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(free.values(), 1.0)
        optimizer.step()
        keep = min(recipe.averaging, (1 + step) / (10 + step))
        with torch.no_grad():
            for name, value in free.items():
                average[name].lerp_(value, 1 - keep)
        lost, done = 0.98 * lost + 0.02 * float(loss.detach()), done + len(allowed)
        if step % 50 == 0:
            report(done, len(seen), lost / (1 - 0.98 ** (step + 1)), average)
    return average


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
    """Train (or take weights that were kept), print the figures, write the reader's folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, required=True, help="the folder of the sets' folders")
    parser.add_argument("--out", type=Path, default=READER_DIR)
    parser.add_argument("--kept", type=Path, default=Path("reader.safetensors"))
    parser.add_argument("--views", type=int, default=Recipe.views)
    parser.add_argument("--rate", type=float, default=Recipe.rate)
    parser.add_argument("--short-share", type=float, default=Recipe.short_share)
    parser.add_argument("--start", type=Path, help="weights of a stage before; go on from there")
    parser.add_argument("--history", default="one stage", help="how the weights came about")
    parser.add_argument("--no-training", action="store_true", help="take the weights of --kept")
    given = parser.parse_args(arguments)
    recipe = replace(Recipe(), views=given.views, rate=given.rate, short_share=given.short_share)
    try:
        parts = {part: list(labelled_pairs(given.path, [part])) for part in PARTS}
        tokenizer = tokenizer_of(wheel_folder(), recipe.longest)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    model = new_model(recipe)
    if given.start or given.no_training:
        model.load_state_dict(load(given.start or given.kept))
    if not given.no_training:
        seen = views_of(parts["train"], recipe)
        watch = Watch(model, tokenizer, parts["dev"], given.kept)
        model.load_state_dict(train(model, seen, tokenizer, recipe, watch))
        save(model.state_dict(), given.kept)
    calibration = _some_of_each(parts["calibration"], MEASURED_OF_A_SET)
    heat = temperature_of(calibration, logits_of(model, calibration, tokenizer))
    dev = _some_of_each(parts["dev"], MEASURED_OF_A_SET)
    found = figures(dev, logits_of(model, dev, tokenizer))
    show(found)
    told = asdict(recipe) | {"history": given.history}
    card = card_of(given.path, told, parts, found, heat)
    export_reader(model, wheel_folder() / "tokenizer.json", given.out, card)
    show(note_as_shipped(given.out, dev))
    return 0


def _some_of_each(pairs: Sequence[Pair], most: int) -> list[Pair]:
    """A seeded sample of each set: a large one must not outweigh the others."""
    chance = random.Random(3)
    by_name: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_name[pair.name].append(pair)
    return [pair for own in by_name.values() for pair in chance.sample(own, min(most, len(own)))]


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
