r"""Parses the sums of a text into trees and evaluates them exactly.

    sum      = product {("+" | "-") product}
    product  = signed {("*" | "/" | "of" | nothing) signed}
    signed   = ["-" | "+"] amount ["^" signed]
    amount   = atom {"%" | raised | words}
    atom     = number | one letter | "(" sum ")" | √ amount | \frac{sum}{sum}

No text is evaluated as code, and the cost of each step is checked first: 9**9**9 is refused.
Source: HaluAgent 2.2, figure 4.
"""

from __future__ import annotations

import decimal
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from core.runtime.errors import InputError
from core.tools.numbers import HAN_NUMERALS, find_numbers
from core.tools.vocabulary import (
    PatternTable,
    PhraseTable,
    find_unit,
    get_unit_base,
    load_vocabulary,
    load_words,
    lower_text,
    normalize_chars,
)

PATTERNS = PatternTable("arithmetic")
MAX_DEPTH, MAX_TOKENS, MAX_COUNTED_WORDS, MAX_FORMULA_CHARS = 30, 300, 10, 2000
LATEX_SIGNS = {
    "times": "*", "cdot": "*", "div": "/", "approx": "≈", "frac": "frac", "dfrac": "frac",
    "sqrt": "sqrt",
}  # fmt: skip
SIGN_SYMBOLS = {"×": "*", "·": "*", "⋅": "*", "÷": "/", "**": "^", "√": "sqrt"}
# Full-width signs become the usual ones; each is one character, so offsets stay valid.
WIDE_SIGNS = {c: c - 0xFEE0 for c in range(0xFF01, 0xFF5F)} | str.maketrans(
    "−–‘’\u00a0\u3000\u202f\u2009`", "--''     "
)
# Words of sums: signs, relations ("is" for words that may be one) and powers; "" marks words that
# contain such a word but mean something else.
SUM_PHRASES = PhraseTable(
    {word: sign for sign, words in load_words("sums").items() for word in words}
)
SIGN_KINDS = {"=": "relation", "is": "relation", "≈": "relation", "": "word", "*": "op", "/": "op",
         "²": "raise", "³": "raise", "sqrt": "function", "of": "of"}  # fmt: skip
SCALE_FACTORS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "万": 10**4, "亿": 10**8}
SCALE_PATTERN = re.compile(r"\s?(?:(thousand|million|billion)(?![A-Za-z])|([万亿]))")
PI = Fraction("3.14159265358979323846264338327950288419716939937510582")
SHARE_WORDS = {"half": Fraction(1, 2), "twice": Fraction(2), "double": Fraction(2)}
MAX_BITS = 4096  # of a numerator or denominator: 1,233 decimal digits
MAX_EXPONENT, MAX_FACTORIAL = 10_000, 400
ROOT_DIGITS = 60
EXACT_TOLERANCE = Fraction(1, 10**40)  # irrational values closer than this count as equal
WHOLE_TOLERANCE, ONE_DECIMAL_TOLERANCE = Fraction(5, 1000), Fraction(1, 100)
FURTHER_DIGITS = 3
MAX_EXACT_DECIMALS = 12


class FormulaSyntaxError(Exception):
    """Raised for tokens that are no sum, or an ambiguous one."""


class UndefinedValueError(Exception):
    """Raised if a sum cannot be evaluated; the text says why."""


@dataclass(frozen=True)
class SumToken:
    """One token at `[start, end)`: its kind, its plain sign or word, and a number's value.

    `step` is the size of a number's last written digit, `is_part` marks a fraction that may be
    taken of something, and `is_far` says that a blank precedes the token.
    """

    kind: str
    start: int
    end: int
    sign: str = ""
    value: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    is_part: bool = False
    is_far: bool = False


END_TOKEN = SumToken("end", 0, 0)


@dataclass(frozen=True)
class FormulaNode:
    """One operation of a sum at `[start, end)`; `op` is a sign, a function, `number` or `name`.

    A number has its `value` and the `step` of its last written digit, a name its letter. `is_part`
    marks a percentage or fraction that may be taken of something.
    """

    op: str
    start: int
    end: int
    parts: tuple[FormulaNode, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    is_part: bool = False

    def walk(self) -> Iterator[FormulaNode]:
        """Yield this node and all nodes below it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def names(self) -> frozenset[str]:
        """The unknowns in it."""
        return frozenset(node.name for node in self.walk() if node.op == "name")

    @property
    def is_worked(self) -> bool:
        """True if something has to be computed, False for an amount that is only written."""
        return any(node.op not in ("number", "%", "neg", "name") for node in self.walk())


def read_tokens(text: str) -> list[SumToken]:
    """Return the tokens in order, without blanks, currency signs and mark-up for looks."""
    normalized = PATTERNS.bold.sub(lambda bold: f"  {bold[1]}  ", text.translate(WIDE_SIGNS))
    low = lower_text(normalized)
    spelled = _read_spelled_numbers(text, normalized, low)
    tokens: list[SumToken] = []
    position, is_far = 0, False
    while piece := PATTERNS.pieces.match(normalized, position):
        if piece.lastgroup == "blank":
            position, is_far = piece.end(), True
            continue
        last = tokens[-1] if tokens else END_TOKEN
        tokens.append(
            replace(_make_token(piece, normalized, low, last, spelled, is_far), is_far=is_far)
        )
        position, is_far = tokens[-1].end, False
    return tokens


def _read_spelled_numbers(text: str, normalized: str, low: str) -> dict[int, SumToken]:
    if not re.search(r"[a-z]{3}|[零〇一二两三四五六七八九十百千万亿]", low):
        return {}
    tokens = {}
    for number in find_numbers(text, normalized, low, load_vocabulary("en")):
        is_mixed = normalized[number.end - 1] in HAN_NUMERALS and normalized[number.end :][
            :1
        ] not in tuple("米克瓦卡")
        is_read = not normalized[number.start].isdigit() or is_mixed
        if is_read and not (number.ordinal or number.is_about or number.times):
            value = Fraction(repr(number.low)).limit_denominator(10**9)
            tokens[number.start] = SumToken(
                "number",
                number.start,
                number.end,
                value=value / 100 if number.share else value,
                step=Fraction(repr(number.step)) if is_mixed else Fraction(1),
                is_part=number.share,
            )
    return tokens


def _make_token(
    piece: re.Match[str],
    text: str,
    low: str,
    last: SumToken,
    spelled: dict[int, SumToken],
    is_far: bool,
) -> SumToken:
    kind, (start, end), sign = str(piece.lastgroup), piece.span(), piece.group()
    if kind == "number":
        number = spelled.get(start) or _read_number(text, start)
        is_name = last.kind in ("word", "name") and (last.end, len(last.sign)) == (start, 1)
        if is_name and last.sign.isascii():  # “A4”, “x1”: its digits are no number
            return replace(number, kind="break", sign="bad")
        return number
    if kind == "word":
        return _read_word(text, low, (start, end), last, spelled, is_far)
    if kind == "pi":
        return SumToken("number", start, end, "π", value=PI, step=Fraction(0))
    if kind == "latex":
        sign = LATEX_SIGNS.get(sign[1:], "break")
        kind = SIGN_KINDS.get(sign, sign)
    value = Fraction(3 if sign == "³" else 2)
    sign = SIGN_SYMBOLS.get(sign, "≈" if kind == "relation" and sign != "=" else sign)
    return SumToken("break" if kind == "other" else kind, start, end, sign, value)


def _read_word(
    text: str,
    low: str,
    span: tuple[int, int],
    last: SumToken,
    spelled: dict[int, SumToken],
    is_far: bool,
) -> SumToken:
    start, end = span
    phrase, word = SUM_PHRASES.at(low, start), text[start:end]
    if phrase and phrase[1] != "of":
        stop, sign = phrase
        is_relation = last.kind in ("number", "close", "percent")
        if sign == "about":
            return SumToken("relation" if is_relation else "about", start, stop, "≈")
        return SumToken(
            SIGN_KINDS.get(sign, "op"), start, stop, sign, Fraction(3 if sign == "³" else 2)
        )
    if start in spelled:
        return spelled[start]
    if low[start:end] in OPERATIONS and text[end : end + 1] == "(":
        return SumToken("function", start, end, low[start:end])
    if low[start:end] in SHARE_WORDS:
        return SumToken("number", start, end, value=SHARE_WORDS[low[start:end]], is_part=True)
    if phrase:
        return SumToken("of", start, phrase[0], text[start : phrase[0]])
    is_value = last.kind in ("number", "close", "raise", "word", "percent")
    if is_value and PATTERNS.times.match(text, start):
        return SumToken("op", start, end, "*")
    # A letter after a blank is a unit (5 m), except letters used for unknowns (5 x).
    is_unit = is_far and last.kind == "number" and word not in tuple("xyz")
    is_name = len(word) == 1 and word.isascii() and not text[end : end + 1].isdigit()
    return SumToken("name" if is_name and not is_unit else "word", start, end, word)


def _read_number(text: str, start: int) -> SumToken:
    """Read the number in digits that begins at `start`, with its scale: “2.5 million”."""
    match = PATTERNS.number.match(text, start)
    if match is None or match["bad"] or match.end() - start > 60:
        return SumToken("break", start, match.end() if match else start + 1, "bad")
    digits, _, power = match.group().replace(",", "").lower().partition("e")
    factor, end = Fraction(10) ** int(power or 0), match.end()
    if scaled := SCALE_PATTERN.match(text, end):
        factor, end = factor * SCALE_FACTORS[scaled[1] or scaled[2]], scaled.end()
    step = factor / 10 ** len(digits.partition(".")[2])
    return SumToken("number", start, end, value=Fraction(f"0{digits}") * factor, step=step)


def parse_formula(text: str) -> FormulaNode:
    """Parse a text that is one formula.

    Raises InputError if it is too long or no formula; the message says where parsing failed.
    """
    if len(text) > MAX_FORMULA_CHARS:
        raise InputError(
            f"Expected a formula of at most {MAX_FORMULA_CHARS:,} characters, found {len(text):,}."
        )
    tokens = read_tokens(text)
    try:
        node, end = parse_sum(tokens, 0, len(tokens))
        if end < len(tokens):
            raise FormulaSyntaxError(f"“{text[tokens[end].start :][:20]}” in it")
    except FormulaSyntaxError as error:
        raise InputError(f"Expected a formula such as (1 + 2) * 3, found: {error}.") from error
    return node


def parse_sum(tokens: Sequence[SumToken], start: int, stop: int) -> tuple[FormulaNode, int]:
    """Return the longest sum from `tokens[start]` on and before `stop`, and the position after it.

    Raises Unreadable if none begins there, or it breaks off after a sign.
    """
    if stop - start > MAX_TOKENS:
        raise FormulaSyntaxError(f"more than {MAX_TOKENS} numbers and signs")
    parser = _Parser(tokens, start, stop)
    return parser.read_sum(0), parser.place


def find_amount_units(text: str, node: FormulaNode) -> dict[int, str]:
    """Return the units of a sum's amounts as pint's names, keyed by the end of each number."""
    normalized = normalize_chars(text)
    low = lower_text(normalized)
    ends = [one.end for one in node.walk() if one.op == "number"]
    units = {
        end: find_unit(normalized, low, end, "zh" if normalized[end:] > "\u4e00" else "en")
        for end in ends
    }
    return {end: unit[1] for end, unit in units.items() if unit}


def convert_to_base_units(formula: FormulaNode, units: Mapping[int, str]) -> FormulaNode | None:
    """Return the sum in base units if it only adds amounts of one dimension; else None."""
    ops = {"number", "+", "-", "neg"}
    adds = all(one.op in ops and (one.op != "number" or one.end in units) for one in formula.walk())
    is_alike = len({get_unit_base(unit).symbol for unit in units.values()}) == 1
    return _to_base_units(formula, units) if adds and is_alike else None


def _to_base_units(node: FormulaNode, units: Mapping[int, str]) -> FormulaNode:
    factor = (
        Fraction(repr(get_unit_base(units[node.end]).factor)) if node.end in units else Fraction(1)
    )
    if node.op == "number":
        return replace(node, value=node.value * factor, step=node.step * factor)
    return replace(node, parts=tuple(_to_base_units(part, units) for part in node.parts))


def _join_nodes(op: str, left: FormulaNode, right: FormulaNode) -> FormulaNode:
    is_part = op == "/" and left.op == right.op == "number"
    return FormulaNode(op, left.start, right.end, (left, right), is_part=is_part)


class _Parser:
    """A recursive descent parser; `place` is the index of the next token."""

    def __init__(self, tokens: Sequence[SumToken], place: int, stop: int) -> None:
        self.tokens, self.place, self.stop = tokens, place, stop

    def peek(self, ahead: int = 0) -> SumToken:
        at = self.place + ahead
        return self.tokens[at] if at < self.stop else END_TOKEN

    def is_sign(self, signs: str) -> bool:
        return self.peek().kind == "op" and self.peek().sign in signs

    def take(self) -> SumToken:
        self.place += 1
        return self.peek(-1)

    def read_sum(self, depth: int) -> FormulaNode:
        node = self.read_product(self.next_depth(depth))
        while self.is_sign("+-"):
            node = _join_nodes(self.take().sign, node, self.read_product(depth + 1))
        return node

    def next_depth(self, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise FormulaSyntaxError(f"more than {MAX_DEPTH} parts within each other")
        return depth + 1

    def read_product(self, depth: int) -> FormulaNode:
        node, is_divided = self.read_signed(depth), False
        while True:
            token = self.peek()
            if self.is_sign("*/"):
                sign = self.take().sign
                node, is_divided = _join_nodes(sign, node, self.read_signed(depth)), sign == "/"
            elif token.kind == "of":
                self.take()
                self.place += self.peek().sign.lower() in ("the", "these", "those", "all")
                right = self.read_signed(depth)
                # “25 % of 80” and 80的25%: one side must be a part.
                if not (node.is_part or (right.is_part and token.sign == "的")):
                    raise FormulaSyntaxError("an “of” without a part")
                node = _join_nodes("*", node, right)
            elif self.is_implied(node, token):
                if is_divided and not token.is_far:
                    raise FormulaSyntaxError("a division that can be read in two ways")
                node = _join_nodes("*", node, self.read_power(depth))
            else:
                return node

    def is_implied(self, left: FormulaNode, token: SumToken) -> bool:
        """Return True for two adjacent amounts that mean a product: 3x, 2(4 + 1)."""
        if token.kind == "open":
            return token.sign == "(" and not token.is_far and left.op != "name"
        if token.kind == "name":
            return not token.is_far or token.sign in "xyz"
        return token.kind in ("frac", "function") or token.sign == "π"

    def read_signed(self, depth: int) -> FormulaNode:
        if not self.is_sign("+-"):
            return self.read_power(depth)
        sign, inside = self.take(), self.read_signed(self.next_depth(depth))
        if sign.sign == "+":
            return inside
        return FormulaNode("neg", sign.start, inside.end, (inside,), is_part=inside.is_part)

    def read_power(self, depth: int) -> FormulaNode:
        node = self.read_amount(depth)
        if not self.is_sign("^"):
            return node
        self.take()
        return self.skip_words(_join_nodes("^", node, self.read_signed(self.next_depth(depth))))

    def read_amount(self, depth: int) -> FormulaNode:
        node = self.read_atom(depth)
        while (token := self.peek()).kind in ("percent", "raise"):
            self.take()
            if token.kind == "percent" or token.sign == "!":
                sign = "%" if token.kind == "percent" else "!"
                node = FormulaNode(sign, node.start, token.end, (node,), is_part=sign == "%")
            else:
                node = _join_nodes(
                    "^", node, FormulaNode("number", token.start, token.end, value=token.value)
                )
        return self.skip_words(node)

    def skip_words(self, node: FormulaNode) -> FormulaNode:
        """Skip the words that say what is counted, and return the amount: 5 apples/box *."""
        count = self.count_words()
        if count and self.peek(count).kind in ("op", "close", "end", "raise", "of"):
            self.place += count
            if self.is_sign("/") and (more := self.count_words(1)):
                self.place += 1 + more
        return node

    def count_words(self, ahead: int = 0) -> int:
        """Count the words that follow and may name what is counted."""
        count = 0
        while self.peek(ahead + count).kind == "word" and count < MAX_COUNTED_WORDS:
            count += 1
        return count

    def read_atom(self, depth: int) -> FormulaNode:
        token = self.take()
        while token.kind == "word" and token.sign > "\u4e00":  # 15元+住宿费75元
            token = self.take()
        start, end = token.start, token.end
        if token.kind == "number":
            amount = FormulaNode("number", start, end, value=token.value, step=token.step)
            return replace(amount, is_part=token.is_part)
        if token.kind == "name":
            return FormulaNode("name", start, end, name=token.sign)
        if token.kind == "open":
            return self.read_group(token, depth)
        if token.kind == "function":
            inside = self.read_amount(self.next_depth(depth))
            return FormulaNode(token.sign, start, inside.end, (inside,))
        if token.kind == "frac":
            fraction = _join_nodes(
                "/", self.read_group(self.take(), depth), self.read_group(self.take(), depth)
            )
            return replace(fraction, start=start, is_part=True)
        what = f"“{token.sign[:20]}” where" if token.kind != "end" else "an end where"
        raise FormulaSyntaxError(f"{what} a number should be")

    def read_group(self, opened: SumToken, depth: int) -> FormulaNode:
        if opened.kind != "open":
            raise FormulaSyntaxError("a fraction without its parts")
        node, closed = self.read_sum(depth), self.take()
        if closed.kind != "close" or closed.sign != {"(": ")", "[": "]", "{": "}"}[opened.sign]:
            raise FormulaSyntaxError("a bracket that is not closed")
        return replace(node, start=opened.start, end=closed.end)


def evaluate(node: FormulaNode, unknown: Fraction | None = None) -> Fraction:
    """Return the value; roots are fractions exact to 40 digits.

    `unknown` replaces a letter. Raises NoValue if there is no value, it is too large, or the sum
    holds an unknown.
    """
    if node.op == "number":
        return _check_size(node.value)
    if node.op == "name":
        if unknown is None:
            raise UndefinedValueError(f"“{node.name}” is not known")
        return unknown
    try:
        return _check_size(OPERATIONS[node.op](*(evaluate(part, unknown) for part in node.parts)))
    except ZeroDivisionError as error:
        raise UndefinedValueError("it divides by zero") from error


def _check_size(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise UndefinedValueError("a number in it is too large to be worked out")
    return value


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1:
        return _make_real(lambda value: value ** _to_decimal(exponent))(base)
    power, size = int(exponent), max(base.numerator.bit_length(), base.denominator.bit_length())
    if abs(power) > MAX_EXPONENT or (size > 1 and size * abs(power) > 2 * MAX_BITS):
        raise UndefinedValueError("a power in it is too large to be worked out")
    if base == 0 and power <= 0:
        raise UndefinedValueError("zero has no such power")
    return Fraction(base**power)


def _to_decimal(value: Fraction) -> decimal.Decimal:
    return decimal.Decimal(value.numerator) / value.denominator


def _make_real(
    compute: Callable[[decimal.Decimal], decimal.Decimal],
) -> Callable[[Fraction], Fraction]:
    """Make a function of one real value, exact if the result is a short fraction."""

    def evaluate_real(value: Fraction) -> Fraction:
        try:
            with decimal.localcontext(prec=ROOT_DIGITS, Emax=2 * MAX_BITS, Emin=-2 * MAX_BITS):
                result = Fraction(compute(_to_decimal(value)))
        except (decimal.DecimalException, OverflowError, ValueError) as error:
            raise UndefinedValueError(
                "a function in it has no real value, or one too large"
            ) from error
        near = result.limit_denominator(10**9)
        return near if abs(near - result) <= EXACT_TOLERANCE * abs(result) else result

    return evaluate_real


def _factorial(value: Fraction) -> Fraction:
    if value.denominator != 1 or not 0 <= value <= MAX_FACTORIAL:
        raise UndefinedValueError("a factorial in it is too large, or of no whole number")
    return Fraction(math.factorial(int(value)))


OPERATIONS: dict[str, Callable[..., Fraction]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "^": _power,
    "!": _factorial, "neg": operator.neg, "%": lambda value: value / 100, "abs": abs,
    "sqrt": _make_real(lambda value: value.sqrt()), "ln": _make_real(lambda value: value.ln()),
    "lg": _make_real(lambda value: value.log10()), "exp": _make_real(lambda value: value.exp()),
    "cbrt": _make_real(lambda value: value ** (decimal.Decimal(1) / 3)),
}  # fmt: skip


@dataclass(frozen=True)
class StatedValue:
    """A value as written: its last digit is worth `step`; `is_about` says it is rounded."""

    value: Fraction
    step: Fraction
    is_about: bool = False
    is_percent: bool = False


def read_stated_value(node: FormulaNode, is_about: bool = False) -> StatedValue | None:
    """Return the written value; None if it has to be computed first."""
    if node.op == "number":
        step = node.step
        while is_about and step >= 1 and node.value and node.value % (step * 10) == 0:
            step *= 10  # 1,000 in "about 4,000"
        return StatedValue(node.value, step, is_about)
    inside = read_stated_value(node.parts[0], is_about) if node.op in ("neg", "%") else None
    if inside is None or node.op == "neg":
        return inside and replace(inside, value=-inside.value)
    return StatedValue(inside.value / 100, inside.step / 100, is_about, is_percent=True)


def is_rounded_value(true: Fraction, stated: StatedValue) -> bool:
    """Return True if the stated value is the true one, rounded as it is written.

    Two or more decimals: rounded. One decimal: rounded, if the true value goes on for more than
    three further digits or is missed by at most 1 % (0.7 for 2/3, not 0.8 for 3/4). None: missed by
    at most 0.5 % (333 for 1000/3, not 3 for 10/3). Truncated, if the digits go on: 0.66 for 2/3.
    Stated as approximate or ending in "...": rounded or truncated at its last non-zero digit.
    """
    off = abs(stated.value - true)
    if off <= EXACT_TOLERANCE * abs(true):
        return True
    if not stated.step:
        return False  # a fraction or a sum instead of a decimal: that is exact
    is_nearest = off <= stated.step / 2
    is_cut = abs(stated.value) <= abs(true) and off < stated.step and stated.value * true >= 0
    if stated.is_about:
        return is_nearest or is_cut
    goes_on = (true / stated.step * 10**FURTHER_DIGITS).denominator != 1
    step = stated.step * (100 if stated.is_percent else 1)
    if step >= 1:
        is_near = off <= WHOLE_TOLERANCE * abs(true)
        return is_nearest and (is_near or (goes_on and stated.is_percent))
    if is_nearest and (
        step < Fraction(1, 10) or goes_on or off <= ONE_DECIMAL_TOLERANCE * abs(true)
    ):
        return True
    return is_cut and goes_on


def format_value(value: Fraction, is_percent: bool = False) -> str:
    """Format the value for people: whole, as a short decimal, or rounded to ten digits."""
    if is_percent:
        return f"{format_value(value * 100)}%"
    if value.denominator == 1 and len(str(abs(value.numerator))) <= 30:
        return str(value.numerator)
    with decimal.localcontext(prec=60):
        if value.denominator > 1 == (value * 10**MAX_EXACT_DECIMALS).denominator:
            exact = decimal.Decimal(value.numerator) / value.denominator
            return f"{exact:f}".rstrip("0")
    try:
        return f"{float(value):.10g}"
    except OverflowError:
        return f"a number of {len(str(abs(value.numerator // value.denominator)))} digits"


def list_steps(formula: str, most: int = 20) -> tuple[str, ...]:
    """Return each step as “3 + 0.5 = 3.5”, in order; empty for a single or uncertain step."""
    try:
        node = parse_formula(formula)
        steps = (
            list(_list_steps(node))
            if len(set(find_amount_units(formula, node).values())) < 2
            else []
        )
    except (InputError, UndefinedValueError):
        return ()
    return tuple(steps) if 1 < len(steps) <= most else ()


def _list_steps(node: FormulaNode) -> Iterator[str]:
    for part in node.parts:
        yield from _list_steps(part)
    signs = {"+": "+", "-": "−", "*": "×", "/": "÷", "^": "^"}
    if node.op in signs:
        values = (evaluate(part) for part in node.parts)
        left, right = (f"({format_value(v)})" if v < 0 else format_value(v) for v in values)
        yield f"{left} {signs[node.op]} {right} = {format_value(evaluate(node))}"
    elif node.op == "%":
        yield f"{format_value(evaluate(node.parts[0]))}% = {format_value(evaluate(node))}"
