"""Three unlike debaters: they quote, differ, learn from each other, and keep it short."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from core.baseline.debaters import KINDS, BuiltInDebater
from core.debate.protocols import protocol_of
from core.llm.call import in_silence
from core.runtime.concurrency import Stop
from core.schema.records import Plan, Turn
from core.schema.roles import DebateView
from tests.debates import arguing, built_in, turns
from tests.fakes import make_case, make_passage, make_view
from tests.readers import CONTRADICTS, SUPPORTS, Odds, ScriptedReader, assessor_with

BRIDGE = make_passage("The Halden Bridge is 412 m long and was opened in 1932.", number=1)
FERRY = make_passage("A ferry to Moss leaves the quay twice a day.", number=2, source="b.txt")
RIGHT = "The Halden Bridge is 412 m long."
WRONG = "The Halden Bridge is 600 m long."
DENIED = "The Halden Bridge is not 412 m long."


@dataclass(frozen=True)
class Debated:
    """What was said, and what the judge made of it."""

    turns: list[Turn]
    text: str
    label: str


def debated(claim: str, most: int = 5) -> Debated:
    view = make_view(make_case(claim), (BRIDGE, FERRY))
    plan = Plan(max_turns=most)
    at = arguing(protocol_of(plan).argue, view, built_in(), plan=plan)
    said = turns(list(at.events()))
    judgement = at.state.progress.judgement
    assert judgement
    return Debated(said, judgement.text, judgement.label)


def test_all_agree_where_it_is_plain_and_stop_after_a_turn_each() -> None:
    said = debated(RIGHT).turns
    assert [turn.reply for turn in said] == ["agree"] * 3
    assert len({turn.debater for turn in said}) == 3
    assert {turn.stance for turn in said} == {"supported"}


def test_a_denial_keeps_them_apart_for_all_turns() -> None:
    """The values are the same; what is said of them is not."""
    found = debated(DENIED)
    assert len(found.turns) == 5
    assert {turn.stance for turn in found.turns} >= {"hallucinated", "supported"}
    assert "The debaters disagree" in found.text
    assert found.label == "hallucinated"


@pytest.mark.parametrize("claim", [RIGHT, WRONG, DENIED])
def test_turns_open_with_the_reply_quote_the_source_and_never_repeat_themselves(claim: str) -> None:
    by_debater: dict[str, list[str]] = {}
    for turn in debated(claim).turns:
        assert turn.text.startswith(("AGREE.", "DENY."))
        assert len(turn.text.split()) <= 100
        assert {quote.text for quote in turn.quotes} <= {BRIDGE.text, FERRY.text}
        by_debater.setdefault(turn.debater, []).append(turn.text)
    assert all(texts[0] not in texts[1:] for texts in by_debater.values())


def test_the_same_case_is_argued_the_same_way_twice() -> None:
    assert debated(DENIED) == debated(DENIED)


def test_a_wrong_value_is_told_with_the_sources_own() -> None:
    first = debated(WRONG, 1).turns[0]
    assert (first.agent, first.stance) == ("Value checker", "hallucinated")
    assert "The statement says “600 m”, the source “412 m”." in first.text
    assert [(p.text, p.evidence) for p in first.points] == [("600 m", "412 m")]


def argued(kind: str, claim: str, odds: Odds) -> Turn:
    view = make_view(make_case(claim), [BRIDGE])
    debater = BuiltInDebater(KINDS[kind], assessor_with(ScriptedReader({"Halden": odds})))
    seen = DebateView(view, "Ada", frozenset({BRIDGE.id}), (), 1, 1, claim)
    return debater.argue(seen, in_silence, Stop())


@pytest.mark.parametrize(
    ("odds", "words"),
    [(SUPPORTS, "says so."), (CONTRADICTS, "cannot be true together with it.")],
)
def test_the_entailment_reader_says_what_the_passage_means(odds: Odds, words: str) -> None:
    assert words in argued("entailment", RIGHT, odds).text


def test_words_that_no_passage_has_are_named_as_they_are_written() -> None:
    text = argued("overlap", "Halden Bridge establishes several companies.", CONTRADICTS).text
    assert "“establishes”, “several” and “companies” appear in none of my passages." in text


def test_what_another_debater_quotes_is_read_too() -> None:
    view = make_view(make_case(RIGHT), (BRIDGE, FERRY))
    overlap = built_in().debaters["Ben"]
    alone = DebateView(view, "Ben", frozenset({FERRY.id}), (), 2, 1, RIGHT)
    first = (
        built_in()
        .debaters["Ada"]
        .argue(replace(alone, debater="Ada", share=frozenset({BRIDGE.id})), in_silence, Stop())
    )
    assert overlap.argue(alone, in_silence, Stop()).stance != "supported"
    heard = replace(alone, turns=(first,), number=3)
    assert overlap.argue(heard, in_silence, Stop()).stance == "supported"
