"""The command `grid`: list the papers' tables, show one, run one on sets that lie in a folder."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from core.agents.rosters import load_chosen_roster
from core.evaluation.command_line import KeyLoader, MessageWriter, OutputWriter
from core.evaluation.engine_runs import add_runner_options, build_engine, compute_engine_digest
from core.evaluation.evaluate import EvaluationRequest, evaluate_engine, get_way
from core.evaluation.grids import (
    DEFAULT_ROSTER,
    Grid,
    GridCell,
    GridRun,
    OutcomesKeeper,
    format_grid,
    get_grid,
    load_grids,
    plan_grid_cells,
    run_grid,
)
from core.evaluation.outcomes import EVALUATIONS_FOLDER
from core.evaluation.runner import take_runner_options
from core.exchange.command_line import write_file_atomically
from core.llm.prompting import PromptBook
from core.llm.rate_limit import require_used_rates
from core.pipeline.single_check import CheckRequest, plan_check
from core.runtime.errors import InputError
from core.schema.rosters import BUILT_IN_ROSTER

DESCRIPTION = """\
The papers' tables, measured with your models. `run` measures what its rows declare, prints the
paper's figures beside ours and keeps ours in the home; `show` prints them again. A run that was
stopped goes on where it was. Rows that differ in the paper's models alone share a figure unless
--row gives one a roster; --roster paper takes the shipped rosters that hold the paper's models."""


def add_commands(
    commands: Any, add_home: Any, add_engine: Any, whole: Callable[[str, int, int], int]
) -> None:
    """Add the command `grid` with its actions."""
    parser = commands.add_parser("grid", help="the papers' tables", description=DESCRIPTION)
    actions = parser.add_subparsers(dest="action", required=True, parser_class=type(parser))
    listed = actions.add_parser("list", help="all tables, and which were run here")
    show = actions.add_parser("show", help="a table, with what was measured here")
    run = actions.add_parser("run", help="measure a table")
    for action in (show, run):
        action.add_argument("name", metavar="NAME")
    run.add_argument("--path", required=True, metavar="DIR", help="holds the sets' folders")
    count, seed = (lambda text, least=least: whole(text, least, 10**9) for least in (1, 0))
    run.add_argument("--limit", metavar="N", type=count, help="a sample of each set")
    run.add_argument("--seed", metavar="S", type=seed, default=0, help="of the samples")
    run.add_argument(
        "--row", action="append", default=[], metavar="SYSTEM=ROSTER", help="who plays a row"
    )
    add_engine(run)
    add_runner_options(run, whole)
    run.set_defaults(
        protocol="ceda", rounds=0, samples=0, style="", swap=False, then="", without=[]
    )
    for action in (listed, show, run):
        add_home(action)


def run_grids(
    given: argparse.Namespace,
    home: Path,
    request_of: Callable[[argparse.Namespace], CheckRequest],
    keys_of: KeyLoader,
    say: MessageWriter,
    out: OutputWriter,
) -> int:
    """Run the chosen action; return 1 if nothing could be measured or it was stopped."""
    if given.action == "list":
        for name, grid in load_grids().items():
            state = "run here" if _get_kept_path(home, name).exists() else "not run"
            out(f"{name:20} {state:9} {grid.title}\n")
        return 0
    grid = get_grid(given.name)
    if given.action == "show":
        out(format_grid(grid, load_grid_run(home, given.name)))
        return 0
    request = request_of(given)
    rosters = _parse_rosters(grid, given.row, request)
    runner_options = take_runner_options(given)
    names = {cell.roster for cell in plan_grid_cells(grid, rosters)} - {request.model}
    # A wrong roster or rate is refused before anything runs.
    sheets = [load_chosen_roster(home, name).sheet for name in names]
    if request.model:
        sheets.append(load_chosen_roster(home, "", request.model, request.api_base).sheet)
    require_used_rates(*sheets)
    order = EvaluationRequest(
        "", Path(given.path), limit=given.limit, seed=given.seed, runner=runner_options
    )
    order = replace(order, trivial_limit=0)  # evidence is neither removed nor exchanged
    runner = GridCellRunner(home, request, order, keys_of, say)
    try:
        run = run_grid(given.name, rosters, runner.measure, say, given.seed)
    except KeyboardInterrupt:
        say("Stopped. What is done is kept; the same command goes on from there.")
        return 1
    out(format_grid(grid, run))
    keep_grid_run(home, run)
    return 0 if run.is_measured else 1


def _get_kept_path(home: Path, name: str) -> Path:
    return home / EVALUATIONS_FOLDER / f"grid-{name}.json"


def load_grid_run(home: Path, name: str) -> GridRun:
    """Return the grid's run that the home keeps, or one without cells.

    Raises InputError if the file holds something else.
    """
    path = _get_kept_path(home, name)
    if not path.exists():
        return GridRun(name, {DEFAULT_ROSTER: BUILT_IN_ROSTER})
    try:
        return msgspec.json.decode(path.read_bytes(), type=GridRun)
    except msgspec.MsgspecError as error:
        raise InputError(f"Expected a run of the grid in {path}, found: {error}.") from error


def keep_grid_run(home: Path, run: GridRun) -> None:
    """Keep the run, with the earlier results of cells that could not be measured this time.

    A run of nothing replaces none. Raises InputError if it cannot be written.
    """
    path = _get_kept_path(home, run.grid)
    if not run.is_measured and path.exists():
        return
    with contextlib.suppress(InputError):  # a file that cannot be read is replaced
        run = _add_measured(run, load_grid_run(home, run.grid))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file_atomically(path, msgspec.json.encode(run))


def _add_measured(run: GridRun, earlier: GridRun) -> GridRun:
    known = {one.cell: one for one in earlier.cells if one.result}
    new = {one.cell for one in run.cells if one.result}
    cells = tuple(
        one if one.result or new & {*one.cell.parts} else known.get(one.cell, one)
        for one in run.cells
    )
    kept_sources = {
        one.cell.source for one, new in zip(cells, run.cells, strict=True) if one is not new
    }
    comparisons = {s: c for s, c in earlier.comparisons.items() if s in kept_sources}
    return replace(run, cells=cells, comparisons=comparisons | run.comparisons)


def _parse_rosters(grid: Grid, texts: Sequence[str], request: CheckRequest) -> dict[str, str]:
    """Return who plays each system. Raises InputError if a text is no SYSTEM=ROSTER."""
    pairs = [text.rpartition("=")[::2] for text in texts]
    for system, roster in pairs:
        if system not in {row.system for row in grid.rows} or not roster:
            raise InputError(f"Expected a row of the grid in --row, found “{system}={roster}”.")
    return {DEFAULT_ROSTER: request.model or request.roster, **dict(pairs)}


@dataclass(frozen=True)
class GridCellRunner:
    """Measures cells as `evaluate` does; `request` says who checks and `order` on which rows."""

    home: Path
    request: CheckRequest
    order: EvaluationRequest
    keys_of: KeyLoader
    say: MessageWriter

    def measure(self, cell: GridCell, keep: OutcomesKeeper) -> dict[str, Any]:
        """Return the result of `evaluate`. Raises ReviewError if the cell cannot be measured."""
        way = get_way(cell.way)
        request = replace(self.request, protocol=way.protocol, options=way.options)
        if cell.roster != request.model:
            request = replace(request, roster=cell.roster, model="", api_base="")
        keys = self.keys_of(request)
        engine = build_engine(self.home, plan_check(self.home, request, keys)[0], keys)
        if cell.turns:
            engine = replace(engine, plan=replace(engine.plan, max_turns=cell.turns))
        task, split = cell.task or None, cell.part or None
        order = replace(self.order, dataset=cell.dataset, task=task, split=split)
        return evaluate_engine(order, engine, self.say, keep=keep) | {
            "code": compute_engine_digest()[:12],
            "prompts": PromptBook().digest(),
            "passages": engine.plan.passages,
            "agents": msgspec.to_builtins(engine.plan.sheet or BUILT_IN_ROSTER),
        }
