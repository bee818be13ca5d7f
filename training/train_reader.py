"""Train the multilingual reader: `python -m training.train_reader --pairs FILE --base FILE ...`.

multilingual-e5-small is trained as a cross-encoder; the package's word vectors stay fixed, so that
only the layers ship. `--write-base` reduces the package's weights to the pairs' tokens.
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

from core.baseline.tokenizer import Q4_0, find_weights_file, open_packed_model, unpack_q4
from training.reader_training import (
    EncodedPairs,
    PairLayout,
    add_recipe,
    average_teachers,
    build_recipe,
    load_weights,
    measure_by_set,
    predict_probabilities,
    print_figures,
    read_pairs,
    save_weights,
    train_model,
)

BEGIN_ID, PAD_ID, END_ID, MASK_ID = 0, 1, 2, 250_001
WORD_VECTORS = "embeddings.word_embeddings.weight"
DROPOUT = 0.1
HEAD_COUNT = 12
RECIPE_OPTIONS = ("views", "minutes", "rate", "seed", "tokens_per_batch", "averaging")


def write_base(pairs: Path, out: Path) -> None:
    """Write the package's weights, reduced to the pairs' tokens; matrices stay as 4-bit blocks."""
    from core.baseline.tokenizer import MATRIX_NAMES, build_tokenizer

    packed = open_packed_model(find_weights_file())
    tokenizer = build_tokenizer(packed)
    used = np.zeros(packed.vocabulary, bool)
    used[[BEGIN_ID, PAD_ID, END_ID, 3, MASK_ID]] = True
    train_pairs, dev_pairs = read_pairs(pairs)
    texts = list({t for pair in (*train_pairs, *dev_pairs) for t in (pair.evidence, pair.claim)})
    for begin in range(0, len(texts), 4096):
        for item in tokenizer.encode_batch(texts[begin : begin + 4096], add_special_tokens=False):
            used[item.ids] = True
    kept = np.flatnonzero(used)
    arrays: dict[str, npt.NDArray[Any]] = {"kept": kept.astype(np.int32)}
    words = packed.blocks("emb.word").reshape(packed.vocabulary, -1)[kept]
    arrays["word_blocks"] = np.frombuffer(words.tobytes(), np.uint8)
    arrays |= packed.state(words=False)
    for layer in range(packed.layers):
        for short, long in MATRIX_NAMES:
            name = f"encoder.layer.{layer}.{long}.weight"
            arrays.pop(name)
            blocks = packed.blocks(f"l{layer}.{short}.w")
            arrays[f"{name}:blocks"] = np.frombuffer(blocks.tobytes(), np.uint8)
    with out.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # its stub has one bool
    tokenizer.save(str(out.with_suffix(".tokenizer.json")), pretty=False)
    sys.stderr.write(f"{len(kept)} of {packed.vocabulary} tokens, {out.stat().st_size} bytes\n")


def read_base(path: Path) -> tuple[dict[str, Any], PairLayout]:
    """Return the encoder's weights by their names in a BertModel, and the layout of its pairs."""
    from tokenizers import Tokenizer

    stored = np.load(path)
    kept, width = stored["kept"], stored["embeddings.LayerNorm.weight"].shape[0]
    state: dict[str, Any] = {}
    for name in (file for file in stored.files if file != "kept"):
        weight_name = WORD_VECTORS if name == "word_blocks" else name.removesuffix(":blocks")
        state[weight_name] = stored[name]
        if weight_name != name:
            is_wide = (
                weight_name.endswith(".output.dense.weight") and ".attention." not in weight_name
            )
            flat = unpack_q4(np.frombuffer(stored[name].tobytes(), Q4_0))
            state[weight_name] = flat.reshape(-1, 4 * width if is_wide else width)
    ids = np.full(MASK_ID + 1, -1, np.int32)
    ids[kept] = np.arange(len(kept), dtype=np.int32)
    tokenizer = Tokenizer.from_file(str(path.with_suffix(".tokenizer.json")))
    begin, pad, end, mask = (int(ids[i]) for i in (BEGIN_ID, PAD_ID, END_ID, MASK_ID))
    return state, PairLayout(tokenizer, begin, (end, end), end, pad, mask, ids=ids)


def make_model(
    state: dict[str, Any], seed: int, *, attention: str = "sdpa", frozen_layers: int = 0
) -> Any:
    """Return the encoder with new heads; its first `frozen_layers` layers are not trained."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    vocabulary, width = state[WORD_VECTORS].shape
    layers = 1 + max(int(n.split(".")[2]) for n in state if n.startswith("encoder.layer."))
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=HEAD_COUNT,
        intermediate_size=4 * width,
        max_position_embeddings=state["embeddings.position_embeddings.weight"].shape[0],
        type_vocab_size=2,
        layer_norm_eps=1e-12,
        pad_token_id=None,
        hidden_dropout_prob=DROPOUT,
        attention_probs_dropout_prob=0.0,
    )
    config._attn_implementation = attention
    encoder = BertModel(config, add_pooling_layer=False)
    encoder.load_state_dict({name: torch.from_numpy(np.array(v)) for name, v in state.items()})
    encoder.embeddings.word_embeddings.weight.requires_grad_(False)
    if frozen_layers:
        for part in (encoder.embeddings, *encoder.encoder.layer[:frozen_layers]):
            part.requires_grad_(False)
    return add_heads(encoder, width)


def add_heads(encoder: Any, width: int) -> Any:
    """Return the encoder and new heads as the parts that `train` expects."""
    import torch

    heads = {"pooler": width, "classes": 3, "words": 1}
    parts = {name: torch.nn.Linear(width, size) for name, size in heads.items()}
    model = torch.nn.ModuleDict({"encoder": encoder, "drop": torch.nn.Dropout(DROPOUT), **parts})
    model.tells_sides = False
    return model


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and write the weights; `training.export_reader` makes the shipped folder of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True, help="of `training.reader_pairs`")
    parser.add_argument("--base", type=Path, required=True, help="of `--write-base`")
    parser.add_argument("--write-base", action="store_true", help="write it and stop")
    parser.add_argument("--start", type=Path, help="weights to go on from")
    parser.add_argument("--teach", type=Path, help="write what the model says of every pair")
    parser.add_argument("--teachers", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, help="weights, as safetensors")
    parser.add_argument("--frozen-layers", type=int, default=0)
    add_recipe(parser, *RECIPE_OPTIONS)
    options = parser.parse_args(arguments)
    if options.write_base:
        write_base(options.pairs, options.base)
        return 0
    recipe = build_recipe(options, *RECIPE_OPTIONS)
    train_pairs, dev_pairs = read_pairs(options.pairs)
    state, layout = read_base(options.base)
    sys.stderr.write(f"{len(train_pairs)} pairs, {len(dev_pairs)} of dev, {asdict(recipe)}\n")
    encoded, encoded_dev = EncodedPairs(train_pairs, layout), EncodedPairs(dev_pairs, layout)
    model = make_model(state, recipe.seed, frozen_layers=options.frozen_layers)
    if options.start:
        load_weights(model, options.start)
    teachers = (
        average_teachers([np.load(path) for path in options.teachers]) if options.teachers else None
    )
    train_model(
        model, encoded, recipe, device=options.device, workers=options.workers, teachers=teachers
    )
    if options.out:
        save_weights(model, options.out, lambda name: not name.endswith(WORD_VECTORS))
    dev_probabilities = predict_probabilities(
        model, encoded_dev, device=options.device, workers=options.workers
    )
    print_figures(measure_by_set(dev_pairs, 1.0 - dev_probabilities[:, 0].astype(np.float64)))
    if options.teach:
        train_probabilities = predict_probabilities(
            model, encoded, device=options.device, workers=options.workers
        )
        np.save(options.teach, train_probabilities.astype(np.float32))
        np.save(options.teach.with_suffix(".dev.npy"), dev_probabilities)
    return 0


if __name__ == "__main__":
    sys.exit(main())
