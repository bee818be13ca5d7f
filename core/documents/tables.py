"""Turns tables into rows that stand alone: “Revenue (million EUR), 2024: 131.5; 2023: 120.2”.

Every reader supplies a grid; header, units and labels are detected here. Also reads CSV and TSV,
and keeps cells from becoming spreadsheet formulas.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from core.documents.readers import decode_text
from core.documents.source_builder import (
    BlockContent,
    ReadRequest,
    SourceBuilder,
    TextBox,
    TextPiece,
    bounding_box,
    text_block,
)
from core.runtime.errors import InputError, make_printable
from core.schema.records import BlockKind, Source

CLAIM_NAMES = ("claim", "response", "statement", "answer", "text", "sentence")
QUESTION_NAMES = ("question", "prompt", "query")
# A spreadsheet ignores leading spaces, and may drop invisible characters before it looks.
FORMULA_START = re.compile(r"[\t\r\n]|[\s\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠]")
MAX_ROW_LENGTH = 400  # characters; a longer row becomes several, each with its label
MAX_NAME_LENGTH = 80
MAX_LABEL_NAME_LENGTH = 24
MAX_CAPTION_LENGTH = 300
MAX_NUMBER_LENGTH = 40
MAX_HEADER_ROWS = 6
QUANTITY = re.compile(
    r"[\s(<>≤≥~≈±+\-−–$€£¥₹₩*]*\d[\d\s.,'’\u00a0\u202f/:\-–]*"
    r"(?:%|‰|[kKmMbB]n?\b|[€$£¥₹₩°]|[A-Za-zµ²³/]{0,4})?[\s)*†‡]*"
)
PERIOD_NAME = re.compile(
    r"(?:(?:FY|CY|[HQ][1-4]|[1-4][HQ]|(?:31 |30 )?[A-Z][a-z]{2,8}\.?),? ?)*"
    r"(?:1[6-9]|20|21)\d\d(?: ?[-/–] ?(?:\d\d){1,2})?[A-Za-z]?\W{0,3}"
)
DATE_NAME = re.compile(
    r"\d{1,2}(?:st|nd|rd|th|\.|º)? ?(?:de |di )?(?P<month>[^\W\d_]{3,10})\.?(?:,? ?(?:\d\d){1,2})?"
    r"|\d{1,4}(?P<mark>[./-])\d{1,2}(?P=mark)\d{2,4}|\d{1,2}/(?:\d{4}|\d\d?)|\d{4}[/-]\d\d?"
    r"|\d\d?:\d\d"
)
NUMBER_RANGE = re.compile(r"\d ?[-–] ?[$€£]?\d")
UNIT_WORDS = frozenset(
    """thousand thousands million millions billion billions trillion hundreds mn mln mio mill bn
    bln mrd tsd tn m tausend millionen milliarden milliers milliards millones miles milioni
    miliardi teur keur eur euro euros us$ usd gbp chf jpy cny rmb sek nok dkk pln inr aud cad
    dollar dollars pound pounds yen yuan cents € $ £ ¥ % ‰ percent percentage percentages per cent
    pct prozent pp bps t kt mt tonne tonnes ton tons kg g mg km km² km2 m² m2 m³ m3 ha cm mm litres
    liters kwh mwh gwh twh kw mw gw °c °f hours days minutes seconds people persons inhabitants
    number units 000 000s
    千 万 百万 千万 亿 億 元 円 人 吨 万元 亿元 百万元 百万円 億円 万人 千人 千円""".split()
)
UNIT_LINKS = frozenset(
    "of in en de d the and a all / = measured expressed figures 单位 単位".split()
)
ELIDED_OF = re.compile(r"\bd['’](?=\w)")  # “milliers d’euros”
UNIT_TOKEN = re.compile(r"us\$|[%‰€$£¥/=]|[^\s/.,:：;%‰€$£¥=]+", re.I)
VAGUE_UNITS = frozenset("people persons inhabitants number of units hours days".split())
IN_UNIT = re.compile(r"(?=\b(?:in|en) ([^,.;:()（）]{1,40}))", re.I)
PARENTHESIZED = re.compile(r"[(（\[]([^()（）\[\]]{1,40})[)）\]]")
UNIT_COLUMN = re.compile(r"units?|einheit|unité|unidad|unità|单位|単位", re.I)
DOT_LEADERS = re.compile(r"(?:\s?[.·…_]){3,}\s*$")
LABEL_SEPARATOR = ", "
NAME_SEPARATOR = ": "
PAIR_SEPARATOR = "; "
DELIMITERS = (",", ";", "\t", "|")
DECLARED_DELIMITER = re.compile(r"sep=([,;\t|])\r?\n")  # Excel's own first line.
MAX_SNIFFED_LINES = 60
MAX_NAMED_ROWS = 5
CellGrid = Sequence[Sequence[str]]
GridBoxes = Mapping[tuple[int, int], Sequence[TextBox]]  # what was seen in (row, column) of a grid


def fold_column_name(name: str) -> str:
    """Return a column's name normalized for comparison."""
    return name.strip().casefold()


def require_columns(name: str, found: Iterable[str], wanted: Iterable[str]) -> None:
    """Raise InputError if a wanted column is missing."""
    available = list(found)
    missing = sorted(set(wanted) - set(available))
    if missing:
        listed = make_printable(", ".join(available), 200) or "none"
        raise InputError(
            f"{make_printable(name)}: expected columns called {', '.join(missing)}, found "
            f"{listed}; choose "
            "the file as it was published, or another format."
        )


def safe_cell(value: object) -> str:
    """Return the value as a cell that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    text = str(value)
    return "'" + text if isinstance(value, str) and FORMULA_START.match(text) else text


def mask_formula(cell: str) -> str:
    """Quote a cell that would be a formula; `bare` undoes it exactly."""
    return "'" + cell if _is_formula(cell) else cell


def unmask_formula(cell: str) -> str:
    """Undo `masked`."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(cell: str) -> bool:
    return FORMULA_START.match(cell.lstrip("'")) is not None


def is_number(text: str) -> bool:
    """Return True for a quantity: “412”, “-3.5 %”, “€1,200”, “2019-20”."""
    return len(text) <= MAX_NUMBER_LENGTH and QUANTITY.fullmatch(text) is not None


def is_unit(text: str) -> bool:
    """Return True for words that only name a unit: “(million EUR)”, “in %”."""
    words = UNIT_TOKEN.findall(ELIDED_OF.sub("", text.strip("()[]（） ").casefold()))
    words = [word.strip("'’") for word in words if word not in UNIT_LINKS]
    return bool(words) and UNIT_WORDS.issuperset(words)


def find_unit(caption: str) -> str:
    """Return the unit that a caption gives for a whole table; empty if it gives none."""
    if len(caption) > MAX_CAPTION_LENGTH:
        return ""
    stated = (p for p in IN_UNIT.findall(caption) if set(p.casefold().split()) - VAGUE_UNITS)
    last = re.split(r", |[–—] |: |：", caption)[-1]
    for part in (*PARENTHESIZED.findall(caption), last, *stated):
        if part != caption and is_unit(part):
            return str(part).strip().removeprefix("in ")
    return ""


def clean_cell(text: str) -> str:
    """Return the cell's text on one line, without dot leaders."""
    return DOT_LEADERS.sub("", " ".join(text.split())).strip()


def count_header_rows(grid: CellGrid) -> int:
    """Return how many leading rows name the columns.

    Names stand above the first row of values; years and units are names. If the body holds words
    too, only a complete first row of distinct, short names is a header.
    """
    if len(grid) < 2 or len(grid[0]) < 2:
        return 0
    count = 0
    label = ""  # only one row of the header names the column of labels
    while count < min(len(grid) - 1, MAX_HEADER_ROWS) and _names_columns(grid, count):
        stub = clean_cell(grid[count][0])
        if label and stub and stub != label:
            break
        label, count = label or stub, count + 1
    has_values = any(is_number(cell) for row in grid[count:] for cell in row[1:])
    if has_values or not count:
        return count
    first = [clean_cell(cell) for cell in grid[0]]
    filled = [name for name in first if name]
    is_whole = len(filled) == len(first) or (not first[0] and len(filled) == len(first) - 1)
    are_names = len(set(filled)) == len(filled) and max(map(len, filled)) <= MAX_NAME_LENGTH
    return int(is_whole and are_names)


def _names_columns(grid: CellGrid, number: int) -> bool:
    """Return True for a row without values.

    Dates count as names unless the rows below hold dates too, ranges (“25–34”) beside other names,
    and 1, 2, 3 in order.
    """
    row = [clean_cell(cell) for cell in grid[number]]
    values = [cell for cell in row[1:] if is_number(cell) and not is_unit(cell)]
    if not any(row[1:]) or len(set(row)) == 1 or any(len(cell) > MAX_NAME_LENGTH for cell in row):
        return False
    if _counts_up(values):
        return True
    dates = [n for n, cell in enumerate(row) if n and _is_date(cell)]
    others = [cell for cell in values if not _is_date(cell)]
    if not all(NUMBER_RANGE.search(cell) for cell in others) or (
        others and len(others) == len(values) == len(list(filter(None, row[1:])))
    ):
        return False
    if PERIOD_NAME.fullmatch(row[0]) and not all(
        PERIOD_NAME.fullmatch(cell) for cell in row if cell
    ):
        return False
    below = [clean_cell(line[n]) for line in grid[number + 1 :] for n in dates if n < len(line)]
    dates_below = [cell for cell in below if _is_date(cell)]
    if dates and len(dates_below) == len(list(filter(None, below))):
        return False
    if not number or all(PERIOD_NAME.fullmatch(row[n]) for n in dates):
        return True
    return not dates_below and not _is_labelled_value_row(grid, number)


def _is_labelled_value_row(grid: CellGrid, number: int) -> bool:
    """Return True for a row with its own label below a complete row of distinct names."""
    label, above = clean_cell(grid[number][0]), [clean_cell(cell) for cell in grid[number - 1]]
    is_own = label and label != above[0] and not is_unit(label)
    return bool(is_own and all(above[1:]) and len(set(above[1:])) == len(above[1:]))


def _is_date(cell: str) -> bool:
    """Return True for a year, date or time of day: “2023”, “31 Mar”, “2023-06-30”, “08:00”."""
    date = DATE_NAME.fullmatch(cell)
    return bool(date and not is_unit(date["month"] or "")) or bool(PERIOD_NAME.fullmatch(cell))


def _counts_up(values: Sequence[str]) -> bool:
    """Return True for 1, 2, 3 or 1.0, 1.1, 1.2, 1.3: values do not grow so evenly."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return False
    steps = {round(b - a, 6) for a, b in pairwise(numbers)}
    return len(steps) == 1 and min(steps) > 0 and len(numbers) > (2 if steps == {1.0} else 3)


def build_table_blocks(
    grid: CellGrid, headers: int | None = None, caption: str = "", boxes: GridBoxes | None = None
) -> list[BlockContent]:
    """Return every row below the header as a block, or as several if it is long.

    `headers` is the number of header rows if the format knows it; `caption` may name the unit of
    all values. Rows above the header with a single text come first, as captions.
    """
    rows = pad_grid(grid)
    first, body = find_header(rows, headers)
    table = _Table(rows, range(first, body), boxes or {})
    titles = []
    for row in range(first):
        titles.append(table.cell(row, next((n for n, cell in enumerate(rows[row]) if cell), 0)))
    units = (find_unit(text) for text in (caption, *(title.text for title in titles)))
    table.set_unit(next(filter(None, units), ""))
    row_blocks = list(table.rows_of(range(body, len(rows))))
    # Names of columns without values come first, so that no text is lost.
    used_texts = {piece.text for block in row_blocks for piece in block.pieces}
    header = (table.cell(row, n) for row in table.header for n in range(len(rows[row])))
    unused = [
        cell for cell in header if cell.text and cell.text.removesuffix(":") not in used_texts
    ]
    return [
        *(BlockContent("caption", (title,)) for title in titles if title.text),
        *(BlockContent(None, (cell,)) for cell in unused),
        *row_blocks,
    ]


def pad_grid(grid: CellGrid) -> list[list[str]]:
    """Return the grid with each cell on one line and all rows equally long."""
    width = max((len(row) for row in grid), default=0)
    return [[clean_cell(cell) for cell in row] + [""] * (width - len(row)) for row in grid]


def find_header(rows: Sequence[Sequence[str]], headers: int | None = None) -> tuple[int, int]:
    """Return (first row of the header, first row below it) of a padded grid; titles come before."""
    first = 0
    while rows and len(rows[0]) > 1 and first < len(rows) - 1 and _is_title(rows[first]):
        first += 1
    count = count_header_rows(rows[first:]) if headers is None else max(0, headers - first)
    return (first, first + count) if first + count < len(rows) else (first, first)


def _is_title(row: Sequence[str]) -> bool:
    filled = [n for n, cell in enumerate(row) if cell]
    is_alone = len(filled) == 1 and (not filled[0] or len(row[filled[0]]) > MAX_LABEL_NAME_LENGTH)
    return not filled or is_alone or len(set(row)) == 1


class _Table:
    """A padded grid with its column names, units and labels, which yields its rows as blocks."""

    def __init__(self, rows: CellGrid, header: range, boxes: GridBoxes) -> None:
        self.rows, self.header, self.boxes = rows, header, boxes
        self.names = [self._name(n) for n in range(len(rows[0]) if rows else 0)]
        self.own_units = [_has_unit(_join_text(name)) for name in self.names]
        named_units = (
            n for n, name in enumerate(self.names) if n and UNIT_COLUMN.fullmatch(_join_text(name))
        )
        body = rows[header.stop :]
        self.unit_column = next(
            (n for n in named_units if not any(_is_count(row[n]) for row in body)), 0
        )
        self.group: list[TextPiece] = []
        self.label: list[TextPiece] = []

    def set_unit(self, unit: str) -> None:
        """Set the unit of all values: the one named over the labels, or else the one given."""
        stub = _join_text(self.names[0]) if self.names else ""
        has_names = not any(is_number(row[0]) for row in self.rows[self.header.stop :])
        self.unit = stub.strip("()") if is_unit(stub) else (has_names and find_unit(stub)) or unit
        is_label = stub and not is_unit(stub) and len(stub) <= MAX_LABEL_NAME_LENGTH
        self.label_name = [*self.names[0], TextPiece(" ")] if is_label else []

    def cell(self, row: int, column: int, text: str | None = None) -> TextPiece:
        """Return the cell with its place; `text` replaces the cell's own text."""
        shown_text = self.rows[row][column] if text is None else text
        boxes = self.boxes.get((row, column))
        return TextPiece(shown_text, bounding_box(boxes, shown_text) if boxes else None)

    def _name(self, column: int) -> list[TextPiece]:
        pieces: list[TextPiece] = []
        last = ""
        for row in self.header:
            text = self.rows[row][column].removesuffix(":")
            if text and text != last:
                last = text
                is_bare = bool(pieces) and is_unit(text) and text[0] not in "([（"
                name = self.cell(row, column, text)
                pieces += [TextPiece(" ")] if pieces else []
                pieces += [TextPiece("("), name, TextPiece(")")] if is_bare else [name]
        return pieces

    def rows_of(self, body: range) -> Iterator[BlockContent]:
        header = [self.rows[row] for row in self.header]
        rows = [row for row in body if any(self.rows[row]) and self.rows[row] not in header]
        is_grouped = bool(rows) and self._is_alone(rows[0])
        after_values = False
        for row in rows:
            if row == rows[-1] or not self._is_group(row, is_grouped):
                kind: BlockKind | None = None if self._is_alone(row) else "table row"
                yield from (BlockContent(kind, tuple(pieces)) for pieces in self._row(row))
                after_values = True
            else:
                name = self.cell(row, 0, self.rows[row][0].removesuffix(":"))
                self.group = [
                    *([] if after_values else self.group),
                    name,
                    TextPiece(LABEL_SEPARATOR),
                ]
                after_values = False

    def _is_alone(self, row: int) -> bool:
        cells = self.rows[row]
        return len(cells) > 1 and bool(cells[0]) and not any(cells[1:]) and not is_number(cells[0])

    def _is_group(self, row: int, grouped: bool) -> bool:
        cells = self.rows[row]
        is_across = len(cells) > 1 and len(set(cells)) == 1
        return is_across or (self._is_alone(row) and (grouped or cells[0].endswith(":")))

    def _row(self, row: int) -> Iterator[list[TextPiece]]:
        cells = self.rows[row]
        filled = [n for n, cell in enumerate(cells) if cell]
        values = [n for n in filled if n and n != self.unit_column]
        own_unit = cells[self.unit_column] if self.unit_column else ""
        if own_unit and not any(self._takes_unit(row, n) for n in values if is_number(cells[n])):
            own_unit, values = "", [n for n in filled if n]  # a unit of a company, say
        has_names = any(self.names[n] for n in values)
        goes_on = values and not is_number(cells[values[0]]) and self.label
        if 0 in filled or not goes_on:
            self.label = [self.cell(row, 0)] if cells[0] else []
        unit = own_unit or ("" if _has_unit(_join_text(self.label)) else self.unit)
        pairs = [self._pair(row, n, unit) for n in values]
        label_name = _join_text(self.label_name).strip().casefold()
        is_named = bool(self.label) and not _join_text(self.label).casefold().startswith(label_name)
        parts = [*(self.label_name if is_named else []), *self.label]
        parts = [*self.group, *parts] if parts else self.group[:-1]
        if unit and values and all(self._takes_unit(row, n) for n in values) and parts:
            parts += [TextPiece(f" ({unit})")]
            pairs = [self._pair(row, n, "") for n in values]
        if not pairs:
            yield parts
            return
        after = [TextPiece(LABEL_SEPARATOR if has_names else NAME_SEPARATOR)] if parts else []
        yield from _split_row([*parts, *after], pairs)

    def _takes_unit(self, row: int, column: int) -> bool:
        cell = self.rows[row][column]
        if self.own_units[column] or re.search(r"[^\W\d_]{2}|[%‰€$£¥°]", cell):
            return False
        return is_number(cell) or not cell.strip("-–—.")

    def _pair(self, row: int, column: int, unit: str) -> list[TextPiece]:
        name = list(self.names[column])
        if unit and name and self._takes_unit(row, column) and is_number(self.rows[row][column]):
            name.append(TextPiece(f" ({unit})"))
        return [*name, *([TextPiece(NAME_SEPARATOR)] if name else []), self.cell(row, column)]


def _has_unit(name: str) -> bool:
    """Return True for a name that says its unit: “Export (t)”, “change in %”."""
    return "%" in name or any(map(is_unit, (*PARENTHESIZED.findall(name), name.split(" in ")[-1])))


def _is_count(cell: str) -> bool:
    """Return True for a number of things (“7”, “12 pcs”), False for a unit such as “1000 t”."""
    return is_number(cell) and not is_unit(cell) and not is_unit(cell.lstrip("10 ,"))


def _join_text(cells: Iterable[TextPiece]) -> str:
    return "".join(cell.text for cell in cells)


def _split_row(
    label: Sequence[TextPiece], pairs: Sequence[Sequence[TextPiece]]
) -> Iterator[list[TextPiece]]:
    line: list[TextPiece] = list(label)
    length = start = len(_join_text(label))
    for pair in pairs:
        size = len(_join_text(pair))
        if length > start and length + size > MAX_ROW_LENGTH:
            yield line
            line, length = list(label), start
        line += [*([TextPiece(PAIR_SEPARATOR)] if length > start else []), *pair]
        length += size + len(PAIR_SEPARATOR)
    yield line


def read_table(request: ReadRequest) -> Source:
    """Read a CSV or TSV file with any delimiter.

    Raises InputError: the file is not UTF-8, has no rows, or is too long.
    """
    draft = SourceBuilder(request)
    text = decode_text(request.name, request.data)
    declared = DECLARED_DELIMITER.match(text)
    if declared:
        text = text[declared.end() :]
    delimiter = declared[1] if declared else detect_delimiter(text, request.name)
    grid, is_whole = _parse_rows(text, delimiter)
    if not is_whole:
        draft.note("A quotation mark in this table is never closed, so every line counts as a row.")
    if not grid:
        raise InputError(f"{request.file} has no rows; add a table with at least one row.")
    title_count = _count_titles(grid)
    body = _repeat_spanning_names(grid[title_count:])
    headers = count_header_rows(body)
    if not headers and len(body) > 1 and len(body[0]) > 1:
        draft.note("The first row looks like data, so the rows stand without column names.")
    if ragged := _describe_ragged_rows(body):
        draft.note(ragged)
    caption = " ".join(clean_cell(" ".join(row)) for row in grid[:title_count])
    draft.add_blocks([text_block("caption", caption), *build_table_blocks(body, headers, caption)])
    return draft.finish()


def detect_delimiter(text: str, name: str = "") -> str:
    """Return the delimiter that splits the most rows into equally many cells."""
    if name.lower().endswith(".tsv"):
        return "\t"
    sample = "\n".join(text.splitlines()[:MAX_SNIFFED_LINES])
    scores: dict[str, float] = dict.fromkeys(DELIMITERS, 0.0)
    for delimiter in DELIMITERS:
        widths = Counter(len(row) for row in _parse_rows(sample, delimiter)[0])
        count, width = max(((n, w) for w, n in widths.items() if w > 1), default=(0, 0))
        share = count / max(1, widths.total())
        scores[delimiter] = share + min(width, 20) / 1000 if share > 0.5 else 0.0
    return max(DELIMITERS, key=lambda delimiter: scores[delimiter])


def _parse_rows(text: str, delimiter: str) -> tuple[list[list[str]], bool]:
    """Return the non-empty rows, and False if a quotation mark was never closed."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))

    def parse_rows(newline: str | None, **options: Any) -> list[list[str]]:
        reader = csv.reader(io.StringIO(text, newline=newline), delimiter=delimiter, **options)
        return [row for row in reader if any(cell.strip() for cell in row)]

    try:
        return parse_rows("", strict=True), True
    except csv.Error as error:
        if "unexpected end" not in str(error):
            return parse_rows(""), True
    return parse_rows(None, quoting=csv.QUOTE_NONE), False


def _count_titles(grid: CellGrid) -> int:
    """Return how many rows above the table have a single cell: its title, its source."""
    width = Counter(len(row) for row in grid).most_common(1)[0][0]
    if width < 2:
        return 0
    count = 0
    while count < len(grid) - 1 and sum(bool(cell.strip()) for cell in grid[count]) == 1:
        count += 1
    return count


def _repeat_spanning_names(grid: list[list[str]]) -> list[list[str]]:
    """Return the grid with names that span several columns (“2024,,2023,”) repeated in each.

    Only a first row with gaps at equal distances above a complete second row is treated so.
    """
    if len(grid) < 3 or len(grid[0]) != len(grid[1]):
        return grid
    filled = [n for n, cell in enumerate(grid[0]) if n and cell.strip()]
    below = [bool(cell.strip()) for cell in grid[1][1:]]
    steps = {b - a for a, b in pairwise([*filled, len(grid[0])])}
    if len(steps) != 1 or min(steps) < 2 or filled[0] != 1 or not all(below):
        return grid
    upper = [
        cell or grid[0][max((f for f in filled if f <= n), default=n)]
        for n, cell in enumerate(grid[0])
    ]
    return [upper, *grid[1:]]


def _describe_ragged_rows(body: CellGrid) -> str:
    width = len(body[0]) if body else 0
    rows = [number for number, row in enumerate(body, start=1) if len(row) != width]
    if not rows:
        return ""
    numbers = ", ".join(str(row) for row in rows[:MAX_NAMED_ROWS]) + (
        " …" if len(rows) > MAX_NAMED_ROWS else ""
    )
    subject = f"Row {numbers} has" if len(rows) == 1 else f"{len(rows)} rows ({numbers}) have"
    return f"{subject} more or fewer cells than the first, which has {width}."
