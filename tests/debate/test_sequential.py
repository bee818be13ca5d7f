"""Debates in turns: CEDA until all agree, tit for tat until it is clear, a society of minds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.agents.llm_debater import LlmDebater
from core.agents.llm_judge import LlmJudge
from core.debate.sequential import MAD, SOCIETY, is_consensus
from core.debate.sequential import run_ceda_turns as ceda
from core.llm.call import ignore_piece
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ReplyError, ReviewError, Stopped
from core.schema.events import Event
from core.schema.records import (
    EvidenceContext,
    EvidenceShare,
    Judgement,
    Label,
    Plan,
    Stance,
    Turn,
    UnclearCause,
)
from core.schema.roles import CaseView, DebateView, JudgeView
from core.schema.rosters import DebateOptions
from core.verdict.classifier import load_classifier
from tests.agents.seats import SEAT, judge_view, workplace
from tests.debates import arguing, judgement_of, kinds, seated, turns
from tests.fakes import Line, ScriptedDebater, make_case, make_passage, make_view

VIEW = make_view(make_case("The tower is 512 m tall."), [make_passage("The tower is 412 m tall.")])
Ruling = tuple[Label, UnclearCause | None]
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

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
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
        self.events = list(arguing(MAD.argue, VIEW, roster, plan=self.plan, past=past).events())

    @property
    def judgement(self) -> Judgement:
        return judgement_of(self.events)


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
    assert debate.judge.views[0].mode == "moderate"
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
    assert [view.mode for view in debate.judge.views] == ["moderate", "moderate", "debate"]
    assert [view.number for view in debate.judge.views] == [1, 2, 3]
    assert len(debate.judge.views[2].turns) == 6
    assert debate.judgement.label == "hallucinated"


def test_what_the_judge_cannot_settle_at_the_end_is_unclear() -> None:
    debate = TitForTat(["supported"], ["hallucinated"], [lost()], options=DebateOptions(rounds=1))
    assert debate.judge.views[0].mode == "debate"
    assert (debate.judgement.label, debate.judgement.cause) == ("unclear", "unreadable_reply")


def test_an_unusable_ruling_lets_the_debate_go_on_and_is_said() -> None:
    debate = TitForTat(["supported"] * 2, ["hallucinated"] * 2, [lost(), WRONG])
    assert len(turns(debate.events)) == 4
    assert "problem_met" in kinds(debate.events)
    assert debate.judgement.label == "hallucinated"


@pytest.mark.parametrize("cause", ["no_evidence", "image_not_readable"])
def test_where_more_words_change_nothing_it_ends_at_once(cause: UnclearCause) -> None:
    debate = TitForTat(["unclear"], ["unclear"], [("unclear", cause)])
    assert (debate.judgement.label, debate.judgement.cause) == ("unclear", cause)


def test_a_lost_opening_leaves_the_other_free_to_give_its_own_view() -> None:
    debate = TitForTat([lost()], ["hallucinated"], [WRONG])
    assert debate.other.views[0].assigned is None
    assert debate.other.views[0].turns == ()
    assert [turn.number for turn in turns(debate.events)] == [2]


def test_where_nobody_could_be_heard_no_judge_is_asked_and_there_is_no_label() -> None:
    debate = TitForTat([lost()], [lost()], [])
    assert kinds(debate.events)[-2:] == ["debate_noted", "judgement_reached"]
    assert (debate.judgement.label, debate.judgement.cause) == ("unclear", "unreadable_reply")
    assert not debate.judge.views


def test_whoever_is_third_is_not_seated_and_it_is_said_once() -> None:
    debate = TitForTat(["supported"] * 2, ["hallucinated"] * 2, [GO_ON, WRONG], third=True)
    said = [e.words for e in debate.events if e.kind == "debate_noted"]
    assert "problem_met" not in kinds(debate.events), "nothing failed"
    assert said == ["Tit for tat is between two: “Cleo” did not take part."]
    assert MAD.calls(3, debate.plan) == MAD.calls(2, debate.plan)


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
    found = LlmJudge(SEAT, place.work).decide(replace(seen, mode="moderate"), StopSignal())
    assert (found.label, found.cause) == ("unclear", "not_settled")
    assert found.prose == "Whether both speak of the same tower is open."
    strict = workplace([reply, reply])
    with pytest.raises(ReplyError):
        LlmJudge(SEAT, strict.work).decide(seen, StopSignal())


def test_a_moderator_who_decides_is_read_like_any_judge() -> None:
    place = workplace(["The source says 412 m.\nVerdict: 0"])
    found = LlmJudge(SEAT, place.work).decide(
        replace(judge_view(VIEW), mode="moderate"), StopSignal()
    )
    assert found.label == "hallucinated"
    assert "Verdict: go on" in place.prompt


def test_a_model_is_told_its_side_and_what_was_said() -> None:
    place = workplace(["DENY, CORRECT. It says “412 m tall” of another tower."])
    first = turns(TitForTat(["hallucinated"], ["supported"], [WRONG]).events)[0]
    view = DebateView(
        VIEW, "Ben", frozenset(VIEW.evidence.passages), (first,), 2, 1, first.text,
        manner="tit_for_tat", assigned="supported",
    )  # fmt: skip
    turn = LlmDebater(SEAT, place.work).argue(view, ignore_piece, StopSignal())
    assert (turn.reply, turn.stance) == ("deny", "supported")
    assert "The side that you take in this turn: CORRECT." in place.prompt
    assert first.text in place.prompt


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
        state = arguing(SOCIETY.argue, view, seated(self.members), plan=plan, past=past)
        self.events = list(state.events())

    @property
    def judgement(self) -> Judgement:
        return judgement_of(self.events)

    @property
    def calls(self) -> int:
        return sum(len(member.views) for member in self.members.values())


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


def test_a_society_is_not_asked_again_what_it_lost_whole() -> None:
    society = Society({"Ada": [YES, lost()], "Ben": [NO, lost()]}, rounds=2)
    assert society.calls == 4
    assert "debate_noted" in kinds(society.events)


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


ASKED = "Is the top line shorter than the bottom line?"
FACT = make_passage("The two lines are of equal length.", number=1)
OTHER = make_passage("The arrows only seem to change it.", number=2, source="b.txt")
LINES = make_view(make_case(ASKED), [FACT, OTHER])
CONTEXT = EvidenceContext(
    (EvidenceShare("D", (FACT.id,)), EvidenceShare("E", (OTHER.id,))), (FACT.id, OTHER.id), ""
)


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
    debating = arguing(ceda, LINES, roster, plan=plan, context=CONTEXT, past=past)
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
    assert first.views[0].last_message == ASKED
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


def test_a_round_that_is_lost_whole_ends_the_debate_with_a_note() -> None:
    mumbling: list[Line | ReviewError] = [ReplyError("mumbled", reply="mm")]
    events, _, _ = debate(mumbling, mumbling, max_turns=5)
    assert kinds(events) == [*["turn_started", "problem_met"] * 2, "debate_noted"]
    said = [("deny", "supported", "DENY."), *mumbling]
    events, _, _ = debate(said, said, max_turns=5)
    assert kinds(events).count("turn_started") == 4
    assert kinds(events)[-1] == "debate_noted"


def test_a_debate_that_was_over_stays_over() -> None:
    whole, _, _ = debate([("agree", "supported", "A.")], [("agree", "supported", "A.")])
    rest, _, _ = debate([], [], past=whole)
    assert rest == []


def test_a_consensus_that_was_cut_off_is_told_after_all() -> None:
    whole, _, _ = debate([("agree", "supported", "A.")], [("agree", "supported", "A.")])
    rest, _, _ = debate([], [], past=whole[:-1])
    assert kinds(rest) == ["consensus_reached"]


def test_stop_ends_it_within_a_turn() -> None:
    stop = StopSignal()
    roster = seated({"D": ScriptedDebater("One", [("agree", "supported", "AGREE. " * 50)])})
    events = arguing(ceda, LINES, roster, context=CONTEXT, stop=stop).events()
    assert next(events).kind == "turn_started"
    assert next(events).kind == "turn_delta"
    stop.set()
    with pytest.raises(Stopped):
        list(events)


def test_consensus_needs_two_debaters() -> None:
    one = Turn("D", "One", 1, 1, "agree", "supported", "A.")
    assert not is_consensus([one])
    assert not is_consensus([one, one])


def test_three_debaters_are_all_heard_before_they_agree() -> None:
    said: list[Line | ReviewError] = [("agree", "supported", "AGREE.")]
    three = {name: ScriptedDebater(name, list(said)) for name in ("D", "E", "F")}
    events = list(arguing(ceda, LINES, seated(three), context=CONTEXT).events())
    assert [turn.debater for turn in turns(events)] == ["D", "E", "F"]
    assert kinds(events)[-1] == "consensus_reached"


def test_two_of_three_who_agree_are_no_consensus() -> None:
    lines: dict[str, list[Line | ReviewError]] = {
        "D": [("agree", "supported", "AGREE.")] * 2,
        "E": [("agree", "supported", "AGREE.")] * 2,
        "F": [("deny", "hallucinated", "DENY.")],
    }
    three = {name: ScriptedDebater(name, own) for name, own in lines.items()}
    events = list(arguing(ceda, LINES, seated(three), context=CONTEXT).events())
    assert len(turns(events)) == 5
    assert "consensus_reached" not in kinds(events)
