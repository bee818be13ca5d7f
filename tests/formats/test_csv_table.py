"""CSV: which tables are ours, what is JSON in them, and what they keep."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from core.exchange.registry import FORMATS
from core.exchange.rows import ExchangeDocument, ExchangeRow, ParsedFile, build_gold
from core.schema.records import Span
from core.schema.reviews import Suggestion


def table(*rows: Sequence[str]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    return out.getvalue().encode()


def read(data: bytes) -> ParsedFile:
    return FORMATS["csv"].read("table", data)


def written(*rows: ExchangeRow) -> bytes:
    write = FORMATS["csv"].write
    assert write is not None
    return write(rows)


def cells(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_a_foreign_document_that_looks_like_json_is_a_text() -> None:
    words = "[{1}] Smith says hello"
    found = read(table(("response", "document"), ("a", words), ("b", '[{"name": "n"}]')))
    assert not found.problems
    texts = [[document.text for document in row.documents] for row in found.rows]
    assert texts == [[words], ['[{"name": "n"}]']]


def test_a_row_that_was_put_into_our_table_by_hand_has_a_text() -> None:
    header = cells(written(ExchangeRow("1", "a")))[0]
    own = {"response": "b", "document": "[{1}] Smith says hello"}
    found = read(table(header, [own.get(name, "") for name in header]))
    assert not found.problems
    assert [document.text for document in found.rows[0].documents] == ["[{1}] Smith says hello"]


def test_our_documents_come_back() -> None:
    documents = (
        ExchangeDocument("a.txt", "[{1}] Smith", "f" * 64),
        ExchangeDocument("b.txt", "=1+1"),
    )
    found = read(written(ExchangeRow("1", "a", documents=documents)))
    assert [(d.name, d.text) for d in found.rows[0].documents] == [
        ("a.txt", "[{1}] Smith"),
        ("b.txt", "=1+1"),
    ]


def test_a_foreign_column_called_schema_is_one_further_column() -> None:
    found = read(
        table(("response", "schema", "verdict"), ("a", "v2.1", "yes"), ("'=b", "99", "no"))
    )
    assert not found.problems
    assert [row.others for row in found.rows] == [
        (("schema", "v2.1"), ("verdict", "yes")),
        (("schema", "99"), ("verdict", "no")),
    ]
    assert found.rows[1].response == "'=b", "its apostrophe is not ours"


def test_a_newer_table_of_ours_is_refused() -> None:
    header, row = cells(written(ExchangeRow("1", "a")))
    (problem,) = read(table(header, ["99", *row[1:]])).problems
    assert "schema" in problem.reason


def test_a_table_of_ours_from_before_suggestions_is_ours() -> None:
    rows = cells(written(ExchangeRow("1", "=a")))
    place = rows[0].index("suggestions")
    (row,) = read(table(*([*r[:place], *r[place + 1 :]] for r in rows))).rows
    assert (row.response, row.others) == ("=a", ())


def test_suggestions_of_several_agents_come_back() -> None:
    span = Span(0, 1, "a", 0.25, "reasoning", "")
    told = (
        Suggestion("", "", "first", 0.0, "hallucinated", 0.7, (span,)),
        Suggestion("", "", "second", 0.0, "supported", None, ()),
        Suggestion("", "", "third", 0.0, None, 0.1, (span,)),
    )
    (row,) = read(written(ExchangeRow("1", "a", suggestions=told))).rows
    assert row.suggestions == told


def test_a_foreign_column_called_suggestions_is_a_text() -> None:
    data = table(("response", "suggestions"), ("a", "none so far"))
    (row,) = read(data).rows
    assert row.others == (("suggestions", "none so far"),)
    (again,) = read(written(row)).rows
    assert again.others == (("suggestions (other)", "none so far"),)


def test_broken_suggestions_are_told() -> None:
    row = ExchangeRow("1", "abc", golds=(build_gold("supported"),))
    header, own = cells(written(row))
    place = header.index("suggestions")
    for cell, words in (
        ("{}", "list of suggestions"),
        ("[5]", "suggestion"),
        ('[{"label": "supported"}]', "agent"),
        ('[{"agent": "x", "label": "odd"}]', "supported, hallucinated or unclear"),
        ('[{"agent": "x", "p": 7}]', "0 to 1"),
        ('[{"agent": "x", "spans": [[0, 9]]}]', "3 characters"),
    ):
        (problem,) = read(table(header, [*own[:place], cell, *own[place + 1 :]])).problems
        assert words in problem.reason, problem
