"""The papers' tables: choose one, measure it with one's own models, read it beside the paper's."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.check.roster_choice import draw_roster_choice, draw_roster_keys
from components.measure.benchmarks import draw_sets_folder
from components.widgets.controls import (
    draw_button,
    draw_download,
    show_problem,
    show_problems,
    store_problem,
)
from components.widgets.wording import escape_markdown
from core.evaluation.benchmarks import RUN_WORDS
from core.evaluation.evaluate import EvaluationRequest
from core.evaluation.grid_commands import GridCellRunner, keep_grid_run, load_grid_run
from core.evaluation.grids import (
    DEFAULT_ROSTER,
    GridRun,
    format_grid,
    get_grid,
    load_grids,
    plan_grid_cells,
    run_grid,
)
from core.evaluation.runner import RunnerOptions
from core.pipeline.single_check import CheckRequest
from core.runtime.errors import InputError, ReviewError
from core.schema.rosters import BUILT_IN_ROSTER

POLL_SECONDS = 1.0
DEFAULT_LIMIT = 50
LOGGER = logging.getLogger(__name__)


@dataclass
class GridJob:
    """A table on its way; its thread writes what it does, the page reads it."""

    message: str = "Starting"
    problem: str = ""
    is_over: bool = False


@st.cache_resource
def _list_jobs() -> dict[tuple[str, str], GridJob]:
    """Return the tables that this server measures or has measured, by home and name."""
    return {}


def draw_paper_tables() -> None:
    """Draw the choice of a paper's table, the table as measured here, and its start."""
    st.subheader("The papers’ tables", anchor=False)
    grids = load_grids()
    name = st.selectbox(
        "Table", list(grids), index=None, format_func=lambda name: grids[name].title,
        key="grid.name", placeholder="Choose a table", persist_state="session",
    )  # fmt: skip
    if name is None:
        st.caption("Each holds the paper’s figures, and what differs when you measure it here.")
        return
    home = state.home_folder()
    job = _list_jobs().get((str(home), name))
    show_problem("grid.problem")
    if job is not None and not job.is_over:
        _follow(job)
    elif has_role("lead", RUN_WORDS):
        if job is not None and job.problem:
            st.error(escape_markdown(job.problem), icon=":material/error:")
        _draw_start(name)
    run = GridRun(name, {DEFAULT_ROSTER: BUILT_IN_ROSTER})
    with show_problems():
        run = load_grid_run(home, name)
    text = format_grid(get_grid(name), run, escape_markdown)
    with st.container(key="cp-grid"):
        st.markdown(
            text.replace("# ", "#### ", 1).replace("\n## ", "\n##### ").replace("\n[", "\n\n[")
        )
    plain = format_grid(get_grid(name), run)
    draw_download("Table (Markdown)", plain, f"{name}.md", "grid.file")


def _draw_start(name: str) -> None:
    folder = draw_sets_folder("grid.folder")
    left, right = st.columns(2)
    with left:
        roster = draw_roster_choice("grid.roster")
    draw_roster_keys([roster], "grid")
    limit = right.number_input(
        "Rows of each set, at most", 1, None, DEFAULT_LIMIT, key="grid.limit"
    )
    cells = plan_grid_cells(get_grid(name), {DEFAULT_ROSTER: roster})
    words = f"Measure {len(cells)} cells of at most {limit:,} rows"
    draw_button(
        words, "grid.start", _start, name, folder, roster, limit, icon="play_arrow",
        disabled=folder is None or not cells,
    )  # fmt: skip
    st.caption("It needs the sets’ folders; a set that is not there is named in the table.")


@st.fragment(run_every=POLL_SECONDS)
def _follow(job: GridJob) -> None:
    if job.is_over:
        st.rerun()
        return
    st.info(escape_markdown(f"Measuring: {job.message}"), icon=":material/hourglass_top:")
    st.caption("It goes on when you leave; after a restart of the server, start it again: what is "
               "done is kept.")  # fmt: skip


def _start(name: str, folder: Path, roster: str, limit: int) -> None:
    with store_problem("grid.problem"):
        with state.open_store() as store:
            state.require_role(store, state.get_project(store).id, "lead", RUN_WORDS)
            options = RunnerOptions(store.projects.settings().workers)
        if not folder.is_dir():
            raise InputError(f"Expected a folder with public sets at {folder}, found none.")
        home, keys = state.home_folder(), state.get_keys()
        job = GridJob()
        jobs = _list_jobs()
        if not (earlier := jobs.setdefault((str(home), name), job)).is_over and earlier is not job:
            raise InputError("This table is being measured already, started on another page.")
        jobs[str(home), name] = job

        def tell(text: str) -> None:
            job.message = text

        order = EvaluationRequest("", folder, limit=limit, trivial_limit=0, runner=options)
        runner = GridCellRunner(home, CheckRequest("", roster=roster), order, lambda _: keys, tell)

        def work() -> None:
            try:
                run = run_grid(name, {DEFAULT_ROSTER: roster}, runner.measure, tell)
                keep_grid_run(home, run)
                if not run.is_measured:
                    job.problem = f"Nothing could be measured: {run.cells[0].why}"
            except ReviewError as error:
                job.problem = str(error)
            except Exception as error:
                LOGGER.exception("the grid %s broke off", name)
                job.problem = f"An unexpected error: {error!r}. What is done is kept."
            finally:
                job.is_over = True

        threading.Thread(target=work, daemon=True, name=f"grid {name}").start()
