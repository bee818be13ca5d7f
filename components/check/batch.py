"""Batch check: a new table of claims and its start, earlier tables, one table's results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import streamlit as st

from components.app import state
from components.check.new_check import draw_sources, draw_uploader, library_choice, project_roster
from components.check.roster_choice import (
    draw_keys_of_rosters,
    draw_protocol_choice,
    draw_protocol_options,
    draw_roster_choice,
    entries_of,
    expectation,
    planned,
    usual_options,
)
from components.run.run_view import ALIVE, POLL_ALL, stop
from components.setup.settings import draw_plan_keys
from components.widgets import drafts
from components.widgets.controls import (
    button,
    choice_table,
    download,
    link,
    open_run,
    problem_kept,
    show_problem,
    table,
)
from components.widgets.wording import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clipped,
    escaped,
    p_words,
    roster_words,
    signed,
    status_words,
    when,
)
from core.baseline.wording import counted
from core.pipeline.batch_check import (
    ClaimRow,
    read_claims,
    results,
    results_csv,
    resume_batch,
    start_batch,
)
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.progress import can_resume
from core.schema.records import Plan, Run
from core.store import Store
from core.store.cases import Batch, BatchRow

MOST_PROBLEMS = 3
MOST_OTHERS = 6  # further columns of the table that are shown; the CSV has all
PAGE = "many"
PREVIEWED = 10
Rows = Sequence[tuple[BatchRow, Run | None]]


def draw_batches() -> None:
    """Draw links to the tables that were checked before."""
    with state.open_store() as store:
        batches = store.batches.all(state.project(store).id)
    if batches:
        st.subheader("Earlier tables", anchor=False)
    for batch in batches:
        words = f"{when(batch.created_at)} · {clipped(batch.name, 60)} · {batch.author}"
        link("pages/check/table.py", escaped(words), "table_rows", batch=batch.id)


def draw_batch(batch_id: str) -> None:
    """Draw one table's results, refreshed while rows are being checked."""
    with state.open_store() as store:
        batch = _load_visible_batch(store, batch_id)
        rows = results(store, batch_id) if batch else []
    link("pages/check/many.py", "All tables", "arrow_back")
    if batch is None:
        st.info("There is no table at this link here.")
        return
    roster = escaped(roster_words(batch.plan.roster, short=True))
    origin = f"{when(batch.created_at)} · {escaped(batch.author)}"
    st.markdown(f"**{escaped(batch.name)}** · {origin} · {roster}")
    if any(run is not None and run.status in ALIVE for _, run in rows):
        _follow(batch)
    else:
        _draw_results(batch_id, rows, finished=True)
        unfinished = sum(
            bool(row.case_id) and (run is None or can_resume(run)) for row, run in rows
        )
        if unfinished:
            draw_plan_keys(batch.plan, "many")
            words = f"Check the {unfinished} that are open"
            button(words, "many.resume", _resume, batch.id, icon="resume")
            show_problem("many.resume.problem")


def _load_visible_batch(store: Store, batch_id: str) -> Batch | None:
    batch = store.batches.get(batch_id)
    return batch if batch is not None and state.may_see(store, batch.project_id) else None


def draw_neighbours(batch_id: str, run_id: str) -> None:
    """Draw on a run's page links to the table it was opened from and to the rows around it."""
    with state.open_store() as store:
        rows = store.batches.rows(batch_id) if _load_visible_batch(store, batch_id) else []
    checked = [row for row in rows if row.run_id]
    index = next((i for i, row in enumerate(checked) if row.run_id == run_id), None)
    if index is None:
        return
    with st.container(horizontal=True):
        link("pages/check/table.py", "The table", "table_rows", batch=batch_id)
        # Buttons, because a link to the open page would leave its address unchanged.
        before = checked[index - 1] if index else None
        after = checked[index + 1] if index + 1 < len(checked) else None
        for row, icon, keys in ((before, "arrow_back", "Alt+P"), (after, "arrow_forward", "Alt+N")):
            symbol = f":material/{icon}:"
            if row is not None and st.button(
                f"Row {row.row}", key=f"run.{icon}", icon=symbol, shortcut=keys
            ):
                _open_row(row, row.run_id)


@st.fragment(run_every=POLL_ALL)
def _follow(batch: Batch) -> None:
    with state.open_store() as store:
        rows = results(store, batch.id) if _load_visible_batch(store, batch.id) else []
    alive = [run.id for _, run in rows if run is not None and run.status in ALIVE]
    if not alive:
        st.rerun()
        return
    checked = sum(run is not None and run.status == "finished" for _, run in rows)
    words = f"{checked} of {len(rows)} claims checked, {len(alive)} to go"
    st.progress(1 - len(alive) / len(rows), text=words)
    button("Stop all", "many.stop", stop, alive, batch.project_id, icon="stop")
    _draw_results(batch.id, rows, finished=False)


def _draw_results(batch_id: str, rows: Rows, *, finished: bool) -> None:
    _draw_counts(rows)
    chosen = choice_table(
        [_result_row(row, run) for row, run in rows],
        f"many.results.{finished}",
        height=420,
        column_config={"Claim": st.column_config.TextColumn(width="large")},
    )
    with st.container(horizontal=True):
        name = f"counterpoint-{batch_id[:8]}.csv"
        download("Results (CSV)", lambda: results_csv(rows), name, f"many.csv.{finished}")
    if chosen is not None:
        row, run = rows[chosen]
        _open_row(row, run.id if run else None)


def _open_row(row: BatchRow, run_id: str | None) -> None:
    if run_id is not None:
        open_run(run_id)
    else:
        st.info(escaped(row.problem) or "This row was not checked.")


def _draw_counts(rows: Rows) -> None:
    """Draw the number of rows by label, and why others were not checked."""
    labels = Counter(run.label for _, run in rows if run is not None and run.label)
    unlabelled = len(rows) - labels.total()
    words = [f"{LABEL_SIGNS[label]} {labels[label]} {label}" for label in LABEL_WORDS]
    if unlabelled:
        words.append(f"{unlabelled} without a verdict")
    st.caption(" · ".join(words))
    problems = Counter(row.problem for row, _ in rows if row.problem)
    for problem, count in problems.most_common(MOST_PROBLEMS):
        rows_were = "1 row was" if count == 1 else f"{count} rows were"
        st.warning(f"{rows_were} not checked: {escaped(problem)}", icon=":material/warning:")
    if len(problems) > MOST_PROBLEMS:
        st.caption("More problems are listed in the Status column.")


def _resume(batch_id: str) -> None:
    with problem_kept("many.resume.problem"), state.open_store() as store:
        resume_batch(store, state.jobs(), batch_id, state.person(store), state.typed_keys())


def _result_row(row: BatchRow, run: Run | None) -> dict[str, Any]:
    return {
        "Row": row.row,
        "Verdict": signed(run.label if run else None),
        "Claim": clipped(row.claim, 200),
        "p": p_words(run.p_hallucinated if run else None),
        "Status": row.problem or (status_words(run) if run else "not checked"),
        "Sources": "; ".join(row.sources),
        **{f"{title} (table)": clipped(cell, 200) for title, cell in row.others[:MOST_OTHERS]},
    }


def draw_new_table() -> None:
    """Draw the upload, the sources, what was understood of the table, and the start."""
    with state.open_store() as store:
        settings = store.projects.settings()
    draft = drafts.restored(PAGE)
    if draft is not None:  # a table that was pasted and not checked, with its sources
        st.session_state["many.pasted"] = str(draft.get("pasted") or "")
        st.session_state["many.library"] = drafts.names_in(draft, "sources")
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
        st.error(escaped(str(error)), icon=":material/error:")
        return
    st.markdown(f"**{len(rows)} claims** in {escaped(name)}")
    shown = [(r.claim, r.question, "; ".join(r.sources)) for r in rows[:PREVIEWED]]
    table([dict(zip(("Claim", "Question", "Sources"), row, strict=True)) for row in shown])
    if len(rows) > PREVIEWED:
        st.caption(f"The first {PREVIEWED} of them.")
    if sources:
        st.caption(f"Every row also uses the {counted(len(sources), 'file')} chosen here.")
    elif not any(row.sources for row in rows):
        words = "No file is chosen and no row names one: without evidence every verdict is unclear."
        st.warning(words, icon=":material/warning:")
    _draw_start(name, rows, sources, settings)


def _draw_start(name: str, rows: list[ClaimRow], sources: list[str], settings: Settings) -> None:
    roster = draw_roster_choice("many.roster", project_roster())
    draw_keys_of_rosters([roster], "many")
    protocol = draw_protocol_choice("many.protocol", roster)
    with state.open_store() as store:
        default_options = usual_options(state.project(store), protocol)
    options = draw_protocol_options("many", protocol, default_options)
    try:
        plan = planned(
            roster, settings.max_turns, settings.passages, protocol=protocol, options=options
        )
        checks = [(row.claim, row.question) for row in rows]
        with state.open_store() as store:  # without the sources that rows name themselves
            st.caption(expectation(store, entries_of(store, sources), checks, plan))
    except InputError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    if st.button("Check them", key="many.start", type="primary", icon=":material/gavel:"):
        _start_checks(name, rows, sources, plan)


def _draw_table_fields(settings: Settings) -> tuple[str, bytes]:
    """Draw the upload and paste fields; return (name, content), empty without a table."""
    upload = st.file_uploader(
        f"Table (CSV or TSV with a header, at most {settings.table_claims:,} claims)",
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
    chosen = library_choice("many.library")
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
    drafts.follow(PAGE, {"pasted": pasted, "sources": sources} if pasted.strip() else {})
    return sources if all_rows else []


def _start_checks(name: str, rows: list[ClaimRow], common: list[str], plan: Plan) -> None:
    with state.open_store() as store:
        batch = start_batch(
            store,
            state.jobs(),
            state.project(store),
            rows,
            author=state.person(store),
            name=name,
            plan=plan,
            common=common,
            typed=state.typed_keys(),
        )
    st.session_state.pop("many.pasted", None)
    drafts.follow(PAGE, {})
    st.switch_page("pages/check/table.py", query_params={"batch": batch})
