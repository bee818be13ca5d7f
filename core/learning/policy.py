"""The policy w(Q; θ): how much each answer counts, by PPO from a reward model (SC-MAKS 3.5).

One debate is one step. What is observed are the features of all answers; an action is a score for
each, and a softmax makes weights of it. The reward is Σ w_i r_i, the reward model's value of the
weighted mixture, plus `ENTROPY` times the weights' entropy, which keeps them apart from putting all
on one agent; r_i come from reward models that saw nothing of the debate's group. So the best policy
there is has w_i in proportion to exp(r_i / ENTROPY).

PPO is that of stable-baselines3 (MIT), an optional extra: `requirements-policy.txt`. What is
learned is taken out as plain arrays; to use that nothing needs to be installed.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import numpy as np

from core.errors import ConfigError
from core.learning.answers import Flags
from core.learning.reward_model import scale_of
from core.learning.votes import Numbers
from core.verdict.weigher import READ, AnswerNetwork, scaled, softmax

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
