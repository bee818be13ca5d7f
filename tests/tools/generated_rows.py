"""Makes questions with right and wrong answers about lengths and dates, in five languages.

`python -m tests.tools.generated_rows` prints how the tools do on them, by language. Lengths,
dates and deviations are drawn from a seed; no threshold of the tools was chosen on them. Truth is
worked out here with nothing of theirs. Deviations lie outside the grey zone of 5 to 10 % that
people disagree about; `grey_rows` are those inside it.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from core.runtime.concurrency import StopSignal
from core.schema.records import Case, Label, Statement
from core.tools.registry import ToolContext, get_tool, use_tool
from tests.tools.corpus import FOLDER

LANGUAGES = ("en", "zh", "de", "fr", "es")
SEED = 20_240_229
TIMES = 48  # rows of each language and kind of tool
# Words, months and weekdays of each language; how lengths are asked for; of each kind of question
# about dates the question and the answer, of a statement no question.
TEXTS = json.loads((FOLDER / "generated.json").read_text(encoding="utf-8"))
WORDS, LENGTHS, MONTHS, WEEKDAYS, DAY, DATES = (
    TEXTS[name] for name in ("words", "lengths", "months", "weekdays", "day", "dates")
)


@dataclass(frozen=True)
class Row:
    """One question and answer with its label; `off` is the deviation, a share of what is asked."""

    kind: str
    language: str
    question: str
    response: str
    label: Label
    off: float = 0.0


def length_rows(seed: int = SEED, times: int = TIMES) -> Iterator[Row]:
    """Answers of a known length to questions that ask for one; half of them wrong."""
    chance = random.Random(seed)
    for language in LANGUAGES:
        for turn in range(times):
            kind = chance.choice(sorted(LENGTHS[language]))
            question = chance.choice(LENGTHS[language][kind])
            asked, is_right = chance.randint(60, 260), turn % 2 == 0
            off = _deviation(chance, kind, is_right=is_right)
            count = _count(asked, off, kind)
            label: Label = "supported" if is_right else "hallucinated"
            text = _text(chance, language, count)
            yield Row(kind, language, question.format(asked), text, label, count / asked - 1)


def grey_rows(seed: int = SEED, times: int = TIMES) -> Iterator[Row]:
    """Answers 5 to 10 % off a bare figure; the label is what the stated rule says: 7.5 %."""
    chance = random.Random(seed + 1)
    for language in LANGUAGES:
        for _ in range(times):
            asked = chance.randint(100, 400)
            count = round(asked * (1 + chance.choice((-1, 1)) * chance.uniform(0.05, 0.1)))
            off = count / asked - 1
            label: Label = "supported" if abs(count - asked) <= 0.075 * asked else "hallucinated"
            question = chance.choice(LENGTHS[language]["point"]).format(asked)
            yield Row("grey", language, question, _text(chance, language, count), label, off)


def _deviation(chance: random.Random, kind: str, *, is_right: bool) -> float:
    """The share by which the length is off, signed so that a bound is kept or broken."""
    sign = chance.choice((-1, 1))
    if kind == "point":
        return sign * (chance.uniform(0, 0.045) if is_right else chance.uniform(0.11, 0.6))
    if kind == "about":
        return sign * (chance.uniform(0, 0.15) if is_right else chance.uniform(0.27, 0.6))
    kept = 1 if kind == "least" else -1
    # Full stops, one sign in twenty in Chinese, count or do not: a bound is missed by more.
    return kept * chance.uniform(0, 0.6) if is_right else -kept * chance.uniform(0.08, 0.6)


def _count(asked: int, off: float, kind: str) -> int:
    """The length itself; a broken bound is missed by one unit at least, and a mark is none."""
    count = round(asked * (1 + off))
    if kind == "least" and off < 0:
        return min(count, asked - 2)
    return max(count, asked + 2) if kind == "most" and off > 0 else count


def _text(chance: random.Random, language: str, count: int) -> str:
    """So many words, or characters with the full stops among them in Chinese."""
    if language == "zh":
        signs = [chance.choice(WORDS["zh"]) for _ in range(count)]
        for place in range(19, count - 1, 20):
            signs[place] = "。"
        signs[-1] = "。"
        return "".join(signs)
    words = [chance.choice(WORDS[language].split()) for _ in range(count)]
    lines = [" ".join(words[place : place + 12]) for place in range(0, count, 12)]
    return " ".join(f"{line[0].upper()}{line[1:]}." for line in lines)


def date_rows(seed: int = SEED, times: int = TIMES) -> Iterator[Row]:
    """Questions for the calendar and statements about dates; half of the answers wrong."""
    chance = random.Random(seed + 2)
    for language in LANGUAGES:
        for turn in range(times):
            kind = sorted(DATES)[turn // 2 % len(DATES)]
            yield _date_row(chance, kind, language, is_right=turn % 2 == 0)


def _date_row(chance: random.Random, kind: str, language: str, *, is_right: bool) -> Row:
    # Chinese years are read up to 2100.
    first = date(1800, 1, 1) + timedelta(days=chance.randint(0, 75_000))
    far = chance.randint(2_500, 30_000) if kind == "age" else chance.randint(20, 4_000)
    last = first + timedelta(days=far)
    # Days that miss by one are left open on purpose, for both ends may count.
    off = 0 if is_right else chance.choice((-1, 1)) * chance.randint(2, max(3, far // 3))
    said = {
        "days": lambda: str(far + off),
        "weekday": lambda: _weekday(first + timedelta(days=off % 7 or (not is_right)), language),
        "later": lambda: _day(last + timedelta(days=off), language),
        "age": lambda: str(_age(first, last) + (0 if is_right else chance.randint(1, 9))),
    }[kind.removeprefix("said ")]()
    question, answer = DATES[kind][language]
    named = {"a": _day(first, language), "b": _day(last, language), "n": far, "x": said}
    response = answer.format(**named)
    label: Label = "supported" if is_right else "hallucinated"
    return Row(kind, language, question.format(**named), response, label, off / far)


def _weekday(day: date, language: str) -> str:
    names: list[str] = WEEKDAYS[language].split()
    return names[(day.toordinal() - 1) % 7]


def _age(born: date, day: date) -> int:
    had_birthday = (day.month, day.day) >= (born.month, born.day)
    return day.year - born.year - (not had_birthday)


def _day(day: date, language: str) -> str:
    if language == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    month = MONTHS[language].split()[day.month - 1]
    number = "1er" if language == "fr" and day.day == 1 else str(day.day)
    return str(DAY[language]).format(d=number, m=month, y=day.year)


def told(row: Row) -> Label:
    """What the tools say of a row, `unclear` where none of them reads it."""
    case = Case("c", "p", row.response, row.question, language=row.language)
    whole = None if row.question else Statement(0, 0, len(row.response), row.response, row.response)
    for name in ("conditions", "calendar"):
        tool = get_tool(name)
        given = tool.reads(whole, case) if tool.reads else None
        if given is not None:
            return use_tool(tool, given, ToolContext(StopSignal())).label
    return "unclear"


def wrongly_told(rows: Sequence[Row]) -> list[tuple[Row, Label]]:
    """Rows whose label the tools miss, with what they say."""
    return [(row, label) for row in rows if (label := told(row)) != row.label]


def _table(name: str, make: Callable[[], Iterator[Row]]) -> str:
    rows = list(make())
    missed = [row for row, _ in wrongly_told(rows)]
    lines = [f"{name:<22}{'n':>6}{'right':>7}{'accuracy':>10}{'always hallucinated':>21}"]
    for language in (*LANGUAGES, "all"):
        ours = [row for row in rows if language in (row.language, "all")]
        right = len(ours) - sum(1 for row in missed if language in (row.language, "all"))
        trivial = sum(row.label == "hallucinated" for row in ours) / len(ours)
        shown = f"{right / len(ours):>10.3f}{trivial:>21.3f}"
        lines.append(f"  {language:<20}{len(ours):>6}{right:>7}{shown}")
    return "\n".join(lines)


if __name__ == "__main__":
    tables = (("lengths", length_rows), ("lengths 5-10 % off", grey_rows), ("dates", date_rows))
    for title, maker in tables:
        sys.stdout.write(f"{_table(title, maker)}\n\n")
