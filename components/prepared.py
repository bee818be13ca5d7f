"""Prepared cases of our own writing: one click checks one."""

from __future__ import annotations

import time

import streamlit as st

from components import state
from components.new_check import plan_now
from components.protocol_choice import usual_protocol
from components.words import clipped, escaped
from core.baseline.examples import EXAMPLES, Example
from core.checking import Draft, store_case
from core.documents.library import store_file
from core.errors import ReviewError
from core.seats import BUILT_IN
from core.store import Store


def draw_prepared() -> None:
    """Five cases to try, one click each."""
    st.subheader("Or try a prepared case", anchor=False)
    columns = st.columns(len(EXAMPLES))
    for column, example in zip(columns, EXAMPLES, strict=True):
        with column, st.container(border=True, height="stretch"):
            st.markdown(f"**{escaped(example.title)}**")
            st.caption(escaped(clipped(example.response, 110)))
            st.button(
                "Check it",
                key=f"new.example.{example.name}",
                on_click=_start_example,
                args=(example,),
                width="stretch",
            )


def _start_example(example: Example) -> None:
    """Put the example's files into the library and check it like any other case."""
    try:
        with state.open_store() as store:
            project = state.project(store)
            person = state.require(store, project.id, "annotator", "check a claim")
            ids = [_add(store, project.id, person, name, data) for name, data in example.files()]
            draft = Draft(
                example.response,
                example.question,
                tuple(i for i, is_image in ids if not is_image),
                tuple(i for i, is_image in ids if is_image),
            )
            case = store_case(store, project, draft, person, time.time())
            settings = store.projects.settings()
            usual = usual_protocol(store, project)
        # Built in whatever the roster: it is here to be tried without a key, and costs nothing.
        plan = plan_now(project, settings, usual, BUILT_IN)
        st.session_state["new.started"] = state.jobs().start(case, plan, by=person)
    except ReviewError as error:
        st.session_state["new.problem"] = str(error)


def _add(store: Store, project_id: str, person: str, name: str, data: bytes) -> tuple[str, bool]:
    settings = store.projects.settings()
    entry = store_file(store, state.home(), project_id, name, data, person, time.time(), settings)
    return entry.id, entry.kind == "image"
