"""Code that was run: checks passed, the line that failed, what it printed; text, never run here."""

from __future__ import annotations

import msgspec

from components.html import Html, element, joined
from components.tool_views.view import View

MOST_CODE_LINES = 60
LONGEST_OUTPUT = 2000


class Code(msgspec.Struct):
    """What the code tool gives; `error_line` counts the lines of `code` from 1."""

    checks: int
    held: int
    code: str = ""
    output: str = ""
    error: str = ""
    error_line: int | None = None


def _draw(given: Code) -> Html:
    label = "hallucinated" if given.error or given.held < given.checks else "supported"
    told = f"{given.held} of {given.checks} checks passed"
    parts: list[str | Html] = [
        element("div", element("span", told, class_="cp-tag"), class_=f"cp-{label}")
    ]
    if given.code:
        parts.append(_listing(given.code, given.error_line))
    if given.error:
        where = f"Error in line {given.error_line}" if given.error_line else "Error"
        parts += [element("div", where, class_="cp-named"), _block(given.error)]
    if given.output:
        parts += [element("div", "Printed", class_="cp-named"), _block(given.output)]
    return joined(parts)


def _listing(code: str, error_line: int | None) -> Html:
    """The lines around the one that failed, else the first ones, with their numbers."""
    lines = code.splitlines()
    middle = error_line or 1
    first = max(0, min(middle - MOST_CODE_LINES // 2, len(lines) - MOST_CODE_LINES))
    shown = enumerate(lines[first : first + MOST_CODE_LINES], start=first + 1)
    drawn = [
        element(
            "div",
            element("span", str(number), class_="cp-code-number"),
            line[:500],
            class_="cp-code-line cp-code-wrong" if number == error_line else "cp-code-line",
        )
        for number, line in shown
    ]
    rest = len(lines) - len(drawn)
    more = [element("div", f"{rest} more lines are not shown", class_="cp-quiet")] if rest else []
    return joined([element("div", *drawn, class_="cp-code", role="region", tabindex="0"), *more])


def _block(text: str) -> Html:
    cut = text if len(text) <= LONGEST_OUTPUT else f"… {text[-LONGEST_OUTPUT:]}"
    return element("pre", cut, class_="cp-code")


CODE = View(Code, _draw)
