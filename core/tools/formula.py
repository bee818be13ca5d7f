r"""The grammar of sums: pieces of a text become a tree, and nothing else is ever worked out.

    sum      = product {("+" | "-") product}
    product  = signed {("*" | "/" | "of" | nothing) signed}
    signed   = ["-" | "+"] power
    power    = amount ["^" signed]
    amount   = atom {"%" | "!" | raised | unit | words}
    atom     = number | π | one letter | "(" sum ")" | function amount | \frac group group

Powers bind to the right and before a minus: -2^2 is -4. “1/2x” can be read in two ways and is
refused. Words beside an amount (“3 girls' teams”) say what is counted. Source: HaluAgent, figure 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.errors import InputError
from core.tools.measures import Measure
from core.tools.sum_numbers import Kind, Token
from core.tools.sum_tokens import tokens_of
from core.tools.sum_tree import Node, joined, over

MOST_DEPTH = 30
MOST_TOKENS = 300
MOST_WORDS = 10
LONGEST_FORMULA = 2000
CLOSING = {"(": ")", "[": "]", "{": "}"}
UNKNOWNS = frozenset("xyz")  # letters that stand for a number also after a blank
END = Token("end", 0, 0)


class Unreadable(Exception):
    """Raised for pieces that are no sum, or one that can be read in two ways."""


def formula_of(text: str) -> Node:
    """The tree of one formula that is all of the text.

    Raises:
        InputError: it is too long or no formula; the message says from where on.
    """
    if len(text) > LONGEST_FORMULA:
        raise InputError(
            f"Expected a formula of at most {LONGEST_FORMULA:,} characters, found {len(text):,}."
        )
    tokens = tokens_of(text)
    try:
        node, end = read_sum(tokens, 0, len(tokens))
    except Unreadable as error:
        raise InputError(f"Expected a formula such as (1 + 2) * 3, found: {error}.") from error
    if end < len(tokens):
        found = text[tokens[end].start : tokens[end].start + 20]
        raise InputError(f"Expected a formula such as (1 + 2) * 3, found “{found}” in it.")
    return node


def read_sum(tokens: Sequence[Token], start: int, stop: int) -> tuple[Node, int]:
    """The longest sum from `tokens[start]` on and before `stop`, and the place after it.

    Raises:
        Unreadable: none begins there, or it breaks off behind a sign.
    """
    if stop - start > MOST_TOKENS:
        raise Unreadable(f"more than {MOST_TOKENS} numbers and signs")
    reader = _Reader(tokens, start, stop)
    node = reader.sum()
    return node, reader.place


class _Reader:
    """Reads pieces from left to right; `place` is the next one."""

    def __init__(self, tokens: Sequence[Token], place: int, stop: int) -> None:
        self.tokens, self.place, self.stop, self.depth = tokens, place, stop, 0

    def peek(self, ahead: int = 0) -> Token:
        at = self.place + ahead
        return self.tokens[at] if at < self.stop else END

    def is_sign(self, signs: str, ahead: int = 0) -> bool:
        token = self.peek(ahead)
        return token.kind == "operator" and token.sign in signs

    def sum(self) -> Node:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise Unreadable(f"more than {MOST_DEPTH} parts within each other")
        node = self.product()
        while self.is_sign("+-"):
            sign = self.take().sign
            node = joined(sign, node, self.product())
        self.depth -= 1
        return node

    def take(self) -> Token:
        token = self.peek()
        self.place += 1
        return token

    def product(self) -> Node:
        node = self.signed()
        is_divided = False
        while True:
            if self.is_sign("*/"):
                sign = self.take().sign
                node, is_divided = joined(sign, node, self.signed()), sign == "/"
            elif self.peek().kind == "of":
                node = self.of(node)
            elif self.is_implied(node):
                if is_divided and not self.peek().is_far:
                    raise Unreadable("a division that can be read in two ways")
                node = joined("*", node, self.power())
            else:
                return node

    def of(self, left: Node) -> Node:
        """“25 % of 80” and 80的25%: one of the two is a part."""
        of = self.take()
        if self.peek().sign.lower() in ("the", "these", "those", "all"):
            self.take()
        right = self.signed()
        if not (left.is_part or (right.is_part and of.sign != "of")):
            raise Unreadable("an “of” without a part")
        return joined("*", left, right)

    def is_implied(self, left: Node) -> bool:
        """Whether two amounts side by side are meant as a product: 3x, 2(4 + 1), twice 7."""
        token = self.peek()
        if token.kind == "number":
            return left.op == "number" and left.is_part and token.is_far and not token.is_part
        if token.kind == "open":
            return token.sign == "(" and not token.is_far and left.op not in ("name", "measured")
        if token.kind == "name":
            return left.op != "measured" and (not token.is_far or token.sign in UNKNOWNS)
        return token.kind in ("pi", "frac") or (token.kind == "function" and not token.is_far)

    def signed(self) -> Node:
        if self.is_sign("+-"):
            sign = self.take()
            self.depth += 1
            if self.depth > MOST_DEPTH:
                raise Unreadable("too many signs in a row")
            inside = self.signed()
            self.depth -= 1
            return inside if sign.sign == "+" else over("neg", sign.start, inside)
        return self.power()

    def power(self) -> Node:
        node = self.amount()
        if self.is_sign("^"):
            self.take()
            self.depth += 1
            if self.depth > MOST_DEPTH:
                raise Unreadable("too many powers within each other")
            node = self.labelled(joined("^", node, self.signed()))
            self.depth -= 1
        return node

    def amount(self) -> Node:
        node = self.atom()
        while True:
            token = self.peek()
            if token.kind == "percent":
                self.take()
                node = replace(over("percent", node.start, node, token.end), is_part=True)
            elif token.kind == "bang" and self.is_factorial(token):
                self.take()
                node = over("factorial", node.start, node, token.end)
            elif token.kind == "raise":
                self.take()
                power = Node("number", token.start, token.end, value=token.value)
                node = joined("^", node, power)
            else:
                return self.labelled(node)

    def is_factorial(self, token: Token) -> bool:
        """One mark right behind a number, and not the end of a cry: 5! = 120."""
        if token.sign != "!" or token.is_far:
            return False
        if self.place + 1 < len(self.tokens):
            return self.tokens[self.place + 1].kind in ("operator", "close", "relation")
        return all(one.kind != "relation" for one in self.tokens)

    def labelled(self, node: Node) -> Node:
        """The amount with its unit, or past the words that say what is counted."""
        if self.peek().kind == "unit":
            return self.compound(self.measured(node))
        count = self.words()
        after = self.peek(count)
        if count and after.kind in ("operator", "close", "end", "raise"):
            self.place += count
            self.skip_quotient()
        return node

    def words(self, ahead: int = 0) -> int:
        """How many words follow, as far as what is counted may be named."""
        count = 0
        while self.peek(ahead + count).kind == "word" and count < MOST_WORDS:
            count += 1
        return count

    def measured(self, node: Node) -> Node:
        """The amount in its unit; one over something that is only counted has no unit."""
        unit = self.take()
        measure = unit.measure
        while self.is_sign("/") and self.peek(1).kind in ("unit", "word"):
            after = self.words(1) or 1
            if self.peek(1 + after).kind in ("number", "open", "name"):
                break
            self.take()
            bottom = self.take()
            self.place += after - 1
            measure = _quotient(measure, bottom.measure)
        return replace(over("measured", node.start, node, unit.end), measure=measure)

    def skip_quotient(self) -> None:
        """“5 apples/box”: past what it is counted by."""
        if not (self.is_sign("/") and self.peek(1).kind in ("unit", "word")):
            return
        after = self.words(1) or 1
        if self.peek(1 + after).kind not in ("number", "open", "name"):
            self.place += 1 + after

    def compound(self, node: Node) -> Node:
        """3 hours 20 minutes: two units of one kind, the smaller second."""
        count, unit = self.peek(), self.peek(1)
        first, second = node.measure, unit.measure
        if count.kind != "number" or unit.kind != "unit" or first is None or second is None:
            return node
        if first.dimensions != second.dimensions or second.factor >= first.factor:
            return node
        return joined("+", node, self.amount())

    def atom(self) -> Node:
        token = self.peek()
        if token.kind == "word" and self.is_sign_before() and self.words() < MOST_WORDS:
            count = self.words()  # “+ rent 75”: what is counted may stand before
            if self.peek(count).kind == "number":
                self.place += count
                token = self.peek()
        self.take()
        if token.kind == "number":
            return Node(
                "number", token.start, token.end, value=token.value, step=token.step,
                is_whole=token.is_whole, is_part=token.is_part,
            )  # fmt: skip
        if token.kind in ("pi", "name"):
            return Node(token.kind, token.start, token.end, name=token.sign)
        if token.kind == "open":
            return self.group(token)
        if token.kind == "function":
            return self.function(token)
        if token.kind == "frac":
            top, bottom = self.group(self.take()), self.group(self.take())
            return replace(joined("/", top, bottom), start=token.start, is_part=True)
        raise Unreadable(_what(token))

    def is_sign_before(self) -> bool:
        """Whether a sign ties the next piece to a sum; “ - so” is a dash."""
        before = self.tokens[self.place - 1] if self.place > 0 else END
        return before.kind == "operator" and not (before.sign == "-" and self.peek().is_far)

    def group(self, opened: Token) -> Node:
        if opened.kind != "open":
            raise Unreadable("a fraction without its parts")
        node = self.sum()
        closed = self.take()
        if closed.kind != "close" or closed.sign != CLOSING[opened.sign]:
            raise Unreadable("a bracket that is not closed")
        return replace(node, start=opened.start, end=closed.end)

    def function(self, token: Token) -> Node:
        root: Node | None = None
        if token.sign == "sqrt" and self.peek().sign == "[":
            root = self.group(self.take())
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise Unreadable("too many functions within each other")
        inside = self.amount()
        self.depth -= 1
        parts = (inside,) if root is None else (inside, root)
        return Node(token.sign, token.start, inside.end, parts)


def _quotient(top: Measure | None, bottom: Measure | None) -> Measure | None:
    if top is None or bottom is None:
        return None
    one, two, three, four = (a - b for a, b in zip(top.dimensions, bottom.dimensions, strict=True))
    return Measure(f"{top.name}/{bottom.name}", top.factor / bottom.factor, (one, two, three, four))


def _what(token: Token) -> str:
    kinds: dict[Kind, str] = {
        "end": "an end where a number is missing",
        "unreadable": "a number that can be read in two ways",
        "break": "a sign that is none of a sum's",
    }
    return kinds.get(token.kind, f"“{token.sign[:20]}” where a number should be")
