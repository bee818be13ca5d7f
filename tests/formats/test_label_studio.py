"""Label Studio's offsets: which unit they count, and where those of HTML stand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.exchange.registry import FORMATS
from core.exchange.rows import ExchangeRow, ParsedFile
from core.store import open_store
from tests.exchange.stores import imported

TEXT = "😀aaaa 😀b"


def mark(start: int, end: int, text: str | None, **more: Any) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": ["wrong"]} | more
    return {"type": "labels", "from_name": "wrong", "value": value}


def task(
    number: int, *marks: dict[str, Any], name: str = "annotations", text: str = TEXT
) -> dict[str, Any]:
    return {"id": number, "data": {"text": text}, name: [{"result": list(marks)}]}


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


LOG = "Log.\r\nIt took 40 minutes.\r\nThe fare was 9 euros."
TOOK, FARE = mark(13, 23, "40 minutes"), mark(38, 45, "9 euros")


def words(row: ExchangeRow) -> list[str]:
    return [span.text for one in row.golds for span in one.spans]


@pytest.mark.parametrize(
    ("marks", "text", "expected"),
    [
        ([TOOK, FARE], LOG, ["40 minutes", "9 euros"]),
        ([mark(13, 37, "40 minutes.\nThe fare was")], LOG, ["40 minutes.\r\nThe fare was"]),
        ([mark(14, 24, "40 minutes"), mark(40, 47, "9 euros")], LOG, ["40 minutes", "9 euros"]),
        ([mark(8, 9, "b")], "😀\r\n😀 a b", ["b"]),  # UTF-16 units, and CRLF once
    ],
)
def test_quotes_reveal_offsets_that_count_crlf_once(
    marks: list[dict[str, Any]], text: str, expected: list[str]
) -> None:
    found = read(task(1, *marks, text=text))
    assert [words(row) for row in found.rows] == [expected]
    assert [row.notices for row in found.rows] == [()]


def test_quotes_of_other_tasks_place_marks_without_quotes() -> None:
    unquoted = task(1, mark(38, 45, None), text=LOG)
    found = read(unquoted, task(2, TOOK, text=LOG))
    assert [words(row) for row in found.rows] == [["9 euros"], ["40 minutes"]]
    assert [row.notices for row in found.rows] == [(), ()]
    alone = read(unquoted).rows[0]
    assert words(alone) == ["s 9 eur"]
    assert "may be shifted" in alone.notices[0]
    assert read(task(1, mark(0, 4, None), text=LOG)).rows[0].notices == ()  # before any line end


@pytest.mark.parametrize("quote", ["market.", "market.\n"])
def test_mark_that_ends_beyond_the_text_is_cut_back_where_its_quote_fits(quote: str) -> None:
    row = read(task(1, mark(8, 16, quote), text="The old market.")).rows[0]
    assert words(row) == ["market."]
    assert "cut back" in row.notices[0]


@pytest.mark.parametrize("quote", ["market", "tram", None, ""])
def test_mark_that_ends_beyond_the_text_is_refused_without_a_fitting_quote(
    quote: str | None,
) -> None:
    found = read(task(1, mark(8, 16, quote), text="The old market."))
    assert (found.rows, len(found.problems)) == ((), 1)


def test_import_reports_notices_with_their_row() -> None:
    with open_store(None) as store:
        read_file = read(task(1, mark(38, 45, None), text=LOG), task(2, mark(2, 3, "a")))
        (notice,) = imported(store, read_file).notices
        assert notice.startswith("row 1: marks without quoted text may be shifted")
