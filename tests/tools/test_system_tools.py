"""The tools that run the audit itself: split_text and get_answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.schema.records import Label
from core.tools.registry import use
from core.tools.text_tools import GET_ANSWER, SPLIT_TEXT, Checked, GetAnswer, SplitText
from tests.tools.benches import bench

LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")


def split(text: str, language: str = "en") -> list[dict[str, Any]]:
    used = use(SPLIT_TEXT, SplitText(text, language), bench())
    assert used.label == "unclear"
    found: list[dict[str, Any]] = json.loads(used.gave).get("sentences", [])
    return found


def test_sentences_come_with_what_their_pronouns_refer_to() -> None:
    rows = split("The bridge opened in 1931. It’s 412 m long. The deck is red.")
    assert [row["text"] for row in rows] == [
        "The bridge opened in 1931.",
        "It’s 412 m long.",
        "The deck is red.",
    ]
    assert [row["refers_to"] for row in rows] == ["", "The bridge opened in 1931.", ""]


def test_chinese_is_cut_and_referred_too() -> None:
    rows = split("云溪桥建于1931年。它长412米。", "zh")
    assert [row["refers_to"] for row in rows] == ["", "云溪桥建于1931年。"]


@given(st.text(max_size=400), st.sampled_from(["en", "zh", "und", "ar"]))
def test_every_sentence_stands_where_it_is_said_to(text: str, language: str) -> None:
    end = 0
    for row in split(text, language):
        assert text[row["start"] : row["end"]] == row["text"]
        assert end <= row["start"]
        end = row["end"]


def test_a_text_without_a_sentence_is_nothing_and_one_too_long_is_refused() -> None:
    assert use(SPLIT_TEXT, SplitText(" … "), bench()).outcome == "nothing"
    used = use(SPLIT_TEXT, SplitText("x" * 60_001), bench())
    assert used.outcome == "failed"
    assert "60,001" in used.words


def answer(*checked: Checked) -> tuple[Label, dict[str, object], str]:
    used = use(GET_ANSWER, GetAnswer(list(checked)), bench())
    return used.label, json.loads(used.gave), used.words


def test_the_wrong_statements_are_listed_with_why() -> None:
    label, gave, words = answer(
        Checked("It opened in 1931.", "supported", "A report."),
        Checked("It is 512 m long.", "hallucinated", "The report says 412 m."),
        Checked("It is loved.", "unclear", ""),
    )
    assert label == "hallucinated"
    assert words == "1 of 3 statements is hallucinated. “It is 512 m long.”: The report says 412 m."
    assert gave["counts"] == {"supported": 1, "hallucinated": 1, "unclear": 1}
    assert gave["wrong"] == [
        {
            "statement": "It is 512 m long.",
            "label": "hallucinated",
            "evidence": "The report says 412 m.",
        }
    ]


@given(st.lists(st.sampled_from(LABELS), min_size=1, max_size=8))
def test_one_wrong_makes_all_wrong_and_all_must_hold(labels: list[Label]) -> None:
    label, gave, _ = answer(*(Checked(f"S{n}.", one, "E.") for n, one in enumerate(labels)))
    if "hallucinated" in labels:
        assert label == "hallucinated"
    else:
        assert (label == "supported") == all(one == "supported" for one in labels)
    counts = gave["counts"]
    assert isinstance(counts, dict)
    assert sum(counts.values()) == len(labels)


@pytest.mark.parametrize("evidence", ["", "  "])
def test_nothing_is_called_wrong_without_evidence(evidence: str) -> None:
    used = use(GET_ANSWER, GetAnswer([Checked("S.", "hallucinated", evidence)]), bench())
    assert (used.outcome, used.label) == ("failed", "unclear")


def test_no_statement_is_no_answer() -> None:
    assert use(GET_ANSWER, GetAnswer([]), bench()).outcome == "failed"


def test_both_are_marked_as_the_audits_own() -> None:
    assert SPLIT_TEXT.is_system
    assert GET_ANSWER.is_system
