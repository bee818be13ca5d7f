"""Weights w(Q; θ) of a debate's answers: fitted, compared on the same folds, and one of them used.

- record: each agent's log-odds of being right where it decided, drawn to those of all agents; 0
  for one that is no better than a coin.
- logistic: a regression over signed answers with weights that are not negative, so that agents that
  err together share what they count.
- policy: features of all answers, through a network that PPO trained on a reward model.

The reward model, a small feed-forward network (SC-MAKS 3.5.1), says how well one answer agrees with
people from how it fared in the debate. It is trained towards 1 where the answer takes the side that
people decided on, else 0; where people also rated the response (accuracy, coherence, consistency:
4.6), half of it is how near the answer lies to their ratings. Debates of both labels weigh the same
in all, else merely taking the commoner side would earn a reward.

The policy (3.5): one debate is one step, observed are the features of all answers, an action is a
score for each, and a softmax makes weights of it. The reward is Σ w_i r_i plus `ENTROPY` times the
weights' entropy, which keeps them apart from putting all on one agent; r_i come from reward models
that saw nothing of the debate's group. So the best policy has w_i in proportion to
exp(r_i / ENTROPY). PPO is that of stable-baselines3, an optional extra
(`requirements-policy.txt`); what is learned is plain arrays, and using it needs nothing.

Of the weightings whose log loss is lower than that of all alike beyond chance (the paired interval
lies above 0), the one with the least is used; all alike where there is none. Intervals are 95 % of
a bootstrap over groups, with the p of Wilcoxon's signed-rank test over groups (4.9).
Source: SC-MAKS 3.2 (w_i(Q; θ)), 3.5; 4.10 (uniform vote, no RLHF).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.learning.answers import STRANGER, Answers, past_of, read_of, shares, weights_for
from core.learning.consensus import held_out, measures
from core.learning.head_fit import Stack, fit_stack
from core.learning.metrics import (
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
from core.runtime.errors import ConfigError, InputError
from core.verdict.classifier import sigmoid
from core.verdict.consensus_weights import (
    DRAWN,
    METHODS,
    READ,
    AnswerNetwork,
    LearnedWeights,
    Method,
    PastAnswers,
    scaled,
    softmax,
)

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
NAMES = ("log_loss", "auroc", "balanced_accuracy", "f1", "f2")
DRAWS = 500
FEWEST_DIFFERENT = 6  # groups that differ, for a signed-rank test to say anything at 5 %
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Fitted:
    """Weights with what makes a probability of their share; of a policy, its training too."""

    weights: LearnedWeights
    platt: Stack
    reward_model: AnswerNetwork | None = None
    trained: Trained | None = None

    def p(self, answers: Answers) -> Numbers:
        """(n,) p_hallucinated."""
        return self.platt.p(shares(weights_for(self.weights, answers), answers)[:, None])


def fit(answers: Answers, method: Method, start: LearnedWeights | None = None) -> Fitted:
    """Weights of these debates; a policy goes on from that of `start`, where there is one.

    Raises:
        InputError: there is one label only, or there are too few groups.
        ConfigError: what a policy is trained with is not installed.
    """
    if len(np.unique(answers.labels)) < 2:
        raise InputError("Expected debates of both labels to learn weights from, found one label.")
    if method == "policy":
        return _fit_policy(answers, start)
    past, whole = past_of(answers)
    fixed: tuple[float, ...] = ()
    if method == "record":
        fixed = tuple(_record(own, whole) for own in past)
    elif method == "logistic":
        fixed = _logistic(answers)
    return with_platt(LearnedWeights(method, answers.agents, fixed, past, whole), answers)


def _fit_policy(answers: Answers, start: LearnedWeights | None) -> Fitted:
    reward = fit_rewards(answers)
    read = read_of(answers)
    debates = Debates(read, answers.is_there, reward.unseen)
    wrong, groups = answers.labels == 1.0, numbered(answers.groups)
    _, held = next(grouped_folds(wrong, groups, POLICY_SEED))
    is_held = np.isin(np.arange(len(answers)), held)
    before = start.policy if start is not None else None
    trained = train(debates.rows(~is_held), debates.rows(is_held), POLICY_SEED, before)
    past, whole = past_of(answers)
    weights = LearnedWeights("policy", answers.agents, (), past, whole, trained.policy)
    found = with_platt(weights, answers)
    return Fitted(found.weights, found.platt, reward.model, trained)


def with_platt(weights: LearnedWeights, answers: Answers) -> Fitted:
    """The weights with a probability that is fitted to these debates."""
    share = shares(weights_for(weights, answers), answers)
    return Fitted(weights, fit_stack(share[:, None], answers.labels == 1.0))


def _record(own: PastAnswers, whole: PastAnswers) -> float:
    """Log-odds of being right where it decided, at least 0."""
    usual = (sum(whole.right[:2]) + 1.0) / (sum(whole.n[:2]) + 2.0)
    share = (sum(own.right[:2]) + DRAWN * usual) / (sum(own.n[:2]) + DRAWN)
    return max(0.0, float(np.log(share / (1.0 - share))))


def _logistic(answers: Answers) -> tuple[float, ...]:
    """(agents,) coefficients over answers as 1, -1, and 0 where unclear or silent."""
    signed = np.zeros((len(answers), len(answers.agents)))
    for n, s in np.argwhere(answers.is_there & (answers.who != STRANGER)):
        signed[n, answers.who[n, s]] = 2.0 * (answers.said[n, s] - UNCLEAR)
    if not answers.agents:
        return ()
    found = fit_stack(signed, answers.labels == 1.0)
    return tuple((found.weights / found.spreads).tolist())


@dataclass(frozen=True)
class Rewards:
    """The model, and what models that saw nothing of an answer's group say of it, (n, s)."""

    model: AnswerNetwork
    unseen: Numbers


def targets(answers: Answers) -> Numbers:
    """(n, s) what the reward of each answer should be, from 0 to 1; NaN where there is none."""
    right = answers.is_right.astype(np.float64)
    near = 1.0 - np.abs(np.nan_to_num(answers.said) - (1.0 - answers.graded[:, None]))
    both = np.where(np.isnan(near), right, (right + near) / 2.0)
    return np.where(answers.is_there, both, np.nan)


def fit_rewards(answers: Answers) -> Rewards:
    """The reward model of these debates; always the same from the same.

    Raises:
        InputError: there are fewer groups than folds.
    """
    read, wanted, there = read_of(answers), targets(answers), answers.is_there
    unseen, worth = np.full(answers.said.shape, np.nan), _worth(answers)
    wrong, groups = answers.labels == 1.0, numbered(answers.groups)
    for fit, test in grouped_folds(wrong, groups, REWARD_SEED):
        own = there[fit]
        model = fit_network(read[fit][own], wanted[fit][own], REWARD_SEED, worth[fit][own])
        unseen[test] = np.where(there[test], rewards(model, read[test]), np.nan)
    return Rewards(fit_network(read[there], wanted[there], REWARD_SEED, worth[there]), unseen)


def rewards(model: AnswerNetwork, read: Numbers) -> Numbers:
    """(...,) the reward that the model expects of each answer, from 0 to 1."""
    return sigmoid(model.scores(read))


def fit_network(
    read: Numbers, wanted: Numbers, seed: int, worth: Numbers | None = None
) -> AnswerNetwork:
    """A network whose sigmoid is likely to be `wanted` (m,) over features (m, d).

    Each counts for what it is `worth` (m,), all alike where that is not given.
    """
    from scipy.optimize import minimize

    centres, scales = scale_of(read)
    level = scaled(read, centres, scales)
    weights = np.ones(len(wanted)) if worth is None else worth
    wide = level.shape[1]
    random = np.random.default_rng(seed)
    share = (wanted.sum() + 1.0) / (len(wanted) + 2.0)
    odds = float(np.log(share / (1.0 - share)))
    first = random.normal(0.0, wide**-0.5, wide * HIDDEN)
    start = np.concatenate([first, np.zeros(2 * HIDDEN), [odds]])

    def loss(values: Numbers) -> tuple[float, Numbers]:
        hidden, shift, out, last = _parted(values, wide)
        inner = np.tanh(level @ hidden + shift)
        score = inner @ out + last
        total = (weights * (np.logaddexp(0.0, score) - wanted * score)).sum()
        pull = weights * (sigmoid(score) - wanted)
        back = pull[:, None] * out * (1.0 - inner**2)
        slope = [(level.T @ back).ravel(), back.sum(axis=0), inner.T @ pull, [pull.sum()]]
        held = values.copy()
        held[-1] = 0.0  # the base rate is not held back
        return float(total + PENALTY * (held**2).sum() / 2), np.concatenate(slope) + PENALTY * held

    # Noise breaks the tie between hidden units, whose slope is nothing while `out` is.
    start[wide * HIDDEN + HIDDEN : -1] = random.normal(0.0, 0.1, HIDDEN)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS}).x
    hidden, shift, out, last = _parted(found, wide)
    return _network(centres, scales, (hidden, shift, out), float(last))


def _network(
    centres: Numbers, scales: Numbers, layers: tuple[Numbers, Numbers, Numbers], last: float
) -> AnswerNetwork:
    hidden, shift, out = (layer.tolist() for layer in layers)
    rows = tuple(tuple(row) for row in hidden)
    places = tuple(centres.tolist()), tuple(scales.tolist())
    return AnswerNetwork(READ, *places, rows, tuple(shift), tuple(out), last)


def _worth(answers: Answers) -> Numbers:
    """(n, s) what each answer counts for: of both labels half, and 1 on average."""
    is_wrong = answers.labels == 1.0
    share = (is_wrong.sum() + 1.0) / (len(answers) + 2.0)
    own = np.where(is_wrong, 0.5 / share, 0.5 / (1.0 - share))
    return np.repeat(own[:, None], answers.said.shape[1], axis=1)


def scale_of(read: Numbers) -> tuple[Numbers, Numbers]:
    """(centres, scales) of (m, d) features over what is known; 0 and 1 where nothing differs."""
    known = ~np.isnan(read)
    many = np.maximum(1, known.sum(axis=0))
    centres = np.where(known, read, 0.0).sum(axis=0) / many
    spread = np.sqrt((np.where(known, read - centres, 0.0) ** 2).sum(axis=0) / many)
    return centres, np.where(spread > 1e-9, spread, 1.0)


def _parted(values: Numbers, wide: int) -> tuple[Numbers, Numbers, Numbers, float]:
    end = wide * HIDDEN
    return (
        values[:end].reshape(wide, HIDDEN),
        values[end : end + HIDDEN],
        values[end + HIDDEN : end + 2 * HIDDEN],
        float(values[-1]),
    )


@dataclass(frozen=True)
class Debates:
    """What a policy is trained on: `read` (n, s, d), who is there (n, s), rewards (n, s)."""

    read: Numbers
    is_there: Flags
    rewards: Numbers

    def rows(self, which: Flags) -> Debates:
        """The same of these debates only."""
        return subset(self, which, "read", "is_there", "rewards")


@dataclass(frozen=True)
class Trained:
    """The policy with the mean reward after each update, on its own debates and on held-out ones.

    `curve` holds (own, validation); the first pair is that before any update. The policy is that of
    the best validation reward, which was after `best` updates.
    """

    policy: AnswerNetwork
    curve: tuple[tuple[float, float], ...]
    best: int


def is_installed() -> bool:
    """True where a policy can be trained; nothing is imported to find out."""
    return importlib.util.find_spec(PACKAGE) is not None


def require_installed() -> None:
    """Refuse in one sentence where it cannot.

    Raises:
        ConfigError: stable-baselines3 is not installed.
    """
    if not is_installed():
        raise ConfigError(MISSING)


def train(
    own: Debates, validation: Debates, seed: int, start: AnswerNetwork | None = None
) -> Trained:
    """A policy by PPO, stopped early where the validation reward has come to a plateau.

    With a `start` it goes on from that policy in small steps (3.5: domain adaptation).

    Raises:
        ConfigError: stable-baselines3 is not installed.
    """
    require_installed()
    from core.learning.ppo import Learner

    if start is None:
        centres, scales = scale_of(own.read[own.is_there])
    else:
        centres, scales = np.array(start.centres), np.array(start.scales)
    level = np.where(own.is_there[:, :, None], scaled(own.read, centres, scales), 0.0)
    learner = Learner(
        level,
        own.is_there,
        np.nan_to_num(own.rewards),
        seed=seed,
        rate=RATE if start is None else SMALL_RATE,
        entropy=ENTROPY,
    )
    if start is not None:
        learner.begin_from(start)

    def network() -> AnswerNetwork:
        return _network(centres, scales, learner.arrays(), 0.0)

    best = network()
    curve = [(reward(best, own), reward(best, validation))]
    place = 0
    for number in range(1, UPDATES + 1):
        learner.update()
        policy = network()
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
    answers: Answers, methods: Sequence[Method] = METHODS, *, seed: int, tell: Tell | None = None
) -> ComparedAnswers:
    """All these weightings on the same folds; `uniform` must be among them.

    Raises:
        InputError: there are fewer groups than folds, or one label only.
        ConfigError: a policy is asked for, and what it is trained with is not installed.
    """
    p: dict[str, Numbers] = {name: np.empty(len(answers)) for name in (*methods, ALWAYS)}
    for number, held in enumerate(held_out(answers.groups, answers.labels, seed), start=1):
        rest, asked = answers.rows(~held), answers.rows(held)
        for method in methods:
            if tell is not None:
                tell(f"{method}: fold {number}")
            p[method][held] = fit(rest, method).p(asked)
        p[ALWAYS][held] = (rest.labels.sum() + 1.0) / (len(rest) + 2.0)
    places = numbered(answers.groups)
    figures = {name: _figures(answers.labels, own, places, seed) for name, own in p.items()}
    alike = Figure(0.5, 0.5, 0.5)
    figures[ALWAYS] |= {"auroc": alike, "balanced_accuracy": alike}
    always = _figures(answers.labels, np.ones(len(answers)) - 1e-9, places, seed)
    figures[ALWAYS] |= {name: always[name] for name in ("f1", "f2")}
    gains: dict[str, Gain] = {
        name: gain_over(answers.labels, p["uniform"], p[name], places, seed)
        for name in methods
        if name != "uniform"
    }
    groups, hallucinated = int(places.max()) + 1, int(answers.labels.sum())
    return ComparedAnswers(figures, gains, len(answers), groups, hallucinated, best_of(gains))


def best_of(gains: Mapping[str, Gain]) -> Method:
    """What the rule above takes; on a tie the simpler one."""
    sure = [name for name in METHODS if name in gains and gains[name].low > 0.0]
    return max(sure, key=lambda name: gains[name].value, default="uniform")


def _figures(labels: Numbers, p: Numbers, groups: Places, seed: int) -> dict[str, Figure]:
    wrong, said = labels == 1.0, p > UNCLEAR
    found = measures(labels, p, is_probability=True)
    found |= {"f1": f_score(wrong, said), "f2": f_score(wrong, said, 4.0)}
    return bootstrap({name: found[name] for name in NAMES}, groups, seed, DRAWS)


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
