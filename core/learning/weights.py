"""Fitted weights of agents in plain numbers: what each one's word adds to the log-odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from core.errors import ConfigError
from core.learning.votes import UNCLEAR, Numbers, Places
from core.verdict.head import sigmoid

Weighting = Literal["uniform", "history", "stack"]
WEIGHTINGS: tuple[Weighting, ...] = get_args(Weighting)  # the simplest first
SCHEMA = 1
STATES = 4  # said hallucinated, supported, unclear, nothing


@dataclass(frozen=True)
class Weights:
    """A fitted weighting in plain numbers: log-odds of being hallucinated.

    `table` is (kinds + 1, agents, 4): what it adds that the agent said hallucinated, supported,
    unclear, nothing; its last kind serves kinds that were not seen. `offsets` (kinds + 1) are added
    too. Where `is_mean`, the agents' sum is divided by how many spoke. `coefficients` belong to the
    features, taken as (value - centre) / scale, 0 where not known.
    """

    weighting: Weighting
    agents: tuple[str, ...]
    kinds: tuple[str, ...]
    intercept: float
    offsets: tuple[float, ...]
    table: tuple[tuple[tuple[float, ...], ...], ...]
    is_mean: bool = False
    names: tuple[str, ...] = ()
    centres: tuple[float, ...] = ()
    scales: tuple[float, ...] = ()
    coefficients: tuple[float, ...] = ()
    schema: int = SCHEMA

    def p(self, said: Numbers, kinds: Sequence[str], features: Numbers | None = None) -> Numbers:
        """(n,) the probability of being hallucinated, strictly inside 0 and 1.

        `said` is (n, agents) in the order of `agents`; `features` (n, names), or None if unknown.
        """
        logit = self.intercept + self.parts(said, kinds).sum(axis=1)
        logit = logit + np.array(self.offsets)[self._kind_places(kinds)]
        if features is not None and self.names:
            given = (features - np.array(self.centres)) / np.array(self.scales)
            logit = logit + np.nan_to_num(given, nan=0.0) @ np.array(self.coefficients)
        return sigmoid(logit)

    def parts(self, said: Numbers, kinds: Sequence[str]) -> Numbers:
        """(n, agents) what each agent's word adds in log-odds."""
        table = np.array(self.table)[self._kind_places(kinds)]  # (n, agents, 4)
        added: Numbers = (table * states_of(said)).sum(axis=2)
        if self.is_mean:
            added = added / np.maximum(1, (~np.isnan(said)).sum(axis=1, keepdims=True))
        return added

    def _kind_places(self, kinds: Sequence[str]) -> Places:
        place = {kind: number for number, kind in enumerate(self.kinds)}
        return np.array([place.get(kind, len(self.kinds)) for kind in kinds], dtype=np.int64)

    def to_plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def weights_from(plain: Any) -> Weights:
    """The weights that `to_plain` made.

    Raises:
        ConfigError: it is of another schema, or its numbers do not fit together.
    """
    import msgspec

    try:
        found = msgspec.convert(plain, type=Weights)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"Expected weights of agents, found something else: {error}.") from error
    shape = (len(found.kinds) + 1, len(found.agents), STATES)
    sizes = {len(found.names), len(found.centres), len(found.scales), len(found.coefficients)}
    table = np.array(found.table, dtype=np.float64) if found.agents else np.zeros(shape)
    is_whole = found.schema == SCHEMA and table.shape == shape and len(sizes) == 1
    if not is_whole or len(found.offsets) != shape[0]:
        raise ConfigError(
            f"Expected weights of agents of schema {SCHEMA}, found others; learn them anew."
        )
    return found


def states_of(said: Numbers) -> Numbers:
    """(n, agents, 4) shares of having said hallucinated, supported, unclear, nothing."""
    silent = np.isnan(said)
    unclear = said == UNCLEAR
    decided = ~silent & ~unclear
    p = np.where(decided, said, 0.0)
    return np.stack([p, np.where(decided, 1.0 - p, 0.0), unclear, silent], axis=2).astype(
        np.float64
    )
