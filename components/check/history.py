"""History: filters kept in the address, runs page by page, their names, earlier decisions."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

import streamlit as st

from components.app import state
from components.widgets.controls import draw_link, get_component, show_problem, store_problem
from components.widgets.drafts import get_css_class
from components.widgets.html import div, draw_html, element
from components.widgets.wording import (
    LABEL_WORDS,
    STATUS_WORDS,
    clip_text,
    describe_people_verdict,
    escape_markdown,
    format_answer,
    format_count,
    format_label,
    format_label_probability,
    format_protocol,
    format_roster,
    format_status,
    format_time,
)
from core.documents.segmentation import detect_language, extract_query_terms
from core.pipeline.single_check import CLI_PROTOCOLS
from core.review.adjudication import DecidedCase, find_similar_cases, load_decided_cases
from core.review.people import (
    can_see_answers,
    find_hidden_cases,
    find_visible_truths,
    list_people_labels,
    withhold_verdicts,
)
from core.review.queue_ranking import AutomationPolicy, load_policy
from core.schema.records import Case, Label, Run
from core.store import Store, open_store
from core.store.ground_truth import GroundTruth
from core.store.queries import load_present_classifiers
from core.store.runs import RunFilter, RunRow
from core.store.sqlite import ChangeMark
from core.store.versions import SEED_VERSION

MAX_EARLIER_CHECKS = 3
MAX_CACHED_PROJECTS = 4  # projects
CACHE_SECONDS = 120.0
RUN_PAGE = "pages/check/run.py"
PAGE_SIZE = 25
MAX_NAME_CHARS = 80  # of a name that a person gives to a run
MAX_CLAIM_CHARS = 400  # more than two lines hold; the style sheet cuts after them
PAGE_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
SEARCH_FIELD, DATES_FIELD = "search", "dates"
CORRECTED_BY_CHOICE = {"": None, "corrected": True, "not corrected": False}
ANY_CHOICE = {"": "any"}
FILTER_TITLES = {
    "label": "Verdict",
    "document": "Document",
    "person": "Person",
    "protocol": "Protocol",
    "status": "Status",
    "people": "Corrected",
}
FILTER_CHOICES: dict[str, dict[str, str]] = {  # by filter, the words of each value
    "label": ANY_CHOICE | dict(LABEL_WORDS),
    "status": ANY_CHOICE | dict(STATUS_WORDS),
    "protocol": ANY_CHOICE | {name: format_protocol(name, short=True) for name in CLI_PROTOCOLS},
    "people": {value: value or "any" for value in CORRECTED_BY_CHOICE},
}
ADDRESS_FIELDS = (*FILTER_TITLES, SEARCH_FIELD, "page")


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
    words = f"{lead} on {format_time(run.started_at)} by {by}"
    if find_hidden_cases(store, case.project_id, state.get_person(store), [case.id]):
        return words
    words += f": {LABEL_WORDS[run.label].lower() if run.label else 'no label'}"
    for decision in load_decided_cases(store, [case], state.get_person(store), is_same=True):
        words += f"; {_describe_truth(decision.truth)}"
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


def draw_other_verdict(run: Run, case: Case) -> None:
    """Lead from a run without a verdict to the newest one of its case that has one."""
    with state.open_store() as store:
        others = [other for other in _newest_runs(store, case) if other.id != run.id]
    if run.label is None and others:
        at, label = format_time(others[0].started_at), format_label(others[0].label)
        words = f"Its run of {at} has a verdict: {label}"
        draw_link(RUN_PAGE, escape_markdown(words), "history", run=others[0].id)


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
    return f"{text}: {_describe_truth(decision.truth)}"


def _describe_truth(truth: GroundTruth) -> str:
    """Say what counts for a case: “settled as supported”, or which answers there are."""
    if truth.label and truth.basis == "settled":
        return f"settled as {LABEL_WORDS[truth.label].lower()}"
    if truth.label and truth.basis == "gold":
        return f"{LABEL_WORDS[truth.label].lower()} by an imported answer"
    return ", ".join(format_answer(record.author, record.label) for record in truth.records)


def _newest_runs(store: Store, case: Case) -> list[Run]:
    """Return the case's newest labelled run by each protocol, newest first."""
    runs = store.runs.of_case(case.id, time.time(), 0.0)
    newest = {run.plan.protocol: run for run in runs if run.label}
    return sorted(newest.values(), key=lambda run: -run.started_at)


def draw_filters() -> RunFilter:
    """Draw the filters and return them.

    They are not bound to the address: the fields of a page that is left lose their values.
    """
    with state.open_store() as store:
        project = state.get_project(store)
        documents = {entry.id: entry.name for entry in store.library.all(project.id)}
        kept = (str(state.home_folder()), project.id, store.changes.of_corrections())
        people = {name: name for name in _list_people(*kept, store.changes.of_cases())}
        person = state.get_person(store)
        is_open = can_see_answers(store, project.id, person)
        shows_verdicts = can_see_answers(store, project.id, person, is_settling=True)
    choices = FILTER_CHOICES | {"document": ANY_CHOICE | documents, "person": ANY_CHOICE | people}
    if not is_open:  # who answered what stays unseen
        choices |= {"person": ANY_CHOICE, "people": ANY_CHOICE}
    if not shows_verdicts:
        choices |= {"label": ANY_CHOICE}
    _read_address(choices)
    with st.container(key="cp-filters"):
        first, second = st.columns([3, 2, 3, 2]), st.columns([3, 2, 3, 2])
    search = first[0].text_input("Search", key="history.search", placeholder="Words of the claim")
    dates = second[0].date_input("Dates", [*_read_dates()], key="history.dates", max_value="today")
    chosen = {
        name: column.selectbox(
            title, list(choices[name]), format_func=choices[name].__getitem__, key=f"history.{name}"
        )
        or ""
        for column, (name, title) in zip(
            (*first[1:], second[2], second[1], second[3]), FILTER_TITLES.items(), strict=True
        )
    }
    _write_address(dates)
    terms = extract_query_terms(search, detect_language(search)) if search else []
    if search.strip() and not terms:
        st.caption("The search holds no word that can be looked for; all runs are shown.")
    people_labels: dict[str, Label] = {}
    if chosen["label"]:
        with state.open_store() as store:
            people_labels = list_people_labels(store, project.id, person, _load_truths(*kept))
    days = [datetime.combine(day, datetime.min.time()) for day in dates]
    return RunFilter(
        tuple(terms),
        search.strip(),
        corrected=CORRECTED_BY_CHOICE[chosen.pop("people")],
        since=days[0].timestamp() if days else 0.0,
        until=(days[-1] + timedelta(days=1)).timestamp() if days else 0.0,
        people_labels=people_labels,
        **chosen,
    )


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner=False)
def _list_people(home: str, project_id: str, answers: ChangeMark, cases: ChangeMark) -> list[str]:
    with open_store(Path(home)) as store:
        return store.runs.people(project_id)


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner=False)
def _load_truths(home: str, project_id: str, answers: ChangeMark) -> dict[str, GroundTruth]:
    with open_store(Path(home)) as store:
        return store.truths.labels(project_id)


def _read_address(choices: Mapping[str, Mapping[str, str]]) -> None:
    """Set the filters of a page just opened from its address; invalid values are ignored."""
    for name in (*FILTER_TITLES, SEARCH_FIELD):
        value = st.query_params.get(name, "")
        if f"history.{name}" not in st.session_state and value in choices.get(name, [value]):
            st.session_state[f"history.{name}"] = value
    page = st.query_params.get("page", "")
    if "history.page" not in st.session_state and PAGE_NUMBER.fullmatch(page):
        st.session_state["history.page"] = int(page)


def _read_dates() -> list[date]:
    """Return the first and last day that the address names, or none."""
    with contextlib.suppress(ValueError):
        days = [date.fromisoformat(day) for day in st.query_params.get_all(DATES_FIELD)]
        return sorted(min(day, date.today()) for day in days)[:2]
    return []


def _write_address(dates: Sequence[date]) -> None:
    for name in ADDRESS_FIELDS:
        value = str(st.session_state.get(f"history.{name}") or "")
        value = "" if (name, value) == ("page", "1") else value
        if value and st.query_params.get(name) != value:
            st.query_params[name] = value
        elif not value and name in st.query_params:
            del st.query_params[name]
    days = [day.isoformat() for day in dates]
    if st.query_params.get_all(DATES_FIELD) != days:
        st.query_params[DATES_FIELD] = days


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
        # Nobody sees what others answered before they have answered themselves.
        person = state.get_person(store)
        runs = withhold_verdicts(store, project.id, person, [row.run for row in rows])
        found = {row.run.case_id: row.truth for row in rows}
        truths = find_visible_truths(store, project.id, person, found)
        rows = [
            replace(row, run=run, truth=truths[run.case_id])
            for row, run in zip(rows, runs, strict=True)
        ]
    if total and not rows:  # the filter leaves fewer pages than the open one's number
        st.session_state["history.page"] = 1
        st.rerun()
    if not total:
        st.info("No run matches. New check starts one.")
        return 0
    st.caption(
        f"{format_count(total, 'run')}. How likely a verdict is, is the machine’s own estimate; "
        "Calibration shows how often such estimates were right."
    )
    with st.container(key="cp-history", gap="xxsmall"):
        for row in rows:
            _draw_row(row, policy, classifiers.get(row.run.id, ""))
    pages = -(-total // PAGE_SIZE)
    if pages > 1:
        st.pagination(pages, key="history.page")
    return total


def _draw_row(row: RunRow, policy: AutomationPolicy | None, classifier: str) -> None:
    """Draw a run: its name and claim, which lead to it, then its verdict and how it was made."""
    run = row.run
    claim = escape_markdown(clip_text(row.response, MAX_CLAIM_CHARS))
    name = escape_markdown(clip_text(run.name, MAX_NAME_CHARS))
    words = f"**{name}** {claim}" if name else claim
    draw_link(RUN_PAGE, words, run=run.id)
    sure = format_likelihood(run)
    label, lead, machine, people = run.label, format_label(run.label), sure, ""
    if row.truth.records:
        label = row.truth.common_label
        lead = describe_people_verdict(row.truth, run.label)
        machine = f"the machine: {', '.join(filter(None, (format_label(run.label), sure)))}"
        people = "more answers to come" if row.truth.state == "waiting" else ""
    elif policy is not None and policy.is_for_people(run, classifier):
        people = "⚑ to decide"
    status, names = format_status(run), row.sources
    files = ", ".join(names) if len(names) < 3 else format_count(len(names), "file")
    parts = [
        machine,
        people,
        "" if status == "Finished" else status,
        "imported" if run.origin == "imported" else "",
        files,
        format_protocol(run.plan.protocol, short=True),
        format_roster(run.plan.roster, short=True),
        "" if classifier in ("", SEED_VERSION) else f"classifier {classifier}",
        f"by {row.author}" if row.author else "",
        format_time(run.started_at),
    ]
    tag = element("span", element("bdi", lead), class_=f"cp-tag cp-{label or 'unclear'}")
    details = (
        element("bdi", f" · {part}", title=", ".join(row.sources) if part == files else None)
        for part in parts
        if part
    )
    draw_html(div("cp-quiet", tag, *details))


def format_likelihood(run: Run) -> str:
    """Return how likely the machine holds its label to be; empty if the label is none."""
    sure = format_label_probability(run.label, run.p_hallucinated)
    return f"{sure} likely" if sure else ""


def draw_rename(run: Run, case: Case) -> None:
    """Draw the field in which a person names the run; without a name its claim's words stand."""
    key = f"run.{run.id}.name"
    with st.popover("Rename", icon=":material/edit:", type="tertiary"):
        st.text_input(
            "Name of this run",
            run.name or clip_text(case.response, MAX_NAME_CHARS),
            MAX_NAME_CHARS,
            key=key,
            help="Its page, History and its report begin with it. Empty: the claim’s first words.",
            on_change=_rename_run,
            args=(run, case),
        )
        get_component("focus")(key=f"{key}.focus", data={"field": get_css_class(key)})
        show_problem("run.rename.problem")


def _rename_run(run: Run, case: Case) -> None:
    name = " ".join(str(st.session_state[f"run.{run.id}.name"] or "").split())
    with store_problem("run.rename.problem"), state.open_store() as store:
        state.require_role(store, run.project_id, "annotator", "rename a run")
        is_claim = name == clip_text(case.response, MAX_NAME_CHARS)
        store.runs.rename(run.id, "" if is_claim else name)
