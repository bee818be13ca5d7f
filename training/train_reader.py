"""Trains the reader that ships: `python -m training.train_reader --pairs FILE --base FILE ...`.

multilingual-e5-small as a cross-encoder; the word vectors stay as they are in the package, so that
only the layers ship. `--write-base` cuts the package's weights down to the pairs' tokens.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.baseline.tokens import Q4_0, open_packed, unpack, weights_file
from training.reader_training import (
    EncodedPairs,
    Layout,
    add_recipe,
    figures_of,
    load_weights,
    mean_of,
    probabilities,
    read_pairs,
    recipe_of,
    save,
    show,
    train,
)

BEGIN, PAD, END, MASK = 0, 1, 2, 250_001
WORDS = "embeddings.word_embeddings.weight"
DROPOUT = 0.1
HEADS = 12
SETTINGS = ("views", "minutes", "rate", "seed", "tokens_per_batch", "averaging")


def write_base(pairs: Path, out: Path) -> None:
    """The package's weights, cut down to the pairs' tokens; matrices as their 4-bit blocks."""
    from core.baseline.tokens import MATRICES, build_tokenizer

    packed = open_packed(weights_file())
    tokenizer = build_tokenizer(packed)
    used = np.zeros(packed.vocabulary, bool)
    used[[BEGIN, PAD, END, 3, MASK]] = True
    seen, dev = read_pairs(pairs)
    texts = list({t for pair in (*seen, *dev) for t in (pair.evidence, pair.claim)})
    for begin in range(0, len(texts), 4096):
        for item in tokenizer.encode_batch(texts[begin : begin + 4096], add_special_tokens=False):
            used[item.ids] = True
    kept = np.flatnonzero(used)
    arrays: dict[str, npt.NDArray[Any]] = {"kept": kept.astype(np.int32)}
    words = packed.blocks("emb.word").reshape(packed.vocabulary, -1)[kept]
    arrays["word_blocks"] = np.frombuffer(words.tobytes(), np.uint8)
    arrays |= packed.state(words=False)
    for layer in range(packed.layers):
        for short, long in MATRICES:
            name = f"encoder.layer.{layer}.{long}.weight"
            arrays.pop(name)
            blocks = packed.blocks(f"l{layer}.{short}.w")
            arrays[f"{name}:blocks"] = np.frombuffer(blocks.tobytes(), np.uint8)
    with out.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # its stub has one bool
    tokenizer.save(str(out.with_suffix(".tokenizer.json")), pretty=False)
    sys.stderr.write(f"{len(kept)} of {packed.vocabulary} tokens, {out.stat().st_size} bytes\n")


def read_base(path: Path) -> tuple[dict[str, Any], Layout]:
    """The encoder's weights by their names in a BertModel, and how it wants a pair."""
    from tokenizers import Tokenizer

    held = np.load(path)
    kept, width = held["kept"], held["embeddings.LayerNorm.weight"].shape[0]
    state: dict[str, Any] = {}
    for name in (file for file in held.files if file != "kept"):
        own = WORDS if name == "word_blocks" else name.removesuffix(":blocks")
        state[own] = held[name]
        if own != name:
            is_wide = own.endswith(".output.dense.weight") and ".attention." not in own
            flat = unpack(np.frombuffer(held[name].tobytes(), Q4_0))
            state[own] = flat.reshape(-1, 4 * width if is_wide else width)
    ids = np.full(MASK + 1, -1, np.int32)
    ids[kept] = np.arange(len(kept), dtype=np.int32)
    tokenizer = Tokenizer.from_file(str(path.with_suffix(".tokenizer.json")))
    begin, pad, end, mask = (int(ids[i]) for i in (BEGIN, PAD, END, MASK))
    return state, Layout(tokenizer, begin, (end, end), end, pad, mask, ids=ids)


def new_model(
    state: dict[str, Any], seed: int, *, attention: str = "sdpa", frozen_layers: int = 0
) -> Any:
    """The encoder with fresh heads; the first layers stay as they are in the package if asked."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    vocabulary, width = state[WORDS].shape
    layers = 1 + max(int(n.split(".")[2]) for n in state if n.startswith("encoder.layer."))
    config = BertConfig(
        vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers,
        num_attention_heads=HEADS, intermediate_size=4 * width,
        max_position_embeddings=state["embeddings.position_embeddings.weight"].shape[0],
        type_vocab_size=2, layer_norm_eps=1e-12, pad_token_id=None,
        hidden_dropout_prob=DROPOUT, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    config._attn_implementation = attention
    encoder = BertModel(config, add_pooling_layer=False)
    encoder.load_state_dict({name: torch.from_numpy(np.array(v)) for name, v in state.items()})
    encoder.embeddings.word_embeddings.weight.requires_grad_(False)
    if frozen_layers:
        for part in (encoder.embeddings, *encoder.encoder.layer[:frozen_layers]):
            part.requires_grad_(False)
    return with_heads(encoder, width)


def with_heads(encoder: Any, width: int) -> Any:
    """The parts that `train` takes."""
    import torch

    heads = {"pooler": width, "classes": 3, "words": 1}
    parts = {name: torch.nn.Linear(width, size) for name, size in heads.items()}
    model = torch.nn.ModuleDict({"encoder": encoder, "drop": torch.nn.Dropout(DROPOUT), **parts})
    model.tells_sides = False  # type: ignore[assignment]
    return model


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and write the weights; `training.export_reader` makes the folder that ships."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True, help="of `training.reader_pairs`")
    parser.add_argument("--base", type=Path, required=True, help="of `--write-base`")
    parser.add_argument("--write-base", action="store_true", help="write it and stop")
    parser.add_argument("--start", type=Path, help="weights to go on from")
    parser.add_argument("--teach", type=Path, help="write what the model says of every pair")
    parser.add_argument("--teachers", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, help="weights, as safetensors")
    parser.add_argument("--frozen-layers", type=int, default=0)
    add_recipe(parser, *SETTINGS)
    given = parser.parse_args(arguments)
    if given.write_base:
        write_base(given.pairs, given.base)
        return 0
    recipe = recipe_of(given, *SETTINGS)
    seen, dev = read_pairs(given.pairs)
    state, layout = read_base(given.base)
    sys.stderr.write(f"{len(seen)} pairs, {len(dev)} of dev, {asdict(recipe)}\n")
    encoded, shown = EncodedPairs(seen, layout), EncodedPairs(dev, layout)
    model = new_model(state, recipe.seed, frozen_layers=given.frozen_layers)
    if given.start:
        load_weights(model, given.start)
    teachers = mean_of([np.load(path) for path in given.teachers]) if given.teachers else None
    train(model, encoded, recipe, device=given.device, workers=given.workers, teachers=teachers)
    if given.out:
        save(model, given.out, lambda name: not name.endswith(WORDS))
    found = probabilities(model, shown, device=given.device, workers=given.workers)
    show(figures_of(dev, 1.0 - found[:, 0].astype(np.float64)))
    if given.teach:
        told = probabilities(model, encoded, device=given.device, workers=given.workers)
        np.save(given.teach, told.astype(np.float32))
        np.save(given.teach.with_suffix(".dev.npy"), found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
