"""Built-in debaters who answer alone: their words state what is recorded of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.agents.reply_parser import stated_in
from core.baseline.debaters import KINDS, BuiltInDebater
from core.runtime.concurrency import Stop
from core.schema.records import Stance, Turn
from core.schema.roles import CaseView, Debater, DebateView
from tests.debates import built_in
from tests.fakes import make_case, make_passage, make_view
from tests.readers import UNKNOWN_SCRIPT, word_assessor

BRIDGE = make_passage("The Halden Bridge is 412 m long and was opened in 1932.", number=1)
FERRY = make_passage("A ferry to Moss leaves the quay twice a day.", number=2, source="b.txt")
RIGHT = "The Halden Bridge is 412 m long."
WRONG = "The Halden Bridge is 600 m long."


def view_of(claim: str) -> CaseView:
    return make_view(make_case(claim), [BRIDGE, FERRY])


def asked(claim: str) -> DebateView:
    """Ada's first turn, with everything at hand."""
    view = view_of(claim)
    return DebateView(
        view, "Ada", frozenset(view.evidence.passages), (), 1, 1, claim, manner="answer"
    )


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
    turns = [said(reader, asked(claim)) for reader in readers()]
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
        turn = said(reader, asked(claim))
        known = {quote.text for quote in turn.quotes}
        assert all(
            passage.text in known for passage in (BRIDGE, FERRY) if passage.text in turn.text
        )


def test_confidence_follows_what_is_measured() -> None:
    """A statement of which half is carried is not called open as surely as one of nothing."""
    rules = debater("rules")
    known = said(rules, asked(RIGHT)).confidence
    other = said(rules, asked("Ducks hibernate under polar ice."))
    assert other.stance == "unclear"
    assert known is not None
    assert other.confidence is not None
    assert known > 0.8


def test_who_cannot_measure_states_no_confidence() -> None:
    unknown = make_view(make_case(UNKNOWN_SCRIPT), [make_passage(UNKNOWN_SCRIPT)])
    everything = frozenset(unknown.evidence.passages)
    view = replace(asked(RIGHT), view=unknown, share=everything)
    entailment = said(readers()[2], view)
    assert "do not know the language" in entailment.text
    assert (entailment.confidence, entailment.doubt) == (None, "")
    assert "Confidence" not in entailment.text
