"""What is said of where ways to check part: each difference once."""

from __future__ import annotations

from components.check.compare import parting_lines
from tests.test_comparing import TEXT, run


def test_words_of_a_sentence_that_is_told_of_are_not_told_again() -> None:
    runs = {
        "A": run("hallucinated", [(24, 29), (13, 16)]),
        "B": run("supported", []),
        "C": run("hallucinated", [(24, 34)]),
    }
    assert parting_lines(TEXT, runs) == [
        "The verdicts differ. A, C: hallucinated; B: supported.",
        "“The tower is red.”: marked by A, not by B, C.",
        "“It is 512 m tall.”: marked by A, C, not by B.",
    ]


def test_words_within_a_sentence_that_all_mark_are_named() -> None:
    runs = {"A": run("hallucinated", [(24, 29)]), "B": run("hallucinated", [(24, 34)])}
    assert parting_lines(TEXT, runs) == ["“tall”: marked by B, not by A."]


def test_whoever_turned_is_named_and_nothing_where_all_is_the_same() -> None:
    swayed = run("supported", [], ("Ada", "hallucinated"), ("Ben", "supported"),
                 ("Ada", "supported"))  # fmt: skip
    lines = parting_lines(TEXT, {"A": swayed, "B": run("supported", [])})
    assert lines == ["A: Ada turned from hallucinated to supported in round 2."]
    assert parting_lines(TEXT, {"A": run("supported", []), "B": run("supported", [])}) == []
