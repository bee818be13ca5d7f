"""Page reruns where much was reviewed: 20,000 runs, 100,000 corrections by five people."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.documents.segmentation import extract_terms
from core.pipeline.single_check import CheckRequest, check_once
from core.review.adjudication import rate_difference, record_gold
from core.review.queue_ranking import build_item
from core.schema.events import Event
from core.schema.records import Case, Label, Member, Project, Run, Span, new_id
from core.schema.reviews import Correction, GoldAnswer, QueueEvent, Suggestion
from core.schema.run_state import fold_events
from core.store import Store, open_store
from core.store.review_queue import QueueRules
from tests.bench.rerun import Session

RUNS = 20_000
A_TRANSACTION = 500
PEOPLE = ("Mira", "Karl", "Ida", "Lea", "Jon")
TEXT = "Female cats tend to be right pawed, while male cats are more often left pawed."
WRONG = "Female cats tend to be left pawed."
AGENTS = ("alpha", "beta", "gamma")
QUICK = (
    "Review",
    "Label",
    "Adjudicate",
    "Adjudicate a case",
)  # those that people wait for at each item
LABELS: tuple[Label, ...] = ("hallucinated", "supported", "unclear")
REPEATS = 9
RULES = QueueRules(people=len(PEOPLE))


@dataclass(frozen=True)
class Made:
    """A home that was filled, what to open in it, and the seconds that filling it took."""

    pending: str
    differing: str
    run_id: str
    seconds: float
    runs: int
    corrections: int


@dataclass(frozen=True)
class Pattern:
    """A finished check whose run and events serve for all others."""

    project: Project
    case: Case
    run: Run
    events: tuple[Event, ...]


def make_large_home(home: Path, folder: Path, runs: int = RUNS) -> Made:
    """Fill a home: of ten cases eight have five people's answers, one two people's, one none."""
    began = time.perf_counter()
    page = folder / "cats.txt"
    page.write_text(TEXT)
    result, _ = check_once(home, CheckRequest(WRONG, documents=[page]), time.time)
    with open_store(home) as store:
        pattern = _pattern(store, result["run_id"])
        with store.writing():
            store.projects.save(replace(pattern.project, people_each=len(PEOPLE)))
            for person in PEOPLE:
                store.projects.set_member(Member(pattern.project.id, person, "admin", 1.0))
        made: list[tuple[str, str]] = []
        for first in range(0, runs, A_TRANSACTION):
            with store.writing():
                for n in range(first, min(first + A_TRANSACTION, runs)):
                    made.append(_add_case(store, pattern, n))
        corrections, *_ = store.changes.of_corrections()
    seconds = time.perf_counter() - began
    return Made(made[-1][0], made[-10][0], made[-10][1], seconds, len(made), int(corrections))


def _pattern(store: Store, run_id: str) -> Pattern:
    run = store.runs.get(run_id, 0.0, 0.0)
    assert run is not None
    case, project = store.cases.get(run.case_id), store.projects.get(run.project_id)
    assert case is not None
    assert project is not None
    return Pattern(project, case, run, tuple(event for _, event in store.runs.events(run_id)))


def _add_case(store: Store, pattern: Pattern, n: int) -> tuple[str, str]:
    """The n-th case with its run, its item and what people said; its ids."""
    at = 1_700_000_000.0 + 60.0 * n
    text = f"{WRONG} So says note {n:05}."
    case = replace(pattern.case, id=new_id(), response=text, created_at=at)
    run = replace(
        pattern.run, id=new_id(), case_id=case.id, status="queued", started_at=at, finished_at=None
    )
    store.cases.add(case, list(extract_terms(text, case.language)))
    store.runs.add(run, "bench", at)
    events = [
        replace(event, case=case) if event.kind == "run_started" else event
        for event in pattern.events
    ]
    store.runs.append(run.id, "bench", events)
    ended = replace(run, status="finished", finished_at=at + 1.0, p_hallucinated=(n % 101) / 100)
    progress = fold_events(events)
    store.queue.add(build_item(replace(ended, label="hallucinated"), case, progress))
    if n % 100 == 0:
        for agent in AGENTS:
            store.golds.suggest(Suggestion(new_id(), case.id, agent, at, "hallucinated"), case)
    if n % 10 != 9:
        _answer(store, case, run, n, PEOPLE if n % 10 != 8 else PEOPLE[1:3])
    if n % 10 == 3:
        record_gold(
            store, GoldAnswer(new_id(), case.id, "Mira", at, "adjudicated", "hallucinated"), case
        )
    if n % 50 == 7:
        store.queue.set_state(case.id, "flagged")
        store.queue_events.add(QueueEvent(case.id, "Karl", at, "flagged"))
    return case.id, run.id


def _answer(store: Store, case: Case, run: Run, n: int, people: Sequence[str]) -> None:
    """Each says something; where all five do, one says it anew or, now and then, takes it back."""
    said = [_said(case, run, person, n + place) for place, person in enumerate(people)]
    more = _said(case, run, people[-1], n + 1)
    if len(people) == len(PEOPLE):
        said.append(replace(more, withdraws=said[-1].id) if n % 20 == 4 else more)
    for place, correction in enumerate(said):
        store.corrections.add(replace(correction, at=correction.at + place), case.response)
    for person in people:
        store.queue.take(case.id, person, RULES, run.started_at)
        store.queue.end(case.id, person, "submitted", run.started_at)
    store.queue.update_answers(case.id, rate_difference(store.corrections.newest_of_case(case.id)))


def _said(case: Case, run: Run, person: str, n: int) -> Correction:
    label = LABELS[0 if n % 3 else n % 2 + n % 5 // 4]
    start = case.response.index("left")
    span = Span(start, start + 4, "left", 1.0, "wrong_entity", person)
    return Correction(
        new_id(), run.id, case.id, person, run.started_at + 100.0, label,
        (span,) if label == "hallucinated" else (), "The page says so.", seconds=20.0,
        machine_label="hallucinated",
    )  # fmt: skip


def reruns(port: int, made: Made) -> dict[str, tuple[float, list[float]]]:
    """(first view, reruns) of each page in seconds."""
    pages = {
        "Review": ("review", ""),
        "Label": ("label", f"case={made.pending}"),
        "Adjudicate": ("adjudicate", ""),
        "Adjudicate a case": ("adjudicate_case", f"case={made.differing}"),
        "Agreement": ("agreement", ""),
        "Retrain": ("retrain", ""),
        "Calibration": ("calibration", ""),
        "Spans": ("spans", ""),
        "Reliability": ("reliability", ""),
        "History": ("history", ""),
        "Run": ("run", f"run={made.run_id}"),
    }
    found: dict[str, tuple[float, list[float]]] = {}
    for name, (page, query) in pages.items():
        with Session(port, PEOPLE[0]) as session:
            session.rerun()  # the first page of a session
            first = session.rerun(page, query)
            found[name] = (first, [session.rerun(page, query) for _ in range(REPEATS)])
    return found
