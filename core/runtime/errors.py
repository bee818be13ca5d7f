"""Every error shown to people, as one tree; messages say what was expected, found, and what to do.

ReviewError
 ├─ InputError        the person can fix it: empty claim, unreadable file
 ├─ ConfigError       the operator can fix it: missing encoder, wrong key, unknown model
 │   └─ KeyMissing    a required key is missing; carries the names of keys
 ├─ ModelError        an agent or its service failed, after retries
 │   ├─ ModelTimeout  it was silent for too long
 │   └─ BudgetReached a cap leaves no room for the next call; nothing was sent
 ├─ ReplyError        the reply is unusable; carries the reply
 │   └─ ModelRefused  the model or its provider's filter declined to answer
 ├─ ConflictError     somebody else changed the same thing first
 ├─ NotAllowed        the person's role does not permit it
 ├─ NotEnoughLabels   training needs more corrections; carries the counts per label
 └─ Stopped           a person pressed Stop

Text from a file is quoted in a message only if shortened and free of control characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

UNEXPECTED_ERROR_MESSAGE = "An unexpected error ended the run; the server's log has the details."
MAX_KEPT_REPLY_CHARS = 20_000  # characters of an unusable reply that are kept for inspection
NOT_STORED_MESSAGE = (
    "The run could not be stored to its end; free the disk or the database, then resume it."
)


def make_printable(value: object, most: int = 0) -> str:
    """Return the value as printable text, cut to `most` characters (0: not cut).

    Control characters, line ends, zero-width characters, changes of writing direction and
    surrogates become escapes: a terminal would obey them, and a page would hide them.
    """
    words = str(value)
    words = words[:most] + "…" if most and len(words) > most else words
    return "".join(
        char if char.isprintable() or unicodedata.category(char) == "Zs" else ascii(char)[1:-1]
        for char in words
    )


class ReviewError(Exception):
    """Base of all errors shown to people; its text is one complete sentence."""


class InputError(ReviewError):
    """Raised for a person's input; shown next to that input."""


class ConfigError(ReviewError):
    """Raised for a wrong setup; shown to whoever runs the app."""


class KeyMissing(ConfigError):
    """Raised before anything is sent if a required key is missing; holds names, never keys."""

    def __init__(self, message: str, *, names: Sequence[str]) -> None:
        super().__init__(message)
        self.names = tuple(names)


class ModelError(ReviewError):
    """Raised when an agent could not do its part.

    `is_unbilled` is True if the service certainly charges nothing: it was not reached, or answered
    with an error instead of a reply.
    """

    is_unbilled = False


class ModelTimeout(ModelError):
    """Raised when a model's service was silent for longer than the agent's settings allow."""


class BudgetReached(ModelError):
    """Raised before a call that could exceed a cap; nothing was sent and nothing is owed."""


class ReplyError(ReviewError):
    """Raised when an agent's reply cannot be parsed; keeps its beginning and guesses nothing."""

    def __init__(self, message: str, *, reply: str) -> None:
        super().__init__(message)
        self.reply = reply[:MAX_KEPT_REPLY_CHARS]


class ModelRefused(ReplyError):
    """Raised when the model declined, or its provider's content filter stepped in."""


class ConflictError(ReviewError):
    """Raised instead of overwriting somebody else's concurrent change."""


class NotAllowed(ReviewError):
    """Raised when writing requires a role that the person does not have."""


class NotEnoughLabels(ReviewError):
    """Raised when a label has too few corrections to learn from."""

    def __init__(self, message: str, *, counts: Mapping[str, int]) -> None:
        super().__init__(message)
        self.counts = dict(counts)


class Stopped(ReviewError):
    """Raised inside a run's own thread when a stop was requested."""
