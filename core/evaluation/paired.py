"""Two engines on the same rows: by how much one's figures differ, and whether that may be chance.

The interval is a bootstrap of the difference itself: a draw of groups weighs both engines' rows
alike, so what makes a row hard for both cancels out (`core/evaluation/bootstrap.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.evaluation.bootstrap import Figure, figures
from core.evaluation.metrics import Measure, measures
from core.evaluation.outcomes import Numbers, Outcomes

COMPARED = ("balanced_accuracy", "auroc")
BESIDE = ("f1", "fcr", "hr")  # what ablations are expected to move (SC-MAKS table 4)
DECIDES = "balanced_accuracy"


@dataclass(frozen=True)
class Paired:
    """One engine's figures less the other's, each with its 95 % interval.

    `righted` rows are right here and wrong there, `wronged` the other way round. `words` say what
    the interval of the balanced accuracy shows; where a set has one label only, of nothing.
    """

    figures: Mapping[str, Figure]
    righted: int
    wronged: int
    is_same: bool = False

    @property
    def words(self) -> str:
        """What this shows, for people."""
        figure = self.figures.get(DECIDES)
        if self.is_same:
            return "the same answer on every row"
        if figure is None or figure["low"] <= 0 <= figure["high"]:
            return "no difference shown"
        return "better" if figure["low"] > 0 else "worse"


def against(found: Outcomes, other: Outcomes, seed: int) -> Paired:
    """`found` beside `other`, which holds the same rows in the same order.

    Raises:
        ValueError: they hold other rows.
    """
    if [row.id for row in found.rows] != [row.id for row in other.rows]:
        raise ValueError("paired figures need the same rows")
    here, there = measures(found), measures(other)
    named = {
        name: _difference(here[name], there[name])
        for name in (*COMPARED, *BESIDE)
        if name in here and name in there
    }
    right, right_there = found.right, other.right
    return Paired(
        figures(named, found.groups, seed),
        int((right & ~right_there).sum()),
        int((~right & right_there).sum()),
        found.told == other.told,
    )


def _difference(one: Measure, other: Measure) -> Measure:
    def measure(weights: Numbers) -> Numbers:
        return one(weights) - other(weights)

    return measure
