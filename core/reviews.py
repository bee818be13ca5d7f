"""What people say about runs, as it is stored: frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.records import Label, Span

# Of a person's item: in hand, given, passed over, or held up to a lead.
AssignmentState = Literal["claimed", "submitted", "skipped", "flagged"]
ItemState = Literal["open", "flagged", "adjudicated"]


@dataclass(frozen=True)
class Correction:
    """A person's appended judgement on a run. Undo is another correction.

    `rejected` are the machine's spans that the person said are not wrong. `is_blind`: they answered
    before they saw the machine's verdict, which is noted all the same. `is_unmarked`: they said in
    so many words that no single word is wrong, which an empty `spans` alone does not.
    """

    id: str
    run_id: str
    case_id: str
    author: str
    at: float
    label: Label
    spans: tuple[Span, ...] = ()
    reason: str = ""
    corrected_answer: str = ""
    seconds: float = 0.0
    machine_label: Label | None = None
    rejected: tuple[Span, ...] = ()
    is_blind: bool = False
    is_unmarked: bool = False


@dataclass(frozen=True)
class Item:
    """A case that people review, with what its newest finished run says of it.

    `disagreement` in [0, 1] is how far its agents were apart, `teaches` in [0, 1] how much an
    answer would teach, `given` how many people have submitted one.
    """

    case_id: str
    project_id: str
    run_id: str | None
    added_at: float
    label: Label | Literal[""]
    p: float | None
    disagreement: float
    language: str
    teaches: float
    given: int = 0
    state: ItemState = "open"


@dataclass(frozen=True)
class Assignment:
    """An item in a person's hands until `until`, or what they made of it; `why` it came to them."""

    case_id: str
    person: str
    state: AssignmentState
    why: str
    claimed_at: float
    until: float
    ended_at: float | None = None
