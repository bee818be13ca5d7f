"""Agreement of agents who answered alone, and how many responses the evidence carries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluation.dataset_files import GoldRow
from core.evaluation.engine_runs import collect_first_answers, get_statement_labels
from core.evaluation.metrics import build_measures, compute_agent_figures
from core.evaluation.outcomes import (
    FAILED_CAUSE,
    Outcomes,
    Prediction,
    PredictionCache,
    predict_constant,
)
from core.schema.records import Judgement, Label
from core.schema.run_state import RunState
from tests.verdict.test_answer_features import turn

LABELS = st.sampled_from(["supported", "hallucinated", "unclear"])


def outcomes(*said: Prediction) -> Outcomes:
    rows = [
        GoldRow(f"row {n}", f"place {n}", "Words.", "supported", f"group {n}")
        for n in range(len(said))
    ]
    return Outcomes(rows, said)


def figures(*said: Prediction) -> dict[str, float]:
    found = build_measures(outcomes(*said))
    return {name: float(own(np.ones((1, len(said))))[0]) for name, own in found.items()}


def told(openings: tuple[Label, ...], statements: tuple[Label, ...] = ()) -> Prediction:
    return Prediction("supported", 0.1, openings=openings, statements=statements)


def test_only_first_answers_of_those_who_heard_nobody_count() -> None:
    progress = RunState()
    progress.turns = [
        turn(1, "Ada", "supported", manner="answer"),
        turn(2, "Ben", "hallucinated", manner="detect"),
        turn(3, "Cleo", "unclear", manner="debate"),
        turn(4, "Ada", "hallucinated", manner="reconsider"),
        turn(5, "Ben", "supported", manner="answer"),
    ]
    assert collect_first_answers(progress) == ("supported", "hallucinated")
    assert get_statement_labels(progress) == ()
    progress.judgement = Judgement("Judge", "hallucinated", "So it is.")
    assert get_statement_labels(progress) == ("hallucinated",)


def test_agreement_is_pairwise_and_of_all() -> None:
    two_of_three = told(("supported", "supported", "hallucinated"))
    found = figures(two_of_three, told(("unclear", "unclear")), told(("supported",)))
    assert found["caar"] == pytest.approx((1 / 3 + 1) / 2), "one answer alone agrees with nobody"
    assert found["caar_all"] == pytest.approx(1 / 2)
    assert "fcr" not in found
    # Of the five answers that can agree with one two are supported, one is not, two stay open.
    assert found["caar_chance"] == pytest.approx((2**2 + 1 + 2**2) / 5**2)


def test_answers_of_which_all_are_alike_agree_by_chance_too() -> None:
    same = figures(told(("supported",) * 3), told(("supported",) * 2))
    assert (same["caar"], same["caar_chance"]) == (1.0, 1.0)


def test_trivial_answers_stand_beside_what_an_engine_finds() -> None:
    rows = outcomes(told(()), told(())).rows
    named = build_measures(predict_constant("hallucinated", rows))
    assert [float(named[name](np.ones((1, 2)))[0]) for name in ("fcr", "hr")] == [0.0, 1.0]
    assert "caar" not in named


def test_a_response_is_carried_with_all_its_statements_and_wrong_with_one() -> None:
    found = figures(
        told((), ("supported", "supported")),
        told((), ("supported", "hallucinated")),
        told((), ("supported", "unclear")),
        told((), ("supported",)),
        Prediction("unclear", cause=FAILED_CAUSE, statements=("hallucinated",)),
    )
    assert (found["fcr"], found["hr"]) == (0.5, 0.25)
    assert "caar" not in found


@given(st.lists(st.lists(LABELS, min_size=2, max_size=5), min_size=1, max_size=8))
def test_where_all_agree_so_does_every_pair(rows: list[list[Label]]) -> None:
    found = compute_agent_figures(outcomes(*(told(tuple(row), tuple(row)) for row in rows)))
    assert (found["caar_all"] <= found["caar"]).all()
    assert (found["fcr"] + found["hr"] <= 1.0).all()
    turned = compute_agent_figures(outcomes(*(told(tuple(row[::-1])) for row in rows)))
    assert turned["caar"] == pytest.approx(found["caar"]), "the order of agents is no matter"


def test_what_agents_said_is_kept_with_the_row(home: Path) -> None:
    said = told(("supported", "unclear"), ("supported", "hallucinated"))
    kept = PredictionCache(home, "set", ("one",))
    kept.add("digest", said)
    kept.close()
    again = PredictionCache(home, "set", ("one",))
    assert again.get("digest") == said
    again.close()
