"""What an import is asked to do, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from core.baseline.wording import counted
from core.exchange.rows import Problem
from core.records import Project

As = Literal["gold", "suggestions", "cases"]


@dataclass
class Outcome:
    """What came of a file. `known` cases were there before; `problems` are rows left out."""

    unit: str = "line"
    rows: int = 0
    new: int = 0
    known: int = 0
    golds: int = 0
    corrections: int = 0
    suggestions: int = 0
    documents: int = 0
    runs: int = 0
    missing: int = 0
    problems: list[Problem] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The outcome for a person, in one line."""
        parts = [
            f"{counted(self.new, 'new case')}, {self.known} known",
            counted(self.golds, "gold answer"),
            f"{counted(self.corrections, 'answer')} of people",
            counted(self.suggestions, "suggestion"),
            counted(self.documents, "document"),
        ]
        parts += [counted(self.runs, "recorded debate")] if self.runs else []
        bad = len(self.problems)
        left = f"; {counted(bad, 'row')} left out" if bad else ""
        gone = f"; {counted(self.missing, 'document')} not here" if self.missing else ""
        return f"{', '.join(parts)}{left}{gone}"

    def as_dict(self) -> dict[str, object]:
        """The outcome for a program; `missing` counts documents that are not here."""
        numbers = {
            name: getattr(self, name)
            for name in (
                "rows", "new", "known", "golds", "corrections", "suggestions", "documents",
                "runs", "missing",
            )
        }  # fmt: skip
        problems = [{"line": one.place, "reason": one.reason} for one in self.problems]
        return {**numbers, "unit": self.unit, "problems": problems}


@dataclass(frozen=True)
class Order:
    """Into which project, by whom, when, from which file, and what its labels are taken as."""

    project: Project
    by: str
    now: float
    file: str
    labels: As = "gold"
    agent: str = ""

    @property
    def suggested_by(self) -> str:
        """The agent whose suggestions the file's labels are."""
        return self.agent or self.file
