"""Whether what is stated on one side of an equation is what the other side comes to.

Units decide where both sides have them: 24,000,000 cm is 240 km, and 1 m × 0.6 m × 5 dm is no 3 m³.
Where they are missing, not known or do not fit together only the numbers are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from core.tools.rounding import Stated, agree, agrees, shown, stated_in
from core.tools.sum_numbers import SCALE, SCALES
from core.tools.sum_tree import Node
from core.tools.working_out import PI_IN_SCHOOL, Amount, NoValue, amount_of, value_of


@dataclass(frozen=True)
class Compared:
    """`holds` is None where it cannot be told, and `why` says so.

    `true` is the value worked out, in the unit and way that the value is stated in; `scale` is the
    word that it is said with (“million”), and `factor` what of `true` that word stands for.
    """

    holds: bool | None
    true: Fraction | None = None
    is_percent: bool = False
    why: str = ""
    scale: str = ""
    factor: int = 1

    @property
    def words(self) -> str:
        """The value worked out, for people."""
        if self.true is None:
            return ""
        return f"{shown(self.true / self.factor, self.is_percent)}{self.scale}"


def compare(formula: Node, stated: Node, is_about: bool = False) -> Compared:
    """The formula against the side that states its value, or works it out further."""
    try:
        return _by_units(formula, stated, is_about) or _by_numbers(formula, stated, is_about)
    except NoValue as error:
        return Compared(None, why=str(error))


def in_scale(
    text: str, formula: Node, stated: Node, found: Compared, *, is_about: bool = False
) -> Compared:
    """What was found, where the value is stated with a scale: 30 + 18 = 48 million euros.

    Where the sum itself has no such word its figures may be meant in the same scale. Offsets of
    both sides lie in `text`.
    """
    number = next((node for node in stated.walk() if node.op == "number"), None)
    said = SCALE.search(text, number.start, number.end) if number else None
    if number is None or said is None or found.true is None:
        return found
    factor = SCALES[said[1] or said[2]]
    is_bare = SCALE.search(text, formula.start, formula.end) is None
    if is_bare and found.holds is False and abs(found.true) < factor:
        small = replace(number, value=number.value / factor, step=number.step / factor)
        again = compare(formula, _exchanged(stated, number, small), is_about)
        return replace(again, scale=said.group())
    return replace(found, scale=said.group(), factor=factor)


def _exchanged(node: Node, old: Node, new: Node) -> Node:
    """The side with another number in the place of one of its own."""
    if node is old:
        return new
    return replace(node, parts=tuple(_exchanged(part, old, new) for part in node.parts))


def _by_units(formula: Node, stated: Node, is_about: bool) -> Compared | None:
    """The verdict of the units; None where they have none."""
    left, right = amount_of(formula), amount_of(stated)
    if left is None or right is None or left.dimensions != right.dimensions:
        return _not_told(formula, stated, left, right)
    written = stated_in(stated, is_about)
    unit = _unit_factor(stated)
    if not any(left.dimensions) or unit is None:
        return None
    if written is None:
        holds = left.value == right.value or agree(formula, stated, right.value / _bare(stated))
        return Compared(holds, left.value / unit) if not holds or unit else None
    true = left.value / unit
    if not agrees(true, written) and _is_converted(formula, unit):
        return _numbers(formula, written)
    return Compared(agrees(true, written), true, written.is_percent)


def _bare(node: Node) -> Fraction:
    value = value_of(node)
    if value == 0:
        raise NoValue("it comes to zero")
    return value


def _not_told(
    formula: Node, stated: Node, left: Amount | None, right: Amount | None
) -> Compared | None:
    """Open where a letter may be a unit or an unknown, or two units stand against a bare number."""
    units = [n.measure for side in (formula, stated) for n in side.walk() if n.op == "measured"]
    is_compound = stated.op == "+" and any(n.op == "measured" for n in stated.parts)
    is_letter = (left is None or right is None) and any(u and u.is_ambiguous for u in units)
    if not is_compound and not is_letter:
        return None
    found = _by_numbers(formula, stated, is_about=False)
    return found if found.holds else Compared(None, why="its units do not fit together")


def _unit_factor(node: Node) -> Fraction | None:
    """What the unit of a stated value comes to; of several the first's."""
    return next((n.measure.factor for n in node.walk() if n.measure is not None), None)


def _is_converted(formula: Node, unit: Fraction) -> bool:
    """Whether a bare number in the formula turns its unit into the stated one: minutes / 60."""
    units = {n.measure.factor for n in formula.walk() if n.measure is not None}
    if len(units) != 1:
        return False
    ratio = next(iter(units)) / unit
    return any(n.op == "number" and n.value in (ratio, 1 / ratio) for n in formula.walk())


def _by_numbers(formula: Node, stated: Node, is_about: bool) -> Compared:
    written = stated_in(stated, is_about)
    if written is not None:
        return _numbers(formula, written)
    return Compared(agree(formula, stated), value_of(formula))


def _numbers(formula: Node, written: Stated) -> Compared:
    true = value_of(formula)
    holds = agrees(true, written) or any(agrees(v, w) for v, w in _other_ways(formula, written))
    is_percent = written.is_percent and abs(true) < 100
    return Compared(holds, true, is_percent)


def _other_ways(formula: Node, written: Stated) -> list[tuple[Fraction, Stated]]:
    """What people also mean: π as at school, shares of 100, per cent of what is added to."""
    ways = []
    nodes = formula.walk()
    if any(node.op == "pi" for node in nodes):
        ways += [(value_of(formula, pi), written) for pi in PI_IN_SCHOOL]
    if written.is_percent and any(n.op == "number" and n.value == 100 for n in nodes):
        hundredfold = replace(
            written, value=written.value * 100, step=written.step * 100, is_percent=False
        )
        ways.append((value_of(formula), hundredfold))
    if formula.op in "+-" and formula.parts[1].op == "percent" and not formula.parts[0].is_part:
        share = value_of(formula.parts[1]) * (1 if formula.op == "+" else -1)
        ways.append((value_of(formula.parts[0]) * (1 + share), written))
    return ways


def remainder_holds(formula: Node, quotient: Node, rest: Fraction) -> Compared:
    """“17 / 5 = 3 remainder 2”."""
    if formula.op != "/":
        return Compared(None, why="a remainder is only of a division")
    try:
        number, by = (value_of(part) for part in formula.parts)
        found = value_of(quotient)
        if by == 0:
            raise NoValue("it divides by zero")
    except NoValue as error:
        return Compared(None, why=str(error))
    holds = number == found * by + rest and 0 <= rest < abs(by) and found.denominator == 1
    return Compared(holds, Fraction(number // by))
