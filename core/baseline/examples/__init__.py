"""Six prepared cases with their files, written for this project; the start page opens them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

EXAMPLES_DIR = Path(__file__).parent


@dataclass(frozen=True)
class PreparedCase:
    """A case to try: the response to check, and the names of its files beside this module.

    `note` says what to look for where the built-in engine gets it wrong.
    """

    name: str
    title: str
    response: str
    question: str
    file_names: tuple[str, ...]
    note: str = ""

    def files(self) -> list[tuple[str, bytes]]:
        """Return (name, bytes) of each file."""
        return [(name, (EXAMPLES_DIR / name).read_bytes()) for name in self.file_names]


PREPARED_CASES = msgspec.json.decode(
    (EXAMPLES_DIR / "examples.json").read_bytes(), type=tuple[PreparedCase, ...]
)
