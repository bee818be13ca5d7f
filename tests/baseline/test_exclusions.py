"""Words that a source rules out."""

from __future__ import annotations

import pytest

from core.baseline.exclusions import find_excluded_words
from core.runtime.concurrency import StopSignal
from tests.fakes import make_case, make_passage, make_view
from tests.readers import WordReader, assessor_with
from tests.tools.corpus import rows

FLOOR = 0.98  # 56 of 57 rows


def test_words_ruled_out_in_the_corpus() -> None:
    corpus = rows("ruled_out")
    wrong = []
    for row in corpus:
        found = find_excluded_words(row["claim"], 0, [row["source"]], row["language"])
        wrong += (
            [row] if [words.text for words in found] != [row["words"]][: bool(row["words"])] else []
        )
    assert 1 - len(wrong) / len(corpus) >= FLOOR, wrong


@pytest.mark.parametrize(
    ("claim", "source", "restated"),
    [
        ("The crew used pumps.", "The crew used sandbags rather than pumps.", "sandbags"),
        (
            "The mill burnt.",
            "Neither the mill nor the school burnt.",
            "Neither the mill nor the school",
        ),
    ],
)
def test_words_in_place_of_those_ruled_out_decide(claim: str, source: str, restated: str) -> None:
    [words] = find_excluded_words(claim, 0, [source], "en")
    assert words.decided_by == restated
    view = make_view(make_case(claim), [make_passage(source)])
    [item] = assessor_with(WordReader()).assess(view, StopSignal())
    assert item.label == "hallucinated"


@pytest.mark.parametrize(
    ("claim", "source", "language"),
    [
        ("The crew used sandbags.", "The crew used sandbags rather than pumps.", "en"),
        ("The mayor signed.", "Not only the mayor but also the clerk signed.", "en"),
        (
            "The crew used pumps.",
            "In May the crew used sandbags instead of pumps. In June the crew used pumps.",
            "en",
        ),
        ("Pumps were sold in Lund.", "The crew used sandbags rather than pumps.", "en"),
        (
            "Ela nasceu no Rio de Janeiro.",
            "Ela nasceu em 1950, no Rio de Janeiro, filha de italianos.",
            "pt",
        ),
        ("A empresa nasceu no Brasil.", "A empresa nasceu no Brasil, mas opera em Portugal.", "pt"),
        (
            "Maria ist Studentin in Bonn.",
            "Maria ist noch Studentin in Bonn und wohnt noch bei ihren Eltern.",
            "de",
        ),
        (
            "Ni betalar kontant.",
            "Om ni betalar kontant eller med kort får ni ett kvitto.",
            "sv",
        ),
    ],
)
def test_nothing_else_is_ruled_out(claim: str, source: str, language: str) -> None:
    assert find_excluded_words(claim, 0, [source], language) == ()
