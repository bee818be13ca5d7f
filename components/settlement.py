"""One case to settle: a column for each version, the form for the right answer, the next case."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from components import state
from components.case_history import draw_history, history_of
from components.correction import draw_judgement
from components.correction_asked import Asked
from components.correction_draft import key_of, restore
from components.correction_saved import newest_seen
from components.evidence import draw_evidence
from components.keys_shown import draw_keys
from components.run_view import load_run
from components.settling import SETTLE_PAGE, VIEWS
from components.side_by_side import draw_versions, versions_of
from components.span_editor.marks import Mark as EditorMark
from components.span_editor.marks import Marked
from components.words import escaped
from core.curation import Version, merged, most_said, open_again, settle
from core.errors import ReviewError
from core.jobs import new_id
from core.progress import Progress
from core.records import Case, Project, Span
from core.reviews import Correction, Gold, GoldOrigin
from core.store import Store

KEYS = {
    "Alt+4 to Alt+9": "take the first to the sixth version",
    "Alt+1, Alt+2, Alt+3": "say that it is supported, hallucinated, unclear",
    "Ctrl+Enter": "save the right answer and go on to the next case",
    "? in the words": "the keys that mark words",
}
LIST_PAGE = "pages/review/curate.py"


def draw_settlement(case_id: str) -> None:
    """Everything that is needed to settle one case."""
    if st.session_state.pop("settle.go", False):
        _go_on()
    st.page_link(LIST_PAGE, label="All cases to settle", icon=":material/arrow_back:")
    with state.open_store() as store:
        project, item = state.project(store), store.queue.get(case_id)
        case = store.cases.get(case_id)
    if item is None or case is None or case.project_id != project.id:
        st.info("There is no case at this link in the queue of this project.")
        return
    loaded = load_run(item.run_id) if item.run_id else None
    progress = loaded[2] if loaded else Progress()
    with state.open_store() as store:
        versions = versions_of(store, case, progress)
        entries = history_of(store, case_id)
    if case.question:
        st.caption(f"Question: {escaped(case.question)}")
    asked = _asked(case, progress, versions, project)
    _begin(asked, versions)
    draw_versions(asked, versions)
    draw_keys(KEYS, "settle.keys")
    if item.state != "open":
        st.button(
            "Give it back to the queue",
            key="settle.open",
            icon=":material/undo:",
            on_click=_open_again,
            args=(case_id,),
        )
    if problem := st.session_state.pop("settle.problem", ""):
        st.error(escaped(problem), icon=":material/error:")
    draw_judgement(asked)
    draw_history(entries)
    with st.expander("Evidence"):
        draw_evidence(progress, f"settle.{case_id}.evidence")


def _asked(case: Case, progress: Progress, versions: Sequence[Version], project: Project) -> Asked:
    whole = merged(versions)

    def record(store: Store, said: Correction, case: Case) -> None:
        """The form's answer becomes the case's right one."""
        spans = tuple(replace(span, p=1.0) for span in said.spans)
        origin: GoldOrigin = "corrected" if store.golds.of_case(case.id) else "adjudicated"
        took = tuple(version.correction_id for version in versions if version.is_persons)
        gold = Gold(
            new_id(), case.id, said.author, said.at, origin, said.label, spans,
            corrected_answer=said.corrected_answer, reason=said.reason, took=took,
        )  # fmt: skip
        settle(store, gold, case)
        st.session_state["settle.go"] = True

    return Asked(
        None,
        case,
        progress,
        settles=True,
        corrects=any(version.is_right for version in versions),
        record=record,
        categories=project.categories,
        marked_by=(*whole.agreed, *whole.open),
    )


def _begin(asked: Asked, versions: Sequence[Version]) -> None:
    """Open the form with what people agree on; a draft of before comes first."""
    key = key_of(asked.id)
    restore(asked)
    if f"{key}.marked" in st.session_state:
        return
    whole = merged(versions)
    marks = _marks(asked.offered, len(whole.agreed))
    st.session_state[f"{key}.marked"] = Marked(marks=marks)
    label = whole.label or most_said(versions)
    if label and f"{key}.label" not in st.session_state:
        st.session_state[f"{key}.label"] = label
        with state.open_store() as store:
            st.session_state[f"{key}.seen"] = newest_seen(store, asked)


def _marks(spans: Sequence[Span], agreed: int) -> tuple[EditorMark, ...]:
    return tuple(
        EditorMark(
            f"machine.{n}", s.start, s.end, s.category, s.source, s.p,
            "marked" if n < agreed else "suggested",
        )
        for n, s in enumerate(spans)
    )  # fmt: skip


def _write(work: Callable[[Store, str], None]) -> None:
    """What only a lead may do, in one transaction; a refusal is shown."""
    try:
        with state.open_store() as store, store.writing():
            person = state.person(store)
            store.projects.require(state.project(store).id, person, "lead", "settle a case")
            work(store, person)
    except ReviewError as error:
        st.session_state["settle.problem"] = str(error)


def _open_again(case_id: str) -> None:
    _write(lambda store, person: open_again(store, case_id, person, time.time()))


def _go_on() -> None:
    """To the next case where people differ or that was flagged, else to the list."""
    with state.open_store() as store:
        project = state.project(store)
        for name in ("people differ", "flagged"):
            wanted, states = VIEWS[name]
            items, _ = store.queue.page(
                project.id, wanted, states, limit=1, offset=0, now=time.time()
            )
            if items:
                st.switch_page(SETTLE_PAGE, query_params={"case": items[0].case_id})
    st.switch_page(LIST_PAGE)
