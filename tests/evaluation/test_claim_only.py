"""How much of the label shows in the claim alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation import claim_only, reader_pairs, weighing_training
from core.evaluation.claim_only import claim_only_auroc, main
from core.evaluation.datasets import rule_of
from core.evaluation.gold import GoldRow
from core.records import Label


def row(number: int, claim: str, label: Label) -> GoldRow:
    return GoldRow(str(number), f"own, line {number}", claim, label, f"group {number // 2}")


@pytest.mark.parametrize(
    ("claim", "wrong_claim", "least", "most"),
    [
        ("Town {n} has a port.", "Town {n} has no port.", 0.95, 1.0),
        ("Town {pair} has a port.", "Town {pair} has a port.", 0.4, 0.6),
    ],
    ids=["wrong claims share a word", "every claim stands under both labels"],
)
def test_what_the_claims_give_away_is_found(
    claim: str, wrong_claim: str, least: float, most: float
) -> None:
    rows = [
        row(n, wrong_claim.format(n=n, pair=n // 2), "hallucinated")
        if n % 2
        else row(n, claim.format(n=n, pair=n // 2), "supported")
        for n in range(80)
    ]
    found = claim_only_auroc(rows)
    assert found is not None
    assert least < found <= most


def test_few_rows_say_nothing() -> None:
    assert claim_only_auroc([row(n, "It rains.", "supported") for n in range(20)]) is None


def test_every_task_that_is_trained_on_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(claim_only, "load", lambda name, folder, task: iter(()))
    assert main(["--path", str(tmp_path)]) == 0
    named = {line.split(" n=")[0] for line in capsys.readouterr().out.splitlines()}
    assert {"entailment_fm2 gold", "entailment_fm2 retrieved", "factcheck_gpt subtask3"} <= named
    assert {"entailment_climate_fever pairs", "entailment_climate_fever claims"} <= named
    assert {"pubmedqa", "entailment_wice pages", "fever_symmetric"} <= named
    for source in (*reader_pairs.SOURCES, *weighing_training.SOURCES):
        assert f"{source.name} {rule_of(source.name, source.task).task}".strip() in named


def test_all_tasks_of_a_set_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(claim_only, "load", lambda name, folder, task: iter(()))
    assert main(["--path", str(tmp_path), "--dataset", "halueval"]) == 0
    named = [line.split(" n=")[0] for line in capsys.readouterr().out.splitlines()]
    assert named == ["halueval qa", "halueval general", "halueval qa_judgements"]


def test_a_wrong_folder_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--path", str(tmp_path / "nowhere"), "--dataset", "fever_symmetric"]
    assert main(given) == 2
    assert capsys.readouterr().err.count("\n") == 1
