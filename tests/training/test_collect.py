"""Public repositories become rows of one shape, with where they came from."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from core.evaluation.dataset_files import assign_fold
from core.evaluation.datasets import load_dataset_rows
from core.verdict.classifier import SEED_FOLDER, load_head
from tests.evaluation.tiny_sets import write_sets
from training import collect
from training import train_seed_classifier as seed_head
from training.collect import (
    DataSource,
    read_infotabs,
    read_mctest,
    read_rte3_xml,
    read_squad,
    read_summedits,
)
from training.train_seed_classifier import FOLD_COUNT, main

SNLI = {
    "dataset/eSNLI/s1.dev": "A man sleeps .\n",
    "dataset/eSNLI/s2.dev": "A man is awake .\n",
    "dataset/eSNLI/labels.dev": "contradiction\n",
}


def test_a_table_becomes_lines_with_its_title() -> None:
    texts = {
        "data/tables/json/T1.json": json.dumps({"title": ["Ann Lee"], "Born": ["1950", "Riga"]}),
        "data/maindata/a.tsv": "table_id\thypothesis\tlabel\nT1\tAnn was born in Oslo.\tC\n",
    }
    (row,) = read_infotabs(texts)
    assert row["evidence"] == "Ann Lee, Born: 1950; Riga."
    assert (row["label"], row["claim"]) == ("contradicted", "Ann was born in Oslo.")


def test_the_right_choice_is_supported_and_the_others_are_not() -> None:
    story = "mc.0\tAuthor\tTom ran.\\newlineHe fell.\tone: Who fell?\tTom\tAnn\tMax\tEve"
    (path,) = ["data/MCTest/mc160.dev.tsv"]
    rows = list(read_mctest({path: story + "\n", path.replace(".tsv", ".ans"): "A\n"}))
    assert [row["label"] for row in rows] == ["supported"] + ["not_supported"] * 3
    assert rows[0]["question"] == "Who fell?"
    assert rows[0]["evidence"] == "Tom ran. He fell."


def test_entities_of_a_corpus_are_read_and_none_is_resolved() -> None:
    text = '<pair id="7" entailment="NO" task="IE"><t>A &amp; B</t>\n<h>&x; C</h></pair>'
    (row,) = read_rte3_xml({"RTE3-DE_DE_/a-dev-set.xml": text})
    assert (row["evidence"], row["claim"], row["language"]) == ("A & B", "&x; C", "de")


def test_a_right_summary_gives_its_sentences_too() -> None:
    summary = "Ann bought a large new house. Tom sold his old red car."
    told = [{"id": "a_og", "doc": "Long text.", "summary": summary, "label": 1},
            {"id": "a_1", "doc": "Long text.", "summary": "Ann sold it.", "label": 0}]  # fmt: skip
    rows = list(read_summedits({"data/summedits/summedits_samsum.json": json.dumps(told)}))
    assert [row["label"] for row in rows] == ["supported"] * 3 + ["not_supported"]
    assert {row["group"] for row in rows} == {"a"}
    assert {row["set"] for row in rows} == {"summedits talks"}


def test_paragraphs_with_questions_say_their_language() -> None:
    paragraph = {"context": "Riga is old.", "qas": [
        {"question": "What is old?", "answers": [{"text": "Riga"}, {"text": "Riga"}]}]}  # fmt: skip
    text = json.dumps({"data": [{"paragraphs": [paragraph]}]})
    (row,) = read_squad({"x/tydiqa.goldp.fi.dev.json": text})
    assert (row["language"], row["answers"]) == ("fi", ["Riga"])


def test_what_a_repository_holds_is_written_with_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "mirror" / "a+b" / "repo"
    for name, text in SNLI.items():
        for part in ("dev", "test"):
            path = work / name.replace("dev", part)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=work, check=True)
    source = DataSource("snli", "a/b", "MIT", r"dataset/eSNLI/\w+\.(dev|test)", collect.read_snli)
    monkeypatch.setattr(collect, "SOURCES", (source,))
    assert collect.main(["--mirror", str(tmp_path / "mirror"), "--out", str(tmp_path / "o")]) == 0
    with gzip.open(tmp_path / "o" / "data" / "00-snli.jsonl.gz", "rt") as lines:
        first = json.loads(next(lines))
    assert (first["label"], first["claim"]) == ("contradicted", "A man is awake .")
    told = json.loads((tmp_path / "o" / "sources.d" / "00-snli.json").read_text())
    assert (told["rows"], len(told["commit"])) == (2, 40)


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_weights")]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sets that the test writes, whole: they are too small to be parted."""
    names = ("fever_symmetric", "entailment_fm2", "entailment_breaking_nli", "entailment_cad_nli")
    monkeypatch.setattr(seed_head, "ROWS_BY_SET", dict.fromkeys(names, 10))
    monkeypatch.setattr(seed_head, "CALIBRATION_SPLIT", None)


def test_missing_data_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--path", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("Expected a data folder at")
    assert len(captured.err.splitlines()) == 1


def test_rows_over_the_same_evidence_lie_in_one_fold(tmp_path: Path) -> None:
    write_sets(tmp_path)
    folds: dict[str, set[int]] = {}
    for row in load_dataset_rows("fever_symmetric", tmp_path):
        folds.setdefault(row.documents[0], set()).add(assign_fold(row.group, FOLD_COUNT))
    assert all(len(found) == 1 for found in folds.values())
    assert all(0 <= fold < FOLD_COUNT for found in folds.values() for fold in found)
    assert assign_fold("Is it 38 m high?", FOLD_COUNT) == assign_fold("is it 38m HIGH", FOLD_COUNT)
    assert 0 <= assign_fold("a\ud800b", FOLD_COUNT) < FOLD_COUNT


def test_a_head_is_trained_with_a_card_that_says_how_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_sets(tmp_path)
    monkeypatch.setattr(seed_head, "SEED_FOLDER", tmp_path / "seed")
    assert main(["--path", str(tmp_path), "--limit", "10"]) == 0
    head, card = load_head(tmp_path / "seed")
    assert {name: entry["rows"] for name, entry in card["trained_on"].items()} == dict.fromkeys(
        seed_head.ROWS_BY_SET, 10
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
