"""Which items of the review queue are wanted, and how a project shares its work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Rules:
    """How a project shares its work: people for each item, time in hand, random share in [0, 1]."""

    people: int = 1
    seconds: float = 1800.0
    random_share: float = 0.2


@dataclass(frozen=True)
class ItemFilter:
    """What the queue shows or gives; empty fields do not filter. Ages are in seconds.

    `given_from` is how many people have answered at least; `differ`: whether they say different
    things.
    """

    label: str = ""
    language: str = ""
    source_id: str = ""
    p_from: float | None = None
    p_to: float | None = None
    disagreement_from: float = 0.0
    older_than: float | None = None
    given_from: int = 0
    differ: bool | None = None

    def clauses(self, now: float) -> tuple[str, dict[str, Any]]:
        """SQL that every item fits, and its values."""
        found: list[tuple[str, str, Any]] = []
        if self.label:
            found.append(("items.label = :label", "label", self.label))
        if self.language:
            found.append(("items.language = :language", "language", self.language))
        if self.source_id:
            has = "items.case_id IN (SELECT c.id FROM cases c WHERE instr(c.payload, :source) > 0)"
            found.append((has, "source", f'"{self.source_id}"'))
        if self.p_from is not None:
            found.append(("items.p >= :p_from", "p_from", self.p_from))
        if self.p_to is not None:
            found.append(("items.p <= :p_to", "p_to", self.p_to))
        if self.disagreement_from > 0.0:
            found.append(("items.disagreement >= :apart", "apart", self.disagreement_from))
        if self.older_than is not None:
            found.append(("items.added_at <= :added", "added", now - self.older_than))
        if self.given_from:
            found.append(("items.given >= :given_from", "given_from", self.given_from))
        if self.differ is not None:
            found.append(("(items.differ > 0) = :differ", "differ", int(self.differ)))
        return " AND ".join(["1", *(f[0] for f in found)]), {name: v for _, name, v in found}


EVERYTHING = ItemFilter()
