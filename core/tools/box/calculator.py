"""The calculator: works out the sums that a text states, in figures or words.

Source: HaluAgent 2.2 (calculator), figures 3 and 4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from core.records import Case, Statement
from core.tools.calculator_work import LONGEST_TEXT, found_in
from core.tools.calculator_work import by_formula as check_formula
from core.tools.equations import Equation
from core.tools.toolbox import Answer, Bench, Example, Tool

WRONG_P, RIGHT_P = 0.95, 0.15
MOST_TOLD = 3
DESCRIPTION = """\
Works out arithmetic and says whether the stated result is right. Use it for a statement that states
a calculation: 3 + 5 = 8, 25 % of 80 is 20, 三加五等于八, x = 12 from an equation, growth in per
cent, units. Give the statement as `text`; every calculation in it is found and checked. Where it
states a result without the calculation, give that as `formula` in figures, without unknowns, such
as (1 + 2) * 3. Comes back: each calculation with its value, which results are wrong, and what they
should be. It knows nothing of facts: right arithmetic over wrong figures is right to it."""


# Where a sum goes on over a place, or a number.
JOINT = re.compile(r"(?=(\d\d|[\d)%][^\S\n]*[-+*/×÷=·−^][^\S\n]*[\d(]))")
NEAR = 20  # characters


class Sums(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text with calculations.

    `text` is the statement. `formula` is what it should come to, where the text does not write it
    out: numbers, + - * / ^, brackets, %, sqrt. `question` is what the text answers, where that
    asks for a calculation.
    """

    text: str
    formula: str = ""
    question: str = ""


def work(given: Sums, bench: Bench) -> Answer:
    """Every calculation of the text, and the first that is wrong.

    Raises:
        InputError: the text is too long, or the formula is none.
    """
    if given.formula.strip():
        found, is_in_text = check_formula(given.text, given.formula), "=" not in given.formula
    else:
        found, is_in_text = found_in(given.text, given.question), True
    gave = {"equations": [_shown(one) for one in found]}
    wrong = [one for one in found if one.holds is False]
    if wrong:
        first = wrong[0]
        start, end = (first.wrong_start, first.wrong_end) if is_in_text else (None, None)
        return Answer(
            "hallucinated", _wrong_words(wrong), gave, WRONG_P, start, end, first.instead,
            "number_or_date" if first.instead else "reasoning",
        )  # fmt: skip
    right = [one for one in found if one.holds]
    if right:
        return Answer("supported", _right_words(right), gave, RIGHT_P)
    why = found[0].why if found else ""
    words = f"“{found[0].formula[:80]}” is not worked out: {why}." if found else NOTHING
    return Answer("unclear", words, gave, has_something=bool(found))


NOTHING = "The text states no calculation that can be read."


def _shown(one: Equation) -> dict[str, Any]:
    """One calculation for the tool's view; offsets in the text, `result` those of its value."""
    return {
        "formula": one.formula, "stated": one.stated, "worked_out": one.instead,
        "holds": one.holds, "why": one.why, "start": one.start, "end": one.end,
        "result": (one.wrong_start, one.wrong_end),
    }  # fmt: skip


def _wrong_words(wrong: Sequence[Equation]) -> str:
    told = [
        f"{one.formula} is {one.instead}, not {one.stated}" if one.instead
        else f"{one.formula} = {one.stated}: {one.why}"
        for one in wrong[:MOST_TOLD]
    ]  # fmt: skip
    more = f"; {len(wrong) - MOST_TOLD} more are wrong" if len(wrong) > MOST_TOLD else ""
    return f"{'; '.join(told)}{more}."


def _right_words(right: Sequence[Equation]) -> str:
    first = f"{right[0].formula} = {right[0].stated}"
    count = f" and {len(right) - 1} more" if len(right) > 1 else ""
    return f"The arithmetic holds: {first}{count}. What the figures rest on was not checked."


def reads(statement: Statement | None, case: Case) -> Sums | None:
    """The statement, where a calculation can be read in it; the last one answers the question."""
    text = case.response if statement is None else case.response[statement.start : statement.end]
    is_last = statement is None or not case.response[statement.end :].strip()
    question = case.question if is_last and len(case.question) <= LONGEST_TEXT else ""
    if statement is not None and _cuts_sum(case.response, statement):
        return None
    if len(text) > LONGEST_TEXT or not found_in(text, question):
        return None
    return Sums(text, question=question)


def _cuts_sum(response: str, statement: Statement) -> bool:
    """Whether it begins or ends within a sum: where a sentence is too long it is cut anywhere."""
    return any(
        joint.start(1) < place < joint.end(1)
        for place in (statement.start, statement.end)
        for joint in JOINT.finditer(response, max(0, place - NEAR), place + NEAR)
    )


TOOL = Tool(
    name="calculator",
    description=DESCRIPTION,
    takes=Sums,
    work=work,
    examples=(
        Example(
            question="How long was the tour altogether?",
            response="The legs took 2.5 hours + 0.75 hours + 1.25 hours = 4 hours.",
            given=Sums("The legs took 2.5 hours + 0.75 hours + 1.25 hours = 4 hours."),
            label="hallucinated",
            thought="The sentence states a sum; I have it worked out.",
        ),
        Example(
            question="120的25%是多少？",
            response="120的25%是30。",
            given=Sums("120的25%是30。"),
            label="supported",
            thought="这句话说了一个计算的结果，用计算器核对。",
        ),
    ),
    reads=reads,
)
