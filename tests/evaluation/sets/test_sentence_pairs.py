"""Premise and hypothesis in every format that they come in, under names of splits not seen here."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from core.evaluation.datasets import load, rule_of
from core.evaluation.files import GoldRow
from core.runtime.errors import InputError
from core.schema.records import Label
from tests.evaluation.sets.files import write, write_lines, write_table

PREMISE = "The Nordre lighthouse is 38 m high and white."
CLAIMS = (
    "The lighthouse is white.",
    "The lighthouse is 48 m high.",
    "The lighthouse has two keepers.",
)
LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")
WORDS = ("entailment", "contradiction", "neutral")
SHORT = ("e", "c", "n")


def rows_of(name: str, folder: Path, split: str | None = None) -> list[GoldRow]:
    return list(load(name, folder, split=split))


def pairs(first: str, second: str, label: str, words: tuple[str, ...]) -> list[dict[str, object]]:
    """One row for each label, under the column names of a set."""
    return [
        {first: PREMISE, second: claim, label: word}
        for claim, word in zip(CLAIMS, words, strict=False)
    ]


def assert_three(rows: list[GoldRow], language: str = "en") -> None:
    """One row a label: the claim is the response, the premise the only document."""
    assert [row.label for row in rows] == list(LABELS)
    assert [row.response for row in rows] == list(CLAIMS)
    assert {row.documents for row in rows} == {(PREMISE,)}
    assert {row.language for row in rows} == {language}
    assert len({row.id for row in rows}) == len(rows)
    assert len({row.group for row in rows}) == 1


@pytest.mark.parametrize(
    ("name", "file"),
    [("entailment_control", "test.jsonl.gz"), ("entailment_sanli", "sim_wiki/test.jsonl.gz")],
)
def test_lines_with_letters_for_labels(tmp_path: Path, name: str, file: str) -> None:
    rows = pairs("premise", "hypothesis", "label", SHORT)
    write_lines(tmp_path / name / file, rows)
    assert_three(rows_of(name, tmp_path))
    assert_three(rows_of(name, tmp_path, "test"))


def test_anli_is_a_table_with_quotes_and_lines_inside(tmp_path: Path) -> None:
    rows = pairs("context", "statement", "gold_label", SHORT)
    rows.append({"context": 'A "b",\nc', "statement": "D, e", "gold_label": "e"})
    write_table(tmp_path / "entailment_anli" / "ANLI_analysis_r2_test.csv.gz", rows)
    found = rows_of("entailment_anli", tmp_path)
    assert_three(found[:3])
    assert found[3].documents == ('A "b",\nc',)


def test_breaking_nli_is_read_inside_its_zip(tmp_path: Path) -> None:
    path = tmp_path / "entailment_breaking_nli" / "breaking_nli_dataset.zip"
    path.parent.mkdir()
    rows = pairs("sentence1", "sentence2", "gold_label", WORDS)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/dataset.jsonl", "\n".join(json.dumps(row) for row in rows))
    found = rows_of("entailment_breaking_nli", tmp_path)
    assert_three(found)
    assert found[0].place == f"{path}/data/dataset.jsonl, line 1"


@pytest.mark.parametrize(
    ("name", "file", "columns"),
    [
        ("entailment_cad_nli", "test.tsv", ("sentence1", "sentence2", "gold_label")),
        ("entailment_conjnli", "conj_test.tsv", ("Premise", "Hypothesis", "Label")),
        ("entailment_sick", "SICK_TEST.tsv.gz", ("sentence_A", "sentence_B", "entailment_label")),
        ("entailment_sick", "SICK.tsv", ("sentence_A", "sentence_B", "entailment_judgment")),
    ],
)
def test_tables_with_three_labels(
    tmp_path: Path, name: str, file: str, columns: tuple[str, str, str]
) -> None:
    words = tuple(word.upper() if "sick" in name else word for word in WORDS)
    text = "\ufeff" + "\t".join(columns) + "\n"
    text += "".join(f"{PREMISE}\t{claim}\t{w}\n" for claim, w in zip(CLAIMS, words, strict=True))
    write(tmp_path / name / file, text)
    assert_three(rows_of(name, tmp_path))


@pytest.mark.parametrize(
    ("name", "columns", "word"),
    [
        ("entailment_rte", ("sentence1", "sentence2", "label"), "not_entailment"),
        ("entailment_scifact_rte", ("sentence1", "sentence2", "entailment"), "not_entailment"),
        ("entailment_med", ("sentence1", "sentence2", "gold_label"), "neutral"),
        ("entailment_help", ("ori_sentence", "new_sentence", "gold_label"), "neutral"),
    ],
)
def test_not_entailed_alone_does_not_say_that_the_evidence_decides(
    tmp_path: Path, name: str, columns: tuple[str, str, str], word: str
) -> None:
    rows = [dict(zip(columns, (PREMISE, CLAIMS[0], "entailment"), strict=True))]
    rows.append(dict(zip(columns, (PREMISE, CLAIMS[2], word), strict=True)))
    write_table(tmp_path / name / "dev.tsv", rows, "\t")
    assert [row.label for row in rows_of(name, tmp_path)] == ["supported", "unclear"]
    assert "does not decide" in rule_of(name).note


def test_help_ties_by_file_and_unties_words(tmp_path: Path) -> None:
    text = (
        "\tfilename\tgold_label\tori_sentence\tnew_sentence\n"
        "0\tp1\tentailment\tHe saw the living~room and left .\tHe saw the living~room\n"
        "1\tp1\tneutral\tHe saw the living~room\tHe saw the living~room and left .\n"
    )
    write(tmp_path / "entailment_help" / "leskexppmb_and.tsv.gz", text)
    one, other = rows_of("entailment_help", tmp_path)
    assert one.group == other.group == "p1"
    assert one.response == "He saw the living room"
    assert one.documents == ("He saw the living room and left .",)


def test_lingnli_reads_gold_labels_of_every_protocol(tmp_path: Path) -> None:
    folder = tmp_path / "entailment_lingnli"
    rows = pairs("premise", "hypothesis", "label", WORDS)
    for row in rows:
        row["annotator_labels"] = ["neutral"] * 5
    write_lines(folder / "1_Baseline_protocol" / "val_round1_base.jsonl.gz", rows)
    write_lines(folder / "2_Ling_on_side_protocol" / "train_round1_LotS.jsonl.gz", rows[:1])
    assert len(rows_of("entailment_lingnli", tmp_path)) == 4
    assert_three(rows_of("entailment_lingnli", tmp_path, "val"))
    assert len(rows_of("entailment_lingnli", tmp_path, "train")) == 1


def test_ocnli_is_chinese_and_leaves_out_what_nobody_agreed_on(tmp_path: Path) -> None:
    rows = pairs("sentence1", "sentence2", "label", WORDS)
    rows.insert(1, {**rows[0], "label": "-"})
    write_lines(tmp_path / "entailment_ocnli" / "dev.json.gz", rows)
    assert_three(rows_of("entailment_ocnli", tmp_path), "zh")


def test_edits_of_one_pair_have_one_group(tmp_path: Path) -> None:
    """Premise and claim are edited in turn: only together do they tie all rows of a pair."""
    pairs_of_texts = [("P", "c"), ("P", "d"), ("Q", "d"), ("Q", "e"), ("R", "f")]
    text = "sentence1\tsentence2\tgold_label\n"
    text += "".join(f"{first}\t{second}\tneutral\n" for first, second in pairs_of_texts)
    write(tmp_path / "entailment_cad_nli" / "dev.tsv", text)
    groups = [row.group for row in rows_of("entailment_cad_nli", tmp_path)]
    assert len(set(groups[:4])) == 1
    assert groups[4] != groups[0]


def test_a_group_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    lines = ["P\tc\tneutral\n", "Q\td\tneutral\n", "Q\tc\tneutral\n"]
    found = []
    for number, order in enumerate((lines, lines[::-1])):
        folder = tmp_path / str(number)
        write(
            folder / "entailment_cad_nli" / "dev.tsv",
            "sentence1\tsentence2\tgold_label\n" + "".join(order),
        )
        found.append({row.group for row in rows_of("entailment_cad_nli", folder)})
    assert found[0] == found[1]
    assert len(found[0]) == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"label": None}, "a text called label or Label, found: “null”"),
        ({"label": "maybe"}, "label or Label to be one of e, c, n, found: “maybe”"),
        ({"hypothesis": " "}, "some text in hypothesis or Hypothesis, found: “ ”"),
        ({"premise": 7}, "a text called premise or Premise, found: “7”"),
    ],
)
def test_a_broken_row_is_named(tmp_path: Path, row: dict[str, object], message: str) -> None:
    good = {"premise": "A.", "hypothesis": "B.", "label": "e"}
    write_lines(tmp_path / "entailment_control" / "dev.jsonl", [good, good | row])
    with pytest.raises(InputError, match=f"dev.jsonl, line 2: expected {message}"):
        rows_of("entailment_control", tmp_path)


def test_a_missing_field_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    write_lines(tmp_path / "entailment_control" / "x.jsonl", [{"premise": "A.", "claim": "B."}])
    with pytest.raises(InputError, match=r"hypothesis or Hypothesis among .*\(premise, claim\)"):
        rows_of("entailment_control", tmp_path)
