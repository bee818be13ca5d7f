"""The calculator as a tool: what it takes from a case, what it says, what it gives for its view."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.concurrency import StopSignal
from core.schema.events import ToolUse
from core.schema.records import Case, Statement
from core.tools.calculator import check_sums, find_equations
from core.tools.registry import ToolContext, get_tool, read_input, use_tool
from tests.tools.corpus import rows, table
from tests.tools.test_arithmetic import PIECES, SECONDS, sums

BENCH = ToolContext(StopSignal())


def used(text: str, **given: str) -> ToolUse:
    """One call with its input as JSON, as a language model gives it."""
    tool = get_tool("calculator")
    return use_tool(tool, read_input(tool, json.dumps({"text": text, **given})), BENCH)


def read(question: str, response: str, place: tuple[int, int] | None = None) -> Any:
    reads = get_tool("calculator").reads
    assert reads is not None
    case = Case("c", "p", response, question, language="en")
    statement = None
    if place is not None:
        words = response[slice(*place)]
        statement = Statement(0, *place, words, words)
    return reads(statement, case)


@pytest.mark.parametrize("sign", [" - ", "-", " + "])
def test_a_sum_that_is_cut_because_it_is_long_is_not_checked_in_pieces(sign: str) -> None:
    whole = f"2000{sign}" + sign.join(["5"] * 250) + f" = {750 if '-' in sign else 3250}."
    for cut in range(300, 330):
        assert read("", whole, (cut, len(whole))) is None
        assert read("", f"1 = 1{sign}{whole}", (0, 5)) is None
    assert read("", "- 3 + 4 = 8.\n- 5 - 1 = 4.", (15, 25)) is not None


def test_a_wrong_sum_is_marked_where_it_stands() -> None:
    text = "😀 We drove 3 hours + 0.5 hours + 1.5 hours = 4 hours, which was fun."
    told = used(text)
    assert (told.outcome, told.label, told.category) == ("found", "hallucinated", "number_or_date")
    assert (text[told.start : told.end], told.instead) == ("4", "5")
    assert told.p is not None
    assert told.p > 0.9
    (equation,) = json.loads(told.gave)["equations"]
    assert equation == {
        "formula": "3 hours + 0.5 hours + 1.5",
        "stated": "4",
        "worked_out": "5",
        "holds": False,
        "why": "",
        "start": text.index("3 hours"),
        "end": told.end,
        "result": [told.start, told.end],
    }
    assert told.words == "3 hours + 0.5 hours + 1.5 is 5, not 4."


@pytest.mark.parametrize(
    "text",
    [
        "1e999999999*2 = 3", "1e400 + 1 = 2", "1E+400*2 = 3", "2.5e-400 * 2 = 3", "3*2 = 6e400",
        "1e5e5*2 = 3", "1,5e3 * 2 = 3000", "1_000 * 2 = 2000", "0x1F * 2 = 62", "0x10 * 2 = 32",
        "0b11 * 2 = 6", "A4*2 = 3", "x1*2 = 3", "v2.5 * 2 = 3", "12abc3 * 2 = 7",
        "2 * 12abc3 = 7", "5 m2 * 2 = 10 m2",
    ],
)  # fmt: skip
def test_part_of_a_numeral_or_name_is_no_number(text: str) -> None:
    assert [one.holds for one in find_equations(text) if one.holds is not None] == []


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("1e5*2 = 3", False), ("2 * 1E3 = 2000", True), ("6.02e23 * 2 = 1.204e24", True),
        ("2x3 = 6", True), ("2x10 = 20", True), ("0x5 = 0", True), ("USD5 * 2 = 10", True),
        ("5kg*2 = 11kg", False), ("2x3x4 = 24", True), ("√16 + 1 = 5", True),
        ("3x10^5*2 = 600000", True), ("面积是3*4=12", True),
    ],
)  # fmt: skip
def test_number_beside_letters_is_read(text: str, holds: bool) -> None:
    assert [one.holds for one in find_equations(text)] == [holds]


def test_right_sums_say_what_was_not_checked() -> None:
    told = used("The rent is 12 * 300 = 3600. 二加二等于四。")
    assert (told.outcome, told.label, told.start) == ("found", "supported", None)
    assert told.words.startswith("The arithmetic holds: 12 * 300 = 3600 and 1 more.")
    assert "not checked" in told.words


@pytest.mark.parametrize(
    ("text", "outcome", "said"),
    [
        ("The lighthouse was built in 1841 by 12 men.", "nothing", ""),
        ("Then 9**9**9 = 387.", "found", "too large"),
        ("3 + 5 = 8. " * 2000, "failed", "at most 20,000 characters"),
    ],
)
def test_what_cannot_be_worked_out_is_open(text: str, outcome: str, said: str) -> None:
    told = used(text)
    assert (told.outcome, told.label, told.p) == (outcome, "unclear", None)
    assert said in told.words


@pytest.mark.parametrize(*table("calculator: a formula is held against what the text states"))
def test_a_formula_is_held_against_what_the_text_states(
    text: str, formula: str, label: str, wrong: str, instead: str
) -> None:
    told = used(text, formula=formula)
    assert told.label == label
    assert text[told.start or 0 : told.end or 0] == wrong
    assert told.instead == instead


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("__import__('os').system('id')", "Expected a formula such as (1 + 2) * 3"),
        ("x + 1", "“x” is not known"),
        ("9**9**9", "too large"),
        ("1+" * 2000 + "1", "at most 2,000 characters"),
    ],
)
def test_what_is_no_formula_fails_and_is_no_label(formula: str, said: str) -> None:
    told = used("It is 3.", formula=formula)
    assert (told.outcome, told.label, told.p) == ("failed", "unclear", None)
    assert said in told.words


@pytest.mark.parametrize(*table("calculator: what a question asks to work out is worked out"))
def test_what_a_question_asks_to_work_out_is_worked_out(
    question: str, response: str, label: str, wrong: str
) -> None:
    told = used(response, question=question)
    assert (told.label, response[told.start or 0 : told.end or 0]) == (label, wrong)


def test_it_is_meant_for_statements_with_sums_only() -> None:
    response = "It rose in 1990. Then 3 + 5 = 8. The answer is 9."
    assert read("", response, (0, 16)) is None
    found = read("What is 4 + 4?", response, (17, 32))
    assert (found.text, found.question) == ("Then 3 + 5 = 8.", "")
    last = read("What is 4 + 4?", response, (33, 49))
    assert (last.text, last.question) == ("The answer is 9.", "What is 4 + 4?")
    assert read("", response).text == response
    assert read("", "Nothing here.") is None


@given(
    st.lists(st.sampled_from(PIECES), max_size=60).map("".join),
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
)
def test_whatever_is_given_is_answered_in_time(text: str, formula: str) -> None:
    began = time.perf_counter()
    for told in (used(text), used(text, formula=formula), used(text, question=formula)):
        assert told.outcome in ("found", "nothing", "failed")
        if told.start is not None and told.end is not None:
            assert 0 <= told.start < told.end <= len(text)
    assert time.perf_counter() - began < 3 * SECONDS


AMOUNTS = "0|1|2.5|1/3|1e5|9999999999|三|half|½|50%|x|y|π|7 km".split("|")
SIGNS = [" + ", " - ", "*", "/", "^", " × ", "加", " of ", "的", "**", " = ", " ≈ ", " is ", "\n"]
FUNCTIONS = ["sqrt", "ln", "exp", "√", "sin", "abs", "-", "", "log"]
mixed = st.recursive(
    st.sampled_from(AMOUNTS),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(SIGNS), inner).map("".join),
        st.tuples(st.sampled_from(FUNCTIONS), inner).map(lambda pair: f"{pair[0]}({pair[1]})"),
        st.tuples(inner, st.sampled_from(["!", "²", "^2", "^x", " squared"])).map("".join),
    ),
    max_leaves=12,
)


@given(mixed, mixed, mixed)
def test_equations_of_all_kinds_are_answered_in_time(left: str, right: str, last: str) -> None:
    began = time.perf_counter()
    told = used(f"{left} = {right}, so {last} = 0")
    assert told.outcome in ("found", "nothing")
    assert time.perf_counter() - began < 2 * SECONDS


def test_plain_sums_need_no_heavy_package() -> None:
    script = (
        "import sys; from core.tools.calculator import check_sums as found_in; "
        "assert found_in('3 + 5 = 8')[0].holds; "
        "assert not {'sympy', 'mpmath', 'pint', 'torch'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


FLOOR = 0.97  # all but one of the rows hold today


def verdict(text: str) -> str:
    """As the corpus writes it: the values that do not hold with what they should be."""
    found = check_sums(text)
    wrong = [one for one in found if one.holds is False]
    if wrong:
        return "; ".join(f"{text[o.wrong_start : o.wrong_end]} => {o.instead}" for o in wrong)
    return "holds" if any(one.holds for one in found) else "none"


def test_sums_of_the_corpus() -> None:
    corpus = rows("sums")
    missed = [
        row for row in corpus
        if verdict(row["text"]) != row["wrong"]
        and not (row["wrong"] == "none" and verdict(row["text"]) == "holds")
    ]  # fmt: skip
    assert 1 - len(missed) / len(corpus) >= FLOOR, missed


@given(sums(), st.integers(-50, 50))
def test_a_stated_value_is_right_only_where_it_is(
    made: tuple[str, Fraction | None], off: int
) -> None:
    """A whole value is right where it is the true one, or its nearest within half a per cent."""
    formula, value = made
    if value is None or not any(sign in formula for sign in "+-*/"):
        return
    stated = round(value) + off
    found = [
        one for one in find_equations(f"We get {formula} = {stated}.") if one.stated == str(stated)
    ]
    missed = abs(stated - value)
    is_right = missed == 0 or (missed <= Fraction(1, 2) and missed <= abs(value) / 200)
    assert [one.holds for one in found] == [is_right] or not any(c in formula for c in "+*/")


def holding(text: str) -> list[bool | None]:
    return [one.holds for one in find_equations(text)]


@given(st.fractions(-100, 100, max_denominator=1000), st.integers(2, 6))
def test_a_value_rounded_or_cut_at_any_of_its_decimals_is_right(
    value: Fraction, digits: int
) -> None:
    scaled = value * 10**digits
    nearest = Fraction(round(scaled), 10**digits)
    written = f"{float(nearest):.{digits}f}"
    formula = f"{value.numerator} / {value.denominator}"
    assert set(holding(f"{formula} = {written}")) == {True}
    off = f"{float(nearest + Fraction(3, 10**digits)):.{digits}f}"
    assert set(holding(f"{formula} = {off}")) == {False}


@pytest.mark.parametrize(
    "text",
    ["3+" * 9000 + "3=4", "=" * 20_000, "3=" * 10_000, "(" * 20_000, "1 " * 10_000,
     "x+" * 9000 + "=1", "三" * 20_000, "9^" * 9000 + "=1",
     "one hundred and " * 1200, "a, " * 6000 + "is 3"],
)  # fmt: skip
def test_long_texts_are_read_in_time(text: str) -> None:
    began = time.perf_counter()
    find_equations(text)
    assert time.perf_counter() - began < 10 * SECONDS


def test_a_function_of_an_unknown_is_left_out() -> None:
    assert find_equations("sqrt(x)^0 + x = 3, so x = 5") == []
