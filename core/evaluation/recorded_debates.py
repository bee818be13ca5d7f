"""Recorded verdicts as debates: each detector answers alone, and its answer is weighed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.evaluation.recorded_cases import Detector, RecordedCase
from core.learning.answers import VALUES, Answers
from core.records import Turn
from core.verdict.answer_features import answer_features, vector
from core.verdict.weigher import STANCES, Answerer


def answers_from(cases: Sequence[RecordedCase], detectors: Sequence[Detector]) -> Answers:
    """The verdicts of these detectors, who all spoke of every case, as answers to be weighed.

    A verdict that could not be read is unclear. Nobody heard another, and no quotes were asked for.
    """
    answerers = tuple(sorted(Answerer(d.name, seat=f"prompt {d.prompt}") for d in detectors))
    order = sorted(detectors, key=lambda d: Answerer(d.name, seat=f"prompt {d.prompt}"))
    said, features = [], []
    for case in cases:
        turns = [_turn(case, place, own) for place, own in enumerate(order, start=1)]
        found = answer_features(turns)
        said.append([VALUES[STANCES.index(turn.stance)] for turn in turns])
        features.append([vector(found[turn.debater]) for turn in turns])
    return Answers(
        answerers,
        np.array(said, dtype=np.float64),
        np.tile(np.arange(len(order)), (len(cases), 1)),
        np.array(features, dtype=np.float64),
        np.array([float(case.row.label == "hallucinated") for case in cases]),
        np.full(len(cases), np.nan),
        tuple(case.row.group for case in cases),
    )


def _turn(case: RecordedCase, number: int, detector: Detector) -> Turn:
    said = case.said[detector]
    seat = f"{detector.name} {detector.prompt}"
    return Turn(
        seat, detector.name, number, 0, "agree", said.label, said.reasoning, manner="answer"
    )
