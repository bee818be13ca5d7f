"""Review and Adjudicate: the lists, their filters, the way to the next item, the queue's rules."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from components.app import state
from components.review import WORDS
from components.widgets.controls import choice_table, problem_shown
from components.widgets.wording import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clipped,
    counted,
    escaped,
    protocol_words,
)
from core.review.adjudication import LABELS_DIFFER, MARKS_DIFFER
from core.review.people import drafts_of
from core.review.queue_ranking import fill
from core.runtime.errors import InputError
from core.schema.records import CATEGORY_WORDS, Project
from core.schema.reviews import AssignmentState, Item, ItemState, category_words
from core.store import Store
from core.store.queue import AT_RANDOM, EVERYTHING, ItemFilter, Rules, why_of
from core.store.sqlite import Mark

DAY = 86_400.0
AGES = {"": None, "a day": DAY, "a week": 7 * DAY, "a month": 30 * DAY}


def _draw_filters() -> ItemFilter:
    with state.open_store() as store:
        project = state.project(store)
        languages = store.queue_lists.languages(project.id)
        sources = {entry.id: entry.name for entry in store.library.all(project.id)}
    is_set = st.session_state.get("review.wanted", EVERYTHING) != EVERYTHING
    kept: dict[str, Any] = {"persist_state": "session"}
    with st.expander("Filters", expanded=is_set, icon=":material/filter_list:"):
        found: list[str] = []
        for column, (label, key, words) in zip(
            st.columns(3),
            (
                ("Older than", "age", {"": "any age"} | {name: name for name in AGES if name}),
                ("Language", "language", {"": "any"} | {name: name for name in languages}),
                ("Source", "source", {"": "any source"} | sources),
            ),
            strict=True,
        ):
            chosen = column.selectbox(
                label, list(words), format_func=words.__getitem__, key=f"review.{key}", **kept
            )
            found.append(chosen or "")
        wanted = ItemFilter(older_than=AGES[found[0]], language=found[1], source_id=found[2])
        if project.is_blind:
            return wanted
        # What the machine says is for those who may know it.
        says, p, apart = st.columns([2, 3, 3])
        labels = {"": "any"} | LABEL_WORDS
        label = says.selectbox(
            "The machine says", list(labels), format_func=labels.__getitem__, key="review.label",
            **kept,
        )  # fmt: skip
        low, high = p.slider(
            "How likely hallucinated (%)", 0, 100, (0, 100), key="review.p", **kept
        )
        least = apart.slider("Agents disagree at least (%)", 0, 100, 0, key="review.apart", **kept)
        return replace(
            wanted,
            label=label or "",
            p_from=low / 100 if low else None,
            p_to=high / 100 if high < 100 else None,
            disagreement_from=least / 100,
        )


PAGE_SIZE = 25


def _draw_page(
    wanted: ItemFilter, states: Sequence[ItemState], cells: Callable[[Store, Item], dict[str, Any]],
    *, key: str, page: str, opens: str,
) -> None:  # fmt: skip
    """The items of the page that `page` chose, as `cells`; `opens` is the script that shows one."""
    first = (int(st.session_state.get(page) or 1) - 1) * PAGE_SIZE
    with state.open_store() as store:
        items, total = store.queue.page(
            state.project(store).id, wanted, states,
            limit=PAGE_SIZE, offset=first, now=time.time(),
        )  # fmt: skip
        rows = [cells(store, item) for item in items]
    if not total:
        st.caption("Nothing matches these filters.")
        return
    if not rows:  # others have answered what stood here
        st.session_state[page] = 1
        st.rerun()
    claim = {"Claim": st.column_config.TextColumn(width=300)}
    chosen = choice_table(rows, f"{key}.{first}", column_config=claim)
    if (pages := -(-total // PAGE_SIZE)) > 1:
        st.pagination(pages, key=page)
    if chosen is not None:
        st.switch_page(opens, query_params={"case": items[chosen].case_id})


MOST_PEOPLE = 20
LONGEST_MINUTES = 480
LONGEST_CATEGORY = 40  # characters


def rules_of(project: Project) -> Rules:
    """The project's rules, in the form that the queue asks for."""
    return Rules(project.people_each, 60.0 * project.hold_minutes, project.random_share)


def draw_review_rules(project: Project) -> dict[str, Any]:
    """Draw the fields and return their values by the names that `Project` gives them."""
    key = f"project.{project.id}"
    left, middle, right = st.columns(3)
    people = left.number_input(
        "People who review each item", 1, MOST_PEOPLE, project.people_each, key=f"{key}.people"
    )
    minutes = middle.number_input(
        "Minutes before a claimed item is released",
        1, LONGEST_MINUTES, project.hold_minutes, key=f"{key}.minutes",
        help="Then it is free for others. What was written is kept, and counts when it is saved.",
    )  # fmt: skip
    share = right.number_input(
        "Share of items drawn at random (%)",
        0, 100, round(100 * project.random_share), key=f"{key}.share",
        help=WORDS["review_queue.draw_review_rules"],
    )  # fmt: skip
    is_blind = st.toggle(
        "Hide the machine's verdict until a person has answered",
        value=project.is_blind,
        key=f"{key}.blind",
        help="On Review. A run's own page shows the verdict to everybody who opens it.",
    )
    categories = st.multiselect(
        "Error categories",
        list(dict.fromkeys([*project.categories, *CATEGORY_WORDS])),
        default=list(project.categories),
        format_func=category_words,
        accept_new_options=True,
        key=f"{key}.categories",
        help="The first nine have the keys 1 to 9. Type a word of your own to add it.",
    )
    return {
        "categories": tuple(categories),
        "people_each": int(people),
        "hold_minutes": int(minutes),
        "random_share": share / 100.0,
        "is_blind": bool(is_blind),
    }


def sound_categories(categories: Sequence[str]) -> tuple[str, ...]:
    """The categories as kept, each once, in default words.

    Raises InputError: there is none, or one is too long.
    """
    ids: dict[str, str] = {words: name for name, words in CATEGORY_WORDS.items()}
    flat = (" ".join(name.split()) for name in categories if name.strip())
    found = tuple(dict.fromkeys(ids.get(name, name) for name in flat))
    if not found:
        raise InputError("Expected at least one thing that may be wrong, found none; choose one.")
    if longest := next((name for name in found if len(name) > LONGEST_CATEGORY), ""):
        raise InputError(
            f"Expected at most {LONGEST_CATEGORY} characters, found {len(longest)} in "
            f"“{longest[:20]}…”; shorten it."
        )
    return found


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
        st.info("Nothing to review yet: every finished check comes to this queue.")
        st.stop()
    finished = counts["done"] + counts["adjudicated"]
    st.progress(
        finished / total, text=f"{finished} of {counted(total, 'item')} reviewed, "
        f"{counts['pending']} waiting, {counts['in_hand']} being reviewed"
    )  # fmt: skip
    did = ", ".join(f"{mine[name]} {name}" for name in ("submitted", "skipped", "flagged"))
    share = f"{project.random_share:.0%} of what you are given is drawn at random"
    st.caption(f"{escaped(person)}: {did} · {share}")


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
    wanted = _draw_filters()
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
    """To what the person has in hand, else to what they claim next; says so where none fits."""
    now = time.time()
    with problem_shown():
        with state.open_store() as store:
            project, person = state.project(store), state.person(store)
            rules = rules_of(project)
            state.reordering().ask(store, project.id, project.people_each)  # for whoever is next
            with store.writing():
                store.projects.require(project.id, person, "annotator", "review")
                done = sum(store.queue.counts_of(project.id, person).values())
                # Every so often at random.
                is_random = int((done + 1) * rules.random_share) > int(done * rules.random_share)
                found = store.queue.claim(
                    project.id, person, rules, now, wanted, is_random=is_random
                )
        if found is not None:
            st.switch_page(LABEL_PAGE, query_params={"case": found.case_id})
        st.success(
            "Nothing else that matches these filters is waiting for you.", icon=":material/check:"
        )


def draw_list(wanted: ItemFilter) -> None:
    """What waits (or was flagged, or settled); a click takes an item."""
    shown = st.segmented_control(
        "Show", list(STATES), default="pending", key="review.states", persist_state="session"
    )
    chosen = shown or "pending"
    with state.open_store() as store:
        project = state.project(store)
        mine = _of_mine(store, chosen, wanted, project)
    _draw_page(
        mine, STATES[chosen], partial(_cells, project),
        key=f"review.table.{shown}", page="review.page", opens=LABEL_PAGE,
    )  # fmt: skip


def _of_mine(store: Store, chosen: str, wanted: ItemFilter, project: Project) -> ItemFilter:
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


def _cells(project: Project, store: Store, item: Item) -> dict[str, Any]:
    case, is_blind = store.cases.get(item.case_id), project.is_blind
    cells: dict[str, Any] = {"Claim": clipped(case.response if case else "", 200)}
    if not is_blind:
        cells["The machine"] = _label_words(item)
        cells["p"] = "" if item.p is None else f"{item.p:.2f}"
    cells["Reviewed"] = f"{item.given} of {project.people_each}"
    cells["Why"] = why_shown(why_of(item), is_blind)
    if not is_blind:  # by the protocols of all runs that came to a label, the newest first
        runs = store.runs.of_case(item.case_id, time.time(), 0.0)
        found = [protocol_words(run.plan.protocol, short=True) for run in runs if run.label]
        names = list(dict.fromkeys(reversed(found)))
        more = [f"{len(names) - MOST_WAYS} more"] if len(names) > MOST_WAYS else []
        cells["Checked by"] = ", ".join([*names[:MOST_WAYS], *more])
    return cells


def _label_words(item: Item) -> str:
    return f"{LABEL_SIGNS[item.label]} {LABEL_WORDS[item.label]}" if item.label else "–"


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
    """Draw the choice of cases and their list; a click opens a case."""
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
        st.info(
            "Nothing to adjudicate. A case appears here once two people have answered it, or one "
            "has flagged it."
        )
        return
    _draw_page(
        *VIEWS[name], _settling_cells,
        key=f"settling.table.{name}", page=f"settling.{name}.page", opens=SETTLE_PAGE,
    )  # fmt: skip


def _settling_cells(store: Store, item: Item) -> dict[str, Any]:
    case, said = store.cases.get(item.case_id), store.corrections.newest_of_case(item.case_id)
    return {
        "Claim": clipped(case.response if case else "", 200),
        "People": ", ".join(f"{one.author}: {LABEL_SIGNS[one.label]}" for one in said),
        "They differ in": DIFFER_WORDS[item.differ],
        "The machine": _label_words(item),
    }
