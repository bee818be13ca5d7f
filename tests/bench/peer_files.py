"""The files between the table of peers and a peer's own environment: rows in, scores out, as JSONL.

Only the standard library is imported, so that any environment can read and write them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

SAMPLES_METHOD = "samples"


@dataclass(frozen=True)
class PeerRow:
    """A labelled row as peers see it: what a model would be asked, and the answer to score."""

    id: str
    prompt: str
    response: str


@dataclass(frozen=True)
class PeerScore:
    """One method's confidence that a row's response is right, and what it took.

    Without a confidence, `cause` says why the method failed. Under `SAMPLES_METHOD` stands what a
    model answered to the row's prompt; its cost is contained in that of each method that uses it.
    """

    row: str
    method: str
    confidence: float | None = None
    seconds: float = 0.0
    calls: float = 0.0
    tokens: float = 0.0
    cause: str = ""
    samples: tuple[str, ...] = ()


Record = TypeVar("Record", PeerRow, PeerScore)


def write_lines(path: Path, records: Iterable[PeerRow | PeerScore]) -> None:
    """Append the records to the file, one a line."""
    with path.open("a", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(asdict(record)) + "\n")


def read_lines(path: Path, kind: type[Record]) -> list[Record]:
    """Return the file's records, in order."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in json.loads(line).items()
        }
        found.append(kind(**fields))
    return found
