"""The consensus weights in use, applied to a debate's answers: w(Q; θ) of SC-MAKS 3.2 and 3.5.

Plain numbers: a fixed weight for each agent, or a policy, a small network that scores every answer
by its features (3.5: critiques, revisions, citations). Learned in `core/learning`, applied here
with numpy alone.
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
from core.schema.progress import Progress
from core.schema.records import CONSENSUS, Run, Stance, Turn, rule_digest
from core.schema.roles import LEARNED, CaseView, Roster
from core.schema.rosters import RosterConfig
from core.store import Store
from core.store.versions import NONE, read_body

FEATURES_SCHEMA = 1  # of the features' names, order and meaning; kept beside all numbers
SIDES: Mapping[Stance, float] = {"hallucinated": 1.0, "supported": -1.0, "unclear": 0.0}
Kind = TypeVar("Kind")
Features = dict[str, float]


NAMES = (
    "side", "attacked", "backed", "helped", "denied", "revisions", "towards", "quotes", "verified",
    "not_found", "agreement", "opening_agreement", "confidence", "contradicted", "carried",
)  # fmt: skip


def answers_in(turns: Iterable[Turn]) -> dict[str, list[Turn]]:
    """Each debater's answers in order, in the order in which the debaters first answered."""
    found: dict[str, list[Turn]] = {}
    for turn in sorted(turns, key=lambda turn: turn.number):
        if turn.assigned is None and turn.about in ("", turn.debater):
            found.setdefault(turn.debater, []).append(turn)
    return found


def answer_features(turns: Sequence[Turn]) -> dict[str, Features]:
    """Of everyone who answered, by debater, the features `NAMES`; NaN where nothing is known.

    side: 1 where its last answer says hallucinated, -1 supported, 0 unclear.
    attacked, backed: how many turns of others on its answers take another stance, and how many of
        these have a quote that our code found, each as log(1 + n). In protocols whose turns do not
        say whose answer they are about, a turn that denies the message before it is about that one.
    helped: log(1 + n) of the others that take its own stance.
    denied: the share of its own turns that deny the message before.
    revisions: how often its stance changed; towards: its last side less its first.
    quotes: log(1 + n) of its quotes; verified, not_found: the shares of them by check.
    agreement, opening_agreement: the share of the others whose last (first) answer takes its last
        (first) stance.
    confidence: the last one it stated.
    contradicted, carried: what its points found in the evidence, as shares of its points.
    """
    answers, critiques = answers_in(turns), _critiques(turns)
    return {
        debater: _features(
            own,
            [turn for turn in turns if turn.debater == debater],
            critiques.get(debater, ()),
            [said for other, said in answers.items() if other != debater],
        )
        for debater, own in answers.items()
    }


def _features(
    answers: Sequence[Turn], spoken: Sequence[Turn], critiques: Sequence[Turn],
    others: Sequence[Sequence[Turn]],
) -> Features:  # fmt: skip
    first, last = answers[0].stance, answers[-1].stance
    against = [turn for turn in critiques if turn.stance != last]
    quotes = [quote.status for turn in answers for quote in turn.quotes]
    points = [point.finding for turn in answers for point in turn.points]
    stated = [turn.confidence for turn in answers if turn.confidence is not None]
    changes = sum(a.stance != b.stance for a, b in itertools.pairwise(answers))
    backed = [turn for turn in against if any(q.status == "verified" for q in turn.quotes)]
    return {
        "side": SIDES[last],
        "attacked": math.log1p(len(against)),
        "backed": math.log1p(len(backed)),
        "helped": math.log1p(len(critiques) - len(against)),
        "denied": _share(sum(turn.reply == "deny" for turn in spoken), len(spoken)),
        "revisions": float(changes),
        "towards": SIDES[last] - SIDES[first],
        "quotes": math.log1p(len(quotes)),
        "verified": _share(quotes.count("verified"), len(quotes)),
        "not_found": _share(quotes.count("not_found"), len(quotes)),
        "agreement": _share(sum(said[-1].stance == last for said in others), len(others)),
        "opening_agreement": _share(sum(said[0].stance == first for said in others), len(others)),
        "confidence": stated[-1] if stated else math.nan,
        "contradicted": _share(points.count("contradicted"), len(points)),
        "carried": _share(points.count("carried"), len(points)),
    }


def _critiques(turns: Iterable[Turn]) -> dict[str, list[Turn]]:
    """By debater, the turns of others that speak of its answers (C_ij)."""
    found: dict[str, list[Turn]] = {}
    before: Turn | None = None
    for turn in sorted(turns, key=lambda turn: turn.number):
        denied = before.debater if before is not None and turn.reply == "deny" else ""
        about = turn.about or denied
        if about and about != turn.debater:
            found.setdefault(about, []).append(turn)
        before = turn
    return found


DEBATE_NAMES = (
    "turns", "rounds", "critiques", "critique_count", "revisions", "revised_towards", "quotes",
    "verified", "fuzzy", "not_found", "agreement", "opening_agreement", "reached_consensus",
    "confidence", "spread", "contradicted", "carried", "missing", "readers_apart", "statements",
    "judge_p",
)  # fmt: skip


def features_of(progress: Progress) -> Features:
    """The features `DEBATE_NAMES` of one run; a stance counts 1 hallucinated, -1 supported, else 0.

    None is a sum of votes: those are there already, and would blur which agent counts how much.

    turns, rounds: how many turns were spoken, and the number of the last round.
    critiques: the share of turns that deny the message before them; critique_count: how many do.
    revisions: how often a debater's stance differs from its own last one.
    revised_towards: the mean of the stance a debater changed to, less the one it changed from.
    quotes: quotes of all turns. verified, fuzzy, not_found: the shares of them by check.
    agreement: the share of last stances that are the most common one. opening_agreement: of first.
    reached_consensus: 1 where the debate ended in agreement, else 0.
    confidence: the mean of the confidence that turns state; spread: the largest less the smallest.
    contradicted, carried, missing: what points of turns found in the evidence, as shares of points.
    readers_apart: the share of statements on which the judge's readers differ.
    statements: how many the response has, as log(1 + n).
    judge_p: the judge's own probability of hallucinated.
    """
    turns, judgement = progress.turns, progress.judgement
    own: dict[str, list[Stance]] = defaultdict(list)
    for turn in turns:
        if turn.assigned is None:
            own[turn.debater].append(turn.stance)
    first, last = ([said[place] for said in own.values()] for place in (0, -1))
    pairs = [pair for said in own.values() for pair in itertools.pairwise(said)]
    changes = [SIDES[after] - SIDES[before] for before, after in pairs if before != after]
    checked = Counter(quote.status for turn in turns for quote in turn.quotes)
    found = Counter(point.finding for turn in turns for point in turn.points)
    stated = [turn.confidence for turn in turns if turn.confidence is not None]
    readers: dict[int, set[Stance]] = defaultdict(set)
    for view in judgement.readers if judgement else ():
        readers[view.statement].add(view.stance)
    denials = sum(turn.reply == "deny" for turn in turns)
    return {
        "turns": float(len(turns)),
        "rounds": float(max((turn.round for turn in turns), default=0)),
        "critiques": _share(denials, len(turns)),
        "critique_count": float(denials),
        "revisions": float(len(changes)),
        "revised_towards": sum(changes) / len(changes) if changes else 0.0,
        "quotes": float(checked.total()),
        "verified": _share(checked["verified"], checked.total()),
        "fuzzy": _share(checked["fuzzy"], checked.total()),
        "not_found": _share(checked["not_found"], checked.total()),
        "agreement": _share(max(Counter(last).values(), default=0), len(last)),
        "opening_agreement": _share(max(Counter(first).values(), default=0), len(first)),
        "reached_consensus": float(progress.reached_consensus),
        "confidence": _share(sum(stated), len(stated)),
        "spread": max(stated) - min(stated) if stated else math.nan,
        "contradicted": _share(found["contradicted"], found.total()),
        "carried": _share(found["carried"], found.total()),
        "missing": _share(found["missing"], found.total()),
        "readers_apart": _share(sum(len(said) > 1 for said in readers.values()), len(readers)),
        "statements": math.log1p(len(progress.statements)),
        "judge_p": math.nan if judgement is None or judgement.p is None else judgement.p,
    }


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


Numbers = npt.NDArray[np.float64]
NETWORK_SCHEMA = 1


@dataclass(frozen=True)
class AnswerNetwork:
    """score = out · tanh(Wx + b) + shift over x = (value - centre) / scale; `hidden` is (d, h)."""

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


def converted(plain: Any, kind: type[Kind], words: str) -> Kind:
    """Plain values as a record of that kind; `words` says what was expected."""
    import msgspec

    try:
        return msgspec.convert(plain, type=kind)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"Expected {words}, found something else: {error}.") from error


def network_from(plain: Any, names: Sequence[str]) -> AnswerNetwork:
    """The network that was kept as plain values, if it reads these features."""
    found = converted(plain, AnswerNetwork, "a network of answers")
    wide, high = len(found.names), len(found.hidden_shift)
    sizes = {len(found.centres), len(found.scales), len(found.hidden)}
    highs = {len(found.out), *(len(row) for row in found.hidden)}
    numbers = (*found.centres, *found.scales, *found.hidden_shift, *found.out, found.shift)
    is_finite = bool(np.isfinite([*numbers, *(v for row in found.hidden for v in row)]).all())
    is_known = found.schema == NETWORK_SCHEMA and found.names == tuple(names)
    if not (is_known and sizes == {wide} and highs == {high} and is_finite):
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
    """Who answers: `rules` digests them; `seat` only where two seats are the same agent else."""

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
    """`fixed` weights of `agents`, or a `policy` with each one's `past` and that of the `whole`."""

    method: Method
    agents: tuple[Answerer, ...] = ()
    fixed: tuple[float, ...] = ()
    past: tuple[PastAnswers, ...] = ()
    whole: PastAnswers = NOTHING
    policy: AnswerNetwork | None = None
    schema: int = SCHEMA
    features_schema: int = FEATURES_SCHEMA

    def to_plain(self) -> dict[str, Any]:
        """The weights as plain values that JSON can hold."""
        return asdict(self)


def weights_from(plain: Any) -> LearnedWeights:
    """The weights that `to_plain` made."""
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
    """A `Weigher` over learned weights of who sits where; strangers get the mean weight."""

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
        learned, answers = self.learned, answers_in(turns)
        places = [self._place(name) for name in answers]
        if learned.policy is not None:
            own = self._scored(learned.policy, turns, places)
        elif learned.method == "uniform":
            own = [1.0] * len(places)
        else:
            own = [0.0 if place is None else learned.fixed[place] for place in places]
        weights = with_the_mean(own, [place is not None for place in places])
        return tuple(zip(answers, weights, strict=True))

    def _place(self, name: str) -> int | None:
        who, agents = self.seats.get(name), self.learned.agents
        return agents.index(who) if who in agents else None

    def _scored(
        self, policy: AnswerNetwork, turns: Sequence[Turn], places: Sequence[int | None]
    ) -> list[float]:
        features, rows = answer_features(turns), []
        for (name, said), place in zip(answers_in(turns).items(), places, strict=True):
            past = NOTHING if place is None else self.learned.past[place]
            odds = past.log_odds(said[-1].stance, self.learned.whole)
            rows.append([*features[name].values(), odds])
        if not rows:
            return []
        scores = policy.scores(np.array(rows, dtype=np.float64))
        found: list[float] = softmax(scores, np.ones(len(rows), dtype=bool)).tolist()
        return found


def with_the_mean(weights: Sequence[float], is_known: Sequence[bool]) -> list[float]:
    """Weights that sum to 1; strangers get the known ones' mean, all the same where that is 0."""
    known = [weight for weight, is_one in zip(weights, is_known, strict=True) if is_one]
    mean = sum(known) / len(known) if known else 0.0
    if mean <= 0.0:
        return [1.0 / max(1, len(weights))] * len(weights)
    whole = [w if is_one else mean for w, is_one in zip(weights, is_known, strict=True)]
    total = sum(whole)
    return [weight / total for weight in whole]


def with_weigher(roster: Roster, store: Store, run: Run) -> Roster:
    """The roster with the weights that were in use when the run began; as it is without any."""
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
    seats = answerers(roster, run.plan.sheet)
    return replace(roster, weigher=LearnedWeigher(learned, seats, number))


def learned_in(body: Mapping[str, Any]) -> LearnedWeights | None:
    """The weights of answers in use; None where none were learned.

    Raises ConfigError: they are of another schema.
    """
    own = body.get("answers", {}).get("weights")
    return weights_from(own) if own else None


def answerers(roster: Roster, sheet: RosterConfig | None) -> dict[str, Answerer]:
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
