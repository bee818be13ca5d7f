"""History: filters kept in the address, runs page by page, and what was decided before."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from components.app import state
from components.widgets.controls import draw_choice_table, draw_link, open_run
from components.widgets.wording import (
    LABEL_WORDS,
    STATUS_WORDS,
    clip_text,
    escape_markdown,
    format_label,
    format_probability,
    format_protocol,
    format_roster,
    format_status,
    format_time,
)
from core.documents.segmentation import detect_language, extract_query_terms
from core.pipeline.single_check import CLI_PROTOCOLS
from core.review.adjudication import DecidedCase, find_similar_cases, load_decided_cases
from core.review.people import can_see_answers
from core.review.queue_ranking import AutomationPolicy, load_policy
from core.schema.records import Case, Run
from core.store import Store
from core.store.queries import load_present_classifiers
from core.store.runs import RunFilter, RunRow
from core.store.versions import SEED_VERSION

MAX_EARLIER_CHECKS = 3
CACHE_SECONDS = 120.0
RUN_PAGE = "pages/check/run.py"
PAGE_SIZE = 25
# In pixels. The claim gets what the other columns leave of the table beside an open menu.
COLUMN_WIDTHS = {
    "Verdict": 98,
    "When": 112,
    "p": 48,
    "People say": 96,
    "Status": 78,
    "Protocol": 130,
    "Models": 95,
    "Classifier": 70,
}
TABLE_WIDTH = 812  # without the column of checkboxes
MIN_CLAIM_WIDTH = 110
PAGE_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
SEARCH_FIELD = "search"
CORRECTED_BY_CHOICE = {"": None, "corrected": True, "not corrected": False}
ANY_CHOICE = {"": "any"}
FILTER_CHOICES: Mapping[str, Mapping[str, str]] = {  # by filter, the words of each value
    "label": ANY_CHOICE | dict(LABEL_WORDS),
    "status": ANY_CHOICE | dict(STATUS_WORDS),
    "protocol": ANY_CHOICE | {name: format_protocol(name, short=True) for name in CLI_PROTOCOLS},
    "people": {value: value or "any" for value in CORRECTED_BY_CHOICE},
}


def draw_earlier_checks(response: str, question: str) -> None:
    """Draw earlier checks of the same text or the most similar ones, with people's decisions."""
    if not response.strip():
        return
    with state.open_store() as store:
        project = state.get_project(store)
        language = detect_language(f"{question} {response}")
        same, alike = find_similar_cases(store, project.id, response, question, language)
        checks = [(case, run, "Checked") for case in same for run in _newest_runs(store, case)]
        for case in alike if not same else ():
            lead = f"Similar, “{clip_text(case.response, 60)}”, checked"
            checks += [(case, run, lead) for run in _newest_runs(store, case)[:1]]
        for case, run, lead in checks[:MAX_EARLIER_CHECKS]:
            words = _check_words(store, case, run, lead)
            draw_link(RUN_PAGE, escape_markdown(words), "history", run=run.id)


def _check_words(store: Store, case: Case, run: Run, lead: str) -> str:
    """Say when and by which protocol the run was made, its label, and what people decided."""
    by = format_protocol(run.plan.protocol, short=True)
    label = LABEL_WORDS[run.label].lower() if run.label else "no label"
    words = f"{lead} on {format_time(run.started_at)} by {by}: {label}"
    for decision in load_decided_cases(store, [case], state.get_person(store), is_same=True):
        if decision.gold is not None:
            words += f"; settled as {LABEL_WORDS[decision.gold.label].lower()}"
        elif decision.said:
            last = max(decision.said, key=lambda correction: correction.at)
            words += f"; {last.author} says {LABEL_WORDS[last.label].lower()}"
    return words


def draw_earlier_decisions(case: Case) -> None:
    """Draw what people decided about the same text or similar ones in other cases."""
    with state.open_store() as store:
        same, alike = _find_other_cases(case.id, case)
        decisions = [
            decision
            for ids, is_same in ((same, True), (alike, False))
            for decision in load_decided_cases(
                store, store.cases.several(ids), state.get_person(store), is_same=is_same
            )
        ]
        for decision in decisions[:MAX_EARLIER_CHECKS]:
            runs = store.runs.of_case(decision.case.id, time.time(), 60.0)
            words = escape_markdown(_decided_words(decision))
            if runs:
                draw_link(RUN_PAGE, words, "history", run=runs[-1].id)
            else:
                st.caption(words)


@st.cache_data(ttl=CACHE_SECONDS, max_entries=256, show_spinner=False)
def _find_other_cases(case_id: str, _case: Case) -> tuple[list[str], list[str]]:
    """Return ids of other cases with the same text, and of similar ones; cached."""
    with state.open_store() as store:
        same, alike = find_similar_cases(
            store, _case.project_id, _case.response, _case.question, _case.language
        )
    return [c.id for c in same if c.id != case_id], [c.id for c in alike if c.id != case_id]


def _decided_words(decision: DecidedCase) -> str:
    similar = f"Similar, “{clip_text(decision.case.response, 60)}”"
    text = "The same text" if decision.is_same else similar
    if decision.gold is not None:
        return f"{text}: settled as {LABEL_WORDS[decision.gold.label].lower()}"
    labels = (f"{c.author} says {LABEL_WORDS[c.label].lower()}" for c in decision.said)
    return f"{text}: {', '.join(labels)}"


def _newest_runs(store: Store, case: Case) -> list[Run]:
    """Return the case's newest labelled run by each protocol, newest first."""
    runs = store.runs.of_case(case.id, time.time(), 0.0)
    newest = {run.plan.protocol: run for run in runs if run.label}
    return sorted(newest.values(), key=lambda run: -run.started_at)


def draw_filters() -> RunFilter:
    """Draw the filters and return them.

    They are not bound to the address, which `open_run` passes on and could not set then.
    """
    _read_address()
    first, *columns = st.columns([3, 2, 2, 3, 2])
    search = first.text_input("Search", key="history.search", placeholder="Words of the claim")
    chosen = {
        name: column.selectbox(
            name.capitalize(), list(words), format_func=words.__getitem__, key=f"history.{name}"
        )
        or ""
        for column, (name, words) in zip(columns, FILTER_CHOICES.items(), strict=True)
    }
    _write_address()
    terms = extract_query_terms(search, detect_language(search)) if search else []
    if search.strip() and not terms:
        st.caption("The search holds no word that can be looked for; all runs are shown.")
    return RunFilter(
        tuple(terms),
        label=chosen["label"],
        status=chosen["status"],
        protocol=chosen["protocol"],
        corrected=CORRECTED_BY_CHOICE[chosen["people"]],
    )


def _read_address() -> None:
    """Set the filters of a page just opened from its address; invalid values are ignored."""
    for name in (*FILTER_CHOICES, SEARCH_FIELD):
        value = st.query_params.get(name, "")
        if f"history.{name}" not in st.session_state and value in FILTER_CHOICES.get(name, [value]):
            st.session_state[f"history.{name}"] = value
    page = st.query_params.get("page", "")
    if "history.page" not in st.session_state and PAGE_NUMBER.fullmatch(page):
        st.session_state["history.page"] = int(page)


def _write_address() -> None:
    for name in (*FILTER_CHOICES, SEARCH_FIELD, "page"):
        value = str(st.session_state.get(f"history.{name}") or "")
        value = "" if (name, value) == ("page", "1") else value
        if value and st.query_params.get(name) != value:
            st.query_params[name] = value
        elif not value and name in st.query_params:
            del st.query_params[name]


def draw_runs_page(wanted: RunFilter) -> int:
    """Draw one page of runs, whose rows open them; return the number of all matching runs."""
    number = int(st.session_state.get("history.page") or 1)
    with state.open_store() as store:
        project = state.get_project(store)
        lease = store.projects.settings().lease_seconds
        policy = load_policy(store, project)
        rows, total = store.runs.page(
            project.id,
            wanted,
            limit=PAGE_SIZE,
            offset=(number - 1) * PAGE_SIZE,
            now=time.time(),
            lease=lease,
        )
        classifiers = load_present_classifiers(store, [row.run.id for row in rows])
        if not can_see_answers(store, project.id, state.get_person(store)):
            rows = [replace(row, corrected_label=None) for row in rows]
    if total and not rows:  # the filter leaves fewer pages than the open one's number
        st.session_state["history.page"] = 1
        st.rerun()
    if not total:
        st.info("No run matches. New check starts one.")
        return 0
    st.caption(f"{total} run{'' if total == 1 else 's'}")
    cells = _run_rows(rows, classifiers, policy)
    others = sum(COLUMN_WIDTHS.get(name, 0) for name in cells[0])
    widths = COLUMN_WIDTHS | {"Claim": max(MIN_CLAIM_WIDTH, TABLE_WIDTH - others)}
    columns = {name: st.column_config.TextColumn(width=width) for name, width in widths.items()}
    columns["p"]["help"] = "probability of being hallucinated"
    chosen = draw_choice_table(cells, f"history.table.{number}", column_config=columns)
    pages = -(-total // PAGE_SIZE)
    if pages > 1:
        st.pagination(pages, key="history.page")
    if chosen is not None:
        open_run(rows[chosen].run.id)
    return total


def _run_rows(
    rows: Sequence[RunRow], classifiers: Mapping[str, str], policy: AutomationPolicy | None
) -> list[dict[str, Any]]:
    """Return the page's rows, without columns that would say nothing."""
    cells = [_run_row(row, policy, classifiers.get(row.run.id, "")) for row in rows]
    for name, usual in (("People say", ""), ("Status", "Finished")):
        if all(cell[name] == usual for cell in cells):
            for cell in cells:
                del cell[name]
    if set(classifiers.values()) - {SEED_VERSION}:
        for cell, row in zip(cells, rows, strict=True):
            cell["Classifier"] = classifiers.get(row.run.id, "")
    return cells


def _run_row(row: RunRow, policy: AutomationPolicy | None, version: str) -> dict[str, Any]:
    """Return a run's row; with a policy it says which runs people are to decide."""
    run = row.run
    people = LABEL_WORDS[row.corrected_label] if row.corrected_label else ""
    if not people and policy is not None and policy.is_for_people(run, version):
        people = "⚑ to decide"
    return {
        "Verdict": format_label(run.label),
        "Claim": clip_text(row.response, 200),
        "When": format_time(run.started_at),
        "p": format_probability(run.p_hallucinated),
        "People say": people,
        "Status": format_status(run) + (" (imported)" if run.origin == "imported" else ""),
        "Protocol": format_protocol(run.plan.protocol, short=True),
        "Models": format_roster(run.plan.roster, short=True),
    }
