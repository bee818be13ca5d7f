"""Converts units, and checks the conversions that a text states: 26.2 miles (42.2 km).

Units are read in any language that the app reads; factors are pint's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

import msgspec

from core.errors import InputError
from core.records import Case, Statement
from core.tools.arithmetic import Stated, agrees, show
from core.tools.registry import Answer, Bench, Tool, read_examples
from core.tools.vocabulary import lower, plain, unit_at, unit_base

RIGHT_P, WRONG_P = 0.1, 0.9
LONGEST = 20_000
LARGEST = 1e15
SURE_DIGITS = 12  # of factors, which are floats
NEAR = Fraction(1, 20)
NUMBER = r"(?<![0-9A-Za-z.,])-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15})(?:\.[0-9]{1,12})?"
AMOUNT = re.compile(NUMBER)
IN_A_DATE = re.compile(r"[年月]\s?\Z")  # 2018年5月1日: the 1日 is no amount of time
LINK = re.compile(
    r"\s*(?:\(|=|≈|is|are|equals?|corresponds to|或|是|等于|合|约合|约为|约|（)\s*"
    rf"(?:about |approximately |roughly |around |or |约|大约)?(?P<n>{NUMBER})"
)


@dataclass(frozen=True)
class StatedConversion:
    """One amount that a text gives in two units, both as written.

    `[start, end)` in the text is the second, and `instead` is what it should say.
    """

    first: str
    second: str
    holds: bool
    instead: str
    start: int
    end: int


def convert(value: float, unit: str, to: str) -> Fraction:
    """The value in another unit; units are words or signs, in English.

    Raises:
        InputError: a unit is not known, the two measure different things, the value is too large.
    """
    if not abs(value) <= LARGEST:
        raise InputError(f"Expected a value of at most {LARGEST:g}, found {value:g}.")
    one, other = _named(unit), _named(to)
    if unit_base(one).symbol != unit_base(other).symbol:
        raise InputError(f"Expected two units of one kind, found {unit} and {to}.")
    return _converted(Fraction(value), one, other)


def _named(unit: str) -> str:
    """The name of a unit that is given as a word or sign: pint's, of the vetted ones."""
    text = plain(f"1 {unit}")
    found = unit_at(text, lower(text), 1, "en")
    if found is None or found[0] < len(text):
        raise InputError(f"Expected a unit such as km/h or pounds, found “{unit[:40]}”.")
    return found[1]


def _converted(value: Fraction, unit: str, to: str) -> Fraction:
    one, other = unit_base(unit), unit_base(to)
    whole = value * Fraction(one.factor) + Fraction(one.offset) - Fraction(other.offset)
    return Fraction(f"{float(whole / Fraction(other.factor)):.{SURE_DIGITS}g}")


def stated_conversions(text: str, language: str) -> list[StatedConversion]:
    """The conversions that a text states, in order; `language` is an ISO 639-1 code.

    One is right where either amount is the other one, rounded to its last digit that is no zero.
    Raises InputError if the text is too long.
    """
    if len(text) > LONGEST:
        raise InputError(f"Expected at most {LONGEST:,} characters, found {len(text):,}.")
    even = plain(text)
    low = lower(even)
    found = []
    for match in AMOUNT.finditer(even):
        if IN_A_DATE.search(even[max(0, match.start() - 2) : match.start()]):
            continue
        first = unit_at(even, low, match.end(), language)
        link = LINK.match(even, first[0]) if first else None
        second = unit_at(even, low, link.end(), language) if link else None
        if not (first and link and second) or first[1] == second[1]:
            continue
        if unit_base(first[1]).symbol == unit_base(second[1]).symbol:
            one, other = _number(match.group()), _number(link["n"])
            there = _converted(one.value, first[1], second[1])
            back = _converted(other.value, second[1], first[1])
            is_near = abs(there - other.value) <= NEAR * abs(there)
            found.append(
                StatedConversion(
                    even[match.start() : first[0]],
                    even[link.start("n") : second[0]],
                    agrees(there, other) or (is_near and agrees(back, one)),
                    f"{show(there)}{even[link.end() : second[0]]}",
                    link.start("n"),
                    second[0],
                )
            )
    return found


def _number(written: str) -> Stated:
    """The number, rounded to its last digit that is no zero of a whole number."""
    whole, _, decimals = written.replace(",", "").partition(".")
    step = Fraction(1, 10 ** len(decimals))
    if not decimals and whole.strip("-0"):
        step *= 10 ** (len(whole) - len(whole.rstrip("0")))
    value = Fraction(f"{whole}.{decimals or 0}")
    return Stated(value, step, is_about=True)


class Conversion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that states conversions, or one amount to convert.

    `text` is the statement, in `language` (an ISO 639-1 code). Or give `value` with its `unit` and
    the unit wanted in `to`, as words or signs: 100, km/h, mph.
    """

    text: str = ""
    language: str = "en"
    value: float = 0.0
    unit: str = ""
    to: str = ""


def work(given: Conversion, bench: Bench) -> Answer:
    """The amount in the other unit, or whether the conversions that the text states are right.

    Raises InputError if a unit is not known, or the two measure different things.
    """
    if given.unit or given.to:
        there = show(convert(given.value, given.unit, given.to))
        words = f"{given.value:g} {given.unit} is {there} {given.to}."
        return Answer("unclear", words, {"value": there, "unit": given.to})
    found = stated_conversions(given.text, given.language)
    gave = {
        "conversions": [
            {"from": one.first, "to": one.second, "holds": one.holds, "worked_out": one.instead}
            for one in found
        ]
    }
    if not found:
        return Answer("unclear", "The text states no conversion.", gave, has_something=False)
    wrong = next((one for one in found if not one.holds), None)
    if wrong is None:
        return Answer("supported", f"{found[0].first} is {found[0].second}.", gave, RIGHT_P)
    words = f"{wrong.first} is {wrong.instead}, not {wrong.second}."
    return Answer(
        "hallucinated", words, gave, WRONG_P, wrong.start, wrong.end, wrong.instead,
        "number_or_date",
    )  # fmt: skip


def reads(statement: Statement | None, case: Case) -> Conversion | None:
    """The statement, where it states a conversion."""
    text = case.response if statement is None else case.response[statement.start : statement.end]
    if len(text) > LONGEST or not stated_conversions(text, case.language):
        return None
    return Conversion(text, case.language)


TOOL = Tool(
    name="units",
    description=(
        "Converts units of length, area, volume, mass, time, speed, temperature and more. Use it "
        "for a statement that gives one amount in two units, as in 26.2 miles (42.2 km): give the "
        "statement as text. Or give a value, its unit and the unit wanted. Comes back: what the "
        "amount is in the other unit, and whether the statement has it right."
    ),
    takes=Conversion,
    work=work,
    examples=read_examples("units", Conversion),
    reads=reads,
)
