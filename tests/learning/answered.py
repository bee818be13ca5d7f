"""Finished checks whose right answer somebody gave, without running the engine."""

from __future__ import annotations

from collections.abc import Iterable

from core.schema.events import RunFinished
from core.schema.records import Label, Plan, Project, Run, Verdict
from core.schema.reviews import Correction, QueueItem
from core.store import Store
from core.store.answered_verdicts import AnsweredVerdict
from core.store.queue_order import RANDOM_REASON
from core.store.review_queue import QueueRules
from tests.fakes import make_case

OURS = Project("project", "Ours", 1.0)


def add_run(
    store: Store, name: str, p: float | None, *, claim: str = "", version: str = "seed",
    at: float = 10.0, case: str = "", roster: str = "builtin", project: str = OURS.id,
) -> str:  # fmt: skip
    """A finished run over a case (its own, unless one is named) with that p; the case's id."""
    case_id = case or f"c-{name}"
    if store.cases.get(case_id) is None:
        made = make_case(claim or f"Claim {name}.", id=case_id, project_id=project)
        store.cases.add(made, [])
    run = Run(f"r-{name}", case_id, project, Plan(classifier=version, roster=roster), "queued", at)
    label: Label = "unclear" if p is None else "hallucinated" if p >= 0.5 else "supported"
    confidence = None if p is None else round(max(p, 1.0 - p), 4)
    with store.writing():
        store.runs.add(run, "me", at)
        verdict = Verdict(label, p, confidence, "So.", classifier=version)
        store.runs.append(run.id, "me", [RunFinished(at + 1.0, verdict, 1.0)])
        item = QueueItem(case_id, project, run.id, at, label, p, 0.0, "en", 0.5)
        store.queue.add(item)
    return case_id


def say(store: Store, name: str, label: Label, *, at: float = 20.0, who: str = "Mira") -> None:
    """Somebody says what is right of that run."""
    with store.writing():
        store.corrections.add(
            Correction(f"k-{name}-{who}-{at}", f"r-{name}", f"c-{name}", who, at, label),
            store.cases.several([f"c-{name}"])[0].response,
        )


def draw(store: Store, name: str, who: str = "Mira") -> None:
    """Somebody was given its case at random, and has answered it."""
    with store.writing():
        store.queue.take(f"c-{name}", who, QueueRules(people=9), 15.0, RANDOM_REASON)
        store.queue.end(f"c-{name}", who, "submitted", 16.0)


def verdicts(
    said: Iterable[tuple[float, bool]], *, is_random: bool = False
) -> list[AnsweredVerdict]:
    """(p, whether it was right) as answered verdicts of one version."""
    found = []
    for n, (p, is_right) in enumerate(said):
        label: Label = "hallucinated" if p >= 0.5 else "supported"
        other: Label = "supported" if p >= 0.5 else "hallucinated"
        answer = label if is_right else other
        one = AnsweredVerdict(
            f"r{n}", f"c{n}", f"t{n}", "seed", "builtin", p, 1.0, answer, is_random
        )
        found.append(one)
    return found
