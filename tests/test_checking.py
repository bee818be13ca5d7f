"""Drafts stay a person's; a check says who is to do it, who did, and what it cost as one object."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.agents.rosters import SHIPPED_ROSTERS
from core.llm.keys import Keys
from core.pipeline.jobs import JobRunner, LiveState
from core.pipeline.single_check import (
    CaseDraft,
    CheckRequest,
    ProgressLines,
    build_outcome,
    plan_check,
    store_case,
    wait_for_run,
)
from core.review.people import PERSON_NOTE, ensure_project, load_draft, rename_person, save_draft
from core.runtime.errors import InputError, KeyMissing
from core.schema.events import (
    ConsensusWeighed,
    DebateDecided,
    Event,
    ModelCalled,
    ProgressMade,
    RunFailed,
    RunStarted,
    TurnFinished,
)
from core.schema.records import ModelCall, Plan, Run, RunStatus, Turn
from core.schema.rosters import DebateOptions
from core.schema.run_state import fold_events
from core.store import Store
from tests.fakes import make_case


def test_drafts_go_along_to_a_new_name(store: Store) -> None:
    project = ensure_project(store, "Mira", 1.0)
    save_draft(store, "Mira", "run.1.correct", "half a sentence")
    save_draft(store, "Mira", f"new.{project.id}", "a claim")
    save_draft(store, "Mira", "gone", "x")
    save_draft(store, "Mira", "gone", "")
    save_draft(store, "Berg.Mira", "new", "another person, whose name ends like hers")
    rename_person(store, "Mira", "Mira Berg", 2.0)
    assert store.projects.note(PERSON_NOTE) == "Mira Berg"
    assert load_draft(store, "Mira Berg", "run.1.correct") == "half a sentence"
    assert load_draft(store, "Mira Berg", f"new.{project.id}") == "a claim"
    assert load_draft(store, "Mira", "run.1.correct") == ""
    assert load_draft(store, "Berg.Mira", "new") != ""
    rename_person(store, "Mira Berg", "Mira", 3.0)
    assert load_draft(store, "Mira", "run.1.correct") == "half a sentence"


def test_a_draft_that_the_new_name_has_already_is_not_lost(store: Store) -> None:
    ensure_project(store, "Mira", 1.0)
    save_draft(store, "Mira", "new", "Mira's")
    save_draft(store, "Karl", "new", "Karl's")
    rename_person(store, "Mira", "Karl", 2.0)
    assert load_draft(store, "Karl", "new") == "Karl's"
    assert load_draft(store, "Mira", "new") == "Mira's"
    rename_person(store, "Karl", "Karl", 3.0)
    assert load_draft(store, "Karl", "new") == "Karl's"


def test_what_is_submitted_again_is_the_case_that_is_there(store: Store) -> None:
    project = ensure_project(store, "Mira", 1.0)
    draft = CaseDraft(
        "The tower is 512 m tall.", "How tall?", ("a", "b"), ("c",), "Verifier", "Verify."
    )
    case = store_case(store, project, draft, "Mira", 1.0)
    again = store_case(store, project, replace(draft, documents=("b", "a")), "Karl", 2.0)
    assert again == case
    others = [
        replace(draft, response="the tower is 512 m tall."),  # its offsets are another text's
        replace(draft, question=""),
        replace(draft, documents=("a",)),
        replace(draft, images=()),
        replace(draft, role="Editor"),
        replace(draft, instruction="Look."),
        replace(draft, language="de"),
        replace(draft, others=(("source", "x"),)),
        replace(draft, id="given"),
    ]
    stored = [store_case(store, project, other, "Mira", 3.0) for other in others]
    assert len({one.id for one in (case, *stored)}) == 1 + len(others)
    elsewhere = replace(project, id="second", name="Second")
    store.projects.save(elsewhere)
    assert store_case(store, elsewhere, draft, "Mira", 4.0).id != case.id


def test_a_plan_holds_the_sheet_and_the_cap_and_nothing_is_stored(home: Path) -> None:
    base = "http://127.0.0.1:9/v1"
    request = CheckRequest(
        "A claim.", model="openai/x", api_base=base, concurrency=2, token_cap=500
    )
    plan, notices = plan_check(home, request, Keys({}))
    assert (plan.roster, plan.token_cap, notices) == ("openai/x", 500, [])
    assert plan.sheet is not None
    seats = [seat for _, seat in plan.sheet.agents_by_role() if seat.model]
    assert {(seat.api_base, seat.concurrency) for seat in seats} == {(base, 2)}
    built_in, _ = plan_check(home, CheckRequest("A claim."), Keys({}))
    assert (built_in.roster, built_in.sheet) == ("builtin", None)
    aws = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION_NAME": "eu-west-3"}
    ceda, _ = plan_check(home, CheckRequest("A claim.", roster="ceda"), Keys(aws))
    assert ceda.sheet == SHIPPED_ROSTERS["ceda"]
    assert not home.exists()


def test_a_plan_without_its_keys_or_roster_is_refused(home: Path) -> None:
    with pytest.raises(KeyMissing) as missing:
        plan_check(home, CheckRequest("A claim.", roster="ceda"), Keys({}))
    assert "AWS_ACCESS_KEY_ID" in missing.value.names
    with pytest.raises(InputError, match="titans"):
        plan_check(home, CheckRequest("A claim.", roster="titans"), Keys({}))
    assert not home.exists()


def test_what_each_model_did_is_told_and_what_another_run_paid_is_not_counted() -> None:
    call = ModelCall("1", "judge", "verdict", "openai/x", "judge", "abc", 100, 20, 0.1, 1.0)
    calls = [
        call,
        replace(call, id="1", origin="resumed"),
        replace(call, id="2", cost=0.25),
        replace(call, id="3", cost=0.0, origin="reused"),
        replace(call, id="4", model="ollama_chat/y", cost=None),
    ]
    run = Run("r", "case", "project", Plan(), "finished", 100.0)
    found = build_outcome(run, fold_events(ModelCalled(101.0, made) for made in calls))
    assert found["models"] == {
        "ollama_chat/y": {
            "calls": 1, "reused": 0, "tokens_in": 100, "tokens_out": 20, "cost": None,
        },
        "openai/x": {
            "calls": 2, "reused": 1, "tokens_in": 200, "tokens_out": 40, "cost": 0.35,
        },
    }  # fmt: skip
    assert found["cost"] is None


CASE = make_case("The tower is 512 m tall.")
CALL = ModelCall("1", "judge", "verdict", "openai/x", "judge", "abc", 100, 20, 0.1, 1.0)


def made(*events: Event, status: RunStatus = "finished") -> dict[str, object]:
    run = Run("r", CASE.id, CASE.project_id, Plan(), status, 100.0)
    return build_outcome(run, fold_events([RunStarted(100.0, CASE, Plan(), ()), *events]))


@pytest.mark.parametrize(
    ("turn", "judge", "cost"),
    [(0.0, 0.0, 0.0), (0.1, 0.2, 0.3), (1e-7, 0.0, 1e-7), (0.1, None, None), (None, 0.2, None)],
)
def test_cost_is_the_sum_of_what_was_paid(
    turn: float | None, judge: float | None, cost: float | None
) -> None:
    found = made(
        ModelCalled(101.0, replace(CALL, id="1", cost=turn)),
        ModelCalled(102.0, replace(CALL, id="2", cost=judge)),
        ModelCalled(103.0, replace(CALL, id="2", cost=judge)),  # told again after a Resume
    )
    assert found["cost"] == cost


def test_a_failed_run_has_no_label_and_says_why() -> None:
    found = made(RunFailed(103.0, "judging", "The judge is away."), status="failed")
    assert (found["label"], found["cause_words"], found["seconds"]) == (
        None,
        "The judge is away.",
        3.0,
    )


def test_an_adaptive_check_says_whether_it_held_a_debate() -> None:
    assert made()["debate"] is None
    found = made(DebateDecided(101.0, False, "The judge was sure.", "ceda"))
    assert found["debate"] == {"is_held": False, "then": "ceda", "why": "The judge was sure."}


def test_whose_answer_counted_how_much_is_told_with_what_was_chosen() -> None:
    assert (made()["consensus"], made()["options"]) == (None, {})
    told = ConsensusWeighed(101.0, "record, weights 3", (("Ada", 0.75), ("Ben", 0.25)), 0.3)
    assert made(told)["consensus"] == {
        "method": "record, weights 3",
        "weights": {"Ada": 0.75, "Ben": 0.25},
        "p": 0.3,
    }
    plan = Plan("sc_maks", options=DebateOptions(rounds=1, without="adversary"))
    run = Run("r", CASE.id, CASE.project_id, plan, "finished", 100.0)
    found = build_outcome(run, fold_events([RunStarted(100.0, CASE, plan, ())]))
    assert found["options"] == {"rounds": 1, "without": "adversary"}


def test_turns_come_in_their_order_with_what_was_asked_and_stated() -> None:
    """Whoever speaks at the same time as others may be done before them."""
    one = Turn("Ada", "m", 1, 0, "agree", "supported", "CORRECT.", manner="answer", doubt="A digit")
    side = Turn(
        "Ben", "m", 2, 1, "deny", "hallucinated", "WRONG.", manner="compete",
        assigned="hallucinated", cut=True,
    )  # fmt: skip
    found = made(TurnFinished(102.0, side, 1.0), TurnFinished(103.0, one, 2.0))
    turns = found["turns"]
    assert isinstance(turns, list)
    rows = [(t["number"], t["manner"], t["assigned"], t["doubt"], t["cut"]) for t in turns]
    assert rows == [
        (1, "answer", None, "A digit", False),
        (2, "compete", "hallucinated", "", True),
    ]


def test_long_work_is_reported_every_few_seconds_and_short_work_is_not() -> None:
    reported: list[str] = []
    times = iter([100.0, 104.0, 105.0, 106.0, 111.0, 120.0, 130.0])
    lines = ProgressLines(reported.append, lambda: next(times))
    for page in (1, 2, 3, 4, 5, 5, 6):
        lines.report(f"Reading a.pdf: page {page} of 6", page, 6)
    assert reported == ["Reading a.pdf: page 3 of 6 (50%)", "Reading a.pdf: page 5 of 6 (83%)"]


class OneRun(JobRunner):
    """A run that shows each of the steps once and has ended then."""

    def __init__(self, *steps: ProgressMade | None) -> None:
        self.steps = [*steps]

    def wait(self, run_id: str, seconds: float | None = None) -> bool:
        assert seconds, "waits without looking at the progress"
        return not self.steps

    def live(self, run_id: str) -> LiveState:
        return LiveState(progress=self.steps.pop(0))


def test_waiting_for_run_reports_indexing() -> None:
    lines: list[str] = []
    times = iter([0.0, 60.0])
    run = OneRun(
        None,
        ProgressMade(1.0, "searching", "Indexing a.pdf: passage 96 of 384", 96, 384),
        ProgressMade(2.0, "debating", "Round 1", 1, 2),
        ProgressMade(3.0, "searching", "Indexing a.pdf: passage 192 of 384", 192, 384),
    )
    wait_for_run(run, "r", ProgressLines(lines.append, lambda: next(times)))
    assert lines == ["Indexing a.pdf: passage 192 of 384 (50%)"]
