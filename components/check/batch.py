"""Batch check: a new table of claims and its start, earlier tables, one table's results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.check.new_check import (
    draw_language_gaps,
    draw_library_choice,
    draw_sources,
    draw_uploader,
    get_project_roster,
    list_unread,
    split_sources,
)
from components.check.roster_choice import (
    build_plan,
    describe_expectation,
    draw_protocol_choice,
    draw_protocol_options,
    draw_roster_choice,
    draw_roster_keys,
    get_default_options,
    load_library_entries,
)
from components.run.run_view import ACTIVE_STATUSES, POLL_MANY_SECONDS, stop_runs
from components.setup.settings import draw_plan_keys
from components.widgets import drafts
from components.widgets.controls import (
    LINK_PARAMETERS,
    draw_button,
    draw_choice_table,
    draw_download,
    draw_link,
    draw_table,
    open_run,
    show_problem,
    store_problem,
)
from components.widgets.html import strip_verdict_line
from components.widgets.wording import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clip_text,
    escape_markdown,
    format_label,
    format_probability,
    format_roster,
    format_rows,
    format_status,
    format_time,
    make_file_name,
)
from core.baseline.wording import format_count
from core.pipeline.batch_check import (
    ClaimRow,
    RunFindings,
    find_problems,
    format_results_csv,
    list_missing_files,
    list_other_columns,
    load_batch_results,
    read_claims,
    resume_batch,
    start_batch,
    summarize_run,
)
from core.review.people import withhold_verdicts
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.records import Plan, Run
from core.schema.run_state import can_resume
from core.store import Store
from core.store.cases import Batch, BatchRow

MAX_PROBLEMS = 3
MAX_OTHER_COLUMNS = 6  # further columns of the table that are shown; the CSV has all
PAGE_KEY = "many"
PREVIEW_ROWS = 10
ROW_HEIGHT = 76  # pixels: four lines of text
MAX_CACHED_FINDINGS = 10_000  # runs
MAX_SHOWN_ROWS = 8  # more of them scroll within the table
# The cells of a table under way grow, but its columns keep the width of the first ones.
COLUMN_WIDTHS = {
    "Row": 45, "Verdict": 112, "Claim": 210, "Marked words": 95, "The source says": 170,
    "Reason": 190, "p": 50, "Status": 140, "Sources": 140, "Link": 60,
    "Why it cannot be checked": 420,
}  # fmt: skip
BatchResults = Sequence[tuple[BatchRow, Run | None]]


def draw_batches() -> None:
    """Draw links to the tables that were checked before."""
    with state.open_store() as store:
        batches = store.batches.all(state.get_project(store).id)
    if batches:
        st.subheader("Earlier tables", anchor=False)
    for batch in batches:
        words = f"{format_time(batch.created_at)} · {clip_text(batch.name, 60)} · {batch.author}"
        draw_link("pages/check/table.py", escape_markdown(words), "table_rows", batch=batch.id)


def draw_batch(batch_id: str) -> None:
    """Draw one table's results, refreshed while rows are being checked."""
    with state.open_store() as store:
        batch = _load_visible_batch(store, batch_id)
        rows = _load_results(store, batch) if batch else []
        findings = _load_findings(store, rows)
    draw_link("pages/check/batch.py", "All tables", "arrow_back")
    if batch is None:
        st.info("There is no table at this link here.")
        return
    roster = escape_markdown(format_roster(batch.plan.roster, short=True))
    origin = f"{format_time(batch.created_at)} · {escape_markdown(batch.author)}"
    st.markdown(f"**{escape_markdown(batch.name)}** · {origin} · {roster}")
    if any(run is not None and run.status in ACTIVE_STATUSES for _, run in rows):
        _follow(batch)
    else:
        st.caption(_count_rows(rows))
        _draw_results(batch, rows, findings, finished=True)
        unfinished = sum(
            bool(row.case_id) and (run is None or can_resume(run)) for row, run in rows
        )
        if unfinished and has_role("annotator", project_id=batch.project_id):
            draw_plan_keys(batch.plan, "many")
            words = f"Check the {unfinished} that are open"
            draw_button(words, "many.resume", _resume, batch.id, icon="resume")
            show_problem("many.resume.problem")


def _load_visible_batch(store: Store, batch_id: str) -> Batch | None:
    batch = store.batches.get(batch_id)
    return batch if batch is not None and state.can_see_project(store, batch.project_id) else None


def _load_results(store: Store, batch: Batch) -> BatchResults:
    """Return the rows with their runs, without the verdicts that the person may not see yet."""
    rows, person = load_batch_results(store, batch.id), state.get_person(store)
    runs = [run for _, run in rows if run is not None]
    shown = {run.id: run for run in withhold_verdicts(store, batch.project_id, person, runs)}
    return [(row, run and shown[run.id]) for row, run in rows]


def draw_neighbours(batch_id: str, run_id: str) -> None:
    """Draw on a run's page links to the table it was opened from and to the rows around it."""
    with state.open_store() as store:
        rows = store.batches.rows(batch_id) if _load_visible_batch(store, batch_id) else []
    checked = [row for row in rows if row.run_id]
    index = next((i for i, row in enumerate(checked) if row.run_id == run_id), None)
    if index is None:
        return
    with st.container(horizontal=True):
        draw_link("pages/check/table.py", "The table", "table_rows", batch=batch_id)
        # Buttons, because a link to the open page would leave its address unchanged.
        before = checked[index - 1] if index else None
        after = checked[index + 1] if index + 1 < len(checked) else None
        for row, icon, keys in ((before, "arrow_back", "Alt+P"), (after, "arrow_forward", "Alt+N")):
            symbol = f":material/{icon}:"
            if row is not None and st.button(
                f"Row {row.row}", key=f"run.{icon}", icon=symbol, shortcut=keys
            ):
                _open_row(row, row.run_id)


@st.fragment(run_every=POLL_MANY_SECONDS)
def _follow(batch: Batch) -> None:
    with state.open_store() as store:
        rows = _load_results(store, batch) if _load_visible_batch(store, batch.id) else []
        findings = _load_findings(store, rows)
    runs = [run for _, run in rows if run is not None]
    alive = [run.id for run in runs if run.status in ACTIVE_STATUSES]
    if not alive:
        st.rerun()
        return
    # Rows that cannot be checked are no progress.
    st.progress(1 - len(alive) / len(runs), text=_count_rows(rows))
    if has_role("annotator", project_id=batch.project_id):
        draw_button("Stop all", "many.stop", stop_runs, alive, batch.project_id, icon="stop")
    _draw_results(batch, rows, findings, finished=False)


def _load_findings(store: Store, rows: BatchResults) -> list[RunFindings]:
    """Return each row's findings; those of a run are read once, not at each refresh."""
    return [
        _summarize_run((run.id, run.label, run.finished_at, run.p_hallucinated), store, run)
        if run is not None and run.label
        else RunFindings()
        for _, run in rows
    ]


@st.cache_data(max_entries=MAX_CACHED_FINDINGS, show_spinner=False)
def _summarize_run(ending: tuple[object, ...], _store: Store, _run: Run) -> RunFindings:
    return summarize_run(_store, _run)


def _draw_results(
    batch: Batch, rows: BatchResults, findings: Sequence[RunFindings], *, finished: bool
) -> None:
    _draw_problems(rows)
    base = str(st.context.url or "").rpartition("/")[0]

    def make_link(run_id: str) -> str:
        query = {"run": run_id, "batch": batch.id} | st.session_state.get(LINK_PARAMETERS, {})
        return f"{base}/run?{urlencode(query)}"

    link = st.column_config.LinkColumn(display_text="Open", width=COLUMN_WIDTHS["Link"])
    chosen = draw_choice_table(
        [
            _result_row(row, run, found, make_link)
            for (row, run), found in zip(rows, findings, strict=True)
        ],
        f"many.results.{finished}",
        height="content" if len(rows) <= MAX_SHOWN_ROWS else (MAX_SHOWN_ROWS + 1) * ROW_HEIGHT,
        row_height=ROW_HEIGHT,
        placeholder="",
        column_config=_list_columns(*COLUMN_WIDTHS) | {"Link": link},
    )
    draw_download(
        "Results (CSV)",
        lambda: format_results_csv(rows, findings, make_link),
        make_file_name(PurePath(batch.name).stem, batch.created_at, "csv"),
        f"many.csv.{finished}",
    )
    if chosen is not None:
        row, run = rows[chosen]
        _open_row(row, run.id if run else None)


def _list_columns(*names: str) -> dict[str, Any]:
    return {name: st.column_config.Column(width=COLUMN_WIDTHS[name]) for name in names}


def _open_row(row: BatchRow, run_id: str | None) -> None:
    if run_id is not None:
        open_run(run_id)
    else:
        st.info(escape_markdown(row.problem) or "This row was not checked.")


def _count_rows(rows: BatchResults) -> str:
    """Return the number of rows, and of those with each label or without one; they add up."""
    labels = Counter(run.label for _, run in rows if run is not None and run.label)
    to_go = sum(run is not None and run.status in ACTIVE_STATUSES for _, run in rows)
    refused = sum(bool(row.problem) for row, _ in rows)
    words = [f"{LABEL_SIGNS[label]} {labels[label]} {label}" for label in LABEL_WORDS]
    counts = {
        "to go": to_go,
        "not checked": refused,
        "without a verdict": len(rows) - labels.total() - to_go - refused,
    }
    words += [f"{count} {name}" for name, count in counts.items() if count]
    return f"{format_count(len(rows), 'row')}: {' · '.join(words)}"


def _draw_problems(rows: BatchResults) -> None:
    """Draw which rows were not checked, and why."""
    numbers: dict[str, list[int]] = {}
    for row, _ in rows:
        if row.problem:
            numbers.setdefault(row.problem, []).append(row.row)
    for problem, listed in list(numbers.items())[:MAX_PROBLEMS]:
        words = f"{format_rows(listed)} not checked: {problem}"
        st.warning(escape_markdown(words), icon=":material/warning:")
    if len(numbers) > MAX_PROBLEMS:
        st.caption("More problems are listed in the Reason column.")


def _resume(batch_id: str) -> None:
    with store_problem("many.resume.problem"), state.open_store() as store:
        resume_batch(
            store, state.get_jobs(), batch_id, state.get_person(store), state.get_typed_keys()
        )


def _result_row(
    row: BatchRow, run: Run | None, found: RunFindings, make_link: Callable[[str], str]
) -> dict[str, Any]:
    return {
        "Row": row.row,
        "Verdict": format_label(run.label if run else None),
        "Claim": clip_text(row.claim, 130),
        "Marked words": clip_text(found.marked_words, 50),
        "The source says": clip_text(found.source_says, 100),
        "Reason": clip_text(row.problem or strip_verdict_line(found.reason), 110),
        "p": format_probability(run.p_hallucinated if run else None),
        "Status": format_status(run) if run else "not checked",
        "Sources": "; ".join(row.sources),
        "Link": make_link(row.run_id) if row.run_id else None,
        **{
            f"{title} (table)": clip_text(cell, 200)
            for title, cell in row.others[:MAX_OTHER_COLUMNS]
        },
    }


def draw_new_table() -> None:
    """Draw the upload, the sources, what was understood of the table, and the start."""
    with state.open_store() as store:
        settings = store.projects.settings()
    draft = drafts.restore_page_draft(PAGE_KEY)
    if draft is not None:  # a table that was pasted and not checked, with its sources
        st.session_state["many.pasted"] = str(draft.get("pasted") or "")
        st.session_state["many.library"] = drafts.list_draft_texts(draft, "sources")
    left, right = st.columns([3, 2], gap="large")
    with left:
        name, data = _draw_table_fields(settings)
    with right:
        sources = _draw_sources()
    if not data.strip():
        return
    try:
        rows = read_claims(name, data, settings.table_claims)
    except InputError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")
        return
    with state.open_store() as store:
        project = state.get_project(store)
        rows = find_problems(store, project.id, rows)
        by_name = store.library.by_name(project.id)
    checked = _draw_rows(name, rows, list_missing_files(rows, by_name))
    used = [*chain(*split_sources(sources))]
    if used:
        st.caption(f"Every row also uses the {format_count(len(used), 'file')} chosen here.")
    elif checked and not any(row.sources or row.texts for row in checked):
        words = "No file is chosen and no row names one: without evidence every verdict is unclear."
        st.warning(words, icon=":material/warning:")
    if checked:
        named = [[by_name[name].id for name in row.sources] for row in checked]
        texts = [(r.number, r.claim, [*used, *ids]) for r, ids in zip(checked, named, strict=True)]
        draw_language_gaps(texts, "many")
        _draw_start(name, rows, used, settings)


def _draw_rows(
    name: str, rows: Sequence[ClaimRow], missing: Mapping[str, Sequence[int]]
) -> list[ClaimRow]:
    """Draw the rows that cannot be checked, and why, then the others; return the others.

    `missing` are files that rows name and the library lacks.
    """
    checked, refused = ([r for r in rows if bool(r.problem) is bad] for bad in (False, True))
    words = f"**{format_count(len(rows), 'row')}** in {escape_markdown(name)}"
    if refused:
        words += f": {len(checked)} can be checked, {len(refused)} cannot"
    st.markdown(words)
    if missing:
        named = (f"{file} ({format_rows(numbers).lower()})" for file, numbers in missing.items())
        words = f"Not in the library: {'; '.join(named)}. Add them under Sources first."
        st.warning(escape_markdown(words), icon=":material/folder_off:")
    if refused:
        draw_table(
            [
                {"Row": r.number, "Why it cannot be checked": r.problem, "Claim": r.claim}
                for r in refused
            ],
            height="content" if len(refused) <= MAX_SHOWN_ROWS else MAX_SHOWN_ROWS * ROW_HEIGHT,
            row_height=ROW_HEIGHT,
            column_config=_list_columns("Row", "Why it cannot be checked"),
        )
    shown = [
        {
            "Row": row.number,
            "Claim": row.claim,
            "Question": row.question,
            "Sources": "; ".join([*row.sources, *(clip_text(text, 80) for _, text in row.texts)]),
        }
        for row in checked[:PREVIEW_ROWS]
    ]
    if shown:
        draw_table(shown, column_config=_list_columns("Row"))
    if len(checked) > PREVIEW_ROWS:
        st.caption(f"The first {PREVIEW_ROWS} of the {len(checked)} that can be checked.")
    if others := [title for title in list_other_columns(rows) if title]:
        words = f"Not used for the check, returned with the results: {', '.join(others)}."
        st.caption(escape_markdown(words))
    return checked


def _draw_start(name: str, rows: list[ClaimRow], sources: list[str], settings: Settings) -> None:
    roster = draw_roster_choice("many.roster", get_project_roster())
    draw_roster_keys([roster], "many")
    protocol = draw_protocol_choice("many.protocol", roster)
    with state.open_store() as store:
        default_options = get_default_options(state.get_project(store), protocol)
    options = draw_protocol_options("many", protocol, default_options)
    try:
        plan = build_plan(
            roster, settings.max_turns, settings.passages, protocol=protocol, options=options
        )
        checks = [(row.claim, row.question) for row in rows if not row.problem]
        with state.open_store() as store:  # without the sources that rows name themselves
            st.caption(
                describe_expectation(store, load_library_entries(store, sources), checks, plan)
            )
    except InputError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")
        return
    label = f"Check {format_count(len(checks), 'row')}"
    if st.button(label, key="many.start", type="primary", icon=":material/gavel:"):
        _start_checks(name, rows, sources, plan)


def _draw_table_fields(settings: Settings) -> tuple[str, bytes]:
    """Draw the upload and paste fields; return (name, content), empty without a table."""
    upload = st.file_uploader(
        f"Table (CSV or TSV with a header, or JSONL; at most {settings.table_claims:,} claims)",
        key="many.table",
        max_upload_size=settings.file_megabytes,
    )
    pasted = st.text_area(
        "Or paste it",
        key="many.pasted",
        height=100,
        placeholder="claim,document\nThe bridge is 512 m long.,halden-bridge.pdf",
        persist_state="session",
    )
    if upload is not None:
        return upload.name, upload.getvalue()
    return "pasted table", (pasted or "").encode()


def _draw_sources() -> list[str]:
    added = draw_uploader("many.upload", "Sources", choice="many.library")
    chosen = draw_library_choice("many.library")
    draw_sources(added)
    all_rows = st.toggle(
        "Use these files for every row",
        value=True,
        key="many.common",
        help="Otherwise each row uses the library files that it names.",
        persist_state="session",
    )
    sources = list(dict.fromkeys([*added, *chosen]))
    pasted = str(st.session_state.get("many.pasted") or "")
    drafts.save_page_draft(
        PAGE_KEY, {"pasted": pasted, "sources": sources} if pasted.strip() else {}
    )
    return sources if all_rows else []


def _start_checks(name: str, rows: list[ClaimRow], common: list[str], plan: Plan) -> None:
    with state.open_store() as store:
        batch = start_batch(
            store,
            state.get_jobs(),
            state.get_project(store),
            rows,
            author=state.get_person(store),
            name=name,
            plan=plan,
            common=common,
            unread=list_unread("many") if st.session_state.get("many.common") else (),
            typed=state.get_typed_keys(),
        )
    st.session_state.pop("many.pasted", None)
    drafts.save_page_draft(PAGE_KEY, {})
    st.switch_page("pages/check/table.py", query_params={"batch": batch})
