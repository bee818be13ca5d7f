"""What a debater states outright: its verdict, and how sure it is; twisted words are no verdict."""

from __future__ import annotations

from typing import get_args

import pytest

from core.agents.reply_parser import confidence_in, reply_of, stance_of, stated_in
from core.llm.prompting import FIELDS, shipped
from core.runtime.errors import ReplyError
from core.schema.records import Stance
from core.schema.rosters import Manner


@pytest.mark.parametrize(
    ("text", "stance"),
    [
        ("NOT CORRECT. It says 412 m.", "hallucinated"),
        ("CORRECT according to the source.", "supported"),
        ("The claim is correct because the source says so.", "supported"),
        ("Correct\nthe source says so.", "supported"),
        ("“CORRECT”", "supported"),
        ("Wrong height: the source says 412 m.", "hallucinated"),
        ("CORRECT / WRONG / OPEN: WRONG. It says 412 m.", "hallucinated"),
        ("CORRECT, WRONG or OPEN: OPEN.", "unclear"),
        ("不正确。", "hallucinated"),
    ],
)
def test_the_first_word_is_the_verdict(text: str, stance: Stance) -> None:
    assert stated_in(text).stance == stance


@pytest.mark.parametrize(
    "text",
    [
        "CORRECT? No: WRONG.",
        "Correct me if I am mistaken, but the height is off.",
        "Correct about the year, but wrong about the height.",
        "Correct figures are 412 m, so the claim is wrong.",
        "“CORRECT” is what Ada says, but it is WRONG.",
        "“WRONG” is what Ada says, but it is CORRECT.",
        "CORRECT / WRONG / OPEN",
        "正确吗？不，错误。",
    ],
)
def test_of_words_that_are_no_verdict_none_is_made(text: str) -> None:
    with pytest.raises(ReplyError, match="begins with CORRECT, WRONG or OPEN"):
        stated_in(text)


@pytest.mark.parametrize(
    ("text", "stance"),
    [
        ("AGREE. CORRECT? No: WRONG.", "hallucinated"),
        ("DENY: Ada says CORRECT, but it is WRONG.", "hallucinated"),
        ("AGREE, CORRECT. WRONG was Ben.", "supported"),
        ("AGREE. The claim is not WRONG.", "supported"),
        ("DENY. It is Not CORRECT.", "hallucinated"),
    ],
)
def test_a_verdict_of_somebody_else_is_not_taken_for_the_turn_s_own(
    text: str, stance: Stance
) -> None:
    reply, rest = reply_of(text)
    assert stance_of(reply, rest, "supported") == stance


@pytest.mark.parametrize(
    ("value", "confidence"),
    [
        ("80", 0.8), ("80 %", 0.8), ("８０％", 0.8), ("0.8", 0.8), ("0,8", 0.8), ("8/10", 0.8),
        ("8 out of 10", 0.8), ("80 of 100", 0.8), ("high (80 %)", 0.8), ("80-90", 0.8),
        ("250 %", None), ("-5 %", None), ("4/5", None), ("4 out of 5", None), ("1,000", None),
        ("nan", None), ("high", None), ("1", 0.01), ("1.0", 1.0), ("1,0", 1.0), ("1.00", 1.0),
        ("1 %", 0.01), ("1.0 %", 0.01), ("1/10", 0.1), ("0", 0.0), ("100", 1.0), ("2", 0.02),
        ("0.5 %", 0.005), ("１", 0.01), ("1 (sure)", 0.01),
    ],
)  # fmt: skip
def test_a_confidence_is_a_share_that_can_be_told_or_none(
    value: str, confidence: float | None
) -> None:
    assert confidence_in(f"CORRECT. It says so.\nConfidence: {value}") == confidence


@pytest.mark.parametrize(
    ("language", "line", "whole"),
    [("en", "Confidence:", "a whole number from 0 to 100"), ("zh", "信心：", "0 到 100 的整数")],
)
def test_every_prompt_that_asks_for_a_confidence_asks_for_a_whole_number_of_a_hundred(
    language: str, line: str, whole: str
) -> None:
    """Otherwise “1” would be read in another way than it was meant."""
    texts = [shipped(manner, language).text for manner in get_args(Manner) if manner in FIELDS]
    asking = [own for text in texts for own in text.splitlines() if own.startswith(line)]
    assert len(asking) == 5
    assert all(own.startswith((f"{line} {whole}", f"{line}{whole}")) for own in asking)
