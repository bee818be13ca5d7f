"""What the calculator says of a text: every sum in it, the one a question asks for, or a formula.

Source: HaluAgent 2.2 and figure 4: `calculator(sentence, formula)`; ours finds sums by itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from core.errors import InputError
from core.tools.equations import Equation, equations_in
from core.tools.formula import formula_of
from core.tools.growth import told_sums
from core.tools.rounding import Stated, agrees, shown
from core.tools.sum_numbers import Token
from core.tools.sum_tokens import tokens_of
from core.tools.sum_tree import Node
from core.tools.working_out import NoValue, value_of

LONGEST_TEXT = 20_000
ASKED = re.compile(
    r"^\s*(?:(?:请|脱式|递等式|简便|直接)?(?:计算|口算|简算|求值|算一算|求)(?:下[面列][^：:]{0,8})?"
    r"|what\s+(?:is|are|does)|how much is|calculate|compute|evaluate|work out|solve|find)?"
    r"\s*[:：]?\s*"
    r"(?P<sum>.{3,400}?)\s*"
    r"(?:equal|=\s*[?？]?|等于(?:多少|几)|(?:是|得)(?:多少|几))?\s*[．.。?？!]*\s*$",
    re.IGNORECASE | re.DOTALL,
)


def found_in(text: str, question: str = "") -> list[Equation]:
    """The sums that a text states, and whether it gives what the question asks to work out.

    Equations with unknowns that the question states are taken into account. Offsets in `text`.

    Raises:
        InputError: the text is too long.
    """
    for given in (text, question):
        if len(given) > LONGEST_TEXT:
            raise InputError(
                f"Expected a text of at most {LONGEST_TEXT:,} characters, found {len(given):,}; "
                "give a statement of it."
            )
    before = f"{question}\n" if _has_unknown(question) else ""
    moved = [_moved(one, -len(before)) for one in equations_in(before + text)]
    found = [one for one in moved if one.start >= 0] + told_sums(text)
    answer = _answer(text, question)
    is_new = answer is not None and all(one.wrong_end != answer.wrong_end for one in found)
    if answer is not None and (is_new or answer.holds is False):
        found = [one for one in found if one.wrong_end != answer.wrong_end] + [answer]
    return sorted(found, key=lambda one: (one.start, one.end))


def _has_unknown(question: str) -> bool:
    return "=" in question.replace("＝", "=") and bool(re.search(r"[a-zA-Z]", question))


def _moved(one: Equation, by: int) -> Equation:
    return replace(
        one, start=one.start + by, end=one.end + by, wrong_start=one.wrong_start + by,
        wrong_end=one.wrong_end + by,
    )  # fmt: skip


def asked_sum(question: str) -> Node | None:
    """The sum that a question is, where it is nothing else: 计算：20.11*37-2011*0.82=."""
    asked = ASKED.match(question[:500])
    if asked is None or len(question) > 500:
        return None
    try:
        node = formula_of(asked["sum"])
    except InputError:
        return None
    return node if node.is_worked and not node.names else None


def _answer(text: str, question: str) -> Equation | None:
    """The last number of the text against the sum that is asked for."""
    node = asked_sum(question)
    if node is None:
        return None
    numbers = _numbers(text)
    if not numbers:
        return None
    try:
        true = value_of(node)
    except NoValue:
        return None
    stated, first, last = numbers[-1]
    return _equation(text, question.strip(), true, stated, (first, last))


def _equation(
    text: str, formula: str, true: Fraction, stated: Stated, place: tuple[Token, Token]
) -> Equation:
    start, end = place[0].start, place[1].end
    return Equation(
        start, end, formula, text[start:end], agrees(true, stated),
        shown(true, stated.is_percent), "", start, end,
    )  # fmt: skip


def _numbers(text: str) -> list[tuple[Stated, Token, Token]]:
    """Every number that a text writes, with its sign, its fraction bar and per cent sign."""
    tokens, found = tokens_of(text), []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token.kind != "number":
            continue
        value, step, first, last = token.value, token.step, token, token
        after = tokens[place : place + 2]
        if [one.kind for one in after] == ["operator", "number"] and after[0].sign == "/":
            if after[1].value:
                value, step, last = value / after[1].value, Fraction(0), after[1]
            place += 2
        is_percent = place < len(tokens) and tokens[place].kind == "percent"
        if is_percent:
            value, step, last = value / 100, step / 100, tokens[place]
        before = tokens[place - 2] if place > 1 and last is token and not is_percent else None
        if before is not None and before.sign == "-" and _is_negative(tokens, place - 2):
            value, first = -value, before
        found.append((Stated(value, step, token.is_whole, False, is_percent), first, last))
    return found


def _is_negative(tokens: Sequence[Token], place: int) -> bool:
    """Whether a minus has nothing before it that it could be taken from."""
    return place == 0 or tokens[place - 1].kind in ("relation", "break", "word", "open", "about")


def by_formula(text: str, formula: str) -> list[Equation]:
    """What a formula comes to against the number that the text states for it.

    That is a number of the text which is not one of the formula's own. Several, of which none is
    right, leave it open which was meant.

    Raises:
        InputError: the formula is none, holds an unknown or cannot be worked out.
    """
    if "=" in formula:
        return equations_in(formula)
    node = formula_of(formula)
    try:
        true = value_of(node)
    except NoValue as error:
        raise InputError(
            f"Expected a formula that has a value, found that {error} in “{formula[:80]}”."
        ) from error
    own = {value_of(one) for one in node.walk() if one.op in ("number", "percent")}
    stated = [(s, a, b) for s, a, b in _numbers(text) if s.value not in own or s.value == true]
    right = [(s, a, b) for s, a, b in stated if agrees(true, s)]
    if not right and len(stated) != 1:
        why = "the text states no value for it" if not stated else "the text states several values"
        return [Equation(0, len(text), formula, "", None, shown(true), why)]
    value, first, last = (right or stated)[-1]
    return [_equation(text, formula, true, value, (first, last))]
