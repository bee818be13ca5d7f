"""What `find_dates` finds in English, and what it must leave alone."""

from __future__ import annotations

from typing import Any

import pytest

from core.tools.values.dates import DateValue, find_dates

NAMES = {"y": "year", "m": "month", "d": "day", "ey": "end_year", "em": "end_month"}
NAMES |= {"ed": "end_day", "w": "weekday", "h": "hour", "min": "minute", "k": "kind"}
NAMES |= {"b": "bound", "e": "era", "s": "season", "amb": "ambiguous"}


def only(text: str, language: str = "en") -> DateValue:
    [date] = find_dates(text, language)
    return date


def expected(parts: str) -> DateValue:
    """A date without place from "y=2019 m=3 b=about"; a name alone is true."""
    values: dict[str, Any] = {}
    for part in parts.split():
        name, _, value = part.partition("=")
        values[NAMES[name]] = int(value) if value.isdigit() else value or True
    return DateValue(0, 0, "", **values)


def without_place(date: DateValue) -> DateValue:
    return DateValue(0, 0, "", **{name: getattr(date, name) for name in NAMES.values()})


FULL = "y=2019 m=3 d=12"
CASES: list[tuple[str, str, str]] = [
    ("on 12 March 2019.", "12 March 2019", FULL),
    ("on March 12, 2019.", "March 12, 2019", FULL),
    ("on the 12th of March, 2019.", "12th of March, 2019", FULL),
    ("on March 12th, 2019", "March 12th, 2019", FULL),
    ("on Mar. 12, 2019", "Mar. 12, 2019", FULL),
    ("on 12-Mar-2019", "12-Mar-2019", FULL),
    ("on 2019-03-12.", "2019-03-12", FULL),
    ("on 12.03.2019", "12.03.2019", FULL),
    ("on 12/03/2019", "12/03/2019", "y=2019 m=12 d=3 amb"),
    ("on 31/12/2018", "31/12/2018", "y=2018 m=12 d=31"),
    ("on 12/31/18", "12/31/18", "y=2018 m=12 d=31"),
    ("in 03/2019", "03/2019", "y=2019 m=3"),
    ("in March 2019", "March 2019", "y=2019 m=3"),
    ("on March 12", "March 12", "m=3 d=12"),
    ("on May 5th", "May 5th", "m=5 d=5"),
    ("the fifth of May", "fifth of May", "m=5 d=5"),
    ("the Fourth of July", "Fourth of July", "m=7 d=4"),
    ("on Sept 5", "Sept 5", "m=9 d=5"),
    ("in May", "May", "m=5"),
    ("January was cold", "January", "m=1"),
    ("Monday, 12 March 2018", "Monday, 12 March 2018", "y=2018 m=3 d=12 w=0"),
    ("on Tuesday", "Tuesday", "w=1"),
    ("12–15 March 2019", "12–15 March 2019", f"{FULL} ey=2019 em=3 ed=15 k=range"),
    ("March 12–15, 2019", "March 12–15, 2019", f"{FULL} ey=2019 em=3 ed=15 k=range"),
    (
        "January–March 2019",
        "January–March 2019",
        "y=2019 m=1 ey=2019 em=3 k=range",
    ),
    ("in 2019 people came", "2019", "y=2019"),
    ("(2019)", "2019", "y=2019"),
    ("since 1998", "1998", "y=1998 b=since"),
    ("1998 saw the rise", "1998", "y=1998"),
    ("the 2016 elections", "2016", "y=2016"),
    ("Election Day 2020", "2020", "y=2020"),
    ("in the year 2000", "2000", "y=2000"),
    ("in 476.", "476", "y=476"),
    ("born 1950", "1950", "y=1950"),
    ("after the 1979 revolution", "1979", "y=1979"),
    ("1914–1918", "1914–1918", "y=1914 ey=1918 k=range"),
    ("1914-18", "1914-18", "y=1914 ey=1918 k=range"),
    ("2019/20", "2019/20", "y=2019 ey=2020 k=range"),
    ("from 1990 to 1995", "1990 to 1995", "y=1990 ey=1995 k=range"),
    ("between 1990 and 1995", "1990 and 1995", "y=1990 ey=1995 k=range"),
    ("from 1979–1985 among people", "1979–1985", "y=1979 ey=1985 k=range"),
    ("(1914–present)", "1914", "y=1914 b=since"),
    ("in the 1990s", "1990s", "y=1990 ey=1999 k=decade"),
    ("in the '90s", "'90s", "y=1990 ey=1999 k=decade"),
    ("in the 90s", "90s", "y=1990 ey=1999 k=decade"),
    ("in the 1800s", "1800s", "y=1800 ey=1899 k=century"),
    ("19th century", "19th century", "y=1801 ey=1900 k=century"),
    ("the nineteenth century", "nineteenth century", "y=1801 ey=1900 k=century"),
    ("5th century BC", "5th century BC", "y=500 ey=401 e=bce k=century"),
    ("in 44 BC", "44 BC", "y=44 e=bce"),
    ("in 10,000 BC", "10,000 BC", "y=10000 e=bce"),
    ("300–200 BC", "300–200 BC", "y=300 ey=200 e=bce k=range"),
    (
        "between 3000 and 2500 BC",
        "3000 and 2500 BC",
        "y=3000 ey=2500 e=bce k=range",
    ),
    ("in AD 79", "AD 79", "y=79"),
    ("in 79 CE", "79 CE", "y=79"),
    ("in Q3 2020", "Q3 2020", "y=2020 m=7 ey=2020 em=9 k=range"),
    ("in spring 2019", "spring 2019", "y=2019 s=spring"),
    ("at 5:30 pm", "5:30 pm", "h=17 min=30"),
    ("at 17:30", "17:30", "h=17 min=30"),
    ("at 5 p.m.", "5 p.m.", "h=17"),
    ("at 12 am", "12 am", "h=0"),
    ("at 5:30", "5:30", "h=5 min=30 amb"),
    ("at 3 o'clock", "3 o'clock", "h=3 amb"),
    ("at noon", "noon", "h=12 min=0"),
    ("2019-03-12T17:30:00Z", "2019-03-12T17:30:00Z", f"{FULL} h=17 min=30"),
    ("before 1990", "1990", "y=1990 b=before"),
    ("prior to the 1990s", "1990s", "y=1990 ey=1999 k=decade b=before"),
    ("after March 2019", "March 2019", "y=2019 m=3 b=after"),
    ("by 2020", "2020", "y=2020 b=until"),
    ("until 5 May 2001", "5 May 2001", "y=2001 m=5 d=5 b=until"),
    ("circa 1500", "1500", "y=1500 b=about"),
    ("around 1850", "1850", "y=1850 b=about"),
    ("from 1990 onwards", "1990", "y=1990 b=since"),
]


@pytest.mark.parametrize(("text", "part", "parts"), CASES)
def test_finds_one_date(text: str, part: str, parts: str) -> None:
    date = only(text)
    assert (date.text, without_place(date)) == (part, expected(parts))
    assert text[date.start : date.end] == part


NOTHING = """2019 people came|1998 m|1500 employees|1,950|more than 1900|over 1500 men|1080 pixels
a population of 1998|Flight 1990|$1950|£2000 each|2000 units|1990 kg|1990 times|in her 90s
He may go|they march on|Theresa May said|the sun sat|a mar in it|may 5 people|John 3:16
a ratio of 16:9|12.5 percent|the second of two|Section 2010|No. 1998|1950 votes|1200 points
the 1500 employees|some 1500 books|2000 km away|3.11.2 release|1998.5"""


@pytest.mark.parametrize("text", NOTHING.replace("\n", "|").split("|"))
def test_leaves_counts_and_words_alone(text: str) -> None:
    assert [date.text for date in find_dates(text)] == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1990 and 1995", ["1990", "1995"]),
        ("(12 March 1879 – 14 April 1955)", ["12 March 1879", "14 April 1955"]),
        ("in 1956, 1958, and 1960", ["1956", "1958", "1960"]),
        ("12 March 2019 at 5:30 pm", ["12 March 2019", "5:30 pm"]),
        ("June 2010 to July 2011", ["June 2010", "July 2011"]),
    ],
)
def test_leaves_two_dates_apart(text: str, parts: list[str]) -> None:
    assert [date.text for date in find_dates(text)] == parts
