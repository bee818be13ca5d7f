"""Check many: tables so far, and one table's results as they come."""

from __future__ import annotations

from collections import Counter
from typing import Any

import streamlit as st

from components import state
from components.key_fields import draw_plan_keys
from components.live import stop
from components.show import open_run, rows_chosen
from components.words import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clipped,
    escaped,
    roster_words,
    status_words,
    when,
)
from core.claim_table import results, results_csv, resume_batch
from core.errors import ReviewError
from core.progress import can_resume
from core.records import Run
from core.store import Store
from core.store.batches import Batch, BatchRow

POLL_SECONDS = 1.0
MOST_PROBLEMS = 3
MOST_OTHERS = 6  # further columns of the table that are shown; the CSV has all
ALIVE = ("queued", "running")


def draw_batches() -> None:
    """Tables that were checked before."""
    with state.open_store() as store:
        batches = store.batches.all(state.project(store).id)
    if not batches:
        return
    st.subheader("Tables so far", anchor=False)
    for batch in batches:
        st.page_link(
            "pages/check/table.py",
            label=escaped(f"{when(batch.created_at)} · {clipped(batch.name, 60)} · {batch.author}"),
            icon=":material/table_rows:",
            query_params={"batch": batch.id},
        )


def draw_batch(batch_id: str) -> None:
    """One table's results; redrawn while rows are under way."""
    with state.open_store() as store:
        batch = _seen(store, batch_id)
        rows = results(store, batch_id) if batch else []
    st.page_link("pages/check/many.py", label="All tables", icon=":material/arrow_back:")
    if batch is None:
        st.info("There is no table at this link here.")
        return
    roster = escaped(roster_words(batch.plan.roster, short=True))
    begun = f"{when(batch.created_at)} · {escaped(batch.author)}"
    st.markdown(f"**{escaped(batch.name)}** · {begun} · {roster}")
    if any(run is not None and run.status in ALIVE for _, run in rows):
        _follow(batch)
    else:
        _draw_results(batch_id, rows, finished=True)
        _offer_resume(batch, rows)


def _seen(store: Store, batch_id: str) -> Batch | None:
    """The table, unless it is in a project of others."""
    batch = store.batches.get(batch_id)
    return batch if batch is not None and state.may_see(store, batch.project_id) else None


def draw_neighbours(batch_id: str, run_id: str) -> None:
    """On a run's page: back to the table it was opened from, and to the rows around it."""
    with state.open_store() as store:
        rows = store.batches.rows(batch_id) if _seen(store, batch_id) else []
    checked = [row for row in rows if row.run_id]
    place = next((i for i, row in enumerate(checked) if row.run_id == run_id), None)
    if place is None:
        return
    with st.container(horizontal=True):
        st.page_link(
            "pages/check/table.py",
            label="The table",
            icon=":material/table_rows:",
            query_params={"batch": batch_id},
        )
        # Buttons, for a link to the page that is open would leave its address as it is.
        before = checked[place - 1] if place else None
        after = checked[place + 1] if place + 1 < len(checked) else None
        for row, icon, keys in ((before, "arrow_back", "Alt+P"), (after, "arrow_forward", "Alt+N")):
            if row is not None and _button(f"Row {row.row}", icon, keys):
                _open(row, row.run_id)


def _button(label: str, icon: str, keys: str) -> bool:
    return st.button(label, key=f"run.{icon}", icon=f":material/{icon}:", shortcut=keys)


@st.fragment(run_every=POLL_SECONDS)
def _follow(batch: Batch) -> None:
    with state.open_store() as store:
        rows = results(store, batch.id) if _seen(store, batch.id) else []
    alive = [run.id for _, run in rows if run is not None and run.status in ALIVE]
    if not alive:
        st.rerun()
        return
    checked = sum(run is not None and run.status == "finished" for _, run in rows)
    st.progress(
        1 - len(alive) / len(rows),
        text=f"{checked} of {len(rows)} claims checked, {len(alive)} to go",
    )
    st.button(
        "Stop all",
        key="many.stop",
        icon=":material/stop:",
        on_click=stop,
        args=(alive, batch.project_id),
    )
    _draw_results(batch.id, rows, finished=False)


def _draw_results(
    batch_id: str, rows: list[tuple[BatchRow, Run | None]], *, finished: bool
) -> None:
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
    chosen = rows_chosen(picked)
    if chosen and chosen[0] < len(rows):
        row, run = rows[chosen[0]]
        _open(row, run.id if run else None)


def _offer_resume(batch: Batch, rows: list[tuple[BatchRow, Run | None]]) -> None:
    """A button for the rows that came to no end, where there are any, and the keys it needs."""
    left = sum(bool(row.case_id) and (run is None or can_resume(run)) for row, run in rows)
    if not left:
        return
    draw_plan_keys(batch.plan, "many")
    st.button(
        f"Check the {left} that are open",
        key="many.resume",
        icon=":material/resume:",
        on_click=_resume,
        args=(batch.id,),
    )
    problem = st.session_state.pop("many.resume.problem", "")
    if problem:
        st.error(escaped(problem))


def _open(row: BatchRow, run_id: str | None) -> None:
    """A row's run; why there is none where there is none."""
    if run_id is not None:
        open_run(run_id)
    else:
        st.info(escaped(row.problem) or "This row was not checked.")


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
            person, typed = state.person(store), state.typed_keys()
            resume_batch(store, state.jobs(), batch_id, person, typed)
    except ReviewError as error:
        st.session_state["many.resume.problem"] = str(error)


def _cells(row: BatchRow, run: Run | None) -> dict[str, Any]:
    label = f"{LABEL_SIGNS[run.label]} {LABEL_WORDS[run.label]}" if run and run.label else "–"
    return {
        "Row": row.row,
        "Verdict": label,
        "Claim": clipped(row.claim, 200),
        "p": f"{run.p_hallucinated:.2f}" if run and run.p_hallucinated is not None else "",
        "Status": row.problem or (status_words(run) if run else "not checked"),
        "Sources": "; ".join(row.sources),
        **{f"{title} (table)": clipped(cell, 200) for title, cell in row.others[:MOST_OTHERS]},
    }
