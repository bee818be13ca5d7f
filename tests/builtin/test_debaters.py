"""Two unlike debaters: they quote, they differ, they learn from each other, they keep it short."""

from __future__ import annotations

import pytest

from tests.builtin.debates import check

CATS = "Female cats tend to be right pawed, while male cats are more often left pawed."


def test_all_agree_where_it_is_plain_and_stop_after_a_turn_each() -> None:
    outcome = check("Female cats tend to be right pawed.", CATS)
    assert [turn.reply for turn in outcome.turns] == ["agree"] * 3
    assert len({turn.debater for turn in outcome.turns}) == 3
    assert {turn.stance for turn in outcome.turns} == {"supported"}


def test_the_overlap_reader_learns_of_a_contrast_and_changes_its_mind() -> None:
    """Alone it would count "left" as carried: the word does stand in the sentence."""
    outcome = check("Female cats tend to be left pawed.", CATS)
    rules, overlap = outcome.turns[:2]
    assert (rules.reply, rules.stance) == ("deny", "hallucinated")
    assert (overlap.reply, overlap.stance) == ("agree", "hallucinated")
    assert "Read clause by clause" in overlap.text


def test_a_denial_keeps_them_apart_for_all_turns() -> None:
    outcome = check("Female cats do not tend to be right pawed.", CATS)
    assert len(outcome.turns) == 5
    assert {turn.stance for turn in outcome.turns} == {"hallucinated", "supported"}
    assert "disagree" in outcome.judgement.text


def test_one_turn_is_one_reading() -> None:
    outcome = check("Female cats tend to be left pawed.", CATS, turns=1)
    assert len(outcome.turns) == 1
    assert outcome.judgement.label == "hallucinated"
    assert "single reading" in outcome.judgement.text


@pytest.mark.parametrize(
    "claim",
    [
        "Female cats tend to be left pawed.",
        "Female cats do not tend to be right pawed.",
        "Male cats are rarely left pawed in most of the houses of the northern towns.",
    ],
)
def test_turns_open_with_the_reply_quote_the_source_and_never_repeat_themselves(claim: str) -> None:
    outcome = check(claim, CATS)
    for turn in outcome.turns:
        assert turn.text.startswith(("AGREE.", "DENY."))
        assert len(turn.text.split()) <= 100
        assert all(quote.status == "verified" for quote in turn.quotes)
    by_debater: dict[str, list[str]] = {}
    for turn in outcome.turns:
        by_debater.setdefault(turn.debater, []).append(turn.text)
    for texts in by_debater.values():
        assert texts[0] not in texts[1:]


def test_the_same_case_is_argued_the_same_way_twice() -> None:
    claim = "Male cats tend to be right pawed."
    assert check(claim, CATS).turns == check(claim, CATS).turns


@pytest.mark.parametrize(
    ("last", "other", "cause"),
    [
        ("Ferries to Norway stopped running last winter.", "", "not_addressed"),
        ("Its towers are 61 m high.", "The bridge's towers are 75 m high.", "sources_disagree"),
    ],
)
def test_one_open_statement_leaves_the_whole_response_open(
    last: str, other: str, cause: str
) -> None:
    text = (
        "The Halden Bridge is 412 m long. The bridge was opened in 1932. Tolls on the bridge were "
        "abolished in 1971. The bridge's towers are 61 m high."
    )
    said = (
        "The Halden Bridge is 412 m long. The bridge was opened in 1932. Tolls on the bridge were "
        f"abolished in 1971. {last}"
    )
    outcome = check(said, *[text, other][: 2 if other else 1])
    assert (outcome.judgement.label, outcome.judgement.cause) == ("unclear", cause)


def test_a_sum_of_one_statement_carries_no_other() -> None:
    text = "The three plants of the firm: Arvika employs 420 people and Lahti employs 510 people."
    said = "Arvika and Lahti together employ 930 people. The mayor founded a zoo with lions."
    outcome = check(said, text)
    reader = [turn for turn in outcome.turns if turn.agent == "Overlap reader"]
    assert all(turn.stance != "supported" for turn in reader)
