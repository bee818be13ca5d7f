"""CEDA's debate: turns in order, consensus over two turns, N turns at most, resumable."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.debate.sequential import debate_ceda as ceda
from core.debate.sequential import reached_consensus
from core.runtime.concurrency import Stop
from core.runtime.errors import ReplyError, ReviewError, Stopped
from core.schema.events import Event
from core.schema.records import Context, Plan, Share, Turn
from tests.debates import arguing, kinds, seated, turns
from tests.fakes import Line, ScriptedDebater, make_case, make_passage, make_view

CLAIM = "Is the top line shorter than the bottom line?"
FACT = make_passage("The two lines are of equal length.", number=1)
OTHER = make_passage("The arrows only seem to change it.", number=2, source="b.txt")
VIEW = make_view(make_case(CLAIM), [FACT, OTHER])
CONTEXT = Context((Share("D", (FACT.id,)), Share("E", (OTHER.id,))), (FACT.id, OTHER.id), "")


def debate(
    one: list[Line | ReviewError],
    other: list[Line | ReviewError],
    *,
    max_turns: int = 5,
    past: Sequence[Event] = (),
) -> tuple[list[Event], ScriptedDebater, ScriptedDebater]:
    first, second = ScriptedDebater("One", one), ScriptedDebater("Two", other)
    roster = seated({"D": first, "E": second})
    plan = Plan(max_turns=max_turns)
    debating = arguing(ceda, VIEW, roster, plan=plan, context=CONTEXT, past=past)
    return list(debating.events()), first, second


def test_the_papers_illusion_both_agree_and_the_claim_is_false() -> None:
    """CEDA A.3, example 2: two replies "agree", both saying that the statement does not hold."""
    events, _, _ = debate(
        [("agree", "hallucinated", "AGREE. The lines are identical, so it is not shorter.")],
        [("agree", "hallucinated", "AGREE. Measurement confirms that the lengths are equal.")],
    )
    assert kinds(events) == ["turn_started", "turn_finished"] * 2 + ["consensus_reached"]
    consensus = events[-1]
    assert consensus.kind == "consensus_reached"
    assert (consensus.stance, consensus.turns) == ("hallucinated", 2)


def test_agreeing_words_with_opposite_stances_are_no_consensus() -> None:
    events, _, _ = debate(
        [("agree", "supported", "AGREE.")] * 3, [("agree", "hallucinated", "AGREE.")] * 2
    )
    assert "consensus_reached" not in kinds(events)
    assert len(turns(events)) == 5


def test_one_agreement_is_not_enough() -> None:
    events, _, _ = debate(
        [("deny", "hallucinated", "DENY."), ("agree", "hallucinated", "AGREE.")],
        [("agree", "hallucinated", "AGREE.")],
    )
    assert [t.debater for t in turns(events)] == ["D", "E", "D"]
    assert [t.round for t in turns(events)] == [1, 1, 2]
    assert kinds(events)[-1] == "consensus_reached"


def test_disagreement_ends_after_n_turns() -> None:
    lines: list[Line | ReviewError] = [("deny", "supported", "DENY.")] * 5
    events, _, _ = debate(lines, list(lines), max_turns=4)
    assert len(turns(events)) == 4
    assert kinds(events)[-1] == "turn_finished"


def test_one_turn_is_a_plain_reading() -> None:
    events, _, second = debate([("agree", "supported", "AGREE.")], [], max_turns=1)
    assert len(turns(events)) == 1
    assert second.views == []


def test_debaters_see_their_share_and_the_last_message() -> None:
    events, first, second = debate(
        [("deny", "hallucinated", "DENY. Equal."), ("agree", "hallucinated", "AGREE.")],
        [("agree", "hallucinated", "AGREE. Quite.")],
    )
    assert first.views[0].last_message == CLAIM
    assert first.views[0].share == {FACT.id}
    assert second.views[0].last_message == "DENY. Equal."
    assert second.views[0].share == {OTHER.id}
    assert [t.text for t in first.views[1].turns] == ["DENY. Equal.", "AGREE. Quite."]
    assert len(turns(events)) == 3


def test_words_arrive_as_they_are_spoken_and_make_up_the_turn() -> None:
    events, _, _ = debate([("agree", "supported", "AGREE. It is so.")], [], max_turns=1)
    deltas = [event.text for event in events if event.kind == "turn_delta"]
    assert len(deltas) == 2
    assert "".join(deltas) == "AGREE. It is so."


def test_a_forged_quote_is_found_out() -> None:
    events, _, _ = debate(
        [("deny", "hallucinated", "DENY. “of equal length” and “of unequal length”.")],
        [],
        max_turns=1,
    )
    assert [q.status for q in turns(events)[0].quotes] == ["verified", "fuzzy"]
    events, _, _ = debate(
        [("deny", "hallucinated", "DENY. “the moon is made of cheese”.")], [], max_turns=1
    )
    assert [q.status for q in turns(events)[0].quotes] == ["not_found"]


def test_an_unusable_reply_costs_only_its_turn() -> None:
    events, _, _ = debate(
        [("agree", "supported", "AGREE."), ("agree", "supported", "AGREE, still.")],
        [ReplyError("mumbled", reply="mm"), ("agree", "supported", "AGREE too.")],
    )
    assert [turn.number for turn in turns(events)] == [1, 3, 4]
    problem = next(event for event in events if event.kind == "problem_met")
    assert (problem.message, problem.reply) == ("E's turn 2 is lost: mumbled", "mm")
    assert events[-1].kind == "consensus_reached"


def test_a_debater_who_cannot_be_used_at_all_ends_the_debate_in_time() -> None:
    mumbling: list[Line | ReviewError] = [ReplyError("mumbled", reply="mm")] * 3
    events, _, _ = debate(mumbling, mumbling, max_turns=5)
    assert kinds(events) == ["turn_started", "problem_met"] * 5


def test_a_debate_that_was_over_stays_over() -> None:
    whole, _, _ = debate([("agree", "supported", "A.")], [("agree", "supported", "A.")])
    rest, _, _ = debate([], [], past=whole)
    assert rest == []


def test_a_consensus_that_was_cut_off_is_told_after_all() -> None:
    whole, _, _ = debate([("agree", "supported", "A.")], [("agree", "supported", "A.")])
    rest, _, _ = debate([], [], past=whole[:-1])
    assert kinds(rest) == ["consensus_reached"]


def test_stop_ends_it_within_a_turn() -> None:
    stop = Stop()
    roster = seated({"D": ScriptedDebater("One", [("agree", "supported", "AGREE. " * 50)])})
    events = arguing(ceda, VIEW, roster, context=CONTEXT, stop=stop).events()
    assert next(events).kind == "turn_started"
    assert next(events).kind == "turn_delta"
    stop.set()
    with pytest.raises(Stopped):
        list(events)


def test_consensus_needs_two_debaters() -> None:
    one = Turn("D", "One", 1, 1, "agree", "supported", "A.")
    assert not reached_consensus([one])
    assert not reached_consensus([one, one])


def test_three_debaters_are_all_heard_before_they_agree() -> None:
    said: list[Line | ReviewError] = [("agree", "supported", "AGREE.")]
    three = {name: ScriptedDebater(name, list(said)) for name in ("D", "E", "F")}
    events = list(arguing(ceda, VIEW, seated(three), context=CONTEXT).events())
    assert [turn.debater for turn in turns(events)] == ["D", "E", "F"]
    assert kinds(events)[-1] == "consensus_reached"


def test_two_of_three_who_agree_are_no_consensus() -> None:
    lines: dict[str, list[Line | ReviewError]] = {
        "D": [("agree", "supported", "AGREE.")] * 2,
        "E": [("agree", "supported", "AGREE.")] * 2,
        "F": [("deny", "hallucinated", "DENY.")],
    }
    three = {name: ScriptedDebater(name, own) for name, own in lines.items()}
    events = list(arguing(ceda, VIEW, seated(three), context=CONTEXT).events())
    assert len(turns(events)) == 5
    assert "consensus_reached" not in kinds(events)
