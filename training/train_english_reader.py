"""Trains the English reader further: `python -m training.train_english_reader --pairs FILE ...`.

MiniLM as a cross-encoder on the English pairs, from the int8 weights that ship. What is written
(`--out`) takes the place of `core/baseline/weights/english`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from core.baseline.entailment import ENGLISH_DIR, MODEL, TOKENIZER, OnnxReader, write_model
from core.baseline.export import write_card
from training.export_reader import figures_as_shipped, temperature_of, trained_on
from training.pairs import shared_pairs
from training.reader_pairs import SHOWN_OF_A_SET, labelled_pairs, sample_of
from training.reader_training import (
    EncodedPairs,
    Layout,
    add_recipe,
    figures_of,
    probabilities,
    read_pairs,
    recipe_of,
    show,
    train,
)
from training.train_reader import with_heads

PAD, BEGIN, END, MASK = 0, 101, 102, 103
VOCABULARY, WIDTH, LAYERS, HEADS = 30522, 384, 6, 12
DROPOUT = 0.1
SETTINGS = ("views", "minutes", "rate", "tokens_per_batch", "seed")
MATRICES = (
    "attention.self.query", "attention.self.key", "attention.self.value",
    "attention.output.dense", "intermediate.dense", "output.dense",
)  # fmt: skip
NUMBERED = re.compile(r"(?:val|onnx::MatMul)_(\d+)_quantized")
"""How exporters name the layers' matrices, in the order in which they are used."""


def english_layout(folder: Path = ENGLISH_DIR) -> Layout:
    """The layout in which the English reader reads pairs."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return Layout(tokenizer, BEGIN, (END,), END, PAD, MASK)


def shipped_weights(folder: Path = ENGLISH_DIR) -> dict[str, Any]:
    """The int8 weights of the folder as float32, by their names in a BERT classifier."""
    import onnx
    import torch
    from onnx import numpy_helper

    graph = onnx.load(str(folder / MODEL)).graph
    held = {one.name: numpy_helper.to_array(one) for one in graph.initializer}

    def restored(name: str) -> Any:
        levels = held[f"{name}_quantized"].astype(np.float32)
        zero = held[f"{name}_zero_point"].astype(np.float32)
        return (levels - zero) * held[f"{name}_scale"]

    state = {
        name.removeprefix("model."): value
        for name, value in held.items()
        if name.startswith("model.") and value.dtype == np.float32 and not name.endswith("_scale")
    }
    for table in ("word", "token_type", "position"):
        name = f"bert.embeddings.{table}_embeddings.weight"
        state[name] = restored(f"model.{name}")
    for name in ("bert.pooler.dense.weight", "classifier.weight"):
        state[name] = restored(f"model.{name}").T
    numbered = {int(match[1]): name for name in held if (match := NUMBERED.fullmatch(name))}
    for place, number in enumerate(sorted(numbered)):
        layer, matrix = divmod(place, len(MATRICES))
        name = f"bert.encoder.layer.{layer}.{MATRICES[matrix]}.weight"
        state[name] = restored(numbered[number].removesuffix("_quantized")).T
    return {name: torch.from_numpy(np.array(value)) for name, value in state.items()}


def new_classifier() -> Any:
    """A BERT classifier of the reader's shape."""
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, intermediate_size=4 * WIDTH, num_labels=3,
        attn_implementation="eager", hidden_dropout_prob=DROPOUT, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    return BertForSequenceClassification(config).eval()


def trainable(classifier: Any) -> Any:
    """The classifier's parts as `train` takes them; the words' head is for training alone."""
    model = with_heads(classifier.bert, WIDTH)
    model["pooler"], model["classes"] = classifier.bert.pooler.dense, classifier.classifier
    classifier.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    model.tells_sides = True
    return model


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, and write weights, tokenizer and card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=Path, required=True, help="of `training.reader_pairs`")
    parser.add_argument("--shared", type=Path, required=True, help="the folder of the shared sets")
    parser.add_argument("--collected", type=Path, help="of `training.collect`")
    words = "of the trained weights in their mean with those that training began from"
    parser.add_argument("--share", type=float, default=0.45, help=words)
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    add_recipe(parser, *SETTINGS)
    given = parser.parse_args(arguments)
    recipe = recipe_of(given, *SETTINGS)
    seen, dev = ([p for p in part if p.language == "en"] for part in read_pairs(given.pairs))
    layout, classifier = english_layout(), new_classifier()
    classifier.load_state_dict(shipped_weights())
    model = trainable(classifier)
    encoded = EncodedPairs(seen, layout)
    train(model, encoded, recipe, device=given.device, workers=given.workers)
    classifier.cpu().load_state_dict(mean_weights(classifier.state_dict(), given.share))
    found = probabilities(model, EncodedPairs(dev, layout), device=given.device)
    show(figures_of(dev, 1.0 - found[:, 0].astype(np.float64)))
    given.out.mkdir(parents=True, exist_ok=True)
    write_reader(classifier.cpu(), given.out, {**asdict(recipe), "share": given.share},
                 given.shared, given.collected)  # fmt: skip
    return 0


def mean_weights(trained: dict[str, Any], share: float) -> dict[str, Any]:
    """The trained weights, drawn back to those that ship: what was known is forgotten less."""
    return {
        name: share * trained[name] + (1 - share) * value if value.is_floating_point() else value
        for name, value in shipped_weights().items()
    }


def write_reader(
    classifier: Any, out: Path, recipe: dict[str, Any], shared: Path, collected: Path | None
) -> None:
    """The int8 model with tokenizer and card: its temperature, and how it measures as it ships."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(ENGLISH_DIR / TOKENIZER),
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    old = json.loads((ENGLISH_DIR / "card.json").read_text(encoding="utf-8"))
    write_model(classifier.eval(), tokenizer, old["inputs"], out / MODEL)
    (out / TOKENIZER).write_bytes((ENGLISH_DIR / TOKENIZER).read_bytes())
    earlier = old.get("earlier") or [{"trained_on": [s["set"] for s in old["trained_on"]],
                                      "recipe": old["recipe"]}]  # fmt: skip
    card = {key: value for key, value in old.items() if key not in ("dev", "dev_as_shipped")}
    card |= {"temperature": 1.0, "recipe": recipe, "earlier": earlier}
    card["trained_on"] = trained_on(shared, collected)
    write_card(out, MODEL, card)
    calibration = sample_of(list(shared_pairs(shared, ["calibration"])), SHOWN_OF_A_SET)
    card["temperature"] = temperature_of(OnnxReader(out), calibration)
    write_card(out, MODEL, card)
    _, dev, _ = labelled_pairs(shared, collected)
    english = [pair for pair in dev if pair.language == "en"]
    found = figures_as_shipped(OnnxReader(out), sample_of(english, SHOWN_OF_A_SET))
    write_card(out, MODEL, card | {"dev_as_shipped": found})


if __name__ == "__main__":
    sys.exit(main())
