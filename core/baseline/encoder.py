"""The sentence encoder of the built-in engine: multilingual-e5-small, int8, about 100 languages.

`python -m core.baseline.encoder` makes it at set-up from the packed weights: the tokenizer and an
int8 ONNX graph over `vectors` (1, length, width), with a card that holds its digest. A text's
vector is the mean of its tokens'; its authors advise the prefix "query: " for symmetric tasks.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.baseline.tokenizer import (
    BEGIN_ID,
    END_ID,
    MAX_POSITIONS,
    MAX_TOKENS,
    PAD_ID,
    TOKENIZER_FILE,
    WEIGHTS_SHA256,
    PackedModel,
    build_tokenizer,
    find_weights_file,
    load_vocabulary,
    open_packed_model,
)
from core.llm.export import packages, sha256_of
from core.runtime.concurrency import (
    StopSignal,
    cache_load,
    choose_product_precision,
    count_threads,
)
from core.runtime.config import E5_DIR
from core.runtime.errors import ConfigError, ReviewError

CARD_FILE = "card.json"
ENCODER_FILE = "encoder.onnx"
EXPORTER_VERSION = 1
QUERY_PREFIX = "query: "
MAX_ENCODER_THREADS = 4
FloatMatrix = npt.NDArray[np.float32]


def build_bert(packed: PackedModel) -> Any:
    """Return a transformers BertModel with the packed weights, in evaluation mode, no pooler."""
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=packed.vocabulary,
        hidden_size=packed.width,
        num_hidden_layers=packed.layers,
        num_attention_heads=packed.heads,
        intermediate_size=packed.inner,
        max_position_embeddings=packed.positions,
        type_vocab_size=2,
        layer_norm_eps=1e-12,
        pad_token_id=PAD_ID,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    config._attn_implementation = "eager"  # the exporter and training in bfloat16 need it
    model = BertModel(config, add_pooling_layer=False)
    model.load_state_dict({name: torch.from_numpy(v) for name, v in packed.state().items()})
    return model.eval()


def export_onnx(module: Any, outputs: Sequence[str], path: Path, width: int) -> None:
    """Write a torch module from (1, length, width) vectors to `outputs` as int8 ONNX.

    The nodes' metadata is removed, since it holds paths of this machine.
    """
    import onnx
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic

    length = torch.export.Dim("length", min=2, max=MAX_POSITIONS)
    unquantized = path.with_name("whole.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about its own internals
        torch.onnx.export(
            module.eval(),
            (torch.randn(1, 7, width),),
            str(unquantized),
            dynamo=True,
            external_data=False,
            verbose=False,
            input_names=["vectors"],
            output_names=list(outputs),
            dynamic_shapes=({1: length},),
        )
    graph = onnx.load(str(unquantized))
    del graph.graph.value_info[:]
    for node in graph.graph.node:
        del node.metadata_props[:]
    onnx.save(graph, str(unquantized))
    quantize_dynamic(str(unquantized), str(path), per_channel=True, weight_type=QuantType.QInt8)
    unquantized.unlink()


def write_card(folder: Path, weights: str, card: Mapping[str, Any]) -> dict[str, Any]:
    """Write the card beside the weights, with their digest and an id that changes with them."""
    digest = sha256_of(folder / weights)
    model_id = f"{card['name']}-{digest[:12]}"
    written = {**card, "id": model_id, "sha256": digest, "packages": packages()}
    text = json.dumps(written, indent=1, ensure_ascii=False) + "\n"
    (folder / CARD_FILE).write_text(text, encoding="utf-8")
    return written


def read_card(folder: Path, weights: str) -> dict[str, Any]:
    """Read a folder's card and check that it describes the weights.

    Raises ConfigError if card or weights are missing, or do not belong together.
    """
    try:
        card: dict[str, Any] = json.loads((folder / CARD_FILE).read_text(encoding="utf-8"))
        digest = sha256_of(folder / weights)
        if digest != card["sha256"]:
            raise ValueError(f"{weights} has sha256 {digest[:12]}…")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"Expected {weights} with its card in {folder}, found: {error}. "
            "Restore the folder, or run `make setup`."
        ) from error
    return card


def open_session(path: Path) -> Any:
    """Open an onnxruntime session that computes in the calling thread only.

    Raises ConfigError if the file is no model.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", choose_product_precision())
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the loader raises undocumented types of its own
        raise ConfigError(f"Expected an ONNX model in {path.name}, found another file.") from error


def is_current(folder: Path) -> bool:
    """Return True if set-up has already made everything from these packed weights."""
    try:
        card = read_card(folder, ENCODER_FILE)
        has_tokenizer = sha256_of(folder / TOKENIZER_FILE) == card["tokenizer_sha256"]
        return has_tokenizer and (card["exporter"], card["from"]) == (
            EXPORTER_VERSION,
            WEIGHTS_SHA256,
        )
    except (ConfigError, OSError, KeyError):
        return False


def write_encoder(out: Path) -> None:
    """Write tokenizer and sentence encoder; the folder appears complete or not at all.

    Raises ConfigError if the package with the packed weights is missing or not the pinned one.
    """
    import torch

    path = find_weights_file()
    if sha256_of(path) != WEIGHTS_SHA256:
        raise ConfigError(f"Expected {path.name} of the pinned package; run `make setup` again.")
    packed = open_packed_model(path)
    model = build_bert(packed)

    class TokenVectors(torch.nn.Module):
        """The encoder without its embedding table: (1, length, width) vectors in and out."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, vectors: Any) -> Any:
            return self.model(inputs_embeds=vectors).last_hidden_state

    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        folder = Path(temporary) / "e5"
        folder.mkdir()
        export_onnx(TokenVectors(), ["hidden"], folder / ENCODER_FILE, packed.width)
        build_tokenizer(packed).save(str(folder / TOKENIZER_FILE), pretty=False)
        card = {
            "name": "multilingual-e5-small",
            "width": packed.width,
            "exporter": EXPORTER_VERSION,
            "from": WEIGHTS_SHA256,
            "tokenizer_sha256": sha256_of(folder / TOKENIZER_FILE),
        }
        write_card(folder, ENCODER_FILE, card)
        shutil.rmtree(out, ignore_errors=True)
        folder.rename(out)


def main() -> int:
    """Make tokenizer and encoder from the packed weights unless they exist."""
    if is_current(E5_DIR):
        return 0
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    try:
        write_encoder(E5_DIR)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


class MultilingualEncoder:
    """An exported encoder; safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        """Load the model. Raises ConfigError if the folder is missing or incomplete."""
        card = read_card(folder, ENCODER_FILE)
        self.id: str = card["id"]
        self.width: int = card["width"]
        self._vocabulary = load_vocabulary(folder)
        self._session = open_session(folder / ENCODER_FILE)
        self._workers = count_threads(MAX_ENCODER_THREADS)

    def encode(self, texts: Sequence[str], stop: StopSignal | None = None) -> FloatMatrix:
        """Return one row a text, (n, width) float32 of unit length."""
        cancel = stop or StopSignal()

        def vector(text: str) -> FloatMatrix:
            cancel.check()
            return self._encode_one(text)

        if len(texts) < 2 or self._workers < 2:
            rows = [vector(text) for text in texts]
        else:
            with ThreadPoolExecutor(self._workers) as pool:
                rows = list(pool.map(vector, texts))
        return np.stack(rows) if rows else np.zeros((0, self.width), np.float32)

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Return (n,) booleans: True where more than a fifth of the tokens are unknown."""
        return np.array([self._vocabulary.is_unknown(text) for text in texts], dtype=bool)

    def _encode_one(self, text: str) -> FloatMatrix:
        """Encode one text alone: int8 activations are scaled over everything in a batch."""
        tokens = self._vocabulary.tokenizer.encode(
            QUERY_PREFIX + text, add_special_tokens=False
        ).ids
        ids = [BEGIN_ID, *tokens[: MAX_TOKENS - 2], END_ID]
        (hidden,) = self._session.run(None, {"vectors": self._vocabulary.vectors_of(ids)})
        mean = hidden[0].mean(axis=0)
        return np.asarray(mean / max(1e-12, float(np.linalg.norm(mean))), dtype=np.float32)


@cache_load
def load_multilingual_encoder(folder: Path = E5_DIR) -> MultilingualEncoder:
    """Load the encoder in that folder, once per process.

    Raises ConfigError if it is missing or incomplete.
    """
    return MultilingualEncoder(folder)


if __name__ == "__main__":
    sys.exit(main())
