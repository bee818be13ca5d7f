"""A benchmark's results: systems side by side, differences, figures and files."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from components.app import state
from components.measure.agreement import format_interval
from components.measure.benchmark_errors import draw_errors
from components.measure.reliability import format_wilson_share, make_column_help
from components.measure.summary import draw_next_step
from components.widgets.charts import (
    cost_accuracy_figure,
    label_matrix_figure,
    reliability_figure,
    write_figures_html,
)
from components.widgets.controls import draw_download, draw_table
from components.widgets.wording import (
    LABEL_WORDS,
    escape_markdown,
    format_count,
    format_protocol,
    format_roster,
    format_time,
    make_file_name,
)
from core.evaluation.benchmark_results import (
    MeasuredBenchmark,
    MeasuredSystem,
    break_down,
    compare_benchmarks,
    describe_results,
    list_answers,
    measure_benchmark,
    sort_answers,
)
from core.evaluation.benchmarks import BenchmarkCell, BenchmarkProgress, list_conditions
from core.evaluation.metrics import Figure
from core.evaluation.outcomes import Outcomes
from core.evaluation.protocols import SINGLE_JUDGE_WAY
from core.evaluation.system_comparison import SystemComparison, list_comparison_cells
from core.learning.metrics import (
    CONFIDENCE_BAND_EDGES,
    MIN_GROUPS,
    compute_confidence_bands,
)
from core.pipeline.batch_check import format_csv
from core.store import open_store
from core.store.benchmarks import Benchmark, CellTotals

FIGURE_WORDS = {
    "balanced_accuracy": "Balanced accuracy",
    "accuracy": "Right",
    "coverage": "Answered",
    "selective_accuracy": "Right where answered",
    "f1": "F1",
    "auroc": "AUROC",
    "ece": "Calibration error",
    "iou_shown": "Marked words (IoU)",
}
FIGURE_HELP = {
    "Balanced accuracy": "The mean of how many hallucinated and how many supported responses are "
    "called so. A constant answer has 0.5. Unclear is not right. In brackets: 95% interval.",
    "Right": "Of all rows; unclear and failed are not right.",
    "F1": "Of hallucinated. Always saying hallucinated has a high one where most are.",
    "AUROC": "How well the probability tells hallucinated from supported: 0.5 is chance.",
    "Calibration error": "How far probabilities are from shares that were hallucinated (ECE, ten "
    "bins): lower is better.",
    "Marked words (IoU)": "How far marked words are those that people marked; by language.",
    "Answered": "The share that was not left unclear.",
    "Right where answered": "Of the rows that were not left unclear.",
}
MAIN_FIGURES = ("balanced_accuracy", "accuracy")
SHOWN_FIGURES = ("coverage", "selective_accuracy")  # beside the main one; the table's menu has all
DIFFERENCE_COLUMNS = {
    "System": "way",
    "Against": "against",
    "Difference (95%)": "difference (95 %)",
    "Permutation": "permutation",
    "Corrected t-test": "corrected t",
}
ABOUT_DIFFERENCES = (
    "On the same rows. p is given as it is and, in brackets, adjusted by Holm’s method over all "
    "pairs; below 0.05 the difference is more than chance. Permutation: both systems’ answers "
    "exchanged group by group. Corrected t-test: over five folds under three seeds (Nadeau and "
    "Bengio). Wilcoxon, McNemar and effect sizes are in the file."
)
KIND_WORDS = {str(label): words for label, words in LABEL_WORDS.items()} | {
    "": "–",
    "und": "not known",
}
LIVE_DRAWS, LIVE_STEPS = 200, 50
MAX_COMPARED = 20  # earlier benchmarks offered
MAX_CACHED = 8  # benchmarks


def format_system(roster: str, way: str) -> str:
    """Return a system's name: “Built-in engine · Single judge”."""
    protocol, _, options = way.partition(":")
    words = f"{format_roster(roster, short=True)} · {format_protocol(protocol, short=True)}"
    return f"{words} ({options})" if options else words


def _name_cell(cell: BenchmarkCell) -> str:
    return format_system(cell.roster, cell.way)


def load_measured(benchmark_id: str, totals: Mapping[int, CellTotals]) -> MeasuredBenchmark | None:
    """Return the figures of what has these totals; None if no row was answered by all systems."""
    return _measure(str(state.home_folder()), benchmark_id, repr(totals))


@st.cache_resource(max_entries=MAX_CACHED, show_spinner=False)
def _measure(home: str, benchmark_id: str, mark: str) -> MeasuredBenchmark | None:
    with open_store(Path(home)) as store:
        return measure_benchmark(store, benchmark_id, _name_cell)


@st.cache_resource(max_entries=MAX_CACHED, show_spinner=False)
def _measure_live(home: str, benchmark_id: str, step: int) -> MeasuredBenchmark | None:
    with open_store(Path(home)) as store:
        wanted = (*MAIN_FIGURES, *SHOWN_FIGURES)
        return measure_benchmark(store, benchmark_id, _name_cell, LIVE_DRAWS, wanted)


def draw_live_figures(benchmark: Benchmark, progress: BenchmarkProgress) -> None:
    """Draw the main figures so far, computed once a step: those of a large benchmark take long."""
    step = progress.done // max(1, progress.total // LIVE_STEPS)
    measured = _measure_live(str(state.home_folder()), benchmark.id, step)
    if measured is None:
        st.caption("Figures come with the first row that all systems have answered.")
        return
    _draw_systems(measured, "benchmark.live")


def draw_results(benchmark: Benchmark, measured: MeasuredBenchmark) -> None:
    """Draw all results, what to do next first."""
    _draw_next(benchmark, measured)
    st.subheader("Systems", anchor=False)
    _draw_systems(measured, "benchmark.systems")
    refused = sum(len(sort_answers(one.outcomes)["refused"]) for one in measured.systems)
    if refused:
        st.caption(
            f"Refused: {format_count(refused, 'answer')}, as of rows too long for a model. They "
            "count as wrong, and are not tried again: they would be refused again."
        )
    if measured.comparisons:
        st.subheader("Differences", anchor=False)
        _draw_differences(measured.comparisons, "benchmark.differences", "Rows")
        st.caption(ABOUT_DIFFERENCES)
    figures = _draw_figures(measured)
    st.subheader("By kind of row", anchor=False)
    kinds = [
        {"By": one.dimension, "Kind": KIND_WORDS.get(one.kind, one.kind)}
        | {name: format_wilson_share(share) for name, share in one.right.items()}
        for one in break_down(measured)
    ]
    draw_table(kinds, "benchmark.breakdown", column_config=_pin("By", "Kind"))
    st.caption("How often each system is right, with Wilson’s 95% interval over groups.")
    _draw_downloads(benchmark, measured, figures)
    draw_errors(benchmark, measured)
    _draw_earlier(benchmark, measured)


def _draw_next(benchmark: Benchmark, measured: MeasuredBenchmark) -> None:
    """Say which system is best if that is more than chance, and what to do with it.

    Whoever may stop when the figures please chooses by chance: nothing is said before the end.
    """
    if benchmark.status != "finished":
        draw_next_step("resume it before you choose a system: it is not finished.")
        return
    if measured.best:
        words = f"{measured.best.name} is better than all others by more than chance: choose it on "
        draw_next_step(escape_markdown(f"{words}Project."), "pages/setup/project.py", "Project")
        return
    words = "read the errors below, and send those whose label you doubt to Review."
    none = " No system is better than all others by more than chance."
    draw_next_step(words + (none if measured.comparisons else ""))


def _pin(*names: str) -> dict[str, Any]:
    return {name: st.column_config.Column(pinned=True) for name in names}


def _draw_systems(measured: MeasuredBenchmark, key: str) -> None:
    """Draw the main columns, and what they count; the table's menu shows the others."""
    shown = [FIGURE_WORDS[name] for name in (measured.main_figure, *SHOWN_FIGURES)]
    draw_table(
        list_system_rows(measured),
        key,
        column_order=["System", *shown, "US$ in all", "Seconds a row"],
        column_config=make_column_help(FIGURE_HELP) | _pin("System"),
    )
    groups = format_count(len(set(measured.systems[0].outcomes.group_keys)), "group")
    st.caption(
        f"On {format_count(len(measured.rows), 'row')} in {groups} that all systems answered; "
        "related rows, such as those over one source, are one group. In brackets: 95% intervals "
        f"over groups, from {MIN_GROUPS} on."
    )


def list_system_rows(measured: MeasuredBenchmark) -> list[dict[str, Any]]:
    """Return the table of systems; a figure that no system has is left out."""
    systems = (*measured.systems, *measured.trivial)
    wanted = [name for name in FIGURE_WORDS if any(name in one.figures for one in systems)]
    return [_build_row(system, wanted) for system in systems]


def _build_row(system: MeasuredSystem, wanted: Sequence[str]) -> dict[str, Any]:
    totals, done = system.totals, max(1, system.totals.done)
    kinds = sort_answers(system.outcomes)
    used = {
        "Calls a row": f"{totals.calls / done:.1f}",
        "US$ in all": "not known" if totals.unpriced else f"{totals.cost:.4f}",
        "Seconds a row": f"{totals.seconds / done:.2f}",
        "Failed": str(len(kinds["failed"])),
        "Refused": str(len(kinds["refused"])),
    }
    return {
        "System": system.name,
        "Rows": len(system.outcomes.rows),
        **{FIGURE_WORDS[name]: _format_figure(system.figures.get(name)) for name in wanted},
        **(used if system.cell else dict.fromkeys(used, "–")),
    }


def _format_figure(figure: Figure | None) -> str:
    if figure is None:
        return "–"
    return format_interval(figure["value"], figure.get("low"), figure.get("high"))


def _draw_differences(compared: Sequence[SystemComparison], key: str, hidden: str) -> None:
    rows = [
        {title: cells[name] for title, name in DIFFERENCE_COLUMNS.items()} | {"Rows": one.rows}
        for one in compared
        for cells in [list_comparison_cells(one)]
    ]
    shown = [name for name in rows[0] if name != hidden]
    draw_table(rows, key, column_order=shown, column_config=_pin("System"))


def _draw_figures(measured: MeasuredBenchmark) -> list[go.Figure]:
    """Draw cost against accuracy, then one system's matrix and reliability; return all figures."""
    figures = [_plot_cost(measured)]
    st.plotly_chart(figures[0], key="benchmark.cost", width="stretch")
    names = {system.name: system for system in measured.systems}
    chosen = names[st.selectbox("System", list(names), key="benchmark.system")]
    judges = (s for s in measured.systems if s.cell and s.cell.way == SINGLE_JUDGE_WAY.name)
    single = next(judges, chosen)
    left, right = st.columns(2)
    figures += [
        label_matrix_figure(_count_labels(chosen.outcomes), "Right answer and what it says"),
        reliability_figure(
            [] if single is chosen else _band(single.outcomes),
            _band(chosen.outcomes),
            (single.name, chosen.name),
        ),
    ]
    left.plotly_chart(figures[1], key="benchmark.matrix", width="stretch")
    right.plotly_chart(figures[2], key="benchmark.reliability", width="stretch")
    return figures


def _plot_cost(measured: MeasuredBenchmark) -> go.Figure:
    figure = measured.main_figure
    is_priced = any(one.totals.cost for one in measured.systems)
    points = [
        (
            one.name,
            (one.totals.cost if is_priced else one.totals.seconds) / max(1, one.totals.done),
            tuple(one.figures[figure].values()),
        )
        for one in measured.systems
        if figure in one.figures and not (is_priced and one.totals.unpriced)
    ]
    what = "US$ a row" if is_priced else "seconds a row"
    return cost_accuracy_figure(points, what, FIGURE_WORDS[figure].lower())


def _band(outcomes: Outcomes) -> list[dict[str, float]]:
    answered = outcomes.answered
    return compute_confidence_bands(
        outcomes.wrong[answered], outcomes.p[answered], CONFIDENCE_BAND_EDGES
    )


def _count_labels(outcomes: Outcomes) -> dict[str, dict[str, int]]:
    """Return by right answer how often each label was given."""
    pairs = zip(outcomes.rows, outcomes.said, strict=True)
    counts = Counter((row.label, said.label) for row, said in pairs)
    golds = [label for label in LABEL_WORDS if any(label == gold for gold, _ in counts)]
    return {
        LABEL_WORDS[gold]: {words: counts[gold, label] for label, words in LABEL_WORDS.items()}
        for gold in golds
    }


def _draw_downloads(
    benchmark: Benchmark, measured: MeasuredBenchmark, figures: Sequence[go.Figure]
) -> None:
    differences = [list_comparison_cells(one) for one in measured.comparisons]
    files: dict[str, tuple[str, Callable[[], str | bytes]]] = {
        "Figures (HTML)": ("figures.html", partial(write_figures_html, figures)),
        "Systems (CSV)": ("systems.csv", partial(_format_table, list_system_rows(measured))),
        "Differences (CSV)": ("differences.csv", partial(_format_table, differences)),
        "Rows (CSV)": ("rows.csv", lambda: _format_table(list(list_answers(measured)))),
        "All (JSON)": ("all.json", lambda: _format_record(benchmark, measured)),
    }
    with st.container(horizontal=True):
        for label, (ending, make) in files.items():
            name = make_file_name(benchmark.name, benchmark.created_at, ending)
            draw_download(label, make, name, f"benchmark.file.{ending}")


def _format_table(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return format_csv([list(rows[0]), *(list(row.values()) for row in rows)] if rows else [])


def _format_record(benchmark: Benchmark, measured: MeasuredBenchmark) -> str:
    return json.dumps(describe_results(benchmark, measured), ensure_ascii=False, indent=1)


def _draw_earlier(benchmark: Benchmark, measured: MeasuredBenchmark) -> None:
    """Draw the choice of another benchmark, and how each system differs from itself there."""
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        found = store.benchmarks.of_project(benchmark.project_id, time.time(), lease)
        found.sort(key=lambda one: one.id != benchmark.repeats)  # the repeated one first
        others = {one.id: one for one in found if one.id != benchmark.id and one.started_at}
        if not others:
            return
        st.subheader("Beside another result", anchor=False)
        chosen = st.selectbox(
            "Compare with",
            list(others)[:MAX_COMPARED],
            index=0 if benchmark.repeats in others else None,
            format_func=lambda own: f"{others[own].name} · {format_time(others[own].created_at)}",
            key=f"benchmark.earlier.{benchmark.id}",
            placeholder="Choose a result",
        )
        if not chosen:
            return
        other = others[chosen]
        totals = {one.id: store.benchmarks.totals(one.id) for one in (benchmark, other)}
    then = load_measured(other.id, totals[other.id])
    compared = _compare(measured, then, repr(totals)) if then else []
    if not compared:
        st.info("No system has answered the same rows there.")
        return
    _draw_differences(compared, "benchmark.earlier.table", "Against")
    changes = [name for name in ("code", "engines", "prompts", "dataset_sha256")
               if list_conditions(benchmark, [name]) != list_conditions(other, [name])]  # fmt: skip
    words = f"Changed between them: {', '.join(changes).replace('dataset_sha256', 'rows')}."
    st.caption(words if changes else "Code, engines, prompts and rows are the same in both.")


@st.cache_resource(max_entries=MAX_CACHED, show_spinner="Comparing…")
def _compare(
    _now: MeasuredBenchmark, _then: MeasuredBenchmark, mark: str
) -> list[SystemComparison]:
    return compare_benchmarks(_now, _then)
