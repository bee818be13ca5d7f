"""Label Studio's offsets: which unit they count, and where those of HTML stand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.exchange.registry import FORMATS
from core.exchange.rows import ExchangeRow, ParsedFile

TEXT = "😀aaaa 😀b"


def mark(start: int, end: int, text: str | None, **more: Any) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": ["wrong"]} | more
    return {"type": "labels", "from_name": "wrong", "value": value}


def task(number: int, *marks: dict[str, Any], name: str = "annotations") -> dict[str, Any]:
    return {"id": number, "data": {"text": TEXT}, name: [{"result": list(marks)}]}


def read(*tasks: dict[str, Any]) -> ParsedFile:
    return FORMATS["label-studio"].read("tasks", json.dumps(tasks).encode())


def places(row: ExchangeRow) -> list[tuple[int, int]]:
    spans = [span for one in row.golds for span in one.spans]
    spans += [span for one in row.suggestions for span in one.spans]
    return [(span.start, span.end) for span in spans]


A, FAR, NEAR = mark(2, 3, "a"), mark(9, 10, "b"), mark(7, 8, "b")


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([task(1, A, FAR)], [[(1, 2), (7, 8)]]),  # one annotation counts in one unit
        ([task(1, A, NEAR)], [[(2, 3), (7, 8)]]),  # and keeps code points where it counts them
        ([task(1, A), task(2, FAR)], [[(1, 2)], [(7, 8)]]),  # the rest of the file tells
        ([task(1, A)], [[(2, 3)]]),  # where no quote decides: code points
        (
            [task(1, A), task(2, FAR), task(3, NEAR, name="predictions")],
            [[(2, 3)], [(7, 8)], [(7, 8)]],  # a file of two minds decides nothing for others
        ),
        ([task(1, mark(2, 3, None), FAR)], [[(1, 2), (7, 8)]]),  # without a quote: its own others
    ],
)
def test_quotes_tell_what_offsets_count(
    tasks: list[dict[str, Any]], expected: list[list[tuple[int, int]]]
) -> None:
    assert [places(row) for row in read(*tasks).rows] == expected


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
