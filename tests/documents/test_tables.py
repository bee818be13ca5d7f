"""Every row of a table becomes a line that can be understood without the header."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents.source_builder import TextBox
from core.documents.tables import (
    MAX_ROW_LENGTH,
    build_table_blocks,
    count_header_rows,
    detect_delimiter,
    find_unit,
    is_number,
    is_unit,
    read_table,
)
from core.runtime.errors import InputError
from core.schema.records import Source
from tests.documents.builders import blocks_of, check_offsets, request

CELLS = st.lists(
    st.lists(st.text(st.characters(exclude_categories=["C"])), min_size=1, max_size=5), max_size=6
)


def read(text: str, name: str = "a.csv") -> Source:
    source = read_table(request(name, text.encode(), "table"))
    check_offsets(source)
    return source


def rows(*grid: list[str], headers: int | None = None, caption: str = "") -> list[str]:
    blocks = build_table_blocks(grid, headers, caption)
    return [block.text for block in blocks if block.kind == "table row"]


def test_rows_carry_their_column_names() -> None:
    source = read("Region,2022,2023\nNorth,400,412\nSouth,280,287\n")
    assert source.text == "Region North, 2022: 400; 2023: 412\nRegion South, 2022: 280; 2023: 287"
    assert {kind for kind, _ in blocks_of(source)} == {"table row"}
    assert source.notes == ()


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found_out(delimiter: str) -> None:
    table = [["Name", "Price"], ["Tea, green", "3,50"], ["Coffee; black", "4,20"]]
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter).writerows(table)
    assert detect_delimiter(stream.getvalue()) == delimiter
    assert read(stream.getvalue()).text.startswith("Name Tea, green, Price: 3,50")


def test_excels_own_declaration_is_followed() -> None:
    assert read("sep=;\r\nitem;a,b\r\nx;1,5\r\n").text == "item x, a,b: 1,5"


def test_quoted_cells_may_hold_anything() -> None:
    source = read('Name,Remark\n"Smith, Ann","said ""yes""\non Monday"\n')
    assert source.text == 'Name Smith, Ann, Remark: said "yes" on Monday'


def test_titles_above_the_table_are_captions_and_give_its_unit() -> None:
    source = read("Visitors in 2023 (thousands),,\nRegion,Adults,Children\nNorth,400,12\n")
    assert blocks_of(source) == [
        ("caption", "Visitors in 2023 (thousands)"),
        ("table row", "Region North (thousands), Adults: 400; Children: 12"),
    ]


def test_dates_as_column_names_are_no_values() -> None:
    source = read("Balance sheet (in thousands of US$),,\nItem,31 Mar,30 Jun\nCash,22402,23075\n")
    assert blocks_of(source) == [
        ("caption", "Balance sheet (in thousands of US$)"),
        ("table row", "Item Cash (thousands of US$), 31 Mar: 22402; 30 Jun: 23075"),
    ]
    assert source.notes == ()


def test_ragged_rows_are_read_and_named() -> None:
    source = read("a,b\n1,2\n3\n4,5,6\n")
    assert source.text == "a 1, b: 2\na 3\na 4, b: 5; 6"
    assert source.notes == ("2 rows (3, 4) have more or fewer cells than the first, which has 2.",)


def test_tables_without_names_say_so() -> None:
    source = read("North,400\nSouth,280\n")
    assert source.text == "North: 400\nSouth: 280"
    assert source.notes == (
        "The first row looks like data, so the rows stand without column names.",
    )


def test_a_quotation_mark_that_never_ends_does_not_swallow_the_rest() -> None:
    source = read('Name,Height\nTable,"30 in\nChair,20 in\n')
    assert 'Name Table, Height: "30 in' in source.text
    assert "Name Chair, Height: 20 in" in source.text
    assert source.notes[0].startswith("A quotation mark in this table is never closed")


def test_a_table_of_one_column_or_row() -> None:
    assert read("one\ntwo\n").text == "one\ntwo"
    assert read("one\ntwo\nthree\n").text == "one\ntwo\nthree"
    assert read("a,b,c\n").text == "a: b; c"


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
    "text", ["(million EUR)", "in %", "EUR m", "US$ bn", "'000", "t", "单位：万元", "km²"]
)
def test_units(text: str) -> None:
    assert is_unit(text)


@pytest.mark.parametrize("text", ["", "2024", "(restated)", "North", "in 2023", "Total"])
def test_other_words_are_no_units(text: str) -> None:
    assert not is_unit(text)


@pytest.mark.parametrize(
    ("caption", "unit"),
    [
        ("Key figures (million EUR)", "million EUR"),
        ("Table 2: Visitors, in thousands", "thousands"),
        ("Sales (unaudited) in 2023", ""),
        ("Balance sheet in thousands of US$", "thousands of US$"),
        ("All amounts in thousands of euros. Losses are in parentheses.", "thousands of euros"),
        ("Bilan au 31 mars (en milliers d’euros)", "en milliers d’euros"),
        ("Ausgaben in Tausend Euro, ungeprüft", "Tausend Euro"),
        ("Sales in TEUR", "TEUR"),
        ("Investment in people", ""),
        ("Towns in 2023 by number of inhabitants", ""),
        ("万人", ""),
        ("主要指标（单位：万元）", "单位：万元"),
    ],
)
def test_the_unit_of_a_table(caption: str, unit: str) -> None:
    assert find_unit(caption) == unit


@pytest.mark.parametrize(
    ("grid", "headers"),
    [
        ([["Region", "2022", "2023"], ["North", "1", "2"]], 1),
        ([["", "A", "B"], ["x", "1", "2"]], 1),
        ([["", "2023", "2023"], ["", "Men", "Women"], ["x", "1", "2"]], 2),
        ([["Age", "25–34", "35–44", "All"], ["x", "1", "2", "3"]], 1),
        ([["Grade", "1", "2", "3"], ["x", "50", "61", "70"]], 1),
        ([["", "2024", "2023"], ["", "EUR m", "EUR m"], ["x", "5", "6"]], 2),
        ([["Item", "31 Mar", "30 Jun"], ["Cash", "22402", "23075"]], 1),
        ([["Item", "31. März", "30. Juni"], ["Bar", "22402", "23075"]], 1),
        ([["Item", "1st Mar 24", "1st Jun 24"], ["Cash", "5", "6"]], 1),
        ([["Item", "31.12.2023", "31.12.2022"], ["Cash", "5", "6"]], 1),
        ([["Item", "2023-12-31", "2022-12-31"], ["Cash", "5", "6"]], 1),
        ([["Item", "12/31/23", "12/2022"], ["Cash", "5", "6"]], 1),
        ([["Item", "2023A", "2024E"], ["Cash", "5", "6"]], 1),
        ([["Day", "08:00", "09:00"], ["Mon", "12", "30"]], 1),
        ([["Item", "As at 31 Mar", "30 Jun"], ["Cash", "5", "6"]], 1),
        ([["North", "31 Mar", "30 Jun"], ["South", "1 Mar", "3 Jun"]], 0),
        # dates in a labelled row below names are values
        ([["", "Opens", "Closes"], ["Saturday", "10:00", "18:00"], ["Sunday", "closed", "closed"],
          ["Monday", "09:00", "17:00"]], 1),
        ([["", "Hours", "Hours"], ["Saturday", "10:00", "18:00"], ["Sunday", "closed", "closed"],
          ["Monday", "09:00", "17:00"]], 1),
        ([["", "Signed", "Value"], ["Alpha", "31 March", "pending"], ["Beta", "n/a", "412"]], 1),
        ([["", "Opens"], ["Saturday", "10:00"], ["Fee", "5"]], 1),
        # but dates below a spanning name, or in a row without its own label, are names
        ([["", "Balance", "Balance"], ["Item", "31 Mar", "30 Jun"], ["Cash", "5", "6"]], 2),
        ([["Item", "Before", "After"], ["", "31 Mar", "30 Jun"], ["Cash", "5", "6"]], 2),
        ([["Item", "Before", "After"], ["Item", "31 Mar", "30 Jun"], ["Cash", "5", "6"]], 2),
        ([["", "Group", "Parent"], ["EUR m", "31 Mar", "31 Mar"], ["Cash", "5", "6"]], 2),
        ([["Rope", "12 kg", "30 kg"], ["Sand", "14 kg", "22 kg"]], 0),
        ([["Rope", "12 kg", "30 kg"], ["Sand", "5", "6"]], 0),
        ([["2023-12-31", "5", "6"], ["2022-12-31", "7", "8"]], 0),
        ([["North", "2000"], ["South", "1950"]], 0),
        ([["A", "A"], ["b", "c"]], 0),
        ([["A", ""], ["b", "c"]], 0),
        ([["A", "B"]], 0),
        ([["A"], ["B"]], 0),
        ([], 0),
    ],
)  # fmt: skip
def test_headers(grid: list[list[str]], headers: int) -> None:
    assert count_header_rows(grid) == headers


@pytest.mark.parametrize(
    ("grid", "caption", "expected"),
    [
        (
            [["", "2024", "2023"], ["Revenue", "131.5", "120.2"], ["EBIT margin (%)", "9.4", ""]],
            "Key figures (million EUR)",
            ["Revenue (million EUR), 2024: 131.5; 2023: 120.2", "EBIT margin (%), 2024: 9.4"],
        ),
        (
            [["EUR million", "2024"], ["Costs", "(1,204.2)"]],
            "",
            ["Costs (EUR million), 2024: (1,204.2)"],
        ),
        (
            [["", "2024", "Change %"], ["Sales", "1 310", "5.0"]],
            "Sales, in thousands",
            ["Sales, 2024 (thousands): 1 310; Change %: 5.0"],
        ),
        (
            [["Item", "Unit", "2024"], ["Emissions", "t", "120"], ["Water", "m³", "20"]],
            "",
            ["Item Emissions (t), 2024: 120", "Item Water (m³), 2024: 20"],
        ),
        (
            [["Revenue, in EUR million", "2024"], ["North", "1,204"]],
            "",
            ["Revenue, in EUR million North (EUR million), 2024: 1,204"],
        ),
        (
            [["Distance (km)", "Time"], ["5", "24"], ["10", "51"]],
            "",
            ["Distance (km) 5, Time: 24", "Distance (km) 10, Time: 51"],
        ),
        (
            [["Depot", "Part", "Units"], ["North", "Drum", "12"], ["South", "Motor", "1000"]],
            "",
            ["Depot North, Part: Drum; Units: 12", "Depot South, Part: Motor; Units: 1000"],
        ),
        (
            [["Product", "Units", "Price"], ["Drum", "12 pcs", "400"], ["Motor", "n/a", "260"]],
            "",
            ["Product Drum, Units: 12 pcs; Price: 400", "Product Motor, Units: n/a; Price: 260"],
        ),
        (
            [["Crop", "Unit", "2024"], ["Rice", "1000 t", "412"], ["Eggs", "%", "9"]],
            "",
            ["Crop Rice (1000 t), 2024: 412", "Crop Eggs (%), 2024: 9"],
        ),
        (
            [["Name", "Unit", "Head"], ["Ann", "Sales", "Bo"], ["Cy", "Stores", ""]],
            "",
            ["Name Ann, Unit: Sales; Head: Bo", "Name Cy, Unit: Stores"],
        ),
        (
            [["", "2024", "2024"], ["", "million EUR", "%"], ["Sales", "5", "12"]],
            "",
            ["Sales, 2024 (million EUR): 5; 2024 (%): 12"],
        ),
        (
            [["", "A", "B"], ["Assets", "", ""], ["Cash", "1", "2"], ["Debts", "", ""],
             ["Loan", "3", "4"]],
            "",
            ["Assets, Cash, A: 1; B: 2", "Debts, Loan, A: 3; B: 4"],
        ),
        (
            [["", "A", "B"], ["Austria", "1", "2"], ["Greece", "", ""], ["Italy", "3", "4"]],
            "",
            ["Austria, A: 1; B: 2", "Italy, A: 3; B: 4"],
        ),
        (
            [["Region", "Product", "Sold"], ["North", "Tea", "5"], ["", "Coffee", "7"]],
            "",
            ["Region North, Product: Tea; Sold: 5", "Region North, Product: Coffee; Sold: 7"],
        ),
        (
            [["All . . . . .", "5"], ["Some ………", "3"]],
            "",
            ["All: 5", "Some: 3"],
        ),
    ],
)  # fmt: skip
def test_labels_units_and_groups(grid: list[list[str]], caption: str, expected: list[str]) -> None:
    assert rows(*grid, caption=caption) == expected


def test_headers_of_two_rows_are_joined() -> None:
    grid = [["Region", "Visitors", "Visitors"], ["Region", "2022", "2023"], ["North", "1", "2"]]
    assert rows(*grid, headers=2) == ["Region North, Visitors 2022: 1; Visitors 2023: 2"]


def test_a_year_over_several_columns_of_a_csv_counts_for_each() -> None:
    text = ",2024,,2023,\n,net,gross,net,gross\nBasic,11,25,31,4\nLarge,5,6,17,8\n"
    assert read(text).text.splitlines()[0] == (
        "Basic, 2024 net: 11; 2024 gross: 25; 2023 net: 31; 2023 gross: 4"
    )


def test_a_header_that_is_repeated_in_the_table_is_no_row() -> None:
    grid = [["Year", "Sold"], ["A", "1"], ["Year", "Sold"], ["B", "2"]]
    assert rows(*grid) == ["Year A, Sold: 1", "Year B, Sold: 2"]


def test_a_very_wide_row_becomes_several_with_its_label() -> None:
    names = ["Indicator", *(f"Region number {n}" for n in range(60))]
    found = rows(names, ["Visitors", *(str(1000 + n) for n in range(60))])
    assert len(found) > 2
    assert all(row.startswith("Indicator Visitors, Region number") for row in found)
    assert all(len(row) <= MAX_ROW_LENGTH + 40 for row in found)
    assert "Region number 59: 1059" in found[-1]


@given(CELLS)
def test_the_pieces_of_a_row_know_their_cells_and_no_value_is_lost(grid: list[list[str]]) -> None:
    places = {
        (row, column): [TextBox(cell, column, row, column + 1, row + 1)]
        for row, cells in enumerate(grid)
        for column, cell in enumerate(cells)
    }
    blocks = build_table_blocks(grid, boxes=places)
    whole = " ".join(block.text for block in blocks)
    for block in blocks:
        assert "\n" not in block.text
        for piece in block.pieces:
            if piece.box:
                cell = grid[int(piece.box.top)][int(piece.box.left)]
                assert piece.text.removesuffix(":") in " ".join(cell.split())
    for number in (cell for row in grid[1:] for cell in row if is_number(cell)):
        assert " ".join(number.split()) in whole


@given(st.lists(st.tuples(*[st.text(st.characters(exclude_categories=["C"]))] * 3), max_size=6))
def test_whatever_a_table_holds_its_values_are_in_the_text(table: list[tuple[str, ...]]) -> None:
    stream = io.StringIO()
    csv.writer(stream, delimiter="\t").writerows([("Name", "Place", "Remark"), *table])
    source = read(stream.getvalue(), "a.tsv")
    assert source.notes == ()
    words = source.text.replace(":", "")
    for cell in (cell for row in table for cell in row if len(cell) > 3 and cell.isalnum()):
        assert " ".join(cell.split()) in words
