"""A text contradicts itself where two of its statements cannot both hold, not where it lists."""

from __future__ import annotations

import pytest

from core.builtin.self_contradiction import contradiction
from core.records import Case, Statement


def told(earlier: str, later: str, language: str = "en") -> str:
    text = f"{earlier} {later}"
    case = Case("c", "p", text, language=language)
    first = Statement(0, 0, len(earlier), earlier, earlier)
    second = Statement(1, len(earlier) + 1, len(text), later, later)
    return contradiction(case, second, first)


@pytest.mark.parametrize(
    ("earlier", "later", "language"),
    [
        ("The Orrin bridge is 412 m long.", "The Orrin bridge is 512 m long.", "en"),
        ("The Orrin bridge was opened in 1931.", "The Orrin bridge was opened in 1926.", "en"),
        ("Karl Brandt was born in 1899.", "Karl Brandt was born in 1889.", "en"),
        ("The ferry carries cars.", "The ferry does not carry cars.", "en"),
        ("The mayor supported the plan.", "The mayor opposed the plan.", "en"),
        ("云溪桥建于1931年。", "云溪桥建于1926年。", "zh"),
        ("云溪桥全长412米。", "云溪桥全长512米。", "zh"),
    ],
)
def test_what_cannot_both_hold_is_found(earlier: str, later: str, language: str) -> None:
    assert told(earlier, later, language)


@pytest.mark.parametrize(
    ("earlier", "later", "language"),
    [
        ("Nordre won the regatta in 1978.", "Nordre won the regatta in 1986.", "en"),
        ("Nordre won the regatta again in 1986.", "Nordre has not won the regatta since.", "en"),
        ("Wages are higher in Nordre than in Velm.", "Wages are higher in Nordre than in Asker.",
         "en"),
        ("The ferry stops at Velm.", "The ferry stops at Asker.", "en"),
        ("The lake froze in 1947.", "The lake did not freeze until 1963.", "en"),
        ("北岸队于1978年夺得冠军。", "北岸队于1986年夺得冠军。", "zh"),
        ("渡船在云溪停靠。", "渡船在石桥停靠。", "zh"),
    ],
)  # fmt: skip
def test_two_occasions_or_two_things_are_no_contradiction(
    earlier: str, later: str, language: str
) -> None:
    assert told(earlier, later, language) == ""
