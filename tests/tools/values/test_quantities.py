"""What `find_quantities` finds in English, and what it must leave alone."""

from __future__ import annotations

import pytest

from core.tools.values.quantities import Quantity, find_quantities

YEAR = 31557600.0
DAY = 86400.0


def short(quantity: Quantity) -> tuple[str, float, str]:
    return quantity.text, round(quantity.low, 6), quantity.unit or quantity.noun


def found(text: str, language: str = "en") -> list[tuple[str, float, str]]:
    return [short(quantity) for quantity in find_quantities(text, language)]


VALUES = [
    ("412 people", "412", 412, "person"),
    ("1,234.5 dogs", "1,234.5", 1234.5, "dog"),
    ("1,234,567 votes", "1,234,567", 1234567, "vote"),
    ("12,34,567 voters", "12,34,567", 1234567, "voter"),
    ("1.234 grams", "1.234 grams", 0.001234, "kilogram"),
    ("1.234,5 votes", "1.234,5", 1234.5, "vote"),
    ("10 000 seats", "10 000", 10000, "seat"),
    ("1 234 567 seats", "1 234 567", 1234567, "seat"),
    ("a .500 record", ".500", 0.5, ""),
    ("1.2e5 cells", "1.2e5", 120000, "cell"),
    ("3 × 10^8 m/s", "3 × 10^8 m/s", 3e8, "meter / second"),
    ("6.02×10²³ atoms", "6.02×10²³", 6.02e23, "atom"),
    ("10^6 cells", "10^6", 1e6, "cell"),
    ("-5 degrees", "-5 degrees", -5, "degree"),
    ("−5 degrees", "−5 degrees", -5, "degree"),
    ("minus 5 degrees", "minus 5 degrees", -5, "degree"),
    ("1.5 million people", "1.5 million", 1.5e6, "person"),
    ("3 billion stars", "3 billion", 3e9, "star"),
    ("5 lakh voters", "5 lakh", 5e5, "voter"),
    ("3 crore rupees", "3 crore rupees", 3e7, "INR"),
    ("20k followers", "20k", 20000, "follower"),
    ("5m users", "5m", 5e6, "user"),
    ("two dozen eggs", "two dozen", 24, "egg"),
    ("２０ cats", "２０", 20, "cat"),
    ("١٢٣ cats", "١٢٣", 123, "cat"),
    ("3½ miles", "3½ miles", 5632.704, "meter"),
    ("1 1/2 miles", "1 1/2 miles", 2414.016, "meter"),
    ("½ of it", "½", 50, "percent"),
    ("2/3 of them", "2/3", 66.666667, "percent"),
    ("1/2 mile", "1/2 mile", 804.672, "meter"),
    ("2.4x deadlier", "2.4x", 2.4, "time"),
    ("12 large dogs", "12", 12, "dog"),
    ("300 American soldiers", "300", 300, "soldier"),
    ("a two-door car", "two", 2, "door"),
]
WORDS = [
    ("two hundred and five toes", "two hundred and five", 205, "toe"),
    ("a hundred dogs", "a hundred", 100, "dog"),
    ("twenty-five cats", "twenty-five", 25, "cat"),
    ("one thousand nine hundred ninety ships", "one thousand nine hundred ninety", 1990, "ship"),
    ("nineteen hundred men", "nineteen hundred", 1900, "man"),
    ("two point five billion people", "two point five billion", 2.5e9, "person"),
    ("two and a half million people", "two and a half million", 2.5e6, "person"),
    ("three million children", "three million", 3e6, "child"),
    ("only one man", "one", 1, "man"),
    ("more than one wife", "one", 1, "wife"),
    ("a dozen eggs", "a dozen", 12, "egg"),
    ("half a dozen eggs", "half a dozen", 6, "egg"),
    ("a score of years", "a score of years", 20 * YEAR, "second"),
    ("a pair of shoes", "a pair", 2, "shoe"),
    ("half a million people", "half a million", 5e5, "person"),
    ("half an hour", "half an hour", 1800, "second"),
    ("three-quarters of an hour", "three-quarters of an hour", 2700, "second"),
    ("half a mile", "half a mile", 804.672, "meter"),
    ("half of the voters", "half", 50, "percent"),
    ("cut by half", "half", 50, "percent"),
    ("a third of voters", "a third", 33.333333, "percent"),
    ("two thirds of voters", "two thirds", 66.666667, "percent"),
    ("one-fifth of voters", "one-fifth", 20, "percent"),
    ("a quarter of adults", "a quarter", 25, "percent"),
    ("one in five people", "one in five", 20, "percent"),
    ("3 out of 10 people", "3 out of 10", 30, "percent"),
    ("won twice", "twice", 2, "time"),
    ("won three times", "three", 3, "time"),
    ("doubled its revenue", "doubled", 2, "time"),
    ("a threefold rise", "threefold", 3, "time"),
]
UNITS = [
    ("412 m tall", "412 m", 412, "meter"),
    ("412m tall", "412m", 412, "meter"),
    ("a 3-metre wall", "3-metre", 3, "meter"),
    ("100m sprint", "100m", 100, "meter"),
    ("50 km/h", "50 km/h", 13.888889, "meter / second"),
    ("3 km per hour", "3 km per hour", 0.833333, "meter / second"),
    ("60 mph", "60 mph", 26.8224, "meter / second"),
    ("a 28-year-old man", "28-year-old", 28 * YEAR, "second"),
    ("aged 28", "28", 28 * YEAR, "second"),
    ("at the age of 28", "28", 28 * YEAR, "second"),
    ("5 days", "5 days", 5 * DAY, "second"),
    ("five seconds", "five seconds", 5, "second"),
    ("2 hours and 30 minutes", "2 hours and 30 minutes", 9000, "second"),
    ("two decades", "two decades", 20 * YEAR, "second"),
    ("5'10\" tall", "5'10\"", 1.778, "meter"),
    ("6 ft 2 in tall", "6 ft 2 in", 1.8796, "meter"),
    ("5 °C", "5 °C", 278.15, "kelvin"),
    ("70 °F", "70 °F", 294.261111, "kelvin"),
    ("300 K", "300 K", 300, "kelvin"),
    ("5,000 tons", "5,000 tons", 5e6, "kilogram"),
    ("3 lb 4 oz", "3 lb 4 oz", 1.474175, "kilogram"),
    ("5 mg/L", "5 mg/L", 0.005, "kilogram / meter ** 3"),
    ("2 hectares", "2 hectares", 20000, "meter ** 2"),
    ("2 sq km", "2 sq km", 2e6, "meter ** 2"),
    ("3 litres", "3 litres", 0.003, "meter ** 3"),
    ("5 GB", "5 GB", 4e10, "bit"),
    ("5 kHz", "5 kHz", 5000, "1 / second"),
    ("15%", "15%", 15, "percent"),
    ("15 per cent", "15 per cent", 15, "percent"),
    ("5 ‰", "5 ‰", 0.5, "percent"),
    ("3 percentage points", "3 percentage points", 3, "percentage_point"),
    ("$5m", "$5m", 5e6, "USD"),
    ("US$3.2 billion", "US$3.2 billion", 3.2e9, "USD"),
    ("£20k", "£20k", 20000, "GBP"),
    ("1.5 million dollars", "1.5 million dollars", 1.5e6, "USD"),
    ("EUR 500", "EUR 500", 500, "EUR"),
    ("500 USD", "500 USD", 500, "USD"),
    ("¥500", "¥500", 500, "JPY"),
    ("C$500", "C$500", 500, "CAD"),
    ("Rs. 500", "Rs. 500", 500, "INR"),
    ("20 pounds sterling", "20 pounds sterling", 20, "GBP"),
]


@pytest.mark.parametrize(("text", "part", "low", "unit"), [*VALUES, *WORDS, *UNITS])
def test_finds_one_quantity(text: str, part: str, low: float, unit: str) -> None:
    [(written, value, counted)] = found(text)
    assert (written, counted) == (part, unit)
    assert value == pytest.approx(low, rel=1e-6)


RANGES = [
    ("10–20 km", 10000, 20000, "meter"),
    ("10-20 people", 10, 20, "person"),
    ("10 to 20 people", 10, 20, "person"),
    ("between 10 and 20 km", 10000, 20000, "meter"),
    ("between about 10 and 20 people", 10, 20, "person"),
    ("from 10 to 20 people", 10, 20, "person"),
    ("10–20 million votes", 1e7, 2e7, "vote"),
    ("$10–20 million", 1e7, 2e7, "USD"),
    ("90 percent to 99 percent", 90, 99, "percent"),
    ("two or three days", 2 * DAY, 3 * DAY, "second"),
    ("0.93 ± 0.07 m", 0.86, 1.0, "meter"),
    ("dozens of people", 24, 120, "person"),
    ("hundreds of thousands of people", 1e5, 1e6, "person"),
    ("several hundred people", 200, 1000, "person"),
]


@pytest.mark.parametrize(("text", "low", "high", "unit"), RANGES)
def test_reads_ranges(text: str, low: float, high: float, unit: str) -> None:
    [quantity] = find_quantities(text)
    assert (quantity.low, quantity.high) == pytest.approx((low, high))
    assert (quantity.unit or quantity.noun) == unit


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("sales rose from 10 to 20", [10, 20]),
        ("won 3–1", [3, 1]),
        ("beat them 1-3", [1, 3]),
        ("10 dogs and 20 cats", [10, 20]),
        ("1 + 2", [1, 2]),
    ],
)
def test_leaves_two_values_apart(text: str, values: list[float]) -> None:
    assert [q.low for q in find_quantities(text)] == values


BOUNDS = [
    ("about 400 people", "about"),
    ("approximately $400", "about"),
    ("nearly 400 people", "about"),
    ("some 400 people", "about"),
    ("~400 people", "about"),
    ("400 or so people", "about"),
    ("at least 400 people", "at_least"),
    ("no fewer than 400 people", "at_least"),
    ("400 or more people", "at_least"),
    ("400+ people", "at_least"),
    ("≥400 people", "at_least"),
    ("up to 400 people", "at_most"),
    ("no more than 400 people", "at_most"),
    ("400 people or fewer", "at_most"),
    ("more than 400 people", "more_than"),
    ("more than US$400", "more_than"),
    ("over 400 people", "more_than"),
    ("over 50 years", "at_least"),
    ("less than 400 people", "less_than"),
    ("under 400 people", "less_than"),
    ("below 3 °C", "less_than"),
    ("exactly 400 people", "exact"),
    ("400 people", "exact"),
]


@pytest.mark.parametrize(("text", "bound"), BOUNDS)
def test_reads_bounds(text: str, bound: str) -> None:
    [quantity] = find_quantities(text)
    assert quantity.bound == bound


RANKS = [
    ("the second largest city", 2, "largest"),
    ("the Second World War", 2, "world"),
    ("3rd place", 3, "place"),
    ("his first album", 1, "album"),
    ("her first full season", 1, "season"),
    ("the twenty-first century", 21, "century"),
    ("Figure 3 shows", 3, "figure"),
    ("No. 5 on the chart", 5, "number"),
    ("see Chapter 4.", 4, "chapter"),
    ("the crew of Apollo 11 landed", 11, "apollo"),
    ("#5", 5, "number"),
]


@pytest.mark.parametrize(("text", "value", "noun"), RANKS)
def test_reads_ranks_and_labels(text: str, value: float, noun: str) -> None:
    [quantity] = find_quantities(text)
    assert (quantity.ordinal, quantity.low, quantity.noun) == (True, value, noun)
    assert quantity.unit == ""


NOTHING = """COVID-19|B12|A4 paper|H1N1|F-16 jets|section 3.2.1|version 2.10.3
ISBN 978-3-16-148410-0
call 555-123-4567|+49 30 1234567|(555) 123-4567|one of the best|no one came|the one who came
one another|at first|first of all|a split second|24/7|9/11|3:1|16:9|80s music|747s|1080p|4x4
3D film|5G network|see [3]|as shown [1][2]|Ocean's Eleven|the May election|in a row|a may day
http://x.org/12/3|a1@b2.com|1. First item|2019-03-12|192.168.0.1|one-on-one|every second counts
someone else|the only one|in the second half of"""


@pytest.mark.parametrize("text", NOTHING.replace("\n", "|").split("|"))
def test_leaves_names_codes_and_pronouns_alone(text: str) -> None:
    assert [q.text for q in find_quantities(text) if not q.ordinal] == []


def test_second_is_a_unit_or_a_rank() -> None:
    [unit] = find_quantities("it took 5 seconds")
    [rank] = find_quantities("the second time")
    assert (unit.unit, unit.ordinal) == ("second", False)
    assert (rank.low, rank.ordinal) == (2, True)


def test_positions_cover_number_and_unit_not_the_modifier() -> None:
    [quantity] = find_quantities("It cost about US$1.5 million then.")
    assert (quantity.start, quantity.end) == (14, 28)
    assert (quantity.number_start, quantity.number_end) == (17, 20)
    assert quantity.text == "US$1.5 million"


@pytest.mark.parametrize(
    ("text", "significant", "step"),
    [
        ("1,500,000 votes", 7, 1),
        ("1.5 million votes", 2, 1e5),
        ("400 votes", 3, 1),
        ("four hundred votes", 3, 1),
        ("two million votes", 1, 1e6),
        ("0.05 m", 1, 0.01),
        ("12 km", 2, 1000),
    ],
)
def test_precision_as_written(text: str, significant: int, step: float) -> None:
    [quantity] = find_quantities(text)
    assert quantity.significant == significant
    assert quantity.step == pytest.approx(step)
