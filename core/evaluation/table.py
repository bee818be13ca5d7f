"""The tables of measured figures in docs/researchers.md: `python -m core.evaluation.table`.

The results are what `python -m core evaluate … --keep docs/measurements` wrote. With `--write` the
tables take the place of whatever stands between the page's two markers; without, they are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import InputError, ReviewError

RESULTS = PROJECT_ROOT / "docs" / "measurements"
PAGE = PROJECT_ROOT / "docs" / "researchers.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
NONE = "–"
Result = Mapping[str, Any]
Cell = Callable[[Result], str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the tables; 2 where a result or the place for them is missing."""
    parser = argparse.ArgumentParser(prog="python -m core.evaluation.table", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--page", type=Path, default=PAGE, metavar="FILE")
    given = parser.parse_args(arguments)
    try:
        tables = tables_of(stored_results(given.results))
        if given.write:
            text = given.page.read_text(encoding="utf-8")
            given.page.write_text(with_tables(text, tables), encoding="utf-8")
        else:
            sys.stdout.write(tables)
    except (ReviewError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def stored_results(folder: Path) -> list[Result]:
    """All results in the folder, by set, task and split.

    Raises InputError: a file is not what `evaluate --keep` writes.
    """
    results: list[Result] = []
    for path in sorted(folder.glob("*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            _row(result, (WORD_COLUMNS if _marks_words(result) else LABEL_COLUMNS))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"Expected a result of `python -m core evaluate --keep` in {path}, found something "
                f"else: {error!r}. Measure again, or take the file away."
            ) from error
        results.append(result)
    return sorted(results, key=_name)


def tables_of(results: Sequence[Result]) -> str:
    """One table for labels, one for marked words; each says where its intervals come from."""
    parts = {False: LABEL_COLUMNS, True: WORD_COLUMNS}
    rows = {marks: [r for r in results if _marks_words(r) is marks] for marks in parts}
    return "\n".join(_table(rows[m], columns) for m, columns in parts.items() if rows[m])


def with_tables(text: str, tables: str) -> str:
    """The page with the tables between its markers.

    Raises InputError: a marker is not there exactly once, or they are in the wrong order.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in rest or END in before or END in after:
        raise InputError(
            f"Expected the lines {BEGIN} and {END} once each in the page, in this order, found "
            "something else; put them where the tables belong."
        )
    return f"{before}{begin}\n{tables}{end}{after}"


def _table(results: Sequence[Result], columns: Mapping[str, Cell]) -> str:
    lines = [
        "| " + " | ".join(columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(_row(result, columns)) + " |" for result in results),
    ]
    return "\n".join(lines) + "\n"


def _row(result: Result, columns: Mapping[str, Cell]) -> list[str]:
    return [cell(result) for cell in columns.values()]


def _marks_words(result: Result) -> bool:
    return "iou" in result["metrics"]


def _name(result: Result) -> str:
    parts = [result["dataset"], result["task"] or "", result["split"] or ""]
    name = " ".join(part for part in parts if part)
    if result["limit"] is not None and result["rows"] >= result["limit"]:
        name += " (sample)"
    return name if result["roster"] == "builtin" else f"{name}, {result['roster']}"


def _figure(name: str, trivial: str = "", *, interval: bool = False) -> Cell:

    def cell(result: Result) -> str:
        figures = result["trivial"].get(trivial, {}) if trivial else result["metrics"]
        figure = figures.get(name)
        if figure is None:
            return NONE
        if not interval:
            return f"{figure['value']:.3f}"
        return f"{figure['value']:.3f} ({figure['low']:.2f}–{figure['high']:.2f})"

    return cell


def _both(first: Cell, second: Cell) -> Cell:

    def cell(result: Result) -> str:
        told = first(result), second(result)
        return NONE if told == (NONE, NONE) else " / ".join(told)

    return cell


LABEL_COLUMNS: Mapping[str, Cell] = {
    "set": _name,
    "rows": lambda result: f"{result['rows']:,}",
    "forced balanced accuracy": _figure("forced_balanced_accuracy", interval=True),
    "AUROC": _figure("auroc", interval=True),
    "answered; right of that": _both(_figure("coverage"), _figure("selective_accuracy")),
    "balanced accuracy": _figure("balanced_accuracy", interval=True),
    "F1 / always hallucinated": _both(_figure("f1"), _figure("f1", "always_hallucinated")),
    "three-way / no evidence": _both(_figure("accuracy3"), _figure("accuracy3", "claim_only")),
    "ECE / by chance": _both(_figure("ece"), _figure("ece_null")),
    "no evidence: balanced / AUROC": _both(
        _figure("balanced_accuracy", "claim_only"), _figure("auroc", "claim_only")
    ),
    "other evidence: AUROC": _figure("auroc", "other_evidence"),
}
WORD_COLUMNS: Mapping[str, Cell] = {
    "set": _name,
    "rows": lambda result: f"{result['rows']:,}",
    "IoU": _figure("iou", interval=True),
    "correlation": _figure("correlation", interval=True),
    "character F1": _figure("char_f1"),
    "mark all: IoU": _figure("iou", "mark_all"),
    "no evidence: IoU": _figure("iou", "claim_only"),
    "balanced accuracy": _figure("balanced_accuracy"),
    "AUROC": _figure("auroc"),
}

if __name__ == "__main__":
    sys.exit(main())
