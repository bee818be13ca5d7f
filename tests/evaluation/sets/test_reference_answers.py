"""Questions whose answers are listed: one row an answer, never the gold sentence as evidence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.evaluation.sets.answers import (
    load_halluqa,
    load_halluqa_choices,
    load_nq_open,
    load_pubmedqa,
    load_truthfulqa,
    load_truthfulqa_finetune,
)
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load, write, write_lines, write_list, write_table


def test_every_listed_answer_is_a_row(tmp_path: Path) -> None:
    row = {
        "Question": "What lives on the island?",
        "Best Answer": "Seals",
        "Correct Answers": "Seals; Gulls live there, too; Seals",
        "Incorrect Answers": "Wolves; ",
    }
    write_table(tmp_path / "TruthfulQA.csv.gz", [row])
    rows = load(load_truthfulqa, tmp_path)
    assert [(row.response, row.label) for row in rows] == [
        ("Wolves", "hallucinated"),
        ("Seals", "supported"),
        ("Gulls live there, too", "supported"),
    ]
    assert {row.group for row in rows} == {"What lives on the island?"}
    assert all(row.documents == () for row in rows)


def test_a_judged_answer_is_cut_out_of_its_prompt(tmp_path: Path) -> None:
    path = tmp_path / "finetune_truth.jsonl"
    rows = [
        {"prompt": "Q: Is it open?\nA: Yes.\nNo.\nTrue:", "completion": " no"},
        {"prompt": "Q: Is it open?\nA: \nTrue:", "completion": " yes"},
        {"prompt": "Q: Is it high?\nA: It is.\nTrue:", "completion": " yes"},
    ]
    write_lines(path, rows)
    wrong, right = load(load_truthfulqa_finetune, tmp_path)
    assert (wrong.question, wrong.response, wrong.label) == (
        "Is it open?",
        "Yes.\nNo.",
        "hallucinated",
    )
    assert right.label == "supported"
    write_lines(path, [*rows, {"prompt": "Is it high?", "completion": " yes"}])
    with pytest.raises(InputError, match=r"finetune_truth\.jsonl, line 4: expected a prompt"):
        load(load_truthfulqa_finetune, tmp_path)


def test_chinese_answers_and_choices(tmp_path: Path) -> None:
    answers = {
        "Question": "灯塔有多高？",
        "Best Answer1": "三十八米。",
        "Best Answer2": None,
        "Wrong_Answer1": "四十八米。",
        "Source": "…",
    }
    write_list(tmp_path / "HalluQA.json.gz", [answers])
    choices = {
        "question": "Question: 灯塔有多高？ A:四十八米。 B:三十八米。 ",
        "answer": "Answer: B",
    }
    write_list(tmp_path / "HalluQA_mc.json", [choices])
    rows = load(load_halluqa, tmp_path)
    assert [row.label for row in rows] == ["supported", "hallucinated"]
    assert {row.language for row in rows} == {"zh"}
    wrong, right = load(load_halluqa_choices, tmp_path)
    assert (wrong.response, wrong.label) == ("四十八米。", "hallucinated")
    assert (right.response, right.label) == ("三十八米。", "supported")
    assert right.question == rows[0].question == "灯塔有多高？"
    write_list(tmp_path / "HalluQA_mc.json", [{**choices, "answer": "Answer: C"}])
    with pytest.raises(InputError, match=r"line \d: expected an answer among A, B, found: “C”"):
        load(load_halluqa_choices, tmp_path)


def abstract(decision: str) -> dict[str, object]:
    return {
        "QUESTION": f"Does the ferry help ({decision})?",
        "CONTEXTS": ["We asked 40 drivers.", "Most said so."],
        "LONG_ANSWER": "The ferry helps.",
        "final_decision": decision,
    }


def test_a_decision_makes_one_of_two_answers_right(tmp_path: Path) -> None:
    path = tmp_path / "ori_pqal.json.gz"
    write(path, json.dumps({"11": abstract("no"), "12": abstract("maybe")}, indent=1))
    rows = load(load_pubmedqa, tmp_path)
    assert [(row.response, row.label) for row in rows] == [
        ("Yes", "hallucinated"),
        ("No", "supported"),
        ("Yes", "unclear"),
        ("No", "unclear"),
    ]
    assert rows[0].documents == ("We asked 40 drivers.\n\nMost said so.",)
    write(path, json.dumps({"11": abstract("no"), "12": abstract("perhaps")}, indent=1))
    with pytest.raises(InputError, match=r"json\.gz, line 11: expected final_decision to be yes"):
        load(load_pubmedqa, tmp_path)
    write(path, json.dumps({"11": abstract("no")})[:-9])
    with pytest.raises(InputError, match=r"json\.gz, line 1: expected JSON"):
        load(load_pubmedqa, tmp_path)


def test_the_first_accepted_answer_is_right(tmp_path: Path) -> None:
    path = tmp_path / "NQ-open.dev.jsonl.gz"
    write_lines(path, [{"question": "how high is it", "answer": ["38 m", "38 metres"]}])
    write_lines(tmp_path / "NQ-open.other.jsonl", [{"question": "why", "answer": ["wind"]}])
    first, second = load(load_nq_open, tmp_path)
    assert (first.response, first.label, second.response) == ("38 m", "supported", "wind")
    write_lines(path, [{"question": "how high is it", "answer": []}])
    with pytest.raises(InputError, match="line 1: expected at least one accepted answer"):
        load(load_nq_open, tmp_path)
