"""What each tool of an audit was given and gave, drawn as a person would check it.

The texts come from agents, or from a trace file: they are bounded before they are drawn.
"""

from __future__ import annotations

import contextlib
import json
import re
from calendar import Calendar, month_name
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import msgspec

from components.widgets.html import Html, div, element, html_table, joined, outward
from components.widgets.wording import clipped, counted
from core.schema.events import ToolUse
from core.tools.arithmetic import steps_of

MOST_ROWS = 40
MOST_COLUMNS = 10
LONGEST = 400


def _read_object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text.encode(), type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return {}


def _value_words(value: object, limit: int = LONGEST) -> str:
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
    made = html_table(head, own[:MOST_ROWS], "cp-tool-table")
    return joined([div("cp-tool-scroll", made), *_and_more(len(own), MOST_ROWS)])


def _and_more(count: int, most: int) -> list[Html]:
    return [div("cp-quiet", f"and {count - most:,} more")] if count > most else []


def _pairs_table(values: Mapping[str, Any]) -> Html:
    """Names and values, in their order; nothing for none."""
    rows = [(clipped(name, 60), _value_html(value)) for name, value in values.items()]
    return table(("", ""), rows) if rows else Html("")


def _value_html(value: object) -> str | Html:
    """A list of objects as a table of its own, anything else as text."""
    if not isinstance(value, list) or not value or not all(isinstance(one, dict) for one in value):
        return _value_words(value)
    names = list(dict.fromkeys(name for one in value[:MOST_ROWS] for name in one))[:MOST_COLUMNS]
    if not names:
        return _value_words(value)
    rows = ([_value_words(one.get(name)) for name in names] for one in value)
    return table([clipped(name, 40) for name in names], rows)


def input_words(given: str) -> str:
    """A tool's input on one line: “text: …, formula: …”."""
    values = _read_object(given).items()
    told = (f"{clipped(name, 40)}: {_value_words(value, 160)}" for name, value in values if value)
    return clipped(", ".join(told), LONGEST)


MOST_SOURCES = 8
LONGEST_TEXT = 500
FINDING_WORDS = {
    "holds": "the evidence says the same",
    "contradicted": "the evidence says otherwise",
    "unsupported": "the evidence does not support it",
    "irrelevant": "it does not answer the question",
    "self_contradictory": "another statement of the response says otherwise",
    "open": "nothing decides it",
}


class _Source(msgspec.Struct):
    title: str = ""
    address: str = ""
    text: str = ""


class _Search(msgspec.Struct):
    """What the search tool gives beside its words; `above` tells how many stand above already."""

    sources: list[_Source]
    above: int = 0


class _Match(msgspec.Struct):
    finding: str
    by: str = ""
    sources: list[_Source] = []
    above: int = 0


def _search(given: _Search) -> Html:
    above = f"{counted(given.above, 'place')} of it shown above."
    line = [div("cp-quiet", above)] if given.above > 0 else []
    return joined([*line, _sources_html(given.sources)])


def _match(given: _Match) -> Html:
    words = FINDING_WORDS.get(given.finding, clipped(given.finding, 60))
    by = f" ({clipped(given.by, 60)})" if given.by else ""
    above = f" with the {counted(given.above, 'place')} above" if given.above > 0 else ""
    return joined([element("div", f"Compared{by}{above}: {words}."), _sources_html(given.sources)])


def shown_once(uses: Sequence[ToolUse]) -> tuple[list[ToolUse], list[str]]:
    """The uses without sources that an earlier one shows; all words of sources as shown."""
    shown: list[str] = []
    kept = []
    for use in uses:
        fields = _read_object(use.gave) if use.tool in ("search", "match") else {}
        found = fields.get("sources")
        sources = found if isinstance(found, list) else []
        new = [source for source in sources if not is_shown(_words_of(source), shown)]
        shown += [_words_of(source) for source in new[:MOST_SOURCES]]
        above = len(sources) - len(new)
        told = json.dumps(fields | {"sources": new, "above": above}) if above else use.gave
        kept.append(replace(use, gave=told))
    return kept, shown


def is_shown(text: str, shown: Sequence[str]) -> bool:
    """True for words that stand among those already, as far as they would be shown."""
    words = clipped(text, LONGEST_TEXT).rstrip("…")
    return bool(words) and any(words in other for other in shown)


def _words_of(source: object) -> str:
    text = source.get("text") if isinstance(source, dict) else None
    return clipped(text, LONGEST_TEXT) if isinstance(text, str) else ""


def _sources_html(sources: list[_Source]) -> Html:
    drawn = []
    for source in sources[:MOST_SOURCES]:
        title, text = clipped(source.title, 120), clipped(source.text, LONGEST_TEXT)
        parts: list[str | Html] = [element("strong", title)]
        if address := source.address:
            shown = outward(address) if len(address) <= 300 else clipped(address, 120)
            parts += [" ", element("span", shown, class_="cp-quiet")]
        drawn.append(div("cp-quote", *parts, element("div", text, dir="auto"), dir="auto"))
    return joined([*drawn, *_and_more(len(sources), MOST_SOURCES)])


WEEKDAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
MOST_MONTHS = 2


class _Day(msgspec.Struct):
    date: date
    weekday: str = ""


class _Dates(msgspec.Struct):
    """What the calendar tool gives; `holds` is null where the text says nothing of it."""

    dates: list[_Day]
    worked_out: str = ""
    said: str = ""
    days_between: int | None = None
    holds: bool | None = None


def _dates(given: _Dates) -> Html:
    parts = []
    if given.days_between is not None and len(given.dates) > 1:
        first, second = map(_told, given.dates[:2])
        length = element("strong", f"{given.days_between:,} days")
        parts.append(element("div", f"{first} → {second}: ", length))
    sign = {True: " ✓", False: " ✗", None: ""}[given.holds]
    rows = {
        "The answer says": given.said + sign if given.said else "",
        "Worked out": given.worked_out,
    }
    days = [day.date for day in given.dates]
    months = list(dict.fromkeys((day.year, day.month) for day in days))[:MOST_MONTHS]
    pictures = [_month(year, month, days) for year, month in months]
    known = {name: words for name, words in rows.items() if words}
    return joined([*parts, _pairs_table(known), div("cp-months", *pictures)])


def _told(day: _Day) -> str:
    weekday = f", {clipped(day.weekday, 20)}" if day.weekday else ""
    return f"{day.date.day} {month_name[day.date.month]} {day.date.year}{weekday}"


def _month(year: int, month: int, days: list[date]) -> Html:
    """A month by weeks from Monday, with the days in question marked; 0 is of another month."""

    def cell(number: int) -> Html:
        if number and date(year, month, number) in days:
            return element("td", element("strong", str(number)), class_="cp-month-day")
        return element("td", str(number) if number else "")

    title = element("tr", element("th", f"{month_name[month]} {year}", colspan="7"))
    names = element("tr", *(element("th", name, scope="col") for name in WEEKDAYS))
    weeks = Calendar().monthdayscalendar(year, month)
    rows = (element("tr", *map(cell, week)) for week in weeks)
    return element(
        "table", element("thead", title, names), element("tbody", *rows), class_="cp-month"
    )


LONGEST_SUM = 200


class _Equation(msgspec.Struct):
    """One calculation that the text states; `holds` is null where it was not worked out."""

    formula: str
    stated: str
    worked_out: str = ""
    holds: bool | None = None
    why: str = ""


class _Sums(msgspec.Struct):
    equations: list[_Equation]


def _sums(given: _Sums) -> Html:
    drawn = map(_equation, given.equations[:MOST_ROWS])
    return joined([*drawn, *_and_more(len(given.equations), MOST_ROWS)])


def _equation(one: _Equation) -> Html:
    formula, stated = clipped(one.formula, LONGEST_SUM), clipped(one.stated, LONGEST_SUM)
    if one.holds:
        label, told = "supported", f"{formula} = {stated} ✓"
    elif one.holds is None:
        label, told = "unclear", f"{formula} = {stated} ? not worked out"
    else:
        label, told = "hallucinated", f"{formula} = {stated} ✗"
    steps = steps_of(one.formula) if one.holds is not None else ()
    parts = [div("cp-sum-stated cp-tag", told, dir="ltr")]
    if steps:
        parts.append(element("ol", *(element("li", step) for step in steps), dir="ltr"))
    if one.holds is False and one.worked_out:
        parts.append(element("div", f"It comes to {clipped(one.worked_out, LONGEST_SUM)}."))
    if one.why:
        parts.append(div("cp-quiet", clipped(one.why, LONGEST_SUM)))
    return div(f"cp-sum cp-{label}", *parts)


MOST_CODE_LINES = 60
LONGEST_OUTPUT = 2000


class _Code(msgspec.Struct):
    """What the code tool gives; `error_line` counts the lines of `code` from 1."""

    checks: int
    held: int
    code: str = ""
    output: str = ""
    error: str = ""
    error_line: int | None = None


def _code(given: _Code) -> Html:
    label = "hallucinated" if given.error or given.held < given.checks else "supported"
    told = f"{given.held} of {given.checks} checks passed"
    parts = [div(f"cp-{label}", element("span", told, class_="cp-tag"))]
    if given.code:
        parts.append(_listing(given.code, given.error_line))
    if given.error:
        where = f"Error in line {given.error_line}" if given.error_line else "Error"
        parts += [div("cp-named", where), _block(given.error)]
    if given.output:
        parts += [div("cp-named", "Printed"), _block(given.output)]
    return joined(parts)


def _listing(code: str, error_line: int | None) -> Html:
    lines = code.splitlines()
    middle = error_line or 1
    first = max(0, min(middle - MOST_CODE_LINES // 2, len(lines) - MOST_CODE_LINES))
    drawn = []
    for number, line in enumerate(lines[first : first + MOST_CODE_LINES], start=first + 1):
        wrong = " cp-code-wrong" if number == error_line else ""
        at = element("span", str(number), class_="cp-code-number")
        drawn.append(div(f"cp-code-line{wrong}", at, line[:500]))
    rest = len(lines) - len(drawn)
    more = [div("cp-quiet", f"{rest} more lines are not shown")] if rest else []
    return joined([div("cp-code", *drawn, role="region", tabindex="0"), *more])


def _block(text: str) -> Html:
    cut = text if len(text) <= LONGEST_OUTPUT else f"… {text[-LONGEST_OUTPUT:]}"
    return element("pre", cut, class_="cp-code")


HOLDS = {True: ("supported", "✓ kept"), False: ("hallucinated", "✗ broken")}
OPEN = ("unclear", "? cannot be determined")
FIGURE = re.compile(r"\d[\d,]{0,11}", re.ASCII)


class _Condition(msgspec.Struct):
    """One condition; `holds` is null where it cannot be told."""

    asked: str
    found: str
    holds: bool | None
    kind: str = ""


class _Conditions(msgspec.Struct):
    conditions: list[_Condition]


def _conditions(given: _Conditions) -> Html:
    return joined(map(_line, given.conditions[:MOST_ROWS]))


def _line(one: _Condition) -> Html:
    label, sign = OPEN if one.holds is None else HOLDS[one.holds]
    bar = _bar(one) if one.kind == "length" else ""
    asked, found = f"asked: {clipped(one.asked, 120)}", f"found: {clipped(one.found, 120)}"
    spans = (element("span", sign, class_="cp-tag"), element("span", asked), element("span", found))
    return div(f"cp-condition cp-{label}", *spans, bar, dir="auto")


def _bar(one: _Condition) -> str | Html:
    """What was counted, as a share of the longest figure, with a band for what was asked."""
    asked, counted = (
        [int(figure.replace(",", "")) for figure in FIGURE.findall(text)[:most]]
        for text, most in ((one.asked, 2), (one.found, 1))
    )
    if not asked or not counted:
        return ""
    whole = 1.1 * max(*asked, *counted, 1)
    left, right = (100 * bound / whole for bound in (min(asked), max(asked)))
    band = f"left: {left:.1f}%; width: max(2px, {right - left:.1f}%)"
    return div(
        "cp-length",
        div("cp-length-counted", style=f"width: {100 * counted[0] / whole:.1f}%"),
        div("cp-length-asked", style=band),
        role="img",
        aria_label=clipped(f"{one.found} where {one.asked} was asked for", 200),
    )


class _Translation(msgspec.Struct):
    text: str
    claimed: str
    back: str


def _translation(given: _Translation) -> Html:
    words = {"Text": given.text, "Claimed translation": given.claimed, "Put back": given.back}
    return _pairs_table(words)


# Made while modules are imported: two threads must not be the first to use a shape.
VIEWS: dict[str, tuple[msgspec.json.Decoder[Any], Callable[[Any], Html]]] = {
    "calculator": (msgspec.json.Decoder(_Sums), _sums),
    "calendar": (msgspec.json.Decoder(_Dates), _dates),
    "code": (msgspec.json.Decoder(_Code), _code),
    "conditions": (msgspec.json.Decoder(_Conditions), _conditions),
    "match": (msgspec.json.Decoder(_Match), _match),
    "search": (msgspec.json.Decoder(_Search), _search),
    "translate": (msgspec.json.Decoder(_Translation), _translation),
}


def own_view(tool: str, gave: str) -> Html | None:
    """What a tool gave, as that tool draws it; None where it has no view or another shape."""
    if tool in VIEWS:
        decoder, draw = VIEWS[tool]
        with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            return draw(decoder.decode(gave.encode()))
    return None


def tool_view(use: ToolUse) -> Html:
    """The tool's own view of what it gave; a plain table where it has none."""
    drawn = own_view(use.tool, use.gave)
    return _pairs_table(_read_object(use.gave)) if drawn is None else drawn
