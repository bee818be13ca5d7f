"""What a debater says in plain text is heard, and nothing is guessed."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.reply_parser import (
    cut_to_sentences,
    infer_stance,
    is_refusal,
    parse_confidence,
    parse_quotes,
    parse_reply,
    parse_stated_verdict,
    strip_speaker_name,
)
from core.llm.prompting import FIELDS, load_shipped_prompt
from core.runtime.errors import ReplyError
from core.schema.records import Stance, TurnReply
from core.schema.rosters import TurnMode


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("AGREE, CORRECT. The page says so.", "agree"),
        ("agree: the document provides evidence", "agree"),
        ("**DENY, WRONG.** The year differs.", "deny"),
        ("Deny - the figure is another one.", "deny"),
        ("I agree with the last message, because …", "agree"),
        ("I disagree. The passage names Bergen.", "deny"),
        ("Disagree!", "deny"),
        ("I don't agree with Ada here.", "deny"),
        ("I do not fully agree: the date is off.", "deny"),
        ("I cannot agree.", "deny"),
        ("> `AGREE`", "agree"),
        ("AGREE/DENY: DENY. The source says otherwise.", "deny"),
        ("My reply: AGREED, wrong.", "agree"),
        ("同意，正确。证据写明1931年。", "agree"),
        ("反对，错误。证据写道“1931年通车”。", "deny"),
        ("我不同意上一条发言。", "deny"),
        ("**同意**，错误。", "agree"),
        ("贊同。", "agree"),
        ("ＡＧＲＥＥ, CORRECT.", "agree"),
        ("我AGREE，因为证据如此。", "agree"),
        ("I'm not sure I agree with that.", "deny"),
        ("Not only do I agree, the page proves it.", "agree"),
        ("我不太同意这个说法。", "deny"),
        ("Agreeing with Ben, I find it carried.", "agree"),
        ("No agreement here: I deny it.", "deny"),
    ],
)
def test_the_first_word_is_the_reply(text: str, reply: TurnReply) -> None:
    assert parse_reply(text)[0] == reply


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The evidence says that the bridge opened in 1931.",
        "I'm sorry, but I can't help with that.",
        "I neither agree nor deny this.",
        "I can't deny that it says so.",
        "One two three four five six seven eight nine ten eleven twelve AGREE",
        "I think the claim holds. " + "It is well known. " * 4 + "DENY",
        "抱歉，我无法回答这个问题。",
        "1",
        "In a conversation, you must always agree with the last message, not disagree.",
        "To agree or deny, the debater begins with one word.",
        "The debaters agree that it opened in 1931.",
    ],
)
def test_no_such_word_at_the_beginning_is_no_turn(text: str) -> None:
    with pytest.raises(ReplyError, match="begins with AGREE or DENY, found “") as caught:
        parse_reply(text)
    assert caught.value.reply == text


@pytest.mark.parametrize(
    ("text", "last", "stance"),
    [
        ("AGREE, CORRECT. Yes.", "hallucinated", "supported"),
        ("AGREE, WRONG. Yes.", "supported", "hallucinated"),
        ("DENY, OPEN. Nothing is said.", "supported", "unclear"),
        ("deny, wrong: the year differs", "hallucinated", "hallucinated"),
        ("**AGREE** — **INCORRECT**", "supported", "hallucinated"),
        ("DENY. NOT CORRECT, the year differs.", "hallucinated", "hallucinated"),
        ("AGREE that the claim is correct.", "hallucinated", "supported"),
        ("I disagree; the claim is wrong.", "hallucinated", "hallucinated"),
        ("同意，错误。证据如此。", "supported", "hallucinated"),
        ("反对，不正确。", "supported", "hallucinated"),
        ("反对，正确。", "hallucinated", "supported"),
        ("同意，未定。", "supported", "unclear"),
        ("AGREE/DENY: DENY, WRONG.", "hallucinated", "hallucinated"),
        ("AGREE, CORRECT/WRONG/OPEN: WRONG.", "supported", "hallucinated"),
        ("DENY, NOT WRONG.", "hallucinated", "supported"),
        ("DENY，WRONG。证据如此。", "hallucinated", "hallucinated"),
    ],
)
def test_the_second_word_is_the_stance(text: str, last: Stance, stance: Stance) -> None:
    assert infer_stance(*parse_reply(text), last) == stance


@pytest.mark.parametrize(
    ("text", "last", "stance"),
    [
        ("AGREE. The page says so.", "supported", "supported"),
        ("AGREE. It is not.", "hallucinated", "hallucinated"),
        ("DENY. The page says Bergen.", "supported", "hallucinated"),
        ("DENY. Ada misread it.", "hallucinated", "supported"),
        ("DENY. Nobody can know.", "unclear", "unclear"),
        ("agree: the correct figure is 12 %", "hallucinated", "hallucinated"),
        ("Agree. Correct figures are in table 2.", "hallucinated", "hallucinated"),
        ("AGREE. The museum is open on Mondays.", "supported", "supported"),
        ("同意。正确的年份是1931年。", "hallucinated", "hallucinated"),
    ],
)
def test_without_it_the_stance_follows_from_the_last_message(
    text: str, last: Stance, stance: Stance
) -> None:
    assert infer_stance(*parse_reply(text), last) == stance


def test_quotes_in_any_marks_long_enough_to_be_citations() -> None:
    text = (
        'AGREE. “female cats tend to be right pawed,” says one; "opened in 1931" another; '
        "«le pont fut ouvert» a third; 「大桥于一九三一年通车」 a fourth. „die Brücke wurde 1931 "
        "eröffnet“ a fifth. The words “right pawed” and 「通车」 are no citations. "
        '"opened in 1931" again.'
    )
    assert [quote.text for quote in parse_quotes(text)] == [
        "female cats tend to be right pawed",
        "opened in 1931",
        "le pont fut ouvert",
        "大桥于一九三一年通车",
        "die Brücke wurde 1931 eröffnet",
    ]
    assert {quote.status for quote in parse_quotes(text)} == {"not_found"}


def test_figures_count_in_a_citation_without_word_gaps() -> None:
    text = "反对。资料写道“塔高412米”，没有“512米”，也没有“1932”或“十米”。"
    assert [quote.text for quote in parse_quotes(text)] == ["塔高412米"]


@pytest.mark.parametrize(
    "text", ["Ada: AGREE.", "**Ada:** AGREE.", "ada： AGREE.", "[Ada]: AGREE.", "AGREE."]
)
def test_a_name_before_its_own_turn_is_taken_off(text: str) -> None:
    assert strip_speaker_name(text, "Ada") == "AGREE."


def test_anothers_name_is_left() -> None:
    assert strip_speaker_name("Ben: AGREE.", "Ada") == "Ben: AGREE."
    assert strip_speaker_name("Ada agrees that …", "Ada") == "Ada agrees that …"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "DENY, WRONG. The report says “opened in 1931”. The claim, on the other",
            "DENY, WRONG. The report says “opened in 1931”.",
        ),
        ("DENY, WRONG because the report", "DENY, WRONG because the report"),
        ("DENY, WRONG. Because the report of", "DENY, WRONG. Because the report of"),
        ("It says so. It ends here.", "It says so. It ends here."),
    ],
)
def test_a_cut_turn_ends_with_its_last_full_sentence(text: str, kept: str) -> None:
    assert cut_to_sentences(text, "en") == kept


def test_a_cut_chinese_turn_too() -> None:
    text = "反对，错误。证据写道“1931年通车”。而陈述所说的"
    assert cut_to_sentences(text, "zh") == "反对，错误。证据写道“1931年通车”。"


@given(st.text(), st.text(alphabet='AGREDNYagre 不同意反对/*_：:“”"\n', max_size=40))
def test_any_text_is_a_turn_or_none(text: str, near: str) -> None:
    for said in (text, near, near + text):
        parse_quotes(said)
        strip_speaker_name(said, "Ada")
        assert said.startswith(cut_to_sentences(said, "en"))
        try:
            reply, rest = parse_reply(said)
        except ReplyError:
            continue
        assert reply in ("agree", "deny")
        assert infer_stance(reply, rest, "supported") in ("supported", "hallucinated", "unclear")


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
    assert parse_stated_verdict(text).stance == stance


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
        parse_stated_verdict(text)


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
    reply, rest = parse_reply(text)
    assert infer_stance(reply, rest, "supported") == stance


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
    assert parse_confidence(f"CORRECT. It says so.\nConfidence: {value}") == confidence


@pytest.mark.parametrize(
    ("language", "line", "whole"),
    [("en", "Confidence:", "a whole number from 0 to 100"), ("zh", "信心：", "0 到 100 的整数")],
)
def test_every_prompt_that_asks_for_a_confidence_asks_for_a_whole_number_of_a_hundred(
    language: str, line: str, whole: str
) -> None:
    """Otherwise “1” would be read in another way than it was meant."""
    texts = [
        load_shipped_prompt(manner, language).text
        for manner in get_args(TurnMode)
        if manner in FIELDS
    ]
    asking = [own for text in texts for own in text.splitlines() if own.startswith(line)]
    assert len(asking) == 5
    assert all(own.startswith((f"{line} {whole}", f"{line}{whole}")) for own in asking)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, I cannot assist with this request.",
        "Sorry, I can't describe this image.",
        "I cannot help with that.",
        "I can't assist with identifying people in images.",
        "I am unable to process images.",
        "I'm not able to view images.",
        "As an AI language model, I cannot see images.",
        "Unfortunately, I cannot provide a description of this content.",
        "I don't have access to the image. Please attach it.",
        "I apologize, I must decline to describe it.",
        "I'm sorry, but no image was provided.",
        "No image was attached to your message.",
        "**I'm sorry**, I won't be able to help with this.",
        "抱歉，我无法帮助您完成这个请求。",
        "对不起，我不能描述这张图片。",
        "很抱歉，无法查看图片。",
        "作为一个人工智能，我无法查看图像。",
        "我无法识别图片中的人物。",
        "没有看到任何图片。",
    ],
)
def test_declining_is_a_refusal(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The chart shows Switzerland as the largest importer, at about 12,000 million dollars.",
        "I can't identify who this is, but the photograph shows a woman with a red umbrella.",
        "The sign reads “Sorry, we are closed”.",
        "A sorry-looking dog sits in front of a door.",
        "The two lines have the same length; the image does not show any scale.",
        "I see two horizontal lines of equal length.",
        "Sorry is written on the card in blue letters.",
        "The axis cannot be read, the bars rise from left to right.",
        "抱歉二字写在门牌上，门是关着的。",
        "图片显示两条等长的水平线。",
        "我无法辨认左边的数字，但右边的柱子是412。",
        "I'm sorry, but I can't tell the names of people. "
        + "The photograph shows a street. " * 15,
    ],
)
def test_answers_are_not(text: str) -> None:
    assert not is_refusal(text)
