"""Taking back what one has answered: another entry, and the form with it open again."""

from __future__ import annotations

import time

import streamlit as st

from components import drafts, state
from components.correction_draft import key_of
from components.review_rules import rules_of
from core.curation import record
from core.errors import ReviewError
from core.jobs import new_id
from core.reviews import Correction


def take_back(correction: Correction, asked_id: str) -> None:
    """Withdraw one's own answer: another entry.

    The form opens with it when the case is shown, unless something is being typed there: that
    stays. Where nothing else that they said stands, an item of the queue comes back into their
    hands.
    """
    key = key_of(asked_id)
    try:
        with state.open_store() as store, store.writing():
            person, case = state.person(store), store.cases.get(correction.case_id)
            if case is None or (project := store.projects.get(case.project_id)) is None:
                return
            store.projects.require(project.id, person, "annotator", "take an answer back")
            undo = Correction(
                id=new_id(),
                run_id=correction.run_id,
                case_id=correction.case_id,
                author=person,
                at=time.time(),
                label=correction.label,
                machine_label=correction.machine_label,
                withdraws=correction.id,
            )
            record(store, undo, case)
            if all(said.author != person for said in store.corrections.of_case(case.id)):
                store.queue.again(case.id, person, rules_of(project), undo.at)
    except ReviewError as error:
        st.session_state[f"{key}.problem"] = str(error)
        return
    if typed := drafts.kept(key):
        drafts.keep(key, typed | {"seen": undo.id})
        st.session_state[f"{key}.seen"] = undo.id
        return
    st.session_state.pop(f"{key}.looked", None)
    drafts.keep(key, {"from": correction.id, "seen": undo.id})
