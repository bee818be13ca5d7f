"""Rows of single facts: one a sentence, fact or triplet; what was not judged is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.evaluation.sets.answers import load_factscore, load_halueval2, load_helm, load_triplets
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load, write, write_lines, write_list


def test_each_sentence_that_a_model_went_on_with_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "helm" / "amodel.json"
    sentences = [{"sentence": "It is high.", "label": 0}, {"sentence": "It is low.", "label": 1}]
    write(path, json.dumps({"407": {"sentences": sentences, "prompt": "On the tower."}}))
    right, wrong = load(load_helm, tmp_path)
    assert (right.response, right.label) == ("It is high.", "supported")
    assert (wrong.label, wrong.group, wrong.documents) == ("hallucinated", "On the tower.", ())
    odd = [{"sentence": "It is high.", "label": 2}]
    write(path, json.dumps({"407": {"sentences": odd, "prompt": "On the tower."}}))
    with pytest.raises(InputError, match=r"amodel\.json, line 1: expected a label, one of 1, 0"):
        load(load_helm, tmp_path)


def test_irrelevant_facts_and_abstentions_are_left_out(tmp_path: Path) -> None:
    atomic = [
        {"text": "Anna is a keeper.", "label": "S"},
        {"text": "Anna is tall.", "label": "IR"},
        {"text": "Anna was born in 1901.", "label": "NS"},
    ]
    told = [{"text": "…", "human-atomic-facts": atomic}, {"text": "…", "human-atomic-facts": None}]
    rows: list[dict[str, object]] = [
        {"input": "Who is Anna?", "output": "…", "annotations": told},
        {"input": "Who is Olga?", "output": "I do not know.", "annotations": None},
    ]
    write_lines(tmp_path / "AModel.jsonl.gz", rows)
    right, wrong = load(load_factscore, tmp_path)
    assert (right.response, right.label, right.group) == (
        "Anna is a keeper.",
        "supported",
        "Who is Anna?",
    )
    assert (wrong.response, wrong.label) == ("Anna was born in 1901.", "hallucinated")


ANSWER = {
    "id": 1,
    "user_query": "What of the ferry?",
    "chatgpt_response": "It takes 40 cars and sails.",
    "chatgpt_fact": ["It takes 40 cars.", "It flies.", "It sails."],
}


def test_facts_carry_what_another_model_judged(tmp_path: Path) -> None:
    path = tmp_path / "human_annotation" / "Science.json.gz"
    unjudged = {**ANSWER, "user_query": "What else?", "human_judge": []}
    write_list(path, [{**ANSWER, "human_judge": ["true", "false", "true"]}, unjudged])
    said = ["true", "false, [it sails]", "unknown"]
    write_list(tmp_path / "model_prediction" / "Science.json", [{**ANSWER, "chatgpt_judge": said}])
    rows = load(load_halueval2, tmp_path)
    assert [row.label for row in rows] == ["supported", "hallucinated", "supported"]
    assert [row.recorded for row in rows] == ["supported", "hallucinated", "unclear"]
    write_list(path, [{**ANSWER, "human_judge": ["true"]}])
    with pytest.raises(InputError, match="expected 3 labels in human_judge, found: “1”"):
        load(load_halueval2, tmp_path)


def triplet(label: str) -> dict[str, object]:
    return {"triplet": ["The tower", "is", "38 m high"], "human_label": label}


def test_a_triplet_is_one_statement_and_the_worst_one_labels_its_answer(tmp_path: Path) -> None:
    path = tmp_path / "zero_context" / "nq_amodel_answers.json"
    answers = [
        [triplet("Entailment"), triplet("Neutral"), triplet("Contradiction")],
        [triplet("Neutral"), triplet("Entailment")],
        [triplet("Entailment")],
        [],
    ]
    write_list(
        path,
        [
            {"id": str(number), "response": "It is high.", "claude2_response_kg": one}
            for number, one in enumerate(answers)
        ],
    )
    rows = load(load_triplets, tmp_path)
    assert rows[0].response == "The tower is 38 m high"
    assert [row.label for row in rows[:3]] == ["supported", "unclear", "hallucinated"]
    whole = load(load_triplets, tmp_path, "responses")
    assert [row.label for row in whole] == ["hallucinated", "unclear", "supported"]
    write_list(path, [{"id": "1", "response": "So.", "claude2_response_kg": [triplet("Odd")]}])
    with pytest.raises(InputError, match="expected human_label to be one of entailment, neutral"):
        load(load_triplets, tmp_path)
