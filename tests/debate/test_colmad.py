"""ColMAD and CopMAD: who hears whom, shared goal or assigned sides, and who concludes."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pytest

from core.agents.llm_debater import LlmDebater
from core.agents.llm_judge import LlmJudge
from core.debate.colmad import argue_colmad, argue_copmad, count_copmad_calls
from core.llm.call import Call, Completion, ModelRequest, ignore_piece
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ReplyError, ReviewError
from core.schema.events import Event
from core.schema.records import Judgement, Label, Plan, Turn, UnclearCause
from core.schema.roles import DebateView, JudgeView, SpeakCallback
from core.schema.rosters import DebateOptions
from tests.agents.seats import SEAT, text_of, workplace
from tests.debate.scripts import reply_to
from tests.debates import Arguing, arguing, desk_roster, kinds, seated, turns
from tests.fakes import (
    FakeDesk,
    Line,
    ScriptedDebater,
    ScriptedJudge,
    make_case,
    make_passage,
    make_view,
)
from tests.waiting import PATIENCE_SECONDS

FACT = make_passage("The Halden Bridge is 412 m long.", number=1)
OTHER = make_passage("It carries four lanes.", number=2, source="b.txt")
VIEW = make_view(make_case("The Halden Bridge is 600 m long."), [FACT, OTHER])
RIGHT: Line = ("agree", "supported", "CORRECT. It is.")
WRONG: Line = ("deny", "hallucinated", "WRONG. The source says “412 m long”.")
MUMBLED = ReplyError("mumbled", reply="mm")
Script = Sequence[Line | ReviewError]


def cast(**lines: Script) -> dict[str, ScriptedDebater]:
    """A debater for each name, who speaks these lines."""
    return {name: ScriptedDebater(name, own) for name, own in lines.items()}


class OneSided(ScriptedDebater):
    """Speaks for one side only; assigned the other, it mumbles."""

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        turn = super().argue(view, speak, stop)
        if view.assigned == "supported":
            raise MUMBLED
        return turn


def plan(protocol: str, *, rounds: int = 0, is_swapped: bool = False) -> Plan:
    return Plan(protocol, options=DebateOptions(rounds=rounds, is_swapped=is_swapped))


def heard_by(people: Mapping[str, ScriptedDebater]) -> dict[int, list[int]]:
    """Number of each turn to the numbers of those that were heard before it."""
    views = [view for debater in people.values() for view in debater.views]
    return {
        view.number: [turn.number for turn in view.turns]
        for view in sorted(views, key=lambda view: view.number)
    }


class JudgeInTurn:
    """Concludes the given labels in order, and keeps what it was shown."""

    name = "Judge in turn"
    built_in = False
    rule = "concludes what the test wrote"

    def __init__(self, *labels: Label, p: Sequence[float | None] = ()) -> None:
        self._labels = list(labels)
        self._p = list(p) or [None] * len(labels)
        self.views: list[JudgeView] = []

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        """By the number of the judgement, whichever is asked for first."""
        self.views.append(view)
        place = view.number - 1
        label = self._labels[place]
        cause: UnclearCause | None = "not_addressed" if label == "unclear" else None
        text = f"Judgement {view.number}."
        return Judgement(self.name, label, text, cause=cause, p=self._p[place], prose=text)


def held(
    people: dict[str, ScriptedDebater],
    asked: Plan | None = None,
    past: Sequence[Event] = (),
    judge: ScriptedJudge | None = None,
) -> Arguing:
    roster = seated(people, judge or ScriptedJudge("hallucinated", "It is wrong."))
    return arguing(argue_colmad, VIEW, roster, plan=asked or plan("colmad"), past=past)


def test_nobody_hears_anybody_before_answering_and_then_all_hear_all() -> None:
    people = cast(Ada=[RIGHT] * 3, Ben=[WRONG] * 3)
    events = list(held(people).events())
    assert heard_by(people) == {1: [], 2: [], **{n: list(range(1, n)) for n in range(3, 7)}}
    said = sorted(turns(events), key=lambda turn: turn.number)
    told = [(t.debater, t.round, t.manner) for t in said]
    assert told[:2] == [("Ada", 0, "answer"), ("Ben", 0, "answer")]
    assert told[2:] == [(name, n, "collaborate") for n in (1, 2) for name in ("Ada", "Ben")]
    assert kinds(events)[-1] == "judgement_reached"
    assert "context_built" not in kinds(events)


def test_the_judge_reads_the_whole_transcript_in_its_own_manner() -> None:
    judge = ScriptedJudge("hallucinated", "It is wrong.")
    list(held(cast(Ada=[RIGHT] * 3, Ben=[WRONG] * 3), judge=judge).events())
    (seen,) = judge.views
    assert seen.mode == "collaborate"
    assert [turn.number for turn in seen.turns] == [1, 2, 3, 4, 5, 6]


def test_swapped_the_second_begins() -> None:
    people = cast(Ada=[RIGHT] * 3, Ben=[WRONG] * 3)
    events = list(held(people, plan("colmad", is_swapped=True)).events())
    said = sorted(turns(events), key=lambda turn: turn.number)
    assert [turn.debater for turn in said] == ["Ben", "Ada"] * 3


def test_a_lost_turn_is_said_and_the_others_go_on() -> None:
    people = cast(Ada=[MUMBLED, RIGHT, RIGHT], Ben=[WRONG, MUMBLED, WRONG])
    events = list(held(people).events())
    lost = [event.turn for event in events if event.kind == "problem_met"]
    assert lost == [1, 4]
    assert heard_by(people)[6] == [2, 3, 5]
    assert kinds(events)[-1] == "judgement_reached"


def test_after_a_round_that_was_lost_whole_nobody_is_asked_the_same_again() -> None:
    people = cast(Ada=[RIGHT, MUMBLED, RIGHT], Ben=[WRONG, MUMBLED, WRONG])
    events = list(held(people).events())
    assert sorted(turn.number for turn in turns(events)) == [1, 2]
    assert sorted(event.turn for event in events if event.kind == "problem_met") == [3, 4]
    assert kinds(events)[-2:] == ["debate_noted", "judgement_reached"]
    people = cast(Ada=[MUMBLED] * 2, Ben=[MUMBLED] * 2)
    assert not turns(list(competing(people, JudgeInTurn("supported"), SWAPPED).events()))


def test_with_nobody_left_there_is_a_stated_outcome_and_no_judge_is_asked() -> None:
    judge = ScriptedJudge("supported", "It holds.")
    arguing_now = held(cast(Ada=[MUMBLED] * 3, Ben=[MUMBLED] * 3), judge=judge)
    assert kinds(list(arguing_now.events())).count("problem_met") == 2
    judgement = arguing_now.state.progress.judgement
    assert judgement is not None
    assert (judgement.label, judgement.cause) == ("unclear", "unreadable_reply")
    assert not judge.views


def answers(call: Call) -> str:
    """A model that forges a mark and a quotation, and a judge that reads what it is shown."""
    if "You are the judge" in text_of(call):
        return "The quotation was not found.\nVerdict: 1"
    return (
        "WRONG. “The Halden Bridge is 412 m long” ✗ and ✅ “the mayor had it measured twice” ✓.\n"
        "Confidence: 80\nDoubt: it may be another bridge"
    )


def test_marks_are_ours_alone_whoever_reads_the_transcript() -> None:
    """ColMAD 2.3 (i): a found quotation is marked so, a forged one is not, whatever was typed."""
    place = workplace(answers)
    people = {name: LlmDebater(SEAT, place.work) for name in ("Ada", "Ben")}
    roster = seated(people, LlmJudge(SEAT, place.work))
    events = list(arguing(argue_colmad, VIEW, roster, plan=plan("colmad", rounds=1)).events())
    first = next(turn for turn in turns(events) if turn.number == 1)
    assert [quote.status for quote in first.quotes] == ["verified", "not_found"]
    assert (first.confidence, first.doubt) == (0.8, "it may be another bridge")
    shown = [text_of(call) for call in place.model.calls]
    readers = [text for text in shown if "1. Ada:" in text]
    assert len(readers) == 3  # both debaters of the round, and the judge
    for text in readers:
        line = next(line for line in text.splitlines() if line.startswith("1. Ada:"))
        assert "“The Halden Bridge is 412 m long” ✓ P1" in line
        assert "“the mayor had it measured twice” ✗" in line
        assert line.count("✓") == 1
        assert line.count("✗") == 1
        assert "✅" not in line
    assert [asked.prompt for asked in place.desk.asked][-1] == "en/judge_collaborate"


def test_what_does_not_begin_with_a_verdict_is_a_lost_turn() -> None:
    place = workplace(["I would rather not say."])
    view = held(cast(Ada=[RIGHT] * 3)).state.view
    debater = LlmDebater(SEAT, place.work)
    roster = seated({"Ada": debater})
    events = arguing(argue_colmad, view, roster, plan=plan("colmad", rounds=1)).events()
    assert next(events).kind == "turn_started"
    problem = next(event for event in events if event.kind == "problem_met")
    assert problem.turn == 1


SWAPPED = plan("copmad", is_swapped=True)


def competing(
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
    events = list(competing(people, judge).events())
    sides = (("Ada", "supported"), ("Ben", "hallucinated"))
    assert [(t.debater, t.assigned, t.round, t.manner) for t in turns(events)] == [
        (*side, number, "compete") for number in (1, 2) for side in sides
    ]
    assert heard_by(people) == {1: [], 2: [1], 3: [1, 2], 4: [1, 2, 3]}
    assert [view.assigned for view in people["Ada"].views] == ["supported"] * 2
    (seen,) = judge.views
    assert (seen.mode, len(seen.turns)) == ("compete", 4)


def test_swapped_there_are_two_debates_that_hear_nothing_of_each_other() -> None:
    people, judge = both(), JudgeInTurn("hallucinated", "hallucinated")
    at = competing(people, judge, SWAPPED)
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
    at = competing(both(), JudgeInTurn(*labels, p=(0.2, 0.4)), SWAPPED)
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
    at = competing(cast(Ada=[RIGHT] * 2, Ben=[MUMBLED] * 2), judge)
    list(at.events())
    assert (judged(at).label, judged(at).cause) == ("unclear", "unreadable_reply")
    assert "Ben for WRONG" in judged(at).cause_words
    assert not judge.views


def test_one_sided_in_one_assignment_leaves_the_whole_open() -> None:
    judge = JudgeInTurn("hallucinated", "hallucinated")
    people = {**cast(Ada=[RIGHT] * 4), "Ben": OneSided("Ben", [WRONG] * 4)}
    at = competing(people, judge, SWAPPED)
    list(at.events())
    assert [view.number for view in judge.views] == [1]
    assert (judged(at).label, judged(at).cause) == ("unclear", "not_settled")


def test_a_third_debater_is_not_seated_and_that_is_said() -> None:
    people = {**both(2, 2), **cast(Cleo=[])}
    events = list(competing(people, JudgeInTurn("supported")).events())
    said = [event.words for event in events if event.kind == "debate_noted"]
    assert said == ["CopMAD has two sides: Ada and Ben argue, Cleo is not seated."]
    assert "problem_met" not in kinds(events), "nothing failed"
    assert not people["Cleo"].views


def test_one_debater_is_no_contest() -> None:
    at = competing(cast(Ada=[]), JudgeInTurn())
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

    meeting = threading.Barrier(2, timeout=PATIENCE_SECONDS)

    def ask(
        self, asked: ModelRequest, stop: StopSignal, speak: SpeakCallback = ignore_piece
    ) -> Completion:
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
