"""Exports a trained entailment reader to ONNX int8, as the folder that `OnnxReader` reads.

Word embeddings are quantized with the rest: they are half of the model. Signed weights by default:
on a processor with VNNI they make 2.7 times the pairs of fp32, unsigned ones no more than fp32.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.models.export import WeightType, logits_of, packages, quantize, sha256_of, trace
from core.models.reader import CARD, INPUTS, TOKENIZER, WEIGHTS

FILES = (WEIGHTS, TOKENIZER, CARD)


def export_reader(
    model: Any,
    tokenizer: Path,
    out: Path,
    card: Mapping[str, Any],
    *,
    weight_type: WeightType | None = "QInt8",
    keeps_head: bool = False,
) -> dict[str, Any]:
    """Write `model` (a transformers sequence classifier of three classes) into the folder `out`.

    The classes stand in the reader's order: supported, contradicted, not enough. `weight_type`
    None leaves the weights fp32; `keeps_head` keeps pooler and classifier fp32, which costs 0.6
    MB. `card` must give the `temperature`. Other files in `out` stay as they are. Returns the card
    as written, with `id`, `sha256` and the versions of the packages added.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as made:
        folder = Path(made)
        whole = folder / "whole.onnx"
        trace(logits_of(model), INPUTS, "logits", whole)
        if weight_type is None:
            whole.rename(folder / WEIGHTS)
        else:
            skipped = _head_nodes(whole) if keeps_head else []
            quantize(whole, folder / WEIGHTS, weight_type=weight_type, skipped=skipped)
        shutil.copyfile(tokenizer, folder / TOKENIZER)
        digest = sha256_of(folder / WEIGHTS)
        written = {
            **card,
            "id": f"{card.get('name', 'entailment')}-{digest[:12]}",
            "sha256": digest,
            "tokenizer_sha256": sha256_of(folder / TOKENIZER),
            "temperature": float(card["temperature"]),
            "weights": weight_type or "fp32",
            "packages": packages(),
        }
        (folder / CARD).write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")
        for name in FILES:
            (folder / name).replace(out / name)
    return written


def _head_nodes(whole: Path) -> list[str]:
    """Names of the last two matrix products: pooler and classifier."""
    import onnx

    graph = onnx.load(str(whole), load_external_data=False).graph
    products = [node.name for node in graph.node if node.op_type in ("Gemm", "MatMul")]
    return products[-2:]
