"""Learned weights of debaters' answers, applied to a debate: w(Q; θ) of SC-MAKS 3.2 and 3.5.

The weights are plain numbers: a fixed weight for each agent, or a policy, which is a small network
that scores every answer by its features (3.5: critiques, revisions, citations). `core/learning`
learns them; this module applies them with numpy alone.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from core.runtime.errors import ConfigError
from core.schema.records import CONSENSUS_KIND, Run, Stance, Turn, hash_rule
from core.schema.roles import LEARNED_WEIGHTS_MARKER, CaseView, Roster
from core.schema.rosters import RosterConfig
from core.schema.run_state import RunState
from core.store import Store
from core.store.versions import NOTHING_LEARNED, parse_body

FEATURES_SCHEMA = 1  # version of the features' names, order and meaning; stored with weights
SIDE_BY_STANCE: Mapping[Stance, float] = {"hallucinated": 1.0, "supported": -1.0, "unclear": 0.0}
RecordType = TypeVar("RecordType")
Features = dict[str, float]


ANSWER_FEATURES = (
    "side", "attacked", "backed", "helped", "denied", "revisions", "towards", "quotes", "verified",
    "not_found", "agreement", "opening_agreement", "confidence", "contradicted", "carried",
)  # fmt: skip
DEBATE_FEATURES = (
    "turns", "rounds", "critiques", "critique_count", "revisions", "revised_towards", "quotes",
    "verified", "fuzzy", "not_found", "agreement", "opening_agreement", "reached_consensus",
    "confidence", "spread", "contradicted", "carried", "missing", "readers_apart", "statements",
    "judge_p",
)  # fmt: skip
FloatArray = npt.NDArray[np.float64]
NETWORK_SCHEMA = 1
Method = Literal["uniform", "record", "logistic", "policy"]
METHODS: tuple[Method, ...] = ("uniform", "record", "logistic", "policy")  # simplest first
STANCES: tuple[Stance, ...] = ("hallucinated", "supported", "unclear")
WEIGHTS_SCHEMA = 1
SHRINKAGE_ANSWERS = 10.0  # the rate of all agents counts as this many answers of each agent
RECORD_FEATURE = "record"
NETWORK_FEATURES = (
    *ANSWER_FEATURES,
    RECORD_FEATURE,
)  # the features of an answer that networks read


def group_answers(turns: Iterable[Turn]) -> dict[str, list[Turn]]:
    """Return each debater's answers in order; debaters come in the order of their first answers."""
    answers: dict[str, list[Turn]] = {}
    for turn in sorted(turns, key=lambda turn: turn.number):
        if turn.assigned is None and turn.about in ("", turn.debater):
            answers.setdefault(turn.debater, []).append(turn)
    return answers


def compute_answer_features(turns: Sequence[Turn]) -> dict[str, Features]:
    """Return the `ANSWER_FEATURES` of every debater who answered; NaN where nothing is known.

    side: 1 if the last answer says hallucinated, -1 supported, 0 unclear.
    attacked, backed: how many turns of others on its answers take another stance, and how many of
        these have a verified quote, each as log(1 + n). In protocols whose turns
        do not say whose answer they are about, a turn that denies the message before is about it.
    helped: log(1 + n) of the turns of others on its answers that take its own stance.
    denied: the share of its own turns that deny the message before.
    revisions: how often its stance changed; towards: its last side minus its first.
    quotes: log(1 + n) of its quotes; verified, not_found: the shares of them with that status.
    agreement, opening_agreement: the share of the others whose last (first) answer takes its last
        (first) stance.
    confidence: the last one it stated.
    contradicted, carried: what its points found in the evidence, as shares of its points.
    """
    answers, critiques = group_answers(turns), _find_critiques(turns)
    return {
        debater: _compute_features(
            own_answers,
            [turn for turn in turns if turn.debater == debater],
            critiques.get(debater, ()),
            [other_answers for other, other_answers in answers.items() if other != debater],
        )
        for debater, own_answers in answers.items()
    }


def _compute_features(
    answers: Sequence[Turn],
    spoken: Sequence[Turn],
    critiques: Sequence[Turn],
    others: Sequence[Sequence[Turn]],
) -> Features:
    first, last = answers[0].stance, answers[-1].stance
    against = [turn for turn in critiques if turn.stance != last]
    quotes = [quote.status for turn in answers for quote in turn.quotes]
    points = [point.finding for turn in answers for point in turn.points]
    confidences = [turn.confidence for turn in answers if turn.confidence is not None]
    changes = sum(a.stance != b.stance for a, b in itertools.pairwise(answers))
    backed = [turn for turn in against if any(q.status == "verified" for q in turn.quotes)]
    return {
        "side": SIDE_BY_STANCE[last],
        "attacked": math.log1p(len(against)),
        "backed": math.log1p(len(backed)),
        "helped": math.log1p(len(critiques) - len(against)),
        "denied": _divide(sum(turn.reply == "deny" for turn in spoken), len(spoken)),
        "revisions": float(changes),
        "towards": SIDE_BY_STANCE[last] - SIDE_BY_STANCE[first],
        "quotes": math.log1p(len(quotes)),
        "verified": _divide(quotes.count("verified"), len(quotes)),
        "not_found": _divide(quotes.count("not_found"), len(quotes)),
        "agreement": _divide(sum(theirs[-1].stance == last for theirs in others), len(others)),
        "opening_agreement": _divide(
            sum(theirs[0].stance == first for theirs in others), len(others)
        ),
        "confidence": confidences[-1] if confidences else math.nan,
        "contradicted": _divide(points.count("contradicted"), len(points)),
        "carried": _divide(points.count("carried"), len(points)),
    }


def _find_critiques(turns: Iterable[Turn]) -> dict[str, list[Turn]]:
    """Return, by debater, the turns of others about its answers (C_ij)."""
    critiques: dict[str, list[Turn]] = {}
    before: Turn | None = None
    for turn in sorted(turns, key=lambda turn: turn.number):
        denied_debater = before.debater if before is not None and turn.reply == "deny" else ""
        target = turn.about or denied_debater
        if target and target != turn.debater:
            critiques.setdefault(target, []).append(turn)
        before = turn
    return critiques


def compute_debate_features(progress: RunState) -> Features:
    """Return the features `DEBATE_FEATURES` of one run.

    A stance counts 1 for hallucinated, -1 for supported, else 0. No feature is a sum of votes:
    those are used already, and would blur which agent counts how much.

    turns, rounds: the number of turns, and of the last round.
    critiques: the share of turns that deny the message before them; critique_count: their number.
    revisions: how often a debater's stance differs from its own previous one.
    revised_towards: the mean of the stance a debater changed to minus the one it changed from.
    quotes: quotes of all turns. verified, fuzzy, not_found: the shares of them with that status.
    agreement: the share of last stances that are the most common one. opening_agreement: of first.
    reached_consensus: 1 if the debate ended in agreement, else 0.
    confidence: the mean confidence that turns state; spread: the largest minus the smallest.
    contradicted, carried, missing: what points of turns found in the evidence, as shares of points.
    readers_apart: the share of statements on which the judge's readers differ.
    statements: the number of statements of the response, as log(1 + n).
    judge_p: the judge's own probability of hallucinated.
    """
    turns, judgement = progress.turns, progress.judgement
    stances: dict[str, list[Stance]] = defaultdict(list)
    for turn in turns:
        if turn.assigned is None:
            stances[turn.debater].append(turn.stance)
    first, last = ([own[place] for own in stances.values()] for place in (0, -1))
    pairs = [pair for own in stances.values() for pair in itertools.pairwise(own)]
    changes = [
        SIDE_BY_STANCE[after] - SIDE_BY_STANCE[before] for before, after in pairs if before != after
    ]
    statuses = Counter(quote.status for turn in turns for quote in turn.quotes)
    findings = Counter(point.finding for turn in turns for point in turn.points)
    confidences = [turn.confidence for turn in turns if turn.confidence is not None]
    readers: dict[int, set[Stance]] = defaultdict(set)
    for view in judgement.readers if judgement else ():
        readers[view.statement].add(view.stance)
    denials = sum(turn.reply == "deny" for turn in turns)
    return {
        "turns": float(len(turns)),
        "rounds": float(max((turn.round for turn in turns), default=0)),
        "critiques": _divide(denials, len(turns)),
        "critique_count": float(denials),
        "revisions": float(len(changes)),
        "revised_towards": sum(changes) / len(changes) if changes else 0.0,
        "quotes": float(statuses.total()),
        "verified": _divide(statuses["verified"], statuses.total()),
        "fuzzy": _divide(statuses["fuzzy"], statuses.total()),
        "not_found": _divide(statuses["not_found"], statuses.total()),
        "agreement": _divide(max(Counter(last).values(), default=0), len(last)),
        "opening_agreement": _divide(max(Counter(first).values(), default=0), len(first)),
        "reached_consensus": float(progress.reached_consensus),
        "confidence": _divide(sum(confidences), len(confidences)),
        "spread": max(confidences) - min(confidences) if confidences else math.nan,
        "contradicted": _divide(findings["contradicted"], findings.total()),
        "carried": _divide(findings["carried"], findings.total()),
        "missing": _divide(findings["missing"], findings.total()),
        "readers_apart": _divide(sum(len(seen) > 1 for seen in readers.values()), len(readers)),
        "statements": math.log1p(len(progress.statements)),
        "judge_p": math.nan if judgement is None or judgement.p is None else judgement.p,
    }


def _divide(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


@dataclass(frozen=True)
class AnswerNetwork:
    """score = out · tanh(Wx + b) + shift, x = (value - centre) / scale; `hidden` is W (d, h)."""

    names: tuple[str, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    hidden: tuple[tuple[float, ...], ...]
    hidden_shift: tuple[float, ...]
    out: tuple[float, ...]
    shift: float
    schema: int = NETWORK_SCHEMA

    def scores(self, features: FloatArray) -> FloatArray:
        """Return (...,) scores of (..., d) features."""
        level = scale_features(features, np.array(self.centres), np.array(self.scales))
        inner = np.tanh(level @ np.array(self.hidden) + np.array(self.hidden_shift))
        return np.asarray(inner @ np.array(self.out) + self.shift)


def convert_plain(plain: Any, kind: type[RecordType], words: str) -> RecordType:
    """Convert plain values to a record; `words` names it. Raises ConfigError: they do not fit."""
    import msgspec

    try:
        return msgspec.convert(plain, type=kind)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"Expected {words}, found something else: {error}.") from error


def parse_network(plain: Any, names: Sequence[str]) -> AnswerNetwork:
    """Return the stored network. Raises ConfigError: other features than `names`, or damaged."""
    network = convert_plain(plain, AnswerNetwork, "a network of answers")
    width, height = len(network.names), len(network.hidden_shift)
    sizes = {len(network.centres), len(network.scales), len(network.hidden)}
    heights = {len(network.out), *(len(row) for row in network.hidden)}
    rows = (network.centres, network.scales, network.hidden_shift, network.out, *network.hidden)
    is_finite = bool(np.isfinite([network.shift, *itertools.chain(*rows)]).all())
    is_known = network.schema == NETWORK_SCHEMA and network.names == tuple(names)
    if not (is_known and sizes == {width} and heights == {height} and is_finite):
        raise ConfigError("Expected a network of this version's features; learn the weights anew.")
    return network


def scale_features(features: FloatArray, centres: FloatArray, scales: FloatArray) -> FloatArray:
    """Return features at a common scale; unknown ones become the mean, which is 0."""
    return np.asarray(np.nan_to_num((features - centres) / scales, nan=0.0))


def softmax(scores: FloatArray, is_there: npt.NDArray[np.bool_]) -> FloatArray:
    """Return weights along the last axis that sum to 1 over those who are there; 0 for others."""
    masked = np.where(is_there, scores, -np.inf)
    top = np.max(masked, axis=-1, keepdims=True)
    exponentials = np.exp(masked - np.where(np.isfinite(top), top, 0.0))
    total = exponentials.sum(axis=-1, keepdims=True)
    return np.asarray(exponentials / np.where(total > 0.0, total, 1.0))


@dataclass(frozen=True, order=True)
class AnsweringAgent:
    """An answering agent; `rules` is a digest, `seat` is set only to tell equal agents apart."""

    name: str
    model: str = ""
    rules: str = ""
    seat: str = ""


@dataclass(frozen=True)
class PastAnswers:
    """How often an agent's answers were right: (right, n) by stance in the order of `STANCES`."""

    right: tuple[float, float, float]
    n: tuple[float, float, float]

    def log_odds(self, stance: Stance, whole: PastAnswers) -> float:
        """Return log odds of being right with that stance, shrunk towards all agents' (`whole`)."""
        place = STANCES.index(stance)
        overall = (whole.right[place] + 1.0) / (whole.n[place] + 2.0)
        share = (self.right[place] + SHRINKAGE_ANSWERS * overall) / (
            self.n[place] + SHRINKAGE_ANSWERS
        )
        return math.log(share / (1.0 - share))


NO_PAST_ANSWERS = PastAnswers((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


@dataclass(frozen=True)
class LearnedWeights:
    """`fixed` weights of `agents`, or a `policy` that reads each agent's `past` and the `whole`."""

    method: Method
    agents: tuple[AnsweringAgent, ...] = ()
    fixed: tuple[float, ...] = ()
    past: tuple[PastAnswers, ...] = ()
    whole: PastAnswers = NO_PAST_ANSWERS
    policy: AnswerNetwork | None = None
    schema: int = WEIGHTS_SCHEMA
    features_schema: int = FEATURES_SCHEMA

    def to_plain(self) -> dict[str, Any]:
        """Return the weights as plain values that JSON can hold."""
        return asdict(self)


def parse_learned_weights(plain: Any) -> LearnedWeights:
    """Return the weights that `to_plain` made. Raises ConfigError: they do not fit."""
    learned = convert_plain(plain, LearnedWeights, "weights of answers")
    is_known = (learned.schema, learned.features_schema) == (WEIGHTS_SCHEMA, FEATURES_SCHEMA)
    sizes = {len(learned.agents)}
    if learned.method in ("record", "logistic"):
        sizes = {len(learned.fixed)}
    elif learned.method == "policy":
        parse_network(plain["policy"], NETWORK_FEATURES)
        sizes = {len(learned.past)}
    is_sound = all(math.isfinite(weight) and weight >= 0.0 for weight in learned.fixed)
    if not is_known or not is_sound or sizes != {len(learned.agents)}:
        raise ConfigError(
            f"Expected weights of schema {WEIGHTS_SCHEMA}, found others; learn them anew."
        )
    return learned


@dataclass(frozen=True)
class LearnedConsensusPolicy:
    """A `ConsensusPolicy` by learned weights; unknown agents get the mean weight."""

    learned: LearnedWeights
    seats: Mapping[str, AnsweringAgent]
    number: int

    @property
    def method(self) -> str:
        """The method of the weights with the number under which they are stored."""
        return f"{self.learned.method}{LEARNED_WEIGHTS_MARKER}{self.number}"

    @property
    def unknown(self) -> tuple[str, ...]:
        """The debaters without a record."""
        return tuple(name for name in self.seats if self._find_place(name) is None)

    def weights(self, view: CaseView, turns: Sequence[Turn]) -> tuple[tuple[str, float], ...]:
        """Return (debater, weight) of all who answered, in the order of their first answers."""
        learned, answers = self.learned, group_answers(turns)
        places = [self._find_place(name) for name in answers]
        if learned.policy is not None:
            raw = self._policy_weights(learned.policy, turns, places)
        elif learned.method == "uniform":
            raw = [1.0] * len(places)
        else:
            raw = [0.0 if place is None else learned.fixed[place] for place in places]
        weights = normalize_weights(raw, [place is not None for place in places])
        return tuple(zip(answers, weights, strict=True))

    def _find_place(self, name: str) -> int | None:
        agent, agents = self.seats.get(name), self.learned.agents
        return agents.index(agent) if agent in agents else None

    def _policy_weights(
        self, policy: AnswerNetwork, turns: Sequence[Turn], places: Sequence[int | None]
    ) -> list[float]:
        features, rows = compute_answer_features(turns), []
        for (name, own_answers), place in zip(group_answers(turns).items(), places, strict=True):
            past = NO_PAST_ANSWERS if place is None else self.learned.past[place]
            odds = past.log_odds(own_answers[-1].stance, self.learned.whole)
            rows.append([*features[name].values(), odds])
        if not rows:
            return []
        scores = policy.scores(np.array(rows, dtype=np.float64))
        weights: list[float] = softmax(scores, np.ones(len(rows), dtype=bool)).tolist()
        return weights


def normalize_weights(weights: Sequence[float], is_known: Sequence[bool]) -> list[float]:
    """Return weights that sum to 1; strangers get the known ones' mean, all equal if that is 0."""
    known = [weight for weight, is_one in zip(weights, is_known, strict=True) if is_one]
    mean = sum(known) / len(known) if known else 0.0
    if mean <= 0.0:
        return [1.0 / max(1, len(weights))] * len(weights)
    filled = [w if is_one else mean for w, is_one in zip(weights, is_known, strict=True)]
    total = sum(filled)
    return [weight / total for weight in filled]


def add_weigher(roster: Roster, store: Store, run: Run) -> Roster:
    """Add the weights in use when the run began, if any. Raises ConfigError: they are not here."""
    number = run.plan.agent_weights
    if number == NOTHING_LEARNED:
        return roster
    stored = store.learned.get(number)
    if stored is None or (stored.kind, stored.project_id) != (CONSENSUS_KIND, run.project_id):
        raise ConfigError(
            f"Expected weights of agents number {number}, with which this run began, found none "
            "here; check the case again, and it goes by what is in use now."
        )
    learned = parse_body(stored, parse_stored_weights)
    if learned is None:
        return roster
    seats = identify_answerers(roster, run.plan.sheet)
    return replace(roster, weigher=LearnedConsensusPolicy(learned, seats, number))


def parse_stored_weights(body: Mapping[str, Any]) -> LearnedWeights | None:
    """Return a body's weights of answers, or None. Raises ConfigError: another schema."""
    weights = body.get("answers", {}).get("weights")
    return parse_learned_weights(weights) if weights else None


def identify_answerers(
    roster: Roster, roster_config: RosterConfig | None
) -> dict[str, AnsweringAgent]:
    """Return the agent behind each debater's name; a built-in agent has no model."""
    models = (
        {role: config.model for role, config in roster_config.agents_by_role()}
        if roster_config
        else {}
    )
    agents = {
        name: AnsweringAgent(
            debater.name,
            "" if debater.built_in else models.get(f"debater {name}", ""),
            hash_rule(debater.rule),
        )
        for name, debater in roster.debaters.items()
    }
    count = Counter(agents.values())
    return {
        name: replace(agent, seat=name) if count[agent] > 1 else agent
        for name, agent in agents.items()
    }
