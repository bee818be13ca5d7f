"""What people marked in a project, counted by language, and how something is taken into use."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st

from components import state
from components.words import counted, escaped, when
from core.errors import ConfigError, ReviewError
from core.learned_marks import base_of
from core.learning.span_answers import SpanAnswer, span_answers
from core.learning.span_examples import Candidate, candidates
from core.learning.span_member import BestMember, best_members, marked_by_panels, member_body
from core.learning.span_scored import scored_cases, shipped_thresholds
from core.learning.span_threshold import Kind, Proposal, proposal
from core.learning.span_use import go_back, take_into_use, threshold_body
from core.store import open_store
from core.store.changes import Mark
from core.store.learned import NONE, Choice, Learned, read_body

MOST_KEPT = 8  # projects
PROBLEM = "spans.problem"


@dataclass(frozen=True)
class Material:
    """What there is to learn from; `scored` counts the cases that each kind's threshold rests on.

    `threshold` and `member` are what would be kept of the proposals.
    """

    project_id: str
    rows: list[dict[str, Any]]
    scored: Mapping[Kind, int]
    shipped: Mapping[Kind, float]
    proposals: Mapping[Kind, Proposal]
    threshold: dict[str, Any]
    candidates: list[Candidate]
    panel_cases: int
    members: list[BestMember]
    member: dict[str, Any]


def material() -> Material:
    """As of now."""
    with state.open_store() as store:
        changes = store.changes
        mark = (*changes.of_corrections(), *changes.of_runs(), *changes.of_holdout())
        project = state.project(store).id
    return _material(str(state.home()), project, mark)


@st.cache_resource(
    max_entries=MOST_KEPT, show_spinner="Comparing people's marks with the machine's"
)
def _material(home: str, project_id: str, mark: Mark) -> Material:
    """Kept until somebody marks, a run ends, or cases are held out."""
    with open_store(Path(home)) as store:
        answers = span_answers(store, project_id)
    scored = scored_cases(answers)
    shipped = shipped_thresholds()
    found = {kind: proposal(kind, cases, shipped[kind]) for kind, cases in scored.items()}
    proposals = {kind: one for kind, one in found.items() if one is not None}
    by_panels = marked_by_panels(answers)
    members = best_members(by_panels)
    usable = {case.id for cases in scored.values() for case in cases}
    return Material(
        project_id,
        _rows(answers, usable),
        {kind: len(cases) for kind, cases in scored.items()},
        shipped,
        proposals,
        threshold_body(proposals, answers),
        candidates(answers),
        len(by_panels),
        members,
        member_body(members, by_panels, answers),
    )


def _rows(answers: list[SpanAnswer], usable: set[str]) -> list[dict[str, Any]]:
    names = sorted({base_of(answer.case.language) for answer in answers})
    rows = []
    for name in names:
        own = [answer for answer in answers if base_of(answer.case.language) == name]
        rows.append(
            {
                "Language": language_words(name),
                "Cases": len(own),
                "Words marked": sum(bool(answer.spans) for answer in own),
                "Nothing wrong": sum(not answer.spans for answer in own),
                "Count for the threshold": sum(answer.case.id in usable for answer in own),
            }
        )
    return rows


def language_words(name: str) -> str:
    """A language's code; what it is where none was told."""
    return {"": "all together", "und": "not known"}.get(name, name)


def draw_marked(found: Material) -> None:
    """The cases whose wrong words people told, by language."""
    st.subheader("What people marked", anchor=False)
    problem = st.session_state.pop(PROBLEM, "")
    if problem:
        st.error(escaped(problem), icon=":material/error:")
    if not found.rows:
        st.info(
            "Nobody has marked wrong words yet, or said that none is wrong. Mark them on Review or "
            "on a run; right answers that come in with a file count too.",
            icon=":material/info:",
        )
        return
    st.dataframe(found.rows, key="spans.cases", hide_index=True, height="content")
    st.caption(
        "A settled answer counts before single ones; of several people's, the words that at least "
        "half of them marked. Cases held out for the classifier are left out. For the threshold a "
        "case counts if the machine called it hallucinated: elsewhere it marks nothing at any "
        "threshold. Whoever saw the machine's marks before marking leans towards them."
    )


def used_now(
    kind: str, project_id: str, read: Callable[[dict[str, Any]], object]
) -> Learned | None:
    """What is in use; one that `read` cannot read, or that was changed, is named and not used."""
    try:
        with state.open_store() as store:
            found = store.learned.in_use(kind, project_id)
        if found is not None:
            read_body(found, read)
        return found
    except ConfigError as error:
        st.error(escaped(f"{error} Until then no check of this project starts."))
        return None


def draw_choices(kind: str, project_id: str) -> None:
    """Back to an earlier one or to what ships, and who chose what."""
    with state.open_store() as store:
        choices = store.learned.choices(kind, project_id)
    if not choices:
        return
    with st.expander("Go back, and who chose what", icon=":material/history:"):
        numbers = list(dict.fromkeys([NONE, *(c.number for c in choices)]))
        others = [number for number in numbers if number != choices[0].number]
        if others:
            left, right = st.columns(2)
            left.selectbox("Use again", others, key=f"{kind}.back", format_func=_number_words)
            right.text_input("Reason", key=f"{kind}.back.reason")
            st.button(
                "Go back to it",
                key=f"{kind}.back.go",
                icon=":material/undo:",
                on_click=_back,
                args=(kind, project_id),
            )
        for choice in choices:
            st.markdown(
                f"{when(choice.at)} · {escaped(choice.by)} · {_number_words(choice.number)}: "
                f"{escaped(choice.reason)}"
            )


def _number_words(number: int) -> str:
    return "what ships" if number == NONE else f"no. {number}"


def draw_take(kind: str, project_id: str, body: dict[str, Any]) -> None:
    """Take a proposal into use; a lead says why."""
    st.text_input("Reason", key=f"{kind}.reason", placeholder="Why it is taken into use")
    st.button(
        "Take into use",
        key=f"{kind}.take",
        type="primary",
        icon=":material/check_circle:",
        on_click=_take,
        args=(kind, project_id, body),
    )
    st.caption("Only new checks go by it; runs that are there stay as they are. Leads decide.")


def _take(kind: str, project_id: str, body: dict[str, Any]) -> None:
    reason = str(st.session_state.get(f"{kind}.reason") or "")
    try:
        with state.open_store() as store, store.writing():
            by = state.require(store, project_id, "lead", "take what was learned into use")
            take_into_use(store, Learned(kind, project_id, time.time(), by, body), reason)
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)
        return
    st.session_state[f"{kind}.reason"] = ""
    st.toast("In use: new checks go by it.", icon=":material/check:")


def _back(kind: str, project_id: str) -> None:
    reason = str(st.session_state.get(f"{kind}.back.reason") or "")
    number = int(st.session_state.get(f"{kind}.back") or NONE)
    try:
        with state.open_store() as store, store.writing():
            by = state.require(store, project_id, "lead", "go back to what was in use")
            go_back(store, Choice(kind, project_id, number, time.time(), by, reason))
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)
        return
    st.session_state[f"{kind}.back.reason"] = ""
    st.toast(f"In use: {_number_words(number)}.", icon=":material/undo:")


def needs_more(count: int, least: int) -> str:
    """How many more cases it takes; empty where there are enough."""
    return "" if count >= least else f"{counted(least - count, 'case')} more needed"
