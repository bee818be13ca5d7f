"""A society of minds: all answer, all reconsider, the majority of the last answers decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.debate.sequential import SOCIETY as PROTOCOL
from core.runtime.errors import ReplyError, ReviewError
from core.schema.events import Event
from core.schema.records import Judgement, Plan, Stance
from core.schema.roles import CaseView
from core.schema.rosters import DebateOptions
from core.verdict.classifier import load_classifier
from tests.debates import arguing, kinds, seated, turns
from tests.fakes import Line, ScriptedDebater, make_case, make_passage, make_view

VIEW = make_view(make_case("The tower is 512 m tall."), [make_passage("The tower is 412 m tall.")])
YES: Stance = "supported"
NO: Stance = "hallucinated"
OPEN: Stance = "unclear"


def line(stance: Stance, text: str = "") -> Line:
    return ("agree", stance, text or f"It is {stance}.")


class Society:
    """A society whose members say these stances, one a round; an error is a turn that is lost."""

    def __init__(
        self,
        said: Mapping[str, Sequence[Stance | ReviewError]],
        *,
        rounds: int = 0,
        past: Sequence[Event] = (),
        view: CaseView = VIEW,
    ) -> None:
        self.members = {
            name: ScriptedDebater(name, [s if isinstance(s, ReviewError) else line(s) for s in own])
            for name, own in said.items()
        }
        plan = Plan("society", options=DebateOptions(rounds=rounds))
        self.plan = plan
        state = arguing(PROTOCOL.argue, view, seated(self.members), plan=plan, past=past)
        self.events = list(state.events())

    @property
    def judgement(self) -> Judgement:
        found = [e.judgement for e in self.events if e.kind == "judgement_reached"]
        assert len(found) == 1
        return found[0]

    @property
    def calls(self) -> int:
        return sum(len(member.views) for member in self.members.values())


def lost() -> ReplyError:
    return ReplyError("mumbled", reply="mm")


def test_nobody_hears_anybody_before_all_have_answered() -> None:
    society = Society({"Ada": [YES, NO], "Ben": [NO, NO], "Cleo": [YES, NO]}, rounds=1)
    for member in society.members.values():
        first, second = member.views
        assert (first.manner, first.turns, first.round) == ("answer", (), 1)
        assert first.last_message == VIEW.case.response
        assert (second.manner, second.round) == ("reconsider", 2)
        assert len(second.turns) == 3


def test_who_reconsiders_sees_its_own_answer_and_the_others_none_of_the_running_round() -> None:
    society = Society({"Ada": [YES, NO, NO], "Ben": [NO, YES, NO], "Cleo": [NO, NO, YES]})
    second, third = (society.members["Ben"].views[n] for n in (1, 2))
    assert [turn.debater for turn in second.turns] == ["Ben", "Ada", "Cleo"]
    assert {turn.number for turn in second.turns} == {1, 2, 3}
    assert {turn.number for turn in third.turns} == {4, 5, 6}
    assert second.last_message == "It is hallucinated.", "another's, not its own"
    assert sorted(turn.number for turn in turns(society.events)) == list(range(1, 10))


def test_the_majority_of_the_last_answers_counts_not_of_the_first() -> None:
    society = Society({"Ada": [YES, NO], "Ben": [YES, YES], "Cleo": [NO, NO]}, rounds=1)
    assert society.judgement.label == "hallucinated"
    assert society.judgement.p == pytest.approx(2 / 3)
    assert "Of 3 agents 2 say hallucinated, 1 supported." in society.judgement.prose


def test_two_rounds_follow_the_first_answers_unless_told_otherwise() -> None:
    assert Society({"Ada": [YES] * 3, "Ben": [NO] * 3}).calls == 6
    assert Society({"Ada": [YES] * 4, "Ben": [NO] * 4}, rounds=3).calls == 8


def test_it_stops_as_soon_as_all_agree() -> None:
    society = Society({"Ada": [NO], "Ben": [NO]})
    assert kinds(society.events)[-2:] == ["consensus_reached", "judgement_reached"]
    assert (society.calls, society.judgement.label, society.judgement.p) == (2, "hallucinated", 1.0)
    society = Society({"Ada": [YES, NO], "Ben": [NO, NO]})
    assert society.calls == 4


@pytest.mark.parametrize(
    ("last", "p", "why"),
    [
        ([YES, NO], 0.5, "1 says hallucinated, 1 supported. Neither label has the majority."),
        ([OPEN, OPEN], None, "Everybody who answered left it open."),
        ([NO, OPEN], 0.75, "Of 2 agents 1 says hallucinated, 0 supported, 1 gave no label."),
    ],
)
def test_a_tie_and_open_answers_are_not_settled(
    last: list[Stance], p: float | None, why: str
) -> None:
    judgement = Society({"Ada": [YES, last[0]], "Ben": [NO, last[1]]}, rounds=1).judgement
    assert (judgement.label, judgement.cause) == ("unclear", "not_settled")
    assert judgement.p == p
    assert why in judgement.text


def test_an_open_answer_counts_for_no_label_and_half_for_p() -> None:
    said = {"Ada": [NO, NO], "Ben": [OPEN, OPEN], "Cleo": [NO, NO]}
    judgement = Society(said, rounds=1).judgement
    assert judgement.label == "hallucinated"
    assert judgement.p == pytest.approx(5 / 6)
    assert "Of 3 agents 2 say hallucinated, 0 supported, 1 gave no label." in judgement.prose
    said = {"Ada": [NO, NO], "Ben": [OPEN, OPEN], "Cleo": [OPEN, OPEN]}
    assert Society(said, rounds=1).judgement.label == "unclear", "one of three is no majority"


def test_a_lost_turn_keeps_the_answer_before_it_and_is_said() -> None:
    society = Society({"Ada": [NO, lost()], "Ben": [YES, NO]}, rounds=1)
    assert society.judgement.label == "hallucinated"
    assert society.judgement.p == 1.0
    problem = next(e for e in society.events if e.kind == "problem_met")
    assert (problem.message, problem.turn) == ("Ada's turn 3 is lost: mumbled", 3)


def test_who_lost_its_first_answer_may_still_reconsider() -> None:
    society = Society({"Ada": [lost(), NO], "Ben": [YES, NO], "Cleo": [YES, YES]}, rounds=1)
    assert [turn.debater for turn in society.members["Ada"].views[1].turns] == ["Ben", "Cleo"]
    assert society.judgement.label == "hallucinated"


def test_one_who_is_left_is_no_society_that_agrees() -> None:
    society = Society({"Ada": [lost(), lost()], "Ben": [YES, YES]}, rounds=1)
    assert "consensus_reached" not in kinds(society.events)
    assert (society.judgement.label, society.judgement.p) == ("unclear", 0.0)
    assert "Of 2 agents 0 say hallucinated, 1 supported, 1 gave no label." in society.judgement.text


def test_what_was_lost_in_an_earlier_round_stays_lost_on_resume() -> None:
    whole = Society({"Ada": [lost(), NO], "Ben": [YES, NO], "Cleo": [YES, YES]}, rounds=1)
    past = [event for event in whole.events if event.kind != "judgement_reached"]
    rest = Society({"Ada": [], "Ben": [], "Cleo": []}, rounds=1, past=past)
    assert rest.judgement.label == "hallucinated"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([YES, NO, OPEN]), min_size=2, max_size=5))
def test_label_and_p_never_part_and_order_is_no_matter(stances: list[Stance]) -> None:
    def concluded(said: list[Stance]) -> Judgement:
        return Society({f"M{i}": [s] * 2 for i, s in enumerate(said)}, rounds=1).judgement

    one, other = concluded(stances), concluded(stances[::-1])
    assert (one.label, one.p) == (other.label, other.p)
    most = [label for label in (YES, NO) if 2 * stances.count(label) > len(stances)]
    assert [one.label] == (most or [OPEN])
    p = 0.5 if one.p is None else one.p
    leaning = OPEN if p == 0.5 else NO if p > 0.5 else YES
    assert one.label in (leaning, OPEN)


def test_the_classifier_reads_the_vote_as_it_is_meant(tmp_path: Path) -> None:
    classifier = load_classifier(tmp_path, "seed")
    for stance in (YES, NO):
        judgement = Society({"Ada": [stance], "Ben": [stance]}).judgement
        assert classifier.verdict(judgement).label == stance
