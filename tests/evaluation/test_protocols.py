"""Protocols side by side: the same rows for all, a paired difference, and going on after a stop."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from core.__main__ import main
from core.evaluation.dataset_files import GoldRow
from core.evaluation.engine_runs import EngineRuns
from core.evaluation.evaluate import compute_figures, parse_ways
from core.evaluation.outcomes import Outcomes, Prediction
from core.evaluation.system_comparison import compare_systems
from core.schema.records import Label
from core.schema.rosters import DEFAULT_OPTIONS, DebateOptions
from tests.debate.test_all_protocols_served import sensible
from tests.evaluation.test_evaluate import write_claims
from tests.evaluation.tiny_sets import FACTS
from tests.llm.loopback import loopback

LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")
ROWS = 12


def rows() -> list[GoldRow]:
    """Half of them right, in groups of two."""
    golds: tuple[Label, ...] = ("supported", "hallucinated") * (ROWS // 2)
    return [
        GoldRow(f"r{n}", f"row {n}", f"Claim {n}.", gold, f"g{n // 2}")
        for n, gold in enumerate(golds)
    ]


def outcomes(said: list[tuple[Label, float]]) -> Outcomes:
    return Outcomes(rows(), [Prediction(label, p) for label, p in said])


def test_a_difference_is_that_of_the_two_figures_and_turns_with_them() -> None:
    said = [(LABELS[n % 3], n / ROWS) for n in range(ROWS)]
    systems = {"one": outcomes(said), "other": outcomes(said[3:] + said[:3])}
    for figure in ("balanced_accuracy", "auroc", "f1"):
        (there,), (back,) = (
            compare_systems(systems, figure, baseline=name) for name in ("other", "one")
        )
        assert there.difference is not None
        assert back.difference is not None
        assert there.difference.low == pytest.approx(-back.difference.high)
        values = [compute_figures(own, 0, 1, [figure])[figure]["value"] for own in systems.values()]
        assert there.difference.value == pytest.approx(values[0] - values[1], abs=1e-3)


def test_what_is_right_everywhere_beats_what_is_wrong_everywhere() -> None:
    golds = [row.label for row in rows()]
    right = [(gold, float(gold == "hallucinated")) for gold in golds if gold]
    wrong = [(LABELS[gold == "supported"], float(gold == "supported")) for gold in golds]
    lucky = [*right[:1], *wrong[1:]]
    systems = {"right": outcomes(right), "lucky": outcomes(lucky), "wrong": outcomes(wrong)}
    found = compare_systems(systems, "balanced_accuracy")
    assert [(one.system, one.other, one.winner) for one in found] == [
        ("right", "lucky", "right"),
        ("right", "wrong", "right"),
        ("lucky", "wrong", ""),
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_claims(tmp_path / "data", FACTS[:3])
    return tmp_path / "data"


def measured(data: Path, *more: str) -> list[str]:
    home = data.parent / "home"
    return [
        "evaluate",
        "--path",
        str(data),
        "--dataset",
        "fever_symmetric",
        "--home",
        str(home),
        *more,
    ]


def test_all_are_measured_on_the_same_rows_and_not_twice(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(measured(data, "--protocols", "ceda", "--json")) == 0
    first = json.loads(capsys.readouterr().out)
    assert [one["protocol"] for one in first["protocols"]] == ["single", "ceda"], "the baseline too"
    single, ceda = first["protocols"]
    assert first["rows"] == 6
    assert first["always_hallucinated"]["balanced_accuracy"]["value"] == 0.5
    assert single["turns"] == 0
    assert (single["calls"]["turns"], single["calls"]["total"]) == (0, 1)
    assert 2 <= ceda["turns"] <= ceda["calls"]["turns"]
    assert ceda["calls"]["total"] == ceda["calls"]["turns"] + 2
    compared = {one["figure"]: one for one in first["comparisons"]}
    assert set(compared) >= {"balanced_accuracy", "auroc", "f1"}
    assert all((one["system"], one["other"]) == ("ceda", "single") for one in compared.values())
    assert {"McNemar", "Wilcoxon", "corrected t"} <= set(compared["f1"]["statistics"])

    def never(*_: object) -> None:
        raise AssertionError("a row was checked again")

    monkeypatch.setattr(EngineRuns, "predict_row", never)
    assert main(measured(data, "--protocols", "ceda")) == 0
    shown = capsys.readouterr().out
    assert "| ceda |" in shown
    assert f"{np.round(ceda['balanced_accuracy']['value'], 3):.3f}" in shown


def test_options_stand_beside_each_other(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(measured(data, "--protocols", "ceda,ceda:swap", "--limit", "2", "--json")) == 0
    found = json.loads(capsys.readouterr().out)["protocols"]
    assert [one["protocol"] for one in found] == ["single", "ceda", "ceda:swap"]


def test_a_way_can_be_laid_beside_another_than_a_single_judge(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SC-MAKS 4.10: without one part, against the whole, in F1, FCR and HR."""
    ways: tuple[str, ...] = (
        "--against",
        "sc_maks",
        "--protocols",
        "sc_maks:without=adversary",
        "--limit",
        "4",
    )
    with loopback(sensible) as server:
        ways = (*ways, "--limit", "4", "--model", "openai/loopback", "--api-base", server.base)
        assert main(measured(data, *ways, "--json")) == 0
        found = json.loads(capsys.readouterr().out)
        assert main(measured(data, *ways)) == 0
    whole, part = found["protocols"]
    assert (found["baseline"], whole["protocol"]) == ("sc_maks", "sc_maks")
    assert part["calls"]["total"] == 13
    assert part["turns"] < whole["turns"]
    assert found["golds"] == {"supported": 2, "hallucinated": 2}
    assert {one["figure"] for one in found["comparisons"]} >= {"f1", "fcr", "hr"}
    assert found["always_hallucinated"]["hr"]["value"] == 1.0
    shown = capsys.readouterr().out
    assert "| sc_maks:without=adversary | sc_maks | hr |" in shown
    assert re.search(r"the set's labels \|.* 0\.500 \| 0\.500 \| – \|", shown)


def test_a_way_is_a_protocol_with_options() -> None:
    found = parse_ways("single:samples=5:style=thought, ceda,ceda")
    assert [way.name for way in found] == ["single:samples=5:style=thought", "ceda"]
    assert found[0].options == DebateOptions(samples=5, style="thought")
    assert found[1].options == DEFAULT_OPTIONS
    assert parse_ways("sc_maks:without=adversary")[0].options == DebateOptions(without="adversary")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--protocols", "ceda,loud"), "Expected protocols of"),
        (("--protocols", "colmad"), "whose debaters are all language models"),
        (("--protocols", "ceda:rounds=1"), "Expected no --rounds"),
        (("--protocols", "single:samples=0"), "Expected an option"),
        (("--protocols", "single:samples=0050"), "Expected an option"),
        (("--protocols", "adaptive:then=single"), "Expected an option"),
        (("--protocols", "single:style=loud"), "Expected an option"),
        (("--protocols", "sc_maks:without="), "Expected an option"),
        (("--protocols", "ceda:without=adversary"), "Expected no --without"),
        (("--protocols", "ceda", "--dataset", "nothing"), "nothing"),
        (("--protocols", "ceda", "--limit", "0"), "--limit"),
        (("--protocols", "ceda", "--against", "single,ceda"), "one way in --against"),
    ],
)
def test_what_cannot_be_measured_takes_one_line(
    data: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], told: str
) -> None:
    assert main(measured(data, *more)) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert told in lines[0]
