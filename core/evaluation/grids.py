"""The papers' tables as declared grids, to be measured with whatever models one has.

`grids/NAME.toml` holds a table of a paper: its figures as printed, the set that stands in for the
paper's, the protocol that is our way to each system, and what differs. Parts are the table's groups
of columns; a row has a figure for each metric of each part, in order. A cell is one way on one set;
rows of the same way and roster share it. A part may average others: it is computed where all of
them were measured. Where nothing was measured the printed table says why.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from core.evaluation.datasets import get_task_rule
from core.evaluation.evaluate import Figures, build_trivial_outcomes, compute_figures
from core.evaluation.metrics import build_measures, estimate_figures
from core.evaluation.outcomes import Outcomes, compute_dataset_digest
from core.evaluation.system_comparison import (
    SystemComparison,
    compare_systems,
    list_comparison_cells,
)
from core.evaluation.table import CONDITIONS, describe_conditions, format_line, start_table
from core.learning.metrics import Measure
from core.runtime.errors import InputError, ReviewError

GRIDS_FOLDER = Path(__file__).parent / "grids"
PAPER_ROSTERS = "paper"  # plays each row by the shipped roster with the paper's models
DEFAULT_ROSTER = ""  # whose roster plays the systems that none is named for
TRIVIAL_ANSWERS = {"mark_all": "all hallucinated, all marked", "always_supported": "all supported"}
SECONDS = "seconds"  # of a row
NOT_RUN = "not run yet"
NOT_AVERAGED = "an average, computed when all its parts are measured in one run"
SUMMED_FIELDS = ("rows", "answered", "failed", "seconds")
GRID_CONDITIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **CONDITIONS,
    "code": ("code", ()),
    "prompts": ("prompts", ()),
    "passages": ("number of passages", ()),
    "agents": ("agents", ("roster",)),
}


class GridPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Columns over the set `set/task/split`, or over each row's own.

    `metrics` maps the paper's names to ours, or to nothing where `why` says why. With `change` a
    figure is laid beside that of the baseline's row. With `average_of` the figures are the means of
    those of the parts named there, or those of all their rows together if it `is_pooled`.
    """

    name: str
    metrics: dict[str, str]
    average_of: tuple[str, ...] = ()
    is_pooled: bool = False
    dataset: str = ""
    unit: Literal["", "%"] = ""
    change: Literal["", "difference", "ratio"] = ""
    why: str = ""


class GridRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A system of the paper; without a `way` to it, `why` says why.

    `roster` is the shipped one with the paper's models. A row that `takes_roster` differs from
    others in its models alone. `turns` bounds CEDA's debate.
    """

    system: str
    way: str = ""
    figures: tuple[str, ...] = ()
    dataset: str = ""
    roster: str = ""
    takes_roster: bool = False
    turns: int = 0
    why: str = ""


class Grid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a paper; the row of the system `baseline` is what others are laid beside.

    `title` names paper, table and section.
    """

    title: str
    models: str
    differs: tuple[str, ...]
    parts: tuple[GridPart, ...]
    rows: tuple[GridRow, ...]
    baseline: str = ""


class GridColumn(NamedTuple):
    """A figure of a part: its place in a row's figures, the paper's name and ours."""

    part: GridPart
    place: int
    name: str
    metric: str


@dataclass(frozen=True)
class GridCell:
    """What is measured at once: a way of checking by a roster on a part of a set.

    An average has the cells of its `parts`.
    """

    dataset: str
    task: str
    way: str
    roster: str
    part: str
    turns: int = 0
    parts: tuple[GridCell, ...] = ()

    @property
    def name(self) -> str:
        """The way and its roster, as tables show them."""
        return f"{self.way}{f' ({self.turns} turns)' if self.turns else ''}, {self.roster}"

    @property
    def source(self) -> str:
        """The set with task and part."""
        return " ".join(word for word in (self.dataset, self.task, self.part) if word)


@dataclass(frozen=True)
class MeasuredCell:
    """A cell with the object that `evaluate --json` prints, or why there is none."""

    cell: GridCell
    result: dict[str, Any] | None
    why: str = ""


@dataclass(frozen=True)
class GridRun:
    """The measured cells of a grid, by rosters of systems, and comparisons by set and figure."""

    grid: str
    rosters: dict[str, str]
    cells: tuple[MeasuredCell, ...] = ()
    comparisons: dict[str, list[SystemComparison]] = field(default_factory=dict)

    @property
    def is_measured(self) -> bool:
        """True if a cell has a result."""
        return any(one.result for one in self.cells)


@lru_cache(maxsize=1)
def load_grids() -> Mapping[str, Grid]:
    """Return all grids by name."""
    return {
        path.stem: msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Grid)
        for path in sorted(GRIDS_FOLDER.glob("*.toml"))
    }


def get_grid(name: str) -> Grid:
    """Return the grid. Raises InputError if there is none of that name."""
    if name not in load_grids():
        raise InputError(f"Expected a grid of {', '.join(load_grids())}; found “{name[:80]}”.")
    return load_grids()[name]


def list_columns(grid: Grid) -> list[GridColumn]:
    """Return the columns of all parts, in order."""
    named = ((part, *metric) for part in grid.parts for metric in part.metrics.items())
    return [GridColumn(part, place, *names) for place, (part, *names) in enumerate(named)]


def find_cell(
    grid: Grid, row: GridRow, part: GridPart, rosters: Mapping[str, str]
) -> GridCell | str:
    """Return the cell that measures a row's figures of a part, or why there is none."""
    if part.average_of:
        parts = [own for own in grid.parts if own.name in part.average_of]
        found = [find_cell(grid, row, own, rosters) for own in parts]
        cells = tuple(one for one in found if isinstance(one, GridCell))
        if len(cells) < len(found):
            return next(why for why in found if isinstance(why, str))
        return replace(cells[0], task="", part=part.name, parts=cells)
    dataset, task, split = (*(row.dataset or part.dataset).split("/", 2), "", "")[:3]
    if not row.way or not dataset:
        return row.why or part.why
    default = rosters[DEFAULT_ROSTER]
    if default == PAPER_ROSTERS:
        default = row.roster
    elif row.takes_roster:
        default = ""
    roster = rosters.get(row.system, default)
    if not roster:
        return f"takes a roster of its own: --row '{row.system}=ROSTER'"
    task = get_task_rule(dataset, task or None).task
    return GridCell(dataset, task, row.way, roster, split, row.turns)


def plan_grid_cells(grid: Grid, rosters: Mapping[str, str]) -> list[GridCell]:
    """Return the cells to measure, each once, set by set; averages need no measuring."""
    parts = [part for part in grid.parts if any(part.metrics.values()) and not part.average_of]
    return list(dict.fromkeys(c for part in parts for c in _list_cells(grid, part, rosters)))


def _list_cells(grid: Grid, part: GridPart, rosters: Mapping[str, str]) -> list[GridCell]:
    found = [find_cell(grid, row, part, rosters) for row in grid.rows]
    return list(dict.fromkeys(cell for cell in found if isinstance(cell, GridCell)))


OutcomesKeeper = Callable[[Outcomes], None]
CellMeasurer = Callable[[GridCell, OutcomesKeeper], dict[str, Any]]


def run_grid(
    name: str,
    rosters: dict[str, str],
    measure: CellMeasurer,
    tell: Callable[[str], None],
    seed: int = 0,
) -> GridRun:
    """Measure all cells of a grid; `measure` also hands over the outcomes, to be compared.

    A cell that cannot be measured says why, and the others go on.
    """
    grid, measured = get_grid(name), []
    outcomes: dict[GridCell, Outcomes] = {}
    cells = plan_grid_cells(grid, rosters)
    for number, cell in enumerate(cells, start=1):
        tell(f"cell {number} of {len(cells)}: {cell.source}, {cell.name}")
        try:
            result = measure(cell, partial(outcomes.__setitem__, cell))
            measured.append(MeasuredCell(cell, result))
        except ReviewError as error:
            tell(str(error))
            measured.append(MeasuredCell(cell, None, str(error)))
    results = {one.cell: one.result for one in measured if one.result}
    for part in [part for part in grid.parts if part.average_of]:
        for cell in _list_cells(grid, part, rosters):
            found = [(results[own], outcomes[own]) for own in cell.parts if own in results]
            if len(found) == len(cell.parts):
                measured.append(MeasuredCell(cell, average_results(found, part, seed)))
            else:
                measured.append(MeasuredCell(cell, None, NOT_AVERAGED))
    return GridRun(name, rosters, tuple(measured), _compare_cells(grid, rosters, outcomes, seed))


def average_results(
    parts: Sequence[tuple[Mapping[str, Any], Outcomes]], average: GridPart, seed: int
) -> dict[str, Any]:
    """Return the result that averages those of the parts, with what all were measured under."""
    results, outcomes = zip(*parts, strict=True)
    rows = [row for one in outcomes for row in one.rows]
    names = set(average.metrics.values())
    trivial = [build_trivial_outcomes(one.rows) for one in outcomes]
    return {
        **{name: results[0].get(name) for name in (*GRID_CONDITIONS, "dataset", "roster", "seed")},
        **{name: sum(one[name] for one in results) for name in SUMMED_FIELDS},
        "task": None,
        "split": average.name,
        "dataset_sha256": compute_dataset_digest(rows),
        "metrics": _average_figures(outcomes, names, average, seed),
        "trivial": {
            name: _average_figures([one[name] for one in trivial], names, average, seed)
            for name in trivial[0]
        },
    }


def _average_figures(
    parts: Sequence[Outcomes], names: Collection[str], average: GridPart, seed: int
) -> Figures:
    rows, predictions = ([x for one in parts for x in getattr(one, n)] for n in ("rows", "said"))
    pooled = Outcomes(rows, predictions)
    if average.is_pooled:
        return compute_figures(pooled, seed, wanted=names)
    measures = [build_measures(one) for one in parts]
    ends = np.cumsum([len(one.rows) for one in parts])[:-1]

    def average_measure(name: str) -> Measure:
        return lambda weights: np.mean(
            [
                own[name](drawn)
                for own, drawn in zip(measures, np.split(weights, ends, axis=1), strict=True)
            ],
            axis=0,
        )

    known = {name for name in names if all(name in own for own in measures)}
    return estimate_figures({n: average_measure(n) for n in known}, pooled.groups, seed)


def _compare_cells(
    grid: Grid, rosters: Mapping[str, str], outcomes: Mapping[GridCell, Outcomes], seed: int
) -> dict[str, list[SystemComparison]]:
    """Return the comparisons of ways with the baseline's on the same set, figure by figure."""
    compared: dict[str, list[SystemComparison]] = {}
    baselines = [row for row in grid.rows if row.system == grid.baseline]
    for part, row in itertools.product(grid.parts, baselines):
        base = find_cell(grid, row, part, rosters)
        if isinstance(base, GridCell) and base in outcomes:
            ways = {cell.name: o for cell, o in outcomes.items() if cell.source == base.source}
            for metric in [own for own in part.metrics.values() if own not in ("", SECONDS)]:
                found = compare_systems(ways, metric, baseline=base.name, seed=seed)
                compared.setdefault(base.source, []).extend(found)
    return compared


def format_grid(grid: Grid, run: GridRun, escape: Callable[[str], str] = str) -> str:
    """Return the table as Markdown: the paper's figures beside ours, then the comparisons.

    `escape` is applied to cells and reasons, which hold names and what providers said.
    """
    results = [one.result for one in run.cells if one.result]
    lines = [
        f"# {grid.title}\n",
        f"The paper: {grid.models}.\n",
        *(f"- {text}" for text in grid.differs),
        *(f"- {text}" for text in describe_conditions(results, GRID_CONDITIONS)),
    ]
    reasons: dict[str, int] = {}
    for _, columns in itertools.groupby(list_columns(grid), key=lambda column: column.part):
        lines += ["", *_format_part(grid, list(columns), run, reasons, escape)]
    told = [(number, escape(" ".join(why.split()))) for why, number in reasons.items()]
    lines += ["", *(f"[{number}] not measured: {why}" for number, why in told)]
    cells = [
        {"set": source, **list_comparison_cells(one)}
        for source, compared in run.comparisons.items()
        for one in compared
    ]
    if cells:
        lines += [
            "\n## Compared on the same rows: p (p by Holm)\n",
            *start_table([escape(title) for title in cells[0]]),
        ]
        lines += [format_line(map(escape, one.values())) for one in cells]
    return "\n".join(lines) + "\n"


def _format_part(
    grid: Grid,
    columns: Sequence[GridColumn],
    run: GridRun,
    reasons: dict[str, int],
    escape: Callable[[str], str],
) -> Iterator[str]:
    part = columns[0].part
    names = ", ".join(part.average_of)
    words = f" ({'rows pooled' if part.is_pooled else 'mean'} of {names})" if names else ""
    cells = {row.system: find_cell(grid, row, part, run.rosters) for row in grid.rows}
    known = {one.cell: one.result for one in run.cells if one.result and any(part.metrics.values())}
    results = {cell: result for cell, result in known.items() if cell in cells.values()}
    yield f"## {part.name}{words}{_describe_rows(list(results.values()))}\n"
    heads = [f"{c.name}{' (%)' if _find_scale(c) > 1 else ''}" for c in columns]
    titles = ["#", "system", "way", *(t for h in heads for t in (h, "ours (95 %)"))]
    yield from start_table([escape(title) for title in titles])
    seen: dict[object, int] = {}
    for number, row in enumerate(grid.rows, start=1):
        cell = cells[row.system]
        first = seen.setdefault(cell, number) if cell in results else number
        line = [str(number), row.system, cell.name if isinstance(cell, GridCell) else ""]
        for column in columns:
            figure = _find_figure(grid, row, column, run)
            if isinstance(figure, str):
                ours = f"not measured [{reasons.setdefault(figure, len(reasons) + 1)}]"
            else:
                ours = _format_figure(figure, column) if first == number else f"as row {first}"
            line += [*(row.figures[column.place : column.place + 1] or [""]), ours]
        yield format_line(map(escape, line))
    by_set = {(r["dataset"], r["task"], r["split"]): r["trivial"] for r in results.values()}
    for name, words in TRIVIAL_ANSWERS.items() if not part.change else ():
        own = [trivial[name] for trivial in by_set.values()]
        found = [[figures[c.metric] for figures in own if c.metric in figures] for c in columns]
        if any(found):
            pairs = zip(found, columns, strict=True)
            line = [text for figures, c in pairs for text in ("", _format_mean(figures, c))]
            yield format_line(map(escape, ["", words, "trivial", *line]))


def _describe_rows(results: Sequence[Mapping[str, Any]]) -> str:
    if not results:
        return ""
    ranges = [sorted({result[name] for result in results}) for name in ("rows", "answered")]
    rows, answered = (" to ".join(f"{n:,}" for n in (*c[:1], *c[1:][-1:])) for c in ranges)
    failed, first = sum(result["failed"] for result in results), results[0]
    words = f"{rows} rows of {first['dataset']}, {answered} answered, {failed} failed"
    return f": {words}, seed {first['seed']}"


def _find_figure(
    grid: Grid, row: GridRow, column: GridColumn, run: GridRun
) -> Mapping[str, float] | str:
    """Return our figure, with its interval where it has one, or why there is none."""
    own = _read_figure(grid, row, column, run)
    base = next((one for one in grid.rows if one.system == grid.baseline), row)
    other = _read_figure(grid, base, column, run) if column.part.change else own
    if isinstance(own, str) or isinstance(other, str) or not column.part.change:
        return other if isinstance(other, str) else own
    if column.part.change == "difference":
        return {"value": own["value"] - other["value"]}
    return {"value": own["value"] / other["value"]} if other["value"] else "a ratio to nothing"


def _read_figure(
    grid: Grid, row: GridRow, column: GridColumn, run: GridRun
) -> Mapping[str, float] | str:
    cell = find_cell(grid, row, column.part, run.rosters)
    if isinstance(cell, str) or not column.metric:
        return cell if isinstance(cell, str) else column.part.why
    measured = next((one for one in run.cells if one.cell == cell), None)
    if measured is None or measured.result is None:
        return measured.why if measured else NOT_AVERAGED if cell.parts else NOT_RUN
    result = measured.result
    seconds = {"value": result["seconds"] / result["rows"]}
    figures: Mapping[str, Mapping[str, float]] = {SECONDS: seconds, **result["metrics"]}
    return figures.get(column.metric, f"these rows give no {column.metric} with {cell.name}")


def _find_scale(column: GridColumn) -> float:
    return 100.0 if column.part.unit == "%" and column.metric != SECONDS else 1.0


def _format_mean(figures: Sequence[Mapping[str, float]], column: GridColumn) -> str:
    if len(figures) < 2:
        return "".join(_format_figure(figure, column) for figure in figures)
    value = sum(figure["value"] for figure in figures) / len(figures)
    return f"{_format_figure({'value': value}, column)} (mean of {len(figures)} sets)"


def _format_figure(figure: Mapping[str, float], column: GridColumn) -> str:
    scale, sign = _find_scale(column), "+" if column.part.change == "difference" else ""
    digits = 1 if scale > 1 else 2 if column.metric == SECONDS else 3
    value, *bounds = (f"{number * scale:{sign}.{digits}f}" for number in figure.values())
    return f"{value} ({' to '.join(bounds)})" if bounds else value
