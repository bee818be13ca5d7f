"""CopMAD: assigned sides, in turn, judged once or in both assignments (ColMAD 2.2, 4.1)."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from core.agents.llm_debater import LlmDebater
from core.agents.llm_judge import LlmJudge
from core.debate.colmad import argue_copmad, count_copmad_calls
from core.llm.call import Asked, Call, Completion, Speak, in_silence
from core.runtime.concurrency import Stop
from core.schema.events import Event
from core.schema.records import Judgement, Label, Plan
from tests.agents.seats import SEAT, text_of, workplace
from tests.debate.scripts import reply_to
from tests.debate.two_sides import (
    MUMBLED,
    RIGHT,
    VIEW,
    WRONG,
    JudgeInTurn,
    OneSided,
    cast,
    heard_by,
    plan,
)
from tests.debates import Arguing, arguing, desk_roster, kinds, seated, turns
from tests.fakes import FakeDesk, ScriptedDebater

SWAPPED = plan("copmad", is_swapped=True)


def held(
    people: dict[str, ScriptedDebater],
    judge: JudgeInTurn,
    asked: Plan | None = None,
    past: Sequence[Event] = (),
) -> Arguing:
    return arguing(
        argue_copmad, VIEW, seated(people, judge), plan=asked or plan("copmad"), past=past
    )


def judged(at: Arguing) -> Judgement:
    judgement = at.state.progress.judgement
    assert judgement is not None
    return judgement


def both(ada: int = 4, ben: int = 4) -> dict[str, ScriptedDebater]:
    return cast(Ada=[RIGHT] * ada, Ben=[WRONG] * ben)


def test_the_sides_are_assigned_and_each_hears_all_before() -> None:
    people, judge = both(2, 2), JudgeInTurn("hallucinated")
    events = list(held(people, judge).events())
    sides = (("Ada", "supported"), ("Ben", "hallucinated"))
    assert [(t.debater, t.assigned, t.round, t.manner) for t in turns(events)] == [
        (*side, number, "compete") for number in (1, 2) for side in sides
    ]
    assert heard_by(people) == {1: [], 2: [1], 3: [1, 2], 4: [1, 2, 3]}
    assert [view.assigned for view in people["Ada"].views] == ["supported"] * 2
    (seen,) = judge.views
    assert (seen.manner, len(seen.turns)) == ("compete", 4)


def test_swapped_there_are_two_debates_that_hear_nothing_of_each_other() -> None:
    people, judge = both(), JudgeInTurn("hallucinated", "hallucinated")
    at = held(people, judge, SWAPPED)
    events = list(at.events())
    said = sorted(turns(events), key=lambda turn: turn.number)
    sides = [(turn.debater, turn.assigned) for turn in said]
    assert sides[:2] == [("Ada", "supported"), ("Ben", "hallucinated")]
    assert sides[4:6] == [("Ada", "hallucinated"), ("Ben", "supported")]
    heard = heard_by(people)
    assert heard[4] == [1, 2, 3]
    assert (heard[5], heard[8]) == ([], [5, 6, 7])
    seen = sorted(judge.views, key=lambda view: view.number)
    assert [[turn.number for turn in view.turns] for view in seen] == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert kinds(events)[-3:] == ["judgement_sampled", "judgement_sampled", "judgement_reached"]
    assert judged(at).label == "hallucinated"


@pytest.mark.parametrize(
    ("labels", "label", "cause"),
    [
        (("supported", "supported"), "supported", None),
        (("supported", "hallucinated"), "unclear", "not_settled"),
        (("supported", "unclear"), "unclear", "not_settled"),
        (("unclear", "unclear"), "unclear", "not_addressed"),
    ],
)
def test_equal_findings_count_and_others_settle_nothing(
    labels: tuple[Label, Label], label: Label, cause: str | None
) -> None:
    at = held(both(), JudgeInTurn(*labels, p=(0.2, 0.4)), SWAPPED)
    list(at.events())
    judgement = judged(at)
    assert (judgement.label, judgement.cause) == (label, cause)
    assert [s.judgement.label for _, s in sorted(at.state.progress.samples.items())] == list(labels)
    if labels == ("supported", "supported"):
        assert judgement.p == pytest.approx(0.3)
        assert "Judgement 1." in judgement.prose
        assert "Judgement 2." in judgement.prose
    if cause == "not_settled":
        assert "Ada argues CORRECT, Ben argues WRONG: supported" in judgement.cause_words
        assert f"Ada argues WRONG, Ben argues CORRECT: {labels[1]}" in judgement.cause_words


def test_nobody_wins_because_the_other_was_not_heard() -> None:
    judge = JudgeInTurn("supported")
    at = held(cast(Ada=[RIGHT] * 2, Ben=[MUMBLED] * 2), judge)
    list(at.events())
    assert (judged(at).label, judged(at).cause) == ("unclear", "unreadable_reply")
    assert "Ben for WRONG" in judged(at).cause_words
    assert not judge.views


def test_one_sided_in_one_assignment_leaves_the_whole_open() -> None:
    judge = JudgeInTurn("hallucinated", "hallucinated")
    people = {**cast(Ada=[RIGHT] * 4), "Ben": OneSided("Ben", [WRONG] * 4)}
    at = held(people, judge, SWAPPED)
    list(at.events())
    assert [view.number for view in judge.views] == [1]
    assert (judged(at).label, judged(at).cause) == ("unclear", "not_settled")


def test_a_third_debater_is_not_seated_and_that_is_said() -> None:
    people = {**both(2, 2), **cast(Cleo=[])}
    events = list(held(people, JudgeInTurn("supported")).events())
    said = [event.words for event in events if event.kind == "debate_noted"]
    assert said == ["CopMAD has two sides: Ada and Ben argue, Cleo is not seated."]
    assert "problem_met" not in kinds(events), "nothing failed"
    assert not people["Cleo"].views


def test_one_debater_is_no_contest() -> None:
    at = held(cast(Ada=[]), JudgeInTurn())
    list(at.events())
    assert (judged(at).label, judged(at).cause) == ("unclear", "not_settled")


def test_models_are_told_their_side_and_the_judge_whose_it_is() -> None:
    def answer(call: Call) -> str:
        text = text_of(call)
        if "neutral judge" in text:
            return "Only one side quotes the source.\nVerdict: 0"
        side = "CORRECT" if "the claim is CORRECT" in text else "WRONG"
        return f"{side}. So it stands."

    place = workplace(answer)
    people = {name: LlmDebater(SEAT, place.work) for name in ("Ada", "Ben")}
    at = arguing(argue_copmad, VIEW, seated(people, LlmJudge(SEAT, place.work)), plan=SWAPPED)
    said = sorted(turns(list(at.events())), key=lambda turn: turn.number)
    assert [turn.stance for turn in said] == [turn.assigned for turn in said]
    assert len(place.model.calls) == count_copmad_calls(2, SWAPPED).total == 10
    readers = [text_of(call) for call in place.model.calls if "neutral judge" in text_of(call)]
    assert all("Ada (assigned " in text for text in readers)
    assert judged(at).label == "hallucinated"
    assert "Verdict: INCORRECT" in judged(at).text


class BothBeforeEither(FakeDesk):
    """Both judgements are made before anybody is told of either's call."""

    meeting = threading.Barrier(2, timeout=5)

    def ask(self, asked: Asked, stop: Stop, speak: Speak = in_silence) -> Completion:
        done = super().ask(asked, stop, speak)
        if asked.role == "judge":
            self.meeting.wait()
        return done


def test_each_of_two_judgements_has_the_cost_of_its_own_call() -> None:
    desk = BothBeforeEither(lambda asked: reply_to(asked.prompt.removeprefix("en/"), "Ada", ""))
    events = list(arguing(argue_copmad, VIEW, desk_roster(desk), plan=SWAPPED).events())
    costs = {e.number: e.cost for e in events if e.kind == "judgement_sampled"}
    assert costs == {1: 0.001, 2: 0.001}
    told = [event.call.slot for event in events if event.kind == "model_called"]
    assert sorted(told) == sorted(one.slot for one in desk.asked), "each call is told of once"
