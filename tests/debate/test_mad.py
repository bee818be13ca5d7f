"""Tit for tat: the second must oppose, the judge ends the debate or lets it go on, at most R."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.agents.llm_debater import LlmDebater
from core.agents.llm_judge import LlmJudge
from core.debate.sequential import MAD as PROTOCOL
from core.llm.call import in_silence
from core.runtime.concurrency import Stop
from core.runtime.errors import ReplyError, ReviewError
from core.schema.events import Event
from core.schema.records import Cause, Judgement, Label, Plan, Stance
from core.schema.roles import DebateView, JudgeView
from core.schema.rosters import DebateOptions
from tests.agents.seats import SEAT, judge_view, workplace
from tests.debates import arguing, kinds, seated, turns
from tests.fakes import Line, ScriptedDebater, make_case, make_passage, make_view

VIEW = make_view(make_case("The tower is 512 m tall."), [make_passage("The tower is 412 m tall.")])
Ruling = tuple[Label, Cause | None]
GO_ON: Ruling = ("unclear", "not_settled")
WRONG: Ruling = ("hallucinated", None)


class Moderator:
    """Rules what the test wrote, one after the other; an error is an unusable reply."""

    name = "Moderator"
    built_in = False
    rule = "rules what the test wrote"

    def __init__(self, rulings: Sequence[Ruling | ReviewError]) -> None:
        self.rulings = list(rulings)
        self.views: list[JudgeView] = []

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        self.views.append(view)
        ruling = self.rulings.pop(0)
        if isinstance(ruling, ReviewError):
            raise ruling
        label, cause = ruling
        return Judgement(self.name, label, f"It is {label}.", cause=cause)


class TitForTat:
    """A debate in which both say these stances in turn."""

    def __init__(
        self,
        one: Sequence[Stance | ReviewError],
        other: Sequence[Stance | ReviewError],
        rulings: Sequence[Ruling | ReviewError],
        *,
        options: DebateOptions | None = None,
        past: Sequence[Event] = (),
        third: bool = False,
    ) -> None:
        def lines(said: Sequence[Stance | ReviewError]) -> list[Line | ReviewError]:
            return [s if isinstance(s, ReviewError) else ("deny", s, f"DENY, {s}.") for s in said]

        self.one = ScriptedDebater("One", lines(one))
        self.other = ScriptedDebater("Two", lines(other))
        self.judge = Moderator(rulings)
        names = {"Ada": self.one, "Ben": self.other}
        names |= {"Cleo": ScriptedDebater("Three", [])} if third else {}
        self.plan = Plan("mad", options=options or DebateOptions())
        roster = seated(names, self.judge)
        self.events = list(
            arguing(PROTOCOL.argue, VIEW, roster, plan=self.plan, past=past).events()
        )

    @property
    def judgement(self) -> Judgement:
        found = [e.judgement for e in self.events if e.kind == "judgement_reached"]
        assert len(found) == 1
        return found[0]


def lost() -> ReplyError:
    return ReplyError("mumbled", reply="mm")


@pytest.mark.parametrize(
    ("first", "opposed"),
    [
        ("supported", "hallucinated"),
        ("hallucinated", "supported"),
        ("unclear", "hallucinated"),
    ],
)
def test_the_second_is_assigned_the_other_side_in_the_first_round(
    first: Stance, opposed: Stance
) -> None:
    debate = TitForTat([first], [opposed], [WRONG])
    assert debate.one.views[0].assigned is None
    assert debate.one.views[0].last_message == VIEW.case.response
    assert debate.other.views[0].assigned == opposed
    assert [turn.assigned for turn in turns(debate.events)] == [None, opposed]
    assert {view.manner for view in (*debate.one.views, *debate.other.views)} == {"tit_for_tat"}


def test_after_the_first_round_nobody_has_to_oppose_and_both_hear_everything() -> None:
    debate = TitForTat(["supported"] * 2, ["hallucinated", "supported"], [GO_ON, WRONG])
    assert debate.one.views[1].assigned is None
    assert debate.other.views[1].assigned is None
    assert [turn.number for turn in debate.one.views[1].turns] == [1, 2]
    assert [turn.number for turn in debate.other.views[1].turns] == [1, 2, 3]
    assert [turn.round for turn in turns(debate.events)] == [1, 1, 2, 2]


def test_a_clear_answer_ends_it_after_the_round() -> None:
    debate = TitForTat(["hallucinated"], ["supported"], [WRONG])
    assert kinds(debate.events) == [
        *["turn_started", "turn_finished"] * 2,
        "judgement_sampled",
        "judgement_reached",
    ]
    assert debate.judge.views[0].manner == "moderate"
    assert debate.judgement.label == "hallucinated"


def test_go_on_is_kept_as_the_rounds_judgement_and_the_next_round_follows() -> None:
    debate = TitForTat(["supported"] * 2, ["hallucinated"] * 2, [GO_ON, WRONG])
    samples = [e for e in debate.events if e.kind == "judgement_sampled"]
    assert [(s.number, s.judgement.label, s.note) for s in samples] == [
        (1, "unclear", "after round 1"),
        (2, "hallucinated", "after round 2"),
    ]
    assert len(turns(debate.events)) == 4


def test_after_the_last_round_the_judge_must_decide_on_the_transcript() -> None:
    debate = TitForTat(["supported"] * 3, ["hallucinated"] * 3, [GO_ON, GO_ON, WRONG])
    assert [view.manner for view in debate.judge.views] == ["moderate", "moderate", "debate"]
    assert [view.number for view in debate.judge.views] == [1, 2, 3]
    assert len(debate.judge.views[2].turns) == 6
    assert debate.judgement.label == "hallucinated"


def test_what_the_judge_cannot_settle_at_the_end_is_unclear() -> None:
    debate = TitForTat(["supported"], ["hallucinated"], [lost()], options=DebateOptions(rounds=1))
    assert debate.judge.views[0].manner == "debate"
    assert (debate.judgement.label, debate.judgement.cause) == ("unclear", "unreadable_reply")


def test_an_unusable_ruling_lets_the_debate_go_on_and_is_said() -> None:
    debate = TitForTat(["supported"] * 2, ["hallucinated"] * 2, [lost(), WRONG])
    assert len(turns(debate.events)) == 4
    assert "problem_met" in kinds(debate.events)
    assert debate.judgement.label == "hallucinated"


@pytest.mark.parametrize("cause", ["no_evidence", "image_not_readable"])
def test_where_more_words_change_nothing_it_ends_at_once(cause: Cause) -> None:
    debate = TitForTat(["unclear"], ["unclear"], [("unclear", cause)])
    assert (debate.judgement.label, debate.judgement.cause) == ("unclear", cause)


def test_a_lost_opening_leaves_the_other_free_to_give_its_own_view() -> None:
    debate = TitForTat([lost()], ["hallucinated"], [WRONG])
    assert debate.other.views[0].assigned is None
    assert debate.other.views[0].turns == ()
    assert [turn.number for turn in turns(debate.events)] == [2]


def test_where_nobody_could_be_heard_no_judge_is_asked_and_there_is_no_label() -> None:
    debate = TitForTat([lost()] * 3, [lost()] * 3, [])
    assert (debate.judgement.label, debate.judgement.cause) == ("unclear", "unreadable_reply")
    assert not debate.judge.views


def test_whoever_is_third_is_not_seated_and_it_is_said_once() -> None:
    debate = TitForTat(["supported"] * 2, ["hallucinated"] * 2, [GO_ON, WRONG], third=True)
    said = [e.words for e in debate.events if e.kind == "debate_noted"]
    assert "problem_met" not in kinds(debate.events), "nothing failed"
    assert said == ["Tit for tat is between two: “Cleo” did not take part."]
    assert PROTOCOL.calls(3, debate.plan) == PROTOCOL.calls(2, debate.plan)


def test_swapped_the_second_debater_opens() -> None:
    options = DebateOptions(is_swapped=True)
    debate = TitForTat(["supported"], ["hallucinated"], [WRONG], options=options)
    assert [turn.debater for turn in turns(debate.events)] == ["Ben", "Ada"]
    assert debate.one.views[0].assigned == "supported"


def test_swapped_the_same_two_are_seated() -> None:
    options = DebateOptions(is_swapped=True)
    debate = TitForTat(["supported"], ["hallucinated"], [WRONG], options=options, third=True)
    assert [turn.debater for turn in turns(debate.events)] == ["Ben", "Ada"]
    said = [e.words for e in debate.events if e.kind == "debate_noted"]
    assert said == ["Tit for tat is between two: “Cleo” did not take part."]


@pytest.mark.parametrize("line", ["Verdict: go on", "**Verdict: GO ON**", "裁决：继续"])
def test_the_judge_may_have_it_go_on_only_when_it_moderates(line: str) -> None:
    reply = f"Whether both speak of the same tower is open.\n{line}"
    place = workplace([reply])
    seen = judge_view(VIEW)
    found = LlmJudge(SEAT, place.work).decide(replace(seen, manner="moderate"), Stop())
    assert (found.label, found.cause) == ("unclear", "not_settled")
    assert found.prose == "Whether both speak of the same tower is open."
    strict = workplace([reply, reply])
    with pytest.raises(ReplyError):
        LlmJudge(SEAT, strict.work).decide(seen, Stop())


def test_a_moderator_who_decides_is_read_like_any_judge() -> None:
    place = workplace(["The source says 412 m.\nVerdict: 0"])
    found = LlmJudge(SEAT, place.work).decide(replace(judge_view(VIEW), manner="moderate"), Stop())
    assert found.label == "hallucinated"
    assert "Verdict: go on" in place.prompt


def test_a_model_is_told_its_side_and_what_was_said() -> None:
    place = workplace(["DENY, CORRECT. It says “412 m tall” of another tower."])
    first = turns(TitForTat(["hallucinated"], ["supported"], [WRONG]).events)[0]
    view = DebateView(
        VIEW, "Ben", frozenset(VIEW.evidence.passages), (first,), 2, 1, first.text,
        manner="tit_for_tat", assigned="supported",
    )  # fmt: skip
    turn = LlmDebater(SEAT, place.work).argue(view, in_silence, Stop())
    assert (turn.reply, turn.stance) == ("deny", "supported")
    assert "The side that you take in this turn: CORRECT." in place.prompt
    assert first.text in place.prompt
