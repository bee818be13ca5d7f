"""The classifier over the judge's text: an encoder and a logistic head stored as plain arrays.

`p_hallucinated = sigmoid(w·z + b)` with `z` the text's embedding; `confidence = max(p, 1 - p)`.
Source: CEDA 3.4 eq. 1 and 3.5. A version is a folder with `head.json`, `card.json` and, when it
was fine-tuned, its own `encoder/`. Nothing is ever unpickled; checksums guard head and card.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from core.config import ENCODER_DIR
from core.errors import ConfigError
from core.models.encoder import Embedder, Matrix, load_encoder
from core.models.export import exported_is_current
from core.records import Judgement, Label, Verdict
from core.store.versions import SEED_VERSION

SEED_FOLDER = Path(__file__).parent / "seed"
SCHEMA = 1
VERSION_ID = re.compile(r"[a-z0-9-]{1,64}")


@dataclass(frozen=True)
class Head:
    """Logistic weights over an embedding: (width,) float64 and the intercept."""

    weights: tuple[float, ...]
    intercept: float

    def probability(self, vectors: Matrix) -> list[float]:
        """p_hallucinated of each row."""
        scores = vectors.astype(np.float64) @ np.asarray(self.weights) + self.intercept
        return [1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, float(s))))) for s in scores]


@dataclass(frozen=True)
class Classifier:
    """A version ready for use; its card says what it learned from and how well."""

    version: str
    head: Head
    encoder: Embedder
    card: dict[str, Any]

    def probability(self, text: str) -> float:
        """p_hallucinated of one verdict text, rounded to 4 digits.

        Texts are embedded one by one: int8 activations are scaled by batch, so a text's vector
        would otherwise depend on its neighbours.
        """
        return round(self.head.probability(self.encoder.encode([text]))[0], 4)

    def verdict(self, judgement: Judgement) -> Verdict:
        """The label that people see, with its probability; unclear stays unclear."""
        if judgement.label == "unclear":
            return Verdict(
                "unclear",
                None,
                None,
                judgement.text,
                judgement.cause,
                judgement.cause_words,
                self.version,
            )
        p = self.probability(judgement.text)
        label: Label = "hallucinated" if p >= 0.5 else "supported"
        confidence = round(max(p, 1.0 - p), 4)
        rationale = judgement.prose or judgement.text
        return Verdict(label, p, confidence, rationale, classifier=self.version)


def checksum(weights: Sequence[float], intercept: float) -> str:
    """Digest of a head's numbers as they are written."""
    return _digest([SCHEMA, list(weights), intercept])


def _digest(value: object) -> str:
    """Of what the value says, not of how the file lays it out."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def save_head(folder: Path, head: Head, card: dict[str, Any]) -> None:
    """Write `head.json` and `card.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    digest = checksum(head.weights, head.intercept)
    body = {
        "schema": SCHEMA,
        "weights": list(head.weights),
        "intercept": head.intercept,
        "sha256": digest,
        "card_sha256": _digest(card),
    }
    (folder / "head.json").write_text(json.dumps(body))
    (folder / "card.json").write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n")


def load_head(folder: Path) -> tuple[Head, dict[str, Any]]:
    """The head and card in a folder.

    Raises:
        ConfigError: they are missing, of another schema, or were changed.
    """
    try:
        body = json.loads((folder / "head.json").read_text())
        card = json.loads((folder / "card.json").read_text())
        head = Head(tuple(float(w) for w in body["weights"]), float(body["intercept"]))
        intact = body["schema"] == SCHEMA and body["sha256"] == checksum(
            head.weights, head.intercept
        )
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"Expected a classifier in {folder}, found none that can be read ({error}). "
            "Activate another version on Retrain."
        ) from error
    if not isinstance(card, dict):
        raise ConfigError(f"Expected a card in {folder}, found {type(card).__name__}.")
    if not intact:
        raise ConfigError(
            f"The classifier in {folder} is not as it was written (checksum differs); it was not "
            "loaded. Activate another version on Retrain."
        )
    # Versions from before cards had a checksum are still there and still good.
    if body.get("card_sha256", _digest(card)) != _digest(card):
        raise ConfigError(
            f"The card in {folder} is not as it was written (checksum differs), so its figures "
            "cannot be shown and it was not loaded. Activate another version on Retrain."
        )
    return head, card


def version_folder(home: Path, version: str) -> Path:
    """Where a version lies; the seed lies in the code."""
    if version == SEED_VERSION:
        return SEED_FOLDER
    if not VERSION_ID.fullmatch(version):
        raise ConfigError(f"“{version}” is not the name of a classifier version.")
    return home / "models" / version


@lru_cache(maxsize=4)
def load_classifier(home: Path, version: str) -> Classifier:
    """A version ready for use, loaded once per process.

    Raises:
        ConfigError: it is missing or was tampered with.
    """
    folder = version_folder(home, version)
    head, card = load_head(folder)
    own = folder / "encoder"
    if own.is_dir() and not exported_is_current(own):
        raise ConfigError(
            f"The encoder in {own} is not as it was written (checksum differs); it was not "
            "loaded. Activate another version on Retrain."
        )
    encoder = load_encoder(own if own.is_dir() else ENCODER_DIR)
    if len(head.weights) != encoder.width:
        raise ConfigError(
            f"Expected a head of {encoder.width} weights in {folder}, found {len(head.weights)}."
        )
    return Classifier(version, head, encoder, card)
