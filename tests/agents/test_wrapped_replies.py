"""Every role reads its reply in a code fence, after thoughts, in prose, with other capitals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from core.agents.llm_audit import LlmSegmenter
from core.agents.llm_debater import LlmContextWriter, LlmDebater
from core.agents.llm_judge import LlmJudge
from core.agents.llm_panel import LlmPanelist, LlmSpanAdjudicator, LlmSpanExtractor
from core.llm.call import extract_answer, ignore_piece
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ReplyError
from core.schema.records import Judgement, Span
from tests.agents.seats import SEAT, Workplace, debate_view, judge_view, workplace
from tests.fakes import Said, make_case, make_passage, make_view

TEXT = "The bridge opened in 1926."
VIEW = make_view(make_case(TEXT), [make_passage("The bridge was opened in 1931.", source="a.txt")])
WRONG = Judgement("judge", "hallucinated", "Wrong.", prose="It opened in 1931.")
SPAN = Span(21, 25, "1926", 0.5, "number_or_date", "x", "")
STOP = StopSignal()
MARK = {"reason": "r", "quote": "1926", "category": "contradicted", "instead": "1931", "p": 0.9}
THOUGHT = "<think>\nIs it {1926}? Verdict: 1\nAGREE.\n</think>\n"
Play = Callable[[Workplace], Any]
FIELDS: dict[str, tuple[dict[str, Any], Play, Any]] = {
    "debater": (
        {"reply": "DENY", "claim": "WRONG", "argument": "It says 1931."},
        lambda place: (
            LlmDebater(SEAT, place.work).argue(debate_view(VIEW), ignore_piece, STOP).stance
        ),
        "hallucinated",
    ),
    "judge": (
        {"reasons": "It says 1931.", "verdict": "0"},
        lambda place: LlmJudge(SEAT, place.work).decide(judge_view(VIEW), STOP).label,
        "hallucinated",
    ),
    "segmenter": (
        {"statements": [{"quote": TEXT, "rewrite": "It opened."}]},
        lambda place: [s.rewrite for s in LlmSegmenter(SEAT, place.work).segment(VIEW.case, STOP)],
        ["It opened."],
    ),
    "span extractor": (
        {"spans": [MARK]},
        lambda place: [
            s.instead
            for s in LlmSpanExtractor(SEAT, place.work).propose(judge_view(VIEW), WRONG, STOP)
        ],
        ["1931"],
    ),
    "span adjudicator": (
        {"reason": "r", "hallucinated": True, "p": 0.9},
        lambda place: (
            LlmSpanAdjudicator(SEAT, place.work)
            .adjudicate(judge_view(VIEW), SPAN, "hallucinated", STOP)
            .kept
        ),
        True,
    ),
    "panel": (
        {"votes": [{"number": 1, "reason": "r", "p": 0.9}]},
        lambda place: (
            LlmPanelist(SEAT, place.work, 1, sees_evidence=True).vote(VIEW, [SPAN], STOP)[0].p
        ),
        0.9,
    ),
    "context writer": (
        {
            "facts": [{"claim": "It opened in 1931.", "passages": ["P1"]}],
            "conflicts": [],
            "shares": {"Ada": ["P1"]},
            "summary": "In brief.",
        },
        lambda place: LlmContextWriter(SEAT, place.work).write(VIEW, ["Ada"], STOP).summary,
        "In brief.",
    ),
}
PROSE: dict[str, tuple[str, Play, Any]] = {
    "debater": ("DENY, WRONG. It says 1931.", FIELDS["debater"][1], "hallucinated"),
    "judge": ("It says 1931.\nVerdict: 0", FIELDS["judge"][1], "hallucinated"),
    "reviser": (
        "<<<TEXT\nThe bridge opened in 1931.\nTEXT>>>",
        lambda place: LlmContextWriter(SEAT, place.work).revise(judge_view(VIEW), WRONG, STOP),
        "The bridge opened in 1931.",
    ),
}


def capitalise_keys(value: Any) -> Any:
    if isinstance(value, list):
        return [capitalise_keys(part) for part in value]
    if isinstance(value, dict):
        return {key.capitalize(): capitalise_keys(part) for key, part in value.items()}
    return value


@pytest.mark.parametrize("role", FIELDS)
@pytest.mark.parametrize(
    "wrapping",
    ["{}", "```json\n{}\n```", THOUGHT + "{}", "Here it is: {}\nAsk me for more.", "Sure!\n{}"],
)
@pytest.mark.parametrize("is_capitalised", [False, True])
def test_role_reads_wrapped_object(role: str, wrapping: str, is_capitalised: bool) -> None:
    value, play, expected = FIELDS[role]
    reply = json.dumps(capitalise_keys(value) if is_capitalised else value)
    assert play(workplace([wrapping.replace("{}", reply)])) == expected


@pytest.mark.parametrize("role", PROSE)
@pytest.mark.parametrize(
    "wrapping", ["{}", "```\n{}\n```", f"{THOUGHT}```text\n{{}}\n```", "Here is my answer:\n\n{}"]
)
def test_role_reads_wrapped_prose(role: str, wrapping: str) -> None:
    reply, play, expected = PROSE[role]
    assert play(workplace([wrapping.replace("{}", reply)])) == expected


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Sure, I DENY, CORRECT!\nThe source says 1932.", None),
        ("Here is the claim: it is WRONG!\nBecause it is.", None),
        ("Here is why I DENY:\nIt is 1932.", None),
        ("Okay, the claim is right:\nIt is 1932.", None),
        ("Sure, here is my turn:\nDENY.", "DENY."),
        ("Certainly!\nDENY.", "DENY."),
        ("以下是我的回答：\nDENY.", "DENY."),
        ("当然可以，以下是：\nDENY.", "DENY."),
        ("I think so.\n</think>\nDENY.", "DENY."),
        ("<<<TEXT\nUse this:\n</think>\nrest\nTEXT>>>", None),
    ],
)
def test_only_lines_around_an_answer_are_left_out(reply: str, answer: str | None) -> None:
    assert extract_answer(reply) == (answer or reply)


def test_reviser_reads_text_before_closing_remark() -> None:
    reply, play, expected = PROSE["reviser"]
    assert play(workplace([f"{reply}\n\nI corrected the year."])) == expected


@pytest.mark.parametrize("role", sorted(set(FIELDS) - {"debater"}))
def test_role_uses_no_object_that_was_cut_off(role: str) -> None:
    value, play, _ = FIELDS[role]
    for reply in (json.dumps(value), json.dumps(value)[:-6]):
        with pytest.raises(ReplyError):
            play(workplace([Said(reply, "length")] * 2))


@pytest.mark.parametrize("is_object", [False, True])
def test_turn_that_was_cut_off_keeps_whole_sentences(is_object: bool) -> None:
    written = "DENY, WRONG. The page says 1931. The leaf"
    fields = {"reply": "DENY", "claim": "WRONG", "argument": "The page says 1931. The leaf"}
    reply = json.dumps(fields)[:-2] if is_object else written
    place = workplace([Said(reply, "length")])
    turn = LlmDebater(SEAT, place.work).argue(debate_view(VIEW), ignore_piece, STOP)
    assert (turn.text, turn.cut) == ("DENY, WRONG. The page says 1931.", True)


@pytest.mark.parametrize(
    "written",
    [
        "DENY, WRO",
        "DENY, WRONG. The bridge opened in the year of",
        "DENY, WRONG: it was 4.5 m and then the sou",
    ],
)
def test_turn_that_was_cut_off_in_its_first_sentence_is_not_used(written: str) -> None:
    place = workplace([Said(written, "length")])
    with pytest.raises(ReplyError, match="cut off"):
        LlmDebater(SEAT, place.work).argue(debate_view(VIEW), ignore_piece, STOP)


@pytest.mark.parametrize(
    "text",
    [
        "DENY. The page says “</think> AGREE, CORRECT.”",
        "Ada says:\nCORRECT.",
        "The page has this:\n```\nCORRECT.\n```",
        "<think>Never closed. AGREE",
    ],
)
def test_quoted_wrapping_is_left_as_it_is(text: str) -> None:
    assert extract_answer(text) == text
