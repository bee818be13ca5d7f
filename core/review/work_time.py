"""How long people take per item, from taking it out of the queue to submitting it."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.schema.reviews import Assignment

PAUSE_SECONDS = 900.0  # longer from taking to submitting is a pause somewhere, not work


@dataclass(frozen=True)
class WorkTime:
    """A person's items, and the seconds of those that were worked on without a pause."""

    person: str
    submitted: int
    seconds: tuple[float, ...]

    @property
    def median_seconds(self) -> float | None:
        """Return the median seconds per item, or None if no item has a time."""
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def items_per_hour(self) -> float | None:
        """Return how many items an hour of work yields, or None if no item has a time."""
        return 3600.0 * len(self.seconds) / sum(self.seconds) if self.seconds else None


def measure_seconds(assignment: Assignment) -> float | None:
    """Return the seconds from taking the item to submitting it.

    None if a pause is in between, or if it was answered without having been taken.
    """
    if assignment.state != "submitted" or assignment.ended_at is None:
        return None
    seconds = assignment.ended_at - assignment.claimed_at
    return seconds if 0.0 < seconds <= PAUSE_SECONDS else None


def _count_apart(own: Sequence[Assignment]) -> Iterator[float]:
    """Yield the seconds of a person's items, each second only for the item that ended first.

    An answer that was taken back and given again spans the items in between.
    """
    counted: list[tuple[float, float]] = []  # stretches of time, apart and in order
    timed = [(a.claimed_at, s) for a in own if (s := measure_seconds(a))]
    for start, seconds in sorted(timed, key=sum):
        first, end = start, start + seconds
        while counted and counted[-1][1] > start:
            earlier, last = counted.pop()
            seconds -= last - max(earlier, start)
            first = min(first, earlier)
        counted.append((first, end))
        if seconds > 0.0:
            yield seconds


def measure_work_times(submitted: Sequence[Assignment]) -> list[WorkTime]:
    """Return each person's work time, those with most items first."""
    by_person: dict[str, list[Assignment]] = {}
    for assignment in submitted:
        by_person.setdefault(assignment.person, []).append(assignment)
    times = [
        WorkTime(person, len(own), tuple(_count_apart(own))) for person, own in by_person.items()
    ]
    return sorted(times, key=lambda time: (-time.submitted, time.person))
