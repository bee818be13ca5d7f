"""Checking again: what has the same inputs as before is taken over, all else is done anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.baseline.judge import BuiltInJudge
from core.documents.library import discard_reading, store_file
from core.pipeline import review as review_module
from core.pipeline import run_factory as reuse
from core.pipeline.jobs import JobRunner
from core.pipeline.review import ReviewResources
from core.pipeline.run_factory import EarlierRun, compute_code_digest
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.runtime.errors import ModelError, ReviewError
from core.schema.events import TRANSIENT_KINDS, Event, ProblemMet, RunStarted
from core.schema.records import Case, Plan
from core.schema.roles import Agent, Roster
from core.schema.run_state import RunState, fold_events
from core.store import Store, open_store
from core.verdict.classifier import Classifier, ClassifierHead
from tests.fakes import Line, ScriptedDebater, review
from tests.readers import paw_assessor

pytestmark = pytest.mark.usefixtures("without_weights")

CATS = "Female cats tend to be right pawed, while male cats are more often left pawed."
OTHER = "Cats have five toes on each front paw. They sleep for most of the day."
CLAIM = "Female cats tend to be left pawed. Cats have five toes on each front paw."
STEPS = set(
    "statement_found passages_found context_built turn_finished consensus_reached "
    "judgement_reached".split()
)


def add_file(store: Store, home: Path, project_id: str, name: str, text: str) -> str:
    entry = store_file(store, home, project_id, name, text.encode(), "Mira", 1.0, Settings())
    return entry.id


def case_of(home: Path, *sources: tuple[str, str], claim: str = CLAIM) -> Case:
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        ids = [add_file(store, home, project.id, name, text) for name, text in sources]
        return store_case(store, project, CaseDraft(claim, documents=tuple(ids)), "Mira", 1.0)


def run(
    case: Case,
    roster: Roster,
    resources: ReviewResources,
    *,
    plan: Plan | None = None,
    past: list[Event] | None = None,
    earlier: list[Event] | None = None,
) -> list[Event]:
    before = EarlierRun("before", tuple(earlier)) if earlier else None
    found = review(
        case, plan or Plan(), roster, resources, StopSignal(), past=past or (), earlier=before
    )
    return [event for event in found if event.kind not in TRANSIENT_KINDS]


def kept(events: list[Event]) -> list[Event]:
    """What the steps came to, without when it was and how long it took."""
    return [
        replace(event, at=0.0, seconds=0.0)
        if event.kind in ("turn_finished", "judgement_reached")
        else replace(event, at=0.0)
        for event in events
        if event.kind in STEPS
    ]


class Never:
    """An agent by name and rule only: whatever it is asked for fails the test."""

    built_in = True

    def __init__(self, inner: Agent) -> None:
        self.name, self.rule = inner.name, inner.rule

    def __getattr__(self, asked: str) -> object:
        raise AssertionError(f"{self.name} was asked to {asked}")


def never(inner: Agent) -> Any:
    return Never(inner)


def silent(roster: Roster) -> Roster:
    """The same cast, which must not be asked for anything but spans."""
    return replace(
        roster,
        segmenter=never(roster.segmenter),
        context_writer=never(roster.context_writer),
        debaters={name: never(agent) for name, agent in roster.debaters.items()},
        judge=never(roster.judge),
    )


def test_only_the_label_is_new_when_only_the_classifier_changed(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, ("cats.txt", CATS))
    first = run(case, roster, resources)
    always = Classifier(
        "v1", ClassifierHead((0.0,) * resources.encoder.width, 3.0), resources.encoder, {}
    )
    other = replace(resources, classifier=always)
    second = run(case, silent(roster), other, plan=Plan(classifier="v1"), earlier=first)
    assert kept(second) == kept(first)
    state = fold_events(second)
    assert state.reused
    assert (state.reused.run_id, state.reused.through) == ("before", "judgement")
    assert state.verdict
    assert (state.verdict.classifier, state.verdict.label) == ("v1", "hallucinated")
    assert state.verdict.p_hallucinated == pytest.approx(0.9526, abs=1e-4)
    assert second[-1].kind == "run_finished"
    times = [event.at for event in second]
    assert times == sorted(times), "what was taken over happens now"
    assert state.cost == 0.0
    assert {e.seconds for e in second if e.kind == "turn_finished"} == {0.0}


def test_what_was_taken_over_can_be_taken_over_again(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, ("cats.txt", CATS))
    first = run(case, roster, resources)
    second = run(case, silent(roster), resources, earlier=first)
    third = run(case, silent(roster), resources, earlier=second)
    assert kept(third) == kept(first)
    assert fold_events(third).verdict == fold_events(first).verdict
    assert fold_events(third).spans == fold_events(first).spans


def test_with_a_source_more_only_the_statements_are_taken_over(
    roster: Roster, resources: ReviewResources
) -> None:
    first = run(case_of(resources.home, ("cats.txt", CATS)), roster, resources)
    more = case_of(resources.home, ("cats.txt", CATS), ("other.txt", OTHER))
    cast = replace(roster, segmenter=silent(roster).segmenter)
    state = fold_events(run(more, cast, resources, earlier=first))
    assert state.reused
    assert state.reused.through == "statements"
    assert state.statements == fold_events(first).statements
    anew = fold_events(run(more, roster, resources))
    assert state.verdict == anew.verdict
    assert state.evidence == anew.evidence


Change = Callable[[Case, Plan, Roster], tuple[Case, Plan, Roster]]


class Stricter(BuiltInJudge):
    """The same judge under another rule."""

    rule = "another rule"


def another_rule(roster: Roster) -> Roster:
    return replace(roster, judge=Stricter(paw_assessor()))


@pytest.mark.parametrize(
    ("change", "through"),
    [
        (lambda c, p, r: (replace(c, role="Poet"), p, r), None),
        (lambda c, p, r: (replace(c, instruction="Be kind."), p, r), None),
        (lambda c, p, r: (replace(c, question="Which paw?"), p, r), None),
        (lambda c, p, r: (c, replace(p, max_turns=1), r), "statements"),
        (lambda c, p, r: (c, replace(p, passages=1), r), "statements"),
        (lambda c, p, r: (c, p, another_rule(r)), "statements"),
        (lambda c, p, r: (replace(c, response="Cats sleep."), p, r), None),
        (lambda c, p, r: (replace(c, language="de"), p, r), None),
    ],
)
def test_whatever_a_step_reads_makes_it_anew(
    roster: Roster, resources: ReviewResources, change: Change, through: str | None
) -> None:
    case = case_of(resources.home, ("cats.txt", CATS))
    first = run(case, roster, resources)
    case, plan, cast = change(case, Plan(), roster)
    state = fold_events(run(case, cast, resources, plan=plan, earlier=first))
    assert (state.reused.through if state.reused else None) == through
    assert state.verdict


def test_a_source_that_was_read_anew_is_searched_anew(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, ("cats.txt", CATS))
    first = run(case, roster, resources)
    with open_store(resources.home) as store:
        discard_reading(store, case.documents[0])
    state = fold_events(run(case, roster, resources, earlier=first))
    assert state.reused
    assert state.reused.through == "statements"


def test_another_code_does_everything_anew(roster: Roster, resources: ReviewResources) -> None:
    case = case_of(resources.home, ("cats.txt", CATS))
    first = run(case, roster, resources)
    started = first[0]
    assert isinstance(started, RunStarted)
    assert started.code
    for code in ("", "0123456789ab"):
        old = [replace(started, code=code), *first[1:]]
        assert fold_events(run(case, roster, resources, earlier=old)).reused is None


def test_a_debate_in_which_somebody_failed_is_held_again(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, ("cats.txt", CATS))
    first = run(case, roster, resources)
    failed = [*first[:-1], ProblemMet(9e9, "debating", "Ada could not speak."), first[-1]]
    state = fold_events(run(case, roster, resources, earlier=failed))
    assert state.reused
    assert state.reused.through == "statements"


@pytest.mark.parametrize("protocol", ["mad", "copmad"])
def test_a_debate_that_seats_two_of_three_is_taken_over_whole(
    roster: Roster, resources: ReviewResources, protocol: str
) -> None:
    case, plan = case_of(resources.home, ("cats.txt", CATS)), Plan(protocol)
    first = run(case, roster, resources, plan=plan)
    state = fold_events(run(case, silent(roster), resources, plan=plan, earlier=first))
    assert state.reused
    assert state.reused.through == "judgement"
    assert state.notes == fold_events(first).notes
    assert len(state.notes) == 1


def test_agents_that_may_answer_otherwise_are_asked_again(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, ("cats.txt", CATS))

    def cast() -> Roster:
        lines: list[Line | ReviewError] = [ModelError("Nobody is there.")]
        return replace(roster, debaters={"D": ScriptedDebater("One", lines)})

    assert roster.is_deterministic
    assert not cast().is_deterministic
    first = run(case, cast(), resources)
    assert fold_events(run(case, cast(), resources, earlier=first)).reused is None


def test_taking_over_that_was_cut_off_resumes_to_the_same_end(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, ("cats.txt", CATS))
    first = run(case, roster, resources)
    whole = run(case, roster, resources, earlier=first)
    for cut in range(len(whole)):
        rest = run(case, roster, resources, past=whole[:cut], earlier=first)
        joined = [*whole[:cut], *rest]
        assert kept(joined) == kept(whole), f"after {cut} events"
        assert fold_events(joined).verdict == fold_events(whole).verdict


@pytest.mark.parametrize("claim", ["!!!", "😀 😀"])
def test_a_response_without_statements_is_taken_over_once(
    roster: Roster, resources: ReviewResources, claim: str
) -> None:
    """Nothing but the context, the turns and the note say that it was taken over."""
    case = case_of(resources.home, ("cats.txt", CATS), claim=claim)
    first = run(case, roster, resources)
    whole = run(case, roster, resources, earlier=first)
    assert not fold_events(whole).statements
    for cut in range(len(whole)):
        rest = run(case, roster, resources, past=whole[:cut], earlier=first)
        joined = [*whole[:cut], *rest]
        assert kept(joined) == kept(whole), f"after {cut} events"
        assert [e.kind for e in joined].count("steps_reused") <= 1


def test_a_run_that_began_under_another_code_takes_nothing_over_when_resumed(
    roster: Roster, resources: ReviewResources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was killed before the take-over, and the program was updated before the Resume."""
    case = case_of(resources.home, ("cats.txt", CATS))
    first = run(case, roster, resources)
    began = run(case, roster, resources, earlier=first)[:2]
    assert [event.kind for event in began] == ["run_started", "document_read"]
    assert fold_events(run(case, roster, resources, past=began, earlier=first)).reused
    monkeypatch.setattr(review_module, "CODE_DIGEST", "0123456789ab")
    state = fold_events([*began, *run(case, roster, resources, past=began, earlier=first)])
    assert state.reused is None
    assert state.verdict == fold_events(first).verdict


def test_the_code_is_named_by_its_content(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert len(compute_code_digest()) == 64
    assert compute_code_digest() == compute_code_digest()
    monkeypatch.setattr(reuse, "PROJECT_ROOT", tmp_path)
    (tmp_path / "core").mkdir()
    digests = {compute_code_digest()}
    for name in ("patterns.toml", "reader.onnx", "rules.py"):
        (tmp_path / "core" / name).write_text("one")
        digests.add(compute_code_digest())
    (tmp_path / "core" / "rules.pyc").write_text("one")
    digests.add(compute_code_digest())
    assert len(digests) == 4


def test_a_run_names_the_code_that_runs_and_not_what_came_to_lie_there_since(
    roster: Roster, resources: ReviewResources, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "requirements.txt").write_text("streamlit")
    before = compute_code_digest()
    monkeypatch.setattr(reuse, "PROJECT_ROOT", tmp_path)
    assert compute_code_digest() != before
    started = run(case_of(resources.home, ("cats.txt", CATS)), roster, resources)[0]
    assert isinstance(started, RunStarted)
    assert started.code.split()[0] == review_module.CODE_DIGEST


def state_of(home: Path, run_id: str) -> RunState:
    with open_store(home) as store:
        return fold_events(event for _, event in store.runs.events(run_id))


def test_a_run_that_is_checked_again_is_taken_over_from_the_store(home: Path) -> None:
    case = case_of(home, ("cats.txt", CATS))
    jobs = JobRunner(home)
    first = jobs.start(case, Plan())
    assert jobs.wait(first, 60)
    second = jobs.start(case, Plan(), parent_id=first)
    assert jobs.wait(second, 60)
    state = state_of(home, second)
    assert state.reused
    assert (state.reused.run_id, state.reused.through) == (first, "judgement")
    assert state.verdict == state_of(home, first).verdict


def test_what_is_taken_over_is_stored_with_its_note_or_not_at_all(home: Path) -> None:
    case = case_of(home, ("cats.txt", CATS))
    jobs = JobRunner(home)
    first = jobs.start(case, Plan())
    assert jobs.wait(first, 60)
    with open_store(home) as store:
        store.db.execute(
            "CREATE TRIGGER cut BEFORE INSERT ON events WHEN NEW.kind = 'steps_reused' "
            "BEGIN SELECT RAISE(ABORT, 'the power went'); END"
        )
    second = jobs.start(case, Plan(), parent_id=first)
    assert jobs.wait(second, 60)
    with open_store(home) as store:
        stored = [event.kind for _, event in store.runs.events(second)]
        assert stored == ["run_started", "document_read", "run_failed"]
        store.db.execute("DROP TRIGGER cut")
    assert jobs.resume(second, "Mira")
    assert jobs.wait(second, 60)
    assert state_of(home, second).reused
    assert state_of(home, second).verdict == state_of(home, first).verdict


@pytest.mark.parametrize("column", ["status = 'stopped'", "origin = 'imported'"])
def test_only_a_finished_run_of_our_own_is_taken_over(home: Path, column: str) -> None:
    case = case_of(home, ("cats.txt", CATS))
    jobs = JobRunner(home)
    first = jobs.start(case, Plan())
    assert jobs.wait(first, 60)
    with open_store(home) as store:
        store.db.execute(f"UPDATE runs SET {column} WHERE id = ?", [first])
    second = jobs.start(case, Plan(), parent_id=first)
    assert jobs.wait(second, 60)
    assert state_of(home, second).reused is None


def test_an_audit_takes_over_its_statements_alone(
    roster: Roster, resources: ReviewResources
) -> None:
    """Its tools answer from beyond the run's inputs: what they said then may not hold now."""
    case = case_of(resources.home, ("cats.txt", f"{CATS} {OTHER}"))
    plan = Plan("audit")
    earlier = run(case, roster, resources, plan=plan)
    again = run(case, roster, resources, plan=plan, earlier=earlier)
    state = fold_events(again)
    assert state.reused
    assert state.reused.through == "statements"
    assert [e.kind for e in again].count("tool_called") == len(fold_events(earlier).tool_uses) > 0
    crossed = fold_events(run(case, roster, resources, earlier=earlier))
    assert crossed.reused
    assert crossed.reused.through == "statements", "a debate takes nothing from an audit"
