"""What a reader is given, and how messages name the file."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from core.config import Settings
from core.records import SourceKind

LONGEST_NAME = 120

Report = Callable[[int, int, str], None]


def silent(_done: int, _total: int, _note: str) -> None:
    """Report nothing."""


def shown(name: str) -> str:
    """The file name in quotes, on one line and of bearable length."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "the file"
    if len(plain) > LONGEST_NAME:
        plain = f"{plain[: LONGEST_NAME - 20]}…{plain[-19:]}"
    return f"“{plain}”"


@dataclass(frozen=True)
class ReadRequest:
    """One file to read. `ends_at` (monotonic seconds) is when slow extras such as OCR give up."""

    source_id: str
    name: str
    data: bytes
    kind: SourceKind
    settings: Settings
    report: Report = silent
    ends_at: float = float("inf")

    @property
    def file(self) -> str:
        """The file's name as messages show it."""
        return shown(self.name)

    @property
    def has_time(self) -> bool:
        """False once what is left should be wound up."""
        return time.monotonic() < self.ends_at
