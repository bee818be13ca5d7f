"""One case in several ways: the budget's rule, what starts, what is said of the rest, the table."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.limits import SpendingCaps
from core.pipeline.comparison import (
    MAX_WAYS,
    ComparedWay,
    ComparisonBudget,
    assign_letters,
    estimate_need,
    find_differing_sentences,
    find_differing_words,
    find_inconsistent_agents,
    find_stance_changes,
    format_comparison_csv,
    group_runs_by_label,
    load_compared_cases,
    load_compared_runs,
    load_skipped_ways,
    share_budget,
    start_comparison,
)
from core.pipeline.cost_estimate import CostEstimate, ModelUsage
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.events import LabelPredicted, SpanAdjudicated, StatementFound, TurnFinished
from core.schema.records import Case, Label, Plan, Span, Stance, Statement, Turn, Verdict
from core.schema.rosters import AgentConfig, RosterConfig
from core.schema.run_state import RunState
from core.store import Store, open_store

pytestmark = pytest.mark.usefixtures("without_weights")

SHEET = RosterConfig("theirs", judge=AgentConfig(model="openai/none", key_name="NO_SUCH_KEY"))


def way(cost: float, tokens: int, protocol: str = "ceda") -> ComparedWay:
    use = ModelUsage(3, tokens, tokens, cost, 1.0)
    return ComparedWay(Plan(protocol), CostEstimate(use, use, ()))


uses = st.lists(
    st.tuples(st.floats(0.0, 2.0), st.integers(0, 300_000)), min_size=1, max_size=MAX_WAYS
)


@given(uses, st.integers(1, 2_000), st.integers(1, 4_000_000))
def test_shares_never_pass_the_budget_and_cover_what_is_likely(
    wanted: list[tuple[float, int]], cents: int, tokens: int
) -> None:
    settings, budget = Settings(), ComparisonBudget(cents, tokens)
    found = share_budget([way(cost, own) for cost, own in wanted], budget, settings)
    shares = [own.share for own in found if own.share is not None]
    assert sum(share.cents for share in shares) <= cents
    assert sum(share.tokens for share in shares) <= tokens
    for own in found:
        need = estimate_need(own)
        assert need is not None
        assert (own.share is None) == bool(own.problem)
        if own.share is not None:
            assert not own.share.lacks(need)
            assert not ComparisonBudget(settings.run_cents, settings.run_tokens).lacks(own.share)


def test_what_does_not_fit_is_left_out_and_later_ways_that_fit_are_taken() -> None:
    found = share_budget(
        [way(0.5, 10), way(0.6, 10), way(0.3, 10)], ComparisonBudget(100, 1000), Settings()
    )
    assert [bool(own.problem) for own in found] == [False, True, False]
    assert "US$0.60" in found[1].problem
    assert [own.share.cents if own.share else 0 for own in found] == [62, 0, 37]


def test_a_way_above_the_cap_of_any_run_is_not_started_whatever_the_budget() -> None:
    found = share_budget([way(1.5, 10)], ComparisonBudget(2_000, 4_000_000), Settings())
    assert "more than a single check may use" in found[0].problem


def test_built_in_agents_use_nothing_of_a_budget() -> None:
    found = share_budget(
        [ComparedWay(Plan()), way(0.9, 10)], ComparisonBudget(100, 100), Settings()
    )
    assert found[0].share is None
    assert not found[0].problem
    assert found[1].share == ComparisonBudget(100, 100)


def test_a_share_stands_for_the_caps_of_the_run() -> None:
    caps = SpendingCaps.of(Settings(), 500, 7)
    assert (caps.run_cents, caps.run_tokens) == (7, 500)
    assert caps.day_cents == Settings().day_cents


def a_case(store: Store) -> Case:
    project = ensure_project(store, "Mira", 1.0)
    return store_case(store, project, CaseDraft("The tower is 512 m tall."), "Mira", 2.0)


def test_ways_become_runs_of_the_case_and_the_others_say_why_not(home: Path) -> None:
    jobs = JobRunner(home)
    ways = [
        ComparedWay(Plan("single")),
        ComparedWay(Plan("ceda")),
        ComparedWay(Plan("ceda", "theirs", sheet=SHEET)),
    ]
    with open_store(home) as store:
        case = a_case(store)
        begun = start_comparison(store, jobs, case, ways, by="Mira")
        assert len(begun) == 2
        assert all(jobs.wait(run_id, 120) for run_id in begun)
        found = load_compared_runs(store, case.id)
        assert [own.run.plan.protocol for own in found] == ["single", "ceda"]
        assert {own.run.status for own in found} == {"finished"}
        left = load_skipped_ways(store, case.id)
        assert [(own.protocol, own.roster) for own in left] == [("ceda", "theirs")]
        assert "NO_SUCH_KEY" in left[0].problem
        assert load_compared_cases(store, case.project_id) == [case.id]
    named = dict(zip(assign_letters(2), found, strict=True))
    text = format_comparison_csv(named, left, case.response).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["way"] for row in rows] == ["A", "B", ""]
    assert [row["label"] for row in rows] == ["unclear", "unclear", ""]
    assert rows[2]["status"] == "not started"
    assert "p_hallucinated" not in rows[0], "no way has one: without evidence all are unclear"
    assert float(rows[0]["us_dollars"]) == 0.0


def test_the_newest_run_of_a_way_stands_for_it(home: Path) -> None:
    jobs = JobRunner(home)
    with open_store(home) as store:
        case = a_case(store)
        first = start_comparison(store, jobs, case, [ComparedWay(Plan("single"))], by="Mira")
        again = start_comparison(store, jobs, case, [ComparedWay(Plan("single"))], by="Mira")
        assert all(jobs.wait(run_id, 120) for run_id in (*first, *again))
        assert [own.run.id for own in load_compared_runs(store, case.id)] == again


def test_nothing_to_start_is_said_and_stores_nothing(home: Path) -> None:
    jobs = JobRunner(home)
    with open_store(home) as store:
        case = a_case(store)
        with pytest.raises(InputError, match="found 0"):
            start_comparison(store, jobs, case, [], by="Mira")
        with pytest.raises(InputError, match="NO_SUCH_KEY"):
            start_comparison(
                store, jobs, case, [ComparedWay(Plan("ceda", "theirs", sheet=SHEET))], by="Mira"
            )
        assert not load_compared_cases(store, case.project_id)
        assert not store.runs.of_case(case.id, 3.0, 6.0)


TEXT = "The tower is red. It is 512 m tall."
PARTS = (Statement(0, 0, 17, TEXT[:17], TEXT[:17]), Statement(1, 18, 35, TEXT[18:], TEXT[18:]))
Marked = tuple[int, int]


def run(label: Label | None, marked: list[Marked], *stances: tuple[str, Stance]) -> RunState:
    progress = RunState()
    for statement in PARTS:
        progress.add(StatementFound(1.0, statement))
    for number, (name, stance) in enumerate(stances, start=1):
        turn = Turn(name, f"Reader {name}", number, (number + 1) // 2, "agree", stance, "So.")
        progress.add(TurnFinished(float(number), turn, 1.0))
    if label is not None:
        progress.add(LabelPredicted(2.0, Verdict(label, 0.5, 0.5, "So.")))
    for start, end in marked:
        span = Span(start, end, TEXT[start:end], 0.9, "contradicted", "Value checker")
        progress.add(SpanAdjudicated(3.0, span, True, "kept"))
    return progress


def test_a_side_that_a_debater_was_assigned_is_no_change_of_mind() -> None:
    progress = RunState()
    sides: tuple[Stance, ...] = ("supported", "hallucinated")
    for number, side in enumerate(sides, start=1):
        turn = Turn("Ada", "Reader", number, number, "deny", side, "So.", assigned=side)
        progress.add(TurnFinished(float(number), turn, 1.0))
    assert find_stance_changes({"A": progress}) == []
    for number, stance in enumerate(sides, start=3):
        progress.add(
            TurnFinished(1.0, Turn("Ada", "Reader", number, 2, "deny", stance, "So."), 1.0)
        )
    assert [(own.before, own.after) for own in find_stance_changes({"A": progress})] == [sides]


def test_words_that_only_some_mark_are_named_with_who_does() -> None:
    runs = {
        "A": run("hallucinated", [(24, 29)]),
        "B": run("hallucinated", [(24, 34), (13, 16)]),
        "C": run(None, []),
    }
    found = find_differing_words(TEXT, runs)
    assert [(own.text, own.marked_by, own.passed_by) for own in found] == [
        ("red", ("B",), ("A",)),
        (" tall", ("B",), ("A",)),
    ]
    held = find_differing_sentences(runs)
    assert [(own.text, dict(own.is_marked)) for own in held] == [
        (TEXT[:17], {"A": False, "B": True})
    ]


spans = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 5)).map(lambda s: (s[0], s[0] + s[1])), max_size=5
)


@given(spans, spans)
def test_each_character_lies_in_a_stretch_exactly_where_one_run_alone_marks_it(
    first: list[Marked], second: list[Marked]
) -> None:
    runs = {"A": run("hallucinated", first), "B": run("hallucinated", second)}
    found = find_differing_words(TEXT, runs)
    for place in range(len(TEXT)):
        by = {
            name
            for name, own in (("A", first), ("B", second))
            if any(start <= place < end for start, end in own)
        }
        over = [own for own in found if own.start <= place < own.end]
        assert len(over) == (len(by) == 1)
        assert all(set(own.marked_by) == by for own in over)
    assert all(own.text == TEXT[own.start : own.end] for own in found)
    assert not find_differing_words(TEXT, {"A": runs["A"], "B": runs["A"]})


def test_whose_mind_changed_within_a_run_and_between_runs() -> None:
    firm = run("supported", [], ("Ada", "supported"), ("Ben", "supported"))
    swayed = run(
        "hallucinated", [], ("Ada", "supported"), ("Ben", "supported"), ("Ada", "hallucinated")
    )
    runs = {"A": firm, "B": swayed}
    assert group_runs_by_label(runs) == {"supported": ("A",), "hallucinated": ("B",)}
    assert [(t.run, t.debater, t.before, t.after, t.round) for t in find_stance_changes(runs)] == [
        ("B", "Ada", "supported", "hallucinated", 2)
    ]
    assert find_inconsistent_agents(runs) == [
        ("Reader Ada", {"supported": ["A"], "hallucinated": ["B"]})
    ]
