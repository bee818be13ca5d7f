"""A home in which people overturn one kind of verdict again and again: years pass, heights do not.

The built-in judge calls both contradicted and is right by the letter; these people count a
lighthouse's year from its foundation stone. Only their corrections can teach that.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.documents.library import store_file
from core.pipeline.jobs import Jobs
from core.pipeline.streaming_input import Draft, store_case
from core.review.people import first_project, person_here
from core.runtime.config import Settings
from core.schema.records import Label, Plan, new_id
from core.schema.reviews import Correction
from core.store import open_store

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
    jobs = Jobs(home)
    with open_store(home) as store:
        who = person_here(store)
        project = first_project(store, who, 1.0)
        for one in cases:
            entry = store_file(
                store, home, project.id, one.name, one.text.encode(), who, 1.0, Settings()
            )
            case = store_case(store, project, Draft(one.claim, documents=(entry.id,)), who, 1.0)
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
