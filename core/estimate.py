"""How long a check will take: by the text's length and the files to read, at this computer's pace.

After reading, the time grows with the response: every statement is searched for, argued about and
judged. 1 to 400 sentences over sources of 20 to 2,000 sentences took a fifth of a second and about
1.1 s for each 1,000 characters (two cores of a noisy machine, 2026-11); the newest runs here say
how much faster or slower this computer is.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from core.records import LibraryEntry
from core.store import Store

BASE_SECONDS = 0.2
PER_CHARACTER_SECONDS = 1.1 / 1000
PER_MEGABYTE_SECONDS = 6.0
PER_IMAGE_SECONDS = 4.0


def expected_seconds(
    store: Store, entries: Sequence[LibraryEntry], characters: int, roster: str = "builtin"
) -> float:
    """Seconds for a check of a response of that length over these sources.

    Sources that are read already cost nothing more.
    """
    paces = [seconds / _usual(length) for seconds, length in store.runs.seconds_of_recent(roster)]
    waiting = [entry for entry in entries if entry.status in ("waiting", "reading")]
    reading = sum(
        PER_IMAGE_SECONDS if entry.kind == "image" else PER_MEGABYTE_SECONDS * entry.size / 1e6
        for entry in waiting
    )
    return _usual(characters) * (median(paces) if paces else 1.0) + reading


def _usual(characters: int) -> float:
    return BASE_SECONDS + PER_CHARACTER_SECONDS * characters
