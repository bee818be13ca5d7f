"""Views of what each audit tool was given and returned, in a form that a person can check.

The texts come from agents or from a trace file, so their lengths are limited.
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

from components.widgets.html import Html, div, element, external_link, html_table, join_html
from components.widgets.wording import clip_text, format_count
from core.schema.events import ToolUse
from core.tools.arithmetic import list_steps

MAX_ROWS = 40
MAX_COLUMNS = 10
MAX_WORDS_CHARS = 400
MAX_SOURCES = 8
MAX_SOURCE_CHARS = 500
MAX_MONTHS = 2
MAX_FORMULA_CHARS = 200
MAX_CODE_LINES = 60
MAX_OUTPUT_CHARS = 2000
WEEKDAYS = ("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")
NUMBER_PATTERN = re.compile(r"\d[\d,]{0,11}", re.ASCII)
CONDITION_LABELS = {True: ("supported", "✓ kept"), False: ("hallucinated", "✗ broken")}
UNDETERMINED_CONDITION = ("unclear", "? cannot be determined")
FINDING_WORDS = {
    "holds": "the evidence says the same",
    "contradicted": "the evidence says otherwise",
    "unsupported": "the evidence does not support it",
    "irrelevant": "it does not answer the question",
    "self_contradictory": "another statement of the response says otherwise",
    "open": "nothing decides it",
}


def _read_object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text.encode(), type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
        return {}


def _value_words(value: object, limit: int = MAX_WORDS_CHARS) -> str:
    if isinstance(value, str):
        return clip_text(value, limit)
    if value is None or value in ([], {}):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    try:
        return clip_text(msgspec.json.encode(value).decode(), limit)
    except RecursionError:
        return "…"


def render_table(head: Sequence[str], rows: Iterable[Sequence[str | Html]]) -> Html:
    """Render a table of at most `MAX_ROWS` rows, with a note on how many more there are."""
    all_rows = list(rows)
    shown = html_table(head, all_rows[:MAX_ROWS], "cp-tool-table")
    return join_html([div("cp-tool-scroll", shown), *_more_note(len(all_rows), MAX_ROWS)])


def _more_note(count: int, most: int) -> list[Html]:
    return [div("cp-quiet", f"and {count - most:,} more")] if count > most else []


def _pairs_table(values: Mapping[str, Any]) -> Html:
    """Render names and values in order; nothing if there are none."""
    rows = [(clip_text(name, 60), _value_html(value)) for name, value in values.items()]
    return render_table(("", ""), rows) if rows else Html("")


def _value_html(value: object) -> str | Html:
    """Render a list of objects as a table of its own, anything else as text."""
    if (
        not isinstance(value, list)
        or not value
        or not all(isinstance(item, dict) for item in value)
    ):
        return _value_words(value)
    names = list(dict.fromkeys(name for item in value[:MAX_ROWS] for name in item))[:MAX_COLUMNS]
    if not names:
        return _value_words(value)
    rows = ([_value_words(item.get(name)) for name in names] for item in value)
    return render_table([clip_text(name, 40) for name in names], rows)


def format_input(given: str) -> str:
    """Return a tool's input on one line: “text: …, formula: …”."""
    values = _read_object(given).items()
    pairs = (
        f"{clip_text(name, 40)}: {_value_words(value, 160)}" for name, value in values if value
    )
    return clip_text(", ".join(pairs), MAX_WORDS_CHARS)


class _ToolSource(msgspec.Struct):
    title: str = ""
    address: str = ""
    text: str = ""


class _SearchOutput(msgspec.Struct):
    """Output of the search tool beside its words; `above` counts sources already shown above."""

    sources: list[_ToolSource]
    above: int = 0


class _MatchOutput(msgspec.Struct):
    finding: str
    by: str = ""
    sources: list[_ToolSource] = []
    above: int = 0


def _search_view(output: _SearchOutput) -> Html:
    above = f"{format_count(output.above, 'place')} of it shown above."
    line = [div("cp-quiet", above)] if output.above > 0 else []
    return join_html([*line, _sources_html(output.sources)])


def _match_view(output: _MatchOutput) -> Html:
    words = FINDING_WORDS.get(output.finding, clip_text(output.finding, 60))
    by = f" ({clip_text(output.by, 60)})" if output.by else ""
    above = f" with the {format_count(output.above, 'place')} above" if output.above > 0 else ""
    return join_html(
        [element("div", f"Compared{by}{above}: {words}."), _sources_html(output.sources)]
    )


def drop_repeated_sources(uses: Sequence[ToolUse]) -> tuple[list[ToolUse], list[str]]:
    """Return (the calls without sources that an earlier one shows, texts of all shown sources)."""
    shown: list[str] = []
    kept_uses = []
    for use in uses:
        fields = _read_object(use.gave) if use.tool in ("search", "match") else {}
        value = fields.get("sources")
        sources = value if isinstance(value, list) else []
        new = [source for source in sources if not is_already_shown(_source_text(source), shown)]
        shown += [_source_text(source) for source in new[:MAX_SOURCES]]
        above = len(sources) - len(new)
        output = json.dumps(fields | {"sources": new, "above": above}) if above else use.gave
        kept_uses.append(replace(use, gave=output))
    return kept_uses, shown


def is_already_shown(text: str, shown: Sequence[str]) -> bool:
    """Return True if the text, as it would be clipped, is part of one already shown."""
    words = clip_text(text, MAX_SOURCE_CHARS).rstrip("…")
    return bool(words) and any(words in other for other in shown)


def _source_text(source: object) -> str:
    text = source.get("text") if isinstance(source, dict) else None
    return clip_text(text, MAX_SOURCE_CHARS) if isinstance(text, str) else ""


def _sources_html(sources: list[_ToolSource]) -> Html:
    drawn = []
    for source in sources[:MAX_SOURCES]:
        title, text = clip_text(source.title, 120), clip_text(source.text, MAX_SOURCE_CHARS)
        parts: list[str | Html] = [element("strong", title)]
        if address := source.address:
            shown = external_link(address) if len(address) <= 300 else clip_text(address, 120)
            parts += [" ", element("span", shown, class_="cp-quiet")]
        drawn.append(div("cp-quote", *parts, element("div", text, dir="auto"), dir="auto"))
    return join_html([*drawn, *_more_note(len(sources), MAX_SOURCES)])


class _CalendarDay(msgspec.Struct):
    date: date
    weekday: str = ""


class _CalendarOutput(msgspec.Struct):
    """Output of the calendar tool; `holds` is null if the text states no date."""

    dates: list[_CalendarDay]
    worked_out: str = ""
    said: str = ""
    days_between: int | None = None
    holds: bool | None = None


def _calendar_view(output: _CalendarOutput) -> Html:
    parts = []
    if output.days_between is not None and len(output.dates) > 1:
        first, second = map(_date_words, output.dates[:2])
        length = element("strong", f"{output.days_between:,} days")
        parts.append(element("div", f"{first} → {second}: ", length))
    sign = {True: " ✓", False: " ✗", None: ""}[output.holds]
    rows = {
        "The answer says": output.said + sign if output.said else "",
        "Worked out": output.worked_out,
    }
    days = [day.date for day in output.dates]
    months = list(dict.fromkeys((day.year, day.month) for day in days))[:MAX_MONTHS]
    calendars = [_month_html(year, month, days) for year, month in months]
    filled_rows = {name: words for name, words in rows.items() if words}
    return join_html([*parts, _pairs_table(filled_rows), div("cp-months", *calendars)])


def _date_words(day: _CalendarDay) -> str:
    weekday = f", {clip_text(day.weekday, 20)}" if day.weekday else ""
    return f"{day.date.day} {month_name[day.date.month]} {day.date.year}{weekday}"


def _month_html(year: int, month: int, days: list[date]) -> Html:
    """Render a month by weeks from Monday with `days` marked; day 0 is of another month."""

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


class _StatedEquation(msgspec.Struct):
    """A calculation that the text states; `holds` is null if it was not worked out."""

    formula: str
    stated: str
    worked_out: str = ""
    holds: bool | None = None
    why: str = ""


class _CalculatorOutput(msgspec.Struct):
    equations: list[_StatedEquation]


def _calculator_view(output: _CalculatorOutput) -> Html:
    equations = map(_equation_html, output.equations[:MAX_ROWS])
    return join_html([*equations, *_more_note(len(output.equations), MAX_ROWS)])


def _equation_html(equation: _StatedEquation) -> Html:
    formula, stated = (
        clip_text(equation.formula, MAX_FORMULA_CHARS),
        clip_text(equation.stated, MAX_FORMULA_CHARS),
    )
    if equation.holds:
        label, words = "supported", f"{formula} = {stated} ✓"
    elif equation.holds is None:
        label, words = "unclear", f"{formula} = {stated} ? not worked out"
    else:
        label, words = "hallucinated", f"{formula} = {stated} ✗"
    steps = list_steps(equation.formula) if equation.holds is not None else ()
    parts = [div("cp-sum-stated cp-tag", words, dir="ltr")]
    if steps:
        parts.append(element("ol", *(element("li", step) for step in steps), dir="ltr"))
    if equation.holds is False and equation.worked_out:
        parts.append(
            element("div", f"It comes to {clip_text(equation.worked_out, MAX_FORMULA_CHARS)}.")
        )
    if equation.why:
        parts.append(div("cp-quiet", clip_text(equation.why, MAX_FORMULA_CHARS)))
    return div(f"cp-sum cp-{label}", *parts)


class _CodeOutput(msgspec.Struct):
    """Output of the code tool; `error_line` counts the lines of `code` from 1."""

    checks: int
    held: int
    code: str = ""
    output: str = ""
    error: str = ""
    error_line: int | None = None


def _code_view(output: _CodeOutput) -> Html:
    label = "hallucinated" if output.error or output.held < output.checks else "supported"
    summary = f"{output.held} of {output.checks} checks passed"
    parts = [div(f"cp-{label}", element("span", summary, class_="cp-tag"))]
    if output.code:
        parts.append(_code_listing(output.code, output.error_line))
    if output.error:
        where = f"Error in line {output.error_line}" if output.error_line else "Error"
        parts += [div("cp-named", where), _output_block(output.error)]
    if output.output:
        parts += [div("cp-named", "Printed"), _output_block(output.output)]
    return join_html(parts)


def _code_listing(code: str, error_line: int | None) -> Html:
    lines = code.splitlines()
    middle = error_line or 1
    first = max(0, min(middle - MAX_CODE_LINES // 2, len(lines) - MAX_CODE_LINES))
    rows = []
    for number, line in enumerate(lines[first : first + MAX_CODE_LINES], start=first + 1):
        wrong = " cp-code-wrong" if number == error_line else ""
        line_number = element("span", str(number), class_="cp-code-number")
        rows.append(div(f"cp-code-line{wrong}", line_number, line[:500]))
    rest = len(lines) - len(rows)
    more = [div("cp-quiet", f"{rest} more lines are not shown")] if rest else []
    return join_html([div("cp-code", *rows, role="region", tabindex="0"), *more])


def _output_block(text: str) -> Html:
    cut = text if len(text) <= MAX_OUTPUT_CHARS else f"… {text[-MAX_OUTPUT_CHARS:]}"
    return element("pre", cut, class_="cp-code")


class _CheckedCondition(msgspec.Struct):
    """One condition; `holds` is null if it cannot be determined."""

    asked: str
    found: str
    holds: bool | None
    kind: str = ""


class _ConditionsOutput(msgspec.Struct):
    conditions: list[_CheckedCondition]


def _conditions_view(output: _ConditionsOutput) -> Html:
    return join_html(map(_condition_html, output.conditions[:MAX_ROWS]))


def _condition_html(condition: _CheckedCondition) -> Html:
    label, sign = (
        UNDETERMINED_CONDITION if condition.holds is None else CONDITION_LABELS[condition.holds]
    )
    bar = _length_bar(condition) if condition.kind == "length" else ""
    asked, found = (
        f"asked: {clip_text(condition.asked, 120)}",
        f"found: {clip_text(condition.found, 120)}",
    )
    spans = (element("span", sign, class_="cp-tag"), element("span", asked), element("span", found))
    return div(f"cp-condition cp-{label}", *spans, bar, dir="auto")


def _length_bar(condition: _CheckedCondition) -> str | Html:
    """Render the counted length as a bar, with a band for the length asked for."""
    asked, found = (
        [int(figure.replace(",", "")) for figure in NUMBER_PATTERN.findall(text)[:most]]
        for text, most in ((condition.asked, 2), (condition.found, 1))
    )
    if not asked or not found:
        return ""
    full_width = 1.1 * max(*asked, *found, 1)
    left, right = (100 * bound / full_width for bound in (min(asked), max(asked)))
    band = f"left: {left:.1f}%; width: max(2px, {right - left:.1f}%)"
    return div(
        "cp-length",
        div("cp-length-counted", style=f"width: {100 * found[0] / full_width:.1f}%"),
        div("cp-length-asked", style=band),
        role="img",
        aria_label=clip_text(f"{condition.found} where {condition.asked} was asked for", 200),
    )


class _TranslationOutput(msgspec.Struct):
    text: str
    claimed: str
    back: str


def _translation_view(output: _TranslationOutput) -> Html:
    words = {"Text": output.text, "Claimed translation": output.claimed, "Put back": output.back}
    return _pairs_table(words)


# Built at import: two threads must not be the first to convert the same class.
TOOL_VIEWS: dict[str, tuple[msgspec.json.Decoder[Any], Callable[[Any], Html]]] = {
    "calculator": (msgspec.json.Decoder(_CalculatorOutput), _calculator_view),
    "calendar": (msgspec.json.Decoder(_CalendarOutput), _calendar_view),
    "code": (msgspec.json.Decoder(_CodeOutput), _code_view),
    "conditions": (msgspec.json.Decoder(_ConditionsOutput), _conditions_view),
    "match": (msgspec.json.Decoder(_MatchOutput), _match_view),
    "search": (msgspec.json.Decoder(_SearchOutput), _search_view),
    "translate": (msgspec.json.Decoder(_TranslationOutput), _translation_view),
}


def render_own_view(tool: str, gave: str) -> Html | None:
    """Render a tool's output in its own view; None if it has no view or another shape."""
    if tool in TOOL_VIEWS:
        decoder, draw = TOOL_VIEWS[tool]
        with contextlib.suppress(msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            return draw(decoder.decode(gave.encode()))
    return None


def render_tool_output(use: ToolUse) -> Html:
    """Render a tool's output in its own view, or as a plain table if it has none."""
    view = render_own_view(use.tool, use.gave)
    return _pairs_table(_read_object(use.gave)) if view is None else view
