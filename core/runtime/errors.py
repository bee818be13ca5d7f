"""Every error a person may meet, as one tree; each message says what was expected, found, to do.

ReviewError
 ├─ InputError        the person can fix it: empty claim, unreadable file
 ├─ ConfigError       the operator can fix it: missing encoder, wrong key, unknown model
 │   └─ KeyMissing    a key is needed that is not at hand; carries its names
 ├─ ModelError        an agent or its service failed, after retries
 │   ├─ ModelTimeout  it was silent for too long
 │   └─ BudgetReached a cap leaves no room for the next call; nothing was sent
 ├─ ReplyError        an agent answered, unusably; carries the reply
 │   └─ ModelRefused  the model or its provider's filter declined to answer
 ├─ ConflictError     somebody else changed the same thing first
 ├─ NotAllowed        the person's role does not permit it
 ├─ NotEnoughLabels   training needs more corrections; carries the counts per label
 └─ Stopped           a person pressed Stop

A file's own words in a message: short, and without characters that steer the reader's screen.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence


def shown(value: object, most: int = 0) -> str:
    """The value's text, of which `most` characters are enough; 0 shows all.

    Controls, line ends, characters of no width, turns of the writing direction, and what is no
    character are written as their escapes (a terminal would obey them, a page hide them).
    """
    words = str(value)
    words = words[:most] + "…" if most and len(words) > most else words
    return "".join(
        char if char.isprintable() or unicodedata.category(char) == "Zs" else ascii(char)[1:-1]
        for char in words
    )


UNEXPECTED = "An unexpected error ended the run; the server's log has the details."
LONGEST_REPLY = 20_000  # characters of an unusable reply that are kept to be looked at
NOT_STORED = (
    "The run could not be stored to its end; free the disk or the database, then resume it."
)


class ReviewError(Exception):
    """Base of all errors shown to people; its text is one complete sentence."""


class InputError(ReviewError):
    """Raised for what the person gave: shown where they gave it."""


class ConfigError(ReviewError):
    """Raised for how the app is set up: shown to whoever runs it."""


class KeyMissing(ConfigError):
    """Raised before anything is sent when a key is needed that nobody gave; names, never keys."""

    def __init__(self, message: str, *, names: Sequence[str]) -> None:
        super().__init__(message)
        self.names = tuple(names)


class ModelError(ReviewError):
    """Raised when an agent could not do its part.

    `is_unbilled` is set where its service surely charges nothing: it was not reached, or answered
    with an error instead of a reply.
    """

    is_unbilled = False


class ModelTimeout(ModelError):
    """Raised when a model's service was silent for longer than its seat allows."""


class BudgetReached(ModelError):
    """Raised before a call that could pass a cap; nothing was sent and nothing is owed."""


class ReplyError(ReviewError):
    """Raised when an agent's reply cannot be read; its beginning is kept, never guessed from."""

    def __init__(self, message: str, *, reply: str) -> None:
        super().__init__(message)
        self.reply = reply[:LONGEST_REPLY]


class ModelRefused(ReplyError):
    """Raised when the model declined, or its provider's content filter stepped in."""


class ConflictError(ReviewError):
    """Raised instead of overwriting what somebody else did meanwhile."""


class NotAllowed(ReviewError):
    """Raised where a role is required to write something."""


class NotEnoughLabels(ReviewError):
    """Raised when a class has too few corrections to learn from."""

    def __init__(self, message: str, *, counts: Mapping[str, int]) -> None:
        super().__init__(message)
        self.counts = dict(counts)


class Stopped(ReviewError):
    """Raised inside a run's own thread when it was asked to stop."""
