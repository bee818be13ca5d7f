"""Whether the evidence's date carries or contradicts the claim's."""

from __future__ import annotations

import pytest

from core.tools.values.dates import DateValue, compare_dates, describe_date, find_dates


def only(text: str, language: str = "en") -> DateValue:
    [date] = find_dates(text, language)
    return date


CASES = [
    ("12 March 2019", "March 12, 2019", "equal"),
    ("12 March 2019", "2019-03-12", "equal"),
    ("12 March 2019", "13 March 2019", "different"),
    ("12 March 2019", "12 April 2019", "different"),
    ("12 March 2019", "12 March 2018", "different"),
    ("12 March 2019", "March 2019", "compatible"),
    ("12 March 2019", "in 2019", "compatible"),
    ("12 March 2019", "in 2018", "different"),
    ("12 March 2019", "March 12", "compatible"),
    ("12 March 2019", "in April", "different"),
    ("in March", "in April", "different"),
    ("in 2019", "in 2019", "equal"),
    ("in 2019", "in 2018", "different"),
    ("in 2019", "in March", "incomparable"),
    ("on Monday", "in 2019", "incomparable"),
    ("on Monday", "on Tuesday", "different"),
    ("Monday, 12 March 2018", "12 March 2018", "compatible"),
    ("Monday, 12 March 2018", "Tuesday, 12 March 2018", "different"),
    ("03/04/2019", "3 April 2019", "compatible"),
    ("03/04/2019", "4 March 2019", "compatible"),
    ("03/04/2019", "5 March 2019", "different"),
    ("03/04/2019", "03/04/2019", "equal"),
    ("13/04/2019", "4 March 2019", "different"),
    ("in 1995", "the 1990s", "compatible"),
    ("in 1985", "the 1990s", "different"),
    ("the 1990s", "the 20th century", "compatible"),
    ("the 1980s", "the 1990s", "different"),
    ("in 1850", "the 19th century", "compatible"),
    ("in 1750", "the 19th century", "different"),
    ("18th century", "19th century", "different"),
    ("from 1990 to 1995", "1990–1995", "equal"),
    ("from 1990 to 1995", "1990–1996", "different"),
    ("from 1990 to 1995", "1991–1994", "compatible"),
    ("in 1992", "from 1990 to 1995", "compatible"),
    ("in 1996", "from 1990 to 1995", "different"),
    ("44 BC", "44 BC", "equal"),
    ("44 BC", "AD 44", "different"),
    ("44 BC", "1st century BC", "compatible"),
    ("before 1990", "in 1985", "compatible"),
    ("before 1990", "in 1990", "different"),
    ("before 1990", "in 1995", "different"),
    ("after 1990", "in 1995", "compatible"),
    ("after March 2019", "2 March 2019", "different"),
    ("since 1990", "in 1990", "compatible"),
    ("since 2012", "since 2015", "different"),
    ("since March 2015", "since 2015", "compatible"),
    ("since the 1990s", "since 1994", "compatible"),
    ("until 1990", "in 1995", "different"),
    ("by 2020", "by 2019", "compatible"),
    ("by 2020", "in 2019", "compatible"),
    ("around 1850", "in 1851", "compatible"),
    ("around 1850", "in 1900", "different"),
    ("around 3000 BC", "2950 BC", "compatible"),
    ("around 1990", "in 1994", "different"),
    ("5:30 pm", "17:30", "equal"),
    ("5:30", "17:30", "compatible"),
    ("5:30 pm", "5:45 pm", "different"),
    ("5 p.m.", "5:30 pm", "compatible"),
    ("5 a.m.", "5 p.m.", "different"),
    ("5:30 pm", "in 2019", "incomparable"),
    ("Q3 2020", "in August 2020", "compatible"),
    ("Q3 2020", "in May 2020", "different"),
    ("spring 2019", "autumn 2019", "different"),
    ("spring 2019", "in 2019", "compatible"),
    ("12–15 March 2019", "14 March 2019", "compatible"),
    ("12–15 March 2019", "17 March 2019", "different"),
]


@pytest.mark.parametrize(("claim", "evidence", "match"), CASES)
def test_compare(claim: str, evidence: str, match: str) -> None:
    assert compare_dates(only(claim), only(evidence)) == match


@pytest.mark.parametrize(("claim", "evidence", "match"), CASES)
def test_compare_is_symmetric(claim: str, evidence: str, match: str) -> None:
    assert compare_dates(only(evidence), only(claim)) == match


@pytest.mark.parametrize(
    ("language", "text", "english"),
    [
        ("de", "3. Mai 1999", "3 May 1999"),
        ("fr", "le 3 mai 1999", "3 May 1999"),
        ("zh", "1999年5月3日", "3 May 1999"),
        ("ar", "٣ مايو ١٩٩٩", "3 May 1999"),
        ("fa", "۲۷ اسفند ۱۳۵۰", "17 March 1972"),
        ("ja", "平成11年5月3日", "3 May 1999"),
    ],
)
def test_same_day_in_any_language(language: str, text: str, english: str) -> None:
    assert compare_dates(only(text, language), only(english)) == "equal"


def test_describe() -> None:
    assert describe_date(only("built before 12 March\n2019")) == "before 12 March 2019"
    assert describe_date(only("in 2019")) == "2019"
