"""Benchmarks: what to measure with its expected cost, and a benchmark while it is under way.

A benchmark runs in a thread of the server, which the page only watches: a click, a reload or a
closed tab stops nothing. One whose server was restarted stands as paused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from components.app import state
from components.app.frame import draw_not_found, has_role
from components.check.roster_choice import (
    draw_caps,
    draw_roster_keys,
    estimate_use,
    list_offered_protocols,
    list_roster_labels,
)
from components.measure.benchmark_results import (
    draw_live_figures,
    draw_results,
    format_system,
    load_measured,
)
from components.measure.summary import draw_next_step
from components.setup.column_choice import ColumnChoice
from components.widgets.controls import (
    draw_button,
    draw_link,
    show_problem,
    show_problems,
    store_problem,
)
from components.widgets.wording import (
    clip_text,
    escape_markdown,
    format_count,
    format_duration,
    format_protocol,
    format_roster,
    format_time,
)
from core.evaluation.benchmark_rows import (
    LibraryFiles,
    RowSource,
    load_decided_rows,
    map_labelled_rows,
)
from core.evaluation.benchmarks import (
    RUN_WORDS,
    BenchmarkCell,
    BenchmarkProgress,
    BenchmarkSpec,
    change_caps,
    count_versions,
    create_benchmark,
    load_progress,
    plan_cells,
    read_spec,
    repeat_benchmark,
    request_wish,
    start_benchmark,
)
from core.evaluation.dataset_files import PARTS_BY_SPLIT, GoldRow
from core.evaluation.datasets import DATASET_NAMES, get_task_rule, list_tasks
from core.evaluation.evaluate import (
    EvaluationRequest,
    get_way,
    load_labelled_rows,
    sample_rows,
)
from core.evaluation.protocols import SINGLE_JUDGE_WAY
from core.evaluation.runner import RunnerOptions
from core.exchange.column_mapping import ColumnMapping, FileTable, read_file_table
from core.exchange.file_decoding import MAX_FILE_MEGABYTES
from core.llm.limits import format_dollars
from core.pipeline.cost_estimate import estimate_duration
from core.pipeline.run_factory import require_keys
from core.review.people import can_see_answers
from core.runtime.errors import InputError
from core.schema.records import Project
from core.store import Store, open_store
from core.store.benchmarks import Benchmark, BenchmarkWish

LIST_PAGE, PAGE = "pages/measure/benchmarks.py", "pages/measure/benchmark.py"
SOURCE_WORDS = {
    "project": "Cases decided here",
    "file": "A file of yours",
    "set": "A public set on this machine",
}
STATUS_WORDS = {
    "queued": "Not started",
    "running": "Running",
    "paused": "Paused",
    "finished": "Finished",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "interrupted": "Paused",
}
EVERY_PART = "all rows"
DEFAULT_SAMPLE, MAX_SEED = 200, 1_000_000
ESTIMATED_ROWS = 40  # whose calls are estimated; the others count as their mean
POLL_SECONDS = 1.0
MAX_PROBLEMS = 5
MAX_CACHED = 4  # files, sets
CAP_LABEL = "Spend at most, US cents"
ABOUT_CAPS = "0: no cap. At a cap the benchmark pauses, and can be resumed with a higher one."
ABOUT_CREATE = "To be started from its page, or on other machines by the command that stands there."
ABOUT_AGAIN = (
    "The same rows, models, protocols, seed and caps, with the prompts, classifier, settings and "
    "learned marks of today, as a new benchmark that is laid beside this one. Each call is sent "
    "anew."
)
NO_CATEGORY = ""
Rows = tuple[GoldRow, ...]


def draw_benchmarks() -> None:
    """Draw a line for each benchmark of the project, the newest first."""
    with state.open_store() as store:
        project, lease = state.get_project(store), store.projects.settings().lease_seconds
        benchmarks = store.benchmarks.of_project(project.id, time.time(), lease)
    if not benchmarks:
        draw_next_step("choose labelled cases and what to measure on them; figures come with 95% "
                       "intervals and stay here.")  # fmt: skip
        return
    st.subheader("Measured so far", anchor=False)
    for one in benchmarks:
        again = " · again" if one.repeats else ""
        source = describe_source(read_spec(one).source)
        words = f"{clip_text(one.name, 60)}{again} · "
        words += f"{source} · " if source != one.name else ""
        status = "running" if is_under_way(one) else one.status
        words += f"{STATUS_WORDS[status]} · {format_time(one.created_at)} · {one.author}"
        draw_link(PAGE, escape_markdown(words), "leaderboard", benchmark=one.id)


def describe_source(source: RowSource) -> str:
    """Return where rows are from: “fever_symmetric dev20”, “decided cases”."""
    if source.kind == "project":
        return "decided cases"
    return " ".join(word for word in (source.name, source.task, source.split) if word)


def draw_new_benchmark() -> None:
    """Draw the choice of cases and of what to measure, what it will cost, and its button."""
    st.subheader("New benchmark", anchor=False)
    if not has_role("lead", RUN_WORDS):
        return
    with state.open_store() as store:
        project = state.get_project(store)
    with show_problems():
        found = _draw_source(project)
        if found is not None:
            _draw_plan(project, *found)


def _draw_source(project: Project) -> tuple[RowSource, Rows] | None:
    """Draw where the rows come from; return them, or None while something is missing."""
    kind = st.segmented_control(
        "Labelled cases",
        list(SOURCE_WORDS),
        default="file",
        format_func=SOURCE_WORDS.__getitem__,
        key="benchmark.source",
        required=True,
    )
    if kind == "file":
        return _draw_file(project)
    if kind == "set":
        return _draw_set()
    marks = (_list_library(project.id), state.get_answers_mark())
    found, unread = _load_decided(str(state.home_folder()), project.id, marks)
    if unread:
        words = f"{format_count(unread, 'decided case')} left out: a source is not read, or gone."
        st.caption(f":material/warning: {words}")
        draw_link("pages/setup/library.py", "Library", "folder")
    elif not found:
        st.info("No case of this project is decided yet: answer some on Review first.")
        draw_link("pages/review/pending.py", "Review", "checklist")
    source = RowSource("project", project.name, sampled_from=len(found), unread=unread)
    return (source, tuple(found)) if found else None


def _list_library(project_id: str) -> list[tuple[str, str, str]]:
    with state.open_store() as store:
        return [(one.name, one.id, one.status) for one in store.library.all(project_id)]


@st.cache_resource(max_entries=MAX_CACHED, show_spinner="Reading the decided cases…")
def _load_decided(home: str, project_id: str, marks: Any) -> tuple[list[GoldRow], int]:
    with open_store(Path(home)) as store:
        return load_decided_rows(store, Path(home), project_id)


def _draw_file(project: Project) -> tuple[RowSource, Rows] | None:
    upload = st.file_uploader(
        "Table with a label for each response (CSV, TSV, JSON or JSONL)",
        key="benchmark.file",
        max_upload_size=MAX_FILE_MEGABYTES,
    )
    if upload is None:
        return None
    table = _read_table(upload.file_id, upload.name, upload)
    mapping = ColumnChoice().draw(table)
    if mapping is None:
        return None
    if "label" not in mapping.columns:
        st.info("Choose the column that holds the labels: without them nothing can be measured.")
        return None
    used = set(mapping.columns.values())
    others = [NO_CATEGORY, *(name for name in table.columns if name not in used)]
    category = NO_CATEGORY
    if len(others) > 1:
        category = st.selectbox(
            "Category, to break figures down by",
            others,
            format_func=lambda name: name or "–",
            key=f"benchmark.category.{upload.file_id}",
        )
    key = f"{project.id} {_list_library(project.id)} {mapping!r} {category}"
    rows, problems = _map(upload.file_id, key, upload.name, table, mapping, category, project.id)
    for problem in problems[:MAX_PROBLEMS]:
        words = f"Row {problem.place} is left out: {problem.reason}"
        st.caption(f":material/warning: {escape_markdown(words)}")
    if len(problems) > MAX_PROBLEMS:
        st.caption(f"and {len(problems) - MAX_PROBLEMS:,} more rows.")
    if not rows:
        raise InputError("Expected rows with a label, found none; choose other columns.")
    source = RowSource("file", upload.name, sampled_from=len(rows), unread=len(problems))
    return source, rows


@st.cache_resource(max_entries=MAX_CACHED, show_spinner="Reading the file…")
def _read_table(file_id: str, name: str, _upload: UploadedFile) -> FileTable:
    return read_file_table(name, _upload.getvalue())


@st.cache_resource(max_entries=MAX_CACHED, show_spinner="Reading the file…")
def _map(
    file_id: str,
    key: str,
    name: str,
    _table: FileTable,
    _mapping: ColumnMapping,
    category: str,
    project_id: str,
) -> tuple[Rows, list[Any]]:
    with state.open_store() as store:
        files = LibraryFiles(store, state.home_folder(), project_id)
        rows, problems = map_labelled_rows(_table, _mapping, name, files, category)
    return tuple(rows), problems


def draw_sets_folder(key: str) -> Path | None:
    """Draw the field for the folder of public sets; None while it is empty."""
    typed = st.text_input(
        "Folder that holds the sets’ folders",
        key=key,
        placeholder="/data/sets",
        persist_state="session",
        help="On the machine that this server runs on. A set’s name is its folder’s name.",
    )
    return Path(typed.strip()).expanduser() if (typed or "").strip() else None


def _draw_set() -> tuple[RowSource, Rows] | None:
    folder = draw_sets_folder("benchmark.folder")
    if folder is None:
        return None
    names = [name for name in DATASET_NAMES if (folder / name).is_dir()]
    if not names:
        raise InputError(
            f"Expected a folder with public sets at {folder}, found none; their names are those of "
            "“python -m core.evaluation.datasets”."
        )
    columns = st.columns(3)
    name = columns[0].selectbox("Set", names, key="benchmark.set")
    tasks = [task for task in list_tasks(name) if not get_task_rule(name, task).is_recorded]
    if not tasks:
        raise InputError(f"{name} holds recorded verdicts, which no engine is run on.")
    task = columns[1].selectbox(
        "Task", tasks, key=f"benchmark.task.{name}", format_func=lambda task: task or "the only one"
    )
    parts = [EVERY_PART, *PARTS_BY_SPLIT]
    part = columns[2].selectbox("Part", parts, key="benchmark.part")
    rule = get_task_rule(name, task)
    st.caption(escape_markdown(f"A row is {rule.unit}. {rule.labels}. Licence: {rule.licence}."))
    split = "" if part == EVERY_PART else part
    rows = _load_set(str(folder), name, task, split)
    return RowSource("set", name, task, split, sampled_from=len(rows)), rows


@st.cache_resource(max_entries=MAX_CACHED, show_spinner="Reading the set…")
def _load_set(folder: str, name: str, task: str, split: str) -> Rows:
    order = EvaluationRequest(name, Path(folder), task or None, split or None)
    return tuple(load_labelled_rows(order))


def _draw_plan(project: Project, source: RowSource, all_rows: Rows) -> None:
    """Draw sample, models and protocols, what is expected, and the button."""
    counts = {label: sum(row.label == label for row in all_rows) for label in
              ("supported", "hallucinated", "unclear")}  # fmt: skip
    shares = ", ".join(f"{count:,} {label}" for label, count in counts.items() if count)
    st.markdown(f"**{format_count(len(all_rows), 'labelled row')}**: {shares}")
    left, middle, right = st.columns(3)
    key = f"{source.kind}.{source.name}.{len(all_rows)}"
    most = min(DEFAULT_SAMPLE, len(all_rows))
    limit = left.number_input(
        "Rows to measure", 1, len(all_rows), most, key=f"benchmark.limit.{key}",
        help="A sample in which each label has its share.",
    )  # fmt: skip
    seed = middle.number_input(
        "Seed of the sample", 0, MAX_SEED, 0, key="benchmark.seed",
        help="With the same seed the same rows are drawn again.",
    )  # fmt: skip
    default = "Decided cases" if source.kind == "project" else describe_source(source)
    name = right.text_input("Name", key="benchmark.name", placeholder=default, max_chars=80)
    labels = list_roster_labels()
    rosters = st.multiselect(
        "Models", list(labels), default=[project.roster] if project.roster in labels else None,
        format_func=lambda name: format_roster(name, short=True), key="benchmark.rosters",
    )  # fmt: skip
    draw_roster_keys(rosters, "benchmark")
    offered = list_offered_protocols(rosters, "benchmark.protocols")
    protocols = st.multiselect(
        "How to check",
        offered,
        default=[name for name in (SINGLE_JUDGE_WAY.name, project.protocol) if name in offered],
        format_func=lambda name: format_protocol(name, short=True),
        key="benchmark.protocols",
        help="Each is measured with each of the models. Keep the single judge: it is the baseline.",
    )
    if not rosters or not protocols:
        st.info("Choose models and how to check.")
        return
    cells, refused = plan_cells(
        state.home_folder(), project.id, rosters, list(map(get_way, protocols)), state.get_keys()
    )
    for one in refused:
        words = f"{format_system(one.roster, one.way)} is left out: {one.why}"
        st.warning(escape_markdown(words), icon=":material/warning:")
    if not cells:
        return
    rows = sample_rows(all_rows, limit, seed)
    caps = (0, 0)
    if _draw_expectation(rows, cells):
        caps = draw_caps("benchmark", CAP_LABEL, caps, help=ABOUT_CAPS)
    spec = BenchmarkSpec(source, tuple(cells), seed, *caps)
    words = f"Measure {format_count(len(cells), 'system')} on {format_count(len(rows), 'row')}"
    with st.container(horizontal=True):
        is_started = st.button(
            words, key="benchmark.start", type="primary", icon=":material/play_arrow:"
        )
        is_created = st.button("Create without starting", key="benchmark.create", help=ABOUT_CREATE)
    if is_started or is_created:
        _create(spec, rows, (name or "").strip() or default, is_started=is_started)


def _draw_expectation(rows: Sequence[GoldRow], cells: Sequence[BenchmarkCell]) -> bool:
    """Draw expected calls, cost and time; return True if a language model is called.

    What some of the rows take stands for all.
    """
    some = rows[:: -(-len(rows) // ESTIMATED_ROWS)]
    asked = [(row.response, row.question) for row in some]
    length = sum(len(row.response) for row in some) // len(some)
    seconds, scale = 0.0, len(rows) / len(some)
    with state.open_store() as store:
        workers = store.projects.settings().workers
        uses = [use for cell in cells if (use := estimate_use(store, [], asked, cell.plan))]
        for cell in cells:
            usual, _ = estimate_duration(store, [], length, cell.plan.roster, cell.plan.protocol)
            seconds += usual * len(rows) / workers
    seconds += scale * sum(use.likely.seconds for use in uses) / workers
    calls = round(scale * sum(use.likely.calls for use in uses))
    cost, most = (
        format_dollars(scale * sum(getattr(use, kind).cost for use in uses))
        for kind in ("likely", "most")
    )
    unpriced = dict.fromkeys(name for use in uses for name in use.unpriced)
    price = f"about {cost}, at most {most}" if any(use.most.cost for use in uses) else "no cost"
    if unpriced:
        price = f"{price}, besides {', '.join(unpriced)} of unknown price"
    used = f"{calls:,} calls of language models" if uses else "no language model"
    words = f"Expected: {used} · {price} · {format_duration(seconds)}"
    st.markdown(escape_markdown(words))
    return bool(uses)


def _create(spec: BenchmarkSpec, rows: Sequence[GoldRow], name: str, *, is_started: bool) -> None:
    with state.open_store() as store:
        project = state.get_project(store)
        person = state.require_role(store, project.id, "lead", RUN_WORDS)
        benchmark_id = create_benchmark(store, project.id, spec, rows, name=name, author=person)
        if is_started:
            _start(store, benchmark_id, person)
    st.switch_page(PAGE, query_params={"benchmark": benchmark_id})


@st.cache_resource
def _list_starts() -> dict[str, tuple[float, threading.Thread]]:
    """Return when and on which thread this server started each benchmark last."""
    return {}


def _start(store: Store, benchmark_id: str, person: str) -> None:
    workers = RunnerOptions(store.projects.settings().workers)
    thread = start_benchmark(state.home_folder(), benchmark_id, person, state.get_keys(), workers)
    _list_starts()[benchmark_id] = time.time(), thread


def draw_benchmark(benchmark_id: str) -> None:
    """Draw one benchmark: how far it is, what can be done, and its results."""
    draw_link(LIST_PAGE, "All benchmarks", "leaderboard")
    with state.open_store() as store:
        benchmark = _load_visible(store, benchmark_id)
        if benchmark is not None:
            progress = load_progress(store, benchmark, time.time())
    if benchmark is None:
        draw_not_found("There is no benchmark at this link here.", LIST_PAGE)
        return
    spec = read_spec(benchmark)
    origin = f"{format_time(benchmark.created_at)} · {escape_markdown(benchmark.author)}"
    rows = progress.total // len(spec.cells)
    source = describe_source(spec.source)
    words = "" if source == benchmark.name else f"{escape_markdown(source)}, "
    words += format_count(rows, "row")
    if rows < spec.source.sampled_from:
        words += f" of {spec.source.sampled_from:,}, seed {spec.seed}"
    if spec.source.unread:
        words += f", {spec.source.unread:,} more left out"
    st.markdown(f"**{escape_markdown(benchmark.name)}** · {words} · {origin}")
    show_problem("benchmark.problem")
    if is_under_way(benchmark):
        _follow(benchmark.id)
        return
    _draw_end(benchmark, progress)
    if (versions := count_versions(benchmark)) > 1:
        st.warning(
            f"Measured under {versions} versions of code, models or prompts, as it was resumed "
            "after a change: run it again for figures of one. “All (JSON)” has each."
        )
    with st.spinner("Computing the figures…"):
        measured = load_measured(benchmark.id, progress.cells)
    if measured is not None:
        draw_results(benchmark, measured)


def _load_visible(store: Store, benchmark_id: str) -> Benchmark | None:
    lease = store.projects.settings().lease_seconds
    one = store.benchmarks.get(benchmark_id, time.time(), lease)
    if one is None or not state.can_see_project(store, one.project_id):
        return None
    person = state.get_person(store)
    return one if can_see_answers(store, one.project_id, person, is_settling=True) else None


def is_under_way(benchmark: Benchmark) -> bool:
    """Return True if the benchmark runs, or its thread here is about to run it."""
    at, thread = _list_starts().get(benchmark.id, (0.0, None))
    is_starting = thread is not None and thread.is_alive() and (benchmark.finished_at or 0.0) < at
    return benchmark.status == "running" or is_starting


@st.fragment(run_every=POLL_SECONDS)
def _follow(benchmark_id: str) -> None:
    """Draw progress and the figures so far, anew each second."""
    with state.open_store() as store:
        benchmark = _load_visible(store, benchmark_id)
        if benchmark is None or not is_under_way(benchmark):
            st.rerun()
            return
        progress = load_progress(store, benchmark, time.time())
    st.progress(progress.done / progress.total, text=_describe_progress(progress))
    wish = benchmark.wish
    if has_role("lead", RUN_WORDS, project_id=benchmark.project_id):
        with st.container(horizontal=True):
            for name, label in (("pause", "Pause"), ("cancel", "Cancel")):
                draw_button(
                    label, f"benchmark.{name}", _wish, benchmark_id, name,
                    icon="stop" if name == "cancel" else name, disabled=wish in (name, "cancel"),
                )  # fmt: skip
    if wish:
        st.caption("The rows under way are finished first." if wish == "pause" else "Cancelling…")
    st.caption("It goes on when you leave or close this page.")
    draw_live_figures(benchmark, progress)


def _describe_progress(progress: BenchmarkProgress) -> str:
    left = progress.seconds_left
    words = "" if left is None else f" · about {format_duration(left)} left"
    return escape_markdown(progress.words + words)


def _wish(benchmark_id: str, wish: BenchmarkWish) -> None:
    with store_problem("benchmark.problem"), state.open_store() as store:
        benchmark = _load_visible(store, benchmark_id)
        if benchmark is not None:
            request_wish(store, benchmark, state.get_person(store), wish)


def _draw_status(benchmark: Benchmark, so_far: str, *, has_failures: bool) -> None:
    why = escape_markdown(benchmark.message)
    match benchmark.status:
        case "finished" if has_failures:
            st.warning(f"{why} They count as wrong until they are tried again. {so_far}")
        case "finished":
            st.caption(f":material/check_circle: Finished: {so_far}")
        case "failed":
            st.error(f"Failed: {why} What was measured is kept. {so_far}")
        case "cancelled":
            st.info(f"Cancelled. What was measured is kept. {so_far}")
        case "queued":
            st.info("Not started yet.")
        case "interrupted":
            st.info(f"Paused: the server was stopped meanwhile. {so_far}")
        case _:
            st.info(f"Paused. {why} {so_far}")


def _draw_end(benchmark: Benchmark, progress: BenchmarkProgress) -> None:
    """Draw how the benchmark ended, and the buttons that go on with it or run it again."""
    left = progress.total - progress.done + progress.failed
    _draw_status(benchmark, _describe_progress(progress), has_failures=bool(left))
    is_open = left or benchmark.status != "finished"  # it may have been killed after its last row
    if not has_role("lead", RUN_WORDS if is_open else "", project_id=benchmark.project_id):
        return
    spec = read_spec(benchmark)
    draw_roster_keys([cell.roster for cell in spec.cells], "benchmark")
    caps = (spec.cent_cap, spec.token_cap)
    if is_open and (any(caps) or any(cell.plan.sheet for cell in spec.cells)):
        draw_caps(f"benchmark.{benchmark.id}", CAP_LABEL, caps, help=ABOUT_CAPS)
    verbs = {"finished": "Try the failed rows again", "queued": "Start"}
    words = verbs.get(benchmark.status, "Resume")
    with st.container(horizontal=True):
        if is_open:
            draw_button(
                f"{words} ({left:,} to go)", "benchmark.resume", _resume, benchmark.id,
                icon="resume", type="primary",
            )  # fmt: skip
        is_again = benchmark.started_at and st.button(
            "Run again", key="benchmark.again", icon=":material/replay:", help=ABOUT_AGAIN
        )
    if is_open:
        st.caption(f"On other machines: `python -m core benchmark run {benchmark.id}`")
    if is_again:
        with show_problems(), state.open_store() as store:
            person = state.require_role(store, benchmark.project_id, "lead", RUN_WORDS)
            again = repeat_benchmark(
                store, state.home_folder(), benchmark, person, state.get_keys()
            )
            _start(store, again, person)
            st.switch_page(PAGE, query_params={"benchmark": again})


def _resume(benchmark_id: str) -> None:
    with store_problem("benchmark.problem"), state.open_store() as store:
        benchmark = _load_visible(store, benchmark_id)
        if benchmark is None:
            return
        person = state.require_role(store, benchmark.project_id, "lead", RUN_WORDS)
        spec = read_spec(benchmark)
        for cell in spec.cells:
            require_keys(cell.plan, state.get_keys())
        cents, tokens = (
            st.session_state.get(f"benchmark.{benchmark_id}.{unit}", cap)
            for unit, cap in (("cents", spec.cent_cap), ("tokens", spec.token_cap))
        )
        change_caps(store, benchmark, person, cent_cap=cents, token_cap=tokens)
        _start(store, benchmark_id, person)
