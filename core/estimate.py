"""How long a check will take: as long as the newest ones here, and the reading of new files."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from core.records import LibraryEntry
from core.store import Store

# Before anything was measured here: what `make bench` gave on two cores, rounded up.
FIRST_RUN_SECONDS = 1.0
PER_MEGABYTE_SECONDS = 6.0
PER_IMAGE_SECONDS = 4.0


def expected_seconds(
    store: Store, entries: Sequence[LibraryEntry], roster: str = "builtin"
) -> float:
    """Seconds for a check over these sources; those that are read already cost nothing more."""
    recent = store.runs.seconds_of_recent(roster)
    base = median(recent) if recent else FIRST_RUN_SECONDS
    waiting = [entry for entry in entries if entry.status in ("waiting", "reading")]
    reading = sum(
        PER_IMAGE_SECONDS if entry.kind == "image" else PER_MEGABYTE_SECONDS * entry.size / 1e6
        for entry in waiting
    )
    return base + reading
