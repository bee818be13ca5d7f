"""What the question asked for beside what the answer has: a line each, lengths with a bar."""

from __future__ import annotations

import re

import msgspec

from components.html import Html, element, joined
from components.tool_views.plain import MOST_ROWS
from components.tool_views.view import View
from components.wording import clipped

HOLDS = {True: ("supported", "✓ kept"), False: ("hallucinated", "✗ broken")}
OPEN = ("unclear", "? cannot be told")
FIGURE = re.compile(r"\d[\d,]{0,11}", re.ASCII)


class Condition(msgspec.Struct):
    """One condition; `holds` is null where it cannot be told."""

    asked: str
    found: str
    holds: bool | None
    kind: str = ""


class Conditions(msgspec.Struct):
    """What the conditions tool gives."""

    conditions: list[Condition]


def _draw(given: Conditions) -> Html:
    return joined(map(_line, given.conditions[:MOST_ROWS]))


def _line(one: Condition) -> Html:
    label, sign = OPEN if one.holds is None else HOLDS[one.holds]
    bar = _bar(one) if one.kind == "length" else None
    return element(
        "div",
        element("span", sign, class_="cp-tag"),
        element("span", f"asked: {clipped(one.asked, 120)}"),
        element("span", f"found: {clipped(one.found, 120)}"),
        *([bar] if bar else []),
        class_=f"cp-condition cp-{label}",
        dir="auto",
    )


def _bar(one: Condition) -> Html | None:
    """What was counted, as a share of the longest figure, with a band for what was asked."""
    asked = [_figure(found) for found in FIGURE.findall(one.asked)[:2]]
    counted = [_figure(found) for found in FIGURE.findall(one.found)[:1]]
    if not asked or not counted:
        return None
    whole = 1.1 * max(*asked, *counted, 1)
    left, right = (100 * bound / whole for bound in (min(asked), max(asked)))
    return element(
        "div",
        element("div", class_="cp-length-counted", style=f"width: {100 * counted[0] / whole:.1f}%"),
        element(
            "div",
            class_="cp-length-asked",
            style=f"left: {left:.1f}%; width: max(2px, {right - left:.1f}%)",
        ),
        class_="cp-length",
        role="img",
        aria_label=clipped(f"{one.found} where {one.asked} was asked for", 200),
    )


def _figure(found: str) -> int:
    return int(found.replace(",", ""))


CONDITIONS = View(Conditions, _draw)
