"""The reward model: how well an agent's answer agrees with people, from how it fared in the debate.

A small feed-forward network (SC-MAKS 3.5.1) over the features of one answer. What it is trained
towards is 1 where the answer takes the side that people decided on, else 0; where people also rated
the response (accuracy, coherence, consistency: 4.6), half of it is how near the answer lies to
their ratings, "supported" being near to a good one. Debates of both labels weigh the same in all,
else merely taking the commoner side would earn a reward.

The policy w(Q; θ): how much each answer counts, by PPO from a reward model (SC-MAKS 3.5). One
debate is one step. What is observed are the features of all answers; an action is a score for
each, and a softmax makes weights of it. The reward is Σ w_i r_i, the reward model's value of the
weighted mixture, plus `ENTROPY` times the weights' entropy, which keeps them apart from putting
all on one agent; r_i come from reward models that saw nothing of the debate's group. So the best
policy there is has w_i in proportion to exp(r_i / ENTROPY). PPO is that of stable-baselines3
(MIT), an optional extra: `requirements-policy.txt`. What is learned is taken out as plain arrays;
to use that nothing needs to be installed.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import numpy as np

from core.errors import ConfigError
from core.learning.answers import Answers, Flags, read_of
from core.learning.weights import Numbers, grouped_folds, numbered
from core.verdict.head import sigmoid
from core.verdict.weigher import READ, AnswerNetwork, scaled, softmax

HIDDEN = 6
PENALTY = 2.0  # on squared weights, against a sum of losses over answers
MOST_STEPS = 200
SEED = 23


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


def fit_rewards(answers: Answers, seed: int = SEED) -> Rewards:
    """The reward model of these debates; always the same from the same.

    Raises:
        InputError: there are fewer groups than folds.
    """
    read, wanted, there = read_of(answers), targets(answers), answers.is_there
    unseen, worth = np.full(answers.said.shape, np.nan), _balanced(answers)
    wrong, groups = answers.labels == 1.0, numbered(answers.groups)
    for fit, test in grouped_folds(wrong, groups, seed):
        own = there[fit]
        model = fit_network(read[fit][own], wanted[fit][own], seed, worth[fit][own])
        unseen[test] = np.where(there[test], rewards(model, read[test]), np.nan)
    return Rewards(fit_network(read[there], wanted[there], seed, worth[there]), unseen)


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
    start = np.concatenate(
        [random.normal(0.0, wide**-0.5, wide * HIDDEN), np.zeros(2 * HIDDEN), [_odds(wanted)]]
    )

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
    return AnswerNetwork(
        READ,
        tuple(centres.tolist()),
        tuple(scales.tolist()),
        tuple(tuple(row) for row in hidden.tolist()),
        tuple(shift.tolist()),
        tuple(out.tolist()),
        float(last),
    )


def _balanced(answers: Answers) -> Numbers:
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


def _odds(wanted: Numbers) -> float:
    share = (wanted.sum() + 1.0) / (len(wanted) + 2.0)
    return float(np.log(share / (1.0 - share)))


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


@dataclass(frozen=True)
class Debates:
    """What a policy is trained on: `read` (n, s, d), who is there (n, s), rewards (n, s)."""

    read: Numbers
    is_there: Flags
    rewards: Numbers

    def rows(self, which: Flags) -> Debates:
        """The same of these debates only."""
        return Debates(self.read[which], self.is_there[which], self.rewards[which])


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
        hidden, hidden_shift, out = learner.arrays()
        return AnswerNetwork(
            READ,
            tuple(centres.tolist()),
            tuple(scales.tolist()),
            tuple(tuple(row) for row in hidden.tolist()),
            tuple(hidden_shift.tolist()),
            tuple(out.tolist()),
            0.0,
        )

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
    found: Numbers = value + entropy * spread
    return found
