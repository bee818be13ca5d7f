"""Follows the equations with unknowns that a text goes through: each must follow from the last."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from core.tools.comparing import Compared
from core.tools.rounding import Stated, agrees, shown, stated_in
from core.tools.sum_tree import Node
from core.tools.unknowns import Solved, simplified, solve
from core.tools.working_out import value_of

NEAR = 400  # characters within which one equation is taken to follow from another
NEW_UNKNOWN = re.compile(r"\b(?:let|suppose|assume|denote)\b|设|令", re.IGNORECASE)


@dataclass(frozen=True)
class _Simplified(Compared):
    """A comparison of two sides with unknowns: what the first comes to is no number."""

    instead: str = ""

    @property
    def words(self) -> str:
        """The first side, simplified."""
        return self.instead


@dataclass
class Unknowns:
    """What the equations of a text came to so far, and where each ended, by the unknown."""

    text: str
    solved: dict[str, tuple[Solved, int]] = field(default_factory=dict)

    def checked(self, left: Node, right: Node) -> Compared | None:
        """A solution, a simplification, or a step towards one; None where nothing is stated.

        Raises:
            NoValue: it is too large, or no equation that is solved here.
        """
        if left.op == "name" and not right.names:
            return self.solution(left.name, right)
        if left.op == "name" and left.name in right.names:
            return None  # “r = 0.64-r = 0.80” is a range
        solved = solve(left, right)
        if solved.kind in ("same", "never"):
            holds = solved.kind == "same"
            return _Simplified(holds, why="" if holds else "the two sides differ",
                               instead=simplified(left))  # fmt: skip
        if solved.kind != "roots":
            return None
        before = self.known(solved.name, left.start)
        self.solved[solved.name] = solved, right.end
        if before is None or any(_is_near(a, b) for a in before.roots for b in solved.roots):
            return None
        return Compared(
            False, why=f"it does not follow from the equation before, where {_roots_words(before)}"
        )

    def solution(self, name: str, right: Node) -> Compared | None:
        """“x = 12” after an equation for x."""
        before = self.known(name, right.start)
        if before is None:
            return None
        value = value_of(right)
        stated = stated_in(right) or Stated(value, Fraction(0), is_whole=False)
        holds = any(agrees(root, stated) for root in before.roots)
        if holds or not before.roots:
            return Compared(holds, before.roots[0] if before.roots else None)
        nearest = min(before.roots, key=lambda root: abs(root - value))
        return Compared(False, nearest)

    def known(self, name: str, place: int) -> Solved | None:
        """What the last equation for it came to, where that is near and still about the same."""
        if name not in self.solved:
            return None
        solved, end = self.solved[name]
        between = self.text[end:place]
        return solved if len(between) <= NEAR and not NEW_UNKNOWN.search(between) else None


def _roots_words(solved: Solved) -> str:
    values = " or ".join(shown(root) for root in solved.roots)
    return f"{solved.name} = {values}" if values else f"nothing can be {solved.name}"


def _is_near(one: Fraction, other: Fraction) -> bool:
    """Roots of two steps of which one may have been rounded."""
    return abs(one - other) <= Fraction(1, 100) * max(abs(one), abs(other))
