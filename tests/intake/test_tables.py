"""Every row of a table becomes a line that can be understood without the header."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from core.intake.rows import header_rows, is_number, row_cells, row_line, table_lines
from core.intake.tables import delimiter_of, read_table
from core.records import Source
from tests.intake.builders import request

CELLS = st.lists(
    st.lists(st.text(st.characters(exclude_categories=["C"])), min_size=1, max_size=5), max_size=6
)


def read(text: str, name: str = "a.csv") -> Source:
    return read_table(request(name, text.encode(), "table"))


def test_rows_carry_their_column_names() -> None:
    source = read("Region,2022,2023\nNorth,400,412\nSouth,280,287\n")
    assert source.text == (
        "Region: North; 2022: 400; 2023: 412\nRegion: South; 2022: 280; 2023: 287"
    )
    assert source.notes == ()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found_out(delimiter: str) -> None:
    rows = [["Name", "Price"], ["Tea, green", "3,50"], ["Coffee; black", "4,20"]]
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows(rows)
    assert delimiter_of(stream.getvalue()) == delimiter
    assert read(stream.getvalue()).text.startswith("Name: Tea, green; Price: 3,50")


def test_excels_own_declaration_is_followed() -> None:
    assert read("sep=;\r\na,b;c\r\n1,5;2\r\n").text == "a,b: 1,5; c: 2"


def test_quoted_cells_may_hold_anything() -> None:
    source = read('Name,Remark\n"Smith, Ann","said ""yes""\non Monday"\n')
    assert source.text == 'Name: Smith, Ann; Remark: said "yes" on Monday'


def test_titles_above_the_table_are_kept_apart() -> None:
    source = read("Visitors in 2023,,\nRegion,Adults,Children\nNorth,400,12\nSouth,280,7\n")
    assert source.text.splitlines()[0] == "Visitors in 2023"
    assert source.text.splitlines()[1] == "Region: North; Adults: 400; Children: 12"


def test_ragged_rows_are_read_and_named() -> None:
    source = read("a,b\n1,2\n3\n4,5,6\n")
    assert source.text == "a: 1; b: 2\na: 3\na: 4; b: 5; 6"
    assert source.notes == ("2 rows (3, 4) have more or fewer cells than the first, which has 2.",)


def test_tables_without_names_say_so() -> None:
    source = read("North,400\nSouth,280\n")
    assert source.text == "North; 400\nSouth; 280"
    assert source.notes == (
        "The first row looks like data, so the rows stand without column names.",
    )


def test_a_quotation_mark_that_never_ends_does_not_swallow_the_rest() -> None:
    source = read('Name,Height\nTable,"30 in\nChair,20 in\n')
    assert 'Name: Table; Height: "30 in' in source.text
    assert "Name: Chair; Height: 20 in" in source.text
    assert source.notes[0].startswith("A quotation mark in this table is never closed")


def test_a_table_of_one_column_or_row() -> None:
    assert read("one\ntwo\n").text == "one\ntwo"
    assert read("a,b,c\n").text == "a; b; c"


def test_an_empty_table_is_refused() -> None:
    with pytest.raises(InputError, match=r"“a\.csv” has no rows"):
        read(",,\n\n ,\n")


@pytest.mark.parametrize(
    "text", ["412", "-3.5 %", "€1,200", "1 200", "12k", "(4.2)", "10.4", "5 m²", "2019-20", "≈ 7"]
)
def test_numbers(text: str) -> None:
    assert is_number(text)


@pytest.mark.parametrize(
    "text", ["", "North", "Q1 2023", "three", "x" * 100, "a1", "4 of 5 people"]
)
def test_words_are_no_numbers(text: str) -> None:
    assert not is_number(text)


@pytest.mark.parametrize(
    ("grid", "headers"),
    [
        ([["Region", "2022", "2023"], ["North", "1", "2"]], 1),
        ([["", "A", "B"], ["x", "1", "2"]], 1),
        ([["North", "2000"], ["South", "1950"]], 0),
        ([["A", "A"], ["1", "2"]], 0),
        ([["A", ""], ["1", "2"]], 0),
        ([["A", "B"]], 0),
        ([["A"], ["B"]], 0),
        ([], 0),
    ],
)
def test_headers(grid: list[list[str]], headers: int) -> None:
    assert header_rows(grid) == headers


def test_headers_of_two_rows_are_joined() -> None:
    grid = [["Region", "Visitors", "Visitors"], ["Region", "2022", "2023"], ["North", "1", "2"]]
    assert table_lines(grid, 2) == ["Region: North; Visitors 2022: 1; Visitors 2023: 2"]


@given(CELLS)
def test_the_pieces_of_a_row_are_its_line_and_know_their_cells(grid: list[list[str]]) -> None:
    headers = header_rows(grid)
    for row in range(headers, len(grid)):
        pieces = row_cells(grid, row, headers)
        assert "".join(piece.text for piece in pieces) == row_line(grid, row, headers)
        values = [piece for piece in pieces if piece.row == row]
        assert [piece.text for piece in values] == [
            " ".join(cell.split()) for cell in grid[row] if cell.split()
        ]
        assert "\n" not in row_line(grid, row, headers)


@given(st.lists(st.tuples(*[st.text(st.characters(exclude_categories=["C"]))] * 3), max_size=6))
def test_whatever_a_table_holds_its_values_are_in_the_text(rows: list[tuple[str, ...]]) -> None:
    stream = io.StringIO()
    csv.writer(stream, delimiter="\t").writerows([("Name", "Place", "Remark"), *rows])
    source = read_table(request("a.tsv", stream.getvalue().encode(), "table"))
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    assert source.notes == ()
    assert len(source.text.split("\n")) == max(1, len(filled))
    for row in filled:
        for name, cell in zip(("Name", "Place", "Remark"), row, strict=True):
            if cell.strip():
                assert f"{name}: {' '.join(cell.split())}" in source.text
