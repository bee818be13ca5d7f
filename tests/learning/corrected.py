"""A home in which somebody has corrected verdicts on a small text of our own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from core.config import Settings
from core.documents.library import store_file
from core.pipeline.checking import Draft, store_case
from core.pipeline.jobs import Jobs
from core.records import Label, Plan, new_id
from core.review.people import first_project, person_here
from core.reviews import Correction
from core.store import open_store

TEXT = (
    "The Nordre lighthouse is 38 m high. It was built in 1877. Its light is seen for 19 miles. "
    "The keeper Olga Strand lived there until 1956. The island has two wells. Seals breed on the "
    "northern shore. The path is closed in winter."
)
CLAIMS: list[tuple[str, Label]] = [
    ("The Nordre lighthouse is 38 m high.", "supported"),
    ("The Nordre lighthouse was built in 1877.", "supported"),
    ("Its light is seen for 19 miles.", "supported"),
    ("Olga Strand lived there until 1956.", "supported"),
    ("The island has two wells.", "supported"),
    ("Seals breed on the northern shore.", "supported"),
    ("The path is closed in winter.", "supported"),
    ("The keeper Olga Strand lived there until 1956.", "supported"),
    ("The lighthouse was built in 1877.", "supported"),
    ("The Nordre lighthouse is 48 m high.", "hallucinated"),
    ("The Nordre lighthouse was built in 1897.", "hallucinated"),
    ("Its light is seen for 29 miles.", "hallucinated"),
    ("Olga Strand lived there until 1966.", "hallucinated"),
    ("The island has three wells.", "hallucinated"),
    ("Seals breed on the southern shore.", "hallucinated"),
    ("The path is open in winter.", "hallucinated"),
    ("The keeper Maria Lund lived there until 1956.", "hallucinated"),
    ("The lighthouse was built in 1777.", "hallucinated"),
]


def correct_claims(home: Path, claims: Sequence[tuple[str, Label]]) -> None:
    """Check each claim against the text and say what is right."""
    jobs = Jobs(home)
    with open_store(home) as store:
        who = person_here(store)
        project = first_project(store, who, 1.0)
        entry = store_file(store, home, project.id, "n.txt", TEXT.encode(), who, 1.0, Settings())
        for claim, label in claims:
            case = store_case(store, project, Draft(claim, documents=(entry.id,)), who, 1.0)
            run_id = jobs.start(case, Plan())
            assert jobs.wait(run_id, 60)
            correction = Correction(
                new_id(), run_id, case.id, who, time.time(), label, reason="the text says so"
            )
            with store.writing():
                store.corrections.add(correction, claim)
