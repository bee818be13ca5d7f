"""Two runs side by side: whatever differs between them is said."""

from __future__ import annotations

from dataclasses import replace

from components.check.compare import Loaded, differences
from core.schema.events import SpanAdjudicated
from core.schema.progress import Progress
from core.schema.records import Label, Plan, Run, Span
from tests.fakes import make_case

CASE = make_case("The tower is 512 m tall and red.")


def loaded(plan: Plan, label: Label, *marked: tuple[int, int]) -> Loaded:
    progress = Progress()
    for start, end in marked:
        span = Span(start, end, CASE.response[start:end], 0.9, "contradicted", "Value checker")
        progress.add(SpanAdjudicated(1.0, span, True, "kept"))
    run = Run("r", CASE.id, "p", plan, "finished", 1.0, 2.0, label, p_hallucinated=0.7)
    return run, CASE, progress, []


def test_plans_and_marks_that_differ_are_named() -> None:
    plan = Plan(classifier="seed", max_turns=5)
    before = loaded(plan, "hallucinated", (13, 18))
    after = loaded(replace(plan, max_turns=2, passages=9), "hallucinated", (28, 31))
    assert differences(before, after) == [
        "The verdict is the same; p(hallucinated) is 0.70 again.",
        "Debate turns at most: 5 before, 2 after.",
        "Passages per statement: 5 before, 9 after.",
        "Only marked before: “512 m”.",
        "Only marked after: “red”.",
    ]


def test_a_verdict_that_changed_comes_first() -> None:
    plan = Plan(classifier="seed")
    lines = differences(loaded(plan, "hallucinated"), loaded(plan, "supported"))
    assert lines == ["The verdict changed from hallucinated to supported."]
