"""A sum worked out step by step, as one would on paper: what is innermost comes first."""

from __future__ import annotations

from fractions import Fraction

from core.errors import InputError
from core.tools.formula import formula_of
from core.tools.rounding import shown
from core.tools.sum_tree import Node
from core.tools.working_out import NoValue, value_of

SIGNS = {"+": "+", "-": "−", "*": "×", "/": "÷", "^": "^"}
MOST_STEPS = 20


def steps_of(formula: str) -> tuple[str, ...]:
    """Each step as “3 + 0.5 = 3.5”, in their order; none where one step is all, or none is sure.

    Amounts in units have none: they would have to be brought to one unit first.
    """
    try:
        node = formula_of(formula)
        steps = _steps(node)
    except (InputError, NoValue):
        return ()
    return tuple(steps) if 1 < len(steps) <= MOST_STEPS else ()


def _steps(node: Node) -> list[str]:
    """The steps below a node, then its own.

    Raises:
        NoValue: a part has no value that can be worked out.
    """
    if any(one.op in ("measured", "name") for one in node.walk()):
        raise NoValue("its amounts have units or are not known")
    steps = [step for part in node.parts for step in _steps(part)]
    if node.op in SIGNS:
        left, right = (_written(value_of(part)) for part in node.parts)
        steps.append(f"{left} {SIGNS[node.op]} {right} = {shown(value_of(node))}")
    elif node.op in ("percent", "factorial"):
        sign = "%" if node.op == "percent" else "!"
        steps.append(f"{shown(value_of(node.parts[0]))}{sign} = {shown(value_of(node))}")
    return steps


def _written(value: Fraction) -> str:
    """A value as part of a step; a negative one in brackets."""
    return f"({shown(value)})" if value < 0 else shown(value)
