"""What people say about runs, as it is stored: frozen records."""

from __future__ import annotations

from dataclasses import dataclass

from core.records import Label, Span


@dataclass(frozen=True)
class Correction:
    """A person's appended judgement on a run. Undo is another correction.

    `rejected` are the machine's spans that the person said are not wrong.
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
