"""Debates over labelled rows as answers to be weighed; recorded verdicts are such, each alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from core.evaluation.gold import GoldRow
from core.evaluation.recorded_cases import Detector, RecordedCase
from core.learning.answers import STRANGER, Answers
from core.records import Turn
from core.verdict.answer_features import NAMES, answer_features, vector
from core.verdict.weigher import Answerer


def answers_from(cases: Sequence[RecordedCase], detectors: Sequence[Detector]) -> Answers:
    """The verdicts of these detectors, who all spoke of every case, as answers to be weighed.

    A verdict that could not be read is unclear. Nobody heard another, and no quotes were asked for.
    """
    seats = {_seat(own): Answerer(own.name, seat=f"prompt {own.prompt}") for own in detectors}
    debates = [
        [_turn(case, place, own) for place, own in enumerate(detectors, start=1)] for case in cases
    ]
    return answers_given(debates, seats, [case.row for case in cases])


def answers_given(
    debates: Sequence[Sequence[Turn]], seats: Mapping[str, Answerer], rows: Sequence[GoldRow]
) -> Answers:
    """Whoever answered in these debates over labelled rows; `seats` says who sits where.

    Every answerer has a column of its own, in their order; a row has nothing there where it gave no
    answer.
    """
    order = sorted(seats, key=lambda name: seats[name])
    said = np.full((len(debates), len(order)), np.nan)
    features = np.full((*said.shape, len(NAMES)), np.nan)
    for row, turns in enumerate(debates):
        found = answer_features(turns)
        for column, name in enumerate(order):
            if name in found:
                said[row, column] = (1.0 + found[name].side) / 2.0
                features[row, column] = vector(found[name])
    return Answers(
        tuple(seats[name] for name in order),
        said,
        np.where(np.isnan(said), STRANGER, np.arange(len(order))),
        features,
        np.array([float(row.label == "hallucinated") for row in rows]),
        np.full(len(rows), np.nan),
        tuple(row.group for row in rows),
    )


def _seat(detector: Detector) -> str:
    """What it is called in a debate."""
    return f"{detector.name} {detector.prompt}"


def _turn(case: RecordedCase, number: int, detector: Detector) -> Turn:
    said = case.said[detector]
    return Turn(
        _seat(detector),
        detector.name,
        number,
        0,
        "agree",
        said.label,
        said.reasoning,
        manner="answer",
    )
