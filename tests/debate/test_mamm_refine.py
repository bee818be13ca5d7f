"""MAMM-REFINE: places are detected, criticised and mended; most critics keep a place."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.agents.llm_judge import LlmJudge
from core.debate.mamm_refine import MAMM_REFINE as PROTOCOL
from core.debate.mamm_refine import count_corrected_places, rank_revisions, select_majority_points
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ReplyError, ReviewError
from core.schema.events import Event
from core.schema.records import DebatePoint, Judgement, Plan, Stance, Turn
from core.schema.roles import CaseView, DebateView, JudgeView, SpeakCallback
from tests.agents.seats import SEAT, judge_view, workplace
from tests.debates import arguing, judgement_of, kinds, seated, turns
from tests.fakes import make_case, make_passage, make_view

RESPONSE = "The tower is 512 m tall. It was opened in 1926 by a queen."
MENDED = "The tower is 412 m tall. It was opened in 1926 by a queen."
VIEW = make_view(
    make_case(RESPONSE), [make_passage("The tower is 412 m tall. It was opened in 1931.")]
)
YES: Stance = "supported"
NO: Stance = "hallucinated"
OPEN: Stance = "unclear"


def point(words: str, instead: str = "", weight: float = 0.9) -> DebatePoint:
    start = RESPONSE.index(words)
    end = start + len(words)
    return DebatePoint(0, "contradicted", start, end, words, "number_or_date", instead, "", weight)


@dataclass(frozen=True)
class Says:
    """A turn: its stance and places, or the text that it gives mended."""

    stance: Stance
    points: tuple[DebatePoint, ...] = ()
    text: str = "So it is."


HIGH = Says(NO, (point("512 m", "412 m"),))
FINE = Says(YES)
MENDS = Says(NO, (), MENDED)


class Agent:
    """Says in each manner what the test wrote; an error is a turn that is lost."""

    built_in = False
    rule = "says what the test wrote"

    def __init__(self, name: str, said: Mapping[str, Says | ReviewError]) -> None:
        self.name = name
        self.said = dict(said)
        self.views: list[DebateView] = []

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        self.views.append(view)
        own = self.said[view.manner]
        if isinstance(own, ReviewError):
            raise own
        return Turn(
            view.debater, self.name, view.number, view.round, "agree", own.stance, own.text,
            points=own.points,
        )  # fmt: skip


class Judge:
    """Ranks as the test wrote, and is never asked for a verdict."""

    name = "Ranking judge"
    built_in = False
    rule = "ranks what the test wrote"

    def __init__(self, best: int | ReviewError) -> None:
        self.best = best
        self.asked: list[tuple[str, ...]] = []

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        raise AssertionError("what was detected is the judgement")

    def best_of(
        self,
        view: JudgeView,
        points: Sequence[DebatePoint],
        revisions: Sequence[str],
        stop: StopSignal,
    ) -> int:
        self.asked.append(tuple(revisions))
        if isinstance(self.best, ReviewError):
            raise self.best
        return self.best


class Refining:
    """A run of the protocol over what each agent says in the three manners."""

    def __init__(
        self,
        said: Mapping[str, Sequence[Says | ReviewError]],
        *,
        best: int | ReviewError = 0,
        past: Sequence[Event] = (),
        view: CaseView = VIEW,
    ) -> None:
        stages = ("detect", "critique", "revise")
        self.agents = {
            name: Agent(name, dict(zip(stages, own, strict=False))) for name, own in said.items()
        }
        self.judge = Judge(best)
        roster = seated(self.agents, self.judge)
        plan = Plan("mamm_refine")
        self.events = list(arguing(PROTOCOL.argue, view, roster, plan=plan, past=past).events())

    @property
    def judgement(self) -> Judgement:
        return judgement_of(self.events)

    @property
    def revised(self) -> list[str]:
        return [e.text for e in self.events if e.kind == "response_revised"]

    @property
    def calls(self) -> int:
        return sum(len(agent.views) for agent in self.agents.values())


def lost() -> ReplyError:
    return ReplyError("mumbled", reply="mm")


def test_all_detect_alone_then_criticise_what_all_found_then_mend() -> None:
    run = Refining({"Ada": [HIGH, HIGH, MENDS], "Ben": [HIGH, HIGH, MENDS]})
    for agent in run.agents.values():
        detect, critique, revise = agent.views
        assert (detect.manner, detect.turns, detect.round) == ("detect", (), 1)
        assert [turn.number for turn in critique.turns] == [1, 2]
        assert [turn.number for turn in revise.turns] == [3, 4]
        assert (critique.manner, revise.manner) == ("critique", "revise")
    assert sorted(turn.number for turn in turns(run.events)) == [1, 2, 3, 4, 5, 6]
    assert kinds(run.events)[-2:] == ["response_revised", "judgement_reached"]


def test_what_the_majority_detects_is_the_judgement() -> None:
    run = Refining({"Ada": [HIGH, HIGH, MENDS], "Ben": [HIGH, HIGH, MENDS], "Cleo": [FINE] * 3})
    judgement = run.judgement
    assert judgement.label == "hallucinated"
    assert judgement.p == pytest.approx(2 / 3)
    assert [p.text for p in judgement.points] == ["512 m"]
    assert judgement.statement_labels == ("hallucinated",)
    assert "contest “512 m”" in judgement.prose
    assert run.revised == [MENDED]


def test_where_most_detect_nothing_it_is_supported_and_nobody_goes_on() -> None:
    run = Refining({"Ada": [FINE], "Ben": [FINE], "Cleo": [HIGH]})
    assert (run.calls, run.judgement.label) == (3, "supported")
    assert run.judgement.p == pytest.approx(1 / 3)
    assert run.judgement.statement_labels == ("supported",)
    assert not run.revised


def test_critics_may_find_that_nothing_was_wrong() -> None:
    run = Refining({"Ada": [HIGH, FINE], "Ben": [HIGH, FINE]})
    assert (run.calls, run.judgement.label, run.judgement.p) == (4, "supported", 0.0)
    assert not run.revised


def test_a_tie_goes_to_the_critics_and_stays_unsettled_where_they_differ_too() -> None:
    settled = Refining({"Ada": [HIGH, HIGH, MENDS], "Ben": [FINE, HIGH, MENDS]})
    assert settled.judgement.label == "hallucinated"
    open_still = Refining({"Ada": [HIGH, HIGH], "Ben": [FINE, FINE]})
    assert (open_still.judgement.label, open_still.judgement.cause) == ("unclear", "not_settled")
    assert not open_still.revised


def test_places_that_only_one_critic_keeps_are_not_mended() -> None:
    queen = Says(NO, (point("by a queen"), point("512 m", "412 m")))
    run = Refining({"Ada": [queen, queen, MENDS], "Ben": [HIGH, HIGH, MENDS]})
    assert [p.text for p in run.judgement.points] == ["512 m"]
    heard = run.agents["Ben"].views[2].turns
    assert {p.text for turn in heard for p in turn.points} == {"512 m"}


def test_agents_who_call_it_wrong_and_name_nothing_give_a_label_and_no_revision() -> None:
    run = Refining({"Ada": [Says(NO)], "Ben": [Says(NO)]})
    assert (run.calls, run.judgement.label) == (2, "hallucinated")
    assert "name no words that most of them hold to be wrong" in run.judgement.prose
    assert not run.revised


def test_the_judge_picks_among_versions_that_differ_once() -> None:
    other = Says(NO, (), RESPONSE.replace("512 m", "about 412 m"))
    said = {"Ada": [HIGH, HIGH, MENDS], "Ben": [HIGH, HIGH, other], "Cleo": [HIGH, HIGH, MENDS]}
    run = Refining(said, best=1)
    assert run.judge.asked == [(MENDED, other.text)], "what most wrote alike comes first"
    assert run.revised == [other.text]
    (told,) = [event for event in run.events if event.kind == "response_revised"]
    assert told.agent.startswith("Ben ("), "two debaters may be the same model"
    alike = Refining({"Ada": [HIGH, HIGH, MENDS], "Ben": [HIGH, HIGH, MENDS]})
    assert not alike.judge.asked


def test_an_unusable_ranking_costs_only_the_choice_and_is_said() -> None:
    other = Says(NO, (), "The tower is 412 m tall.")
    said = {"Ada": [HIGH, HIGH, other], "Ben": [HIGH, HIGH, MENDS]}
    run = Refining(said, best=lost())
    assert run.revised == [MENDED], "it mends as much and changes less"
    (problem,) = [e for e in run.events if e.kind == "problem_met"]
    assert "mends most and changes least" in problem.message
    assert run.judgement.label == "hallucinated"


def test_a_lost_revision_and_one_that_changes_nothing_are_no_versions() -> None:
    same = Says(YES, (), RESPONSE)
    run = Refining({"Ada": [HIGH, HIGH, lost()], "Ben": [HIGH, HIGH, same]})
    assert not run.revised
    assert run.judgement.label == "hallucinated", "a label needs no revision"


def test_a_lost_critique_leaves_its_detection_standing() -> None:
    run = Refining({"Ada": [HIGH, HIGH, MENDS], "Ben": [HIGH, lost(), MENDS]})
    assert (run.judgement.label, run.judgement.p) == ("hallucinated", 1.0)
    assert run.revised == [MENDED]


def test_one_critic_of_three_mends_nothing() -> None:
    run = Refining({"Ada": [HIGH, HIGH], "Ben": [HIGH, Says(NO)], "Cleo": [lost(), lost()]})
    assert run.judgement.label == "hallucinated", "two of three hold it to be wrong"
    assert "name no words that most of them hold to be wrong" in run.judgement.prose
    assert not run.revised


def test_a_lost_detection_is_no_vote_that_nothing_is_contested() -> None:
    """Two of four are not most, so that all read what the third has found before they vote."""
    said = {"Ada": [FINE, HIGH, MENDS], "Ben": [FINE, HIGH, MENDS], "Cleo": [HIGH, HIGH, MENDS]}
    run = Refining({**said, "Dan": [lost(), HIGH, MENDS]})
    assert run.judgement.label == "hallucinated"
    assert run.revised == [MENDED]


def test_open_answers_alone_are_no_label() -> None:
    run = Refining({"Ada": [Says(OPEN)], "Ben": [Says(OPEN)]})
    assert (run.judgement.label, run.judgement.cause) == ("unclear", "not_settled")


def critic(name: str, *points: DebatePoint, stance: Stance = NO) -> Turn:
    return Turn(name, name, 1, 2, "agree", stance, "So.", points=points)


def test_more_than_half_of_all_critics_keep_a_place() -> None:
    one, two = critic("A", point("512 m")), critic("B", point("1926"))
    assert select_majority_points([one, two]) == ()
    assert [p.text for p in select_majority_points([one, two, critic("C", point("1926"))])] == [
        "1926"
    ]
    assert select_majority_points([one, critic("C", stance=OPEN)]) == ()
    assert select_majority_points([one], 2) == ()
    most = [one, critic("B", point("512 m")), critic("C", stance=OPEN)]
    assert [p.text for p in select_majority_points(most)] == ["512 m"]
    assert select_majority_points([]) == ()


def test_a_long_quotation_swallows_no_shorter_places() -> None:
    long = critic("A", point(RESPONSE))
    kept = select_majority_points([long, critic("B", point("512 m")), critic("C", point("1926"))])
    assert [p.text for p in kept] == ["512 m", "1926"]


def test_what_most_put_there_is_what_should_stand_there() -> None:
    kept = select_majority_points(
        [
            critic("A", point("1926", "1930", 0.95)),
            critic("B", point("1926", "1931", 0.5)),
            critic("C", point("1926", "1931", 0.5)),
        ]
    )
    assert [(p.evidence, p.weight) for p in kept] == [("1931", 0.95)]


def test_the_best_mends_most_and_changes_least() -> None:
    kept = (point("512 m", "412 m"), point("1926", "1931"))
    both = MENDED.replace("1926", "1931")
    free = "It is 412 m tall, and a queen opened it in 1931."
    assert rank_revisions(RESPONSE, [RESPONSE, MENDED, free, both, ""], kept) == (
        both,
        free,
        MENDED,
    )
    assert [count_corrected_places(RESPONSE, text, kept) for text in (RESPONSE, MENDED, both)] == [
        0,
        1,
        2,
    ]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=5))
def test_ranking_gives_each_version_that_changes_something_once(texts: list[str]) -> None:
    ranked = rank_revisions(RESPONSE, texts, (point("512 m"),))
    assert sorted(ranked) == sorted({t for t in texts if t != RESPONSE and t.strip()})


def test_a_model_that_judges_ranks_too_and_is_heard_by_its_last_line() -> None:
    seen = JudgeView(VIEW, arguing(PROTOCOL.argue, VIEW, seated({})).state.context, (), False)
    place = workplace(["Both mend it.\nBest: 3", "The second keeps more.\n**Best: 2**"])
    best = LlmJudge(SEAT, place.work).best_of(
        seen, (point("512 m", "412 m"),), ["a", "b"], StopSignal()
    )
    assert best == 1
    assert "“512 m” -> “412 m”" in place.prompt
    assert [asked.slot for asked in place.desk.asked] == ["judge", "judge again"]
    assert place.desk.asked[0].prompt == "en/judge_rerank"
    unread = workplace(["The second.", "Best: b"])
    with pytest.raises(ReplyError):
        LlmJudge(SEAT, unread.work).best_of(seen, (), ["a", "b"], StopSignal())


def test_a_long_text_that_was_written_anew_is_ranked_in_no_time() -> None:
    """A matrix of all its words took a minute of 20,000 characters, in which nothing could stop."""
    words = ["tower", "the", "of", "is", "a", "metres", "river", "and"]
    response, anew = (
        " ".join(words[number * step % 8] for number in range(4_000)) for step in (3, 5)
    )
    began = time.monotonic()
    assert rank_revisions(response, [anew, response[:-9], response], ()) == (response[:-9], anew)
    assert time.monotonic() - began < 2


def test_revisions_that_do_not_fit_a_window_are_left_out_of_the_choice() -> None:
    texts = [f"{word} " + "The tower is 412 m tall. " * 100 for word in ("One.", "Two.", "Three.")]
    seen = judge_view(VIEW)
    for window, asked in ((8192, 3), (3500, 2), (1800, 0)):
        place = workplace(["Best: 2"] if asked else [])
        judge = LlmJudge(replace(SEAT, window=window), place.work)
        assert judge.best_of(seen, (), texts, StopSignal()) == (1 if asked else 0)
        shown = place.prompt if asked else ""
        assert [text[:4] in shown for text in texts] == [n < asked for n in range(3)]
        assert len(place.work.notes.drain()) == (asked < 3)
