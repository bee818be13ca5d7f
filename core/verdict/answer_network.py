"""A small feed-forward network in plain arrays: a number for each answer from its features.

The reward model and the policy of a learned consensus are both of this form (SC-MAKS 3.5). It is
trained in `core/learning` and applied here with numpy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError

Numbers = npt.NDArray[np.float64]
SCHEMA = 1


@dataclass(frozen=True)
class AnswerNetwork:
    """score = out · tanh(Wx + b) + shift, over x = (value - centre) / scale, 0 where not known.

    `names` are the d features; `hidden` is (d, h), `hidden_shift` and `out` are (h,).
    """

    names: tuple[str, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    hidden: tuple[tuple[float, ...], ...]
    hidden_shift: tuple[float, ...]
    out: tuple[float, ...]
    shift: float
    schema: int = SCHEMA

    def scores(self, features: Numbers) -> Numbers:
        """(...,) one number for each row of (..., d) features."""
        level = scaled(features, np.array(self.centres), np.array(self.scales))
        inner = np.tanh(level @ np.array(self.hidden) + np.array(self.hidden_shift))
        found: Numbers = inner @ np.array(self.out) + self.shift
        return found

    def to_plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def network_from(plain: Any, names: Sequence[str]) -> AnswerNetwork:
    """The network that `to_plain` made.

    Raises:
        ConfigError: it reads other features, is of another schema, or its numbers do not fit.
    """
    import msgspec

    try:
        found = msgspec.convert(plain, type=AnswerNetwork)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"Expected a network of answers, found none: {error}.") from error
    wide, high = len(found.names), len(found.hidden_shift)
    rows = {len(row) for row in found.hidden}
    sizes = {len(found.centres), len(found.scales), len(found.hidden)}
    is_whole = sizes == {wide} and rows <= {high} and len(found.out) == high
    numbers = (*found.centres, *found.scales, *found.hidden_shift, *found.out, found.shift)
    is_finite = bool(np.isfinite([*numbers, *(v for row in found.hidden for v in row)]).all())
    if found.schema != SCHEMA or found.names != tuple(names) or not (is_whole and is_finite):
        raise ConfigError("Expected a network of this version's features; learn the weights anew.")
    return found


def scaled(features: Numbers, centres: Numbers, scales: Numbers) -> Numbers:
    """Features at a common scale; what is not known becomes the mean, which is 0."""
    found: Numbers = np.nan_to_num((features - centres) / scales, nan=0.0)
    return found


def softmax(scores: Numbers, is_there: npt.NDArray[np.bool_]) -> Numbers:
    """Along the last axis over those who are there: weights that sum to 1, 0 for all others."""
    held = np.where(is_there, scores, -np.inf)
    top = np.max(held, axis=-1, keepdims=True)
    raised = np.exp(held - np.where(np.isfinite(top), top, 0.0))
    whole = raised.sum(axis=-1, keepdims=True)
    found: Numbers = raised / np.where(whole > 0.0, whole, 1.0)
    return found
