"""A sum as a tree of steps: what the grammar makes of a text and what alone is worked out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from core.tools.measures import Measure

WRITTEN = frozenset(("number", "measured", "percent", "neg", "name", "pi"))


@dataclass(frozen=True)
class Node:
    """One step of a sum; `op` is a sign, a function, or number, name, pi, measured.

    `[start, end)` lie in the text. A number has its `value` and the `step` of its last written
    digit; `is_part` marks a percentage or fraction that may be taken of something.
    """

    op: str
    start: int
    end: int
    parts: tuple[Node, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    is_whole: bool = True
    is_part: bool = False
    measure: Measure | None = None

    def walk(self) -> list[Node]:
        """This step and all below it."""
        return [self, *(below for part in self.parts for below in part.walk())]

    @property
    def names(self) -> frozenset[str]:
        """The unknowns in it."""
        return frozenset(node.name for node in self.walk() if node.op == "name")

    @property
    def is_worked(self) -> bool:
        """True where something has to be worked out, False for an amount that is just written."""
        return any(node.op not in WRITTEN for node in self.walk())


def joined(op: str, left: Node, right: Node) -> Node:
    """Two parts under a sign."""
    is_part = op == "/" and left.op == right.op == "number"
    return Node(op, left.start, right.end, (left, right), is_part=is_part)


def over(op: str, start: int, inside: Node, end: int | None = None) -> Node:
    """One part under a sign or function that begins at `start`; it ends where the part does."""
    return Node(op, start, inside.end if end is None else end, (inside,), is_part=inside.is_part)
