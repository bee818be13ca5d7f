"""SC-MAKS: who sees whose answer, when the rounds end, how weights decide, what a Resume leaves."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.debate import sc_maks as consensus
from core.debate.sc_maks import argue_sc_maks as argue
from core.debate.sc_maks import count_sc_maks_calls
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ReplyError
from core.schema.events import Event
from core.schema.records import Case, EvidenceContext, Judgement, Label, Plan, Quote, Stance, Turn
from core.schema.roles import CaseView, DebateView, JudgeView, Roster, SpeakCallback
from core.schema.rosters import AblationPart, DebateOptions, TurnMode
from tests.debates import Arguing, arguing, judgement_of, kinds, seated, turns
from tests.fakes import make_case, make_passage, make_view

FACT = make_passage("The Vidar bridge carries four lanes.", number=1)
VIEW = make_view(make_case("The Vidar bridge carries six lanes."), [FACT])
CITED = "“carries four lanes”"
Say = Callable[[DebateView], tuple[Stance, str]]


@dataclass
class Speaking:
    """Says what a function makes of its view, whatever the order in which it is asked."""

    name: str
    say: Say
    built_in: bool = False
    rule: str = "says what the test wrote"
    views: list[DebateView] = field(default_factory=list)

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        self.views.append(view)
        stance, text = self.say(view)
        heard = view.turns[-1].stance if view.turns else "supported"
        speak(text)
        cited = tuple(
            Quote(part.split("”")[0], "verified") for part in text.split("“")[1:] if "”" in part
        )
        return Turn(
            debater=view.debater,
            agent=self.name,
            number=view.number,
            round=view.round,
            reply="agree" if stance == heard else "deny",
            stance=stance,
            text=text,
            quotes=cited,
        )

    def asked(self, manner: str) -> list[DebateView]:
        """In that manner, by number."""
        return sorted((v for v in self.views if v.manner == manner), key=lambda v: v.number)


@dataclass
class Writing:
    """A writer's seat that keeps what it is asked."""

    name: str = "Writer"
    built_in: bool = False
    rule: str = ""
    asked: list[tuple[tuple[int, ...], str]] = field(default_factory=list)
    judgements: list[Judgement] = field(default_factory=list)

    def write(self, view: CaseView, debaters: Sequence[str], stop: StopSignal) -> EvidenceContext:
        raise AssertionError("nobody shares evidence out here")

    def summarise(
        self, view: CaseView, turns: Sequence[Turn], before: str, stop: StopSignal
    ) -> str:
        self.asked.append((tuple(turn.number for turn in turns), before))
        return f"brief {len(self.asked)}"

    def revise(self, view: JudgeView, judgement: Judgement, stop: StopSignal) -> str:
        self.judgements.append(judgement)
        return view.case_view.case.response.replace("six", "four")


def always(stance: Stance, text: str = "Thus.") -> Say:
    return lambda view: (stance, f"{text} ({view.manner} {view.number})")


def divided(one: Stance = "supported", other: Stance = "hallucinated") -> dict[str, Say]:
    """Four of whom two hold against the other two, without an end."""
    return {"A": always(one), "B": always(other), "C": always(one), "D": always(other)}


def debating(
    says: dict[str, Say],
    *,
    rounds: int = 0,
    without: AblationPart = "",
    past: Sequence[Event] = (),
    view: CaseView = VIEW,
) -> tuple[Arguing, dict[str, Speaking], Writing]:
    agents = {name: Speaking(f"model {name}", say) for name, say in says.items()}
    writer = Writing()
    roster = replace(seated(agents), context_writer=writer)
    plan = Plan(protocol="sc_maks", options=DebateOptions(rounds=rounds, without=without))
    return arguing(argue, view, roster, plan=plan, past=past), agents, writer


@pytest.mark.parametrize(
    ("agents", "rounds", "turns_made", "chain"),
    [(4, 3, 88, 11), (2, 2, 14, 8), (3, 2, 33, 8), (4, 2, 60, 8), (5, 1, 50, 7), (1, 2, 1, 2)],
)
def test_the_calls_are_those_of_the_formula(
    agents: int, rounds: int, turns_made: int, chain: int
) -> None:
    asked = count_sc_maks_calls(agents, Plan(options=DebateOptions(rounds=rounds)))
    assert (asked.turns, asked.chain, asked.judgements, asked.context) == (turns_made, chain, 0, 0)
    assert count_sc_maks_calls(4, Plan(options=DebateOptions(rounds=3))).total == 92


@pytest.mark.parametrize(
    ("without", "agents", "rounds", "turns_made", "chain"),
    [
        ("adversary", 4, 3, 52, 8), ("cooperation", 4, 3, 52, 8), ("weights", 4, 3, 88, 11),
        ("adversary", 2, 2, 10, 6), ("cooperation", 3, 2, 21, 6), ("adversary", 1, 2, 1, 2),
    ],
)  # fmt: skip
def test_without_a_phase_its_turns_are_not_counted(
    without: AblationPart, agents: int, rounds: int, turns_made: int, chain: int
) -> None:
    options = DebateOptions(rounds=rounds, without=without)
    asked = count_sc_maks_calls(agents, Plan(options=options))
    assert (asked.turns, asked.chain) == (turns_made, chain)


def test_every_agent_answers_alone_then_speaks_once_a_phase_of_every_other() -> None:
    run, agents, _ = debating(divided(), rounds=2)
    said = turns(list(run.events()))
    first = [turn for turn in said if turn.manner == "answer"]
    assert [turn.debater for turn in sorted(first, key=lambda t: t.number)] == list("ABCD")
    assert all(view.turns == () for agent in agents.values() for view in agent.asked("answer"))
    pairs = set(itertools.permutations("ABCD", 2))
    for number in (1, 2):
        for manner in ("advise", "attack"):
            phase = [t for t in said if t.round == number and t.manner == manner]
            assert {(t.debater, t.about) for t in phase} == pairs
            assert len(phase) == len(pairs)
        anew = [t for t in said if t.round == number and t.manner == "reconsider"]
        assert sorted(t.debater for t in anew) == list("ABCD")


@pytest.mark.parametrize(("without", "left"), [("adversary", "advise"), ("cooperation", "attack")])
def test_without_a_phase_only_the_other_is_held_and_all_else_stays(
    without: AblationPart, left: TurnMode
) -> None:
    """SC-MAKS 4.10: one part is taken away; who criticises whom, and who hears what, is kept."""
    run, agents, writer = debating(divided(), rounds=2, without=without)
    events = list(run.events())
    said = turns(events)
    order = [manner for manner, _ in itertools.groupby(turn.manner for turn in said)]
    assert order == ["answer", *[left, "reconsider"] * 2]
    for number in (1, 2):
        phase = [(t.debater, t.about) for t in said if (t.round, t.manner) == (number, left)]
        assert sorted(phase) == sorted(itertools.permutations("ABCD", 2))
    view = next(v for v in agents["A"].asked(left) if v.about == "C")
    assert [(t.debater, t.manner) for t in view.turns] == [("A", "answer"), ("C", "answer")]
    view = agents["B"].asked("reconsider")[0]
    assert [t.debater for t in view.turns if t.manner == "answer"] == list("ABCD")
    rest = [(t.manner, t.debater, t.about) for t in view.turns if t.manner != "answer"]
    assert rest == [(left, who, "B") for who in "ACD"]
    assert [len(numbers) for numbers, _ in writer.asked] == [12, 12], "briefs of what was said"
    assert "consensus_weighed" in kinds(events)


@pytest.mark.parametrize(
    ("without", "stance"), [("adversary", "supported"), ("cooperation", "hallucinated")]
)
def test_a_phase_that_is_left_out_moves_nobody(without: AblationPart, stance: Label) -> None:
    """All answer that it holds; only attacks quote what speaks against it, and all heed them."""

    def say(view: DebateView) -> tuple[Stance, str]:
        is_hit = view.manner == "attack" or any(t.manner == "attack" for t in view.turns)
        return ("hallucinated", f"But it {CITED}.") if is_hit else ("supported", "Fine.")

    run, _, _ = debating({"A": say, "B": say}, rounds=1, without=without)
    assert judgement_of(list(run.events())).label == stance


def test_a_critic_sees_its_own_answer_and_the_one_that_it_speaks_of_with_the_advice_on_it() -> None:
    run, agents, _ = debating(divided(), rounds=1)
    list(run.events())
    view = next(v for v in agents["A"].asked("advise") if v.about == "C")
    assert [(t.debater, t.manner) for t in view.turns] == [("A", "answer"), ("C", "answer")]
    assert view.last_message.startswith("Thus. (answer 3)")
    view = next(v for v in agents["A"].asked("attack") if v.about == "C")
    assert [(t.debater, t.manner, t.about) for t in view.turns] == [
        ("A", "answer", ""),
        ("C", "answer", ""),
        ("A", "advise", "C"),
        ("B", "advise", "C"),
        ("D", "advise", "C"),
    ]
    assert view.last_message.startswith("Thus. (answer 3)")


def test_whoever_reconsiders_sees_all_answers_and_what_was_said_of_its_own() -> None:
    run, agents, _ = debating(divided(), rounds=1)
    list(run.events())
    (view,) = agents["B"].asked("reconsider")
    assert [t.debater for t in view.turns if t.manner == "answer"] == list("ABCD")
    rest = [(t.manner, t.debater) for t in view.turns if t.manner != "answer"]
    assert rest == [(m, who) for m in ("advise", "attack") for who in "ACD"]
    assert {t.about for t in view.turns if t.manner != "answer"} == {"B"}


def test_later_rounds_see_a_summary_and_the_last_answers_instead_of_all_turns() -> None:
    run, agents, writer = debating(divided(), rounds=2)
    events = list(run.events())
    view = next(v for v in agents["A"].asked("advise") if v.round == 2 and v.about == "B")
    assert [(t.debater, t.manner, t.round) for t in view.turns] == [
        ("A", "reconsider", 1),
        ("B", "reconsider", 1),
    ]
    assert view.summary == "brief 1"
    assert all(v.summary == "" for a in agents.values() for v in a.views if v.round < 2)
    critiques = {t.number for t in turns(events) if t.round == 1 and t.manner != "reconsider"}
    assert writer.asked[0] == (tuple(sorted(critiques)), "")
    assert writer.asked[1][1] == "brief 1"
    assert [e.round for e in events if e.kind == "round_summarised"] == [1, 2]


def test_it_ends_early_where_all_agree_after_a_round_and_nothing_holds_against_it() -> None:
    def moved(view: DebateView) -> tuple[Stance, str]:
        return ("hallucinated" if view.manner == "reconsider" else "supported"), "Hm."

    says = {"A": always("hallucinated", f"It {CITED}."), "B": moved}
    run, _, _ = debating(says, rounds=3)
    events = list(run.events())
    assert max(t.round for t in turns(events)) == 1
    told = next(e for e in events if e.kind == "consensus_reached")
    assert (told.stance, told.turns) == ("hallucinated", 8)
    assert kinds(events)[-3:] == ["consensus_weighed", "response_revised", "judgement_reached"]


@pytest.mark.parametrize(
    ("attack", "is_over"),
    [
        (("hallucinated", f"But it {CITED}."), False),
        (("hallucinated", "But it “carries nine lanes”."), True),
        (("hallucinated", "But no."), True),
        (("supported", f"It {CITED}, roughly."), True),
    ],
)
def test_a_critique_holds_where_it_quotes_the_evidence_against_what_all_say(
    attack: tuple[Stance, str], is_over: bool
) -> None:
    def say(view: DebateView) -> tuple[Stance, str]:
        return attack if view.manner == "attack" else ("supported", "Fine.")

    run, _, _ = debating({"A": say, "B": say}, rounds=2)
    said = turns(list(run.events()))
    assert (max(t.round for t in said) == 1) is is_over


def test_a_lost_answer_is_said_not_spoken_of_and_can_be_made_good() -> None:
    def late(view: DebateView) -> tuple[Stance, str]:
        if view.manner == "answer":
            raise ReplyError("mumbled", reply="mm")
        return "hallucinated", "Now I see."

    run, _, _ = debating({"A": always("supported"), "B": late, "C": always("supported")}, rounds=1)
    events = list(run.events())
    problems = [e.message for e in events if e.kind == "problem_met"]
    assert problems == ["B's turn 2 is lost: mumbled"]
    said = turns(events)
    assert {t.about for t in said if t.about} == {"A", "C"}
    weighed = next(e for e in events if e.kind == "consensus_weighed")
    assert dict(weighed.weights).keys() == {"A", "B", "C"}


@pytest.mark.parametrize("others", [1, 2])
def test_an_answer_that_stands_alone_is_no_consensus(others: int) -> None:
    def mute(view: DebateView) -> tuple[Stance, str]:
        raise ReplyError("mumbled", reply="mm")

    says: dict[str, Say] = {"A": always("supported"), "B": mute, "C": mute}
    run, _, _ = debating(dict(list(says.items())[: 1 + others]), rounds=1)
    judgement = judgement_of(list(run.events()))
    assert (judgement.label, judgement.cause) == ("unclear", "not_settled")
    assert f"only 1 of {1 + others} agents gave an answer" in judgement.text
    both, _, _ = debating({"A": always("supported"), "B": mute, "C": always("supported")}, rounds=1)
    assert judgement_of(list(both.events())).label == "supported"


def test_a_share_of_less_than_half_wins_and_is_said_to_be_thin() -> None:
    said: dict[str, Stance] = {
        "A": "hallucinated", "B": "hallucinated", "C": "supported", "D": "supported",
        "E": "unclear",
    }  # fmt: skip

    def says(name: str) -> Say:
        def say(view: DebateView) -> tuple[Stance, str]:
            text = f"It {CITED}." if (name, view.about) == ("A", "C") else "Thus."
            return said[name], text

        return say

    run, _, _ = debating({name: says(name) for name in said}, rounds=1)
    judgement = judgement_of(list(run.events()))
    assert judgement.label == "hallucinated"
    assert "50 % of the weight says that it is wrong, no more than half" in judgement.prose
    assert "they count for half of it" in judgement.prose, "two of five are not half"
    assert "they count for half of it" not in judgement.text, "the classifier's input is as it was"


def test_a_share_that_the_weights_alone_add_up_to_is_not_explained() -> None:
    says: dict[str, Say] = {name: always("supported") for name in "AB"}
    run, _, _ = debating({**says, "C": always("hallucinated")}, rounds=1)
    judgement = judgement_of(list(run.events()))
    assert "67 % of the weight says that it is correct." in judgement.prose


@pytest.mark.parametrize(
    ("stances", "label", "cause", "p"),
    [
        ("hhs", "hallucinated", None, 0.6667),
        ("sss", "supported", None, 0.0),
        ("hs", "unclear", "not_settled", 0.5),
        ("uuh", "unclear", "not_addressed", 0.6667),
        ("uhs", "unclear", "not_settled", 0.5),
        ("hhu", "hallucinated", None, 0.8333),
    ],
)
def test_the_weighted_share_decides(
    stances: str, label: Label, cause: str | None, p: float
) -> None:
    of: dict[str, Stance] = {"h": "hallucinated", "s": "supported", "u": "unclear"}
    says = {name: always(of[s]) for name, s in zip("ABC", stances, strict=False)}
    run, _, writer = debating(says, rounds=1)
    events = list(run.events())
    judgement = judgement_of(events)
    assert (judgement.label, judgement.cause, judgement.p) == (label, cause, p)
    weighed = next(e for e in events if e.kind == "consensus_weighed")
    assert (weighed.method, weighed.p) == ("uniform", p)
    assert bool(writer.judgements) is (label == "hallucinated")


@pytest.mark.parametrize(
    ("without", "label", "p", "method", "of_a"),
    [("", "hallucinated", 0.8, "record", 0.8), ("weights", "supported", 0.3333, "uniform", 0.3333)],
)
def test_weights_that_were_learned_can_overrule_the_many_where_they_are_not_left_out(
    without: AblationPart, label: Label, p: float, method: str, of_a: float
) -> None:
    class Trusting:
        method = "record"

        def weights(self, view: CaseView, said: Sequence[Turn]) -> tuple[tuple[str, float], ...]:
            assert [t.number for t in said] == sorted(t.number for t in said)
            return (("A", 0.8), ("B", 0.1), ("C", 0.1))

    run, _, _ = debating(
        {"A": always("hallucinated"), "B": always("supported"), "C": always("supported")},
        rounds=1,
        without=without,
    )
    roster = replace(run.state.run.roster, weigher=Trusting())
    run.state = replace(run.state, run=replace(run.state.run, roster=roster))
    events = list(run.events())
    assert (judgement_of(events).label, judgement_of(events).p) == (label, p)
    told = next(e for e in events if e.kind == "consensus_weighed")
    assert (told.method, dict(told.weights)["A"]) == (method, of_a)


def turn(stance: Stance, *, debater: str = "A", about: str = "", backed: bool = False) -> Turn:
    quotes = (Quote("carries", "verified"),) if backed else ()
    return Turn(debater, debater, 1, 1, "agree", stance, "So.", quotes, about=about)


def test_backed_critiques_take_half_of_an_answer_s_voice() -> None:
    answer = turn("supported")
    against = turn("hallucinated", debater="B", about="A", backed=True)
    opinion = turn("hallucinated", debater="C", about="A")
    assert consensus.compute_agreement("supported", answer, [opinion]) == 1
    assert consensus.compute_agreement("supported", answer, [against, opinion]) == 0.5
    assert consensus.compute_agreement("hallucinated", answer, [against, opinion]) == 0.5
    for_it = replace(against, stance="supported")
    assert consensus.compute_agreement("supported", answer, [against, for_it]) == 0.75


STANCES = st.sampled_from(consensus.CONSENSUS_LABELS)


@given(
    st.lists(STANCES, min_size=1, max_size=5),
    st.lists(st.tuples(STANCES, st.integers(0, 4), st.booleans()), max_size=8),
    st.lists(st.floats(0.01, 1), min_size=5, max_size=5),
)
def test_shares_sum_to_one_and_the_label_is_on_the_side_of_p(
    stances: list[Stance], said: list[tuple[Stance, int, bool]], raw: list[float]
) -> None:
    names = "ABCDE"[: len(stances)]
    answers = [turn(stance, debater=name) for name, stance in zip(names, stances, strict=True)]
    critiques = [
        turn(stance, debater="Z", about=names[place % len(names)], backed=backed)
        for stance, place, backed in said
    ]
    whole = sum(raw[: len(names)])
    weights = {name: weight / whole for name, weight in zip(names, raw, strict=False)}
    shares = consensus.compute_shares(weights, answers, critiques)
    assert sum(shares.values()) == pytest.approx(1)
    p, label = consensus.hallucination_probability(shares), consensus.find_winning_label(shares)
    assert 0 <= p <= 1
    if label == "hallucinated":
        assert p >= 0.5
    if label == "supported":
        assert p <= 0.5


def test_a_finished_debate_is_not_weighed_or_revised_again() -> None:
    says = {"A": always("hallucinated"), "B": always("hallucinated")}
    whole = list(debating(says, rounds=1)[0].events())
    run, agents, writer = debating(says, rounds=1, past=whole[:-1])
    assert kinds(list(run.events())) == ["judgement_reached"]
    assert writer.judgements == []
    assert all(agent.views == [] for agent in agents.values())


def test_without_a_summariser_later_turns_go_by_the_last_answers() -> None:
    agents = {name: Speaking(name, say) for name, say in divided().items()}
    roster: Roster = replace(seated(agents), context_writer=Plain())
    run = arguing(argue, VIEW, roster, plan=Plan(options=DebateOptions(rounds=2)))
    events = list(run.events())
    assert "round_summarised" not in kinds(events)
    view = next(v for v in agents["A"].asked("advise") if v.round == 2)
    assert [t.manner for t in view.turns] == ["reconsider", "reconsider"]


class Plain:
    """A writer's seat that only shares evidence out."""

    name = "Plain"
    built_in = True
    rule = ""

    def write(self, view: CaseView, debaters: Sequence[str], stop: StopSignal) -> EvidenceContext:
        raise AssertionError("nobody shares evidence out here")


def test_an_unusable_summary_is_made_good_by_the_spare_s_writer() -> None:
    run, agents, writer = debating(divided(), rounds=2)

    class Mumbling(Writing):
        def summarise(
            self, view: CaseView, turns: Sequence[Turn], before: str, stop: StopSignal
        ) -> str:
            raise ReplyError("nothing usable", reply="…")

    roster = run.state.run.roster
    spare = replace(roster, context_writer=writer)
    roster = replace(roster, context_writer=Mumbling(name="Mumbling"), spare=spare)
    run.state = replace(run.state, run=replace(run.state.run, roster=roster))
    events = list(run.events())
    problems = [e.message for e in events if e.kind == "problem_met"]
    assert problems == [
        f"The summary of round {n} is lost (Mumbling): nothing usable" for n in (1, 2)
    ]
    assert [e.agent for e in events if e.kind == "round_summarised"] == ["Writer", "Writer"]
    assert next(v for v in agents["A"].asked("advise") if v.round == 2).summary == "brief 1"


def test_a_case_with_no_evidence_that_all_leave_open_says_so() -> None:
    bare = make_view(Case("c", "p", "Nobody knows."), [])
    run, _, _ = debating({"A": always("unclear"), "B": always("unclear")}, view=bare)
    judgement = judgement_of(list(run.events()))
    assert (judgement.label, judgement.cause) == ("unclear", "no_evidence")
