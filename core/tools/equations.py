"""Finds the equations that a text states, and checks each: sums, chains, equations to be solved.

An equation is two sides about “=”, “≈”, “equals”, 等于, or about “is” and 是 where a sum plainly
stands before it. A side is as long as the grammar can read; one that a sign ties to words cannot
be, and then nothing is said about it. Offsets are half-open and lie in the text.
Source: HaluAgent 2.2 (calculator), figure 3 (3 hours + 0.5 hours + 1.5 hours = 4 hours).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from core.tools.comparing import Compared, compare, in_scale, remainder_holds
from core.tools.formula import MOST_TOKENS, Unreadable, read_sum
from core.tools.rounding import stated_in
from core.tools.sum_numbers import Token
from core.tools.sum_tokens import tokens_of
from core.tools.sum_tree import Node
from core.tools.unknown_steps import Unknowns
from core.tools.working_out import NoValue

LONGEST_SIDE = 120  # pieces
MOST_EQUATIONS = 200
STARTS = frozenset(("number", "open", "name", "pi", "function", "frac", "operator", "word"))
NOT_BEFORE = frozenset(("than", "average", "mean", "remainder", "mod", "modulo", "by"))
NOT_AFTER = frozenset(
    "more less fewer greater larger smaller higher lower times short mod modulo or to".split()
)
REMAINDER = re.compile(r"(?:remainder|rem|R|r|余数?)$")
OTHER_NUMBERS = re.compile(
    r"\b(?:mod|modulo|binary|hexadecimal|octal|base)\b|二进制|八进制|十六进制|进制", re.IGNORECASE
)
DENIED = re.compile(
    r"\b(?:not|isn't|wrong|incorrect|incorrectly|instead of|rather than|mistakenly|false)\b"
    r"|不是|而不是|错误|误以为|并非",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"[.!?。！？；;\n]")


@dataclass(frozen=True)
class Equation:
    """One equation of a text at `[start, end)`.

    `holds` is None where it cannot be told, and `why` says so. `[wrong_start, wrong_end)` is the
    value that does not hold, and `instead` what was worked out; `formula` and `stated` are the two
    sides as they are written.
    """

    start: int
    end: int
    formula: str
    stated: str
    holds: bool | None
    instead: str = ""
    why: str = ""
    wrong_start: int = 0
    wrong_end: int = 0


def equations_in(text: str) -> list[Equation]:
    """The equations that can be read in the text, in order.

    A denied one (“it is not 3 + 5 = 9”) and texts about other number systems are left out.
    """
    if OTHER_NUMBERS.search(text):
        return []
    found = _Finder(text, tokens_of(text)).found()
    return [one for one in found[:MOST_EQUATIONS] if not _is_denied(text, one)]


def _is_denied(text: str, equation: Equation) -> bool:
    """Whether the same sentence denies it beforehand."""
    breaks = [m.end() for m in SENTENCE.finditer(text, 0, equation.start)]
    before = text[breaks[-1] if breaks else 0 : equation.start]
    return bool(DENIED.search(before))


@dataclass
class _Finder:
    """Goes through a text's relations from left to right."""

    text: str
    tokens: list[Token]
    equations: list[Equation] = field(default_factory=list)
    anchor: Node | None = None  # the last sum of the chain that is being read
    unknowns: Unknowns = field(init=False)

    def __post_init__(self) -> None:
        self.unknowns = Unknowns(self.text)

    def found(self) -> list[Equation]:
        last = -1
        for place, token in enumerate(self.tokens):
            if token.kind == "break":
                self.anchor = None
            if token.kind != "relation":
                continue
            left = self.left(last, place)
            if left is None or left.names:
                self.anchor = None
            elif left.is_worked:
                self.anchor = left
            self.relation(place, left)
            last = place
        return self.equations

    def left(self, after: int, place: int) -> Node | None:
        """The longest sum that ends before the relation."""
        first = place
        while first > 0 and first - 1 > after and place - first < LONGEST_SIDE:
            if self.tokens[first - 1].kind in ("break", "relation"):
                break
            first -= 1
        for start in range(first, place):
            if self.may_start(start, first):
                try:
                    node, end = read_sum(self.tokens, start, place)
                except Unreadable:
                    continue
                if end == place:
                    return node
        return None

    def may_start(self, place: int, first: int) -> bool:
        """Whether a sum may begin here: what stands before must be no part of it."""
        token = self.tokens[place]
        if token.kind not in STARTS or token.kind == "word":
            return False
        if place == first:
            return token.kind != "operator" or token.sign == "-"
        before = self.tokens[place - 1]
        if token.kind == "operator" or before.sign.lower() in NOT_BEFORE:
            return False
        if before.kind == "name":
            return token.is_far and before.sign not in "xyz"
        if before.kind == "word":
            return token.is_far or token.sign != "("
        if before.kind == "open":  # "about 1,123 a day (410,000 / 365 = 1,123)"
            outer = self.tokens[place - 2] if place - 2 >= first else None
            return outer is None or (before.is_far and outer.kind in ("word", "name"))
        return before.kind in ("about", "dots") and token.kind == "number"

    def right(self, place: int) -> tuple[Node | None, int, bool]:
        """The longest sum behind the relation, the place after it, and whether it is “about”."""
        start, is_about = place + 1, self.tokens[place].sign == "≈"
        while start < len(self.tokens) and self.tokens[start].kind == "about":
            is_about |= self.tokens[start].sign != "exactly"
            start += 1
        stop = start
        while stop < len(self.tokens) and stop - start < MOST_TOKENS:
            if self.tokens[stop].kind in ("break", "relation"):
                break
            stop += 1
        try:
            node, end = read_sum(self.tokens, start, stop)
        except Unreadable:
            return None, stop, is_about
        after = self.tokens[end] if end < len(self.tokens) else None
        if after and after.kind in ("number", "operator", "unreadable", "name", "ratio", "of"):
            return None, stop, is_about
        return node, end, is_about or bool(after and after.kind == "dots")

    def relation(self, place: int, left: Node | None) -> None:
        """Read and check one relation."""
        right, end, is_about = self.right(place)
        if right is None:
            self.anchor = None
            return
        token = self.tokens[place]
        if token.sign == "is" and not self.is_sum(left, right, place, end):
            return
        if left is not None and (left.names or right.names):
            if not (left.names and self.is_range(left) and self.is_chained(left)):
                self.unknown(left, right)
            return
        formula = left if left is not None and left.is_worked else None
        if formula is None and right.is_worked:
            is_stated = left is not None and stated_in(left) is not None
            if left and is_stated and self.is_next_to(place, left) and not self.is_range(right):
                self.add(right, left, compare(right, left))
            self.anchor = right
            return
        formula = formula or self.anchor or (left if _is_conversion(left, right) else None)
        if formula is None:
            return
        if right.is_worked:
            self.anchor = right
        rest = self.remainder(end)
        found = compare(formula, right, is_about)
        found = in_scale(self.text, formula, right, found, is_about=is_about)
        if rest is not None:
            found = remainder_holds(formula, right, rest)
        self.add(formula, right, found)

    def is_next_to(self, place: int, left: Node) -> bool:
        """Whether nothing is said between a value and the relation: “95 % CI = …” is no value."""
        return self.tokens[place - 1].end <= left.end

    def is_range(self, node: Node) -> bool:
        """“1.5-2.8” beside an equals sign: from one to the other as like as not."""
        written = self.text[node.start : node.end]
        return node.op == "-" and " " not in written and not any(n.parts for n in node.parts)

    def is_chained(self, node: Node) -> bool:
        """Whether a relation stands right before: “r = 0.21-r = 0.77”."""
        return any(t.kind == "relation" and 0 <= node.start - t.end <= 1 for t in self.tokens)

    def remainder(self, end: int) -> Fraction | None:
        """What is left over, where the value is followed by it: “3 remainder 2”, 3……2, 3余2."""
        if end + 1 >= len(self.tokens):
            return None
        sign, number = self.tokens[end], self.tokens[end + 1]
        is_rest = sign.kind == "dots" or (
            sign.kind in ("word", "name") and REMAINDER.match(sign.sign) is not None
        )
        return number.value if is_rest and number.kind == "number" else None

    def is_sum(self, left: Node | None, right: Node, place: int, end: int) -> bool:
        """Whether “is” stands between a sum and its value, and does not just tell something."""
        if left is None or not left.is_worked or stated_in(right) is None:
            return False
        if end < len(self.tokens) and self.tokens[end].sign.lower() in NOT_AFTER:
            return False
        inside = [t for t in self.tokens[:place] if t.start >= left.start]
        return any(
            t.kind in ("of", "function", "raise")
            or (t.kind == "operator" and (t.sign in "*+^" or t.is_far or t.end - t.start > 1))
            or (t.kind == "operator" and "\u4e00" <= self.text[t.start] <= "\u9fff")
            or (t.kind == "number" and t.is_part)
            for t in inside
        )

    def add(self, formula: Node, stated: Node, found: Compared) -> None:
        start, end = min(formula.start, stated.start), max(formula.end, stated.end)
        wrong = _number_in(stated)
        self.equations.append(
            Equation(
                start, end, self.text[formula.start : formula.end],
                self.text[stated.start : stated.end], found.holds, found.words, found.why,
                wrong.start, wrong.end,
            )
        )  # fmt: skip

    def unknown(self, left: Node, right: Node) -> None:
        """An equation with unknowns; one that cannot be solved here is left out."""
        try:
            found = self.unknowns.checked(left, right)
        except NoValue:
            return
        if found is not None:
            self.add(left, right, found)


def _is_conversion(left: Node | None, right: Node) -> bool:
    """Two written amounts that both have units: 24,000,000 cm = 240 km."""
    sides = (left, right)
    return all(s is not None and any(n.measure for n in s.walk()) for s in sides)


def _number_in(node: Node) -> Node:
    """The written number without its unit; a side that is worked out further is marked whole."""
    while node.op == "measured":
        node = node.parts[0]
    return node
