"""The tables of measured figures in README and docs/researchers.md, made of stored results.

The results are what `python -m core evaluate … --keep docs/measurements` wrote. `python -m
core.evaluation.table` prints the tables; with `--write` they take the place of whatever stands
between each page's two markers.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import InputError, ReviewError

RESULTS_FOLDER = PROJECT_ROOT / "docs" / "measurements"
BEGIN_MARKER, END_MARKER = "<!-- measured: begin -->", "<!-- measured: end -->"
MISSING_CELL = "–"
BARE_PIPE = re.compile(r"(?<!\\)\|")
EvaluationResult = Mapping[str, Any]
CONDITIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    # field of a result: its name in a sentence, and the fields that set apart what may differ
    "dataset_sha256": ("hash of rows", ("dataset", "task", "split")),
    "engine": ("engine", ("roster",)),
    "machine": ("machine and packages", ()),
}
CellFormatter = Callable[[EvaluationResult], str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the tables; return 2 if a result or a place for them is missing."""
    parser = argparse.ArgumentParser(prog="python -m core.evaluation.table", description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the tables into the pages")
    parser.add_argument("--results", type=Path, default=RESULTS_FOLDER, metavar="DIR")
    parser.add_argument("--pages", type=Path, default=PROJECT_ROOT, metavar="DIR")
    given = parser.parse_args(arguments)
    try:
        results = load_results(given.results)
        tables = {given.pages / name: format_page(results) for name, format_page in PAGES.items()}
        if given.write:
            texts = {
                page: insert_result_tables(page.read_text(encoding="utf-8"), own)
                for page, own in tables.items()
            }
            for page, text in texts.items():
                page.write_text(text, encoding="utf-8")
        else:
            sys.stdout.write("\n".join(tables.values()))
    except (ReviewError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def load_results(folder: Path) -> list[EvaluationResult]:
    """Return all results in the folder, sorted by set, task and split.

    Raises InputError if a file is not what `evaluate --keep` writes.
    """
    results: list[EvaluationResult] = []
    for path in sorted(folder.glob("*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            _build_cells(result, (WORD_COLUMNS if _marks_words(result) else LABEL_COLUMNS))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(
                f"Expected a result of `python -m core evaluate --keep` in {path}, found something "
                f"else: {error!r}. Measure again, or take the file away."
            ) from error
        results.append(result)
    return sorted(results, key=_build_name)


def format_tables(results: Sequence[EvaluationResult]) -> str:
    """Return one table for labels and one for marked words."""
    labels = [result for result in results if not _marks_words(result)]
    words = [result for result in results if _marks_words(result)]
    tables = ((labels, LABEL_COLUMNS), (words, WORD_COLUMNS))
    parts = [_format_table(rows, columns) for rows, columns in tables if rows]
    return "\n".join([*parts, *_format_notes(results)])


def describe_conditions(
    results: Sequence[EvaluationResult], conditions: Mapping[str, tuple[str, tuple[str, ...]]]
) -> list[str]:
    """Return sentences about what results of one table do not share, or do not record."""
    unlike, unknown = [], []
    for name, (words, shared) in conditions.items():
        found: dict[tuple[Any, ...], set[str]] = {}
        for result in results:
            value = json.dumps(result.get(name), sort_keys=True)
            found.setdefault(tuple(map(result.get, shared)), set()).add(value)
        unlike += [words] * any(len(values - {"null"}) > 1 for values in found.values())
        unknown += [words] * any("null" in values for values in found.values())
    sentences = []
    if unlike:
        names = ", ".join(unlike)
        sentences.append(f"Not all results have the same {names}: measure again to compare them.")
    if unknown:
        number = sum(any(result.get(name) is None for name in conditions) for result in results)
        sentences.append(
            f"{number} of {len(results)} results record no {', '.join(unknown)}: whether "
            "they were measured alike is not known."
        )
    return sentences


def format_summary(results: Sequence[EvaluationResult]) -> str:
    """Return one short table of all results, the most accurate first."""
    best_first = sorted(results, key=_read_accuracy, reverse=True)
    return "\n".join([_format_table(best_first, SUMMARY_COLUMNS), *_format_notes(results)])


def _format_notes(results: Sequence[EvaluationResult]) -> list[str]:
    return [f"{sentence}\n" for sentence in describe_conditions(results, CONDITIONS)]


def insert_result_tables(text: str, tables: str) -> str:
    """Return the page with the tables between its markers.

    Raises InputError unless each marker is there exactly once, in the right order.
    """
    before, begin, rest = text.partition(BEGIN_MARKER)
    _, end, after = rest.partition(END_MARKER)
    if not begin or not end or BEGIN_MARKER in rest or END_MARKER in before or END_MARKER in after:
        raise InputError(
            f"Expected the lines {BEGIN_MARKER} and {END_MARKER} once each in the page, in this "
            f"order, found "
            "something else; put them where the tables belong."
        )
    return f"{before}{begin}\n{tables}{end}{after}"


def _format_table(results: Sequence[EvaluationResult], columns: Mapping[str, CellFormatter]) -> str:
    lines = (format_line(_build_cells(result, columns)) for result in results)
    return "\n".join([*start_table(list(columns)), *lines]) + "\n"


def start_table(titles: Sequence[str]) -> list[str]:
    """Return the first lines of a Markdown table."""
    return [format_line(titles), format_line(["---"] * len(titles))]


def format_line(cells: Iterable[str]) -> str:
    """Return a line of a Markdown table; an empty cell is a dash."""
    shown = (BARE_PIPE.sub(r"\\|", " ".join(cell.split())) or MISSING_CELL for cell in cells)
    return f"| {' | '.join(shown)} |"


def _build_cells(result: EvaluationResult, columns: Mapping[str, CellFormatter]) -> list[str]:
    return [cell(result) for cell in columns.values()]


def _marks_words(result: EvaluationResult) -> bool:
    return "iou" in result["metrics"]


def _build_name(result: EvaluationResult) -> str:
    parts = [result["dataset"], result["task"] or "", result["split"] or ""]
    name = " ".join(part for part in parts if part)
    if result["limit"] is not None and result["rows"] >= result["limit"]:
        name += " (sample)"
    return name if result["roster"] == "builtin" else f"{name}, {result['roster']}"


def _read_figure(name: str, trivial: str = "", *, interval: bool = False) -> CellFormatter:

    def cell(result: EvaluationResult) -> str:
        figures = result["trivial"].get(trivial, {}) if trivial else result["metrics"]
        figure = figures.get(name)
        if figure is None:
            return MISSING_CELL
        if not interval or "low" not in figure:
            return f"{figure['value']:.3f}"
        return f"{figure['value']:.3f} ({figure['low']:.2f}–{figure['high']:.2f})"

    return cell


def _name_accuracy(result: EvaluationResult) -> str:
    """Return the name of the figure that counts all rows: no label is forced without evidence."""
    forced = "forced_balanced_accuracy"
    return forced if forced in result["metrics"] else "balanced_accuracy"


def _read_accuracy(result: EvaluationResult) -> float:
    return float(result["metrics"].get(_name_accuracy(result), {}).get("value", 0.0))


def _join_cells(first: CellFormatter, second: CellFormatter) -> CellFormatter:

    def cell(result: EvaluationResult) -> str:
        cells = first(result), second(result)
        return MISSING_CELL if cells == (MISSING_CELL, MISSING_CELL) else " / ".join(cells)

    return cell


SUMMARY_COLUMNS: Mapping[str, CellFormatter] = {
    "set": _build_name,
    "rows": lambda result: f"{result['rows']:,}",
    "balanced accuracy": lambda result: _read_figure(_name_accuracy(result), interval=True)(result),
    "constant answer": _read_figure("balanced_accuracy", "always_hallucinated"),
    "answered": _read_figure("coverage"),
    "right of those": _read_figure("selective_accuracy"),
}
LABEL_COLUMNS: Mapping[str, CellFormatter] = {
    "set": _build_name,
    "rows": lambda result: f"{result['rows']:,}",
    "forced balanced accuracy": _read_figure("forced_balanced_accuracy", interval=True),
    "AUROC": _read_figure("auroc", interval=True),
    "answered; right of that": _join_cells(
        _read_figure("coverage"), _read_figure("selective_accuracy")
    ),
    "balanced accuracy": _read_figure("balanced_accuracy", interval=True),
    "F1 / always hallucinated": _join_cells(
        _read_figure("f1"), _read_figure("f1", "always_hallucinated")
    ),
    "three-way / no evidence": _join_cells(
        _read_figure("accuracy3"), _read_figure("accuracy3", "claim_only")
    ),
    "ECE / by chance": _join_cells(_read_figure("ece"), _read_figure("ece_null")),
    "no evidence: balanced / AUROC": _join_cells(
        _read_figure("balanced_accuracy", "claim_only"), _read_figure("auroc", "claim_only")
    ),
    "other evidence: AUROC": _read_figure("auroc", "other_evidence"),
}
WORD_COLUMNS: Mapping[str, CellFormatter] = {
    "set": _build_name,
    "rows": lambda result: f"{result['rows']:,}",
    "IoU": _read_figure("iou", interval=True),
    "correlation": _read_figure("correlation", interval=True),
    "character F1": _read_figure("char_f1"),
    "mark all: IoU": _read_figure("iou", "mark_all"),
    "no evidence: IoU": _read_figure("iou", "claim_only"),
    "balanced accuracy": _read_figure("balanced_accuracy"),
    "AUROC": _read_figure("auroc"),
}
PAGES: Mapping[str, Callable[[Sequence[EvaluationResult]], str]] = {
    "docs/researchers.md": format_tables,
    "README.md": format_summary,
}

if __name__ == "__main__":
    sys.exit(main())
