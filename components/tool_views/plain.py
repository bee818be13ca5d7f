"""What tools were given and gave, as a plain table: for tools without a view of their own.

The texts come from agents, or from a trace file: they are bounded before they are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from components.html import Html, element, joined
from components.wording import clipped

MOST_ROWS = 40
MOST_COLUMNS = 10
LONGEST = 400


def read_object(text: str) -> dict[str, Any]:
    """A JSON object; empty where the text is none."""
    try:
        return msgspec.json.decode(text.encode(), type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return {}


def value_words(value: object, limit: int = LONGEST) -> str:
    """Any JSON value as a line of text."""
    if isinstance(value, str):
        return clipped(value, limit)
    if value is None or value in ([], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    try:
        return clipped(msgspec.json.encode(value).decode(), limit)
    except RecursionError:
        return "…"


def table(head: Sequence[str], rows: Iterable[Sequence[str | Html]]) -> Html:
    """A table of at most `MOST_ROWS` rows; how many more there are is said below it."""
    own = list(rows)
    lines = [
        element("tr", *(element("td", cell, dir="auto") for cell in row)) for row in own[:MOST_ROWS]
    ]
    names = [element("th", name, scope="col") for name in head]
    top = [element("thead", element("tr", *names))] if any(head) else []
    made = element("table", *top, element("tbody", *lines), class_="cp-tool-table")
    more = len(own) - MOST_ROWS
    rest = [element("div", f"and {more:,} more", class_="cp-quiet")] if more > 0 else []
    return joined([element("div", made, class_="cp-tool-scroll"), *rest])


def pairs_table(values: Mapping[str, Any]) -> Html:
    """Names and values, in their order; nothing for none."""
    if not values:
        return Html("")
    rows = ((clipped(name, 60), value_html(value)) for name, value in values.items())
    return table(("", ""), rows)


def value_html(value: object) -> str | Html:
    """A list of objects as a table of its own, anything else as text."""
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        return value_words(value)
    names = list(dict.fromkeys(name for one in value[:MOST_ROWS] for name in one))[:MOST_COLUMNS]
    if not names:
        return value_words(value)
    rows = ([value_words(one.get(name)) for name in names] for one in value)
    return table([clipped(name, 40) for name in names], rows)


def input_words(given: str) -> str:
    """A tool's input on one line: “text: …, formula: …”."""
    values = read_object(given).items()
    told = (f"{clipped(name, 40)}: {value_words(value, 160)}" for name, value in values if value)
    return clipped(", ".join(told), LONGEST)
