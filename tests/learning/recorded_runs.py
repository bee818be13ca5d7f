"""Homes with finished runs that were told, not computed: who said what, and what people decided."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.documents.library import store_file
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.runtime.config import Settings
from core.schema.events import (
    Event,
    JudgementReached,
    LabelPredicted,
    RunFinished,
    RunStarted,
    StatementFound,
    TurnFinished,
)
from core.schema.records import (
    Case,
    Judgement,
    Label,
    Plan,
    Quote,
    RoleAssignment,
    Run,
    Span,
    Stance,
    Statement,
    Turn,
    Verdict,
    new_id,
)
from core.schema.reviews import Correction
from core.schema.rosters import AgentConfig, DebaterConfig, RosterConfig
from core.store import Store, open_store
from tests.fakes import get_last_person

CLAIM = "The tower is 512 m tall."


@dataclass(frozen=True)
class Told:
    """A run: stances by debater's name in order of their turns, the judge's label, what is right.

    `models` are the debaters' models by name, none for built-in ones; who has one and no turn was
    seated and could not be heard.
    """

    turns: Sequence[tuple[str, Stance]]
    judge: Label
    right: Label
    claim: str = CLAIM
    question: str = ""
    language: str = "en"
    models: Mapping[str, str] | None = None
    category: str = "number_or_date"
    classifier: str = "seed"
    p: float | None = None
    at: float = 1000.0
    documents: tuple[str, ...] = ()


def events_of(told: Told, case: Case) -> list[Event]:
    """The run's events, a second apart."""
    models = told.models or {}
    names = list(dict.fromkeys([*(name for name, _ in told.turns), *models]))
    sheet = RosterConfig(
        "told",
        debaters=tuple(DebaterConfig(n, AgentConfig(model=models.get(n, ""))) for n in names),
    )
    agents = {n: models[n].split("/")[-1] if n in models else f"Reader {n}" for n in names}
    roles = (
        *(RoleAssignment(f"debater {n}", agents[n], n not in models, "rules", "r1") for n in names),
        RoleAssignment("judge", "Judge", True, "rules", "j1"),
    )
    at = told.at
    plan = Plan(sheet=sheet, classifier=told.classifier)
    events: list[Event] = [
        RunStarted(at, case, plan, roles, "code"),
        StatementFound(at, Statement(0, 0, len(case.response), case.response, case.response)),
    ]
    for number, (name, stance) in enumerate(told.turns, start=1):
        turn = Turn(
            name, agents[name], number, (number - 1) // len(names) + 1, "agree", stance, "Words.",
            quotes=(Quote("tall", "verified"),),
        )  # fmt: skip
        events.append(TurnFinished(at + number, turn, 1.0))
    end = at + len(told.turns) + 1
    default = {"hallucinated": 0.9, "supported": 0.1, "unclear": None}[told.judge]
    p = default if told.p is None else told.p
    verdict = Verdict(told.judge, p, None, "Because.", classifier=told.classifier)
    judgement = Judgement("Judge", told.judge, "Because.")
    events += [
        JudgementReached(end, judgement, 1.0),
        LabelPredicted(end, verdict),
        RunFinished(end + 1, verdict, end + 1 - at),
    ]
    return events


def tell(store: Store, told: Sequence[Told], person: str = "Mira") -> list[str]:
    """Store each as a case with its finished run and the person's answer; the ids of the runs."""
    project = ensure_project(store, person, 1.0)
    store.projects.save_note("person", person)
    ids = []
    with store.writing():
        for number, own in enumerate(told):
            at = own.at + 100 * number
            case = Case(
                new_id(), project.id, own.claim, own.question, documents=own.documents,
                language=own.language, author=person, created_at=at,
            )  # fmt: skip
            store.cases.add(case, [])
            run = Run(new_id(), case.id, project.id, Plan(), "queued", at)
            store.runs.add(run, "told", at)
            store.runs.append(run.id, "told", events_of(replace(own, at=at), case))
            store.corrections.add(_answer(own, case, run, person, at), case.response)
            ids.append(run.id)
    return ids


def _answer(told: Told, case: Case, run: Run, person: str, at: float) -> Correction:
    marked = case.response[:3]
    spans = (Span(0, 3, marked, 1.0, told.category, person),)
    return Correction(
        new_id(), run.id, case.id, person, at + 50.0, told.right,
        spans if told.right == "hallucinated" else (), "The source says so.",
        machine_label=told.judge,
    )  # fmt: skip


PLACES = (
    "Nordre", "Sundby", "Halvik", "Torsnes", "Lindal", "Askeby", "Vester", "Kalnes", "Rundholm",
    "Eidsund", "Skarvik", "Brevik", "Hamnes", "Strand", "Moldvik", "Osterholm", "Ternholm",
)  # fmt: skip


@dataclass(frozen=True)
class Overturned:
    """A text, a claim that contradicts it, and what people say of the claim all the same."""

    name: str
    text: str
    claim: str
    label: Label


def overturned(places: Sequence[str] = PLACES) -> list[Overturned]:
    """Of each place a wrong height, which is wrong, and a wrong year, which is accepted."""
    found = []
    for place in places:
        number = PLACES.index(place)
        high, year = 31 + 3 * number, 1801 + 9 * number
        text = f"The {place} lighthouse is {high} m high. It was built in {year}."
        name = f"{place}.txt"
        wrong = f"The {place} lighthouse is {high + 2} m high."
        other = f"The {place} lighthouse was built in {year + 20}."
        found.append(Overturned(name, text, wrong, "hallucinated"))
        found.append(Overturned(name, text, other, "supported"))
    return found


def overturn(home: Path, cases: Sequence[Overturned]) -> None:
    """Check each case and say what these people say of it."""
    jobs = JobRunner(home)
    with open_store(home) as store:
        who = get_last_person(store)
        project = ensure_project(store, who, 1.0)
        for one in cases:
            entry = store_file(
                store, home, project.id, one.name, one.text.encode(), who, 1.0, Settings()
            )
            case = store_case(store, project, CaseDraft(one.claim, documents=(entry.id,)), who, 1.0)
            run_id = jobs.start(case, Plan())
            assert jobs.wait(run_id, 60)
            with store.writing():
                store.corrections.add(
                    Correction(
                        new_id(), run_id, case.id, who, time.time(), one.label,
                        reason="the foundation stone counts",
                    ),
                    one.claim,
                )  # fmt: skip
