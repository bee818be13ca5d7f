"""Check a case again, with more or fewer sources; the two verdicts then stand side by side."""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from components import state
from components.inputs import draw_refused, draw_sources, draw_uploader, held_uploads, split_sources
from components.words import escaped, when
from core.checking import Draft, store_case
from core.errors import ReviewError
from core.records import Case, Run
from core.store import Store


def draw_again(run: Run, case: Case) -> None:
    """Links to the other runs of the case, and what to check again."""
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        now = time.time()
        children = store.runs.children(run.id, now, lease)
        names = {
            i: store.library.name_of(case.project_id, i) for i in (*case.documents, *case.images)
        }
        kept = [i for i in names if store.library.get(case.project_id, i)]
    times = {child.id: child.started_at for child in children}
    others = [*([run.parent_id] if run.parent_id else []), *(child.id for child in children)]
    st.subheader("Check again", anchor=False)
    for other in others:
        first, second = (other, run.id) if other == run.parent_id else (run.id, other)
        st.page_link(
            "pages/check/compare.py",
            label="Side by side with the check before"
            if other == run.parent_id
            else f"Side by side with the check of {when(times[other])}",
            icon=":material/compare_arrows:",
            query_params={"before": first, "after": second},
        )
    st.page_link(
        "pages/check/compare.py",
        label="Compare ways to check it",
        icon=":material/compare:",
        query_params={"case": case.id},
    )
    _draw_choice(names, kept, f"run.{run.id}.again")
    _draw_start(run, case)


def _draw_choice(names: dict[str, str], kept: list[str], key: str) -> None:
    """Which sources of the case stay, and new ones; those that cannot be read are named."""
    with st.expander("Add evidence or leave some out", icon=":material/post_add:"):
        chosen = st.multiselect(
            "Sources of this case",
            options=kept,
            default=kept,
            format_func=lambda i: names[i],
            key=f"{key}.kept",
        )
        added = draw_uploader(f"{key}.upload", "More documents or images")
        draw_sources(added)
    gone = [name for i, name in names.items() if i not in kept]
    if gone:
        st.warning(
            f"Not in the library, so left out: {escaped(_listed(gone))}.",
            icon=":material/folder_off:",
        )
    draw_refused(chosen)


def _listed(names: list[str]) -> str:
    """The names; of an imported run's files none is known here, and they are counted."""
    unknown = names.count("")
    counted = "a file that is not here" if unknown == 1 else f"{unknown} files that are not here"
    return ", ".join([*filter(None, names), *([counted] if unknown else [])])


def _draw_start(run: Run, case: Case) -> None:
    key = f"run.{run.id}.again"
    st.button(
        "Check again",
        key=f"{key}.go",
        icon=":material/refresh:",
        on_click=_check_again,
        args=(run, case, key),
        shortcut="Ctrl+Shift+Enter",
    )
    target = st.session_state.pop(f"{key}.started", None)
    problem = st.session_state.pop(f"{key}.problem", None)
    if problem:
        st.error(escaped(problem))
    if target:
        st.switch_page("pages/check/run.py", query_params={"run": target})


def _check_again(run: Run, case: Case, key: str) -> None:
    """The same case again, or a new one when its sources changed; with today's classifier.

    A file that could not be read stays in the case: the run tries it again, and says so again.
    """
    try:
        chosen: list[str] = st.session_state.get(f"{key}.kept") or []
        sources = [*chosen, *held_uploads(f"{key}.upload")]
        documents, images = split_sources(list(dict.fromkeys(sources)), with_refused=True)
        with state.open_store() as store, store.writing():
            person = state.require(store, case.project_id, "annotator", "check again")
            again = case
            if set(documents) != set(case.documents) or set(images) != set(case.images):
                again = _with_sources(store, case, documents, images)
            plan = replace(run.plan, classifier="", reader="")
        started = state.jobs().start(
            again, plan, parent_id=run.id, by=person, typed=state.typed_keys()
        )
    except ReviewError as error:
        st.session_state[f"{key}.problem"] = str(error)
        return
    st.session_state[f"{key}.started"] = started


def _with_sources(
    store: Store, case: Case, documents: tuple[str, ...], images: tuple[str, ...]
) -> Case:
    project = store.projects.get(case.project_id) or state.project(store)
    draft = Draft(case.response, case.question, documents, images, case.role, case.instruction)
    return store_case(store, project, draft, state.person(store), time.time())
