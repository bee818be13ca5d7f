"""Built-in debaters in each manner: the words follow the manner, the findings the evidence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.agents.llm_judge import contested_in
from core.agents.reply_parser import stated_in
from core.baseline.debate_manners import NOTHING, Own, Side, turn_in_manner
from core.baseline.debaters import KINDS, BuiltInDebater
from core.concurrency import Stop
from core.records import Point, Quote, Stance, Turn
from core.roles import CaseView, Debater, DebateView
from core.seats import Manner
from tests.debates import built_in
from tests.fakes import make_case, make_passage, make_view
from tests.readers import UNKNOWN_SCRIPT, word_assessor

BRIDGE = make_passage("The Halden Bridge is 412 m long and was opened in 1932.", number=1)
FERRY = make_passage("A ferry to Moss leaves the quay twice a day.", number=2, source="b.txt")
SIDES: tuple[Stance, ...] = ("supported", "hallucinated")
CATS = "Female cats tend to be right pawed, while male cats are more often left pawed."
RIGHT = "The Halden Bridge is 412 m long."
WRONG = "The Halden Bridge is 600 m long."


def view_of(claim: str) -> CaseView:
    return make_view(make_case(claim), [BRIDGE, FERRY])


def asked(claim: str, manner: Manner, *turns: Turn, assigned: Stance | None = None) -> DebateView:
    """Ada's third turn, with everything at hand."""
    view = view_of(claim)
    everything = frozenset(view.evidence.passages)
    return DebateView(view, "Ada", everything, turns, 3, 2, claim, manner=manner, assigned=assigned)


def said(debater: Debater, view: DebateView) -> Turn:
    heard: list[str] = []
    turn = debater.argue(view, heard.append, Stop())
    assert "".join(heard) == turn.text
    return turn


def readers() -> list[Debater]:
    return list(built_in().debaters.values())


def debater(kind: str) -> Debater:
    return BuiltInDebater(KINDS[kind], word_assessor())


@pytest.mark.parametrize(("claim", "stance"), [(RIGHT, "supported"), (WRONG, "hallucinated")])
def test_an_answer_states_its_verdict_confidence_and_doubt(claim: str, stance: Stance) -> None:
    """ColMAD 2.3: what is stated in the text is what is recorded, read by the same parser."""
    turns = [said(reader, asked(claim, "answer")) for reader in readers()]
    assert turns[0].stance == stance
    for turn in turns:
        stated = stated_in(turn.text)
        assert stated.stance == turn.stance
        assert stated.confidence == turn.confidence
        assert stated.doubt == turn.doubt != ""
        assert turn.quotes


@pytest.mark.parametrize("claim", [RIGHT, WRONG, "The Halden Bridge was opened in 1932 by monks."])
def test_what_an_answer_cites_is_among_its_quotes(claim: str) -> None:
    """Quotes are what code verifies and people open; a citation in the words alone is neither."""
    for reader in readers():
        turn = said(reader, asked(claim, "answer"))
        known = {quote.text for quote in turn.quotes}
        assert all(
            passage.text in known for passage in (BRIDGE, FERRY) if passage.text in turn.text
        )


def test_confidence_follows_what_is_measured() -> None:
    """A statement of which half is carried is not called open as surely as one of nothing."""
    rules = debater("rules")
    known = said(rules, asked(RIGHT, "answer")).confidence
    other = said(rules, asked("Ducks hibernate under polar ice.", "answer"))
    assert other.stance == "unclear"
    assert known is not None
    assert other.confidence is not None
    assert known > 0.8


def test_who_cannot_measure_states_no_confidence() -> None:
    unknown = make_view(make_case(UNKNOWN_SCRIPT), [make_passage(UNKNOWN_SCRIPT)])
    everything = frozenset(unknown.evidence.passages)
    view = replace(asked(RIGHT, "answer"), view=unknown, share=everything)
    entailment = said(readers()[2], view)
    assert "do not know the language" in entailment.text
    assert (entailment.confidence, entailment.doubt) == (None, "")
    assert "Confidence" not in entailment.text


@pytest.mark.parametrize("claim", [RIGHT, WRONG])
@pytest.mark.parametrize("side", SIDES)
def test_an_assigned_side_is_argued_from_the_evidence_or_not_at_all(
    claim: str, side: Stance
) -> None:
    """CopMAD: they take the side; every quote stands in the sources, and nothing is invented."""
    texts = {passage.text for passage in (BRIDGE, FERRY)}
    for reader in readers():
        turn = said(reader, asked(claim, "compete", assigned=side))
        assert (turn.stance, turn.confidence, turn.doubt) == (side, None, "")
        assert {quote.text for quote in turn.quotes} <= texts
        assert turn.quotes or "No passage" in turn.text or NOTHING in turn.text
        own = said(reader, asked(claim, "answer")).stance
        assert not turn.points or own == side


def test_with_nothing_for_its_side_a_debater_says_so() -> None:
    turn = said(debater("rules"), asked(RIGHT, "compete", assigned="hallucinated"))
    assert turn.text == f"WRONG. {NOTHING}"


def test_collaborating_names_what_the_other_left_out() -> None:
    other = Turn("Ben", "Other", 2, 1, "agree", "supported", "CORRECT. I think so.")
    turn = said(debater("rules"), asked(WRONG, "collaborate", other))
    assert turn.stance == "hallucinated"
    assert "What Ben left out:" in turn.text
    assert "412 m" in turn.text
    assert turn.doubt


def test_collaborating_repeats_nothing_that_was_said() -> None:
    first = said(debater("rules"), asked(WRONG, "answer"))
    ben = replace(first, debater="Ben", number=2)
    turn = said(debater("rules"), asked(WRONG, "collaborate", ben))
    assert "Ben comes to the same. I find nothing that was left out." in turn.text


def test_collaborating_gives_the_other_reading_what_there_is_for_it() -> None:
    mine = said(debater("overlap"), asked("The Halden Bridge is long.", "answer"))
    assert mine.stance == "supported"
    other = Turn("Ben", "Other", 2, 1, "deny", "hallucinated", "WRONG. It is 412 m.")
    rules = said(debater("rules"), asked(WRONG, "answer"))
    heard = (rules, replace(other, stance="supported", text="CORRECT. It is."))
    turn = said(debater("rules"), asked(WRONG, "collaborate", *heard))
    assert "For Ben’s reading I find this:" in turn.text


def test_a_changed_mind_is_owned_up_to() -> None:
    """It was given the other passage alone; what Ben quotes it reads too."""
    alone = replace(asked(RIGHT, "answer"), share=frozenset({FERRY.id}))
    for kind in ("overlap", "entailment"):
        before = said(debater(kind), alone)
        ben = replace(said(debater(kind), asked(RIGHT, "answer")), debater="Ben", number=2)
        after = said(debater(kind), replace(alone, turns=(before, ben), manner="collaborate"))
        assert before.stance != after.stance == "supported"
        assert "changes my mind" in after.text


@given(st.sampled_from(["answer", "collaborate"]), st.floats(0, 1), st.sampled_from(SIDES))
@settings(max_examples=30, deadline=None)
def test_whatever_is_found_the_text_states_what_is_recorded(
    manner: Manner, strength: float, stance: Stance
) -> None:
    own = Own(stance, {stance: Side(("It stands there.",), (), strength)}, "I may err.")
    turn = turn_in_manner(asked(RIGHT, manner), "Reader", own)
    stated = stated_in(turn.text)
    assert (stated.stance, stated.confidence, stated.doubt) == (stance, turn.confidence, turn.doubt)


def heard(stance: Stance, debater: str, number: int, text: str = "") -> Turn:
    return Turn(debater, debater, number, 1, "agree", stance, text or f"{debater} says so.")


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        ("supported", "hallucinated", "changes my mind"),
        ("hallucinated", "hallucinated", "All come to"),
        ("hallucinated", "supported", "what Ben said, and it does not change"),
    ],
)
def test_who_reconsiders_says_what_the_others_changed(
    mine: Stance, theirs: Stance, words: str
) -> None:
    turns = (heard(mine, "Ada", 1), heard(theirs, "Ben", 2))
    turn = said(debater("rules"), asked(WRONG, "reconsider", *turns))
    assert words in turn.text
    assert turn.text.startswith("WRONG.")
    assert (turn.stance, turn.confidence) == ("hallucinated", stated_in(turn.text).confidence)
    assert turn.reply == ("agree" if theirs == "hallucinated" else "deny"), "to the last message"


def test_who_has_to_oppose_argues_with_what_the_evidence_has_and_invents_nothing() -> None:
    first = heard("hallucinated", "Ben", 1)
    turn = said(debater("overlap"), asked(WRONG, "tit_for_tat", first, assigned="supported"))
    assert turn.text.startswith("DENY, CORRECT. ")
    assert (turn.stance, turn.points) == ("supported", ())
    assert all(quote.status == "verified" for quote in turn.quotes)
    far = asked(RIGHT, "tit_for_tat", heard("supported", "Ben", 1), assigned="hallucinated")
    assert NOTHING in said(debater("rules"), far).text


def test_who_is_free_in_tit_for_tat_says_whether_the_other_convinced_it() -> None:
    agreed = said(debater("rules"), asked(WRONG, "tit_for_tat", heard("hallucinated", "Ben", 1)))
    assert agreed.text.startswith("AGREE, WRONG. Here Ben is right.")
    denied = said(debater("rules"), asked(WRONG, "tit_for_tat", heard("supported", "Ben", 1)))
    assert denied.text.startswith("DENY, WRONG. ")
    opening = said(debater("rules"), asked(WRONG, "tit_for_tat"))
    assert opening.text.startswith("DENY, WRONG. The statement says “600 m”, the source “412 m”.")


def contesting(words: str, finding: str = "contradicted", evidence: str = "") -> Point:
    start = WRONG.index(words)
    return Point(0, finding, start, start + len(words), words, "number_or_date", evidence, "", 0.8)  # type: ignore[arg-type]


def test_who_detects_names_each_place_on_a_line_that_is_read_like_a_models() -> None:
    turn = said(debater("rules"), asked(WRONG, "detect"))
    assert turn.text.startswith("WRONG. ")
    assert "\nWords: “600 m”\n" in turn.text
    read = contested_in(turn.text, make_case(WRONG), view_of(WRONG).statements, turn.confidence)
    assert [(p.start, p.end) for p in read.points] == [(p.start, p.end) for p in turn.points]
    assert said(debater("rules"), asked(RIGHT, "detect")).text.count("Words:") == 0


def test_a_critic_keeps_contrasts_in_what_it_calls_wrong_and_drops_what_others_merely_miss() -> (
    None
):
    found = (contesting("600 m", evidence="412 m"), contesting("Halden", "missing"))
    ben = replace(heard("hallucinated", "Ben", 1), points=found)
    cleo = readers()[2]
    turn = said(cleo, asked(WRONG, "critique", ben))
    assert (turn.reply, turn.stance) == ("agree", "hallucinated")
    assert [p.text for p in turn.points] == ["600 m"]
    assert "does not bear out “Halden”" in turn.text
    assert "Words: “600 m” -> “412 m”" in turn.text
    kind = said(cleo, asked(RIGHT, "critique", replace(ben, points=(contesting("Halden"),))))
    assert (kind.reply, kind.points) == ("deny", ())


def test_who_revises_puts_in_the_evidences_value_and_never_guesses() -> None:
    ada = replace(heard("hallucinated", "Ada", 1), points=(contesting("600 m", evidence="412 m"),))
    assert said(debater("rules"), asked(WRONG, "revise", ada)).text == RIGHT
    missing = replace(ada, points=(contesting("Halden", "missing"),))
    turn = said(debater("rules"), asked(WRONG, "revise", missing))
    assert (turn.text, turn.stance) == (WRONG, "hallucinated"), (
        "it cannot mend what it still denies"
    )


def answer_of(claim: str, stance: Stance, text: str = "") -> Turn:
    """Ben's answer, of which the others speak."""
    forged = Quote("It is 900 m long.", "not_found")
    return Turn("Ben", "m", 2, 0, "agree", stance, text or "So it is.", (forged,), manner="answer")


@pytest.mark.parametrize("manner", ["advise", "attack"])
@pytest.mark.parametrize(("claim", "stance"), [(RIGHT, "supported"), (WRONG, "hallucinated")])
@pytest.mark.parametrize("theirs", [*SIDES, "unclear"])
def test_critics_keep_their_stance_and_answer_the_one_that_they_speak_of(
    manner: Manner, claim: str, stance: Stance, theirs: Stance
) -> None:
    view = replace(asked(claim, manner, answer_of(claim, theirs)), about="Ben")
    turn = said(debater("rules"), view)
    assert turn.stance == stance
    assert turn.reply == ("agree" if stance == theirs else "deny")
    head = {"supported": "CORRECT", "hallucinated": "WRONG"}[stance]
    assert turn.text.startswith(f"{turn.reply.upper()}, {head}.")
    whole = " ".join(view.view.sources.values())
    assert all(quote.text in whole for quote in turn.quotes)


def test_advice_names_a_quote_that_stands_in_no_source() -> None:
    view = replace(asked(WRONG, "advise", answer_of(WRONG, "hallucinated")), about="Ben")
    assert "“It is 900 m long.” stands in no source." in said(debater("rules"), view).text


def test_advice_repeats_nothing_that_the_answer_says() -> None:
    first = said(debater("rules"), asked(WRONG, "answer"))
    theirs = replace(first, debater="Ben", manner="answer")
    view = replace(asked(WRONG, "advise", theirs), about="Ben")
    assert said(debater("rules"), view).text == "AGREE, WRONG. I find nothing that it leaves out."


def test_an_attack_on_what_it_agrees_with_brings_the_most_that_there_is_against_it() -> None:
    answer = answer_of(WRONG, "hallucinated")
    view = replace(asked(WRONG, "attack", answer), about="Ben")
    other = Side(("The bridge is long.",), (), 0.2)
    own = Own("hallucinated", {"hallucinated": Side(("No.",)), "supported": other}, "")
    turn = turn_in_manner(view, "A", own)
    assert "The most that I find against it: The bridge is long." in turn.text
    bare = turn_in_manner(view, "A", Own("hallucinated", {"hallucinated": Side(("No.",))}, ""))
    assert "withstands" in bare.text
