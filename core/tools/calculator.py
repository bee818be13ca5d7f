"""The calculator: works out the sums that a text states, and checks each.

A stated sum is two sides about “=”, “≈”, “equals”, 等于, or about “is” and 是 where a sum plainly
stands before it; nothing is said of a side that a sign ties to words. Source: HaluAgent 2.2.
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
    MOST_TOKENS,
    ONE_DECIMAL_SHARE,
    SCALE,
    SCALES,
    SURE_SHARE,
    Node,
    NoValue,
    StatedValue,
    Token,
    Unreadable,
    agrees,
    evaluate,
    in_base_units,
    parse_formula,
    parse_sum,
    read_tokens,
    show,
    stated_value,
    units_of,
)
from core.tools.quantities import Quantity, find_quantities
from core.tools.registry import Answer, Bench, Tool, read_examples
from core.tools.vocabulary import PatternTable, either, lower, plain, read_words, vocabulary

WRITTEN = PatternTable("calculator")
LONGEST_TEXT, LONGEST_QUESTION, LONGEST_SIDE, MOST_EQUATIONS, MOST_TOLD = 20_000, 500, 120, 200, 3
WRONG_P, RIGHT_P = 0.95, 0.15
STARTS = frozenset(("number", "open", "name", "function", "frac", "op"))
NOT_BEFORE = frozenset("than average mean remainder mod modulo by".split())
NOT_AFTER = frozenset(
    "more less fewer greater larger smaller higher lower times short or to".split()
)
REMAINDER = re.compile(r"remainder|rem|R|r|余数?")


@dataclass(frozen=True)
class Equation:
    """One stated sum of a text at `[start, end)`.

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


def _compare(
    text: str, formula: Node, stated: Node, is_about: bool
) -> tuple[bool | None, str, str]:
    """Whether the stated side is what the formula comes to; what that is; why it cannot be told."""
    try:
        if formula.names or stated.names:
            sides = (formula, stated)
            off = [_off(sides, Fraction(n)) for n in range(4)]
            if off[0] == 0 and off == [n * off[1] for n in range(4)]:
                return off[1] == 0, "", "the two sides differ"
            return False if len(set(off)) == 1 else None, "", "the two sides differ"
        units, written = units_of(text, formula) | units_of(text, stated), stated_value(stated)
        if len(set(units.values())) > 1:
            sums = [in_base_units(side, units) for side in (formula, stated)]
            if not sums[0] or not sums[1] or written is None or not written.value:
                return None, "", "its amounts are in different units"
            true, told = evaluate(sums[0]), stated_value(sums[1], is_about)
            by = evaluate(sums[1]) / written.value
            return told is not None and agrees(true, told), show(true / by), ""
        true, written = evaluate(formula), stated_value(stated, is_about)
        if written is None:  # a side that works the other out further
            is_rounded = any(node.op == "number" and node.step < 1 for node in stated.walk())
            share = ONE_DECIMAL_SHARE if is_rounded else SURE_SHARE
            return abs(true - evaluate(stated)) <= share * abs(true), show(true), ""
        return _states(text, formula, true, stated, written)
    except NoValue as error:
        return None, "", str(error)


def _off(sides: tuple[Node, Node], unknown: Fraction) -> Fraction:
    """By how much the sides of an equation differ where its unknown has that value."""
    return evaluate(sides[0], unknown) - evaluate(sides[1], unknown)


def _solves(sides: tuple[Node, Node], stated: Node, is_about: bool) -> tuple[bool, str]:
    """Whether a stated value solves an equation, as rounded as it is written; else what does.

    Raises NoValue if that cannot be worked out.
    """
    value, written = evaluate(stated), stated_value(stated, is_about)
    half = written.step / 2 if written and (written.step < 1 or is_about) else Fraction(0)
    low, high = (_off(sides, value + by) for by in (-half, half))
    holds = low * high <= 0 if half else low == 0
    ends = [_off(sides, Fraction(n)) for n in range(3)] if not holds else []
    is_line = bool(ends) and ends[2] - ends[1] == ends[1] - ends[0] != 0
    return holds, show(ends[0] / (ends[0] - ends[1])) if is_line else ""


def _states(
    text: str, formula: Node, true: Fraction, stated: Node, written: StatedValue
) -> tuple[bool, str, str]:
    """Whether a written value is the true one, also as people round, scale and share it."""
    ways, numbers = [true], [node for node in formula.walk() if node.op == "number"]
    if written.is_percent and any(node.value == 100 for node in numbers):
        ways.append(true / 100)
    if formula.op in ("+", "-") and formula.parts[1].op == "%" and formula.parts[0].op != "%":
        share = evaluate(formula.parts[1]) * (1 if formula.op == "+" else -1)
        ways.append(evaluate(formula.parts[0]) * (1 + share))  # 100 + 10 % = 110
    scale, factor = SCALE.search(text, stated.start, stated.end), 1
    if scale:
        factor = SCALES[scale[1] or scale[2]]
        if not SCALE.search(text, formula.start, formula.end) and abs(true) < factor:
            true *= factor  # 30 + 18 = 48 million
            ways.append(true)
    holds = any(agrees(value, written) for value in ways)
    is_percent = written.is_percent and abs(true) < 100
    return holds, f"{show(true / factor, is_percent)}{scale.group() if scale else ''}", ""


def equations_in(text: str, question: str = "") -> list[Equation]:
    """The sums that can be read in the text, in order; the question may state equations to solve.

    A denied one (“it is not 3 + 5 = 9”) and texts about other number systems are left out.
    """
    if WRITTEN.other_numbers.search(text):
        return []
    finder = _Finder(text, read_tokens(text))
    if "=" in question:
        asked = _Finder(question, read_tokens(question))
        asked.found()
        finder.asked = asked.asked
    found = finder.found()[:MOST_EQUATIONS]
    return [
        one for one in found if not WRITTEN.denied.search(text[max(0, one.start - 300) : one.start])
    ]


@dataclass
class _Finder:
    """Goes through a text's relations from left to right."""

    text: str
    tokens: list[Token]
    equations: list[Equation] = field(default_factory=list)
    anchor: Node | None = None  # the last sum of the chain that is being read
    asked: list[tuple[Node, Node]] = field(default_factory=list)  # equations with an unknown
    is_solved: bool = False

    def found(self) -> list[Equation]:
        last = -1
        for place, token in enumerate(self.tokens):
            if token.kind == "break":
                self.anchor = None
            if token.kind == "relation":
                left = self.left(last, place)
                if left is None or left.names or left.is_worked:
                    self.anchor = None
                self.relation(place, left)
                last = place
        return self.equations

    def left(self, after: int, place: int) -> Node | None:
        """The longest sum that ends before the relation."""
        first = place
        while first - 1 > max(after, place - 1 - LONGEST_SIDE):
            if self.tokens[first - 1].kind == "break":
                break
            first -= 1
        for start in range(first, place):
            with contextlib.suppress(Unreadable):
                if self.may_start(start, first):
                    node, end = parse_sum(self.tokens, start, place)
                    if end == place:
                        return node
        return None

    def may_start(self, place: int, first: int) -> bool:
        """Return True where a sum may begin: what stands before must be no part of it."""
        token = self.tokens[place]
        if token.kind not in STARTS:
            return False
        if place == first:
            return token.kind != "op" or token.sign == "-"
        before = self.tokens[place - 1]
        if token.kind == "op" or before.sign.lower() in NOT_BEFORE:
            return False
        if before.kind == "name":
            return token.is_far and before.sign not in "xyz"
        if before.kind == "word":
            return token.is_far or token.sign != "("
        if before.kind == "open":  # "about 1,123 a day (410,000 / 365 = 1,123)"
            outer = self.tokens[place - 2] if place - 2 >= first else None
            return outer is None or (before.is_far and outer.kind in ("word", "name"))
        return before.kind in ("about", "dots") and token.kind == "number"

    def right(self, place: int) -> tuple[Node, int, bool] | None:
        """The longest sum behind the relation, the place after it, and whether it is “about”."""
        start, is_about = place + 1, self.tokens[place].sign == "≈"
        while start < len(self.tokens) and self.tokens[start].kind == "about":
            word = self.tokens[start]
            is_about |= self.text[word.start : word.end].lower() != "exactly"
            start += 1
        kinds = [token.kind for token in self.tokens[start : start + MOST_TOKENS]]
        length = next((n for n, kind in enumerate(kinds) if kind in ("break", "relation")), None)
        try:
            node, end = parse_sum(
                self.tokens, start, start + (len(kinds) if length is None else length)
            )
            if self.tokens[end - 1].sign == "!":  # "so 2 + 2 = 4!"
                node, end = parse_sum(self.tokens, start, end - 1)
        except Unreadable:
            return None
        after = self.tokens[end] if end < len(self.tokens) else None
        if after and (
            after.kind in ("number", "op", "name", "of")
            or after.sign in ("bad", ":", "：")
            or REMAINDER.fullmatch(after.sign)
        ):
            return None
        is_rest = after and end + 1 < len(self.tokens) and self.tokens[end + 1].kind == "number"
        if after and after.kind == "dots" and is_rest:
            return None  # 17 ÷ 5 = 3……2
        return node, end, is_about or bool(after and after.kind == "dots")

    def relation(self, place: int, left: Node | None) -> None:
        """Read and check one relation."""
        side = self.right(place)
        if side is None:
            self.anchor = None
            return
        right, end, is_about = side
        if self.tokens[place].sign == "is" and not self.is_sum(left, right, place, end):
            return
        if left is not None and (left.names or right.names):
            self.with_unknown(left, right, is_about=is_about)
        elif left is not None and left.is_worked:
            self.anchor = right if right.is_worked else left
            self.add(left, right, is_about=is_about)
        elif right.is_worked:
            # “95 % CI = …”: something is said between the value and the relation.
            is_stated = left is not None and stated_value(left) is not None
            is_beside = left is not None and self.tokens[place - 1].end <= left.end
            if left and is_stated and is_beside and not self.is_span(right):
                self.add(right, left, is_about=False)
            self.anchor = right
        elif self.anchor is not None:
            self.add(self.anchor, right, is_about=is_about)

    def with_unknown(self, left: Node, right: Node, *, is_about: bool) -> None:
        """An equation to be solved, the value that solves it, or a step that holds for all."""
        if left.op == "name" and not right.names:
            same = [pair for pair in self.asked if (pair[0].names | pair[1].names) == left.names]
            self.is_solved = bool(same)
            with contextlib.suppress(NoValue):
                holds, instead = _solves(same[0], right, is_about) if same else (None, "")
                why = "" if holds or instead else "it does not solve the equation"
                if same:
                    self.state(left, right, (holds, instead, why))
        elif len(left.names | right.names) == 1:
            if left.is_worked and left.names == right.names:
                self.add(left, right, is_about=False)
            self.asked = [*([] if self.is_solved else self.asked), (left, right)]
            self.is_solved = False

    def is_span(self, node: Node) -> bool:
        """Return True for “1.5-2.8” beside an equals sign: from one to the other as like as not."""
        is_plain = node.op == "-" and not any(part.parts for part in node.parts)
        return is_plain and " " not in self.text[node.start : node.end]

    def is_sum(self, left: Node | None, right: Node, place: int, end: int) -> bool:
        """Return True where “is” stands between a sum and its value."""
        if left is None or not left.is_worked or stated_value(right) is None:
            return False
        if end < len(self.tokens) and self.tokens[end].sign.lower() in NOT_AFTER:
            return False
        return any(
            t.kind in ("of", "function", "raise")
            or (t.kind == "op" and (t.sign in "*+^" or t.is_far or self.text[t.start] > "\u4e00"))
            for t in self.tokens[:place]
            if t.start >= left.start
        )

    def add(self, formula: Node, stated: Node, *, is_about: bool) -> None:
        holds, instead, why = _compare(self.text, formula, stated, is_about)
        if (holds is not None or why) and not (formula.names and holds is None):
            self.state(formula, stated, (holds, instead, "" if holds or instead else why))

    def state(self, formula: Node, stated: Node, told: tuple[bool | None, str, str]) -> None:
        sides = [(side.start, side.end) for side in (formula, stated)]
        whole = min(start for start, _ in sides), max(end for _, end in sides)
        written, said = (self.text[start:end] for start, end in sides)
        holds, instead, why = told
        self.equations.append(Equation(*whole, written, said, holds, instead, why, *sides[1]))


def told_changes(text: str, language: str = "en") -> Iterator[Equation]:
    """Changes told in words: "from 68,000 to 90,000, an increase of 22,000", "从50增长20%到60"."""
    own, low = vocabulary(language).own, lower(plain(text))
    led, to, changed = (
        either([word for name in names for word in own.get(name, ())])
        for names in (["from"], ["to", "onto"], ["change"])
    )
    figures = find_quantities(text, language) if changed and re.search(changed, low) else []
    figures = [q for q in figures if q.low == q.high and not q.ordinal]
    for trio in zip(figures, figures[1:], figures[2:], strict=False):
        for first, last, told in (trio, (trio[1], trio[2], trio[0]), (trio[0], trio[2], trio[1])):
            gaps = {
                q: low[before.end if before else max(0, q.start - 40) : q.start]
                for before, q in zip((None, *trio), trio, strict=False)
            }
            is_told = (
                re.search(rf"(?<![a-z])(?:{led})\s*$", gaps[first])
                and re.search(rf"(?:{to})\s*$", gaps[last])
                and re.search(changed, gaps[told])
            )
            is_one = first.unit == last.unit and told.unit in ("percent", first.unit)
            is_cut = re.search(r"[.!?;]\s|[。！？；]", low[trio[0].end : trio[2].start])
            if is_told and is_one and not is_cut and (told.unit != "percent" or first.low):
                yield _change(first, last, told)


def _change(first: Quantity, last: Quantity, told: Quantity) -> Equation:
    start, end, said = (Fraction(repr(q.low)) for q in (first, last, told))
    by = abs(end - start) * (100 / abs(start) if told.unit == "percent" else 1)
    holds = agrees(by, StatedValue(abs(said), Fraction(repr(told.step)), is_about=True))
    whole = min(first.start, told.start), max(last.end, told.end)
    formula = f"from {first.text} to {last.text}"
    return Equation(*whole, formula, told.text, holds, show(by), "", told.start, told.end)


def check_sums(text: str, question: str = "", language: str = "en") -> list[Equation]:
    """The sums that a text states, and whether it gives what the question asks to work out.

    Raises InputError if the text is too long.
    """
    for given in (text, question):
        if len(given) > LONGEST_TEXT:
            raise InputError(
                f"Expected a text of at most {LONGEST_TEXT:,} characters, found {len(given):,}; "
                "give a statement of it."
            )
    told_in = "zh" if re.search("[\u4e00-\u9fff]", text) else language
    found = [*equations_in(text, question), *told_changes(text, told_in)]
    answer = _asked_answer(text, question)
    is_new = answer is not None and all(one.wrong_end != answer.wrong_end for one in found)
    if answer is not None and (is_new or answer.holds is False):
        found = [one for one in found if one.wrong_end != answer.wrong_end] + [answer]
    return sorted(found, key=lambda one: (one.start, one.end))


def _asked_answer(text: str, question: str) -> Equation | None:
    """The last number of the text against the sum that is asked for: 计算：20.11*37-2011*0.82=."""
    asked = WRITTEN.asked.match(question) if len(question) <= LONGEST_QUESTION else None
    numbers = _numbers(text) if asked else []
    with contextlib.suppress(InputError, NoValue):
        node = parse_formula(asked["sum"]) if asked and numbers else None
        if node and node.is_worked:
            return _against(text, question.strip(), evaluate(node), numbers[-1])
    return None


def _numbers(text: str) -> list[Node]:
    """Every number that a text writes, with its sign, its fraction bar and per cent sign."""
    tokens, found, place = read_tokens(text), [], 0
    while place < len(tokens):
        is_signed = tokens[place].sign == "-" and (
            not place or tokens[place - 1].kind in ("relation", "break", "word", "open", "about")
        )
        stop = place + is_signed + 1
        while stop < len(tokens) and (tokens[stop].kind == "percent" or tokens[stop].sign == "/"):
            stop += 1 + (tokens[stop].sign == "/")
        try:
            node, place = parse_sum(tokens, place, stop)
            found.append(node)
        except Unreadable:
            place += 1
    return found


def _against(text: str, formula: str, true: Fraction, node: Node) -> Equation:
    stated = stated_value(node) or StatedValue(evaluate(node), Fraction(0))
    shown = show(true, stated.is_percent)
    place = (node.start, node.end)
    return Equation(*place, formula, text[slice(*place)], agrees(true, stated), shown, "", *place)


def check_formula(text: str, formula: str) -> list[Equation]:
    """What a formula comes to against the number that the text states for it.

    That is a number of the text which is not one of the formula's own. Several, of which none is
    right, leave it open which was meant. Raises InputError if the formula is none, holds an
    unknown or cannot be worked out.
    """
    if "=" in formula:
        return equations_in(formula)
    node = parse_formula(formula)
    try:
        true = evaluate(node)
    except NoValue as error:
        raise InputError(
            f"Expected a formula that has a value, found that {error} in “{formula[:80]}”."
        ) from error
    own = {evaluate(one) for one in node.walk() if one.op in ("number", "%")} - {true}
    stated = [one for one in _numbers(text) if evaluate(one) not in own]
    found = [_against(text, formula, true, one) for one in stated]
    right = [one for one in found if one.holds]
    if not right and len(found) != 1:
        why = "the text states several values" if found else "the text states no value for it"
        return [Equation(0, len(text), formula, "", None, show(true), why)]
    return [(right or found)[-1]]


class Sums(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text with calculations.

    `text` is the statement. `formula` is what it should come to, where the text does not write it
    out: numbers, + - * / ^, brackets, %, sqrt. `question` is what the text answers, where that
    asks for a calculation. `language` is an ISO 639-1 code.
    """

    text: str
    formula: str = ""
    question: str = ""
    language: str = "en"


def work(given: Sums, bench: Bench) -> Answer:
    """Every calculation of the text, and the first that is wrong.

    Raises InputError if the text is too long, or the formula is none.
    """
    formula = given.formula.strip()
    checks = check_formula(given.text, given.formula) if formula else None
    found = check_sums(given.text, given.question, given.language) if checks is None else checks
    gave = {
        "equations": [
            {
                "formula": one.formula, "stated": one.stated, "worked_out": one.instead,
                "holds": one.holds, "why": one.why, "start": one.start, "end": one.end,
                "result": (one.wrong_start, one.wrong_end),
            }
            for one in found
        ]
    }  # fmt: skip
    wrong, right = ([one for one in found if one.holds is holds] for holds in (False, True))
    if wrong:
        first = wrong[0]
        start, end = (None, None) if "=" in formula else (first.wrong_start, first.wrong_end)
        category = "number_or_date" if first.instead else "reasoning"
        return Answer(
            "hallucinated", _wrong_words(wrong), gave, WRONG_P, start, end, first.instead, category
        )
    if right:
        more = f" and {len(right) - 1} more" if len(right) > 1 else ""
        held = f"{right[0].formula} = {right[0].stated}{more}"
        words = f"The arithmetic holds: {held}. What the figures rest on was not checked."
        return Answer("supported", words, gave, RIGHT_P)
    words = "The text states no calculation that can be read."
    words = f"“{found[0].formula[:80]}” is not worked out: {found[0].why}." if found else words
    return Answer("unclear", words, gave, has_something=bool(found))


def _wrong_words(wrong: Sequence[Equation]) -> str:
    told = [
        f"{one.formula} is {one.instead}, not {one.stated}" if one.instead
        else f"{one.formula} = {one.stated}: {one.why}"
        for one in wrong[:MOST_TOLD]
    ]  # fmt: skip
    more = f"; {len(wrong) - MOST_TOLD} more are wrong" if len(wrong) > MOST_TOLD else ""
    return f"{'; '.join(told)}{more}."


def reads(statement: Statement | None, case: Case) -> Sums | None:
    """The statement, where a calculation can be read in it; the last one answers the question."""
    text = case.response if statement is None else case.response[statement.start : statement.end]
    is_last = statement is None or not case.response[statement.end :].strip()
    question = case.question if is_last and len(case.question) <= LONGEST_TEXT else ""
    # Where a sentence is too long it is cut anywhere, also within a sum.
    is_cut = statement is not None and any(
        joint.start(1) < place < joint.end(1)
        for place in (statement.start, statement.end)
        for joint in WRITTEN.joint.finditer(case.response, max(0, place - 20), place + 20)
    )
    if is_cut or len(text) > LONGEST_TEXT or not check_sums(text, question, case.language):
        return None
    return Sums(text, question=question, language=case.language)


TOOL = Tool(
    name="calculator",
    description=read_words("descriptions")["calculator"],
    takes=Sums,
    work=work,
    examples=read_examples("calculator", Sums),
    reads=reads,
)
