"""Sums worked out step by step, with what the text states beside what they come to."""

from __future__ import annotations

import msgspec

from components.html import Html, element, joined
from components.tool_views.plain import MOST_ROWS
from components.tool_views.view import View
from components.wording import clipped
from core.tools.arithmetic import steps_of

LONGEST_SUM = 200


class Equation(msgspec.Struct):
    """One calculation that the text states; `holds` is null where it was not worked out."""

    formula: str
    stated: str
    worked_out: str = ""
    holds: bool | None = None
    why: str = ""


class Sums(msgspec.Struct):
    """What the calculator gives."""

    equations: list[Equation]


def _draw(given: Sums) -> Html:
    drawn = [_equation(one) for one in given.equations[:MOST_ROWS]]
    more = len(given.equations) - MOST_ROWS
    rest = [element("div", f"and {more:,} more", class_="cp-quiet")] if more > 0 else []
    return joined([*drawn, *rest])


def _equation(one: Equation) -> Html:
    """The sum with the stated value, and the right one where that is another."""
    formula, stated = clipped(one.formula, LONGEST_SUM), clipped(one.stated, LONGEST_SUM)
    if one.holds:
        label, told = "supported", f"{formula} = {stated} ✓"
    elif one.holds is None:
        label, told = "unclear", f"{formula} = {stated} ? not worked out"
    else:
        label, told = "hallucinated", f"{formula} = {stated} ✗"
    steps = steps_of(one.formula) if one.holds is not None else ()
    right = one.worked_out if one.holds is False else ""
    return element(
        "div",
        element("div", told, class_="cp-sum-stated cp-tag", dir="ltr"),
        *([element("ol", *(element("li", step) for step in steps), dir="ltr")] if steps else []),
        *([element("div", f"It comes to {clipped(right, LONGEST_SUM)}.")] if right else []),
        *([element("div", clipped(one.why, LONGEST_SUM), class_="cp-quiet")] if one.why else []),
        class_=f"cp-sum cp-{label}",
    )


SUMS = View(Sums, _draw)
