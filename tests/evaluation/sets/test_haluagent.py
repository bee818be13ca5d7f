"""HaluAgent's and FacTool's rows: two tasks in one file, claims of three kinds, joined gold."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.sets.answers import (
    CLAIM_FILES,
    COMPARED,
    FILES,
    load_answers,
    load_chinese,
    load_chinese_checked,
    load_claims,
    load_code,
)
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load, write_lines, write_list

WORDS = {"question": "请用20字描述灯塔。", "answer": "灯塔很高。", "judge": 1}
DAYS = {"question": "从2020-01-01到2020-01-11共有多少天？", "answer": "10", "judge": 0}
TRANSLATION = {"question": "将以下法语翻译成中文: Le phare.", "answer": "灯塔。", "judge": 0}


def test_dates_and_translations_lie_in_one_file(tmp_path: Path) -> None:
    write_list(tmp_path / "translation&date_calculation.json", [TRANSLATION, DAYS])
    [date] = load(load_answers, tmp_path, "date")
    [translation] = load(load_answers, tmp_path, "translation")
    assert (date.response, date.label, date.language) == ("10", "supported", "zh")
    assert translation.question.endswith("Le phare.")


@pytest.mark.parametrize(
    ("task", "name", "row", "documents", "language"),
    [
        ("word_count", "word_cnt_test_100.json", {}, (), "zh"),
        ("code", "codellama-34b-humaneval_test_63.json", {"id": "61"}, (), "zh"),
        ("ape", "ape_test_100.json", {"result": "12"}, (), "zh"),
        ("halluqa", "halluqa.json.gz", {"original_question": {}}, (), "zh"),
        ("halueval2", "halueval2.0_100_test.json", {}, (), "en"),
        ("halueval_qa", "halueval_qa-100.json", {"knowledge": "It is."}, ("It is.",), "en"),
        ("webqa", "webqa_test_100.json", {"output": "一。<e>二。"}, ("一。\n\n二。",), "zh"),
    ],
)
def test_each_task_has_its_file_its_evidence_and_its_language(
    tmp_path: Path,
    task: str,
    name: str,
    row: dict[str, object],
    documents: tuple[str, ...],
    language: str,
) -> None:
    write_list(tmp_path / name, [{**WORDS, **row}])
    [found] = load(load_answers, tmp_path, task)
    assert (found.label, found.documents, found.language) == ("hallucinated", documents, language)
    assert found.group == found.question == WORDS["question"]


def test_every_task_of_the_paper_is_known() -> None:
    tasks = {*FILES, *CLAIM_FILES, "sentence_chinese"}
    assert tasks == {
        *"word_count date translation code ape halueval_qa webqa halluqa halueval2".split(),
        *"sentence_math sentence_science sentence_kbqa sentence_chinese".split(),
    }


def test_an_unknown_judgement_names_file_and_line(tmp_path: Path) -> None:
    write_list(tmp_path / "word_cnt_test_100.json", [WORDS, {**WORDS, "judge": 7}])
    with pytest.raises(InputError, match=r"100\.json, line \d+: expected a label, .* “7”"):
        load(load_answers, tmp_path, "word_count")


def test_claims_are_sentences_calculations_or_papers(tmp_path: Path) -> None:
    told = {"prompt": "How many boats?", "response": "…", "label": False}
    for name, found in {
        "knowledge_qa": [{"claim": "There are 7.", "label": True}],
        "math": [
            {"claim": {"math_calculation": "3 + 4", "calculated_answer": "8"}, "label": False},
            {"claim": {"math_calculation": "x", "calculated_answer": ""}, "label": "null"},
        ],
        "scientific": [
            {
                "paper_title": "On boats",
                "paper_author(s)": "Strand",
                "paper_pub_year": "2001",
                "label": False,
            }
        ],
    }.items():
        write_lines(tmp_path / "sentence" / f"{name}.jsonl", [{**told, "claims": found}])
    [fact] = load(load_claims, tmp_path, "sentence_kbqa")
    [sum_] = load(load_claims, tmp_path, "sentence_math")
    [paper] = load(load_claims, tmp_path, "sentence_science")
    assert (fact.response, fact.label) == ("There are 7.", "supported")
    assert (sum_.response, sum_.label) == ("3 + 4 = 8", "hallucinated")
    assert paper.response == "“On boats”, Strand, 2001"
    assert fact.group == "How many boats?"


def test_chinese_answers_take_their_label_from_the_other_set(tmp_path: Path) -> None:
    answers = [
        {"model_name": "a", "response": "三十八米。", "factuality": True},
        {"model_name": "b", "response": "四十八米。", "factuality": False},
        {"model_name": "c", "response": "不知道。", "factuality": None},
        {"model_name": "d", "response": 38, "factuality": True},
    ]
    gold = {"prompt": "灯塔有多高？", "responses_and_factuality": answers}
    write_lines(tmp_path / "factool" / "dataset_chinese.jsonl.gz", [gold])
    rows = load(load_chinese, tmp_path / "factool")
    assert [row.label for row in rows] == ["supported", "hallucinated", "supported"]
    assert rows[2].response == "38"
    assert not any(row.documents for row in rows)
    compared = load(load_chinese, tmp_path / "factool", COMPARED)
    assert [(row.response, row.label) for row in compared] == [
        (row.response, row.label) for row in rows
    ]
    assert compared[0].documents == ("四十八米。", "不知道。", "38")
    assert compared[2].documents == ("三十八米。", "四十八米。", "不知道。")

    checked = {
        "prompt": "灯塔有多高？",
        "claims": [{"claim": "高"}],
        "evidences": [{"evidence": ["高三十八米。", "高三十八米。"]}, {"evidence": None}],
        "response_level_factuality": True,
    }
    lines = [{**checked, "response": said} for said in ("四十八米。", "不知道。", "没有。")]
    write_lines(tmp_path / "haluagent" / "sentence" / "chinese.jsonl.gz", lines)
    [row] = load(load_chinese_checked, tmp_path / "haluagent")
    assert (row.response, row.label, row.recorded) == ("四十八米。", "hallucinated", "supported")
    assert row.documents == ("高三十八米。",)
    assert row.language == "zh"


def test_generated_code_is_right_or_wrong(tmp_path: Path) -> None:
    row = {"prompt": "def f():", "response": "def f(): return 1", "label": False, "claims": []}
    write_lines(tmp_path / "code.jsonl", [row])
    [found] = load(load_code, tmp_path)
    assert (found.label, found.group) == ("hallucinated", "def f():")
