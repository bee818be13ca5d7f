"""Tables' cells: what columns are called, and how a text is kept from becoming a formula."""

from __future__ import annotations

import re
from collections.abc import Iterable

from core.errors import InputError, shown

CLAIM_NAMES = ("claim", "response", "statement", "answer", "text", "sentence")
QUESTION_NAMES = ("question", "prompt", "query")
# A spreadsheet looks past spaces, and may drop what nobody sees before it looks.
FORMULA = re.compile(r"[\t\r\n]|[\s\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠]")


def folded(name: str) -> str:
    """A column's name as it is compared."""
    return name.strip().casefold()


def require_columns(name: str, found: Iterable[str], wanted: Iterable[str]) -> None:
    """Refuse a table of another kind.

    Raises:
        InputError: a column is not there.
    """
    names = list(found)
    missing = sorted(set(wanted) - set(names))
    if missing:
        there = shown(", ".join(names), 200) or "none"
        raise InputError(
            f"{shown(name)}: expected columns called {', '.join(missing)}, found {there}; choose "
            "the file as it was published, or another format."
        )


def safe_cell(value: object) -> str:
    """The value as a cell that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    text = str(value)
    return "'" + text if isinstance(value, str) and FORMULA.match(text) else text


def masked(cell: str) -> str:
    """The cell as no formula, so that `bare` gives exactly it again."""
    return "'" + cell if _would_be_one(cell) else cell


def bare(cell: str) -> str:
    """What `masked` made, as it was before."""
    return cell[1:] if cell.startswith("'") and _would_be_one(cell) else cell


def _would_be_one(cell: str) -> bool:
    """A formula, or what looks like one that was masked before."""
    return FORMULA.match(cell.lstrip("'")) is not None
