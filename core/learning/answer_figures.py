"""How the weightings of answers do on the same folds, and which of them is used.

Each weighting is fitted without a fold's groups and says p of that fold. Intervals are 95 % of a
bootstrap over groups. Beside each stands how much lower its log loss is than that of all alike,
case by case, with its interval and the p of Wilcoxon's signed-rank test over groups (SC-MAKS 4.9).

The rule: of the weightings whose log loss is lower than that of all alike beyond chance (the paired
interval lies above 0), the one with the least; all alike where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.learning.answer_weights import fit
from core.learning.answers import Answers, Flags
from core.learning.consensus import Figure, drawn_groups, figure_of, log_losses, measures
from core.learning.weights import Numbers, Places, folds, numbered
from core.verdict.weigher import METHODS, Method

ALWAYS = "always"
NAMES = ("log_loss", "auroc", "balanced_accuracy", "f1", "f2")
FEWEST_DIFFERENT = 6  # groups that differ, for a signed-rank test to say anything at 5 %
Tell = Callable[[str], None]


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
    fold = folds(answers.groups, answers.labels, seed)
    p: dict[str, Numbers] = {name: np.empty(len(answers)) for name in (*methods, ALWAYS)}
    for number, own in enumerate(np.unique(fold), start=1):
        held = fold == own
        rest, asked = answers.rows(~held), answers.rows(held)
        for method in methods:
            if tell is not None:
                tell(f"{method}: fold {number}")
            p[method][held] = fit(rest, method).p(asked)
        p[ALWAYS][held] = (rest.labels.sum() + 1.0) / (len(rest) + 2.0)
    places = numbered(answers.groups)
    many = int(places.max()) + 1
    weights = drawn_groups(places, many, seed)
    figures = {name: _figures(answers.labels, own, weights) for name, own in p.items()}
    figures[ALWAYS] |= {"auroc": (0.5, 0.5, 0.5), "balanced_accuracy": (0.5, 0.5, 0.5)}
    always = _figures(answers.labels, np.ones(len(answers)) - 1e-9, weights)
    figures[ALWAYS] |= {name: always[name] for name in ("f1", "f2")}
    gains: dict[str, Gain] = {
        name: gain_over(answers.labels, p["uniform"], p[name], places, seed)
        for name in methods
        if name != "uniform"
    }
    used = best_of(gains)
    return ComparedAnswers(figures, gains, len(answers), many, int(answers.labels.sum()), used)


def best_of(gains: Mapping[str, Gain]) -> Method:
    """What the rule above takes; on a tie the simpler one."""
    sure = [name for name in METHODS if name in gains and gains[name].low > 0.0]
    return max(sure, key=lambda name: gains[name].value, default="uniform")


def _figures(labels: Numbers, p: Numbers, weights: Numbers) -> dict[str, Figure]:
    found = dict(measures(labels, p, is_probability=True))
    wrong, said = labels == 1.0, p > 0.5
    for name, beta in (("f1", 1.0), ("f2", 4.0)):
        found[name] = _f_score(wrong, said, beta)
    return {name: figure_of(found[name], weights) for name in NAMES}


def _f_score(wrong: Flags, said: Flags, beta: float) -> Callable[[Numbers], Numbers]:
    """F with recall `beta` (squared) times as weighty as precision; 0 where nothing is found."""
    table = np.stack([wrong & said, wrong, said], axis=1).astype(np.float64)

    def measure(weights: Numbers) -> Numbers:
        both, gold, told = (weights @ table).T
        found: Numbers = (1.0 + beta) * both / np.maximum(beta * gold + told, 1e-9)
        return found

    return measure


def gain_over(labels: Numbers, before: Numbers, after: Numbers, places: Places, seed: int) -> Gain:
    """How much lower the log loss of p `after` is than that of p `before`, case by case."""
    better = log_losses(labels, before) - log_losses(labels, after)
    weights = drawn_groups(places, int(places.max()) + 1, seed)

    def mean(drawn: Numbers) -> Numbers:
        found: Numbers = (drawn @ better) / np.maximum(drawn.sum(axis=1), 1.0)
        return found

    value, low, high = figure_of(mean, weights)
    by_group = np.bincount(places, weights=better)
    differs = by_group[np.abs(by_group) > 1e-12]
    if len(differs) < FEWEST_DIFFERENT:
        return Gain(value, low, high, None)
    from scipy.stats import wilcoxon

    return Gain(value, low, high, float(wilcoxon(differs).pvalue))
