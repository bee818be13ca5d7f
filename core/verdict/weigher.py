"""The consensus weights in use, applied to a debate's answers: w(Q; θ) of SC-MAKS 3.2 and 3.5.

Whatever was learned comes to one of two forms, both plain numbers: a fixed weight for each agent
(by its record, or logistic), or a policy that scores every answer by its features with a small
feed-forward network; a softmax makes weights of scores. The reward model is such a network too.
Learned in `core/learning`, applied here with numpy alone; `with_weigher` seats, in a run, the
weights that were in use when it began.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError
from core.records import CONSENSUS, Run, Stance, Turn, rule_digest
from core.roles import LEARNED, CaseView, Roster
from core.seats import RosterSheet
from core.store import Store
from core.store.versions import NONE, read_body
from core.verdict.debate_features import NAMES, answer_features, answers_in, vector
from core.verdict.debate_features import SCHEMA as FEATURES_SCHEMA

Numbers = npt.NDArray[np.float64]
Kind = TypeVar("Kind")
NETWORK_SCHEMA = 1


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
    schema: int = NETWORK_SCHEMA

    def scores(self, features: Numbers) -> Numbers:
        """(...,) one number for each row of (..., d) features."""
        level = scaled(features, np.array(self.centres), np.array(self.scales))
        inner = np.tanh(level @ np.array(self.hidden) + np.array(self.hidden_shift))
        return np.asarray(inner @ np.array(self.out) + self.shift)

    def to_plain(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def converted(plain: Any, kind: type[Kind], words: str) -> Kind:
    """Plain values as a record of that kind.

    Raises:
        ConfigError: they are of another form; `words` says what was expected.
    """
    import msgspec

    try:
        return msgspec.convert(plain, type=kind)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"Expected {words}, found something else: {error}.") from error


def network_from(plain: Any, names: Sequence[str]) -> AnswerNetwork:
    """The network that `to_plain` made.

    Raises:
        ConfigError: it reads other features, is of another schema, or its numbers do not fit.
    """
    found = converted(plain, AnswerNetwork, "a network of answers")
    wide, high = len(found.names), len(found.hidden_shift)
    rows = {len(row) for row in found.hidden}
    sizes = {len(found.centres), len(found.scales), len(found.hidden)}
    is_whole = sizes == {wide} and rows <= {high} and len(found.out) == high
    numbers = (*found.centres, *found.scales, *found.hidden_shift, *found.out, found.shift)
    is_finite = bool(np.isfinite([*numbers, *(v for row in found.hidden for v in row)]).all())
    if (
        found.schema != NETWORK_SCHEMA
        or found.names != tuple(names)
        or not (is_whole and is_finite)
    ):
        raise ConfigError("Expected a network of this version's features; learn the weights anew.")
    return found


def scaled(features: Numbers, centres: Numbers, scales: Numbers) -> Numbers:
    """Features at a common scale; what is not known becomes the mean, which is 0."""
    return np.asarray(np.nan_to_num((features - centres) / scales, nan=0.0))


def softmax(scores: Numbers, is_there: npt.NDArray[np.bool_]) -> Numbers:
    """Along the last axis over those who are there: weights that sum to 1, 0 for all others."""
    held = np.where(is_there, scores, -np.inf)
    top = np.max(held, axis=-1, keepdims=True)
    raised = np.exp(held - np.where(np.isfinite(top), top, 0.0))
    whole = raised.sum(axis=-1, keepdims=True)
    return np.asarray(raised / np.where(whole > 0.0, whole, 1.0))


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
    found = converted(plain, LearnedWeights, "weights of answers")
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
        who, agents = self.seats.get(name), self.learned.agents
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


def with_weigher(roster: Roster, store: Store, run: Run) -> Roster:
    """The roster with the weigher of the run's plan; as it is where nothing learned is in use.

    Raises:
        ConfigError: the weights are not here, or not as they were learned.
    """
    number = run.plan.agent_weights
    if number == NONE:
        return roster
    found = store.learned.get(number)
    if found is None or (found.kind, found.project_id) != (CONSENSUS, run.project_id):
        raise ConfigError(
            f"Expected weights of agents number {number}, with which this run began, found none "
            "here; check the case again, and it goes by what is in use now."
        )
    learned = read_body(found, learned_in)
    if learned is None:
        return roster
    return replace(
        roster, weigher=LearnedWeigher(learned, answerers(roster, run.plan.sheet), number)
    )


def learned_in(body: Mapping[str, Any]) -> LearnedWeights | None:
    """The weights of answers in use; None where none were learned, or there was too little.

    Raises:
        ConfigError: they are of another schema.
    """
    own = body.get("answers", {}).get("weights")
    return weights_from(own) if own else None


def answerers(roster: Roster, sheet: RosterSheet | None) -> dict[str, Answerer]:
    """Who answers under each name of the debate; a built-in agent has no model."""
    models = {role: seat.model for role, seat in sheet.seats()} if sheet else {}
    found = {
        name: Answerer(
            agent.name,
            "" if agent.built_in else models.get(f"debater {name}", ""),
            rule_digest(agent.rule),
        )
        for name, agent in roster.debaters.items()
    }
    count = Counter(found.values())
    return {name: replace(a, seat=name) if count[a] > 1 else a for name, a in found.items()}
