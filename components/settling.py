"""The list of cases to settle: where people differ or agree, what was flagged, what is done."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from components import state
from components.review_queue import PAGE_SIZE, draw_items, first_of
from components.wording import LABEL_SIGNS, LABEL_WORDS, clipped
from core.records import Case
from core.review.adjudication import LABELS_DIFFER, MARKS_DIFFER
from core.reviews import Correction, Item, ItemState
from core.store.queue import EVERYTHING, ItemFilter

SETTLE_PAGE = "pages/review/settle.py"
VIEWS: dict[str, tuple[ItemFilter, tuple[ItemState, ...]]] = {
    "people differ": (ItemFilter(differ=True), ("open",)),
    "flagged": (EVERYTHING, ("flagged",)),
    "people agree": (ItemFilter(given_from=2, differ=False), ("open",)),
    "right answer known": (ItemFilter(has_gold=True), ("open", "flagged")),
    "settled": (EVERYTHING, ("adjudicated",)),
}
DIFFER_WORDS = {LABELS_DIFFER: "labels", MARKS_DIFFER: "marked words", 0: "–"}


def draw_settling() -> None:
    """Which of them, and the list; a click opens a case."""
    now = time.time()
    with state.open_store() as store:
        project = state.project(store)
        counts = {
            name: store.queue.count(project.id, wanted, states, now)
            for name, (wanted, states) in VIEWS.items()
        }
    chosen = st.segmented_control(
        "Show",
        list(VIEWS),
        format_func=lambda name: f"{name} ({counts[name]})",
        default=next((name for name, count in counts.items() if count), "people differ"),
        key="settling.view",
        required=True,
    )
    name = str(chosen or "people differ")
    if not counts[name]:
        st.info("Nothing is here. Cases come when two people have answered, or one has flagged it.")
        return
    page = f"settling.{name}.page"
    wanted, states = VIEWS[name]
    with state.open_store() as store:
        items, total = store.queue.page(
            project.id, wanted, states, limit=PAGE_SIZE, offset=first_of(page), now=now
        )
        rows = [
            _cells(
                item, store.cases.get(item.case_id), store.corrections.newest_of_case(item.case_id)
            )
            for item in items
        ]
    draw_items(
        rows,
        [item.case_id for item in items],
        total,
        key=f"settling.table.{name}",
        page=page,
        opens=SETTLE_PAGE,
    )


def _cells(item: Item, case: Case | None, said: list[Correction]) -> dict[str, Any]:
    words = ", ".join(f"{c.author}: {LABEL_SIGNS[c.label]}" for c in said)
    machine = f"{LABEL_SIGNS[item.label]} {LABEL_WORDS[item.label]}" if item.label else "–"
    return {
        "Claim": clipped(case.response if case else "", 200),
        "People": words,
        "They differ in": DIFFER_WORDS[item.differ],
        "The machine": machine,
    }
