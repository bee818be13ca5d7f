"""A benchmark's results: systems side by side, comparisons, figures, breakdowns and errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.check.roster_choice import draw_roster_keys
from components.measure.agreement import format_interval
from components.measure.reliability import format_wilson_share, make_column_help
from components.measure.summary import draw_next_step
from components.review.review_queue import LABEL_PAGE, QUEUE_PAGE
from components.widgets.charts import (
    cost_accuracy_figure,
    label_matrix_figure,
    reliability_figure,
    write_figures_html,
)
from components.widgets.controls import (
    draw_button,
    draw_download,
    draw_link,
    draw_table,
    open_run,
    show_problem,
    show_problems,
    store_problem,
)
from components.widgets.html import strip_verdict_line
from components.widgets.wording import (
    CAUSE_WORDS,
    LABEL_WORDS,
    clip_text,
    escape_markdown,
    format_count,
    format_label,
    format_probability,
    format_protocol,
    format_roster,
    format_time,
    make_file_name,
)
from core.evaluation.benchmark_review import send_rows_to_review, store_rows_as_cases
from core.evaluation.benchmarks import (
    BenchmarkCell,
    BenchmarkProgress,
    count_versions,
    list_conditions,
    load_outcomes,
    match_outcomes,
    read_spec,
)
from core.evaluation.dataset_files import GoldRow
from core.evaluation.metrics import (
    Figure,
    build_measures,
    estimate_figures,
    list_share_rows,
)
from core.evaluation.outcomes import Outcomes, Prediction, predict_constant
from core.evaluation.system_comparison import (
    SystemComparison,
    compare_systems,
    list_comparison_cells,
)
from core.learning.metrics import (
    BOOTSTRAP_RESAMPLES,
    CONFIDENCE_BAND_EDGES,
    compute_confidence_bands,
)
from core.learning.track_record import WilsonShare
from core.pipeline.batch_check import format_csv
from core.schema.records import Label
from core.store import Store, open_store
from core.store.benchmarks import Benchmark, CellTotals
from core.store.review_queue import build_queue_rules

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
LIVE_FIGURES = ("balanced_accuracy", "accuracy", "coverage")
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
FOLDS = "Both over folds (mean ± sd)"
FILE_COLUMNS = ("Figure", FOLDS)  # of comparisons, left to the files
COMPARISON_WORDS = {
    "way": "System",
    "against": "Against",
    "figure": "Figure",
    "difference (95 %)": "Difference (95%)",
    "both over folds (mean ± sd)": FOLDS,
    "t": "Paired t-test",
    "corrected t": "Corrected t-test",
    "d_z": "Cohen’s d",
    "h": "Cohen’s h",
    "g": "Cohen’s g",
}
ABOUT_COMPARISONS = (
    "On the same rows. p is given as it is and, in brackets, adjusted by Holm’s method over all "
    "pairs; below 0.05 the difference is more than chance. Over five folds under three seeds: "
    "corrected t-test (Nadeau and Bengio), Wilcoxon. Row by row: McNemar."
)
TRIVIAL_SYSTEMS: dict[str, Label] = {
    "Always hallucinated": "hallucinated",
    "Always supported": "supported",
}
KINDS = ("Wrong", "Unclear", "Failed", "Right")
REASONS_BY_KIND = {  # why answers of a kind are sent to review
    "Wrong": "a benchmark found another label",
    "Unclear": "a benchmark could not decide it",
    "Failed": "a benchmark failed on it",
    "Right": "a benchmark found the same label",
}
SINGLE = "single"
LIVE_DRAWS, LIVE_STEPS, FIGURE_SEED = 200, 50, 0
MAX_SHOWN_ROWS = 200  # of an error list
MAX_COMPARED = 20  # earlier benchmarks offered
MAX_CACHED = 8  # benchmarks
CHOSEN_HEIGHT = 380
SENT = "benchmark.sent"
NOTHING_USED = CellTotals()


@dataclass(frozen=True)
class MeasuredSystem:
    """A system's answers on the rows that all systems have answered, with its figures."""

    name: str
    cell: BenchmarkCell | None
    outcomes: Outcomes
    figures: dict[str, Figure]
    totals: CellTotals = NOTHING_USED


@dataclass(frozen=True)
class MeasuredBenchmark:
    """All systems, trivial ones last; `comparisons` are of the others, pair by pair."""

    systems: tuple[MeasuredSystem, ...]
    comparisons: tuple[SystemComparison, ...]

    @property
    def measured(self) -> tuple[MeasuredSystem, ...]:
        """The systems that are no constant answer."""
        return tuple(system for system in self.systems if system.cell)


def format_cell(roster: str, way: str) -> str:
    """Return a system's name: “Built-in engine · Single judge”."""
    protocol, _, options = way.partition(":")
    words = f"{format_roster(roster, short=True)} · {format_protocol(protocol, short=True)}"
    return f"{words} ({options})" if options else words


def load_measured(benchmark: Benchmark, progress: BenchmarkProgress) -> MeasuredBenchmark | None:
    """Return the figures so far; None if no row was answered by all systems."""
    mark = (progress.done, progress.failed, progress.total, benchmark.finished_at)
    return _measure(str(state.home_folder()), benchmark.id, mark)


@st.cache_resource(max_entries=MAX_CACHED, show_spinner="Computing the figures…")
def _measure(home: str, benchmark_id: str, mark: tuple[object, ...]) -> MeasuredBenchmark | None:
    with open_store(Path(home)) as store:
        systems = _load_systems(store, benchmark_id, tuple(FIGURE_WORDS))
    if not systems:
        return None
    outcomes = {system.name: system.outcomes for system in systems if system.cell}
    figure = choose_main_figure(next(iter(outcomes.values())))
    comparisons = compare_systems(outcomes, figure, seed=FIGURE_SEED) if len(outcomes) > 1 else []
    return MeasuredBenchmark(tuple(systems), tuple(comparisons))


def choose_main_figure(outcomes: Outcomes) -> str:
    """Return the figure that systems are compared by: it takes rows of both labels."""
    return "balanced_accuracy" if outcomes.has_both else "accuracy"


def _load_systems(
    store: Store, benchmark_id: str, wanted: Sequence[str], draws: int | None = None
) -> list[MeasuredSystem]:
    """Return every system with the wanted figures over the rows that all have answered."""
    found = store.benchmarks.get(benchmark_id, time.time(), 0.0)
    cells = read_spec(found).cells if found else ()
    totals = store.benchmarks.totals(benchmark_id)
    outcomes = [load_outcomes(store, benchmark_id, number) for number in range(len(cells))]
    by_place = [
        {result.position: n for n, result in enumerate(store.benchmarks.results(benchmark_id, c))}
        for c in range(len(cells))
    ]
    shared = [place for place in by_place[0] if all(place in one for one in by_place)]
    if not shared:
        return []
    rows = [outcomes[0].rows[by_place[0][place]] for place in shared]
    systems = [
        MeasuredSystem(
            format_cell(cell.roster, cell.way),
            cell,
            own := Outcomes(rows, [outcomes[number].said[by_place[number][n]] for n in shared]),
            _estimate(own, wanted, draws),
            totals.get(number, CellTotals()),
        )
        for number, cell in enumerate(cells)
    ]
    for name, label in TRIVIAL_SYSTEMS.items():
        own = predict_constant(label, rows)
        systems.append(MeasuredSystem(name, None, own, _estimate(own, wanted, draws)))
    return systems


def _estimate(outcomes: Outcomes, wanted: Sequence[str], draws: int | None) -> dict[str, Figure]:
    measures = {name: one for name, one in build_measures(outcomes).items() if name in wanted}
    return estimate_figures(
        measures,
        outcomes.groups,
        FIGURE_SEED,
        draws or BOOTSTRAP_RESAMPLES,
        list_share_rows(outcomes),
    )


def draw_live_figures(benchmark: Benchmark, progress: BenchmarkProgress) -> None:
    """Draw the main figures of a benchmark that is under way."""
    step = max(1, progress.total // LIVE_STEPS)
    systems = _load_live(str(state.home_folder()), benchmark.id, progress.done // step)
    if not systems:
        st.caption("Figures come with the first row that all systems have answered.")
        return
    st.caption(f"So far, on {format_count(len(systems[0].outcomes.rows), 'row')}:")
    draw_table([_build_row(system, LIVE_FIGURES) for system in systems], "benchmark.live")


@st.cache_resource(max_entries=MAX_CACHED, show_spinner=False)
def _load_live(home: str, benchmark_id: str, step: int) -> list[MeasuredSystem]:
    """Return the figures so far, computed once a step: a large benchmark's take seconds."""
    with open_store(Path(home)) as store:
        return _load_systems(store, benchmark_id, LIVE_FIGURES, LIVE_DRAWS)


def _build_row(system: MeasuredSystem, wanted: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"System": system.name, "Rows": len(system.outcomes.rows)}
    for name in wanted:
        row[FIGURE_WORDS[name]] = _format_figure(system.figures.get(name))
    return row


def _format_figure(figure: Figure | None) -> str:
    if figure is None:
        return "–"
    return format_interval(figure["value"], figure.get("low"), figure.get("high"))


def list_system_rows(measured: MeasuredBenchmark) -> list[dict[str, Any]]:
    """Return the table of systems; a figure that no system has is left out."""
    wanted = [name for name in FIGURE_WORDS if any(name in s.figures for s in measured.systems)]
    return [_build_full_row(system, wanted) for system in measured.systems]


def _build_full_row(system: MeasuredSystem, wanted: Sequence[str]) -> dict[str, Any]:
    row, totals = _build_row(system, wanted), system.totals
    done = max(1, totals.done)
    cost = "not known" if totals.unpriced else f"{totals.cost:.4f}"
    used = {
        "Calls a row": f"{totals.calls / done:.1f}",
        "US$ in all": cost,
        "Seconds a row": f"{totals.seconds / done:.2f}",
        "Failed": str(totals.failed),
    }
    return row | (used if system.cell else dict.fromkeys(used, "–"))


def draw_results(benchmark: Benchmark, measured: MeasuredBenchmark) -> None:
    """Draw all results, what to do next first."""
    _draw_next(measured)
    st.subheader("Systems", anchor=False)
    rows = list_system_rows(measured)
    draw_table(rows, "benchmark.systems", column_config=make_column_help(FIGURE_HELP))
    if measured.comparisons:
        st.subheader("Differences", anchor=False)
        draw_table(
            [
                {name: cell for name, cell in _list_cells(one).items() if name not in FILE_COLUMNS}
                for one in measured.comparisons
            ],
            "benchmark.differences",
        )
        st.caption(ABOUT_COMPARISONS)
    figures = _draw_figures(measured)
    st.subheader("By kind of row", anchor=False)
    draw_table(list(break_down(measured.measured)), "benchmark.breakdown")
    st.caption("How often each system is right, with Wilson’s 95% interval.")
    _draw_downloads(benchmark, measured, figures)
    _draw_errors(benchmark, measured)
    _draw_earlier(benchmark, measured)


def _draw_next(measured: MeasuredBenchmark) -> None:
    """Name the best system if it is better by more than chance, and what to do with that."""
    figure = choose_main_figure(measured.systems[0].outcomes)
    best = max(measured.measured, key=lambda one: one.figures.get(figure, {"value": 0.0})["value"])
    ahead = [one for one in measured.comparisons if _is_ahead(best.name, one)]
    if len(ahead) == len(measured.measured) - 1 and ahead:
        words = f"{best.name} is better than all others by more than chance: choose it on Project."
        draw_next_step(escape_markdown(words), "pages/setup/project.py", "Project")
    else:
        draw_next_step(
            "read the errors below, open one as a run to see why, and send those whose label you "
            "doubt to Review. Differences here are within chance."
            if measured.comparisons
            else "read the errors below, and send those whose label you doubt to Review."
        )


def _is_ahead(name: str, one: SystemComparison) -> bool:
    """Return True if the comparison shows that system ahead of the other."""
    if name not in (one.system, one.other) or one.difference is None:
        return False
    return one.difference.low > 0 if name == one.system else one.difference.high < 0


def _list_cells(one: SystemComparison) -> dict[str, str]:
    cells = list_comparison_cells(one)
    return {COMPARISON_WORDS.get(k, k): FIGURE_WORDS.get(v, v) for k, v in cells.items()}


def _draw_figures(measured: MeasuredBenchmark) -> list[go.Figure]:
    """Draw cost against accuracy, then one system's matrix and reliability; return all figures."""
    figures = [_plot_cost(measured)]
    st.plotly_chart(figures[0], key="benchmark.cost", width="stretch")
    names = {system.name: system for system in measured.measured}
    chosen = names[st.selectbox("System", list(names), key="benchmark.system")]
    single = next((s for s in names.values() if s.cell and s.cell.way == SINGLE), chosen)
    left, right = st.columns(2)
    figures += [
        label_matrix_figure(count_labels(chosen.outcomes), "Right answer and what it says"),
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
    figure = choose_main_figure(measured.systems[0].outcomes)
    is_priced = any(one.totals.cost for one in measured.measured)
    points = [
        (
            one.name,
            (one.totals.cost if is_priced else one.totals.seconds) / max(1, one.totals.done),
            tuple(one.figures[figure].values()),
        )
        for one in measured.measured
        if figure in one.figures and not (is_priced and one.totals.unpriced)
    ]
    what = "US$ a row" if is_priced else "seconds a row"
    return cost_accuracy_figure(points, what, FIGURE_WORDS[figure].lower())


def _band(outcomes: Outcomes) -> list[dict[str, float]]:
    answered = outcomes.answered
    return compute_confidence_bands(
        outcomes.wrong[answered], outcomes.p[answered], CONFIDENCE_BAND_EDGES
    )


def count_labels(outcomes: Outcomes) -> dict[str, dict[str, int]]:
    """Return by right answer how often each label was given."""
    golds = [label for label in LABEL_WORDS if any(row.label == label for row in outcomes.rows)]
    counts = {LABEL_WORDS[gold]: dict.fromkeys(LABEL_WORDS.values(), 0) for gold in golds}
    for row, said in zip(outcomes.rows, outcomes.said, strict=True):
        if row.label is not None:
            counts[LABEL_WORDS[row.label]][LABEL_WORDS[said.label]] += 1
    return counts


def _describe_evidence(row: GoldRow) -> str:
    if row.images:
        return "images"
    return "text" if row.documents else "none"


DIMENSIONS: Mapping[str, Callable[[GoldRow], str]] = {
    "Language": lambda row: row.language,
    "Category": lambda row: row.category,
    "Right answer": lambda row: LABEL_WORDS[row.label] if row.label else "",
    "Sources": _describe_evidence,
}


def break_down(systems: Sequence[MeasuredSystem]) -> Iterator[dict[str, Any]]:
    """Yield a line for each value of each dimension that rows differ in, the most frequent first.

    Language and category have a line even if all rows are alike.
    """
    rows = systems[0].outcomes.rows
    right = {system.name: system.outcomes.right for system in systems}
    for name, read in DIMENSIONS.items():
        values = np.array([read(row) for row in rows])
        kinds, counts = np.unique(values, return_counts=True)
        if len(kinds) == 1 and (name != "Language" or not kinds[0]):
            continue
        for kind, count in sorted(zip(kinds, counts, strict=True), key=lambda pair: -pair[1]):
            shares = {
                system: format_wilson_share(WilsonShare(int(own[values == kind].sum()), int(count)))
                for system, own in right.items()
            }
            yield {"By": name, "Kind": str(kind) or "–", "Rows": int(count), **shares}


def _draw_downloads(
    benchmark: Benchmark, measured: MeasuredBenchmark, figures: Sequence[go.Figure]
) -> None:
    files: dict[str, tuple[str, Callable[[], str | bytes]]] = {
        "Figures (HTML)": ("figures.html", partial(write_figures_html, figures)),
        "Systems (CSV)": (
            "systems.csv", partial(_format_table, list_system_rows(measured))
        ),
        "Differences (CSV)": (
            "differences.csv", partial(_format_table, [*map(_list_cells, measured.comparisons)])
        ),
        "Rows (CSV)": ("rows.csv", partial(_format_table, list(_list_answers(measured)))),
        "All (JSON)": ("all.json", partial(_format_json, benchmark, measured)),
    }  # fmt: skip
    with st.container(horizontal=True):
        for label, (ending, make) in files.items():
            name = make_file_name(benchmark.name, benchmark.created_at, ending)
            draw_download(label, make, name, f"benchmark.file.{ending}")


def _format_table(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return format_csv([list(rows[0]), *(list(row.values()) for row in rows)] if rows else [])


def _list_answers(measured: MeasuredBenchmark) -> Iterator[dict[str, Any]]:
    for system in measured.measured:
        for row, said in zip(system.outcomes.rows, system.outcomes.said, strict=True):
            yield {
                "System": system.name, "Row": row.id, "Place": row.place, "Response": row.response,
                "Right answer": row.label, "It says": said.label,
                "p hallucinated": said.p, "Marked": _list_words(row, said), "Why": said.reason,
                "Cause": said.cause, "Seconds": said.seconds,
                "Calls": said.calls, "Tokens": said.tokens, "US$": said.cost,
                "Language": row.language, "Category": row.category,
            }  # fmt: skip


def _format_json(benchmark: Benchmark, measured: MeasuredBenchmark) -> str:
    found = {
        "name": benchmark.name,
        "created_at": benchmark.created_at,
        "repeats": benchmark.repeats,
        "spec": json.loads(benchmark.spec),
        "card": benchmark.card,
        "versions": count_versions(benchmark),
        "systems": [
            {
                "system": one.name,
                "rows": len(one.outcomes.rows),
                "figures": one.figures,
                **asdict(one.totals),
            }
            for one in measured.systems
        ],
        "comparisons": [asdict(one) for one in measured.comparisons],
        "answers": list(_list_answers(measured)),
    }
    return json.dumps(found, ensure_ascii=False, indent=1)


def _draw_errors(benchmark: Benchmark, measured: MeasuredBenchmark) -> None:
    """Draw the answers of one kind of the chosen system, and what can be done with them."""
    st.subheader("Errors", anchor=False)
    chosen = str(st.session_state.get("benchmark.system") or "")
    system = next((s for s in measured.measured if s.name == chosen), measured.measured[0])
    outcomes = system.outcomes
    kinds = _sort_by_kind(outcomes)
    kind = st.segmented_control(
        f"Answers of {system.name}",
        list(KINDS),
        default=KINDS[0],
        format_func=lambda kind: f"{kind} ({len(kinds[kind]):,})",
        key="benchmark.kind",
        required=True,
    )
    places = kinds[kind][:MAX_SHOWN_ROWS]
    _draw_sent(benchmark.id)
    if not places:
        st.caption("There are none.")
        return
    event = st.dataframe(
        [_build_error_row(outcomes.rows[n], outcomes.said[n]) for n in places],
        key=f"benchmark.errors.{chosen}.{kind}",
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        height="content" if len(places) < 10 else CHOSEN_HEIGHT,
    )
    if len(kinds[kind]) > MAX_SHOWN_ROWS:
        st.caption(f"The first {MAX_SHOWN_ROWS}; Rows (CSV) has all.")
    picked = [places[n] for n in event["selection"]["rows"] if n < len(places)]
    if not picked:
        st.caption("Choose rows to read one, open it as a run, or send them to Review.")
        return
    _draw_row(outcomes.rows[picked[0]], outcomes.said[picked[0]])
    if not has_role("lead", "open rows as runs and send them to review",
                    project_id=benchmark.project_id):  # fmt: skip
        return
    rows = [outcomes.rows[n] for n in picked]
    with st.container(horizontal=True):
        if system.cell and st.button(
            "Open as a run", key="benchmark.open", icon=":material/open_in_new:",
            help="Checks it in this project by the same system, unless that was done before.",
        ):  # fmt: skip
            with show_problems():
                _open_as_run(benchmark, rows[0], system.cell)
        words = f"Send {format_count(len(rows), 'row')} to Review"
        draw_button(words, "benchmark.send", _send, benchmark, rows, kind, icon="checklist")
    if system.cell:
        draw_roster_keys([system.cell.roster], "benchmark.open")


def _sort_by_kind(outcomes: Outcomes) -> dict[str, list[int]]:
    kinds: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for n, (said, is_right) in enumerate(zip(outcomes.said, outcomes.right, strict=True)):
        if said.is_failure:
            kinds["Failed"].append(n)
        elif is_right:
            kinds["Right"].append(n)
        else:
            kinds["Unclear" if said.label == "unclear" else "Wrong"].append(n)
    return kinds


def _explain(said: Prediction) -> str:
    """Return why it could not say more, else how the judge's text begins."""
    cause, _, more = said.cause.partition(": ")
    return more or CAUSE_WORDS.get(cause, cause) or strip_verdict_line(said.reason)


def _build_error_row(row: GoldRow, said: Prediction) -> dict[str, Any]:
    return {
        "Response": clip_text(row.response, 160),
        "Right answer": format_label(row.label),
        "It says": format_label(said.label),
        "p": format_probability(said.p),
        "Why": clip_text(_explain(said) or _list_words(row, said), 120),
        "Language": row.language,
        "Category": row.category,
    }


def _list_words(row: GoldRow, said: Prediction) -> str:
    """Return the words that it marked in the response."""
    return "; ".join(f"“{row.response[span.start : span.end]}”" for span in said.shown)


def _draw_row(row: GoldRow, said: Prediction) -> None:
    with st.container(border=True):
        if row.question:
            st.markdown(f"**Question:** {escape_markdown(row.question)}")
        st.markdown(f"**Response:** {escape_markdown(row.response)}")
        p = f" (p {said.p:.2f})" if said.p is not None else ""
        st.markdown(
            f"**Right answer:** {format_label(row.label)} · **It says:** "
            f"{format_label(said.label)}{p}"
        )
        if why := _explain(said):
            st.markdown(f"**Why:** {escape_markdown(why)}")
        if marked := _list_words(row, said):
            st.markdown(f"**It marked:** {escape_markdown(marked)}")
        for number, text in enumerate(row.documents, start=1):
            with st.expander(f"Source {number}", expanded=len(row.documents) == 1):
                st.text(text)
        st.caption(escape_markdown(row.place))


def _open_as_run(benchmark: Benchmark, row: GoldRow, cell: BenchmarkCell) -> None:
    """Open a run over the row by the same system, made now if there is none."""
    with state.open_store() as store:
        person = state.require_role(store, benchmark.project_id, "lead", "open a row as a run")
        project = store.projects.get(benchmark.project_id)
        if project is None:
            return
        now = time.time()
        case = store_rows_as_cases(store, state.home_folder(), project, [row], person, now)[0]
        runs = store.runs.of_case(case.id, now, store.projects.settings().lease_seconds)
    found = next(
        (
            run.id
            for run in runs
            if run.status in ("queued", "running", "finished")
            and (run.plan.roster, run.plan.protocol, run.plan.options, run.plan.classifier)
            == (cell.plan.roster, cell.plan.protocol, cell.plan.options, cell.plan.classifier)
        ),
        None,
    )
    open_run(
        found or state.get_jobs().start(case, cell.plan, by=person, typed=state.get_typed_keys())
    )


def _send(benchmark: Benchmark, rows: Sequence[GoldRow], kind: str) -> None:
    with store_problem("benchmark.sent.problem"), state.open_store() as store:
        person = state.require_role(store, benchmark.project_id, "lead", "send rows to review")
        project = store.projects.get(benchmark.project_id)
        if project is not None:
            cases = send_rows_to_review(
                store, state.home_folder(), project, rows, person, time.time(),
                build_queue_rules(project), REASONS_BY_KIND[kind],
            )  # fmt: skip
            st.session_state[SENT] = (benchmark.id, [case.id for case in cases])


def _draw_sent(benchmark_id: str) -> None:
    show_problem("benchmark.sent.problem")
    sent_from, case_ids = st.session_state.get(SENT, ("", []))
    if sent_from == benchmark_id:
        words = (
            f"{format_count(len(case_ids), 'row')} in the review queue, without the set’s label."
        )
        st.success(words, icon=":material/check_circle:")
        with st.container(horizontal=True):
            draw_link(LABEL_PAGE, "Label it now", "rate_review", case=case_ids[0])
            draw_link(QUEUE_PAGE, "Review", "checklist")


def _draw_earlier(benchmark: Benchmark, measured: MeasuredBenchmark) -> None:
    """Draw the choice of another benchmark, and the difference on the rows that both have."""
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        found = store.benchmarks.of_project(benchmark.project_id, time.time(), lease)
    others = {one.id: one for one in found if one.id != benchmark.id and one.started_at}
    if not others:
        return
    st.subheader("Beside another result", anchor=False)
    ids = ["", *list(others)[:MAX_COMPARED]]
    if benchmark.repeats in others and benchmark.repeats not in ids:
        ids.append(benchmark.repeats)
    chosen = st.selectbox(
        "Compare with",
        ids,
        index=ids.index(benchmark.repeats) if benchmark.repeats in ids else 0,
        format_func=lambda own: (
            f"{others[own].name} · {format_time(others[own].created_at)}" if own else "–"
        ),
        key=f"benchmark.earlier.{benchmark.id}",
    )
    if not chosen:
        return
    other = others[chosen]
    compared = _compare_with(str(state.home_folder()), benchmark.id, chosen,
                             (benchmark.finished_at, other.finished_at))  # fmt: skip
    if not compared:
        st.info("No system has answered the same rows there.")
        return
    draw_table(compared, "benchmark.earlier.table")
    changes = [name for name in ("code", "engines", "prompts", "dataset_sha256")
               if list_conditions(benchmark, [name]) != list_conditions(other, [name])]  # fmt: skip
    words = f"Changed between them: {', '.join(changes).replace('dataset_sha256', 'rows')}."
    st.caption(words if changes else "Code, engines, prompts and rows are the same in both.")


@st.cache_resource(max_entries=MAX_CACHED, show_spinner="Comparing…")
def _compare_with(
    home: str, benchmark_id: str, other_id: str, mark: tuple[object, ...]
) -> list[dict[str, Any]]:
    """Return a line for each system that both measured, over the rows that they share."""
    lines = []
    with open_store(Path(home)) as store:
        found = [store.benchmarks.get(own, time.time(), 0.0) for own in (benchmark_id, other_id)]
        now, then = (read_spec(one).cells if one else () for one in found)
        for number, cell in enumerate(now):
            place = next(
                (
                    n
                    for n, one in enumerate(then)
                    if (one.roster, one.way) == (cell.roster, cell.way)
                ),
                None,
            )
            if place is None:
                continue
            own, before = match_outcomes(
                load_outcomes(store, benchmark_id, number), load_outcomes(store, other_id, place)
            )
            if not own.rows:
                continue
            before = Outcomes(own.rows, before.said)  # by the labels that count now
            figure = choose_main_figure(own)
            one = compare_systems({"now": own, "then": before}, figure, seed=FIGURE_SEED)[0]
            cells = _list_cells(one)
            lines.append(
                {
                    "System": format_cell(cell.roster, cell.way),
                    "Rows": one.rows,
                    "Here": f"{_value(own, figure):.2f}",
                    "There": f"{_value(before, figure):.2f}",
                    **{k: v for k, v in cells.items() if k not in ("System", "Against")},
                }
            )
    return lines


def _value(outcomes: Outcomes, figure: str) -> float:
    measure = build_measures(outcomes)[figure]
    return float(measure(np.ones((1, len(outcomes.rows))))[0])
