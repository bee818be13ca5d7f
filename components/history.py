"""The list of runs: 25 a page, a click opens one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from components import state
from components.show import open_run, rows_chosen
from components.words import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clipped,
    protocol_words,
    roster_words,
    status_words,
    when,
)
from core.answering import Policy, policy_of
from core.store.run_filter import RunFilter
from core.store.runs import RunRow
from core.store.verdicts import present_classifiers
from core.store.versions import SEED_VERSION

PAGE_SIZE = 25


def draw_page(wanted: RunFilter) -> int:
    """One page of runs, of how many; choosing a row opens it."""
    number = int(st.session_state.get("history.page") or 1)
    with state.open_store() as store:
        project = state.project(store)
        lease = store.projects.settings().lease_seconds
        policy = policy_of(store, project)
        rows, total = store.runs.page(
            project.id,
            wanted,
            limit=PAGE_SIZE,
            offset=(number - 1) * PAGE_SIZE,
            now=time.time(),
            lease=lease,
        )
        classifiers = present_classifiers(store, [row.run.id for row in rows])
    if total and not rows:  # the filter left fewer pages than the one that was open
        st.session_state["history.page"] = 1
        st.rerun()
    if not total:
        st.info("No run matches. New check starts one.")
        return 0
    st.caption(f"{total} run{'' if total == 1 else 's'}")
    picked = st.dataframe(
        _table(rows, classifiers, policy),
        key=f"history.table.{number}",
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        hide_index=True,
        height="content",
        column_config={
            "Claim": st.column_config.TextColumn(width=200),
            "Protocol": st.column_config.TextColumn(width=180),
            "Roster": st.column_config.TextColumn(width=115),
            "p": st.column_config.TextColumn("p", help="probability of being hallucinated"),
        },
    )
    pages = -(-total // PAGE_SIZE)
    if pages > 1:
        st.pagination(pages, key="history.page")
    selected = rows_chosen(picked)
    if selected and selected[0] < len(rows):
        open_run(rows[selected[0]].run.id)
    return total


def _table(
    rows: Sequence[RunRow], classifiers: Mapping[str, str], policy: Policy | None
) -> list[dict[str, Any]]:
    """The page's runs; by which classifier each verdict is, as soon as it is not the seed's."""
    cells = [_cells(row, policy, classifiers.get(row.run.id, "")) for row in rows]
    if set(classifiers.values()) - {SEED_VERSION}:
        for cell, row in zip(cells, rows, strict=True):
            cell["Classifier"] = classifiers.get(row.run.id, "")
    if not any(row.corrected_label for row in rows):
        for cell in cells:
            del cell["People say"]
    return cells


def _cells(row: RunRow, policy: Policy | None, version: str) -> dict[str, Any]:
    """A run's row; who decides it, where the project says what it answers by itself."""
    run = row.run
    label = f"{LABEL_SIGNS[run.label]} {LABEL_WORDS[run.label]}" if run.label else "–"
    people: dict[str, Any] = {}
    if policy is not None:
        waits = "decided" if row.corrected_label else "⚑ to decide"
        people["For people"] = waits if policy.is_for_people(run, version) else ""
    return {
        "Verdict": label,
        "Claim": clipped(row.response, 200),
        "When": when(run.started_at),
        "p": "" if run.p_hallucinated is None else f"{run.p_hallucinated:.2f}",
        "People say": LABEL_WORDS[row.corrected_label] if row.corrected_label else "",
        **people,
        "Status": status_words(run) + (" (imported)" if run.origin == "imported" else ""),
        "Protocol": protocol_words(run.plan.protocol, short=True),
        "Roster": roster_words(run.plan.roster, short=True),
    }
