"""Pairs a second that the entailment reader reads, int8 and fp32 with onnxruntime and with torch.

Speed does not depend on what the weights say, so fp32 and torch run MiniLM with a head of random
weights, and so does int8 until trained weights are in their folder. The three take turns in one
run, each reading pairs of its own that it has not seen.
"""

from __future__ import annotations

import logging
import os
import random
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from core.config import READER_DIR
from core.models.export import wheel_folder
from core.models.reader import TOKENIZER, WEIGHTS, OnnxReader
from core.models.reader_export import export_reader

LENGTH = 128
MARKS = 3
STATEMENT = 20
PAIRS = 64
BATCH = 32
WORDS = "the bridge of that town was opened by its mayor in may and closed again after some years"
Pair = tuple[str, str]


def pairs_a_second(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Name to pairs a second, one figure a round; `folder` is for what is made on the way."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    model = _model()
    card = {"temperature": 1.0}
    tokenizer = wheel_folder() / TOKENIZER
    export_reader(model, tokenizer, folder / "fp32", card, weight_type=None)
    small = READER_DIR
    if not (small / WEIGHTS).is_file():
        small = folder / "int8"
        export_reader(model, tokenizer, small, card)
    readers: dict[str, Callable[[Sequence[Pair]], object]] = {
        "int8, onnxruntime": OnnxReader(small).read,
        "fp32, onnxruntime": OnnxReader(folder / "fp32").read,
        "fp32, torch in batches of 32": _torch_reading(model, tokenizer),
    }
    found: dict[str, list[float]] = {name: [] for name in readers}
    for number in range(rounds + 1):
        for place, (name, read) in enumerate(readers.items()):
            pairs = _pairs(random.Random(number * len(readers) + place))
            began = time.perf_counter()
            read(pairs)
            if number:  # the first round warms up
                found[name].append(PAIRS / (time.perf_counter() - began))
    return found


def _model() -> Any:
    """MiniLM with a head for three classes that was never trained."""
    import torch
    from transformers import AutoModelForSequenceClassification
    from transformers.utils import logging as transformers_logging

    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.manual_seed(0)
    torch.set_num_threads(os.cpu_count() or 1)
    return AutoModelForSequenceClassification.from_pretrained(
        wheel_folder(), num_labels=3, attn_implementation="sdpa"
    ).eval()


def _torch_reading(model: Any, tokenizer: Path) -> Callable[[Sequence[Pair]], object]:
    import torch
    from tokenizers import Tokenizer

    made = Tokenizer.from_file(str(tokenizer))
    made.enable_truncation(LENGTH)
    made.no_padding()

    def read(pairs: Sequence[Pair]) -> None:
        with torch.inference_mode():
            for start in range(0, len(pairs), BATCH):
                batch = made.encode_batch(list(pairs[start : start + BATCH]))
                ids = torch.tensor([item.ids for item in batch])
                kinds = torch.tensor([item.type_ids for item in batch])
                assert ids.shape == (BATCH, LENGTH), ids.shape
                model(input_ids=ids, attention_mask=torch.ones_like(ids), token_type_ids=kinds)

    return read


def _pairs(chance: random.Random) -> list[Pair]:
    """Pairs of LENGTH tokens, marks counted; every word is one token."""

    def text(length: int) -> str:
        return " ".join(chance.choices(WORDS.split(), k=length))

    return [(text(LENGTH - MARKS - STATEMENT), text(STATEMENT)) for _ in range(PAIRS)]
