"""What is heard in a debater's plain text: reply, stance, quotes, and where a cut turn ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.reply_parser import quotes_in, reply_of, stance_of, whole_sentences, without_name
from core.runtime.errors import ReplyError
from core.schema.records import Reply, Stance


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
def test_the_first_word_is_the_reply(text: str, reply: Reply) -> None:
    assert reply_of(text)[0] == reply


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
        reply_of(text)
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
    assert stance_of(*reply_of(text), last) == stance


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
    assert stance_of(*reply_of(text), last) == stance


def test_quotes_in_any_marks_long_enough_to_be_citations() -> None:
    text = (
        'AGREE. “female cats tend to be right pawed,” says one; "opened in 1931" another; '
        "«le pont fut ouvert» a third; 「大桥于一九三一年通车」 a fourth. „die Brücke wurde 1931 "
        "eröffnet“ a fifth. The words “right pawed” and 「通车」 are no citations. "
        '"opened in 1931" again.'
    )
    assert [quote.text for quote in quotes_in(text)] == [
        "female cats tend to be right pawed",
        "opened in 1931",
        "le pont fut ouvert",
        "大桥于一九三一年通车",
        "die Brücke wurde 1931 eröffnet",
    ]
    assert {quote.status for quote in quotes_in(text)} == {"not_found"}


def test_figures_count_in_a_citation_without_word_gaps() -> None:
    text = "反对。资料写道“塔高412米”，没有“512米”，也没有“1932”或“十米”。"
    assert [quote.text for quote in quotes_in(text)] == ["塔高412米"]


@pytest.mark.parametrize(
    "text", ["Ada: AGREE.", "**Ada:** AGREE.", "ada： AGREE.", "[Ada]: AGREE.", "AGREE."]
)
def test_a_name_before_its_own_turn_is_taken_off(text: str) -> None:
    assert without_name(text, "Ada") == "AGREE."


def test_anothers_name_is_left() -> None:
    assert without_name("Ben: AGREE.", "Ada") == "Ben: AGREE."
    assert without_name("Ada agrees that …", "Ada") == "Ada agrees that …"


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
    assert whole_sentences(text, "en") == kept


def test_a_cut_chinese_turn_too() -> None:
    text = "反对，错误。证据写道“1931年通车”。而陈述所说的"
    assert whole_sentences(text, "zh") == "反对，错误。证据写道“1931年通车”。"


@given(st.text(), st.text(alphabet='AGREDNYagre 不同意反对/*_：:“”"\n', max_size=40))
def test_any_text_is_a_turn_or_none(text: str, near: str) -> None:
    for said in (text, near, near + text):
        quotes_in(said)
        without_name(said, "Ada")
        assert said.startswith(whole_sentences(said, "en"))
        try:
            reply, rest = reply_of(said)
        except ReplyError:
            continue
        assert reply in ("agree", "deny")
        assert stance_of(reply, rest, "supported") in ("supported", "hallucinated", "unclear")
