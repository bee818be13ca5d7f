"""The consensus weights in use, applied to a debate's answers: w(Q; θ) of SC-MAKS 3.2 and 3.5.

Whatever was learned comes to one of two forms, both plain numbers: a fixed weight for each agent
(by its record, or logistic), or a policy that scores every answer by its features; a softmax makes
weights of scores. Learned in `core/learning`, kept by `core/store/learned.py` with a checksum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from core.errors import ConfigError
from core.records import Stance, Turn
from core.roles import LEARNED, CaseView
from core.verdict.answer_features import NAMES, answer_features, answers_in, vector
from core.verdict.answer_features import SCHEMA as FEATURES_SCHEMA
from core.verdict.answer_network import AnswerNetwork, network_from, softmax

Method = Literal["uniform", "record", "logistic", "policy"]
METHODS: tuple[Method, ...] = ("uniform", "record", "logistic", "policy")  # the simplest first
STANCES: tuple[Stance, ...] = ("hallucinated", "supported", "unclear")
SCHEMA = 1
DRAWN = 10.0  # an agent's own counts weigh as much as this many answers of all agents
RECORD = "record"
READ = (*NAMES, RECORD)  # what networks read of an answer


@dataclass(frozen=True, order=True)
class Answerer:
    """Who answers: `model` is empty for built-in agents, `rules` the digest of prompts or rules.

    `seat` is the name in the debate, only where two seats are the same agent otherwise.
    """

    name: str
    model: str = ""
    rules: str = ""
    seat: str = ""


@dataclass(frozen=True)
class PastAnswers:
    """How often answers were right, by stance: (right, of n) in the order of `STANCES`."""

    right: tuple[float, float, float]
    n: tuple[float, float, float]

    def log_odds(self, stance: Stance, whole: PastAnswers) -> float:
        """Of being right where it takes that stance, its counts drawn to those of all agents."""
        place = STANCES.index(stance)
        usual = (whole.right[place] + 1.0) / (whole.n[place] + 2.0)
        share = (self.right[place] + DRAWN * usual) / (self.n[place] + DRAWN)
        return math.log(share / (1.0 - share))


NOTHING = PastAnswers((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@dataclass(frozen=True)
class LearnedWeights:
    """What a `Weigher` goes by: `fixed` weights of `agents`, or the `policy` with their `past`.

    `whole` is the past of all agents together. Those who are not among `agents` have no record.
    """

    method: Method
    agents: tuple[Answerer, ...] = ()
    fixed: tuple[float, ...] = ()
    past: tuple[PastAnswers, ...] = ()
    whole: PastAnswers = NOTHING
    policy: AnswerNetwork | None = None
    schema: int = SCHEMA
    features_schema: int = FEATURES_SCHEMA

    def to_plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def weights_from(plain: Any) -> LearnedWeights:
    """The weights that `to_plain` made.

    Raises:
        ConfigError: they are of another schema, or their numbers do not fit together.
    """
    import msgspec

    try:
        found = msgspec.convert(plain, type=LearnedWeights)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"Expected weights of answers, found something else: {error}.") from error
    is_known = (found.schema, found.features_schema) == (SCHEMA, FEATURES_SCHEMA)
    sizes = {len(found.fixed)} if found.method in ("record", "logistic") else {len(found.agents)}
    if found.method == "policy":
        network_from(plain["policy"], READ)
        sizes = {len(found.past)}
    is_sound = all(math.isfinite(weight) and weight >= 0.0 for weight in found.fixed)
    if not is_known or not is_sound or sizes != {len(found.agents)}:
        raise ConfigError(f"Expected weights of schema {SCHEMA}, found others; learn them anew.")
    return found


@dataclass(frozen=True)
class LearnedWeigher:
    """A `Weigher` over learned weights; `seats` says who sits where in this run's debate.

    An agent without a record gets the mean weight of those who have one.
    """

    learned: LearnedWeights
    seats: Mapping[str, Answerer]
    number: int

    @property
    def method(self) -> str:
        """Where the weights come from, with the number under which they are kept."""
        return f"{self.learned.method}{LEARNED}{self.number}"

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of those who sit in the debate and have no record."""
        return tuple(name for name in self.seats if self._place(name) is None)

    def weights(self, view: CaseView, turns: Sequence[Turn]) -> tuple[tuple[str, float], ...]:
        """(debater, weight) for each who answered, in the order of their first answers."""
        answers = answers_in(turns)
        places = [self._place(name) for name in answers]
        own = self._policy(turns, places) if self.learned.policy else self._fixed(places)
        weights = with_the_mean(own, [place is not None for place in places])
        return tuple(zip(answers, weights, strict=True))

    def _place(self, name: str) -> int | None:
        """Which of the learned agents sits there."""
        who = self.seats.get(name)
        agents = self.learned.agents
        if who is None:
            return None
        return agents.index(who) if who in agents else None

    def _fixed(self, places: Sequence[int | None]) -> list[float]:
        if self.learned.method == "uniform":
            return [1.0] * len(places)
        return [0.0 if place is None else self.learned.fixed[place] for place in places]

    def _policy(self, turns: Sequence[Turn], places: Sequence[int | None]) -> list[float]:
        learned, features = self.learned, answer_features(turns)
        answers = answers_in(turns)
        rows = []
        for (name, said), place in zip(answers.items(), places, strict=True):
            past = NOTHING if place is None else learned.past[place]
            odds = past.log_odds(said[-1].stance, learned.whole)
            rows.append((*vector(features[name]), odds))
        if learned.policy is None or not rows:
            return []
        scores = learned.policy.scores(np.array(rows, dtype=np.float64))
        found: list[float] = softmax(scores, np.ones(len(rows), dtype=bool)).tolist()
        return found


def with_the_mean(weights: Sequence[float], is_known: Sequence[bool]) -> list[float]:
    """Weights that sum to 1; who is not known gets the mean of those who are.

    Where nobody is known, or nobody known counts, all count alike.
    """
    known = [weight for weight, is_one in zip(weights, is_known, strict=True) if is_one]
    mean = sum(known) / len(known) if known else 0.0
    if mean <= 0.0:
        return [1.0 / len(weights)] * len(weights) if weights else []
    whole = [w if is_one else mean for w, is_one in zip(weights, is_known, strict=True)]
    total = sum(whole)
    return [weight / total for weight in whole]
