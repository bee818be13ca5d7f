"""The parts of Check many: a new table, tables so far, one table's results as they come."""

from __future__ import annotations

from collections import Counter
from typing import Any

import streamlit as st

from components import state
from components.inputs import draw_sources, draw_uploader
from components.new_check import library_choice
from components.show import rows_chosen
from components.words import LABEL_SIGNS, LABEL_WORDS, STATUS_WORDS, clipped, escaped, when
from core.claim_table import read_claims, results, results_csv, resume_batch, start_batch
from core.config import Settings
from core.errors import InputError, ReviewError
from core.records import Plan, Run
from core.store.batches import BatchRow

POLL_SECONDS = 1.0
PREVIEWED = 10
MOST_PROBLEMS = 3
ALIVE = ("queued", "running")


def draw_new_table() -> None:
    """Upload or paste a table, say what it rests on, see what was understood, start."""
    with state.open_store() as store:
        settings = store.projects.settings()
    left, right = st.columns([3, 2], gap="large")
    with left:
        name, data = _given_table(settings)
    with right:
        sources = _sources()
    if not data.strip():
        return
    try:
        rows = read_claims(name, data, settings.table_claims)
    except InputError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    st.markdown(f"**{len(rows)} claims** in {escaped(name)}")
    st.dataframe(
        [
            {"Claim": r.claim, "Question": r.question, "Sources": "; ".join(r.sources)}
            for r in rows[:PREVIEWED]
        ],
        hide_index=True,
    )
    if len(rows) > PREVIEWED:
        st.caption(f"The first {PREVIEWED} of them.")
    plan = Plan(max_turns=settings.max_turns, passages=settings.passages)
    if st.button("Check them", key="many.start", type="primary", icon=":material/gavel:"):
        _start(name, rows, sources, plan)


def _given_table(settings: Settings) -> tuple[str, bytes]:
    """(name, content) of the table; empty content when none was given."""
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


def _sources() -> list[str]:
    """Ids of what every row rests on, beside what it names itself."""
    added = draw_uploader("many.upload", "What they should rest on", choice="many.library")
    chosen = library_choice("many.library")
    draw_sources(added)
    all_rows = st.toggle(
        "Use these files for every row",
        value=True,
        key="many.common",
        help="If not, each row rests on the library files that it names.",
        persist_state="session",
    )
    return list(dict.fromkeys([*added, *chosen])) if all_rows else []


def _start(name: str, rows: list[Any], common: list[str], plan: Plan) -> None:
    with state.open_store() as store:
        project, person = state.project(store), state.person(store)
        batch = start_batch(
            store,
            state.jobs(),
            project,
            rows,
            author=person,
            name=name,
            plan=plan,
            common=common,
        )
    st.session_state.pop("many.pasted", None)
    st.switch_page("pages/check/many.py", query_params={"batch": batch})


def draw_batches() -> None:
    """Tables that were checked before."""
    with state.open_store() as store:
        batches = store.batches.all(state.project(store).id)
    if not batches:
        return
    st.subheader("Tables so far", anchor=False)
    for batch in batches:
        st.page_link(
            "pages/check/many.py",
            label=f"{when(batch.created_at)} · {clipped(batch.name, 60)} · {batch.author}",
            icon=":material/table_rows:",
            query_params={"batch": batch.id},
        )


def draw_batch(batch_id: str) -> None:
    """One table's results; redrawn while rows are under way."""
    with state.open_store() as store:
        batch = store.batches.get(batch_id)
        rows = results(store, batch_id) if batch else []
    st.page_link("pages/check/many.py", label="All tables", icon=":material/arrow_back:")
    if batch is None:
        st.info("There is no table at this link here.")
        return
    st.markdown(f"**{escaped(batch.name)}** · {when(batch.created_at)} · {escaped(batch.author)}")
    if any(run is not None and run.status in ALIVE for _, run in rows):
        _follow(batch_id)
    else:
        _draw_results(batch_id, rows, finished=True)


@st.fragment(run_every=POLL_SECONDS)
def _follow(batch_id: str) -> None:
    with state.open_store() as store:
        rows = results(store, batch_id)
    alive = sum(run is not None and run.status in ALIVE for _, run in rows)
    if not alive:
        st.rerun()
        return
    checked = sum(run is not None and run.status == "finished" for _, run in rows)
    st.progress(
        1 - alive / len(rows), text=f"{checked} of {len(rows)} claims checked, {alive} to go"
    )
    st.button(
        "Stop all",
        key="many.stop",
        icon=":material/stop:",
        on_click=_stop,
        args=([run.id for _, run in rows if run is not None and run.status in ALIVE],),
    )
    _draw_results(batch_id, rows, finished=False)


def _stop(run_ids: list[str]) -> None:
    by = str(st.session_state.get("person", ""))
    for run_id in run_ids:
        state.jobs().stop(run_id, by)


def _draw_results(
    batch_id: str, rows: list[tuple[BatchRow, Run | None]], *, finished: bool
) -> None:
    open_rows = [
        row
        for row, run in rows
        if row.case_id and (run is None or run.status in ("interrupted", "stopped", "failed"))
    ]
    _draw_counts(rows)
    picked = st.dataframe(
        [_cells(row, run) for row, run in rows],
        key=f"many.results.{finished}",
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        hide_index=True,
        height=420,
        column_config={
            "Claim": st.column_config.TextColumn(width="large"),
        },
    )
    with st.container(horizontal=True):
        st.download_button(
            "Results (CSV)",
            data=lambda: results_csv(rows),
            file_name=f"counterpoint-{batch_id[:8]}.csv",
            mime="text/csv",
            key=f"many.csv.{finished}",
            icon=":material/download:",
            on_click="ignore",
        )
        if open_rows and finished:
            st.button(
                f"Check the {len(open_rows)} that are open",
                key="many.resume",
                icon=":material/resume:",
                on_click=_resume,
                args=(batch_id,),
            )
    chosen = rows_chosen(picked)
    if chosen and chosen[0] < len(rows):
        run = rows[chosen[0]][1]
        if run is not None:
            st.switch_page("pages/check/run.py", query_params={"run": run.id})
        else:
            st.info(escaped(rows[chosen[0]][0].problem) or "This row was not checked.")


def _draw_counts(rows: list[tuple[BatchRow, Run | None]]) -> None:
    """How many rows came to which label, and in whole sentences why others were not checked."""
    counts = {
        label: sum(run is not None and run.label == label for _, run in rows)
        for label in LABEL_WORDS
    }
    without = len(rows) - sum(counts.values())
    words = [f"{LABEL_SIGNS[label]} {count} {label}" for label, count in counts.items()]
    st.caption(" · ".join([*words, *([f"{without} without a verdict"] if without else [])]))
    problems = Counter(row.problem for row, _ in rows if row.problem)
    for problem, count in problems.most_common(MOST_PROBLEMS):
        which = "1 row was" if count == 1 else f"{count} rows were"
        st.warning(f"{which} not checked: {escaped(problem)}", icon=":material/warning:")
    if len(problems) > MOST_PROBLEMS:
        st.caption("Further problems stand in the column Status.")


def _resume(batch_id: str) -> None:
    try:
        with state.open_store() as store:
            resume_batch(store, state.jobs(), batch_id, state.person(store))
    except ReviewError as error:
        st.toast(escaped(str(error)))


def _cells(row: BatchRow, run: Run | None) -> dict[str, Any]:
    label = f"{LABEL_SIGNS[run.label]} {LABEL_WORDS[run.label]}" if run and run.label else "–"
    return {
        "Row": row.row,
        "Verdict": label,
        "Claim": clipped(row.claim, 200),
        "p": f"{run.p_hallucinated:.2f}" if run and run.p_hallucinated is not None else "",
        "Status": row.problem or (STATUS_WORDS[run.status] if run else "not checked"),
        "Sources": "; ".join(row.sources),
    }
