"""The sample project and the tour over one of its checks.

Both lie in a home of their own (`core/pipeline/sample_project.py`): a session that opens them works
there until it leaves, and nothing of its own data changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.app import login, state
from components.widgets import drafts
from components.widgets.controls import (
    ask_confirmation,
    draw_button,
    draw_confirmation,
    show_problem,
    store_problem,
)
from components.widgets.wording import escape_markdown
from core.review.people import save_name
from core.runtime.config import SAMPLE_FOLDER, has_sample

if TYPE_CHECKING:
    from core.pipeline.sample_project import SampleBuilder
    from core.schema.records import Case

NEW_PAGE, RUN_PAGE = "pages/check/new.py", "pages/check/run.py"
RETRAIN_PAGE = "pages/learn/retrain.py"
TARGET, PROBLEM, ASKED = "sample.target", "sample.problem", "sample.asked"
SOURCE_FIELDS = "upload.held", "library"
STEP, TOUR_RUN, OWN_PROJECT = "tour.step", "tour.run", "sample.own_project"
POLL_SECONDS = 1.0
OFFER = (
    "Nobody has answered anything here yet. The sample project has forty claims that were checked "
    "and corrected, so that this page can be tried. It takes about a minute to build, lies apart "
    "from your data and can be removed whole."
)


@dataclass(frozen=True)
class TourStep:
    """A page, and what there is to see on it."""

    page: str
    words: str


TOUR = (
    TourStep(
        NEW_PAGE,
        "**A text and its sources.** Left the text to check, right the documents it must agree "
        "with. A claim about a bridge and its fact sheet are filled in; Next shows their check.",
    ),
    TourStep(
        RUN_PAGE,
        "**The verdict.** Does the text hold, which words are wrong, what does the source say "
        "instead, and how far is that to be trusted? The wrong words are marked in the text.",
    ),
    TourStep(
        RUN_PAGE,
        "**Behind it.** Agents argued over quotes from the source: open the tab Debate below, "
        "and click a quote to see it boxed on its page.",
    ),
    TourStep(
        RUN_PAGE,
        "**You have the last word.** [Further down](#your-judgement), agree or overrule the "
        "machine and mark the words yourself. Try it: in this sample nothing counts.",
    ),
    TourStep(
        RETRAIN_PAGE,
        "**Corrections teach it.** Review asks what the machine is unsure of; Retrain, Calibration "
        "and Reliability show what answers are worth. Here two made-up reviewers gave forty.",
    ),
)


def follow_link() -> None:
    """Work in the home whose project the address names, as after a reload or the browser's Back.

    A session that begins at a run or case of the sample opens it too.
    """
    from core.store import open_store

    is_new = state.SAMPLE_KEY not in st.session_state
    opened = str(st.session_state.setdefault(state.SAMPLE_KEY, ""))
    named = str(st.query_params.get(state.PROJECT_PARAMETER, ""))
    folder, current = _get_sample_folder(), str(st.session_state.get("project", ""))
    if not has_sample(folder) or not (is_new or (named and named != current)):
        return
    run_id, case_id = (st.query_params.get(name, "") for name in ("run", "case"))
    with open_store(folder) as store:
        is_inside = store.projects.get(named) is not None
        if is_new and not is_inside:
            is_inside = store.runs.last_seq(run_id) > 0 or store.cases.get(case_id) is not None
    if is_inside and not opened:
        state.enter_home(str(folder))
        st.session_state[OWN_PROJECT] = current
    elif opened and not is_inside:
        with open_store(state.own_home_folder()) as store:
            if store.projects.get(named):
                state.enter_home("", named)


def draw_sample_bar() -> None:
    """Draw above every page of the sample what it is, the tour's step, and the ways out."""
    target: dict[str, Any] | None = st.session_state.pop(TARGET, None)
    if target:
        st.switch_page(target["page"], query_params=target["query"])
    show_problem(PROBLEM)
    folder = str(st.session_state.get(state.SAMPLE_KEY) or "")
    if not folder or not has_sample(Path(folder)):
        return
    with st.container(border=True, key="cp-sample"):
        step = st.session_state.get(STEP)
        if step is None:
            _draw_ways_out()
        else:
            _draw_tour_step(int(step))
        if step is None or step + 1 == len(TOUR):
            _draw_progress(folder)
    if st.session_state.get(ASKED):
        words = "Remove the sample project with all its checks and answers? Your own data stays."
        draw_confirmation(words, "Remove", "sample", _remove_sample, asked=ASKED)


def _draw_ways_out() -> None:
    words, buttons = st.columns([7, 4], vertical_alignment="center")
    words.markdown(
        ":material/science: **Sample project**: made-up documents and reviewers, real checks. "
        "Nothing you do here reaches your own data."
    )
    with buttons, st.container(horizontal=True, horizontal_alignment="right"):
        draw_button("Leave", "sample.leave", _leave_sample, icon="logout")
        draw_button("Remove it", "sample.remove", ask_confirmation, ASKED, True, icon="delete")


def _draw_tour_step(step: int) -> None:
    words, buttons = st.columns([7, 4], vertical_alignment="center")
    words.markdown(f":material/tour: {step + 1} of {len(TOUR)} · {TOUR[step].words}")
    with buttons, st.container(horizontal=True, horizontal_alignment="right"):
        draw_button("Back", "tour.back", _go_to_step, step - 1, disabled=step == 0)
        if step + 1 < len(TOUR):
            draw_button("Next", "tour.next", _go_to_step, step + 1, type="primary")
        else:
            draw_button("Stay here", "tour.stay", _end_tour)
        draw_button("Close", "tour.close", _leave_sample)


def _draw_progress(folder: str) -> None:
    builder = _get_builder(folder)
    if builder.problem:
        st.error(escape_markdown(builder.problem), icon=":material/error:")
    if builder.is_building:
        _follow_building(folder)


@st.fragment(run_every=POLL_SECONDS)
def _follow_building(folder: str) -> None:
    from core.pipeline.sample_project import ANSWERED_CLAIMS

    builder = _get_builder(folder)
    if not builder.is_building:
        st.rerun()
    done = builder.answered
    words = f"The engine is checking the sample: {done} of {ANSWERED_CLAIMS} claims so far"
    st.progress(done / ANSWERED_CLAIMS, words)


def draw_sample_offer(page: str) -> None:
    """Draw on an empty page the button that opens it in the sample project."""
    with state.open_store() as store:
        is_empty = not any(store.changes.of_corrections()[:2])
    if is_empty and not st.session_state.get(state.SAMPLE_KEY):
        words, act = st.columns([5, 2], vertical_alignment="center")
        words.caption(OFFER)
        with act:
            draw_sample_button(page, width="stretch")


def draw_sample_button(page: str, **options: Any) -> None:
    """Draw the button that opens a page in the sample project."""
    label = "Open the sample project"
    draw_button(label, "sample.open", _open_sample, page, icon="science", **options)


def is_touring() -> bool:
    """Return True while the tour leads this session."""
    return STEP in st.session_state


def draw_tour_button() -> None:
    """Draw the button that begins the tour."""
    draw_button("Take the tour", "tour.begin", _begin_tour, icon="tour", type="tertiary")


def _get_sample_folder() -> Path:
    """Return this person's sample folder, which may not exist: with login each has their own."""
    folder = state.own_home_folder() / SAMPLE_FOLDER
    identity = login.get_identity()
    return folder / identity.key if identity else folder


@st.cache_resource
def _get_builder(folder: str) -> SampleBuilder:
    from core.pipeline.sample_project import SampleBuilder

    return SampleBuilder(state.make_jobs(folder))


def _enter_sample() -> tuple[Case, str]:
    """Work in the sample, built if needed; return the tour's case and the id of its run.

    Raises ReviewError: the sample cannot be stored.
    """
    with state.open_store() as store:
        project, person = state.get_project(store), state.get_person(store)
    own = st.session_state.get(OWN_PROJECT) or project.id
    _save_typed_text()
    folder = _get_sample_folder()
    case, run_id = _get_builder(str(folder)).start(person)
    state.enter_home(str(folder))
    st.session_state[OWN_PROJECT] = own
    if identity := login.get_identity():
        with state.open_store() as store, store.writing():
            save_name(store, identity, person)
    return case, run_id


def _save_typed_text() -> None:
    """Keep New check's text, whose own save comes after the click that leads away from it."""
    if drafts.is_page_open(drafts.NEW_CHECK):
        sources = [st.session_state.get(f"{drafts.NEW_CHECK}.{name}") for name in SOURCE_FIELDS]
        drafts.save_check_draft([source_id for ids in sources for source_id in ids or []])


def _open_sample(page: str) -> None:
    with store_problem(PROBLEM):
        _enter_sample()
        _go_to(page)


def _begin_tour() -> None:
    with store_problem(PROBLEM):
        case, run_id = _enter_sample()
        draft = {"response": case.response, "question": "", "sources": list(case.documents)}
        drafts.save_draft_values(f"{drafts.NEW_CHECK}.{case.project_id}", draft)
        st.session_state[TOUR_RUN] = run_id
        _go_to_step(0)


def _go_to_step(step: int) -> None:
    st.session_state[STEP] = step
    page = TOUR[step].page
    _go_to(page, **({"run": st.session_state[TOUR_RUN]} if page == RUN_PAGE else {}))


def _go_to(page: str, **query: str) -> None:
    st.query_params.pop(state.PROJECT_PARAMETER, None)  # it may name a project of the other home
    st.session_state[TARGET] = {"page": page, "query": query}


def _end_tour() -> None:
    st.session_state.pop(STEP, None)


def _leave_sample() -> None:
    state.enter_home("", str(st.session_state.get(OWN_PROJECT) or ""))
    _go_to(NEW_PAGE)


def _remove_sample() -> None:
    folder = str(st.session_state[state.SAMPLE_KEY])
    _leave_sample()
    _get_builder(folder).remove()
