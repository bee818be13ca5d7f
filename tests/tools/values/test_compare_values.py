"""Whether the evidence's quantity carries or contradicts the claim's."""

from __future__ import annotations

import pytest

from core.tools.values.quantities import Quantity, compare, describe, find_quantities


def only(text: str, language: str = "en") -> Quantity:
    [quantity] = find_quantities(text, language)
    return quantity


CASES = [
    ("412 m", "412 m", "equal"),
    ("512 m", "412 m", "different"),
    ("0.412 km", "412 m", "equal"),
    ("1 mile", "1.609344 km", "equal"),
    ("10 ft", "3 m", "compatible"),
    ("412 m", "1,352 ft", "compatible"),
    ("2 kg", "4.4 lb", "compatible"),
    ("20 °C", "68 °F", "equal"),
    ("20 °C", "60 °F", "different"),
    ("2 °C warmer", "3.6 °F warmer", "compatible"),
    ("3 litres", "0.8 gallons", "compatible"),
    ("90 minutes", "1.5 hours", "equal"),
    ("7 days", "1 week", "equal"),
    ("12 months", "1 year", "equal"),
    ("100 km/h", "62 mph", "compatible"),
    ("1,500 MW", "1.5 GW", "equal"),
    ("1 GB", "1000 MB", "equal"),
    ("1 hectare", "2.47 acres", "compatible"),
    ("412 m", "412 kg", "incomparable"),
    ("412 m", "412 people", "incomparable"),
    ("5 toes", "5 fingers", "incomparable"),
    ("5 toes", "6 toes", "different"),
    ("5 toes", "it has 5", "equal"),
    ("$5", "£5", "different"),
    ("$5 million", "$5,000,000", "equal"),
    ("$5 million", "5 people", "incomparable"),
    ("about 400 people", "412 people", "compatible"),
    ("400 people", "412 people", "different"),
    ("four hundred people", "412 people", "different"),
    ("400 people", "about 412 people", "compatible"),
    ("about 400 people", "500 people", "different"),
    ("1.5 million people", "1,487,203 people", "compatible"),
    ("1.5 million people", "1,557,203 people", "different"),
    ("1,487,203 people", "1.5 million people", "compatible"),
    ("1,500,000 people", "1,487,203 people", "different"),
    ("more than 400 people", "412 people", "compatible"),
    ("more than 400 people", "390 people", "different"),
    ("more than 400 people", "400 people", "different"),
    ("at least 400 people", "400 people", "compatible"),
    ("350 people", "more than 400 people", "different"),
    ("450 people", "more than 400 people", "compatible"),
    ("450 people", "fewer than 400 people", "different"),
    ("less than 500 people", "more than 400 people", "compatible"),
    ("less than 300 people", "more than 400 people", "different"),
    ("up to 400 people", "400 people", "compatible"),
    ("at least 400 people", "at least 400 people", "equal"),
    ("10–20 km", "15 km", "compatible"),
    ("25 km", "10–20 km", "different"),
    ("10–20 km", "12–18 km", "compatible"),
    ("10–20 km", "19–40 km", "different"),
    ("10–20 km", "20–30 km", "different"),
    ("hundreds of people", "350 people", "compatible"),
    ("hundreds of people", "20 people", "different"),
    ("half of the voters", "50 %", "equal"),
    ("half of the voters", "49 %", "compatible"),
    ("half of the voters", "40 %", "different"),
    ("two thirds of voters", "66 %", "compatible"),
    ("a third of voters", "33.3 %", "compatible"),
    ("one in five people", "20 %", "equal"),
    ("15 %", "15 percentage points", "incomparable"),
    ("15 %", "15 people", "incomparable"),
    ("a dozen eggs", "12 eggs", "equal"),
    ("doubled", "two times", "equal"),
    ("the second album", "2 albums", "incomparable"),
    ("the second album", "the third album", "different"),
    ("the second album", "his 2nd album", "equal"),
    ("the second album", "the third single", "incomparable"),
    ("Figure 3 shows", "the third album", "incomparable"),
    ("a 28-year-old man", "aged 28", "equal"),
    ("-5 °C", "5 °C", "different"),
]


@pytest.mark.parametrize(("claim", "evidence", "match"), CASES)
def test_compare(claim: str, evidence: str, match: str) -> None:
    assert compare(only(claim), only(evidence)) == match


@pytest.mark.parametrize(("claim", "evidence", "match"), CASES)
def test_compare_is_symmetric(claim: str, evidence: str, match: str) -> None:
    assert compare(only(evidence), only(claim)) == match


def test_compares_across_languages() -> None:
    assert compare(only("1200万人", "zh"), only("12 million people")) == "incomparable"
    assert compare(only("约1200万", "zh"), only("(12.3 million)")) == "compatible"
    assert compare(only("412米", "zh"), only("412 m")) == "equal"
    assert compare(only("15 Prozent", "de"), only("15 %")) == "equal"


def test_ambiguous_grouping_agrees_either_way() -> None:
    spanish = only("39,000 habitantes", "es")
    assert spanish.low == 39
    assert compare(spanish, only("39.000 habitantes", "es")) == "compatible"
    assert compare(spanish, only("38.000 habitantes", "es")) == "different"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("412 m", "412 m"),
        ("about 412 m", "about 412 m"),
        ("no fewer than 5 people", "at least 5"),
        ("under 3 °C", "less than 3 °C"),
        ("US$1.5\nmillion", "US$1.5 million"),
    ],
)
def test_describe(text: str, words: str) -> None:
    assert describe(only(text)) == words
