"""Label Studio's offsets: which unit they count, and where those of HTML stand."""

from __future__ import annotations

import json
from typing import Any

from core.exchange.registry import FORMATS
from core.exchange.rows import ExchangeRow, Read

TEXT = "😀aaaa 😀b"


def mark(start: int, end: int, text: str | None, **more: Any) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": ["wrong"]} | more
    return {"type": "labels", "from_name": "wrong", "value": value}


def task(number: int, *marks: dict[str, Any], name: str = "annotations") -> dict[str, Any]:
    return {"id": number, "data": {"text": TEXT}, name: [{"result": list(marks)}]}


def read(*tasks: dict[str, Any]) -> Read:
    return FORMATS["label-studio"].read("tasks", json.dumps(tasks).encode())


def places(row: ExchangeRow) -> list[tuple[int, int]]:
    spans = [span for one in row.golds for span in one.spans]
    spans += [span for one in row.suggestions for span in one.spans]
    return [(span.start, span.end) for span in spans]


def test_one_annotation_counts_in_one_unit() -> None:
    (row,) = read(task(1, mark(2, 3, "a"), mark(9, 10, "b"))).rows
    assert places(row) == [(1, 2), (7, 8)]


def test_an_annotation_that_counts_code_points_keeps_them() -> None:
    (row,) = read(task(1, mark(2, 3, "a"), mark(7, 8, "b"))).rows
    assert places(row) == [(2, 3), (7, 8)]


def test_the_rest_of_the_file_tells_where_an_annotation_does_not() -> None:
    read_rows = read(task(1, mark(2, 3, "a")), task(2, mark(9, 10, "b"))).rows
    assert [places(row) for row in read_rows] == [[(1, 2)], [(7, 8)]]


def test_where_no_quote_decides_offsets_count_code_points() -> None:
    assert places(read(task(1, mark(2, 3, "a"))).rows[0]) == [(2, 3)]


def test_a_file_of_two_minds_decides_nothing_for_the_others() -> None:
    found = read(
        task(1, mark(2, 3, "a")),
        task(2, mark(9, 10, "b")),
        task(3, mark(7, 8, "b"), name="predictions"),
    )
    assert [places(row) for row in found.rows] == [[(2, 3)], [(7, 8)], [(7, 8)]]


def test_an_annotation_without_quotes_follows_its_own_others() -> None:
    (row,) = read(task(1, mark(2, 3, None), mark(9, 10, "b"))).rows
    assert places(row) == [(1, 2), (7, 8)]


def test_broken_tasks_do_not_decide_and_are_told() -> None:
    broken: list[Any] = [
        5,
        {"data": 5},
        {"data": {"text": 5}, "annotations": [{"result": [mark(0, 1, "a")]}]},
        {"data": {"text": TEXT}, "annotations": [{"result": [mark(0, 1, "nowhere")]}]},
    ]
    found = read(*broken, task(9, mark(9, 10, "b")))
    assert [problem.place for problem in found.problems] == [1, 2, 3, 4]
    assert places(found.rows[0]) == [(7, 8)]


def test_marks_in_html_stand_at_their_global_offsets() -> None:
    value = {
        "start": "/p[1]/text()[1]",
        "end": "/p[1]/text()[1]",
        "startOffset": 1,
        "endOffset": 2,
        "globalOffsets": {"start": 9, "end": 10},
        "text": "b",
        "hypertextlabels": ["wrong"],
    }
    found = read(task(1, {"type": "hypertextlabels", "from_name": "wrong", "value": value}))
    assert not found.problems
    assert places(found.rows[0]) == [(7, 8)]
    assert found.rows[0].golds[0].spans[0].category == "wrong"
