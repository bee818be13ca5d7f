"""The reward model: how well an agent's answer agrees with people, from how it fared in the debate.

A small feed-forward network (SC-MAKS 3.5.1) over the features of one answer. What it is trained
towards is 1 where the answer takes the side that people decided on, else 0; where people also rated
the response (accuracy, coherence, consistency: 4.6), half of it is how near the answer lies to
their ratings, "supported" being near to a good one. Debates of both labels weigh the same in all,
else merely taking the commoner side would earn a reward.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.learning.answers import Answers, read_of
from core.learning.stack import grouped_folds
from core.learning.votes import Numbers, numbered
from core.verdict.head import sigmoid
from core.verdict.weigher import READ, AnswerNetwork, scaled

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
