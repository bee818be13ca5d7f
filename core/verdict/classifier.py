"""The classifier over the judge's text: an encoder and a logistic head stored as plain arrays.

`p_hallucinated = sigmoid(g·(w·z + b) + a·logit(p_judge))` with `z` the text's embedding and
`p_judge` the judge's own probability; where it gives none, `sigmoid(w·z + b)`.
`confidence = max(p, 1 - p)`. Source: CEDA 3.4 eq. 1 and 3.5, which have no `p_judge`: a text hardly
tells 0.6 from 0.9, which the judge knows, and says the same again where it is made from it.
A version is a folder with `head.json`, `card.json` and, when it was fine-tuned, its own
`encoder/`. Nothing is ever unpickled; checksums guard head and card.
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
SCHEMA = 3
# Schemas of versions from before texts had a gain, and before the judge gave a probability.
WITHOUT_GAIN, WITHOUT_JUDGE = 2, 1
KNOWN = (WITHOUT_JUDGE, WITHOUT_GAIN, SCHEMA)
SUREST = 0.999  # nothing said by one judge counts for more
VERSION_ID = re.compile(r"[a-z0-9-]{1,64}")


@dataclass(frozen=True)
class Head:
    """Logistic weights over an embedding: (width,) float64, the intercept, the judge's weight.

    `text_gain` is how much of what the text says counts where the judge gave a probability.
    """

    weights: tuple[float, ...]
    intercept: float
    judge_weight: float = 0.0
    text_gain: float = 1.0

    def probability(
        self, vectors: Matrix, judged: Sequence[float | None] | None = None
    ) -> list[float]:
        """p_hallucinated of each row; `judged` holds the judge's own p for each, None for none."""
        given = judged or [None] * len(vectors)
        scores = vectors.astype(np.float64) @ np.asarray(self.weights) + self.intercept
        scores *= np.asarray([1.0 if p is None else self.text_gain for p in given])
        scores += self.judge_weight * np.asarray([logit_of(p) for p in given])
        return [1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, float(s))))) for s in scores]


def logit_of(p: float | None) -> float:
    """The judge's p as the head takes it; 0, no leaning, where the judge gave none."""
    if p is None:
        return 0.0
    bounded = max(1.0 - SUREST, min(SUREST, p))
    return math.log(bounded / (1.0 - bounded))


@dataclass(frozen=True)
class Classifier:
    """A version ready for use; its card says what it learned from and how well."""

    version: str
    head: Head
    encoder: Embedder
    card: dict[str, Any]

    def probability(self, text: str, judged: float | None = None) -> float:
        """p_hallucinated of one verdict text with the judge's own p, rounded to 4 digits.

        Texts are embedded one by one: int8 activations are scaled by batch, so a text's vector
        would otherwise depend on its neighbours.
        """
        return round(self.head.probability(self.encoder.encode([text]), [judged])[0], 4)

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
        p = self.probability(judgement.text, judgement.p)
        label: Label = "hallucinated" if p >= 0.5 else "supported"
        confidence = round(max(p, 1.0 - p), 4)
        rationale = judgement.prose or judgement.text
        return Verdict(label, p, confidence, rationale, classifier=self.version)


def checksum(head: Head, schema: int = SCHEMA) -> str:
    """Digest of a head's numbers as they are written under that schema."""
    numbers: list[object] = [schema, list(head.weights), head.intercept]
    numbers += [head.judge_weight] * (schema > WITHOUT_JUDGE)
    numbers += [head.text_gain] * (schema > WITHOUT_GAIN)
    return _digest(numbers)


def _digest(value: object) -> str:
    """Of what the value says, not of how the file lays it out."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def save_head(folder: Path, head: Head, card: dict[str, Any]) -> None:
    """Write `head.json` and `card.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    body = {
        "schema": SCHEMA,
        "weights": list(head.weights),
        "intercept": head.intercept,
        "judge_weight": head.judge_weight,
        "text_gain": head.text_gain,
        "sha256": checksum(head),
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
        head, schema = _head(body), body["schema"]
        intact = schema in KNOWN and body["sha256"] == checksum(head, schema)
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


def _head(body: dict[str, Any]) -> Head:
    """The head that a file says; of an older schema, without what that did not know."""
    weights = tuple(float(w) for w in body["weights"])
    judge = float(body["judge_weight"]) if body["schema"] > WITHOUT_JUDGE else 0.0
    gain = float(body["text_gain"]) if body["schema"] > WITHOUT_GAIN else 1.0
    return Head(weights, float(body["intercept"]), judge, gain)


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
