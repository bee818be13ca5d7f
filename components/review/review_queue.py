"""Review and Adjudicate screens: item lists, filters, the next item, and the queue's rules."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from components.app import state
from components.app.frame import ask_name, has_role
from components.review.answer_filters import (
    ANSWER_CHOICES,
    WORDS_FIELD,
    draw_answer_filters,
    format_difference,
    sync_address,
)
from components.review.assignment import draw_assignment, format_assigned
from components.widgets.controls import draw_choice_table, draw_link, show_problems
from components.widgets.wording import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clip_text,
    escape_markdown,
    format_count,
    format_duration,
    format_label,
    format_language,
    format_protocol,
)
from core.review.adjudication import find_difference
from core.review.people import has_answered, list_drafts
from core.review.queue_ranking import fill_queue
from core.review.work_time import measure_seconds
from core.runtime.errors import InputError
from core.schema.records import CATEGORY_WORDS, Project
from core.schema.reviews import AssignmentState, ItemState, QueueItem, format_category
from core.store import Store
from core.store.projects import GUEST, has_rank
from core.store.queue_order import explain_item, leave_neutral_reasons
from core.store.review_queue import (
    DISPUTED_STATES,
    NO_ITEM_FILTER,
    ItemFilter,
    build_disputed_filter,
    build_queue_rules,
)
from core.store.sqlite import ChangeMark

RANDOM_SHARE_HELP = (
    "The others are those that would teach most. Without a random share, what people find says "
    "little about all the rest."
)

DAY_SECONDS = 86_400.0
AGE_LIMITS = {
    "": None,
    "a day": DAY_SECONDS,
    "a week": 7 * DAY_SECONDS,
    "a month": 30 * DAY_SECONDS,
}
PAGE_SIZE = 25
ROW_HEIGHT, MAX_CLAIM_CHARS = 76, 95  # pixels of four lines, characters of three: words break
MAX_PEOPLE_PER_ITEM = 20
MAX_HOLD_MINUTES = 480
MAX_CATEGORY_CHARS = 40  # characters
LABEL_PAGE = "pages/review/label.py"
QUEUE_PAGE = "pages/review/pending.py"
ADJUDICATION_PAGE = "pages/review/adjudicate.py"
NO_FILTERS = "none"  # in a link that clears them
MAX_LISTED_PROTOCOLS = 2  # protocols named per item in the list
DRAFT_KEY_PATTERN = re.compile(
    r"run\.(.+)\.correct"
)  # the name that correction_draft.key_of builds
ALL_STATES: tuple[ItemState, ...] = ("open", "flagged", "adjudicated")
LIST_STATES: dict[str, tuple[ItemState, ...]] = {
    "pending": ("open",),
    "my drafts": ALL_STATES,
    "I submitted": ALL_STATES,
    "I skipped": ALL_STATES,
    "flagged": ("flagged",),
    "settled": ("adjudicated",),
}
DISPUTED = "disputed"
SETTLE_PAGE = "pages/review/adjudicate_case.py"
AdjudicationView = tuple[ItemFilter, tuple[ItemState, ...]]
ADJUDICATION_VIEWS: dict[str, AdjudicationView] = {
    "people differ": (ItemFilter(differ=True), ("open",)),
    "flagged": (NO_ITEM_FILTER, ("flagged",)),
    "people agree": (ItemFilter(answers_from=2, differ=False), ("open",)),
    "right answer known": (ItemFilter(has_gold=True), ("open", "flagged")),
    "settled": (NO_ITEM_FILTER, ("adjudicated",)),
}


def _draw_filters() -> ItemFilter:
    """Draw the filters and return the chosen one."""
    if st.query_params.pop("filters", "") == NO_FILTERS:
        for name in (
            "age",
            "language",
            "source",
            "label",
            "p",
            "apart",
            WORDS_FIELD,
            *ANSWER_CHOICES,
        ):
            st.session_state.pop(f"review.{name}", None)
    with state.open_store() as store:
        project = state.get_project(store)
        languages = store.queue_lists.languages(project.id)
        sources = {entry.id: entry.name for entry in store.library.all(project.id)}
    choices: dict[str, dict[str, str]] = {
        "age": {"": "any age"} | {name: name for name in AGE_LIMITS if name},
        "language": {"": "any"} | {name: format_language(name) for name in languages},
        "source": {"": "any source"} | sources,
        WORDS_FIELD: {},
        "show": {name: name for name in LIST_STATES},
    }
    if not project.is_blind:  # the others would tell what the machine or people found
        choices |= {"label": {"": "any"} | LABEL_WORDS, **ANSWER_CHOICES}
    sync_address("review", choices, show_key="review.states")
    is_set = any(st.session_state.get(f"review.{name}") for name in choices) or (
        st.session_state.get("review.wanted", NO_ITEM_FILTER) != NO_ITEM_FILTER
    )
    kept: dict[str, Any] = {"persist_state": "session"}
    with st.expander("Filters", expanded=is_set, icon=":material/filter_list:"):
        values: list[str] = []
        titles = {"age": "Older than", "language": "Language", "source": "Source"}
        for column, (name, title) in zip(st.columns(3), titles.items(), strict=True):
            words = choices[name]
            chosen = column.selectbox(
                title, list(words), format_func=words.__getitem__, key=f"review.{name}", **kept
            )
            values.append(chosen or "")
        age, language, source_id = values
        wanted = ItemFilter(older_than=AGE_LIMITS[age], language=language, source_id=source_id)
        wanted = draw_answer_filters("review", wanted, shows_answers=not project.is_blind)
        if project.is_blind:
            return wanted
        says, p, apart = st.columns([2, 3, 3])
        label = says.selectbox(
            "The machine says",
            list(choices["label"]),
            format_func=choices["label"].__getitem__,
            key="review.label",
            **kept,
        )
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


def _draw_page(
    wanted: ItemFilter,
    states: Sequence[ItemState],
    cells: Callable[[Store, QueueItem], dict[str, Any]],
    *,
    key: str,
    page: str,
    opens: str,
) -> None:
    """Draw the page of items chosen under `page`; a click opens the script `opens`."""
    first = (int(st.session_state.get(page) or 1) - 1) * PAGE_SIZE
    with state.open_store() as store:
        items, total = store.queue.page(
            state.get_project(store).id,
            wanted,
            states,
            limit=PAGE_SIZE,
            offset=first,
            now=time.time(),
        )
        rows = [cells(store, item) for item in items]
    if not total:
        st.caption("Nothing matches these filters.")
        return
    if not rows:  # others have answered these items meanwhile
        st.session_state[page] = 1
        st.rerun()
    widths = {"Claim": 236, "Why": 190, "Checked by": 100, "They differ in": 300}
    columns = {name: st.column_config.TextColumn(width=width) for name, width in widths.items()}
    chosen = draw_choice_table(rows, f"{key}.{first}", column_config=columns, row_height=ROW_HEIGHT)
    if (pages := -(-total // PAGE_SIZE)) > 1:
        st.pagination(pages, key=page)
    if chosen is not None:
        st.switch_page(opens, query_params={"case": items[chosen].case_id})


def draw_review_rules(project: Project) -> dict[str, Any]:
    """Draw the fields and return their values by the field names of `Project`."""
    key = f"project.{project.id}"
    left, middle, right = st.columns(3)
    people = left.number_input(
        "People who review each item",
        1,
        MAX_PEOPLE_PER_ITEM,
        project.people_each,
        key=f"{key}.people",
        help="Answers that came with a file count too; withdrawn ones do not.",
    )
    minutes = middle.number_input(
        "Minutes before a claimed item is released",
        1,
        MAX_HOLD_MINUTES,
        project.hold_minutes,
        key=f"{key}.minutes",
        help="Then it is free for others. What was written is kept, and counts when it is saved.",
    )
    share = right.number_input(
        "Share of items drawn at random (%)",
        0,
        100,
        round(100 * project.random_share),
        key=f"{key}.share",
        help=RANDOM_SHARE_HELP,
    )
    is_blind = st.toggle(
        "Hide the machine's verdict until a person has answered",
        value=project.is_blind,
        key=f"{key}.blind",
        help="On every page, for annotators; leads see it where they do not answer themselves. "
        "Nobody is shown what others answered before the case is settled, except leads where they "
        "settle.",
    )
    categories = st.multiselect(
        "Error categories",
        list(dict.fromkeys([*project.categories, *CATEGORY_WORDS])),
        default=list(project.categories),
        format_func=format_category,
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


def clean_categories(categories: Sequence[str]) -> tuple[str, ...]:
    """Return the categories to store, each once, default ones by their ids.

    Raises InputError if there is none, or if one is too long.
    """
    ids: dict[str, str] = {words: name for name, words in CATEGORY_WORDS.items()}
    flat = (" ".join(name.split()) for name in categories if name.strip())
    names = tuple(dict.fromkeys(ids.get(name, name) for name in flat))
    if not names:
        raise InputError("Expected at least one thing that may be wrong, found none; choose one.")
    if longest := next((name for name in names if len(name) > MAX_CATEGORY_CHARS), ""):
        raise InputError(
            f"Expected at most {MAX_CATEGORY_CHARS} characters, found {len(longest)} in "
            f"“{longest[:20]}…”; shorten it."
        )
    return names


def draw_progress() -> None:
    """Draw the progress of the queue and of the signed-in person."""
    now = time.time()
    with state.open_store() as store:
        project, person = state.get_project(store), state.get_person(store)
        _fill_queue(store, project.id, now)
        state.get_queue_ranker().ask(store, project.id, project.people_each)
        counts = store.queue.counts(project.id, build_queue_rules(project), now)
        mine = store.queue.counts_of(project.id, person)
        assigned = store.queue.count_assigned(project.id, project.people_each).get(person, 0)
    total = sum(counts[name] for name in ("pending", "done", "flagged", "adjudicated"))
    if not total:
        st.info("Nothing to review yet: every finished check comes to this queue.")
        st.stop()
    finished = counts["done"] + counts["adjudicated"]
    st.progress(
        finished / total,
        text=f"{finished} of {format_count(total, 'item')} reviewed, "
        f"{counts['pending']} waiting, {counts['in_hand']} of them being answered now, "
        f"{counts['flagged']} flagged",
    )
    did = ", ".join(f"{mine[name]} {name}" for name in ("submitted", "skipped", "flagged"))
    did += f", {assigned} assigned to you" if assigned else ""
    share = f"{project.random_share:.0%} of what you are given is drawn at random"
    who = "No name yet" if person == GUEST else escape_markdown(person)
    st.caption(f"{who}: {did} · {share}")


@st.cache_resource
def _complete_marks() -> dict[tuple[str, str], ChangeMark]:
    """Return, by home and project, the mark of the runs for which the queue was complete."""
    return {}


def _fill_queue(store: Store, project_id: str, now: float) -> None:
    """Add missing items to the queue; look again only after another run has ended."""
    key, mark = (str(state.home_folder()), project_id), store.changes.of_runs()
    if _complete_marks().get(key) != mark and not fill_queue(store, project_id, now):
        _complete_marks()[key] = mark


def draw_filters_and_next() -> ItemFilter:
    """Draw the filters and the button for the next item; return the chosen filter."""
    top = st.container()
    wanted = _draw_filters()
    st.session_state["review.wanted"] = wanted
    with state.open_store() as store:
        project, person = state.get_project(store), state.get_person(store)
        rules = build_queue_rules(project)
        has_next = store.queue.has_next(project.id, person, rules, time.time(), wanted)
    with top:
        if not ask_name() or not has_role("annotator", "review"):
            pass
        elif st.button(
            "Next item",
            key="review.next",
            type="primary" if has_next else "secondary",
            icon=":material/arrow_forward:",
            shortcut="Ctrl+Enter",
        ):
            open_next_item(wanted)
        elif not has_next:
            draw_nothing_left(wanted)
    return wanted


def format_item_reason(why: str, is_blind: bool) -> str:
    """Return why an item comes; a blind project hides reasons that reveal the machine's view."""
    return leave_neutral_reasons(why) if is_blind else why


def open_next_item(wanted: ItemFilter) -> None:
    """Open the person's item in hand, else claim the next one; say so if none fits."""
    now = time.time()
    with show_problems():
        with state.open_store() as store:
            project, person = state.get_project(store), state.get_person(store)
            rules = build_queue_rules(project)
            # For the next claim.
            state.get_queue_ranker().ask(store, project.id, project.people_each)
            with store.writing():
                store.projects.require(project.id, person, "annotator", "review")
                done = sum(store.queue.counts_of(project.id, person).values())
                # Spreads random items evenly over the person's answers.
                is_random = int((done + 1) * rules.random_share) > int(done * rules.random_share)
                claimed = store.queue.claim(
                    project.id, person, rules, now, wanted, is_random=is_random
                )
        if claimed is not None:
            st.switch_page(LABEL_PAGE, query_params={"case": claimed.case_id})
        draw_nothing_left(wanted)


def draw_nothing_left(wanted: ItemFilter) -> None:
    """Say that no item is left for the person, with links to what they can do instead."""
    is_filtered = wanted != NO_ITEM_FILTER
    matching = " that matches these filters" if is_filtered else ""
    with state.open_store() as store:
        project, person = state.get_project(store), state.get_person(store)
        mine = store.queue.counts_of(project.id, person)
        is_lead = has_rank(store.projects.role_of(project.id, person), "lead")
        to_settle = sum(
            store.queue.count(project.id, *ADJUDICATION_VIEWS[name], time.time())
            for name in ("people differ", "flagged")
        )
    st.success(f"Nothing else{matching} is waiting for you.", icon=":material/check:")
    with st.container(horizontal=True):
        if is_filtered:
            draw_link(QUEUE_PAGE, "Clear the filters", "filter_alt_off", filters=NO_FILTERS)
        if skipped := mine["skipped"]:
            words = f"Look again at the {format_count(skipped, 'item')} you skipped"
            draw_link(QUEUE_PAGE, words, "skip_next", show="I skipped")
        if to_settle and is_lead:
            words = f"Adjudicate {format_count(to_settle, 'case')}"
            draw_link(ADJUDICATION_PAGE, words, "gavel")
        if mine["submitted"]:
            draw_link(QUEUE_PAGE, "Look at what you submitted", "history", show="I submitted")
        draw_link("pages/review/agreement.py", "See how far people agree", "handshake")
        if is_lead:
            draw_link("pages/setup/exchange.py", "Import cases", "input")
            draw_link("pages/setup/project.py", "Ask more people about each item", "group_add")
            draw_link("pages/learn/retrain.py", "Learn from the answers", "model_training")
        draw_link("pages/check/new.py", "Check something new", "add")


def draw_list(wanted: ItemFilter) -> None:
    """Draw the list of waiting, flagged or settled items; a click opens one."""
    st.session_state.setdefault("review.states", "pending")
    shown = st.segmented_control(
        "Show", list(LIST_STATES), key="review.states", persist_state="session"
    )
    chosen = shown or "pending"
    with state.open_store() as store:
        project = state.get_project(store)
        narrowed = _narrow_to_person(store, chosen, wanted, project)
        draw_assignment(store, project, wanted)
    _draw_page(
        narrowed,
        LIST_STATES[chosen],
        partial(_build_own_cells if chosen == "I submitted" else _build_cells, project),
        key=f"review.table.{shown}",
        page="review.page",
        opens=LABEL_PAGE,
    )


def _narrow_to_person(
    store: Store, chosen: str, wanted: ItemFilter, project: Project
) -> ItemFilter:
    """Return the filter narrowed to what the choice means for the signed-in person."""
    person = state.get_person(store)
    if chosen == "pending":
        return replace(wanted, given_below=project.people_each)
    if chosen == "my drafts":
        names = (DRAFT_KEY_PATTERN.fullmatch(name) for name in list_drafts(store, person))
        return replace(wanted, among=tuple(name[1] for name in names if name))
    did: dict[str, AssignmentState] = {"I submitted": "submitted", "I skipped": "skipped"}
    if chosen in did:
        return replace(wanted, person=person, person_did=did[chosen])
    return wanted


def _build_cells(project: Project, store: Store, item: QueueItem) -> dict[str, Any]:
    case, person = store.cases.get(item.case_id), state.get_person(store)
    # Leads too answer without having seen the verdict.
    is_blind = project.is_blind and not has_answered(store, item.case_id, person)
    held = store.queue.of(item.case_id, person)
    cells: dict[str, Any] = {"Claim": clip_text(case.response if case else "", MAX_CLAIM_CHARS)}
    if not is_blind:
        cells["The machine"] = _format_label(item)
        cells["Likely hallucinated"] = "" if item.p is None else f"{item.p:.0%}"
    cells["Reviewed"] = f"{item.given} of {project.people_each}"
    cells["Assigned to"] = format_assigned(store, item.case_id)
    cells["Why"] = format_item_reason(held.why if held else explain_item(item), is_blind)
    if not is_blind:  # the protocols of all runs that reached a label, newest first
        runs = store.runs.of_case(item.case_id, time.time(), 0.0)
        protocols = [format_protocol(run.plan.protocol, short=True) for run in runs if run.label]
        names = list(dict.fromkeys(reversed(protocols)))
        more = (
            [f"{len(names) - MAX_LISTED_PROTOCOLS} more"]
            if len(names) > MAX_LISTED_PROTOCOLS
            else []
        )
        cells["Checked by"] = ", ".join([*names[:MAX_LISTED_PROTOCOLS], *more])
    return cells


def _build_own_cells(project: Project, store: Store, item: QueueItem) -> dict[str, Any]:
    """Return an item's cells with the person's own answer and the time that they took."""
    person, cells = state.get_person(store), _build_cells(project, store, item)
    own = [each for each in store.corrections.of_case(item.case_id) if each.author == person]
    assignment = store.queue.of(item.case_id, person)
    seconds = measure_seconds(assignment) if assignment else None
    mine = {
        "I said": format_label(own[-1].label if own else None),
        "My time": "not measured" if seconds is None else format_duration(seconds),
    }
    return {"Claim": cells.pop("Claim"), **mine, **cells}


def _format_label(item: QueueItem) -> str:
    return f"{LABEL_SIGNS[item.label]} {LABEL_WORDS[item.label]}" if item.label else "–"


def draw_adjudication_list() -> None:
    """Draw the views of cases to adjudicate and the list; a click opens a case."""
    now = time.time()
    with state.open_store() as store:
        project = state.get_project(store)
    all_views: dict[str, AdjudicationView] = {
        DISPUTED: (build_disputed_filter(project), DISPUTED_STATES),
        **ADJUDICATION_VIEWS,
    }
    sync_address(
        "settling",
        {"show": {name: name for name in all_views}, WORDS_FIELD: {}, **ANSWER_CHOICES},
        show_key="settling.view",
    )
    shown = st.container()
    wanted = draw_answer_filters("settling", NO_ITEM_FILTER, shows_answers=True)
    st.session_state["settling.wanted"] = wanted
    views = {name: narrow_view(view, wanted) for name, view in all_views.items()}
    with state.open_store() as store:
        counts = {name: store.queue.count(project.id, *view, now) for name, view in views.items()}
    if not st.session_state.get("settling.view"):
        first = next((name for name in ADJUDICATION_VIEWS if counts[name]), "people differ")
        st.session_state["settling.view"] = first
    name = shown.segmented_control(
        "Show",
        list(views),
        format_func=lambda name: f"{name} ({counts[name]})",
        key="settling.view",
        required=True,
        persist_state="session",
    )
    if name is None or not counts[name]:
        st.info(
            "Nothing to adjudicate. A case appears here once two people have answered it, or one "
            "has flagged it."
            if wanted == NO_ITEM_FILTER
            else "No case here matches these filters."
        )
        return
    _draw_page(
        *views[name],
        _build_settling_cells,
        key=f"settling.table.{name}",
        page=f"settling.{name}.page",
        opens=SETTLE_PAGE,
    )


def narrow_view(view: AdjudicationView, wanted: ItemFilter) -> AdjudicationView:
    """Return a view of Adjudicate with the words and cases that its filters choose."""
    filtered, states = view
    return replace(filtered, words=wanted.words, case_ids=wanted.case_ids), states


def _build_settling_cells(store: Store, item: QueueItem) -> dict[str, Any]:
    case = store.cases.get(item.case_id)
    answers = store.corrections.newest_of_case(item.case_id)
    cells = {
        "Claim": clip_text(case.response if case else "", MAX_CLAIM_CHARS),
        "People": ", ".join(f"{each.author}: {LABEL_SIGNS[each.label]}" for each in answers),
        # The table breaks lines by a guess at their width, but always where one ends.
        "They differ in": format_difference(find_difference(answers)).replace(" · ", "\n") or "–",
        "The machine": _format_label(item),
    }
    if item.state == "flagged":
        flags = [each for each in store.queue_events.of_case(item.case_id) if each.did == "flagged"]
        cells["Flagged"] = ", ".join(
            f"{each.person}: {each.words}" if each.words else each.person for each in flags[-1:]
        )
    return cells
