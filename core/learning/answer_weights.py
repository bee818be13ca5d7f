"""Weights w(Q; θ) of a debate's answers: fitted, compared on the same folds, and one of them used.

By record, by a regression over signed answers, or by a policy: features of all answers through a
network that PPO trained on a reward model. Used is the one with the least log loss of those that
beat all alike beyond chance. Source: SC-MAKS 3.2 (w_i(Q; θ)), 3.5; 4.10 (uniform vote, no RLHF).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.learning.consensus import held_out, measures
from core.learning.head_fit import Stack, fit_stack
from core.learning.metrics import (
    HALLUCINATED,
    SUPPORTED,
    UNCLEAR,
    Figure,
    Flags,
    Numbers,
    Places,
    bootstrap,
    f_score,
    grouped_folds,
    log_losses,
    mean_of,
    numbered,
    subset,
)
from core.learning.reasoning import ReasoningRow, SpeakingAgent
from core.runtime.errors import ConfigError, InputError
from core.schema.records import Stance
from core.verdict.classifier import sigmoid
from core.verdict.consensus_weights import (
    DRAWN,
    METHODS,
    NAMES,
    NOTHING,
    READ,
    STANCES,
    Answerer,
    AnswerNetwork,
    LearnedWeights,
    Method,
    PastAnswers,
    scaled,
    softmax,
    with_the_mean,
)

FEWEST_OF_AGENT = 10  # groups of cases that an agent must have answered to have a record
STRANGER = -1
VALUES = (HALLUCINATED, SUPPORTED, UNCLEAR)  # of STANCES


@dataclass(frozen=True)
class Answers:
    """n debates with up to s answers each: tuples (Q, O_i, C_ij, O_gold) of SC-MAKS 3.5.

    `said` is (n, s): 1 hallucinated, 0 supported, one half unclear, NaN where there is no answer.
    `who` is (n, s), the answerer's place in `agents`, -1 without a record. `features` is (n, s, d)
    in the order of `NAMES`. `labels` is (n,), 1 hallucinated. `graded` is (n,) how well people
    rated the response, from 0 to 1, NaN where they did not. Debates of one group lie on one side of
    a fold.
    """

    agents: tuple[Answerer, ...]
    said: Numbers
    who: Places
    features: Numbers
    labels: Numbers
    graded: Numbers
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_there(self) -> Flags:
        """(n, s) True where there is an answer."""
        return np.asarray(~np.isnan(self.said))

    @property
    def is_right(self) -> Flags:
        """(n, s) True where the answer takes the side that people decided on; never for unclear."""
        decided = self.is_there & (self.said != UNCLEAR)
        return np.asarray(decided & ((self.said > UNCLEAR) == (self.labels[:, None] == 1.0)))

    def rows(self, which: Places | Flags) -> Answers:
        """The same of these debates only, in this order."""
        names = ("said", "who", "features", "labels", "graded", "groups")
        return subset(self, which, *names)


def answers_of(rows: Sequence[ReasoningRow]) -> Answers:
    """The debates of these runs; a run in which nobody answered is left out."""
    heard = [row for row in rows if row.heard.answers]
    many = max((len(row.heard.answers) for row in heard), default=0)
    groups: dict[Answerer, set[str]] = {}
    for row in heard:
        for agent in row.heard.answers:
            groups.setdefault(answerer(agent), set()).add(row.decision.group)
    agents = tuple(sorted(a for a, own in groups.items() if len(own) >= FEWEST_OF_AGENT))
    shape = (len(heard), many)
    said, who = np.full(shape, np.nan), np.full(shape, STRANGER, dtype=np.int64)
    features = np.full((*shape, len(NAMES)), np.nan)
    for n, row in enumerate(heard):
        for s, (agent, own) in enumerate(row.heard.answers.items()):
            said[n, s] = (1.0 + own["side"]) / 2.0
            who[n, s] = agents.index(answerer(agent)) if answerer(agent) in agents else STRANGER
            features[n, s] = list(own.values())
    labels = np.array([float(row.is_wrong) for row in heard])
    graded = np.array([np.nan if row.graded is None else row.graded for row in heard])
    names = tuple(row.decision.group for row in heard)
    return Answers(agents, said, who, features, labels, graded, names)


def answerer(agent: SpeakingAgent) -> Answerer:
    """The agent as a run's weigher knows it."""
    return Answerer(agent.name, agent.model, agent.rules, agent.seat)


def past_of(answers: Answers) -> tuple[tuple[PastAnswers, ...], PastAnswers]:
    """Each agent's past, and that of everybody together."""
    counts = _counts(answers).sum(axis=0)
    each = tuple(_past(own) for own in counts[: len(answers.agents)])
    return each, _past(counts.sum(axis=0))


def read_of(answers: Answers, learned: LearnedWeights | None = None) -> Numbers:
    """(n, s, d + 1) features and odds by the past; unless learned, that of the other groups."""
    odds = np.full(answers.said.shape, np.nan)

    def tell(rows: Places, past: Sequence[PastAnswers], whole: PastAnswers) -> None:
        for n, s in np.argwhere(answers.is_there[rows]):
            who, stance = answers.who[rows[n], s], _stance(answers.said[rows[n], s])
            own = past[who] if who != STRANGER else NOTHING
            odds[rows[n], s] = own.log_odds(stance, whole)

    if learned is not None:
        tell(np.arange(len(answers)), learned.past, learned.whole)
    else:
        counts, group = _counts(answers), numbered(answers.groups)
        for place in np.unique(group):
            rest = counts[group != place].sum(axis=0)
            past, whole = [_past(own) for own in rest], _past(rest.sum(axis=0))
            tell(np.flatnonzero(group == place), past, whole)
    return np.concatenate([answers.features, odds[:, :, None]], axis=2)


def weights_for(learned: LearnedWeights, answers: Answers) -> Numbers:
    """(n, s) what the weigher in a run gives each answer; 0 where there is none."""
    there, known = answers.is_there, answers.who != STRANGER
    if learned.policy is not None:
        raw = softmax(learned.policy.scores(read_of(answers, learned)), there)
    elif learned.method == "uniform":
        raw = there.astype(np.float64)
    else:
        raw = np.where(known, np.array([*learned.fixed, 0.0])[answers.who], 0.0)
    found = np.zeros(answers.said.shape)
    for n, own in enumerate(there):
        found[n, own] = with_the_mean(raw[n, own].tolist(), known[n, own].tolist())
    return found


def shares(weights: Numbers, answers: Answers) -> Numbers:
    """(n,) the weighted share of those who say hallucinated, unclear counting half."""
    return np.asarray((weights * np.nan_to_num(answers.said, nan=0.0)).sum(axis=1))


def _counts(answers: Answers) -> Numbers:
    """(n, agents + 1, 3, 2): answers by stance, right and all; last those without a record."""
    found = np.zeros((len(answers), len(answers.agents) + 1, len(STANCES), 2))
    right = answers.is_right
    for n, s in np.argwhere(answers.is_there):
        place = VALUES.index(answers.said[n, s])
        found[n, answers.who[n, s], place] += (float(right[n, s]), 1.0)
    return found


def _past(counts: Numbers) -> PastAnswers:
    """The record of an agent, from its (3, 2) counts by stance: right answers, all answers."""
    right, n = counts.T.tolist()
    return PastAnswers(tuple(right), tuple(n))


def _stance(said: float) -> Stance:
    return STANCES[VALUES.index(said)]


POLICY_SEED = 5
REWARD_SEED = 23
HIDDEN = 6
PENALTY = 2.0  # on squared weights, against a sum of losses over answers
MOST_STEPS = 200
ENTROPY = 0.1
UPDATES = 60
PATIENCE = 10  # updates without a better validation reward
RATE = 6e-3
SMALL_RATE = 5e-4  # for going on from a policy with a few new answers
PACKAGE = "stable_baselines3"
MISSING = (
    "The policy is trained with stable-baselines3, which is not installed: "
    "pip install -r requirements-policy.txt, and start again. The other weightings need nothing."
)
ALWAYS = "always"
FIGURES = ("log_loss", "auroc", "balanced_accuracy", "f1", "f2")
DRAWS = 500
FEWEST_DIFFERENT = 6  # groups that differ, for a signed-rank test to say anything at 5 %


@dataclass(frozen=True)
class FittedWeights:
    """Weights with what makes a probability of their share; of a policy, its training too."""

    weights: LearnedWeights
    platt: Stack
    reward_model: AnswerNetwork | None = None
    trained: Trained | None = None

    def p(self, answers: Answers) -> Numbers:
        """p_hallucinated of each of the n debates."""
        return self.platt.p(shares(weights_for(self.weights, answers), answers)[:, None])


def fit(answers: Answers, method: Method, start: LearnedWeights | None = None) -> FittedWeights:
    """Weights of these debates; a policy goes on from that of `start`.

    Raises:
        InputError: there is one label only, or there are too few groups.
        ConfigError: what a policy is trained with is not installed.
    """
    if len(np.unique(answers.labels)) < 2:
        raise InputError("Expected debates of both labels to learn weights from, found one label.")
    past, whole = past_of(answers)
    fixed: tuple[float, ...] = ()
    if method == "policy":
        model, unseen = fit_rewards(answers)
        debates = Debates(read_of(answers), answers.is_there, unseen)
        wrong, groups = answers.labels == 1.0, numbered(answers.groups)
        _, held = next(grouped_folds(wrong, groups, POLICY_SEED))
        is_held = np.isin(np.arange(len(answers)), held)
        before = start.policy if start is not None else None
        trained = train(debates.rows(~is_held), debates.rows(is_held), POLICY_SEED, before)
        weights = LearnedWeights("policy", answers.agents, (), past, whole, trained.policy)
        return replace(with_platt(weights, answers), reward_model=model, trained=trained)
    if method == "record":
        fixed = tuple(_record(own, whole) for own in past)
    elif method == "logistic" and answers.agents:
        fixed = _logistic(answers)
    return with_platt(LearnedWeights(method, answers.agents, fixed, past, whole), answers)


def with_platt(weights: LearnedWeights, answers: Answers) -> FittedWeights:
    """The weights with a probability that is fitted to these debates."""
    share = shares(weights_for(weights, answers), answers)
    return FittedWeights(weights, fit_stack(share[:, None], answers.labels == 1.0))


def _record(own: PastAnswers, whole: PastAnswers) -> float:
    """Log-odds of being right where it decided, drawn to those of all agents; at least 0."""
    usual = (sum(whole.right[:2]) + 1.0) / (sum(whole.n[:2]) + 2.0)
    share = (sum(own.right[:2]) + DRAWN * usual) / (sum(own.n[:2]) + DRAWN)
    return max(0.0, float(np.log(share / (1.0 - share))))


def _logistic(answers: Answers) -> tuple[float, ...]:
    """(agents,) coefficients of answers as 1, -1, 0; none below 0: who err together share."""
    signed = np.zeros((len(answers), len(answers.agents)))
    for n, s in np.argwhere(answers.is_there & (answers.who != STRANGER)):
        signed[n, answers.who[n, s]] = 2.0 * (answers.said[n, s] - UNCLEAR)
    found = fit_stack(signed, answers.labels == 1.0)
    return tuple((found.weights / found.spreads).tolist())


def targets(answers: Answers) -> Numbers:
    """(n, s) what the reward of each answer should be, from 0 to 1; NaN where there is none.

    1 where it takes the side that people decided on; where they also rated the response (4.6), half
    of it is how near the answer lies to their ratings.
    """
    right = answers.is_right.astype(np.float64)
    near = 1.0 - np.abs(np.nan_to_num(answers.said) - (1.0 - answers.graded[:, None]))
    both = np.where(np.isnan(near), right, (right + near) / 2.0)
    return np.where(answers.is_there, both, np.nan)


def fit_rewards(answers: Answers) -> tuple[AnswerNetwork, Numbers]:
    """The reward model (3.5.1; labels weigh alike), and (n, s) by those blind to the group."""
    read, wanted, there = read_of(answers), targets(answers), answers.is_there
    unseen, wrong = np.full(answers.said.shape, np.nan), answers.labels == 1.0
    share = (wrong.sum() + 1.0) / (len(answers) + 2.0)
    worth = np.where(wrong, 0.5 / share, 0.5 / (1.0 - share))[:, None] + np.zeros(there.shape)
    for fit, test in grouped_folds(wrong, numbered(answers.groups), REWARD_SEED):
        own = there[fit]
        model = fit_network(read[fit][own], wanted[fit][own], REWARD_SEED, worth[fit][own])
        unseen[test] = np.where(there[test], rewards(model, read[test]), np.nan)
    return fit_network(read[there], wanted[there], REWARD_SEED, worth[there]), unseen


def rewards(model: AnswerNetwork, read: Numbers) -> Numbers:
    """(...,) the reward that the model expects of each answer, from 0 to 1."""
    return sigmoid(model.scores(read))


def fit_network(
    read: Numbers, wanted: Numbers, seed: int, worth: Numbers | float = 1.0
) -> AnswerNetwork:
    """A network whose sigmoid is likely to be `wanted` (m,) over (m, d); `worth` are weights."""
    from scipy.optimize import minimize

    centres, scales = scale_of(read)
    level = scaled(read, centres, scales)
    wide = level.shape[1]
    random = np.random.default_rng(seed)
    share = (wanted.sum() + 1.0) / (len(wanted) + 2.0)
    first = random.normal(0.0, wide**-0.5, wide * HIDDEN)
    # Noise breaks the tie between hidden units, whose slope is nothing while `out` is.
    noise = random.normal(0.0, 0.1, HIDDEN)
    start = np.concatenate([first, np.zeros(HIDDEN), noise, [float(np.log(share / (1.0 - share)))]])

    def loss(values: Numbers) -> tuple[float, Numbers]:
        hidden, shift, out, last = _parted(values, wide)
        inner = np.tanh(level @ hidden + shift)
        score = inner @ out + last
        total = (worth * (np.logaddexp(0.0, score) - wanted * score)).sum()
        pull = worth * (sigmoid(score) - wanted)
        back = pull[:, None] * out * (1.0 - inner**2)
        slope = [(level.T @ back).ravel(), back.sum(axis=0), inner.T @ pull, [pull.sum()]]
        held = values.copy()
        held[-1] = 0.0  # the base rate is not held back
        return float(total + PENALTY * (held**2).sum() / 2), np.concatenate(slope) + PENALTY * held

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS}).x
    return _network(centres, scales, *_parted(found, wide))


def _network(
    centres: Numbers, scales: Numbers, hidden: Numbers, shift: Numbers, out: Numbers, last: float
) -> AnswerNetwork:
    places = tuple(centres.tolist()), tuple(scales.tolist())
    rows = tuple(tuple(row) for row in hidden.tolist())
    return AnswerNetwork(READ, *places, rows, tuple(shift.tolist()), tuple(out.tolist()), last)


def scale_of(read: Numbers) -> tuple[Numbers, Numbers]:
    """(centres, scales) of (m, d) features over what is known; 0 and 1 where nothing differs."""
    known = ~np.isnan(read)
    many = np.maximum(1, known.sum(axis=0))
    centres = np.where(known, read, 0.0).sum(axis=0) / many
    spread = np.sqrt((np.where(known, read - centres, 0.0) ** 2).sum(axis=0) / many)
    return centres, np.where(spread > 1e-9, spread, 1.0)


def _parted(values: Numbers, wide: int) -> tuple[Numbers, Numbers, Numbers, float]:
    hidden, shift, out, last = np.split(values, np.cumsum([wide * HIDDEN, HIDDEN, HIDDEN]))
    return hidden.reshape(wide, HIDDEN), shift, out, float(last[0])


@dataclass(frozen=True)
class Debates:
    """What a policy is trained on: `read` (n, s, d), who is there (n, s), rewards (n, s)."""

    read: Numbers
    is_there: Flags
    rewards: Numbers

    def rows(self, which: Flags) -> Debates:
        """The answers of these debates alone."""
        return subset(self, which, "read", "is_there", "rewards")


@dataclass(frozen=True)
class Trained:
    """The best policy, after `best` updates; `curve` holds mean rewards (own, validation)."""

    policy: AnswerNetwork
    curve: tuple[tuple[float, float], ...]
    best: int


def is_installed() -> bool:
    """True where a policy can be trained; nothing is imported to find out."""
    return importlib.util.find_spec(PACKAGE) is not None


def require_installed() -> None:
    """Refuse in one sentence where it cannot."""
    if not is_installed():
        raise ConfigError(MISSING)


def train(
    own: Debates, validation: Debates, seed: int, start: AnswerNetwork | None = None
) -> Trained:
    """A policy by PPO, stopped early where the validation reward has come to a plateau.

    One debate is one step, an action a score for each answer; the reward is `mixture_reward`, so
    the best policy has w_i in proportion to exp(r_i / ENTROPY). With a `start` it goes on from that
    policy in small steps (3.5: domain adaptation). Raises ConfigError without stable-baselines3.
    """
    require_installed()
    from core.learning.ppo import Learner

    if start is None:
        centres, scales = scale_of(own.read[own.is_there])
    else:
        centres, scales = np.array(start.centres), np.array(start.scales)
    level = np.where(own.is_there[:, :, None], scaled(own.read, centres, scales), 0.0)
    rate, given = RATE if start is None else SMALL_RATE, np.nan_to_num(own.rewards)
    learner = Learner(level, own.is_there, given, seed=seed, rate=rate, entropy=ENTROPY)
    if start is not None:
        learner.begin_from(start)
    best, place = _network(centres, scales, *learner.arrays(), 0.0), 0
    curve = [(reward(best, own), reward(best, validation))]
    for number in range(1, UPDATES + 1):
        learner.update()
        policy = _network(centres, scales, *learner.arrays(), 0.0)
        curve.append((reward(policy, own), reward(policy, validation)))
        if curve[-1][1] > curve[place][1]:
            best, place = policy, number
        if number - place >= PATIENCE:
            break
    return Trained(best, tuple(curve), place)


def reward(policy: AnswerNetwork, debates: Debates) -> float:
    """The mean reward of the policy's own weights, nothing drawn, entropy included."""
    weights = softmax(policy.scores(debates.read), debates.is_there)
    return float(mixture_reward(weights, debates.rewards, ENTROPY).mean())


def mixture_reward(weights: Numbers, rewards: Numbers, entropy: float) -> Numbers:
    """(n,) Σ w_i r_i and `entropy` times the entropy of the weights, in nats."""
    value = (weights * np.nan_to_num(rewards)).sum(axis=-1)
    spread = -(weights * np.log(np.where(weights > 0.0, weights, 1.0))).sum(axis=-1)
    return np.asarray(value + entropy * spread)


@dataclass(frozen=True)
class Gain:
    """How much lower the log loss is than that of all alike, and Wilcoxon's p where it says any."""

    value: float
    low: float
    high: float
    p: float | None


@dataclass(frozen=True)
class ComparedAnswers:
    """Figures by method and name; `always` is hallucinated always, or the others' share of it."""

    figures: dict[str, dict[str, Figure]]
    gains: dict[str, Gain]
    n: int
    groups: int
    hallucinated: int
    used: Method


def compare_answers(
    answers: Answers, methods: Sequence[Method] = METHODS, *, seed: int
) -> ComparedAnswers:
    """All these weightings on the same folds; `uniform` must be among them.

    Raises:
        InputError: there are fewer groups than folds, or one label only.
        ConfigError: a policy is asked for, and what it is trained with is not installed.
    """
    p: dict[str, Numbers] = {name: np.empty(len(answers)) for name in (*methods, ALWAYS)}
    for held in held_out(answers.groups, answers.labels, seed):
        rest, asked = answers.rows(~held), answers.rows(held)
        for method in methods:
            p[method][held] = fit(rest, method).p(asked)
        p[ALWAYS][held] = (rest.labels.sum() + 1.0) / (len(rest) + 2.0)
    places = numbered(answers.groups)
    figures = {name: _figures(answers.labels, own, places, seed) for name, own in p.items()}
    alike = Figure(0.5, 0.5, 0.5)
    always = _figures(answers.labels, np.ones(len(answers)) - 1e-9, places, seed)
    figures[ALWAYS] |= {"auroc": alike, "balanced_accuracy": alike}
    figures[ALWAYS] |= {name: always[name] for name in ("f1", "f2")}
    gains: dict[str, Gain] = {
        name: gain_over(answers.labels, p["uniform"], p[name], places, seed)
        for name in methods
        if name != "uniform"
    }
    groups, hallucinated = int(places.max()) + 1, int(answers.labels.sum())
    return ComparedAnswers(figures, gains, len(answers), groups, hallucinated, best_of(gains))


def best_of(gains: Mapping[str, Gain]) -> Method:
    """The least log loss of those beyond chance below all alike; on a tie the simpler one."""
    sure = [name for name in METHODS if name in gains and gains[name].low > 0.0]
    return max(sure, key=lambda name: gains[name].value, default="uniform")


def _figures(labels: Numbers, p: Numbers, groups: Places, seed: int) -> dict[str, Figure]:
    wrong, said = labels == 1.0, p > UNCLEAR
    found = measures(labels, p, is_probability=True)
    found |= {"f1": f_score(wrong, said), "f2": f_score(wrong, said, 4.0)}
    return bootstrap({name: found[name] for name in FIGURES}, groups, seed, DRAWS)


def gain_over(labels: Numbers, before: Numbers, after: Numbers, places: Places, seed: int) -> Gain:
    """How much lower the log loss of p `after` is than that of p `before`, case by case."""
    wrong = labels == 1.0
    better = log_losses(wrong, before) - log_losses(wrong, after)
    figure = bootstrap({"": mean_of(better)}, places, seed, DRAWS)[""]
    by_group = np.bincount(places, weights=better)
    differs = by_group[np.abs(by_group) > 1e-12]
    if len(differs) < FEWEST_DIFFERENT:
        return Gain(*figure, None)
    from scipy.stats import wilcoxon

    return Gain(*figure, float(wilcoxon(differs).pvalue))
