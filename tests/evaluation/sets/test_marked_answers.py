"""Rows with marked words: experts' pieces, exact spans, three annotators a summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.files import GoldSpan
from core.evaluation.sets.marked_texts import (
    load_haluquestqa,
    load_ragtruth,
    load_xsum,
    load_xsum_factuality,
)
from core.exchange.rows import nearest, shares
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load, write_lines, write_table

JUDGED = {
    "question_text": 'Why is it "high"?',
    "ans1_text": "So that ships see it. It's 48 m high.",
    "ans2_text": "Nobody knows.",
    "factuality_span": "[\"It's 48 m high.\", 'so that Ships see']",
    "factuality_label": "['answer1', 'answer1']",
}


def test_an_experts_pieces_mark_the_answer_they_are_of(tmp_path: Path) -> None:
    path = tmp_path / "HaluQuestQA.csv.gz"
    other = {**JUDGED, "factuality_span": "['In 1877.']", "factuality_label": "['answer2']"}
    clean = {**JUDGED, "factuality_span": "", "factuality_label": ""}
    write_table(path, [JUDGED, other, clean], "\t")
    rows = load(load_haluquestqa, tmp_path)
    assert [row.label for row in rows[:4]] == [
        "hallucinated",
        "supported",
        "supported",
        "hallucinated",
    ]
    assert rows[0].spans == (GoldSpan(0, 17), GoldSpan(22, 37))
    assert (rows[1].spans, rows[3].spans) == ((), None)
    assert {row.label for row in rows[4:]} == {"supported"}
    assert rows[0].group == 'Why is it "high"?'


@pytest.mark.parametrize("cell", ["__import__('os').getcwd()", "['a'", "{'a': 1}", "[" * 5000])
def test_a_cell_that_is_no_list_is_an_error_and_never_run(tmp_path: Path, cell: str) -> None:
    write_table(tmp_path / "HaluQuestQA.csv", [{**JUDGED, "factuality_span": cell}], "\t")
    with pytest.raises(InputError, match=r"csv, line 2: expected a list in factuality_span"):
        load(load_haluquestqa, tmp_path)


def test_exact_spans_of_an_answer(tmp_path: Path) -> None:
    path = tmp_path / "sample.jsonl"
    row = {"source_id": "7", "response": "It is 48 m high."}
    write_lines(path, [{**row, "labels": [{"start": 6, "end": 10}]}, {**row, "labels": []}])
    wrong, right = load(load_ragtruth, tmp_path)
    assert (wrong.label, wrong.spans) == ("hallucinated", (GoldSpan(6, 10),))
    assert (right.label, right.spans, right.group) == ("supported", (), "7")
    write_lines(path, [{**row, "labels": [{"start": 6, "end": 60}]}])
    with pytest.raises(InputError, match=r"sample\.jsonl, line 1: expected a span inside"):
        load(load_ragtruth, tmp_path)


def mark(worker: str, kind: str, text: str, start: int) -> dict[str, object]:
    return {
        "bbcid": "11",
        "system": "A",
        "summary": "the old tower is the tower",
        "hallucination_type": kind,
        "hallucinated_span": text,
        "hallucinated_span_start": start,
        "hallucinated_span_end": start + len(text),
        "worker_id": worker,
    }


def test_what_two_of_three_annotators_marked_counts(tmp_path: Path) -> None:
    lines = [
        mark("w0", "extrinsic", "old tower", 5),
        mark("w0", "intrinsic", "tower", 22),
        mark("w1", "extrinsic", "the old", 1),
        mark("w2", "NULL", "NULL", -1),
    ]
    torn = [{**line, "system": "C"} for line in (lines[1], mark("w1", "x", "old", 5), lines[3])]
    calm = [{**line, "system": "B"} for line in lines[2:]]
    write_table(tmp_path / "hallucination_annotations_ours.csv.gz", [*lines, *calm, *torn])
    row, other, divided = load(load_xsum, tmp_path)
    assert (row.label, row.spans) == ("hallucinated", (GoldSpan(4, 7),))
    assert [(one.start, one.end, round(3 * one.p, 6)) for one in row.soft] == [
        (0, 4, 1),
        (4, 7, 2),
        (7, 13, 1),
        (21, 26, 1),
    ]
    assert (divided.label, divided.spans, len(divided.soft)) == ("hallucinated", None, 2)
    assert (other.label, other.spans, other.group) == ("supported", (), "11")


def test_factual_is_what_most_annotators_say(tmp_path: Path) -> None:
    line = {"bbcid": "11", "summary": "the tower is high"}
    said = {"A": ("yes", "no", "no"), "B": ("yes", "NULL", "yes"), "C": ("yes", "no", "NULL")}
    lines = [
        {**line, "system": system, "is_factual": word, "worker_id": f"w{number}"}
        for system, words in said.items()
        for number, word in enumerate(words)
    ]
    write_table(tmp_path / "factuality_annotations_ours.csv", lines)
    rows = load(load_xsum_factuality, tmp_path)
    assert [row.label for row in rows] == ["hallucinated", "supported", "unclear"]


def test_a_piece_stands_nearest_to_where_it_was_marked() -> None:
    text = "a tower, a Tower, a tower"
    assert [nearest(text, "tower", place) for place in (0, 19)] == [2, 20]
    assert nearest(text, "TOWER", 12) == 11
    assert nearest(text, "mill", 0) == nearest(text, "", 0) == -1


def test_shares_count_each_annotator_once() -> None:
    twice = [GoldSpan(0, 3), GoldSpan(1, 4)]
    assert shares([twice, []]) == (GoldSpan(0, 4, 0.5),)
