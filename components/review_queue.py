"""The review queue on its page: progress, filters, the way to the next item, the list."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any

import streamlit as st

from components import state
from components.item_table import PAGE_SIZE, draw_items, first_of
from components.queue_filters import draw_filters
from components.review_rules import rules_of
from components.words import LABEL_SIGNS, LABEL_WORDS, clipped, counted, escaped, protocol_words
from core.checking import drafts_of
from core.errors import ReviewError
from core.queueing import fill
from core.records import Project
from core.reviews import Assignment, AssignmentState, Item, ItemState
from core.store import Store
from core.store.changes import Mark
from core.store.queue_filter import AT_RANDOM, ItemFilter, why_of

LABEL_PAGE = "pages/review/label.py"
MOST_WAYS = 2  # of a text's protocols in the list
DRAFT_NAME = re.compile(r"run\.(.+)\.correct")  # as correction_draft.key_of names them
ALL: tuple[ItemState, ...] = ("open", "flagged", "adjudicated")
STATES: dict[str, tuple[ItemState, ...]] = {
    "pending": ("open",),
    "my drafts": ALL,
    "I submitted": ALL,
    "I skipped": ALL,
    "flagged": ("flagged",),
    "settled": ("adjudicated",),
}


def draw_progress() -> None:
    """How far the queue is, and the person who is here."""
    now = time.time()
    with state.open_store() as store:
        project, person = state.project(store), state.person(store)
        _fill(store, project.id, now)
        state.reordering().ask(store, project.id, project.people_each)
        counts = store.queue.counts(project.id, rules_of(project), now)
        mine = store.queue.counts_of(project.id, person)
    total = sum(counts[name] for name in ("pending", "done", "flagged", "adjudicated"))
    if not total:
        st.info("Nothing waits here yet: every check that finishes comes to this queue.")
        st.stop()
    finished = counts["done"] + counts["adjudicated"]
    st.progress(
        finished / total, text=f"{finished} of {counted(total, 'item')} reviewed, "
        f"{counts['pending']} waiting, {counts['in_hand']} in somebody's hands"
    )  # fmt: skip
    words = [f"{mine['submitted']} submitted", f"{mine['skipped']} skipped"]
    words.append(f"{mine['flagged']} flagged")
    share = f"{project.random_share:.0%} of what you are given is drawn at random"
    st.caption(f"{escaped(person)}: " + ", ".join(words) + f" · {share}")


@st.cache_resource
def _found_full() -> dict[tuple[str, str], Mark]:
    """By home and project: as which the runs were known when the queue held them all."""
    return {}


def _fill(store: Store, project_id: str, now: float) -> None:
    """Put in what is missing; nothing is looked for again until another run has ended."""
    key, mark = (str(state.home()), project_id), store.changes.of_runs()
    if _found_full().get(key) != mark and not fill(store, project_id, now):
        _found_full()[key] = mark


def draw_start() -> ItemFilter:
    """The button that gives the next item, and filters."""
    top = st.container()
    wanted = draw_filters()
    st.session_state["review.wanted"] = wanted
    with top:
        if st.button(
            "Next item", key="review.next", type="primary", icon=":material/arrow_forward:",
            shortcut="Ctrl+Enter",
        ):  # fmt: skip
            go_on(wanted)
    return wanted


def why_shown(why: str, is_blind: bool) -> str:
    """Why an item comes; the machine's view of it stays hidden from who must not know it."""
    return "its answer teaches more than others" if is_blind and why != AT_RANDOM else why


def go_on(wanted: ItemFilter) -> None:
    """To the next item that fits; says so where none is left."""
    try:
        with state.open_store() as store:
            found = next_item(store, wanted)
    except ReviewError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    if found is None:
        st.success("Nothing more waits for you that fits these filters.", icon=":material/check:")
        return
    st.switch_page(LABEL_PAGE, query_params={"case": found.case_id})


def next_item(store: Store, wanted: ItemFilter) -> Assignment | None:
    """What the person has in hand, else what they claim next; every so often at random."""
    now = time.time()
    project, person = state.project(store), state.person(store)
    rules = rules_of(project)
    state.reordering().ask(store, project.id, project.people_each)  # for whoever comes next
    with store.writing():
        store.projects.require(project.id, person, "annotator", "review")
        mine = store.queue.counts_of(project.id, person)
        done = sum(mine.values())
        is_random = int((done + 1) * rules.random_share) > int(done * rules.random_share)
        return store.queue.claim(project.id, person, rules, now, wanted, is_random=is_random)


def draw_list(wanted: ItemFilter) -> None:
    """What waits (or was flagged, or settled); a click takes an item."""
    shown = st.segmented_control(
        "Show", list(STATES), default="pending", key="review.states", persist_state="session"
    )
    page = "review.page"
    chosen = shown or "pending"
    with state.open_store() as store:
        project = state.project(store)
        items, total = store.queue.page(
            project.id,
            _of_mine(store, chosen, wanted, project),
            STATES[chosen],
            limit=PAGE_SIZE,
            offset=first_of(page),
            now=time.time(),
        )
        claims = [store.cases.get(item.case_id) for item in items]
        ways = [_ways(store, item) for item in items]
    if not total:
        st.caption("Nothing here fits these filters.")
        return
    rows = [
        _cells(item, case.response if case else "", project)
        | ({} if project.is_blind else {"Checked by": way})
        for item, case, way in zip(items, claims, ways, strict=True)
    ]
    draw_items(
        rows,
        [item.case_id for item in items],
        total,
        key=f"review.table.{shown}",
        page=page,
        opens=LABEL_PAGE,
    )


def _of_mine(store: Store, chosen: str, wanted: ItemFilter, project: Project) -> ItemFilter:
    """The filter with what the person who is here has to do with the items."""
    person = state.person(store)
    if chosen == "pending":
        return replace(wanted, given_below=project.people_each)
    if chosen == "my drafts":
        names = (DRAFT_NAME.fullmatch(name) for name in drafts_of(store, person))
        return replace(wanted, among=tuple(name[1] for name in names if name))
    did: dict[str, AssignmentState] = {"I submitted": "submitted", "I skipped": "skipped"}
    if chosen in did:
        return replace(wanted, person=person, person_did=did[chosen])
    return wanted


def _ways(store: Store, item: Item) -> str:
    """The protocols of all runs that came to a label; what the machine says is the newest's."""
    runs = store.runs.of_case(item.case_id, time.time(), 0.0)
    found = [protocol_words(run.plan.protocol, short=True) for run in runs if run.label]
    names = list(dict.fromkeys(reversed(found)))
    more = [f"{len(names) - MOST_WAYS} more"] if len(names) > MOST_WAYS else []
    return ", ".join([*names[:MOST_WAYS], *more])


def _cells(item: Item, claim: str, project: Project) -> dict[str, Any]:
    people, is_blind = project.people_each, project.is_blind
    cells: dict[str, Any] = {"Claim": clipped(claim, 200)}
    if not is_blind:
        label = item.label
        cells["The machine"] = f"{LABEL_SIGNS[label]} {LABEL_WORDS[label]}" if label else "–"
        cells["p"] = "" if item.p is None else f"{item.p:.2f}"
    cells["Reviewed"] = f"{item.given} of {people}"
    cells["Why"] = why_shown(why_of(item), is_blind)
    return cells
