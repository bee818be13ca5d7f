"""From places to lines: pure geometry, no picture needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents import charts
from core.documents.charts import parse_tick_value, split_numbers
from core.documents.layout import build_picture_blocks
from core.documents.source_builder import PictureText, SourceBuilder, TextBox, group_rows
from tests.documents.builders import check_offsets, request

HEIGHT = 20


def at(text: str, x: float, y: float, height: float = HEIGHT) -> TextBox:
    """The text around the centre (x, y), each letter half as wide as it is high."""
    width = max(1, len(text)) * height / 2
    return TextBox(text, x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def after(text: str, left: float, y: float, height: float = HEIGHT) -> TextBox:
    """The text from `left` on."""
    return at(text, left + max(1, len(text)) * height / 4, y, height)


def lines(*items: TextBox) -> list[str]:
    return [block.text for block in build_picture_blocks(PictureText(items, 1000, 800))]


def kinds(*items: TextBox) -> list[str | None]:
    return [block.kind for block in build_picture_blocks(PictureText(items, 1000, 800))]


def bars(names: list[str], values: list[list[str]], spacing: float = 150) -> list[TextBox]:
    """Names in a row at y = 500, the values of each above it, higher the later."""
    items = [at(name, 200 + spacing * number, 500) for number, name in enumerate(names)]
    for number, column in enumerate(values):
        for place, value in enumerate(column):
            x = 200 + spacing * number + (place - (len(column) - 1) / 2) * 45
            items.append(at(value, x, 420 - 37 * number - 61 * place))
    return items


AXIS = [at(str(value), 40, 500 - value) for value in range(0, 400, 100)]


def test_values_stand_above_their_bars_names_below() -> None:
    items = bars(["North", "South", "West"], [["412"], ["287"], ["198"]])
    assert lines(at("Visitors, 2023", 300, 40), *items, *AXIS) == [
        "Visitors, 2023",
        "Visitors, 2023, North: 412",
        "Visitors, 2023, South: 287",
        "Visitors, 2023, West: 198",
        "Axis: 0, 100, 200, 300",
    ]
    found = kinds(at("Visitors, 2023", 300, 40), *items, *AXIS)
    assert found == ["caption", *["table row"] * 3, "chart label"]


def test_a_chart_whose_values_stand_nowhere_gives_labels_only() -> None:
    names = [at(name, 200 + 150 * n, 520) for n, name in enumerate(["North", "South", "West"])]
    items = [at("Visitors, 2023", 300, 40), *names, *AXIS]
    assert kinds(*items) == ["caption", *["chart label"] * 4]


def test_the_order_in_which_things_were_seen_does_not_matter() -> None:
    items = [*bars(["North", "South", "West"], [["412"], ["287"], ["198"]]), *AXIS]
    assert lines(*reversed(items)) == lines(*items)


def test_years_may_be_names() -> None:
    items = bars(["2021", "2022", "2023"], [["3.2"], ["4.1"], ["2.7"]])
    assert lines(*items) == ["2021: 3.2", "2022: 4.1", "2023: 2.7"]


def test_bars_side_by_side_keep_their_order_and_a_legend_is_no_name() -> None:
    items = bars(["Q1", "Q2", "Q3"], [["40", "55"], ["62", "48"], ["71", "90"]])
    legend = [at("Old town", 250, 560), at("Harbour", 420, 560)]
    assert lines(*items, *legend)[:3] == ["Q1: 40, 55", "Q2: 62, 48", "Q3: 71, 90"]


def test_names_of_two_lines_are_one() -> None:
    items = bars(["Latin", "Middle", "Europe"], [["660"], ["450"], ["740"]])
    second = [at("America", 200, 522), at("East", 350, 522)]
    assert lines(*items, *second) == ["Latin America: 660", "Middle East: 450", "Europe: 740"]


def test_a_source_below_the_bars_is_no_name() -> None:
    items = bars(["North", "South", "West"], [["412"], ["287"], ["198"]])
    note = at("Source: National Statistics Office, 2024", 350, 522)
    assert lines(*items, note) == ["North: 412", "South: 287", "West: 198", note.text]


def test_horizontal_bars_are_pairs() -> None:
    items = []
    for number, (name, value) in enumerate(
        (("Solar", "12%"), ("Wind power", "31%"), ("Hydro", "24%"))
    ):
        items += [
            after(name, 10, 100 + 60 * number),
            at(value, 300 + 70 * number, 100 + 60 * number),
        ]
    axis = [at(str(value), 200 + 8 * value, 320) for value in range(0, 50, 10)]
    assert lines(*items, *axis) == [
        "Solar: 12%",
        "Wind power: 31%",
        "Hydro: 24%",
        "Axis: 0, 10, 20, 30, 40",
    ]


def test_an_axis_of_years_without_values_is_an_axis() -> None:
    years = [at(str(year), 100 + 90 * (year - 2015), 500) for year in range(2015, 2021)]
    assert lines(at("Exports", 300, 40), *years) == [
        "Exports",
        "Axis: 2015, 2016, 2017, 2018, 2019, 2020",
    ]


def grid(rows: list[list[str]], gap: float = 50) -> list[TextBox]:
    return [
        after(text, 20 + 180 * column, 100 + gap * number)
        for number, row in enumerate(rows)
        for column, text in enumerate(row)
        if text
    ]


def test_tables_carry_their_names_into_each_row() -> None:
    rows = [["Region", "2021", "2022"], ["North", "859", "467"], ["South", "807", "961"]]
    assert lines(after("Visitors by region", 20, 40), *grid(rows)) == [
        "Visitors by region",
        "Region North, 2021: 859; 2022: 467",
        "Region South, 2021: 807; 2022: 961",
    ]


def test_years_down_the_side_of_a_table_are_no_axis() -> None:
    rows = [["Year", "Visitors", "Staff"]] + [
        [str(y), str(37 * y % 91), "9"] for y in range(2023, 2018, -1)
    ]
    found = lines(*grid(rows))
    assert found[0] == f"Year 2023, Visitors: {37 * 2023 % 91}; Staff: 9"
    assert not any(line.startswith("Axis") for line in found)


def test_empty_cells_leave_their_name_out() -> None:
    rows = [["Name", "Height", "Age"], ["Ann", "", "34"], ["Bob", "182", "41"]]
    assert lines(*grid(rows)) == ["Name Ann, Age: 34", "Name Bob, Height: 182; Age: 41"]


def test_cells_of_two_lines_stay_cells() -> None:
    rows = [["Name", "Field"], ["Ann Lee", "History of"], ["Bob", "Physics"]]
    second = after("the sea", 200, 172)
    assert lines(*grid(rows), second) == [
        "Name Ann Lee, Field: History of the sea",
        "Name Bob, Field: Physics",
    ]


def test_wrapped_lines_are_one_paragraph_and_items_are_not() -> None:
    text = [
        "The museum of the harbour was founded by two brothers in the spring",
        "of 1904 and has been open to the public ever since that day; it has",
        "a collection of ships.",
        "- It is closed on Mondays.",
        "- It is free on Sundays.",
    ]
    items = [after(line, 50, 100 + 24 * number) for number, line in enumerate(text)]
    assert lines(*items) == [" ".join(text[:3]), text[3], text[4]]


def test_words_cut_at_line_ends_are_whole() -> None:
    text = ["The museum of the harbour was founded by the two famous broth-", "ers in 1904."]
    items = [after(line, 50, 100 + 24 * number) for number, line in enumerate(text)]
    assert lines(*items) == [
        "The museum of the harbour was founded by the two famous brothers in 1904."
    ]


def test_columns_are_read_one_after_the_other() -> None:
    left = [f"left column with some words in line {number} of it" for number in range(5)]
    right = [f"right column with other words in line {number}, too" for number in range(5)]
    items = [after(line, 0, 100 + 24 * number, 18) for number, line in enumerate(left)]
    items += [after(line, 520, 104 + 24 * number, 18) for number, line in enumerate(right)]
    title = at("A title that stands across both of the columns of the page", 480, 40)
    found = lines(*items, title)
    assert found[0] == title.text
    assert " ".join(found[1:]) == " ".join(left + right)


def test_numbers_seen_as_one_are_taken_apart_but_thousands_are_not() -> None:
    found = split_numbers(
        [after("1,200 1,500", 0, 0), after("1 200 500", 0, 0), after("a 1", 0, 0)]
    )
    assert [item.text for item in found] == ["1,200", "1,500", "1 200 500", "a 1"]
    assert found[0].right < found[1].left


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,200", 1200), ("20%", 20), ("-3.5", -3.5), ("$1.5k", 1500), ("0,5", 0.5), ("x", None)],
)
def test_values(text: str, value: float | None) -> None:
    assert parse_tick_value(text) == value


def test_nothing_gives_nothing() -> None:
    assert lines() == []
    assert group_rows([]) == []


SEEN = st.builds(
    at,
    st.one_of(
        st.sampled_from(
            ["North", "412", "7%", "2021", "1,200 1,500", "a longer piece of text", "文字"]
        ),
        st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=30),
    ),
    st.integers(0, 900),
    st.integers(0, 700),
    st.integers(8, 60),
)


@given(st.lists(SEEN, max_size=25))
def test_whatever_is_seen_is_said_and_every_place_is_exact(items: list[TextBox]) -> None:
    draft = SourceBuilder(request("a.png", b"", "image"))
    picture = PictureText(tuple(items), 1000, 800)
    draft.add_blocks(build_picture_blocks(picture), box=picture.box)
    draft.add_page(1, 0, "ocr")
    source = draft.finish()
    inside = [seen for seen in source.boxes if seen.box.left < seen.box.right]
    check_offsets(type(source)(**{**vars(source), "boxes": tuple(inside)}))
    for item in items:
        for word in item.text.split():
            assert word in source.text
    said = "".join(source.text[seen.start : seen.end] for seen in source.boxes)
    assert len(said.replace(" ", "")) >= sum(
        len(item.text.replace(" ", "")) for item in items
    ) - 2 * len(items)


@pytest.mark.parametrize("step", [1, -1])
def test_long_columns_of_numbers_take_no_time_with_their_square(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    compared: list[object] = []

    def value(text: str) -> float | None:
        asked.append(text)
        return parse_tick_value(text)

    def equal(one: TextBox, other: object) -> bool:
        compared.append(other)
        return isinstance(other, TextBox) and vars(one) == vars(other)

    monkeypatch.setattr(charts, "parse_tick_value", value)
    monkeypatch.setattr(TextBox, "__eq__", equal)
    rows = range(1000, 1300) if step > 0 else range(1300, 1000, -1)
    items = [at(str(number), 100, 30 * place) for place, number in enumerate(rows)]
    assert sum(map(len, lines(*items))) >= 4 * len(items)
    assert len(asked) < 20 * len(items)
    assert len(compared) < 20 * len(items)
