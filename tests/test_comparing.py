"""One case in several ways: the budget's rule, what starts, what is said of the rest, the table."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.limits import Caps
from core.pipeline.comparison import (
    MOST_WAYS,
    Budget,
    Way,
    compared,
    compared_cases,
    comparison_csv,
    left_out,
    letters,
    needed,
    shared_out,
    start_comparison,
)
from core.pipeline.cost_estimate import Expected, Use
from core.pipeline.jobs import Jobs
from core.pipeline.streaming_input import Draft, store_case
from core.review.people import first_project
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.records import Case, Plan
from core.schema.rosters import RosterSheet, Seat
from core.store import Store, open_store

pytestmark = pytest.mark.usefixtures("without_weights")

SHEET = RosterSheet("theirs", judge=Seat(model="openai/none", key_name="NO_SUCH_KEY"))


def way(cost: float, tokens: int, protocol: str = "ceda") -> Way:
    use = Use(3, tokens, tokens, cost, 1.0)
    return Way(Plan(protocol), Expected(use, use, ()))


uses = st.lists(
    st.tuples(st.floats(0.0, 2.0), st.integers(0, 300_000)), min_size=1, max_size=MOST_WAYS
)


@given(uses, st.integers(1, 2_000), st.integers(1, 4_000_000))
def test_shares_never_pass_the_budget_and_cover_what_is_likely(
    wanted: list[tuple[float, int]], cents: int, tokens: int
) -> None:
    settings, budget = Settings(), Budget(cents, tokens)
    found = shared_out([way(cost, own) for cost, own in wanted], budget, settings)
    shares = [own.share for own in found if own.share is not None]
    assert sum(share.cents for share in shares) <= cents
    assert sum(share.tokens for share in shares) <= tokens
    for own in found:
        need = needed(own)
        assert need is not None
        assert (own.share is None) == bool(own.problem)
        if own.share is not None:
            assert own.share.holds(need)
            assert Budget(settings.run_cents, settings.run_tokens).holds(own.share)


def test_what_does_not_fit_is_left_out_and_later_ways_that_fit_are_taken() -> None:
    found = shared_out([way(0.5, 10), way(0.6, 10), way(0.3, 10)], Budget(100, 1000), Settings())
    assert [bool(own.problem) for own in found] == [False, True, False]
    assert "US$0.60" in found[1].problem
    assert [own.share.cents if own.share else 0 for own in found] == [62, 0, 37]


def test_a_way_above_the_cap_of_any_run_is_not_started_whatever_the_budget() -> None:
    found = shared_out([way(1.5, 10)], Budget(2_000, 4_000_000), Settings())
    assert "more than a single check may use" in found[0].problem


def test_built_in_agents_use_nothing_of_a_budget() -> None:
    found = shared_out([Way(Plan()), way(0.9, 10)], Budget(100, 100), Settings())
    assert found[0].share is None
    assert not found[0].problem
    assert found[1].share == Budget(100, 100)


def test_a_share_stands_for_the_caps_of_the_run() -> None:
    caps = Caps.of(Settings(), 500, 7)
    assert (caps.run_cents, caps.run_tokens) == (7, 500)
    assert caps.day_cents == Settings().day_cents


def a_case(store: Store) -> Case:
    project = first_project(store, "Mira", 1.0)
    return store_case(store, project, Draft("The tower is 512 m tall."), "Mira", 2.0)


def test_ways_become_runs_of_the_case_and_the_others_say_why_not(home: Path) -> None:
    jobs = Jobs(home)
    ways = [Way(Plan("single")), Way(Plan("ceda")), Way(Plan("ceda", "theirs", sheet=SHEET))]
    with open_store(home) as store:
        case = a_case(store)
        begun = start_comparison(store, jobs, case, ways, by="Mira")
        assert len(begun) == 2
        assert all(jobs.wait(run_id, 120) for run_id in begun)
        found = compared(store, case.id)
        assert [own.run.plan.protocol for own in found] == ["single", "ceda"]
        assert {own.run.status for own in found} == {"finished"}
        left = left_out(store, case.id)
        assert [(own.protocol, own.roster) for own in left] == [("ceda", "theirs")]
        assert "NO_SUCH_KEY" in left[0].problem
        assert compared_cases(store, case.project_id) == [case.id]
    named = dict(zip(letters(2), found, strict=True))
    text = comparison_csv(named, left, case.response).decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["way"] for row in rows] == ["A", "B", ""]
    assert [row["label"] for row in rows] == ["unclear", "unclear", ""]
    assert rows[2]["status"] == "not started"
    assert "p_hallucinated" not in rows[0], "no way has one: without evidence all are unclear"
    assert float(rows[0]["us_dollars"]) == 0.0


def test_the_newest_run_of_a_way_stands_for_it(home: Path) -> None:
    jobs = Jobs(home)
    with open_store(home) as store:
        case = a_case(store)
        first = start_comparison(store, jobs, case, [Way(Plan("single"))], by="Mira")
        again = start_comparison(store, jobs, case, [Way(Plan("single"))], by="Mira")
        assert all(jobs.wait(run_id, 120) for run_id in (*first, *again))
        assert [own.run.id for own in compared(store, case.id)] == again


def test_nothing_to_start_is_said_and_stores_nothing(home: Path) -> None:
    jobs = Jobs(home)
    with open_store(home) as store:
        case = a_case(store)
        with pytest.raises(InputError, match="found 0"):
            start_comparison(store, jobs, case, [], by="Mira")
        with pytest.raises(InputError, match="NO_SUCH_KEY"):
            start_comparison(
                store, jobs, case, [Way(Plan("ceda", "theirs", sheet=SHEET))], by="Mira"
            )
        assert not compared_cases(store, case.project_id)
        assert not store.runs.of_case(case.id, 3.0, 6.0)
