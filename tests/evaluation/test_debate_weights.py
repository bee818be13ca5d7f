"""Weightings of the built-in readers' answers compared over debates about a labelled set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.evaluation import debate_weights
from core.evaluation.datasets import load
from core.evaluation.debate_weights import argued, main
from core.evaluation.evaluate import Order, ways_of
from core.evaluation.recorded import answers_given
from core.verdict.answer_features import NAMES
from core.verdict.weigher import METHODS, Answerer
from tests.debates import built_in
from tests.evaluation.test_evaluate import write_claims
from tests.evaluation.tiny_sets import FACTS
from tests.verdict.test_answer_features import turn


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_claims(tmp_path / "data", FACTS)
    return tmp_path / "data"


def test_who_gave_no_answer_has_none_and_everybody_keeps_a_column(data: Path) -> None:
    rows = list(load("fever_symmetric", data))[:2]
    seats = {"Ben": Answerer("Reader B"), "Ada": Answerer("Reader A")}
    first = [turn(1, "Ben", "supported"), turn(2, "Ada", "hallucinated")]
    found = answers_given([first, [turn(1, "Ben", "unclear")]], seats, rows)
    assert [agent.name for agent in found.agents] == ["Reader A", "Reader B"]
    assert found.said[0].tolist() == [1.0, 0.0]
    assert found.said[1][1] == 0.5
    assert found.is_there.tolist() == [[True, True], [False, True]]
    assert found.who.tolist() == [[0, 1], [-1, 1]]
    assert found.features.shape == (2, 2, len(NAMES))
    assert found.labels.tolist() == [float(row.label == "hallucinated") for row in rows]


def test_debates_over_a_set_are_those_of_the_way_that_is_named(data: Path, home: Path) -> None:
    order, told = Order("fever_symmetric", data, limit=4), list[str]()
    (way,) = ways_of("ceda")
    found = argued(order, way, home, told.append)
    assert len(found) == 4
    assert found.labels.sum() == 2
    assert len(found.agents) == len(built_in().debaters)
    assert found.is_there.all()


def test_the_command_compares_weightings_beside_a_trivial_answer(
    data: Path,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(debate_weights, "methods_here", lambda: METHODS[:-1])
    given = ["--path", str(data), "--dataset", "fever_symmetric", "--home", str(home)]
    assert main([*given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n"], found["groups"], found["hallucinated"]) == (16, 8, 8)
    assert set(found["figures"]) == {"uniform", "record", "logistic", "always"}
    assert found["figures"]["uniform"]["auroc"][0] > 0.8, "plain claims over plain facts"
    for more, words in (
        (("--way", "single"), "Expected a debate about some row"),
        (("--way", "ceda,ensemble"), "Expected one way"),
        (("--way", "sc_maks"), "built-in readers say the same"),
        (("--limit", "0"), "from 1 on"),
    ):
        assert main([*given, *more]) == 2
        assert words in capsys.readouterr().err
