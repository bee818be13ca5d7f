"""Debaters' answers weighed by what a home has learned, where an evaluation is told so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.__main__ import main
from core.agents.rosters import build_roster, make_single_model_roster
from core.debate.protocols import list_modes
from core.review.people import ensure_project
from core.schema.records import CONSENSUS_KIND, Plan
from core.store import open_store
from core.store.versions import ArtefactChoice, LearnedArtefact
from core.verdict.consensus_weights import AnsweringAgent, LearnedWeights, identify_answerers
from tests.agents.seats import workplace
from tests.debate.test_all_protocols_served import sensible
from tests.evaluation.test_evaluate import evaluated, write_claims
from tests.evaluation.tiny_sets import FACTS
from tests.llm.loopback import loopback
from tests.readers import word_assessor

SC_MAKS = ("--protocol", "sc_maks", "--rounds", "1", "--trivial-limit", "1")
MODEL = make_single_model_roster("openai/loopback", "http://127.0.0.1:1/v1")
MODES, _ = list_modes(Plan("sc_maks"))
WORK = replace(workplace([]).work, assessor=word_assessor(), turn_prompts=MODES)
SEATS = identify_answerers(build_roster(MODEL, WORK), MODEL)


@pytest.fixture
def model() -> Iterator[tuple[str, ...]]:
    """Options of a model behind a server in every seat: Ada denies what Ben affirms."""
    with loopback(sensible) as server:
        yield ("--model", "openai/loopback", "--api-base", server.base)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_claims(tmp_path / "data", FACTS[3:6])
    return tmp_path / "data"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def teach(home: Path, weights: dict[AnsweringAgent, float]) -> int:
    """A home whose first project goes by these weights."""
    learned = LearnedWeights("record", tuple(weights), tuple(weights.values()))
    with open_store(home) as store:
        project_id = ensure_project(store, "Mira", 1.0).id
        body = {"answers": {"weights": learned.to_plain(), "lacking": ""}}
        number = store.learned.add(LearnedArtefact(CONSENSUS_KIND, project_id, 2.0, "Mira", body))
        store.learned.use(ArtefactChoice(CONSENSUS_KIND, project_id, number, 3.0, "Mira", "tried"))
    return number


def test_rows_are_weighed_by_what_was_learned_and_it_is_said(
    capsys: pytest.CaptureFixture[str], data: Path, home: Path, model: tuple[str, ...]
) -> None:
    """Ada alone says that the claims are correct; then she alone counts."""
    number = teach(home, {who: float(name == "Ada") for name, who in SEATS.items()})
    more = (*SC_MAKS, *model, "--home", str(home))
    code, found, err = evaluated(capsys, data, "fever_symmetric", *more)
    assert (code, found["weights"], found["options"]) == (0, "uniform", {"rounds": 1})
    assert "weights of answers: uniform" in err
    before = found["metrics"]
    code, found, _ = evaluated(capsys, data, "fever_symmetric", *more, "--weights", "learned")
    assert (code, found["weights"]) == (0, f"record, weights {number}")
    assert found["metrics"] != before, "the same rows, weighed otherwise and not taken from before"
    shown = ("evaluate", "--dataset", "fever_symmetric", "--path", str(data), *more)
    assert main([*shown, "--weights", "learned", "--keep", str(home / "kept")]) == 0
    assert f"weights of answers: record, weights {number}\n" in capsys.readouterr().out
    assert main([*shown, "--keep", str(home / "kept")]) == 0
    assert {path.name for path in (home / "kept").iterdir()} == {
        "fever_symmetric-openai_loopback-sc_maks-rounds_1.json",
        f"fever_symmetric-openai_loopback-sc_maks-rounds_1-record_weights_{number}.json",
    }


@pytest.mark.parametrize(
    ("weights", "more", "told"),
    [
        (None, SC_MAKS, "in use"),
        (
            {AnsweringAgent("Somebody else"): 1.0},
            SC_MAKS,
            "found none of them in record, weights 1",
        ),
        ({}, ("--protocol", "society"), "choose sc_maks"),
        ({}, ("--tool", "calculator"), "leave one out"),
        (None, (*SC_MAKS, "--without", "weights"), "found sc_maks without weights"),
    ],
)
def test_weights_that_nothing_would_be_weighed_by_are_refused(
    capsys: pytest.CaptureFixture[str],
    data: Path,
    home: Path,
    model: tuple[str, ...],
    weights: dict[AnsweringAgent, float] | None,
    more: tuple[str, ...],
    told: str,
) -> None:
    if weights is not None:
        teach(home, weights)
    given = ["--dataset", "fever_symmetric", "--path", str(data), "--home", str(home)]
    assert main(["evaluate", *given, *model, *more, "--weights", "learned"]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert told in lines[0]


def test_side_by_side_only_what_weighs_answers_goes_by_them(
    capsys: pytest.CaptureFixture[str], data: Path, home: Path, model: tuple[str, ...]
) -> None:
    """And an ablation of the weights stands beside it, all alike (SC-MAKS 4.10)."""
    *known, last = SEATS
    number = teach(home, {SEATS[name]: 0.5 for name in known})
    given = ["evaluate", "--dataset", "fever_symmetric", "--path", str(data)]
    given += ["--home", str(home), *model]
    ways = "sc_maks:rounds=1,sc_maks:rounds=1:without=weights"
    assert main([*given, "--limit", "2", "--protocols", ways, "--weights", "learned"]) == 0
    lines = capsys.readouterr().out.splitlines()
    one, other = ways.split(",")
    words = f"record, weights {number}; no record of {last}"
    assert f"{one}: weights of answers: {words}" in lines
    assert f"{other}: weights of answers: uniform" in lines
    assert not any(line.startswith("single: weights") for line in lines)
    assert main([*given, "--protocols", "society", "--weights", "learned"]) == 2
    assert "sc_maks" in capsys.readouterr().err
