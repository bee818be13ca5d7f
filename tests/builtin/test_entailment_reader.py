"""The entailment reader in the debate: it quotes what decides, in words, and knows its limits."""

from __future__ import annotations

import re

import pytest

from core.builtin.entailment_reader import EntailmentDebater
from core.builtin.speech import quote_of
from core.concurrency import Stop
from core.records import Passage, Turn
from core.roles import DebateView
from tests.builtin.told_reader import CARRIES, CONTRADICTS, MUTED_WORD, Odds, ToldReader
from tests.fakes import make_case, make_passage, make_view

CLAIM = "The keeper stayed through the winter."
LEFT = make_passage("The keeper went away in November.", number=1)
WEATHER = make_passage("The winters are cold.", number=2)


def turn(
    said: dict[str, Odds], *passages: Passage, claim: str = CLAIM, turns: tuple[Turn, ...] = ()
) -> Turn:
    view = make_view(make_case(claim), passages)
    share = frozenset(p.id for p in passages)
    number = len(turns) + 1
    seen = DebateView(view, "Cleo", share, turns, number, number, "")
    spoken: list[str] = []
    made = EntailmentDebater(ToldReader(said)).argue(seen, spoken.append, Stop())
    assert "".join(spoken) == made.text
    return made


def test_a_contradiction_is_told_with_the_passage_that_decides() -> None:
    made = turn({"November": CONTRADICTS}, WEATHER, LEFT)
    assert (made.reply, made.stance) == ("deny", "hallucinated")
    assert made.text.startswith("DENY. “The keeper went away in November.”")
    assert "plainly contradicts it" in made.text
    assert [quote.text for quote in made.quotes] == [LEFT.text]


def test_support_is_told_with_the_passage_that_says_so() -> None:
    made = turn({"November": CARRIES}, LEFT)
    assert (made.reply, made.stance) == ("agree", "supported")
    assert "plainly says so" in made.text
    assert made.quotes[0].text == LEFT.text


@pytest.mark.parametrize(
    ("odds", "words"),
    [
        ((0.03, 0.03, 0.94), "Nothing here says it, and nothing denies it."),
        ((0.2, 0.45, 0.35), "nearly contradicts it"),
        ((0.45, 0.2, 0.35), "nearly says so"),
    ],
)
def test_what_does_not_decide_is_said_to_lean(odds: Odds, words: str) -> None:
    made = turn({"November": odds}, LEFT)
    assert made.stance == "unclear"
    assert words in made.text
    assert not re.search(r"not_enough|\d\.\d|P\(", made.text)


def test_a_language_it_cannot_read_is_left_to_the_others() -> None:
    made = turn({"November": CARRIES}, LEFT, claim=f"{MUTED_WORD} is spoken in the whole country.")
    assert made.stance == "unclear"
    assert "cannot read this language" in made.text
    assert made.quotes == ()


def test_without_a_passage_it_says_so() -> None:
    assert "no passage" in turn({}).text


def test_it_does_not_repeat_itself_when_answered() -> None:
    first = turn({"November": CONTRADICTS}, LEFT)
    answer = Turn(
        "Ben", "Overlap reader", 2, 1, "deny", "supported", "DENY. All words stand there."
    )
    second = turn({"November": CONTRADICTS}, LEFT, turns=(first, answer))
    assert second.stance == "hallucinated"
    assert second.text != first.text
    assert "cannot hold together" in second.text


def test_a_passage_that_another_quotes_is_read_as_well() -> None:
    other = Turn("Ada", "Rule checker", 1, 1, "deny", "hallucinated", "DENY.", (quote_of(LEFT),))
    view = make_view(make_case(CLAIM), [LEFT, WEATHER])
    seen = DebateView(view, "Cleo", frozenset([WEATHER.id]), (other,), 2, 1, "")
    made = EntailmentDebater(ToldReader({"November": CONTRADICTS})).argue(
        seen, lambda _: None, Stop()
    )
    assert (made.reply, made.stance) == ("agree", "hallucinated")
