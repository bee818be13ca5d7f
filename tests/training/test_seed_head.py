"""The seed head's training, in small: folds by evidence, figures out of fold, errors in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.datasets import load
from core.evaluation.files import fold_of
from core.verdict.classifier import SEED_FOLDER, load_head
from tests.evaluation.tiny_sets import write_sets
from training import train_seed_classifier as seed_head
from training.train_seed_classifier import FOLDS, main

pytestmark = pytest.mark.usefixtures("without_weights")


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sets that the test writes, whole: they are too small to be parted."""
    names = ("fever_symmetric", "entailment_fm2", "entailment_breaking_nli", "entailment_cad_nli")
    monkeypatch.setattr(seed_head, "SETS", dict.fromkeys(names, 10))
    monkeypatch.setattr(seed_head, "SPLIT", None)


def test_missing_data_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--path", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("Expected a data folder at")
    assert len(captured.err.splitlines()) == 1


def test_rows_over_the_same_evidence_lie_in_one_fold(tmp_path: Path) -> None:
    write_sets(tmp_path)
    folds: dict[str, set[int]] = {}
    for row in load("fever_symmetric", tmp_path):
        folds.setdefault(row.documents[0], set()).add(fold_of(row.group, FOLDS))
    assert all(len(found) == 1 for found in folds.values())
    assert all(0 <= fold < FOLDS for found in folds.values() for fold in found)


def test_a_group_has_one_fold_however_it_is_written() -> None:
    assert fold_of("Is it 38 m high?", FOLDS) == fold_of("is it 38m HIGH", FOLDS)
    assert 0 <= fold_of("a\ud800b", FOLDS) < FOLDS


def test_a_head_is_trained_with_a_card_that_says_how_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sets(tmp_path)
    monkeypatch.setattr(seed_head, "SEED_FOLDER", tmp_path / "seed")
    assert main(["--path", str(tmp_path), "--limit", "10"]) == 0
    head, card = load_head(tmp_path / "seed")
    assert {name: entry["rows"] for name, entry in card["trained_on"].items()} == dict.fromkeys(
        seed_head.SETS, 10
    )
    line = card["trained_on"]["fever_symmetric"]
    assert line["permits"] == "yes"
    (digest,) = line["files"].values()
    assert set(line["files"]) == {"fever_symmetric/fever_symmetric_dev.jsonl.gz"}
    assert len(digest) == 64
    assert card["rows"] == 40
    decided = card["rows"] - card["unclear"]
    assert card["text_alone"]["n"] == card["judge_alone"]["n"] == decided
    assert sum(band["n"] for band in card["reliability"]) == decided
    assert (head.text_gain, head.judge_weight) == (0.0, 1.0), "the judge's p is passed on"
    assert len(head.weights) == len(load_head(SEED_FOLDER)[0].weights)
    assert str(card["text_alone"]) in capsys.readouterr().out


def test_too_little_data_to_fold_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sets(tmp_path)
    assert main(["--path", str(tmp_path), "--limit", "1"]) == 2
    assert "Expected rows of both labels in every fold" in capsys.readouterr().err
