"""A project's guidelines: shown beside the form on Label, edited by leads on Project.

Markdown that a person wrote may run no HTML and load nothing from elsewhere: `st.markdown` shows
tags as text, and images become links before it gets them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence

import streamlit as st

from components.app import state
from components.widgets import drafts
from components.widgets.controls import draw_button, show_problem, store_problem
from components.widgets.wording import escape_markdown, format_time
from core.schema.records import Project
from core.store.projects import Guideline, has_rank

ABOUT_GUIDELINES = (
    "What annotators need to know: what counts as wrong, what to mark, what to leave. Markdown; "
    "they are shown beside the form on Label. Images become links."
)
FIELD_HEIGHT = 300
GUIDELINES_HEIGHT = 200  # pixels, on Label: eight lines and more
IMAGE_START = re.compile(r"!+\[(\s*\])?")
DOLLAR_SIGN = re.compile(r"(?<!\\)\$")  # a price is no formula


def disarm_markdown(text: str) -> str:
    """Return Markdown whose images are links, so that nothing is loaded from elsewhere."""
    linked = IMAGE_START.sub(lambda match: "[image]" if match[1] else "[", text)
    return DOLLAR_SIGN.sub(r"\\$", linked)


def draw_guidelines(project_id: str, page: str, *, is_open: bool) -> None:
    """Draw the project's guidelines, if it has any, until a person closes them on this page."""
    with state.open_store() as store:
        newest = store.guidelines.newest(project_id)
    if newest is not None and newest.text:
        is_shown = st.toggle(
            "Guidelines", value=is_open, key=f"{page}.guidelines", persist_state="session"
        )
        if is_shown:  # app.css gives it room beside the sources
            with st.container(height=GUIDELINES_HEIGHT, key="label-guidelines"):
                _draw_version(newest)


def _draw_version(version: Guideline) -> None:
    st.markdown(disarm_markdown(version.text) or "*Empty*")
    st.caption(f"By {escape_markdown(version.author)}, {format_time(version.at)}")


def draw_guideline_editor() -> None:
    """Draw the current project's guidelines with their versions; leads may edit them."""
    st.subheader("Guidelines", anchor=False)
    st.caption(ABOUT_GUIDELINES)
    with state.open_store() as store:
        project, person = state.get_project(store), state.get_person(store)
        role = store.projects.role_of(project.id, person)
        versions = store.guidelines.history(project.id)
    if has_rank(role, "lead"):
        _draw_field(project, versions)
    elif versions and versions[0].text:
        _draw_version(versions[0])
    else:
        st.caption("There are none yet; a lead may write them.")
    _draw_earlier(project, versions)


def _draw_field(project: Project, versions: Sequence[Guideline]) -> None:
    key = f"guidelines.{project.id}"
    texts = {0: ""} | {version.number: version.text for version in versions}
    newest = versions[0].number if versions else 0
    _fill_field(key, texts, newest)
    drafts.watch_fields(
        f"{key}.watch",
        {"text": f"{key}.text"},
        lambda typed: _keep_typed(key, typed.get("text")),
    )
    text = st.text_area(
        "In Markdown",
        height=FIELD_HEIGHT,
        key=f"{key}.text",
        on_change=_keep_typed,
        args=(key,),
        persist_state="session",
    )
    show_problem(f"{key}.problem")
    is_changed = text != texts[newest]
    if is_changed and st.session_state[f"{key}.base"] != newest:
        who = f"{versions[0].author} changed them on {format_time(versions[0].at)}"
        words = f"{who}, after you had begun. What you save replaces that version."
        st.warning(escape_markdown(words))
    with st.container(horizontal=True, vertical_alignment="center"):
        # Never disabled: the click that leaves the field, whose text then comes, must save too.
        draw_button("Save guidelines", f"{key}.save", _save, project.id, newest, texts[newest])
        if is_changed:
            draw_button("Discard changes", f"{key}.discard", _discard, key)
            st.markdown(":material/edit: Changed, not saved")
    if text:
        with st.expander("As annotators see them", icon=":material/visibility:"):
            st.markdown(disarm_markdown(text))


def _fill_field(key: str, texts: Mapping[int, str], newest: int) -> None:
    """Fill the field with what was typed before; a text nobody changed follows the newest one."""
    typing = st.session_state.pop(f"{key}.typed", None)
    if typing is not None:  # the page was left before the field sent its text
        st.session_state[f"{key}.text"] = typing
    if f"{key}.text" not in st.session_state:
        draft = drafts.load_draft_values(key)
        base = draft.get("base")
        if isinstance(base, int) and base in texts and draft.get("text") not in (None, texts[base]):
            st.session_state[f"{key}.text"] = str(draft["text"])
            st.session_state[f"{key}.base"] = base
            return
    elif st.session_state[f"{key}.text"] != texts[st.session_state[f"{key}.base"]]:
        return
    st.session_state[f"{key}.text"] = texts[newest]
    st.session_state[f"{key}.base"] = newest


def _keep_typed(key: str, typing: str | None = None) -> None:
    """Store the field's text as a draft, or `typing`, the text that is still being typed."""
    st.session_state.pop(f"{key}.typed", None)
    if typing is not None:
        st.session_state[f"{key}.typed"] = typing
    text = str(st.session_state.get(f"{key}.text") or "") if typing is None else typing
    drafts.save_draft_values(key, {"text": text, "base": st.session_state.get(f"{key}.base", 0)})


def _discard(key: str) -> None:
    drafts.save_draft_values(key, {})
    for name in ("text", "typed"):
        st.session_state.pop(f"{key}.{name}", None)


def _save(project_id: str, seen: int, before: str) -> None:
    key = f"guidelines.{project_id}"
    text = str(st.session_state.get(f"{key}.text") or "").rstrip()
    if text == before:
        st.toast("Nothing has changed since they were saved.")
    elif _append(project_id, text, seen):
        _discard(key)


def _append(project_id: str, text: str, seen: int) -> bool:
    """Store a new version; return True if it was stored."""
    with store_problem(f"guidelines.{project_id}.problem"):
        with state.open_store() as store, store.writing():
            person = state.require_role(store, project_id, "lead", "edit the guidelines")
            version = Guideline(0, project_id, text, time.time(), person)
            store.guidelines.save(version, seen=seen)
        st.toast("Saved. Annotators see it from now on.", icon=":material/check:")
        return True
    return False


def _draw_earlier(project: Project, versions: Sequence[Guideline]) -> None:
    if len(versions) < 2:
        return
    chosen = st.selectbox(
        f"Versions ({len(versions)})",
        versions,
        index=None,
        format_func=lambda version: f"{format_time(version.at)} · {version.author}",
        placeholder="Choose one to see it",
        key=f"guidelines.{project.id}.earlier",
    )
    if chosen is not None:
        with st.container(border=True):
            _draw_version(chosen)
