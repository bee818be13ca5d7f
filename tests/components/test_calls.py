"""Calls, cost, problems, and the state of a run, as people read them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from components.run.debate import (
    describe_contested,
    describe_cuts,
    describe_debate,
    describe_expected_calls,
    describe_plan,
    explain_silence,
    format_cost,
    render_state,
)
from core.schema.events import ContextBuilt, DebateDecided, Event, MemoryEntry, MemoryUpdated
from core.schema.records import EvidenceContext, Judgement, ModelCall, Plan, RoleAssignment, Run
from core.schema.rosters import DebateOptions
from core.schema.run_state import RunState, fold_events
from tests.audit.audit_events import CASE, begun, told


def the_judge_and_two_turns() -> None:
    from components.run.debate import draw_problems
    from core.schema.events import ProblemMet, RunFinished
    from core.schema.records import Verdict
    from core.schema.run_state import RunState

    progress = RunState()
    why = "Judge (x): no verdict line. So there is no verdict."
    progress.add(ProblemMet(1.0, "reading", "b.txt is empty."))
    progress.add(ProblemMet(1.0, "debating", "Ada's turn 1 is lost.", reply="Hm."))
    progress.add(ProblemMet(2.0, "debating", "Ben's turn 2 is lost.", reply="Well."))
    progress.add(ProblemMet(3.0, "judging", why, reply="Who knows?"))
    verdict = Verdict("unclear", None, None, why, "unreadable_reply", why)
    progress.add(RunFinished(4.0, verdict, 3.0, None))
    draw_problems(progress, "r")


def test_the_verdicts_own_words_are_not_said_again_and_every_reply_is_there() -> None:
    at = AppTest.from_function(the_judge_and_two_turns, default_timeout=30).run()
    assert not at.exception
    assert [shown.value.replace("\\", "") for shown in at.warning] == [
        "b.txt is empty.",
        "- Ada's turn 1 is lost.\n- Ben's turn 2 is lost.",
    ]
    assert at.expander[0].label == "Everything said, in order (3)"
    assert [code.value for code in at.code] == ["Hm.", "Well.", "Who knows?"]


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (None, "cost unknown"),
        (0.0, "no cost"),
        (0.000002, "US$0.000002000"),
        (0.0123, "US$0.0123"),
        (0.5, "US$0.50"),
        (12.346, "US$12.35"),
    ],
)
def test_a_cost_that_is_unknown_or_tiny_is_never_shown_as_nothing(
    cost: float | None, words: str
) -> None:
    assert format_cost(cost) == words


def test_what_was_cut_is_said_once_for_each_role_by_its_last_call() -> None:
    def call(role: str, cut: str) -> ModelCall:
        return ModelCall("i", role, "s", "m", "en/judge", "h", 1, 1, 0.0, 0.1, cut=cut)

    calls = [call("debater Ada", f"{n} of 20 turns did not fit.") for n in range(4)]
    calls += [call("debater Ada", ""), call("judge", "9 of 20 turns did not fit.")]
    assert describe_cuts(calls) == [
        "Cut to fit the model: debater Ada, 4 calls, the last: 3 of 20 turns did not fit.",
        "Cut to fit the model: judge: 9 of 20 turns did not fit.",
    ]


SEATED = tuple(RoleAssignment(f"debater {name}", name, False, "", "") for name in ("Ada", "Ben"))


def planned(plan: Plan, *, is_needed: bool | None = None) -> RunState:
    """A run by that plan with two debaters."""
    decided = None if is_needed is None else DebateDecided(1.0, is_needed, "It is so.", "ceda")
    return RunState(plan=plan, roles=SEATED, decided=decided)


def test_a_plan_tells_what_was_chosen_and_nothing_else() -> None:
    assert describe_plan(Plan("ceda", max_turns=4)) == "Debate in turn (CEDA), at most 4 turns"
    assert describe_plan(Plan("ensemble", options=DebateOptions(seed=7))) == "Ensemble, seed 7"
    chosen = DebateOptions(samples=3, style="thought", then="ensemble")
    words = "Adaptive, then Ensemble, 3 samples, thinking aloud"
    assert describe_plan(Plan("adaptive", options=chosen)) == words
    without = Plan("sc_maks", options=DebateOptions(without="adversary"))
    assert describe_plan(without) == "Advice and attack (SC-MAKS), without attacks"
    assert describe_plan(Plan("audit", max_turns=2)).endswith("at most 2 turns")
    assert describe_plan(Plan("of a newer program")) == "of a newer program, at most 5 turns"


def test_the_most_is_told_by_what_it_is_for() -> None:
    assert (
        describe_expected_calls(planned(Plan("ceda", max_turns=4)))
        == "1 context, 4 turns, 1 judgement"
    )
    assert describe_expected_calls(planned(Plan("ensemble"))) == "2 turns"
    five = Plan("single", options=DebateOptions(samples=5))
    assert describe_expected_calls(planned(five)) == "5 judgements"
    assert describe_expected_calls(planned(Plan("audit"))) == ""
    assert describe_expected_calls(RunState()) == ""


def test_a_run_without_turns_says_why() -> None:
    plan = Plan("adaptive", max_turns=4, options=DebateOptions(then="ceda"))
    assert explain_silence(planned(plan, is_needed=False)).endswith(
        "of Debate in turn (CEDA). It is so."
    )
    single = planned(Plan("single"))
    assert explain_silence(single) == "Nobody has spoken yet."
    single.judgement = Judgement("J", "supported", "It holds.")
    assert explain_silence(single) == "Nobody argued: the label was found without a debate."


def test_a_debate_that_was_not_held_is_told_with_what_it_saved() -> None:
    plan = Plan("adaptive", max_turns=4, options=DebateOptions(then="ceda"))
    words = describe_debate(planned(plan, is_needed=False))
    assert (
        words
        == "not held, which saved up to 1 context, 4 turns, 1 judgement of Debate in turn (CEDA)"
    )
    assert describe_debate(planned(plan, is_needed=True)) == "0 turns"


RUN = Run("r" * 32, CASE.id, "project", Plan("audit"), "finished", 100.0, 110.0)
ARGUED = ContextBuilt(10.8, "Context", EvidenceContext((), ("b:0",), "1 passage for 2 statements."))


def contested(*numbers: int) -> list[Event]:
    held = MemoryEntry(0, "hallucinated", 0.6, "Not sure.", is_contested=True)
    return [MemoryUpdated(10.0, replace(held, statement=number)) for number in numbers]


def panel(*events: Event) -> str:
    made = render_state(RUN, CASE, fold_events(events))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", made))


def test_the_context_of_an_audits_debate_is_not_told_as_the_whole() -> None:
    closed = MemoryUpdated(10.9, MemoryEntry(1, "supported", 0.4, "The judge decides."))
    events = [*begun(), *contested(1, 3), ARGUED, closed]
    shown = panel(*events)
    assert "Passages 1 found" in shown
    assert "Debated only what stayed contested: statements 2, 4" in shown
    assert "Passages of the debate 1 passage for 2 statements." in shown
    assert describe_contested(fold_events(events)) == "only what stayed contested: statements 2, 4"


def test_what_a_model_wrote_as_context_is_not_told_as_found_in_the_sources() -> None:
    words = "The tower was moved to Spain."
    written = ContextBuilt(10.8, "Context", EvidenceContext((), ("b:0",), words, ("They differ.",)))
    started, *rest = begun()
    assert started.kind == "run_started"
    for built_in, label in ((True, "Passages of the debate"), (False, "not found in the sources")):
        role = RoleAssignment("context writer", "Writer", built_in, "rule", "a")
        shown = panel(replace(started, roles=(role,)), *rest, *contested(1), written)
        assert f"{label} {words}" in shown
        assert ("Conflicts, written by a language model They differ." in shown) is not built_in


def test_an_audit_without_a_debate_says_so_and_tells_of_no_turns() -> None:
    shown = panel(*told())
    assert "Debated nothing, for nothing stayed contested" in shown
    assert "turns" not in shown.partition("Intermediate state")[2]
    assert "Debated nothing so far" in panel(*begun(), *contested(0))
