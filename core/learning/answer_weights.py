"""Fits the weights w(Q; θ) of a debate's answers: all alike, by record, logistic, or by a policy.

- record: each agent's log-odds of being right where it decided, drawn to those of all agents; 0
  for one that is no better than a coin.
- logistic: a regression over signed answers with weights that are not negative, so that agents that
  err together share what they count (`weights.py`).
- policy: features of all answers, through a network that PPO trained on a reward model.

Source: SC-MAKS 3.2 (w_i(Q; θ)), 3.5; 4.10 (uniform vote, no RLHF).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.errors import InputError
from core.learning.answers import STRANGER, Answers, past_of, read_of, shares, weights_for
from core.learning.reward_policy import Debates, Trained, fit_rewards, train
from core.learning.weights import UNCLEAR, Numbers, Stack, fit_stack, grouped_folds, numbered
from core.verdict.weigher import DRAWN, AnswerNetwork, LearnedWeights, Method, PastAnswers

POLICY_SEED = 5


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
        return _policy(answers, start)
    past, whole = past_of(answers)
    fixed: tuple[float, ...] = ()
    if method == "record":
        fixed = tuple(_record(own, whole) for own in past)
    elif method == "logistic":
        fixed = _logistic(answers)
    return with_platt(LearnedWeights(method, answers.agents, fixed, past, whole), answers)


def _policy(answers: Answers, start: LearnedWeights | None) -> Fitted:
    reward = fit_rewards(answers)
    read = read_of(answers)
    debates = Debates(read, answers.is_there, reward.unseen)
    wrong, groups = answers.labels == 1.0, numbered(answers.groups)
    _, held = next(grouped_folds(wrong, groups, POLICY_SEED))
    is_held = np.isin(np.arange(len(answers)), held)
    before = start.policy if start is not None else None
    trained = train(debates.rows(~is_held), debates.rows(is_held), POLICY_SEED, before)
    past, whole = past_of(answers)
    weights = LearnedWeights(
        "policy", answers.agents, past=past, whole=whole, policy=trained.policy
    )
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
