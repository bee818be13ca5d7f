"""Runs whose events a test writes down, and what people marked in their cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.schema.events import (
    Event,
    JudgementReached,
    LabelPredicted,
    RunFinished,
    RunStarted,
    SpanAdjudicated,
    SpanProposed,
    StatementFound,
    WordsScored,
)
from core.schema.records import (
    Case,
    Judgement,
    Label,
    Plan,
    Project,
    RoleAssignment,
    Run,
    Span,
    Statement,
    Verdict,
    WordScore,
    new_id,
)
from core.schema.reviews import Correction
from core.store import Store

WORDS = "alpha bravo carol delta erika"  # five letters each
PROJECT = Project("p", "Project", 1.0)
BUILT_IN = RoleAssignment("span adjudicator", "Span adjudicator", True, "", "")
MODEL = RoleAssignment("span adjudicator", "tiny-talker", False, "", "")


def place(number: int) -> tuple[int, int]:
    """Where the number-th word of five letters stands."""
    return 6 * number, 6 * number + 5


def span(number: int, response: str = WORDS, p: float = 0.9, **changes: Any) -> Span:
    start, end = place(number)
    made: dict[str, Any] = {"category": "wrong_entity", "source": "Span reader"}
    return Span(start, end, response[start:end], p, **(made | changes))


def add_case(store: Store, name: str, response: str = WORDS, **changes: Any) -> Case:
    """A case of the project, which is made with the first."""
    case = Case(name, PROJECT.id, response, **({"question": name, "language": "en"} | changes))
    with store.writing():
        if store.projects.get(PROJECT.id) is None:
            store.projects.save(PROJECT)
        store.cases.add(case, ["word"])
    return case


def add_run(
    store: Store,
    case: Case,
    scores: Sequence[float] = (),
    rulings: Sequence[tuple[Span, bool]] = (),
    *,
    label: Label = "hallucinated",
    role: RoleAssignment = BUILT_IN,
) -> str:
    """A finished run that scored the words and ruled on the spans."""
    run = Run(new_id(), case.id, case.project_id, Plan(), "queued", 1.0)
    response = case.response
    verdict = Verdict(label, 0.9, 0.9, "")
    told: list[Event] = [
        RunStarted(1.0, case, Plan(), (role,)),
        StatementFound(1.0, Statement(0, 0, len(response), response, response)),
        JudgementReached(1.0, Judgement("judge", label, "So it is."), 0.1),
        LabelPredicted(1.0, verdict),
    ]
    if scores:
        words = tuple(WordScore(*place(n), p) for n, p in enumerate(scores))
        told.append(WordsScored(1.0, "reader", words, 0.38))
    told += [SpanProposed(1.0, ruled) for ruled, _ in rulings]
    told += [SpanAdjudicated(1.0, ruled, kept, "") for ruled, kept in rulings]
    told.append(RunFinished(2.0, verdict, 1.0))
    with store.writing():
        store.runs.add(run, "test", 1.0)
        store.runs.append(run.id, None, told)
    return run.id


def say(store: Store, case: Case, *spans: Span, author: str = "Mira", **changes: Any) -> Correction:
    """What a person marked; without spans that none is wrong, unless the changes say otherwise."""
    made: dict[str, Any] = {"label": "hallucinated", "is_unmarked": not spans}
    correction = Correction(
        new_id(), None, case.id, author, 3.0, spans=tuple(spans), **(made | changes)
    )
    with store.writing():
        store.corrections.add(correction, case.response)
    return correction


def marked_case(
    store: Store, name: str, scores: Sequence[float], wrong: Sequence[int], **changes: Any
) -> Case:
    """A case with a run that scored its words, and a person who marked some of them."""
    case = add_case(store, name, **changes)
    add_run(store, case, scores, [(span(0, p=0.99), True)] if not scores else ())
    say(store, case, *(span(n, case.response) for n in wrong))
    return case
