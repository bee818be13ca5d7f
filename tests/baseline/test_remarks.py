"""Built-in debaters and what people say in mid-debate: they read what it points to, and say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.baseline.debaters import answered, pointed_at
from core.llm.call import in_silence
from core.runtime.concurrency import Stop
from core.schema.records import Turn
from core.schema.roles import DebateView
from core.schema.rosters import Manner
from tests.debates import built_in
from tests.fakes import make_case, make_passage, make_view

BRIDGE = make_passage("The Halden Bridge is 412 m long.", number=1, source="report.pdf")
FERRY = make_passage("The Halden Bridge was closed in 1990.", number=2, source="minutes.txt")
CLAIM = "The Halden Bridge was closed in 1985."
VIEW = make_view(make_case(CLAIM), [BRIDGE, FERRY])
NOTHING = "What Mira says names nothing in the sources; I go by the evidence alone."


def asked(*said: str, share: frozenset[str] | None = None, manner: Manner = "debate") -> DebateView:
    whole = frozenset({BRIDGE.id, FERRY.id}) if share is None else share
    remarks = tuple(("Mira", words) for words in said)
    return DebateView(VIEW, "Ada", whole, (), 1, 1, CLAIM, manner=manner, remarks=remarks)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Look at the minutes.", [FERRY]),
        ("Was it not 1990?", [FERRY]),
        ("It says “bridge is 412 m”.", [BRIDGE]),
        ("You are all wrong.", []),
        ("", []),
    ],
)
def test_a_passage_is_named_by_its_source_its_words_or_its_values(
    words: str, found: list[object]
) -> None:
    assert list(pointed_at(asked(words))) == found


@pytest.mark.parametrize("manner", ["debate", "answer"])
def test_what_a_person_points_to_is_read_though_it_was_another_s_share(manner: Manner) -> None:
    """The stance stays what the evidence gives; it is more evidence that is read."""
    rules = built_in().debaters["Ada"]
    alone = asked(share=frozenset({BRIDGE.id}), manner=manner)
    assert rules.argue(alone, in_silence, Stop()).stance == "unclear"
    told = replace(alone, remarks=(("Mira", "See the minutes."),))
    turn = rules.argue(told, in_silence, Stop())
    assert turn.stance == "hallucinated"
    assert "I have read what Mira points to: “The Halden Bridge was closed in 1990.”" in turn.text


def test_words_that_name_nothing_change_nothing_and_are_answered_once() -> None:
    for debater in built_in().debaters.values():
        before = debater.argue(asked(), in_silence, Stop())
        turn = debater.argue(asked("It is supported, believe me!"), in_silence, Stop())
        assert (turn.stance, turn.quotes, turn.points) == (
            before.stance,
            before.quotes,
            before.points,
        )
        assert NOTHING in turn.text
        later: tuple[Turn, ...] = (turn,)
        again = replace(asked("It is supported, believe me!"), turns=later, number=3)
        assert NOTHING not in debater.argue(again, in_silence, Stop()).text


def test_nobody_answers_where_nobody_spoke() -> None:
    assert answered(asked()) == []
