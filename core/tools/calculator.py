"""The tool `calculator`: checks the sums that a text states.

A stated sum has two sides around “=”, “≈”, “equals” or 等于, or around “is” or 是 if a sum clearly
precedes it. A side that a sign ties to words is not judged. Source: HaluAgent 2.2.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from core.runtime.errors import InputError
from core.schema.records import Case, Statement
from core.tools.arithmetic import (
    EXACT_TOLERANCE,
    MAX_TOKENS,
    ONE_DECIMAL_TOLERANCE,
    SCALE_FACTORS,
    SCALE_PATTERN,
    FormulaNode,
    FormulaSyntaxError,
    StatedValue,
    SumToken,
    UndefinedValueError,
    convert_to_base_units,
    evaluate,
    find_amount_units,
    format_value,
    is_rounded_value,
    parse_formula,
    parse_sum,
    read_stated_value,
    read_tokens,
)
from core.tools.quantities import Quantity, find_quantities
from core.tools.registry import Tool, ToolAnswer, ToolContext, load_examples
from core.tools.vocabulary import (
    PatternTable,
    load_vocabulary,
    load_words,
    lower_text,
    match_any,
    normalize_chars,
)

PATTERNS = PatternTable("calculator")
MAX_TEXT_CHARS, MAX_QUESTION_CHARS, MAX_SIDE_TOKENS, MAX_EQUATIONS, MAX_LISTED_ERRORS = (
    20_000,
    500,
    120,
    200,
    3,
)
P_IF_WRONG, P_IF_RIGHT = 0.95, 0.15
START_KINDS = frozenset(("number", "open", "name", "function", "frac", "op"))
WORDS_NOT_BEFORE = frozenset("than average mean remainder mod modulo by".split())
WORDS_NOT_AFTER = frozenset(
    "more less fewer greater larger smaller higher lower times short or to".split()
)
REMAINDER_PATTERN = re.compile(r"remainder|rem|R|r|余数?")


@dataclass(frozen=True)
class Equation:
    """One stated sum of a text at `[start, end)`.

    `holds` is None if it cannot be checked, and `why` gives the reason. `formula` and `stated` are
    the two sides as written. `[wrong_start, wrong_end)` is the stated value, and `instead` the
    computed one.
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


def _compare_sides(
    text: str, formula: FormulaNode, stated: FormulaNode, is_about: bool
) -> tuple[bool | None, str, str]:
    """Return whether the sides agree, the true value, and why it could not be checked."""
    try:
        if formula.names or stated.names:
            sides = (formula, stated)
            gaps = [_subtract_sides(sides, Fraction(n)) for n in range(4)]
            if gaps[0] == 0 and gaps == [n * gaps[1] for n in range(4)]:
                return gaps[1] == 0, "", "the two sides differ"
            return False if len(set(gaps)) == 1 else None, "", "the two sides differ"
        units, written = (
            find_amount_units(text, formula) | find_amount_units(text, stated),
            read_stated_value(stated),
        )
        if len(set(units.values())) > 1:
            sums = [convert_to_base_units(side, units) for side in (formula, stated)]
            if not sums[0] or not sums[1] or written is None or not written.value:
                return None, "", "its amounts are in different units"
            true, stated_sum = evaluate(sums[0]), read_stated_value(sums[1], is_about)
            by = evaluate(sums[1]) / written.value
            return (
                stated_sum is not None and is_rounded_value(true, stated_sum),
                format_value(true / by),
                "",
            )
        true, written = evaluate(formula), read_stated_value(stated, is_about)
        if written is None:  # the other side is a further step of the computation
            is_rounded = any(node.op == "number" and node.step < 1 for node in stated.walk())
            share = ONE_DECIMAL_TOLERANCE if is_rounded else EXACT_TOLERANCE
            return abs(true - evaluate(stated)) <= share * abs(true), format_value(true), ""
        return _check_stated_value(text, formula, true, stated, written)
    except UndefinedValueError as error:
        return None, "", str(error)


def _subtract_sides(sides: tuple[FormulaNode, FormulaNode], unknown: Fraction) -> Fraction:
    """Return the difference between the sides of an equation for a value of the unknown."""
    return evaluate(sides[0], unknown) - evaluate(sides[1], unknown)


def _check_solution(
    sides: tuple[FormulaNode, FormulaNode], stated: FormulaNode, is_about: bool
) -> tuple[bool, str]:
    """Return whether a stated value, rounded as written, solves an equation; else the solution.

    Raises NoValue if that cannot be computed.
    """
    value, written = evaluate(stated), read_stated_value(stated, is_about)
    half = written.step / 2 if written and (written.step < 1 or is_about) else Fraction(0)
    low, high = (_subtract_sides(sides, value + by) for by in (-half, half))
    holds = low * high <= 0 if half else low == 0
    values = [_subtract_sides(sides, Fraction(n)) for n in range(3)] if not holds else []
    is_line = bool(values) and values[2] - values[1] == values[1] - values[0] != 0
    return holds, format_value(values[0] / (values[0] - values[1])) if is_line else ""


def _check_stated_value(
    text: str, formula: FormulaNode, true: Fraction, stated: FormulaNode, written: StatedValue
) -> tuple[bool, str, str]:
    """Return whether a written value is true, allowing for rounding, scales and shares."""
    readings, numbers = [true], [node for node in formula.walk() if node.op == "number"]
    if written.is_percent and any(node.value == 100 for node in numbers):
        readings.append(true / 100)
    if formula.op in ("+", "-") and formula.parts[1].op == "%" and formula.parts[0].op != "%":
        share = evaluate(formula.parts[1]) * (1 if formula.op == "+" else -1)
        readings.append(evaluate(formula.parts[0]) * (1 + share))  # 100 + 10 % = 110
    scale, factor = SCALE_PATTERN.search(text, stated.start, stated.end), 1
    if scale:
        factor = SCALE_FACTORS[scale[1] or scale[2]]
        if not SCALE_PATTERN.search(text, formula.start, formula.end) and abs(true) < factor:
            true *= factor  # 30 + 18 = 48 million
            readings.append(true)
    holds = any(is_rounded_value(value, written) for value in readings)
    is_percent = written.is_percent and abs(true) < 100
    return holds, f"{format_value(true / factor, is_percent)}{scale.group() if scale else ''}", ""


def find_equations(text: str, question: str = "") -> list[Equation]:
    """Return the sums that can be read in the text, in order; the question may state equations.

    Denied sums (“it is not 3 + 5 = 9”) and texts about other number systems are left out.
    """
    if PATTERNS.other_numbers.search(text):
        return []
    finder = _Finder(text, read_tokens(text))
    if "=" in question:
        question_finder = _Finder(question, read_tokens(question))
        question_finder.find_all()
        finder.unsolved = question_finder.unsolved
    equations = finder.find_all()[:MAX_EQUATIONS]
    return [
        one
        for one in equations
        if not PATTERNS.denied.search(text[max(0, one.start - 300) : one.start])
    ]


@dataclass
class _Finder:
    """Checks the relations of a text from left to right."""

    text: str
    tokens: list[SumToken]
    equations: list[Equation] = field(default_factory=list)
    anchor: FormulaNode | None = None  # the last sum of the current chain of relations
    unsolved: list[tuple[FormulaNode, FormulaNode]] = field(
        default_factory=list
    )  # equations with an unknown
    is_solved: bool = False

    def find_all(self) -> list[Equation]:
        last = -1
        for place, token in enumerate(self.tokens):
            if token.kind == "break":
                self.anchor = None
            if token.kind == "relation":
                left = self.left_side(last, place)
                if left is None or left.names or left.is_worked:
                    self.anchor = None
                self.check_relation(place, left)
                last = place
        return self.equations

    def left_side(self, after: int, place: int) -> FormulaNode | None:
        """Return the longest sum that ends before the relation."""
        first = place
        while first - 1 > max(after, place - 1 - MAX_SIDE_TOKENS):
            if self.tokens[first - 1].kind == "break":
                break
            first -= 1
        for start in range(first, place):
            with contextlib.suppress(FormulaSyntaxError):
                if self.may_start(start, first):
                    node, end = parse_sum(self.tokens, start, place)
                    if end == place:
                        return node
        return None

    def may_start(self, place: int, first: int) -> bool:
        """Return True if a sum may begin here: the preceding token must not belong to it."""
        token = self.tokens[place]
        if token.kind not in START_KINDS:
            return False
        if place == first:
            return token.kind != "op" or token.sign == "-"
        before = self.tokens[place - 1]
        if token.kind == "op" or before.sign.lower() in WORDS_NOT_BEFORE:
            return False
        if before.kind == "name":
            return token.is_far and before.sign not in "xyz"
        if before.kind == "word":
            return token.is_far or token.sign != "("
        if before.kind == "open":  # "about 1,123 a day (410,000 / 365 = 1,123)"
            outer = self.tokens[place - 2] if place - 2 >= first else None
            return outer is None or (before.is_far and outer.kind in ("word", "name"))
        return before.kind in ("about", "dots") and token.kind == "number"

    def right_side(self, place: int) -> tuple[FormulaNode, int, bool] | None:
        """Return the longest sum after the relation, the index after it, and if it is “about”."""
        start, is_about = place + 1, self.tokens[place].sign == "≈"
        while start < len(self.tokens) and self.tokens[start].kind == "about":
            word = self.tokens[start]
            is_about |= self.text[word.start : word.end].lower() != "exactly"
            start += 1
        kinds = [token.kind for token in self.tokens[start : start + MAX_TOKENS]]
        length = next((n for n, kind in enumerate(kinds) if kind in ("break", "relation")), None)
        try:
            node, end = parse_sum(
                self.tokens, start, start + (len(kinds) if length is None else length)
            )
            if self.tokens[end - 1].sign == "!":  # "so 2 + 2 = 4!"
                node, end = parse_sum(self.tokens, start, end - 1)
        except FormulaSyntaxError:
            return None
        after = self.tokens[end] if end < len(self.tokens) else None
        if after and (
            after.kind in ("number", "op", "name", "of")
            or after.sign in ("bad", ":", "：")
            or REMAINDER_PATTERN.fullmatch(after.sign)
        ):
            return None
        is_rest = after and end + 1 < len(self.tokens) and self.tokens[end + 1].kind == "number"
        if after and after.kind == "dots" and is_rest:
            return None  # 17 ÷ 5 = 3……2
        return node, end, is_about or bool(after and after.kind == "dots")

    def check_relation(self, place: int, left: FormulaNode | None) -> None:
        """Read and check one relation."""
        side = self.right_side(place)
        if side is None:
            self.anchor = None
            return
        right, end, is_about = side
        if self.tokens[place].sign == "is" and not self.is_sum_relation(left, right, place, end):
            return
        if left is not None and (left.names or right.names):
            self.check_unknown(left, right, is_about=is_about)
        elif left is not None and left.is_worked:
            self.anchor = right if right.is_worked else left
            self.add_comparison(left, right, is_about=is_about)
        elif right.is_worked:
            # “95 % CI = …”: words stand between the value and the relation.
            is_stated = left is not None and read_stated_value(left) is not None
            is_beside = left is not None and self.tokens[place - 1].end <= left.end
            if left and is_stated and is_beside and not self.is_number_range(right):
                self.add_comparison(right, left, is_about=False)
            self.anchor = right
        elif self.anchor is not None:
            self.add_comparison(self.anchor, right, is_about=is_about)

    def check_unknown(self, left: FormulaNode, right: FormulaNode, *, is_about: bool) -> None:
        """Handle an equation to solve, its solution, or a step that holds for every value."""
        if left.op == "name" and not right.names:
            same = [pair for pair in self.unsolved if (pair[0].names | pair[1].names) == left.names]
            self.is_solved = bool(same)
            with contextlib.suppress(UndefinedValueError):
                holds, instead = _check_solution(same[0], right, is_about) if same else (None, "")
                why = "" if holds or instead else "it does not solve the equation"
                if same:
                    self.add_equation(left, right, (holds, instead, why))
        elif len(left.names | right.names) == 1:
            if left.is_worked and left.names == right.names:
                self.add_comparison(left, right, is_about=False)
            self.unsolved = [*([] if self.is_solved else self.unsolved), (left, right)]
            self.is_solved = False

    def is_number_range(self, node: FormulaNode) -> bool:
        """Return True for “1.5-2.8” beside an equals sign, which is probably a range."""
        is_plain = node.op == "-" and not any(part.parts for part in node.parts)
        return is_plain and " " not in self.text[node.start : node.end]

    def is_sum_relation(
        self, left: FormulaNode | None, right: FormulaNode, place: int, end: int
    ) -> bool:
        """Return True if “is” stands between a sum and its value."""
        if left is None or not left.is_worked or read_stated_value(right) is None:
            return False
        if end < len(self.tokens) and self.tokens[end].sign.lower() in WORDS_NOT_AFTER:
            return False
        return any(
            t.kind in ("of", "function", "raise")
            or (t.kind == "op" and (t.sign in "*+^" or t.is_far or self.text[t.start] > "\u4e00"))
            for t in self.tokens[:place]
            if t.start >= left.start
        )

    def add_comparison(self, formula: FormulaNode, stated: FormulaNode, *, is_about: bool) -> None:
        holds, instead, why = _compare_sides(self.text, formula, stated, is_about)
        if (holds is not None or why) and not (formula.names and holds is None):
            self.add_equation(formula, stated, (holds, instead, "" if holds or instead else why))

    def add_equation(
        self, formula: FormulaNode, stated: FormulaNode, verdict: tuple[bool | None, str, str]
    ) -> None:
        start, end = min(formula.start, stated.start), max(formula.end, stated.end)
        written = self.text[formula.start : formula.end]
        value = self.text[stated.start : stated.end]
        equation = Equation(start, end, written, value, *verdict, stated.start, stated.end)
        self.equations.append(equation)


def find_changes(text: str, language: str = "en") -> Iterator[Equation]:
    """Yield changes in words: "from 68,000 to 90,000, an increase of 22,000", "从50增长20%到60"."""
    low = lower_text(normalize_chars(text))
    lists = load_vocabulary(language).own
    start_words, end_words, gain_words = (
        match_any([word for name in names for word in lists.get(name, ())])
        for names in (["from"], ["to", "onto"], ["change"])
    )
    figures = find_quantities(text, language) if gain_words and re.search(gain_words, low) else []
    figures = [q for q in figures if q.low == q.high and not q.ordinal]
    for trio in zip(figures, figures[1:], figures[2:], strict=False):
        for first, last, gain in (trio, (trio[1], trio[2], trio[0]), (trio[0], trio[2], trio[1])):
            gaps = {
                q: low[before.end if before else max(0, q.start - 40) : q.start]
                for before, q in zip((None, *trio), trio, strict=False)
            }
            is_worded = (
                re.search(rf"(?<![a-z])(?:{start_words})\s*$", gaps[first])
                and re.search(rf"(?:{end_words})\s*$", gaps[last])
                and re.search(gain_words, gaps[gain])
            )
            is_alike = first.unit == last.unit and gain.unit in ("percent", first.unit)
            is_split = re.search(r"[.!?;]\s|[。！？；]", low[trio[0].end : trio[2].start])
            if is_worded and is_alike and not is_split and (gain.unit != "percent" or first.low):
                yield _check_change(first, last, gain)


def _check_change(first: Quantity, last: Quantity, gain: Quantity) -> Equation:
    start, end, stated = (Fraction(repr(q.low)) for q in (first, last, gain))
    true = abs(end - start) * (100 / abs(start) if gain.unit == "percent" else 1)
    holds = is_rounded_value(
        true, StatedValue(abs(stated), Fraction(repr(gain.step)), is_about=True)
    )
    formula = f"from {first.text} to {last.text}"
    begin, stop = min(first.start, gain.start), max(last.end, gain.end)
    return Equation(
        begin, stop, formula, gain.text, holds, format_value(true), "", gain.start, gain.end
    )


def check_sums(text: str, question: str = "", language: str = "en") -> list[Equation]:
    """Return the sums that a text states, and whether it answers the sum that the question asks.

    Raises InputError if the text is too long.
    """
    for written in (text, question):
        if len(written) > MAX_TEXT_CHARS:
            raise InputError(
                f"Expected a text of at most {MAX_TEXT_CHARS:,} characters, found "
                f"{len(written):,}; "
                "give a statement of it."
            )
    change_language = "zh" if re.search("[\u4e00-\u9fff]", text) else language
    equations = [*find_equations(text, question), *find_changes(text, change_language)]
    answer = _check_asked_sum(text, question)
    is_new = answer is not None and all(one.wrong_end != answer.wrong_end for one in equations)
    if answer is not None and (is_new or answer.holds is False):
        equations = [one for one in equations if one.wrong_end != answer.wrong_end] + [answer]
    return sorted(equations, key=lambda one: (one.start, one.end))


def _check_asked_sum(text: str, question: str) -> Equation | None:
    """Compare the last number of the text with the sum asked for: 计算：20.11*37-2011*0.82=."""
    match = PATTERNS.asked.match(question) if len(question) <= MAX_QUESTION_CHARS else None
    numbers = _find_written_numbers(text) if match else []
    with contextlib.suppress(InputError, UndefinedValueError):
        node = parse_formula(match["sum"]) if match and numbers else None
        if node and node.is_worked:
            return _compare_with_number(text, question.strip(), evaluate(node), numbers[-1])
    return None


def _find_written_numbers(text: str) -> list[FormulaNode]:
    """Return every written number, with its sign, fraction bar and per cent sign."""
    tokens, nodes, place = read_tokens(text), [], 0
    while place < len(tokens):
        is_signed = tokens[place].sign == "-" and (
            not place or tokens[place - 1].kind in ("relation", "break", "word", "open", "about")
        )
        stop = place + is_signed + 1
        while stop < len(tokens) and (tokens[stop].kind == "percent" or tokens[stop].sign == "/"):
            stop += 1 + (tokens[stop].sign == "/")
        try:
            node, place = parse_sum(tokens, place, stop)
            nodes.append(node)
        except FormulaSyntaxError:
            place += 1
    return nodes


def _compare_with_number(text: str, formula: str, true: Fraction, node: FormulaNode) -> Equation:
    stated = read_stated_value(node) or StatedValue(evaluate(node), Fraction(0))
    instead = format_value(true, stated.is_percent)
    start, end = node.start, node.end
    holds = is_rounded_value(true, stated)
    return Equation(start, end, formula, text[start:end], holds, instead, "", start, end)


def check_formula(text: str, formula: str) -> list[Equation]:
    """Compare the value of a formula with the number that the text states for it.

    That is a number of the text that is not part of the formula. If there are several and none is
    right, it stays open which was meant. Raises InputError if the formula is invalid, holds an
    unknown or cannot be evaluated.
    """
    if "=" in formula:
        return find_equations(formula)
    node = parse_formula(formula)
    try:
        true = evaluate(node)
    except UndefinedValueError as error:
        raise InputError(
            f"Expected a formula that has a value, found that {error} in “{formula[:80]}”."
        ) from error
    formula_values = {evaluate(one) for one in node.walk() if one.op in ("number", "%")} - {true}
    stated = [one for one in _find_written_numbers(text) if evaluate(one) not in formula_values]
    equations = [_compare_with_number(text, formula, true, one) for one in stated]
    right = [one for one in equations if one.holds]
    if not right and len(equations) != 1:
        why = "the text states several values" if equations else "the text states no value for it"
        return [Equation(0, len(text), formula, "", None, format_value(true), why)]
    return [(right or equations)[-1]]


class CalculatorInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text with calculations.

    `text` is the statement. `formula` is what it should come to, where the text does not write it
    out: numbers, + - * / ^, brackets, %, sqrt. `question` is what the text answers, where that
    asks for a calculation. `language` is an ISO 639-1 code.
    """

    text: str
    formula: str = ""
    question: str = ""
    language: str = "en"


def check_calculations(given: CalculatorInput, tool_context: ToolContext) -> ToolAnswer:
    """Check every calculation of the text; the first wrong one decides.

    Raises InputError if the text is too long, or the formula is invalid.
    """
    formula = given.formula.strip()
    checks = check_formula(given.text, given.formula) if formula else None
    equations = check_sums(given.text, given.question, given.language) if checks is None else checks
    details = {
        "equations": [
            {
                "formula": one.formula, "stated": one.stated, "worked_out": one.instead,
                "holds": one.holds, "why": one.why, "start": one.start, "end": one.end,
                "result": (one.wrong_start, one.wrong_end),
            }
            for one in equations
        ]
    }  # fmt: skip
    wrong, right = ([one for one in equations if one.holds is holds] for holds in (False, True))
    if wrong:
        first = wrong[0]
        start, end = (None, None) if "=" in formula else (first.wrong_start, first.wrong_end)
        category = "number_or_date" if first.instead else "reasoning"
        return ToolAnswer(
            "hallucinated",
            _describe_wrong(wrong),
            details,
            P_IF_WRONG,
            start,
            end,
            first.instead,
            category,
        )
    if right:
        more = f" and {len(right) - 1} more" if len(right) > 1 else ""
        first_right = f"{right[0].formula} = {right[0].stated}{more}"
        words = f"The arithmetic holds: {first_right}. What the figures rest on was not checked."
        return ToolAnswer("supported", words, details, P_IF_RIGHT)
    words = "The text states no calculation that can be read."
    words = (
        f"“{equations[0].formula[:80]}” is not worked out: {equations[0].why}."
        if equations
        else words
    )
    return ToolAnswer("unclear", words, details, has_something=bool(equations))


def _describe_wrong(wrong: Sequence[Equation]) -> str:
    sentences = [
        f"{one.formula} is {one.instead}, not {one.stated}"
        if one.instead
        else f"{one.formula} = {one.stated}: {one.why}"
        for one in wrong[:MAX_LISTED_ERRORS]
    ]
    more = (
        f"; {len(wrong) - MAX_LISTED_ERRORS} more are wrong"
        if len(wrong) > MAX_LISTED_ERRORS
        else ""
    )
    return f"{'; '.join(sentences)}{more}."


def read_calculation(statement: Statement | None, case: Case) -> CalculatorInput | None:
    """Return the statement if it has a calculation; the last one is checked with the question."""
    text = case.response if statement is None else case.response[statement.start : statement.end]
    is_last = statement is None or not case.response[statement.end :].strip()
    question = case.question if is_last and len(case.question) <= MAX_TEXT_CHARS else ""
    # A sentence that is too long is cut anywhere, also within a sum.
    is_cut = statement is not None and any(
        joint.start(1) < place < joint.end(1)
        for place in (statement.start, statement.end)
        for joint in PATTERNS.joint.finditer(case.response, max(0, place - 20), place + 20)
    )
    if is_cut or len(text) > MAX_TEXT_CHARS or not check_sums(text, question, case.language):
        return None
    return CalculatorInput(text, question=question, language=case.language)


TOOL = Tool(
    name="calculator",
    description=load_words("descriptions")["calculator"],
    takes=CalculatorInput,
    work=check_calculations,
    examples=load_examples("calculator", CalculatorInput),
    reads=read_calculation,
)
