"""Built-in debaters in long debates: what is new is said, and that nothing is in a few words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.baseline.debaters import NOTHING_NEW, has_come_to_an_end, new_words, nothing_new
from core.baseline.wording import WORDS_OF_STANCE
from core.debate.protocols import protocol_of
from core.debate.signals import signals_of
from core.debate.votes import last_reason
from core.schema.progress import Progress
from core.schema.records import Plan, Quote, Stance, Turn
from core.schema.roles import DebateView
from tests.debates import arguing, built_in
from tests.fakes import make_case, make_passage, make_view

LONG = make_passage(
    "The Vidar bridge, which the people of Oslen had asked for since the great flood, carries four "
    "lanes of traffic and a path for those who walk.",
    number=1,
)
OPENED = make_passage("It was opened by the mayor of Oslen in May 1931.", number=2)
VIEW = make_view(
    make_case("The Vidar bridge was opened in 1931 and carries no lanes."), [LONG, OPENED]
)


@pytest.fixture(scope="module")
def progress() -> Progress:
    plan = Plan("ceda", max_turns=9)
    debate = arguing(protocol_of(plan).argue, VIEW, built_in(), plan=plan)
    assert list(debate.events())
    return debate.state.progress


def by_debater(progress: Progress) -> dict[str, list[Turn]]:
    """Each one's turns in order."""
    found: dict[str, list[Turn]] = {}
    for turn in sorted(progress.turns, key=lambda turn: turn.number):
        found.setdefault(turn.debater, []).append(turn)
    return found


def test_nobody_says_the_whole_again(progress: Progress) -> None:
    for turns in by_debater(progress).values():
        assert len(turns) > 2, "a debate that goes on"
        first, *later = (turn.text.splitlines()[0].partition(". ")[2] for turn in turns)
        assert not [text for text in later if first in text]


def test_who_has_nothing_new_names_stance_and_what_it_quoted(
    progress: Progress,
) -> None:
    for turns in by_debater(progress).values():
        last = turns[-1]
        assert f"{NOTHING_NEW}: " in last.text
        assert f"hold to “{WORDS_OF_STANCE[last.stance]}”" in last.text
        assert last.quotes, "what it rests on goes with it still"
        assert any(quote.text[:30] in last.text for quote in last.quotes)


def test_what_is_quoted_in_a_few_words_is_found_in_the_sources(progress: Progress) -> None:
    assert not [one for one in signals_of(progress) if one.kind == "quote_not_found"]


def own(number: int, text: str, stance: Stance = "supported", *quotes: str) -> Turn:
    found = tuple(Quote(text, "verified") for text in quotes)
    return Turn("Ada", "Reader", number, number, "agree", stance, text, found)


def heard(*turns: Turn) -> DebateView:
    return DebateView(VIEW, "Ada", frozenset(), turns, 9, 3, "It is so.", manner="debate")


def test_what_was_said_is_left_out_and_what_is_new_is_said() -> None:
    said = heard(own(1, "CORRECT. It stands there."))
    assert new_words(["It stands there.", "So does that."], "supported", (), said) == [
        "So does that."
    ]
    assert new_words(["It stands there."], "supported", (), heard()) == ["It stands there."]
    other = replace(said.turns[0], debater="Ben")
    assert new_words(["It stands there."], "supported", (), heard(other)) == ["It stands there."]


def test_a_changed_mind_and_another_quote_are_something_new() -> None:
    words, quote = ["It stands there."], Quote("four lanes", "verified")
    ended = own(4, nothing_new("supported", (quote,)), "supported", "four lanes")
    assert has_come_to_an_end((quote,), "supported", heard(ended))
    assert new_words(words, "supported", (quote,), heard(ended)) == [
        "I have nothing new: I quoted “four lanes” and hold to “correct”."
    ]
    assert new_words(words, "hallucinated", (quote,), heard(ended)) == words
    fresh = (quote, Quote("a path", "verified"))
    assert new_words(words, "supported", fresh, heard(ended)) == words


def test_the_reason_for_an_answer_is_the_last_that_was_given_for_that_stance() -> None:
    turns = [
        own(1, "WRONG. It is not there.", "hallucinated"),
        own(2, "CORRECT. It stands there."),
        replace(own(3, "AGREE, CORRECT. It leaves nothing out."), about="Ben"),
        replace(own(5, "A whole text."), manner="revise"),
        replace(own(6, "CORRECT. Another's."), debater="Ben"),
    ]
    assert last_reason(turns, turns[3]) == turns[1]
    assert last_reason(turns, turns[1]) == turns[1]
    assert last_reason([turns[3]], turns[3]) == turns[3], "there is no other"
