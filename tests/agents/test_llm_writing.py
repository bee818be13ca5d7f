"""A language model in the writer's seat: a round in brief, and the response as it should read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.agent_runner import AgentContext
from core.agents.llm_debater import LlmContextWriter, LlmDebater, parse_revision
from core.llm.call import Completion, UnusableReply, ignore_piece
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ModelError, ReplyError
from core.schema.records import Judgement, Quote, Turn
from core.schema.roles import Reviser, Summariser
from tests.agents.seats import FENCE, SEAT, debate_view, judge_view, workplace
from tests.fakes import Said, make_case, make_passage, make_view

FACT = make_passage("The bridge was opened in 1931.", number=1, source="report.pdf")
TEXT = "The bridge opened in 1926.\n\nIt is open."
VIEW = make_view(make_case(TEXT, question="When did it open?"), [FACT])
WRONG = Judgement("Consensus", "hallucinated", "x", prose="Ada says that it is wrong.")
ANSWER = Turn(
    "Ben", "m", 2, 0, "agree", "supported", "CORRECT. “was opened in 1926” ✓ it says.",
    (Quote("was opened in 1926", "not_found"),), manner="answer",
)  # fmt: skip
SHORT = "Ada opened the debate."
ATTACK = replace(ANSWER, debater="Ada", number=3, round=1, manner="attack", about="Ben")


def marked(text: str) -> str:
    return f"<<<TEXT\n{text}\nTEXT>>>"


def test_the_writers_seat_summarises_and_revises() -> None:
    writer = LlmContextWriter(SEAT, workplace([]).work)
    assert isinstance(writer, Summariser)
    assert isinstance(writer, Reviser)


def test_the_summary_is_asked_for_with_what_stood_before_and_marks_that_our_code_made() -> None:
    place = workplace(["Ada holds that Ben's quotation is not in the evidence. "])
    writer = LlmContextWriter(SEAT, place.work)
    told = writer.summarise(VIEW, [ATTACK], "Ada opened.", StopSignal())
    assert told == "Ada holds that Ben's quotation is not in the evidence."
    assert "Before, in brief: Ada opened." in place.prompt
    assert "3. Ada on Ben’s answer: CORRECT. “was opened in 1926” ✗ it says." in place.prompt
    (asked,) = place.desk.asked
    assert (asked.role, asked.slot, asked.prompt) == ("context writer", "summary 1", "en/summary")


def test_what_our_code_writes_among_the_words_is_in_the_prompts_language() -> None:
    place = workplace(["AGREE, WRONG. “1926” 有误。"])
    seen = debate_view(make_view(replace(VIEW.case, language="zh"), [FACT]), (ATTACK,))
    assigned = replace(ATTACK, number=4, about="", assigned="hallucinated", manner="compete")
    seen = replace(seen, turns=(*seen.turns, assigned), manner="tit_for_tat", summary="开场。")
    seen = replace(seen, remarks=(("Mira", "看报告。"),))
    LlmDebater(SEAT, place.work).argue(seen, ignore_piece, StopSignal())
    for line in (
        "此前摘要：开场。",
        "3. Ada 谈 Ben 的回答: CORRECT",
        "4. Ada（指定立场 WRONG）: CORRECT",
    ):
        assert line in place.prompt
    assert "Mira（真人）：看报告。" in place.prompt
    assert "in brief" not in place.prompt
    assert "a person" not in place.prompt


def test_summary_that_was_cut_off_is_asked_for_again_and_never_used() -> None:
    cut = Said("Ada opened the debate. Ben replied that the", "length")
    writer = LlmContextWriter(SEAT, workplace([cut, SHORT, cut, cut]).work)
    assert writer.summarise(VIEW, [ATTACK], "", StopSignal()) == SHORT
    with pytest.raises(ReplyError, match="more tokens"):
        writer.summarise(VIEW, [ATTACK], "", StopSignal())


def test_an_empty_summary_is_no_summary() -> None:
    with pytest.raises(ReplyError, match="found nothing"):
        LlmContextWriter(SEAT, workplace([" \n"]).work).summarise(VIEW, [ATTACK], "", StopSignal())


def test_the_earliest_turns_are_left_out_where_the_window_is_small() -> None:
    long = [
        replace(ATTACK, number=n, text=f"WRONG. Item {n}. " + "It says so in the report. " * 60)
        for n in range(3, 43)
    ]
    place = workplace(["In brief."])
    small = replace(SEAT, window=4096, max_tokens=200)
    LlmContextWriter(small, place.work).summarise(VIEW, long, "", StopSignal())
    assert "Item 42." in place.prompt
    assert "Item 3." not in place.prompt
    tiny = replace(SEAT, window=300, max_tokens=200)
    with pytest.raises(ModelError, match="larger window"):
        LlmContextWriter(tiny, workplace([]).work).summarise(VIEW, long, "", StopSignal())


def test_the_corrected_text_is_what_stands_between_the_marks() -> None:
    better = TEXT.replace("1926", "1931")
    place = workplace([f"Here it is:\n{marked(better)}\n"])
    writer = LlmContextWriter(SEAT, place.work)
    assert writer.revise(judge_view(VIEW, ANSWER), WRONG, StopSignal()) == better
    for part in (
        WRONG.prose,
        "[P1] (report.pdf) The bridge was opened in 1931.",
        "2. Ben: CORRECT",
    ):
        assert part in place.prompt
    assert f"⟦text {FENCE.token}⟧\n{TEXT}\n⟦/text {FENCE.token}⟧" in place.prompt
    assert place.desk.asked[0].slot == "corrected"


def test_a_reply_without_marks_is_asked_for_again_and_then_of_no_use() -> None:
    place = workplace(["It opened in 1931.", marked("It opened in 1931.")])
    writer = LlmContextWriter(SEAT, place.work)
    assert writer.revise(judge_view(VIEW), WRONG, StopSignal()) == "It opened in 1931."
    assert "<<<TEXT" in place.prompt
    place = workplace(["It opened in 1931.", Said("<<<TEXT\nIt opened", "length")])
    with pytest.raises(ReplyError, match="could not be used"):
        LlmContextWriter(SEAT, place.work).revise(judge_view(VIEW), WRONG, StopSignal())


@given(st.text(min_size=1, max_size=200).filter(lambda t: t.strip() and "\r" not in t))
def test_any_text_comes_back_as_it_stood_between_the_marks(text: str) -> None:
    said = Completion(marked(text), "stop", 1, 1, False, 0.0, 0.1)
    assert parse_revision(said, text) == text


@pytest.mark.parametrize("reply", ["", "TEXT>>>", "<<<TEXT\n \nTEXT>>>", "<<<TEXT\nIt opened"])
def test_no_text_is_made_of_half_a_reply(reply: str) -> None:
    with pytest.raises(UnusableReply):
        parse_revision(Completion(reply, "length", 1, 1, False, 0.0, 0.1), TEXT)


def test_a_draft_and_what_was_said_of_it_are_no_part_of_the_corrected_text() -> None:
    better = TEXT.replace("1926", "1931")
    place = workplace([f"{marked(TEXT)}\nOn second thoughts:\n{marked(better)}", marked(better)])
    assert (
        LlmContextWriter(SEAT, place.work).revise(judge_view(VIEW), WRONG, StopSignal()) == better
    )
    holds_marks = f"A form has <<<TEXT in it.\n\n{TEXT}"
    said = Completion(marked(holds_marks), "stop", 1, 1, False, 0.0, 0.1)
    assert parse_revision(said, holds_marks) == holds_marks


def test_the_writer_is_ruled_by_the_prompts_that_its_protocol_asks_it_by() -> None:
    work: AgentContext = replace(workplace([]).work, writing=("summary", "corrected"))
    rule = LlmContextWriter(SEAT, work).rule
    assert "summary (en)" in rule
    assert "corrected (zh)" in rule
    assert "context (en)" not in rule


@pytest.mark.parametrize("manner", ["advise", "attack"])
@pytest.mark.parametrize(
    ("said", "stance"),
    [
        ("DENY, WRONG. The report says “was opened in 1931”.", "hallucinated"),
        ("AGREE. It withstands that.", "supported"),
        ("DENY. It does not withstand that.", "hallucinated"),
    ],
)
def test_a_critic_answers_the_one_it_speaks_of(manner: str, said: str, stance: str) -> None:
    place = workplace([said])
    other = replace(
        ANSWER, debater="Cleo", number=4, stance="unclear", about="Ben", manner="advise"
    )
    view = replace(debate_view(VIEW, (ANSWER, other)), manner=manner, about="Ben", summary="Brief.")  # type: ignore[arg-type]
    turn = LlmDebater(SEAT, place.work).argue(view, ignore_piece, StopSignal())
    assert turn.stance == stance
    assert "the answer of Ben" in place.prompt
    assert "Before, in brief: Brief." in place.prompt
    assert "4. Cleo on Ben’s answer:" in place.prompt
    assert place.desk.asked[0].prompt == f"en/{manner}"


def test_whoever_reconsiders_begins_with_its_stance() -> None:
    place = workplace(["WRONG. It says “was opened in 1931”.\nConfidence: 80\nDoubt: the date"])
    view = replace(debate_view(VIEW, (ANSWER, ATTACK), debater="Ben"), manner="reconsider")
    turn = LlmDebater(SEAT, place.work).argue(view, ignore_piece, StopSignal())
    assert (turn.stance, turn.confidence, turn.doubt) == ("hallucinated", 0.8, "the date")
    assert "3. Ada on Ben’s answer:" in place.prompt
