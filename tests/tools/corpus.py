"""Corpora of sentences with what the tools should find in them, read from CSV files.

A test compares all rows of a family with a floor of accuracy, so that no single sentence asks for a
rule of its own. `python -m tests.tools.corpus` prints the rows that are missed.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.tools.date_values import DateValue
from core.tools.dates import find_dates
from core.tools.quantities import Quantity, find_quantities
from core.tools.vocabulary import QuantityBound

FOLDER = Path(__file__).parent / "corpora"
Row = Mapping[str, str]
BOUNDS: Mapping[QuantityBound, str] = {
    "exact": "", "about": "~", "at_least": ">=", "at_most": "<=", "more_than": ">", "less_than": "<"
}  # fmt: skip
PARTS = (
    "year", "month", "day", "end_year", "end_month", "end_day", "weekday", "era", "ambiguous",
    "bound",
)  # fmt: skip
UNSTATED = (None, "", "ce", "exact", False)


def rows(name: str) -> list[Row]:
    """The rows of a corpus."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def table(name: str) -> tuple[str, list[Any]]:
    """The names and rows of a test's table of examples, for `pytest.mark.parametrize`."""
    told = json.loads((FOLDER / "tables.json").read_text(encoding="utf-8"))[name]
    return ",".join(told["names"]), told["rows"]


def same_quantities(row: Row) -> bool:
    """True where the row's quantities are found: bound, #rank, value or range, unit."""
    found = [written_quantity(q) for q in find_quantities(row["text"], row["language"])]
    wanted = [part.strip() for part in row["quantities"].split(";") if part.strip()]
    return len(found) == len(wanted) and all(map(_same_value, found, wanted))


def written_quantity(found: Quantity) -> str:
    """A quantity as the corpus writes it: "~3500000 EUR", "10..20 kilogram", "#2"."""
    value = f"{found.low:.8g}" if found.low == found.high else f"{found.low:.8g}..{found.high:.8g}"
    rank = "#" if found.ordinal else ""
    return f"{BOUNDS[found.bound]}{rank}{value} {found.unit}".strip()


def _same_value(one: str, other: str) -> bool:
    """Alike but for rounding of the figures."""
    (first, _, unit), (second, _, wanted) = one.partition(" "), other.partition(" ")
    signs = first.lstrip("<>=~#"), second.lstrip("<>=~#")
    if unit != wanted or first[: -len(signs[0])] != second[: -len(signs[1])]:
        return False
    pairs = zip(signs[0].split(".."), signs[1].split(".."), strict=False)
    return all(math.isclose(float(a), float(b), rel_tol=1e-3) for a, b in pairs)


def same_dates(row: Row) -> bool:
    """True where the row's dates are found, with all their parts."""
    found = "; ".join(written_date(one) for one in find_dates(row["text"], row["language"]))
    return found == row["dates"]


def written_date(found: DateValue) -> str:
    """A date as the corpus writes it: "year=2019 month=3 bound=since"."""
    parts = ((name, getattr(found, name)) for name in PARTS)
    return " ".join(f"{name}={value}" for name, value in parts if not _is_unstated(value))


def _is_unstated(value: object) -> bool:
    return any(value is one or (value == one and isinstance(value, str)) for one in UNSTATED)


def missed(name: str, is_right: Callable[[Row], bool]) -> list[Row]:
    """The rows of a corpus that come out otherwise."""
    return [row for row in rows(name) if not is_right(row)]


CHECKS: Mapping[str, Callable[[Row], bool]] = {"quantities": same_quantities, "dates": same_dates}

if __name__ == "__main__":
    for family, check in CHECKS.items():
        wrong = missed(family, check)
        total = Counter(row["language"] for row in rows(family))
        sys.stdout.write(f"{family}: {len(wrong)} of {sum(total.values())} missed\n")
        for row in wrong:
            found = (
                [written_quantity(q) for q in find_quantities(row["text"], row["language"])]
                if family == "quantities"
                else [written_date(d) for d in find_dates(row["text"], row["language"])]
            )
            sys.stdout.write(f"  {dict(row)}\n    found {found}\n")
