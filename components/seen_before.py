"""What was checked or decided before on the same text or one much like it."""

from __future__ import annotations

import time

import streamlit as st

from components import state
from components.words import LABEL_WORDS, clipped, escaped, protocol_words, when
from core.documents.language import language_of
from core.records import Case, Run
from core.seen_before import Decided, decided, same_or_alike
from core.store import Store

MOST_SHOWN = 3
KEPT_SECONDS = 120.0
RUN_PAGE = "pages/check/run.py"


def draw_checked_before(response: str, question: str) -> None:
    """Earlier checks of the same text or the closest ones, with what people decided."""
    if not response.strip():
        return
    with state.open_store() as store:
        project = state.project(store)
        same, alike = same_or_alike(
            store, project.id, response, question, language_of(f"{question} {response}")
        )
        found = [(case, run, "Checked") for case in same for run in _newest(store, case)]
        for case in alike if not same else ():
            how = f"Similar, “{clipped(case.response, 60)}”, checked"
            found += [(case, run, how) for run in _newest(store, case)[:1]]
        for case, run, how in found[:MOST_SHOWN]:
            _draw_check(store, case, run, how)


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
                st.page_link(
                    RUN_PAGE,
                    label=words,
                    icon=":material/history:",
                    query_params={"run": runs[-1].id},
                )
            else:
                st.caption(words)


@st.cache_data(ttl=KEPT_SECONDS, max_entries=256, show_spinner=False)
def _others(case_id: str, _case: Case) -> tuple[list[str], list[str]]:
    """Ids of other cases of the same text, and of those much like it; they seldom change."""
    with state.open_store() as store:
        same, alike = same_or_alike(
            store, _case.project_id, _case.response, _case.question, _case.language
        )
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


def _draw_check(store: Store, case: Case, run: Run, how: str) -> None:
    """A link to the run, with its label and what people say of its case."""
    by = protocol_words(run.plan.protocol, short=True)
    label = LABEL_WORDS[run.label].lower() if run.label else "no label"
    words = f"{how} on {when(run.started_at)} by {by}: {label}"
    for one in decided(store, [case], is_same=True):
        if one.gold is not None:
            words += f"; settled as {LABEL_WORDS[one.gold.label].lower()}"
        elif one.said:
            last = max(one.said, key=lambda said: said.at)
            words += f"; {last.author} says {LABEL_WORDS[last.label].lower()}"
    st.page_link(
        RUN_PAGE, label=escaped(words), icon=":material/history:", query_params={"run": run.id}
    )
