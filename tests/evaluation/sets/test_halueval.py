"""HaluEval rows: one an answer, marked pieces found by text, a judge's words kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.files import GoldSpan
from core.evaluation.sets.answers import load_general, load_judged, load_qa
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load, write_lines, write_list

BRIDGE = {
    "id": 0,
    "knowledge": "The bridge was built in 1877.",
    "question": "When was the bridge built?",
    "right_answer": "1877",
    "hallucinated_answer": "It was built in 1897.",
}


def test_each_question_gives_its_right_and_its_wrong_answer(tmp_path: Path) -> None:
    write_lines(tmp_path / "qa_cleaned_english.jsonl.gz", [BRIDGE])
    right, wrong = load(load_qa, tmp_path)
    assert (right.response, right.label) == ("1877", "supported")
    assert (wrong.response, wrong.label) == ("It was built in 1897.", "hallucinated")
    assert right.documents == wrong.documents == ("The bridge was built in 1877.",)
    assert right.group == wrong.group == right.question == "When was the bridge built?"


def test_marked_pieces_are_found_in_the_answer_and_comments_are_not(tmp_path: Path) -> None:
    chat = {"ID": "1", "user_query": "How high?", "chatgpt_response": "It is 48 m, or 48 m."}
    write_lines(
        tmp_path / "general_data.json.gz",
        [
            {**chat, "hallucination": "yes", "hallucination_spans": ["48 m,", "Incomplete"]},
            {**chat, "hallucination": "yes", "hallucination_spans": ["Incomplete answer"]},
            {**chat, "hallucination": "no", "hallucination_spans": []},
        ],
    )
    found, unknown, right = load(load_general, tmp_path)
    assert (found.label, found.spans) == ("hallucinated", (GoldSpan(6, 11),))
    assert (unknown.label, unknown.spans) == ("hallucinated", None)
    assert (right.label, right.spans, right.documents) == ("supported", (), ())


def test_what_a_model_judged_is_kept_beside_the_truth(tmp_path: Path) -> None:
    row = {"knowledge": "It is open.", "question": "Is it open?", "answer": "Yes."}
    write_list(
        tmp_path / "qa_judgements_of_a_model.json",
        [
            {**row, "ground_truth": "No", "judgement": "Yes"},
            {**row, "ground_truth": "Yes", "judgement": "failed!"},
        ],
    )
    first, second = load(load_judged, tmp_path)
    assert (first.label, first.recorded) == ("supported", "hallucinated")
    assert (second.label, second.recorded) == ("hallucinated", "unclear")
    assert "Llama-2-7B" in first.recorded_by


def test_a_broken_row_names_file_line_and_field(tmp_path: Path) -> None:
    broken = {name: value for name, value in BRIDGE.items() if name != "right_answer"}
    write_lines(tmp_path / "qa_cleaned_english.jsonl", [BRIDGE, broken])
    with pytest.raises(InputError, match=r"english\.jsonl, line 2: .*called right_answer"):
        load(load_qa, tmp_path)
    write_lines(
        tmp_path / "general_data.json",
        [
            {
                "user_query": "a",
                "chatgpt_response": "b",
                "hallucination": "?",
                "hallucination_spans": [],
            }
        ],
    )
    with pytest.raises(InputError, match=r"line 1: expected a label, one of yes, no, found: “\?”"):
        load(load_general, tmp_path)
