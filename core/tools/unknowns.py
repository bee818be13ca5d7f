"""Equations with unknowns: whether two sides are one and the same, and what solves them.

SymPy works on a polynomial that is built step by step from our own tree; text never reaches it.
Degree, terms and sizes are bounded before. Source: HaluAgent 2.2 (calculator, SymPy).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from core.tools.sum_tree import Node
from core.tools.working_out import NoValue, is_exact, value_of

MOST_DEGREE = 6
MOST_NAMES = 3
MOST_STEPS = 80
MOST_BITS = 512  # of a coefficient
ROOT_DIGITS = 40


@dataclass(frozen=True)
class Solved:
    """What an equation comes to.

    `same`: both sides are the same whatever the unknowns are. `never`: they never are, or only
    where every unknown is zero, which is how a wrong simplification reads. `roots`: the one
    unknown has these real values. `open`: more unknowns than can be told from it.
    """

    kind: Literal["same", "never", "roots", "open"]
    name: str = ""
    roots: tuple[Fraction, ...] = ()


def solve(left: Node, right: Node) -> Solved:
    """What follows from the two sides being equal.

    Raises:
        NoValue: it is too large, or no polynomial equation with fractions.
    """
    names = sorted(left.names | right.names)
    if not 0 < len(names) <= MOST_NAMES or len(left.walk()) + len(right.walk()) > MOST_STEPS:
        raise NoValue("an equation of that size is not solved here")
    if _degree(left) > MOST_DEGREE or _degree(right) > MOST_DEGREE:
        raise NoValue("an equation of that degree is not solved here")
    import sympy

    unknowns = {name: sympy.Symbol(name) for name in names}
    difference = _expression(left, unknowns) - _expression(right, unknowns)
    top = sympy.fraction(sympy.together(difference))[0]
    polynomial = sympy.Poly(top, *unknowns.values(), domain="QQ")
    if any(max(c.p.bit_length(), c.q.bit_length()) > MOST_BITS for c in polynomial.coeffs()):
        raise NoValue("an equation of that size is not solved here")
    if polynomial.is_zero:
        return Solved("same")
    terms = polynomial.monoms()
    is_at_zero = len(terms) == 1
    if is_at_zero and left.names and right.names:
        return Solved("never")
    if polynomial.is_ground:
        return Solved("never")
    if len(polynomial.free_symbols) > 1:
        return Solved("open")
    name = str(next(iter(polynomial.free_symbols)))
    return Solved("roots", name, _roots(polynomial, left, right, name))


def _roots(polynomial: Any, left: Node, right: Node, name: str) -> tuple[Fraction, ...]:
    """The real roots, in order, less those that would divide by zero."""
    one = polynomial.as_expr().as_poly(polynomial.free_symbols.pop())
    coefficients = [Fraction(int(c.p), int(c.q)) for c in one.all_coeffs()]
    if len(coefficients) == 2:
        found = [-coefficients[1] / coefficients[0]]
    else:
        parts = [root.as_real_imag() for root in _complex_roots(one)]
        found = [_fraction(real) for real, imaginary in parts if abs(imaginary) < 10**-20]
    return tuple(sorted(root for root in set(found) if _is_defined((left, right), name, root)))


def _complex_roots(polynomial: Any) -> Sequence[Any]:
    """All roots, to 40 digits; those at zero, which are hard to come near, are found first.

    Raises:
        NoValue: they cannot be told apart.
    """
    from mpmath.libmp import NoConvergence

    (zeros,), rest = polynomial.terms_gcd()
    try:
        found = list(rest.nroots(n=ROOT_DIGITS, maxsteps=200))
    except NoConvergence as error:
        raise NoValue("an equation with such roots is not solved here") from error
    return found + [polynomial.domain.to_sympy(polynomial.domain.zero)] * bool(zeros)


def _fraction(root: Any) -> Fraction:
    """A root as the nearest fraction of a small denominator, where it surely is that."""
    exact = Fraction(str(root))
    near = exact.limit_denominator(10**9)
    return near if abs(exact - near) < Fraction(1, 10**25) else exact


def _is_defined(sides: tuple[Node, Node], name: str, root: Fraction) -> bool:
    try:
        for side in sides:
            value_of(with_value(side, name, root))
    except NoValue as error:
        return "zero" not in str(error)
    return True


def with_value(node: Node, name: str, value: Fraction) -> Node:
    """The tree with a value in an unknown's place."""
    if node.op == "name" and node.name == name:
        return Node("number", node.start, node.end, value=value)
    parts = tuple(with_value(part, name, value) for part in node.parts)
    return Node(
        node.op, node.start, node.end, parts, node.name, node.value, node.step, node.is_whole,
        node.is_part, node.measure,
    )  # fmt: skip


def _degree(node: Node) -> int:
    """An upper bound of the degree, without multiplying anything out."""
    if not node.names:
        return 0
    if node.op == "name":
        return 1
    if node.op in "+-":
        return max(_degree(part) for part in node.parts)
    if node.op in "*/":
        return sum(_degree(part) for part in node.parts)
    if node.op == "^" and not node.parts[1].names:
        power = value_of(node.parts[1])
        return int(abs(power)) * _degree(node.parts[0]) if power.denominator == 1 else 99
    return _degree(node.parts[0]) if node.op in ("neg", "percent", "measured") else 99


def _expression(node: Node, unknowns: dict[str, Any]) -> Any:
    """SymPy's tree for ours, with exact fractions."""
    import sympy

    if not node.names:
        if not is_exact(node):
            raise NoValue("an equation with irrational numbers is not solved here")
        value = value_of(node)
        return sympy.Rational(value.numerator, value.denominator)
    if node.op == "name":
        return unknowns[node.name]
    if node.op == "^":
        return _expression(node.parts[0], unknowns) ** int(value_of(node.parts[1]))
    parts = [_expression(part, unknowns) for part in node.parts]
    if node.op == "/" and parts[1] == 0:
        raise NoValue("it divides by zero")
    if node.op not in STEPS:
        raise NoValue(f"an equation with “{node.op}” of an unknown is not solved here")
    return STEPS[node.op](*parts)


STEPS: dict[str, Callable[..., Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "neg": lambda part: -part,
    "percent": lambda part: part / 100,
    "measured": lambda part: part,
}


def simplified(node: Node) -> str:
    """The side multiplied out, as SymPy writes it."""
    import sympy

    unknowns = {name: sympy.Symbol(name) for name in node.names}
    return str(sympy.expand(_expression(node, unknowns))) if unknowns else ""
