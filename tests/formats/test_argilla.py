"""Argilla: what its one suggestion a question has no place for stands in the metadata."""

from __future__ import annotations

import json
from typing import Any

from core.exchange.registry import FORMATS
from core.exchange.rows import ExchangeRow, build_gold
from core.schema.records import Span
from core.schema.reviews import Suggestion

SPAN = Span(0, 1, "a", 0.25, "reasoning", "")
HARD = Span(1, 2, "b", 1.0, "reasoning", "")
TOLD = (
    Suggestion("", "", "first", 0.0, "hallucinated", 0.7, (SPAN,)),
    Suggestion("", "", "second", 0.0, "supported", None, ()),
    Suggestion("", "", "third", 0.0, "hallucinated", 0.9, (HARD,)),
)


def written(row: ExchangeRow) -> dict[str, Any]:
    write = FORMATS["argilla"].write
    assert write is not None
    (record,) = json.loads(write((row,)))
    assert isinstance(record, dict)
    return record


def read(record: dict[str, Any]) -> ExchangeRow:
    found = FORMATS["argilla"].read("records", json.dumps([record]).encode())
    assert not found.problems
    return found.rows[0]


def test_suggestions_of_several_agents_come_back() -> None:
    record = written(ExchangeRow("1", "ab", suggestions=TOLD))
    assert record["suggestions"]["label"]["agent"] == "third"
    assert read(record).suggestions == TOLD


def test_one_suggestion_needs_no_metadata() -> None:
    assert written(ExchangeRow("1", "ab", suggestions=TOLD[2:]))["metadata"] == {}


def test_what_the_metadata_adds_to_the_gold_comes_back_beside_them() -> None:
    gold = build_gold("hallucinated", [SPAN], author="ana")
    row = read(written(ExchangeRow("1", "ab", golds=(gold,), suggestions=TOLD)))
    assert row.golds[0].spans == (SPAN,)
    assert row.suggestions == TOLD


def test_a_changed_suggestion_is_believed() -> None:
    record = written(ExchangeRow("1", "ab", suggestions=TOLD))
    record["suggestions"]["label"]["value"] = "unclear"
    assert [one.label for one in read(record).suggestions] == [
        "hallucinated", "supported", "unclear",
    ]  # fmt: skip
    for odd in ("[", "[]", 5):
        record["metadata"]["counterpoint"] = odd
        assert [one.agent for one in read(record).suggestions] == ["third"]


def test_earlier_suggestions_that_cannot_be_read_are_told() -> None:
    record = written(ExchangeRow("1", "ab", suggestions=TOLD))
    for odd in ('{"suggestions": 5}', '{"suggestions": [{"agent": "x", "label": "y"}]}'):
        record["metadata"]["counterpoint"] = odd
        found = FORMATS["argilla"].read("records", json.dumps([record]).encode())
        assert [problem.place for problem in found.problems] == [1]
