"""Five prepared cases of our own writing, each with its files; one click opens one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class PreparedCase:
    """A case to try: what to check and the files beside this module that it rests on."""

    name: str
    title: str
    response: str
    question: str
    file_names: tuple[str, ...]

    def files(self) -> list[tuple[str, bytes]]:
        """(name, bytes) of each file."""
        return [(name, (FOLDER / name).read_bytes()) for name in self.file_names]


EXAMPLES = msgspec.json.decode(
    (FOLDER / "examples.json").read_bytes(), type=tuple[PreparedCase, ...]
)
