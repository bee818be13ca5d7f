"""Fine-tune the English reader: `python -m training.train_english_reader --pairs FILE ...`.

MiniLM is trained as a cross-encoder on the English pairs, starting from the shipped int8 weights.
The folder that it writes (`--out`) replaces `core/baseline/weights/english`.
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

from core.baseline.encoder import write_card
from core.baseline.entailment import (
    ENGLISH_DIR,
    MODEL_FILE,
    TOKENIZER_FILE,
    OnnxReader,
    export_reader_model,
)
from training.export_reader import fit_temperature, list_training_sets, measure_shipped
from training.pairs import load_shared_pairs
from training.reader_pairs import DEV_ROWS_PER_SET, load_labelled_pairs, sample_pairs
from training.reader_training import (
    EncodedPairs,
    PairLayout,
    add_recipe,
    build_recipe,
    measure_by_set,
    predict_probabilities,
    print_figures,
    read_pairs,
    train_model,
)
from training.train_reader import add_heads

PAD_ID, BEGIN_ID, END_ID, MASK_ID = 0, 101, 102, 103
VOCABULARY_SIZE, HIDDEN_SIZE, LAYER_COUNT, HEAD_COUNT = 30522, 384, 6, 12
DROPOUT = 0.1
RECIPE_OPTIONS = ("views", "minutes", "rate", "tokens_per_batch", "seed")
MATRIX_NAMES = (
    "attention.self.query", "attention.self.key", "attention.self.value",
    "attention.output.dense", "intermediate.dense", "output.dense",
)  # fmt: skip
MATRIX_NAME_PATTERN = re.compile(r"(?:val|onnx::MatMul)_(\d+)_quantized")
"""The exporters' names of the layers' matrices; the numbers follow the order of use."""


def load_english_layout(folder: Path = ENGLISH_DIR) -> PairLayout:
    """Return the layout of the English reader's pairs."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return PairLayout(tokenizer, BEGIN_ID, (END_ID,), END_ID, PAD_ID, MASK_ID)


def load_shipped_weights(folder: Path = ENGLISH_DIR) -> dict[str, Any]:
    """Return the folder's int8 weights as float32, by their names in a BERT classifier."""
    import onnx
    import torch
    from onnx import numpy_helper

    graph = onnx.load(str(folder / MODEL_FILE)).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def dequantize(name: str) -> Any:
        levels = tensors[f"{name}_quantized"].astype(np.float32)
        zero = tensors[f"{name}_zero_point"].astype(np.float32)
        return (levels - zero) * tensors[f"{name}_scale"]

    state = {
        name.removeprefix("model."): value
        for name, value in tensors.items()
        if name.startswith("model.") and value.dtype == np.float32 and not name.endswith("_scale")
    }
    for table in ("word", "token_type", "position"):
        name = f"bert.embeddings.{table}_embeddings.weight"
        state[name] = dequantize(f"model.{name}")
    for name in ("bert.pooler.dense.weight", "classifier.weight"):
        state[name] = dequantize(f"model.{name}").T
    numbered = {
        int(match[1]): name for name in tensors if (match := MATRIX_NAME_PATTERN.fullmatch(name))
    }
    for position, number in enumerate(sorted(numbered)):
        layer, matrix = divmod(position, len(MATRIX_NAMES))
        name = f"bert.encoder.layer.{layer}.{MATRIX_NAMES[matrix]}.weight"
        state[name] = dequantize(numbered[number].removesuffix("_quantized")).T
    return {name: torch.from_numpy(np.array(value)) for name, value in state.items()}


def make_classifier() -> Any:
    """Return an untrained BERT classifier with the reader's sizes."""
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=VOCABULARY_SIZE,
        hidden_size=HIDDEN_SIZE,
        num_hidden_layers=LAYER_COUNT,
        num_attention_heads=HEAD_COUNT,
        intermediate_size=4 * HIDDEN_SIZE,
        num_labels=3,
        attn_implementation="eager",
        hidden_dropout_prob=DROPOUT,
        attention_probs_dropout_prob=0.0,
    )
    return BertForSequenceClassification(config).eval()


def make_trainable(classifier: Any) -> Any:
    """Return the classifier's parts as `train` expects them; the word head is only for training."""
    model = add_heads(classifier.bert, HIDDEN_SIZE)
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
    add_recipe(parser, *RECIPE_OPTIONS)
    options = parser.parse_args(arguments)
    recipe = build_recipe(options, *RECIPE_OPTIONS)
    train_pairs, dev_pairs = (
        [p for p in part if p.language == "en"] for part in read_pairs(options.pairs)
    )
    layout, classifier = load_english_layout(), make_classifier()
    classifier.load_state_dict(load_shipped_weights())
    model = make_trainable(classifier)
    encoded = EncodedPairs(train_pairs, layout)
    train_model(model, encoded, recipe, device=options.device, workers=options.workers)
    classifier.cpu().load_state_dict(average_with_shipped(classifier.state_dict(), options.share))
    dev_probabilities = predict_probabilities(
        model, EncodedPairs(dev_pairs, layout), device=options.device
    )
    print_figures(measure_by_set(dev_pairs, 1.0 - dev_probabilities[:, 0].astype(np.float64)))
    options.out.mkdir(parents=True, exist_ok=True)
    settings = {**asdict(recipe), "share": options.share}
    write_reader(classifier.cpu(), options.out, settings, options.shared, options.collected)
    return 0


def average_with_shipped(trained: dict[str, Any], share: float) -> dict[str, Any]:
    """Average the trained with the shipped weights, so that less is forgotten."""
    return {
        name: share * trained[name] + (1 - share) * value if value.is_floating_point() else value
        for name, value in load_shipped_weights().items()
    }


def write_reader(
    classifier: Any, out: Path, recipe: dict[str, Any], shared: Path, collected: Path | None
) -> None:
    """Write the int8 model with its tokenizer, and a card with temperature and figures."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(ENGLISH_DIR / TOKENIZER_FILE),
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )
    old = json.loads((ENGLISH_DIR / "card.json").read_text(encoding="utf-8"))
    export_reader_model(classifier.eval(), tokenizer, old["inputs"], out / MODEL_FILE)
    (out / TOKENIZER_FILE).write_bytes((ENGLISH_DIR / TOKENIZER_FILE).read_bytes())
    old_sets = [source["set"] for source in old["trained_on"]]
    earlier = old.get("earlier") or [{"trained_on": old_sets, "recipe": old["recipe"]}]
    card = {key: value for key, value in old.items() if key not in ("dev", "dev_as_shipped")}
    card |= {"temperature": 1.0, "recipe": recipe, "earlier": earlier}
    card["trained_on"] = list_training_sets(shared, collected)
    write_card(out, MODEL_FILE, card)
    calibration = sample_pairs(list(load_shared_pairs(shared, ["calibration"])), DEV_ROWS_PER_SET)
    card["temperature"] = fit_temperature(OnnxReader(out), calibration)
    write_card(out, MODEL_FILE, card)
    _, dev, _ = load_labelled_pairs(shared, collected)
    english = [pair for pair in dev if pair.language == "en"]
    dev_figures = measure_shipped(OnnxReader(out), sample_pairs(english, DEV_ROWS_PER_SET))
    write_card(out, MODEL_FILE, card | {"dev_as_shipped": dev_figures})


if __name__ == "__main__":
    sys.exit(main())
