"""What stands in the span editor, and how what a browser says of it is read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from core.errors import InputError
from core.store.sqlite import from_plain

Status = Literal["marked", "suggested", "rejected"]
Did = Literal[
    "", "mark", "category", "resize", "remove", "accept", "reject", "accept_all", "none",
    "not_none", "undo", "redo",
]  # fmt: skip


@dataclass(frozen=True)
class Mark:
    """Words that a person marked or an agent suggests: `[start, end)` in the text, code points.

    `by` names the agents whose suggestion it is or was ("" for a person's own mark) and `score` is
    how sure they were. `status`: an accepted suggestion is `marked` and keeps its `by`.
    """

    id: str
    start: int
    end: int
    category: str
    by: str = ""
    score: float | None = None
    status: Status = "marked"


@dataclass(frozen=True)
class Marked:
    """Everything that stands in the editor; `revision` counts up with each change.

    `none` is the explicit answer that nothing is to be marked; `did` is what changed last.
    """

    revision: int = 0
    marks: tuple[Mark, ...] = ()
    none: bool = False
    did: Did = ""

    @property
    def chosen(self) -> tuple[Mark, ...]:
        """The marks that count: a person's own and the accepted, in the order of the text."""
        kept = [mark for mark in self.marks if mark.status == "marked"]
        return tuple(sorted(kept, key=lambda mark: (mark.start, mark.end)))


def marked_from(said: object, text: str, categories: Collection[str]) -> Marked:
    """What the browser said, once it fits the text.

    Raises:
        InputError: it has another shape, a mark lies outside of the text or has no category of
            these, or two have one id.
    """
    found = from_plain(Marked, said)
    for mark in found.marks:
        if not 0 <= mark.start < mark.end <= len(text):
            raise InputError(
                f"Expected marks within the {len(text):,} characters of the text, found one from "
                f"{mark.start} to {mark.end}; mark these words again."
            )
        if mark.category not in categories:
            raise InputError(
                f"Expected one of the categories {', '.join(categories)}, found “{mark.category}”."
            )
    if len({mark.id for mark in found.marks}) < len(found.marks):
        raise InputError("Expected every mark once, found one twice; mark these words again.")
    if found.none and found.chosen:
        raise InputError("Nothing and something cannot both be marked; take one of them back.")
    return found
