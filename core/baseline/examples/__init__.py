"""Five prepared cases of our own writing, each with its files; one click opens one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Example:
    """A case to try: what to check and the files beside this module that it rests on."""

    name: str
    title: str
    response: str
    question: str
    file_names: tuple[str, ...]

    def files(self) -> list[tuple[str, bytes]]:
        """(name, bytes) of each file."""
        return [(name, (FOLDER / name).read_bytes()) for name in self.file_names]


EXAMPLES: tuple[Example, ...] = (
    Example(
        "bridge",
        "A claim and a PDF",
        "The Halden Bridge is 512 m long and was opened to traffic in 1932.",
        "",
        ("halden-bridge.pdf",),
    ),
    Example(
        "museum",
        "A long response",
        "The Lindqvist Museum in Orsa was founded in 1894 by the clockmaker Henrik Lindqvist. "
        "Its collection holds 3,200 clocks and watches, the largest of its kind in the country. "
        "The oldest piece is a tower clock from 1571. "
        "The building has always been a museum. "
        "Admission is free on Mondays. "
        "The museum is closed in January. "
        "In 2019 it welcomed 41,000 visitors, which was fewer than in 2018. "
        "The workshop repairs clocks for private customers.",
        "What can you tell me about the Lindqvist Museum?",
        ("lindqvist-museum.md",),
    ),
    Example(
        "chart",
        "A chart",
        "The South region had 412 thousand visitors in 2023.",
        "",
        ("visitors-by-region.png",),
    ),
    Example(
        "tea",
        "中文",
        "云溪茶园建于1982年,最初只有三十亩。",
        "",
        ("云溪茶园.txt",),
    ),
    Example(
        "plants",
        "A sum",
        "The three plants together employ 1,240 people.",
        "",
        ("annual-report.csv",),
    ),
)
