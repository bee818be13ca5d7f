"""Summary rows: majority of workers, gravest mark, one task a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.evaluation.files import GoldSpan
from core.evaluation.sets.marked_texts import load_bamboo, load_faithbench, load_qags
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load, write, write_lines


def said(*words: str) -> list[dict[str, object]]:
    return [{"worker_id": number, "response": one} for number, one in enumerate(words)]


def test_a_summary_sentence_has_the_label_that_two_of_three_gave(tmp_path: Path) -> None:
    article = "The ferry takes 40 cars. It sails at noon."
    sentences = [
        {"sentence": "It takes 40 cars.", "responses": said("yes", "no", "yes")},
        {"sentence": "It takes 60 cars.", "responses": said("no", "no", "yes")},
    ]
    path = tmp_path / "mturk_ours.jsonl.gz"
    write_lines(path, [{"article": article, "summary_sentences": sentences}])
    first, second = load(load_qags, tmp_path)
    assert (first.response, first.label) == ("It takes 40 cars.", "supported")
    assert second.label == "hallucinated"
    assert first.documents == (article,)
    assert first.group == second.group == article
    tie = {"sentence": "So.", "responses": said("yes", "no")}
    write_lines(path, [{"article": article, "summary_sentences": [tie]}])
    with pytest.raises(InputError, match="line 1: expected an odd number of responses"):
        load(load_qags, tmp_path)


SUMMARY = "The new bridge was built in 1877."


def mark(label: str, start: int, end: int) -> dict[str, object]:
    return {"label": [label.split(".")[0], label], "summary_start": start, "summary_end": end}


def sample(*marks: dict[str, object]) -> dict[str, object]:
    return {
        "sample_id": 0,
        "source": "The bridge was built in 1877.",
        "summary": SUMMARY,
        "annotations": list(marks),
    }


def test_the_gravest_mark_of_any_annotator_decides(tmp_path: Path) -> None:
    samples = [
        sample(mark("Unwanted.Extrinsic", 4, 7), mark("Benign", 0, 3), mark("Unwanted", 4, 14)),
        sample(mark("Questionable", 4, 7), mark("Benign", 0, 3)),
        sample(mark("Benign", 4, 7)),
        sample(),
    ]
    path = tmp_path / "batch_2.json.gz"
    write(path, json.dumps({"samples": samples}, indent=1))
    rows = load(load_faithbench, tmp_path)
    assert [row.label for row in rows] == ["hallucinated", "unclear", "supported", "supported"]
    assert rows[0].spans == (GoldSpan(4, 14),)
    assert all(row.spans == () for row in rows[1:])
    assert rows[0].documents == ("The bridge was built in 1877.",)
    assert [row.place.rsplit(" ", 1)[-1] for row in rows[:2]] == ["3", "34"]


def test_a_mark_outside_the_summary_or_of_an_unknown_kind_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "batch_1.json"
    write(path, json.dumps({"samples": [sample(mark("Unwanted", 4, 99))]}))
    with pytest.raises(InputError, match="inside a response of 33 characters, found 4 to 99"):
        load(load_faithbench, tmp_path)
    write(path, json.dumps({"samples": [sample(mark("Odd", 4, 7))]}))
    with pytest.raises(InputError, match=r"batch_1\.json, line 1: expected a mark of Unwanted"):
        load(load_faithbench, tmp_path)
    write(path, json.dumps({"rows": []}))
    with pytest.raises(InputError, match="expected a JSON list called samples, found 'rows'"):
        load(load_faithbench, tmp_path)


def test_a_hypothesis_is_checked_against_its_paper(tmp_path: Path) -> None:
    paper = {"title": "On bridges", "content": "Bridges stand.", "hypothesis": "They stand."}
    write_lines(tmp_path / "senhallu_4k.jsonl.gz", [{**paper, "answer": True}])
    write_lines(tmp_path / "abshallu_4k.jsonl", [{**paper, "answer": False}])
    wrong, right = load(load_bamboo, tmp_path)
    assert (wrong.label, right.label) == ("hallucinated", "supported")
    assert right.group == "On bridges"
    assert [row.label for row in load(load_bamboo, tmp_path, "sen")] == ["supported"]
