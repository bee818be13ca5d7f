"""History: the filters, kept in the address; the runs, 25 a page; what was decided alike before."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from components.app import state
from components.widgets.controls import choice_table, link, open_run
from components.widgets.wording import (
    LABEL_WORDS,
    STATUS_WORDS,
    clipped,
    escaped,
    p_words,
    protocol_words,
    roster_words,
    signed,
    status_words,
    when,
)
from core.documents.segmentation import language_of, query_terms
from core.pipeline.streaming_input import PROTOCOLS
from core.review.adjudication import Decided, decided, same_or_alike
from core.review.queue_ranking import Policy, policy_of
from core.schema.records import Case, Run
from core.store import Store
from core.store.queries import present_classifiers
from core.store.runs import RunFilter, RunRow
from core.store.versions import SEED_VERSION

MOST_SHOWN = 3
KEPT_SECONDS = 120.0
RUN_PAGE = "pages/check/run.py"


def draw_checked_before(response: str, question: str) -> None:
    """Earlier checks of the same text or the closest ones, with what people decided."""
    if not response.strip():
        return
    with state.open_store() as store:
        project = state.project(store)
        language = language_of(f"{question} {response}")
        same, alike = same_or_alike(store, project.id, response, question, language)
        found = [(case, run, "Checked") for case in same for run in _newest(store, case)]
        for case in alike if not same else ():
            how = f"Similar, “{clipped(case.response, 60)}”, checked"
            found += [(case, run, how) for run in _newest(store, case)[:1]]
        for case, run, how in found[:MOST_SHOWN]:
            words = _check_words(store, case, run, how)
            link(RUN_PAGE, escaped(words), "history", run=run.id)


def _check_words(store: Store, case: Case, run: Run, how: str) -> str:
    """When and by which protocol the run was made, its label, and what people say of its case."""
    by = protocol_words(run.plan.protocol, short=True)
    label = LABEL_WORDS[run.label].lower() if run.label else "no label"
    words = f"{how} on {when(run.started_at)} by {by}: {label}"
    for one in decided(store, [case], is_same=True):
        if one.gold is not None:
            words += f"; settled as {LABEL_WORDS[one.gold.label].lower()}"
        elif one.said:
            last = max(one.said, key=lambda said: said.at)
            words += f"; {last.author} says {LABEL_WORDS[last.label].lower()}"
    return words


def draw_decided_before(case: Case) -> None:
    """What people decided on the same text or one much like it, in other cases."""
    with state.open_store() as store:
        same, alike = _others(case.id, case)
        found = decided(store, store.cases.several(same), is_same=True)
        found += decided(store, store.cases.several(alike), is_same=False)
        for one in found[:MOST_SHOWN]:
            runs = store.runs.of_case(one.case.id, time.time(), 60.0)
            words = escaped(_decided_words(one))
            if runs:
                link(RUN_PAGE, words, "history", run=runs[-1].id)
            else:
                st.caption(words)


@st.cache_data(ttl=KEPT_SECONDS, max_entries=256, show_spinner=False)
def _others(case_id: str, _case: Case) -> tuple[list[str], list[str]]:
    """Ids of other cases of the same text, and of those much like it; they seldom change."""
    asked = _case.project_id, _case.response, _case.question, _case.language
    with state.open_store() as store:
        same, alike = same_or_alike(store, *asked)
    return [c.id for c in same if c.id != case_id], [c.id for c in alike if c.id != case_id]


def _decided_words(one: Decided) -> str:
    how = "The same text" if one.is_same else f"Similar, “{clipped(one.case.response, 60)}”"
    if one.gold is not None:
        return f"{how}: settled as {LABEL_WORDS[one.gold.label].lower()}"
    said = ", ".join(f"{c.author} says {LABEL_WORDS[c.label].lower()}" for c in one.said)
    return f"{how}: {said}"


def _newest(store: Store, case: Case) -> list[Run]:
    """The case's newest run by each protocol, of those that came to a label, newest first."""
    runs = store.runs.of_case(case.id, time.time(), 0.0)
    newest = {run.plan.protocol: run for run in runs if run.label}
    return sorted(newest.values(), key=lambda run: -run.started_at)


CORRECTED = {"": None, "corrected": True, "not corrected": False}
SEARCH = "search"
PAGE_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
ANY = {"": "any"}
CHOICES: Mapping[str, Mapping[str, str]] = {  # the words of each value
    "label": ANY | dict(LABEL_WORDS),
    "status": ANY | dict(STATUS_WORDS),
    "protocol": ANY | {name: protocol_words(name, short=True) for name in PROTOCOLS},
    "people": {value: value or "any" for value in CORRECTED},
}


def draw_filters() -> RunFilter:
    """The filters; not bound to the address, which `open_run` hands on and could not set then."""
    _take_from_address()
    first, *columns = st.columns([3, 2, 2, 3, 2])
    search = first.text_input("Search", key="history.search", placeholder="Words of the claim")
    chosen = {
        name: column.selectbox(
            name.capitalize(), list(words), format_func=words.__getitem__, key=f"history.{name}"
        )
        or ""
        for column, (name, words) in zip(columns, CHOICES.items(), strict=True)
    }
    _keep_in_address()
    wanted = query_terms(search, language_of(search)) if search else []
    if search.strip() and not wanted:
        st.caption("The search holds no word that can be looked for; all runs are shown.")
    own = {name: chosen[name] for name in ("label", "status", "protocol")}
    return RunFilter(tuple(wanted), corrected=CORRECTED[chosen["people"]], **own)


def _take_from_address() -> None:
    """What the address says, for a page that is opened; what is no choice is left out."""
    for name in (*CHOICES, SEARCH):
        value = st.query_params.get(name, "")
        if f"history.{name}" not in st.session_state and value in CHOICES.get(name, [value]):
            st.session_state[f"history.{name}"] = value
    page = st.query_params.get("page", "")
    if "history.page" not in st.session_state and PAGE_NUMBER.fullmatch(page):
        st.session_state["history.page"] = int(page)


def _keep_in_address() -> None:
    for name in (*CHOICES, SEARCH, "page"):
        value = str(st.session_state.get(f"history.{name}") or "")
        value = "" if (name, value) == ("page", "1") else value
        if value and st.query_params.get(name) != value:
            st.query_params[name] = value
        elif not value and name in st.query_params:
            del st.query_params[name]


PAGE_SIZE = 25


def draw_page(wanted: RunFilter) -> int:
    """One page of runs, of how many; choosing a row opens it."""
    number = int(st.session_state.get("history.page") or 1)
    with state.open_store() as store:
        project = state.project(store)
        lease = store.projects.settings().lease_seconds
        policy = policy_of(store, project)
        page = {"limit": PAGE_SIZE, "offset": (number - 1) * PAGE_SIZE}
        rows, total = store.runs.page(project.id, wanted, **page, now=time.time(), lease=lease)
        classifiers = present_classifiers(store, [row.run.id for row in rows])
    if total and not rows:  # the filter left fewer pages than the one that was open
        st.session_state["history.page"] = 1
        st.rerun()
    if not total:
        st.info("No run matches. New check starts one.")
        return 0
    st.caption(f"{total} run{'' if total == 1 else 's'}")
    widths = {"Claim": 200, "Protocol": 180, "Models": 115}
    columns = {name: st.column_config.TextColumn(width=width) for name, width in widths.items()}
    columns["p"] = st.column_config.TextColumn("p", help="probability of being hallucinated")
    cells = _table(rows, classifiers, policy)
    chosen = choice_table(cells, f"history.table.{number}", column_config=columns)
    pages = -(-total // PAGE_SIZE)
    if pages > 1:
        st.pagination(pages, key="history.page")
    if chosen is not None:
        open_run(rows[chosen].run.id)
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
    people: dict[str, Any] = {}
    if policy is not None:
        waits = "decided" if row.corrected_label else "⚑ to decide"
        people["For people"] = waits if policy.is_for_people(run, version) else ""
    return {
        "Verdict": signed(run.label),
        "Claim": clipped(row.response, 200),
        "When": when(run.started_at),
        "p": p_words(run.p_hallucinated),
        "People say": LABEL_WORDS[row.corrected_label] if row.corrected_label else "",
        **people,
        "Status": status_words(run) + (" (imported)" if run.origin == "imported" else ""),
        "Protocol": protocol_words(run.plan.protocol, short=True),
        "Models": roster_words(run.plan.roster, short=True),
    }
