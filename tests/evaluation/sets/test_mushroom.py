"""Mu-SHROOM rows: languages, spans, evidence by id; unlabelled rows only when asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.files import GoldSpan
from core.evaluation.sets.marked_texts import load_mushroom
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load, write_lines

RIGHT = {
    "id": "val-sv-1",
    "lang": "SV",
    "model_input": "Hur hög är Nordre fyr?",
    "model_output_text": "Den är 38 m hög.",
    "soft_labels": [],
    "hard_labels": [],
}
WRONG = {
    "id": "val-sv-2",
    "lang": "SV",
    "model_input": "När byggdes bron?",
    "model_output_text": "År 1897.",
    "soft_labels": [{"start": 3, "end": 7, "prob": 0.75}, {"start": 0, "end": 3, "prob": 0.25}],
    "hard_labels": [[3, 7]],
}
CHINESE = {
    "id": "tst-zh-1",
    "lang": "ZH",
    "model_input": "桥是哪年建的？",
    "model_output_text": "一八七七年。",
    "soft_labels": [],
    "hard_labels": [],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_lines(tmp_path / "val" / "mushroom.sv-val.v2.jsonl.gz", [RIGHT, WRONG])
    write_lines(tmp_path / "test_labeled" / "mushroom.zh-tst.v1.jsonl", [CHINESE])
    unlabelled = {"lang": "EN", "model_input": "Why?", "model_output_text": "So it is."}
    write_lines(tmp_path / "train_unlabeled" / "mushroom.en-train_nolabel.v1.jsonl", [unlabelled])
    write_lines(
        tmp_path / "context_val" / "sv.jsonl.gz",
        [{"id": "val-sv-2", "context": "Bron byggdes 1877[1]."}],
    )
    return tmp_path


def test_a_marked_word_makes_an_answer_hallucinated_and_brings_its_evidence(folder: Path) -> None:
    rows = {row.id: row for row in load(load_mushroom, folder)}
    assert set(rows) == {"val-sv-1", "val-sv-2", "tst-zh-1"}
    wrong = rows["val-sv-2"]
    assert (wrong.label, wrong.spans) == ("hallucinated", (GoldSpan(3, 7),))
    assert wrong.soft == (GoldSpan(0, 3, 0.25), GoldSpan(3, 7, 0.75))
    assert wrong.documents == ("Bron byggdes 1877[1].",)
    assert wrong.group == wrong.question == "När byggdes bron?"
    right = rows["val-sv-1"]
    assert (right.label, right.spans, right.documents) == ("supported", (), ())
    assert (right.language, rows["tst-zh-1"].language) == ("sv", "zh")


def test_a_task_is_a_language_and_a_split_a_folder(folder: Path) -> None:
    assert [row.id for row in load(load_mushroom, folder, "zh")] == ["tst-zh-1"]
    assert len(load(load_mushroom, folder, "", "val")) == 2
    assert [row.id for row in load(load_mushroom, folder, "", "test")] == ["tst-zh-1"]
    # An empty answer stands in the file, too: there is nothing to check in it.
    [unlabelled] = load(load_mushroom, folder, "", "train")
    assert (unlabelled.label, unlabelled.spans, unlabelled.language) == (None, None, "en")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("hard_labels", [[3, 99]], "a span inside a response of 8 characters, found 3 to 99"),
        ("hard_labels", [3, 7], "a span with start and end"),
        ("soft_labels", [{"start": 0, "end": 2, "prob": 3}], "a probability from 0 to 1"),
        ("model_output_text", 4, "a text called model_output_text"),
    ],
)
def test_a_broken_row_names_file_and_line(
    tmp_path: Path, field: str, value: object, said: str
) -> None:
    path = tmp_path / "val" / "mushroom.sv-val.v2.jsonl"
    write_lines(path, [RIGHT, {**WRONG, field: value}])
    with pytest.raises(InputError, match=said) as caught:
        load(load_mushroom, tmp_path)
    assert "mushroom.sv-val.v2.jsonl, line 2" in str(caught.value)


def test_a_language_that_is_not_there_is_said(folder: Path) -> None:
    with pytest.raises(InputError, match=r"named .*mushroom\.fi-"):
        load(load_mushroom, folder, "fi")
