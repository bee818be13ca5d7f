"""One item of the review queue: its response and evidence, the form, and on to the next."""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from components import state
from components.correction import draw_judgement
from components.correction_asked import Asked, draw_said
from components.debate import draw_debate
from components.evidence import draw_evidence
from components.highlight import marked_text
from components.review_queue import go_on, why_shown
from components.review_rules import rules_of
from components.run_view import classifier_card, load_run
from components.show import show
from components.verdict import draw_verdict
from components.words import escaped
from core.errors import ReviewError
from core.reviews import Assignment, AssignmentState, Correction
from core.store import Store
from core.store.queue_filter import EVERYTHING

RENEW_SECONDS = 60.0
QUEUE_PAGE = "pages/review/pending.py"


def draw_item(case_id: str) -> None:
    """The item in hand; taken first where it is open, shown as it is where it cannot be."""
    if st.session_state.pop("review.go", False):
        go_on(st.session_state.get("review.wanted", EVERYTHING))
        st.page_link(QUEUE_PAGE, label="The queue", icon=":material/arrow_back:")
        return
    st.page_link(QUEUE_PAGE, label="The queue", icon=":material/arrow_back:")
    with state.open_store() as store:
        item = store.queue.get(case_id) if case_id else None
        project = state.project(store)
    loaded = load_run(item.run_id) if item and item.run_id else None
    if item is None or loaded is None:
        st.info("There is no item at this link in the queue of this project.")
        return
    if problem := st.session_state.pop("review.problem", ""):
        st.error(escaped(problem), icon=":material/error:")
    mine = _taken(case_id)
    run, case, progress, corrections = loaded
    own = [c for c in corrections if mine and c.author == mine.person]
    is_blind = project.is_blind and not own
    if mine is not None:
        _draw_hand(mine, is_blind)
    if case.question:
        st.caption(f"Question: {escaped(case.question)}")
    show(marked_text(case.response, []))
    if not is_blind and progress.verdict is not None:
        draw_verdict(progress, classifier_card(run.plan.classifier))
    if mine is not None:
        for correction in own:
            draw_said(correction)
        draw_judgement(Asked(run, case, progress, is_blind=is_blind, after=_submitted))
    tabs = st.tabs(["Evidence"] if is_blind else ["Evidence", "Debate"])
    # Which passages were quoted, and which statement is wrong, would say it too.
    shown = replace(progress, turns=[], judgement=None, verdict=None) if is_blind else progress
    with tabs[0]:
        draw_evidence(shown, f"review.{run.id}.evidence")
    if not is_blind:
        with tabs[1]:
            draw_debate(progress, f"review.{run.id}.debate")


def _taken(case_id: str) -> Assignment | None:
    """The item in the hands of the person who is here; says why it cannot be."""
    now = time.time()
    try:
        with state.open_store() as store:
            project, person = state.project(store), state.person(store)
            held = store.queue.of(case_id, person)
            if held and held.state == "claimed" and held.until > now + RENEW_SECONDS:
                return held
            with store.writing():
                store.projects.require(project.id, person, "annotator", "review")
                return store.queue.take(case_id, person, rules_of(project), now)
    except ReviewError as error:
        st.warning(escaped(str(error)), icon=":material/group:")
        return None


def _draw_hand(mine: Assignment, is_blind: bool) -> None:
    """Why it came, and the ways to pass it on."""
    if mine.state == "claimed":
        st.caption(f"Why this one: {escaped(why_shown(mine.why, is_blind))}.")
    else:
        st.caption(f"You have {mine.state} it; you may answer again.")
        return
    with st.container(horizontal=True):
        for state_, words, icon, keys in (
            ("skipped", "Skip", "skip_next", "Ctrl+Space"),
            ("flagged", "Flag for a lead", "flag", "Alt+F"),
        ):
            st.button(
                words,
                key=f"review.{state_}",
                icon=f":material/{icon}:",
                shortcut=keys,
                on_click=_pass_on,
                args=(mine.case_id, state_),
            )


def _pass_on(case_id: str, became: AssignmentState) -> None:
    try:
        with state.open_store() as store, store.writing():
            project, person = state.project(store), state.person(store)
            store.projects.require(project.id, person, "annotator", "review")
            store.queue.end(case_id, person, became, time.time())
    except ReviewError as error:
        st.session_state["review.problem"] = str(error)
        return
    st.session_state["review.go"] = True


def _submitted(store: Store, correction: Correction) -> None:
    """In the transaction that saves it: the item is given, and the next one comes."""
    store.queue.end(correction.case_id, correction.author, "submitted", correction.at)
    st.session_state["review.go"] = True
