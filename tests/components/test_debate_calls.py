"""What a protocol asks for at most, and what an adaptive check saved, in words."""

from __future__ import annotations

from components.run.debate import debate_words, expected_words, plan_words, silence_words
from core.schema.events import DebateDecided
from core.schema.progress import Progress
from core.schema.records import Judgement, Plan, RoleUsed
from core.schema.rosters import DebateOptions

SEATED = tuple(RoleUsed(f"debater {name}", name, False, "", "") for name in ("Ada", "Ben"))


def told(plan: Plan, *, is_needed: bool | None = None) -> Progress:
    """A run by that plan with two debaters."""
    decided = None if is_needed is None else DebateDecided(1.0, is_needed, "It is so.", "ceda")
    return Progress(plan=plan, roles=SEATED, decided=decided)


def test_a_plan_tells_what_was_chosen_and_nothing_else() -> None:
    assert plan_words(Plan("ceda", max_turns=4)) == "Debate in turn (CEDA), at most 4 turns"
    assert plan_words(Plan("ensemble", options=DebateOptions(seed=7))) == "Ensemble, seed 7"
    chosen = DebateOptions(samples=3, style="thought", then="ensemble")
    words = "Adaptive, then Ensemble, 3 samples, thinking aloud"
    assert plan_words(Plan("adaptive", options=chosen)) == words
    without = Plan("sc_maks", options=DebateOptions(without="adversary"))
    assert plan_words(without) == "Advice and attack (SC-MAKS), without attacks"
    assert plan_words(Plan("audit", max_turns=2)).endswith("at most 2 turns")
    assert plan_words(Plan("of a newer program")) == "of a newer program, at most 5 turns"


def test_the_most_is_told_by_what_it_is_for() -> None:
    assert expected_words(told(Plan("ceda", max_turns=4))) == "1 context, 4 turns, 1 judgement"
    assert expected_words(told(Plan("ensemble"))) == "2 turns"
    five = Plan("single", options=DebateOptions(samples=5))
    assert expected_words(told(five)) == "5 judgements"
    assert expected_words(told(Plan("audit"))) == ""
    assert expected_words(Progress()) == ""


def test_a_run_without_turns_says_why() -> None:
    plan = Plan("adaptive", max_turns=4, options=DebateOptions(then="ceda"))
    assert silence_words(told(plan, is_needed=False)).endswith(
        "of Debate in turn (CEDA). It is so."
    )
    single = told(Plan("single"))
    assert silence_words(single) == "Nobody has spoken yet."
    single.judgement = Judgement("J", "supported", "It holds.")
    assert silence_words(single) == "Nobody argued: the label was found without a debate."


def test_a_debate_that_was_not_held_is_told_with_what_it_saved() -> None:
    plan = Plan("adaptive", max_turns=4, options=DebateOptions(then="ceda"))
    words = debate_words(told(plan, is_needed=False))
    assert (
        words
        == "not held, which saved up to 1 context, 4 turns, 1 judgement of Debate in turn (CEDA)"
    )
    assert debate_words(told(plan, is_needed=True)) == "0 turns"
