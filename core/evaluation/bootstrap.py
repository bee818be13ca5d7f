"""Intervals of figures: 95 % percentile bootstrap over groups of related rows, seeded.

Rows of one group (one question, one article) are drawn together: drawn one by one they would
make a set look larger than it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from core.evaluation.metrics import BINS, Measure, bins_of
from core.evaluation.outcomes import Numbers, Outcomes, Places

DRAWS = 1000
AT_ONCE = 50
PERCENTILES = (2.5, 97.5)
DIGITS = 4
Figure = dict[str, float]


def figures(
    named: Mapping[str, Measure], groups: Places, seed: int, draws: int = DRAWS
) -> dict[str, Figure]:
    """`{"value", "low", "high"}` of each; left out where the value itself is undefined.

    All are drawn alike. Draws in which a figure is undefined (only one label) do not count for it.
    """
    whole = np.ones((1, len(groups)))
    values = {name: float(measure(whole)[0]) for name, measure in named.items()}
    defined = {name: named[name] for name, value in values.items() if not np.isnan(value)}
    drawn: dict[str, list[Numbers]] = {name: [] for name in defined}
    count = int(groups.max()) + 1
    random = np.random.default_rng(seed)
    for begin in range(0, draws, AT_ONCE):
        wanted = min(AT_ONCE, draws - begin)
        times = random.multinomial(count, np.full(count, 1 / count), size=wanted)
        weights = times.astype(np.float64)[:, groups]
        for name, measure in defined.items():
            drawn[name].append(measure(weights))
    return {name: _figure(values[name], np.concatenate(drawn[name])) for name in defined}


def _figure(value: float, drawn: Numbers) -> Figure:
    there = drawn[~np.isnan(drawn)]
    low, high = np.percentile(there, PERCENTILES) if len(there) else (value, value)
    return {name: round(float(x), DIGITS) for name, x in zip(KEYS, (value, low, high), strict=True)}


KEYS = ("value", "low", "high")


def calibrated_null(found: Outcomes, seed: int, draws: int = DRAWS) -> Figure | None:
    """The ECE that a perfectly calibrated model with these p would show, by chance alone.

    The mean over draws of labels from the p themselves, with the middle 95 %; None where nothing
    was answered. Groups play no part: a calibrated model's errors are its own.
    """
    p = found.p[found.answered]
    if not len(p):
        return None
    inside = (bins_of(p)[:, None] == np.arange(BINS)).astype(np.float64)
    random = np.random.default_rng(seed)
    errors = []
    for begin in range(0, draws, AT_ONCE):
        labels = random.random((min(AT_ONCE, draws - begin), len(p))) < p
        errors.append(np.abs((p - labels) @ inside).sum(axis=1) / len(p))
    drawn = np.concatenate(errors)
    return _figure(float(drawn.mean()), drawn)
