"""The classifier over the judge's text: an encoder and a logistic head stored as plain arrays.

`confidence = max(p, 1 - p)`. Source: CEDA 3.4 eq. 1 and 3.5. A version's head is `head.py`'s, its
files are `version_files.py`'s; where it was fine-tuned it has an encoder of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.config import ENCODER_DIR
from core.errors import ConfigError
from core.models.encoder import Embedder, load_encoder
from core.records import Judgement, Label, Verdict
from core.verdict.head import Head
from core.verdict.version_files import encoder_in, load_head, version_folder

LEAST = 0.0001  # p is written with four digits and stays strictly between 0 and 1


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
        p = self.head.probability(self.encoder.encode([text]), [judged], [text])[0]
        return min(1.0 - LEAST, max(LEAST, round(p, 4)))

    def verdict(self, judgement: Judgement) -> Verdict:
        """The label that people see, with its probability; unclear stays unclear.

        Where the classifier, which people's corrections teach, comes to another label than the
        judge, the verdict is unclear and says so: headline and reasons never contradict each other.
        What a tool worked out it does not touch.
        """
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
        if judgement.by_tool and judgement.p is not None:
            p = min(1.0 - LEAST, max(LEAST, judgement.p))
        else:
            p = self.probability(judgement.text, judgement.p)
        label: Label = "hallucinated" if p > 0.5 else "supported"
        if p == 0.5:  # it tells nothing, as after a coin was thrown
            label = judgement.label
        if label != judgement.label:
            words = f"The judge calls it {judgement.label}, the classifier {label} (p = {p:.2f})."
            prose = judgement.prose or judgement.text
            return Verdict(
                "unclear", None, None, prose, "classifier_disagrees", words, self.version
            )
        confidence = round(max(p, 1.0 - p), 4)
        rationale = judgement.prose or judgement.text
        return Verdict(label, p, confidence, rationale, classifier=self.version)


@lru_cache(maxsize=4)
def load_classifier(home: Path, version: str) -> Classifier:
    """A version ready for use, loaded once per process.

    Raises:
        ConfigError: it is missing or was tampered with.
    """
    folder = version_folder(home, version)
    head, card = load_head(folder)
    encoder = load_encoder(encoder_in(folder) or ENCODER_DIR)
    if len(head.weights) != encoder.width:
        raise ConfigError(
            f"Expected a head of {encoder.width} weights in {folder}, found {len(head.weights)}."
        )
    return Classifier(version, head, encoder, card)
