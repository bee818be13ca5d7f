"""One calibrated probability from what the readers found: two small logistic models over features.

The first gives the probability that a statement is not supported by the evidence. The second says
of one that is not supported whether the evidence leaves it open, neither for nor against. Each has
weights for statements that the entailment reader can read and others for those where it is muted.
The weights lie beside this file as plain numbers with a checksum and a card of what they were
trained on (core/evaluation/weighing_training.py).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.builtin.alignment import is_vital
from core.builtin.looks import Look
from core.builtin.overlap import stance_of as overlap_stance
from core.builtin.rules import stance_of as rule_stance
from core.errors import ConfigError

WEIGHTS = Path(__file__).parent / "judge_weights.json"
SCHEMA = 1
CLEAR_FROM, SURE_FROM = 0.8, 0.9  # weights of a contrast
WHOLE_FROM = 0.95
# Below these weights public sets bear out a contrast no better than chance: where few of the words
# around them are the same, two names or values mostly belong to different things.
FIRM_FROM = {"name": 0.75, "quantity": 0.8, "date": 0.8}
FARTHEST = 5.0  # log odds beyond which a reader's certainty counts no further
READ = (
    "read_against",
    "read_contrary",
    "read_open",
    "none_carries",
    "together_against",
)
Features = Mapping[str, float]


@dataclass(frozen=True)
class Logistic:
    """A weight for each feature it uses, and the intercept."""

    weights: Mapping[str, float]
    intercept: float

    def score(self, features: Features) -> float:
        """The log odds."""
        return self.intercept + sum(w * features[name] for name, w in self.weights.items())


@dataclass(frozen=True)
class Weights:
    """The models `wrong` and `open`, each for statements read and for those muted; their card."""

    models: Mapping[str, Logistic]
    card: Mapping[str, Any]

    def wrong(self, features: Features) -> float:
        """Log odds that the statement is not supported."""
        return self._of("wrong", features).score(features)

    def left_open(self, features: Features) -> float:
        """P(neither supported nor contradicted), given that it is not supported."""
        return probability(self._of("open", features).score(features))

    def _of(self, what: str, features: Features) -> Logistic:
        return self.models[f"{what}, muted" if features["muted"] else what]


def probability(log_odds: float) -> float:
    """The logistic function, safe at both ends."""
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, log_odds))))


def features_of(look: Look) -> dict[str, float]:
    """Everything about the statement that a weight may be given to."""
    return {
        **_by_entailment(look),
        **_by_rules(look),
        **_by_overlap(look),
        **_by_retrieval(look),
    }


def _by_entailment(look: Look) -> dict[str, float]:
    """What all windows come to, and the one that carries most; nothing where it is mute."""
    reading = look.reading
    if reading.muted or not reading.windows:
        return dict.fromkeys(READ, 0.0) | {"muted": float(reading.muted)}
    values = (
        1.0 - reading.supported,
        reading.contradicted,
        reading.not_enough,
        1.0 - max(window.supported for window in reading.windows),
        1.0 - look.widest_reading.supported,
    )
    return dict(zip(READ, map(_log_odds, values), strict=True)) | {"muted": 0.0}


def _log_odds(p: float) -> float:
    bounded = max(1e-6, min(1.0 - 1e-6, p))
    return max(-FARTHEST, min(FARTHEST, math.log(bounded / (1.0 - bounded))))


def _by_rules(look: Look) -> dict[str, float]:
    """How strong a contrast is, and what is carried without one."""
    stance = rule_stance(look.item)
    found = [f.contrast for f in look.item.contradictions]
    strongest = max(found, key=lambda c: c.weight, default=None)
    weight = 0.0
    if stance == "hallucinated":
        weight = strongest.weight if strongest else CLEAR_FROM
    least = FIRM_FROM.get(strongest.kind, 0.0) if strongest else 0.0
    firm = weight if weight >= least else 0.0
    return {
        "contrast": firm,
        "soft_contrast": weight - firm,
        "clear_contrast": float(weight >= CLEAR_FROM),
        "sure_contrast": float(weight >= SURE_FROM),
        "whole_contrast": float(firm > 0.0 and overlap_stance(look.overlap) == "supported"),
        "rules_carry": float(stance == "supported"),
        "rules_carry_all": float(
            stance == "supported" and (look.claim.denied or look.item.coverage >= WHOLE_FROM)
        ),
        "adds_up": float(look.item.adds_up),
    }


def _by_overlap(look: Look) -> dict[str, float]:
    """How much is carried and what is missing; a "no" wants little carried."""
    overlap, denied = look.overlap, look.claim.denied
    missing = () if denied else overlap.missing
    stance = overlap_stance(overlap)
    return {
        "overlap_carries": float(stance == "supported"),
        "overlap_misses": float(stance == "hallucinated"),
        "uncarried": overlap.carried if denied else 1.0 - overlap.carried,
        "uncovered": look.item.coverage if denied else 1.0 - look.item.coverage,
        "missing_values": min(3, sum(is_vital(unit) for unit in missing)) / 3.0,
        "missing_words": min(4, sum(not is_vital(unit) for unit in missing)) / 4.0,
    }


def _by_retrieval(look: Look) -> dict[str, float]:
    """Whether the evidence is about it at all."""
    similarity = look.overlap.similarity
    return {"unlike": 0.0 if similarity is None else 1.0 - similarity}


def checksum(body: Mapping[str, Any]) -> str:
    """Digest of what a weights file says, its own digest apart."""
    told = {name: value for name, value in body.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def save_weights(path: Path, models: Mapping[str, Logistic], card: Mapping[str, Any]) -> None:
    """Write the models and their card."""
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "models": {
            name: {"weights": dict(model.weights), "intercept": model.intercept}
            for name, model in models.items()
        },
        "card": dict(card),
    }
    body["sha256"] = checksum(body)
    path.write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@lru_cache(maxsize=4)
def load_weights(path: Path = WEIGHTS) -> Weights:
    """The judge's weights, read once per process.

    Raises:
        ConfigError: they are missing, of another schema, or were changed.
    """
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        models = {
            str(name): Logistic(
                {str(k): float(w) for k, w in model["weights"].items()}, float(model["intercept"])
            )
            for name, model in body["models"].items()
        }
        is_intact = body["schema"] == SCHEMA and body["sha256"] == checksum(body)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"Expected the built-in judge's weights in {path}, found none that can be read "
            f"({error}). Restore the file from the repository."
        ) from error
    if not is_intact:
        raise ConfigError(
            f"The built-in judge's weights in {path} are not as they were written (checksum "
            "differs); they were not loaded. Restore the file from the repository."
        )
    return Weights(models, body["card"])


def shifted(log_odds: float, statements: int) -> float:
    """A statement's log odds as one of that many.

    The weights were learned on responses of one statement, of which half were wrong. A response of
    ten is not ten times as often wrong: each of its statements is taken to be wrong so rarely that
    before anything is read one response in two is.
    """
    alone = 1.0 - 0.5 ** (1.0 / max(1, statements))
    return log_odds + math.log(alone / (1.0 - alone))


def any_of(probabilities: Sequence[float]) -> float:
    """P(a response is wrong) from its statements' own: it is right when all of them are."""
    return 1.0 - math.prod(1.0 - p for p in probabilities)
