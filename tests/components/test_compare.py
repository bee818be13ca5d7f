"""What differs between two checks of a case, and between several ways to check it."""

from __future__ import annotations

from dataclasses import replace

from components.check.compare import LoadedRun, describe_differences, describe_disagreements
from core.schema.events import SpanAdjudicated
from core.schema.records import Label, Plan, Run, Span
from core.schema.run_state import RunState
from tests.fakes import make_case
from tests.test_comparing import TEXT, run

CASE = make_case("The tower is 512 m tall and red.")


def loaded(plan: Plan, label: Label, *marked: tuple[int, int]) -> LoadedRun:
    progress = RunState()
    for start, end in marked:
        span = Span(start, end, CASE.response[start:end], 0.9, "contradicted", "Value checker")
        progress.add(SpanAdjudicated(1.0, span, True, "kept"))
    run = Run("r", CASE.id, "p", plan, "finished", 1.0, 2.0, label, p_hallucinated=0.7)
    return run, CASE, progress, []


def test_plans_and_marks_that_differ_are_named() -> None:
    plan = Plan(classifier="seed", max_turns=5)
    before = loaded(plan, "hallucinated", (13, 18))
    after = loaded(replace(plan, max_turns=2, passages=9), "hallucinated", (28, 31))
    assert describe_differences(before, after) == [
        "The machine’s verdict is the same; p(hallucinated) is 0.70 again.",
        "Debate turns at most: 5 before, 2 after.",
        "Passages per statement: 5 before, 9 after.",
        "Only marked before: “512 m”.",
        "Only marked after: “red”.",
    ]


def test_a_verdict_that_changed_comes_first() -> None:
    plan = Plan(classifier="seed")
    lines = describe_differences(loaded(plan, "hallucinated"), loaded(plan, "supported"))
    assert lines == ["The machine’s verdict changed from hallucinated to supported."]


def test_words_of_a_sentence_that_is_told_of_are_not_told_again() -> None:
    runs = {
        "A": run("hallucinated", [(24, 29), (13, 16)]),
        "B": run("supported", []),
        "C": run("hallucinated", [(24, 34)]),
    }
    assert describe_disagreements(TEXT, runs) == [
        "The verdicts differ. A, C: hallucinated; B: supported.",
        "“The tower is red.”: marked by A, not by B, C.",
        "“It is 512 m tall.”: marked by A, C, not by B.",
    ]


def test_words_within_a_sentence_that_all_mark_are_named() -> None:
    runs = {"A": run("hallucinated", [(24, 29)]), "B": run("hallucinated", [(24, 34)])}
    assert describe_disagreements(TEXT, runs) == ["“tall”: marked by B, not by A."]


def test_whoever_turned_is_named_and_nothing_where_all_is_the_same() -> None:
    swayed = run("supported", [], ("Ada", "hallucinated"), ("Ben", "supported"),
                 ("Ada", "supported"))  # fmt: skip
    lines = describe_disagreements(TEXT, {"A": swayed, "B": run("supported", [])})
    assert lines == ["A: Ada turned from hallucinated to supported in round 2."]
    assert (
        describe_disagreements(TEXT, {"A": run("supported", []), "B": run("supported", [])}) == []
    )
