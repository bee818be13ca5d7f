"""The library's table, with what can be done to the chosen files."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from components.app import state
from components.check.inputs import entry_facts
from components.widgets.controls import (
    ask,
    button,
    download,
    draw_question,
    problem_kept,
    show_problem,
)
from components.widgets.html import marked_text, show
from components.widgets.wording import escaped, size, when
from core.documents.library import file_bytes, reindex, remove_file
from core.records import LibraryEntry

STATUS = {
    "ready": "ready",
    "waiting": "waiting to be read",
    "reading": "being read",
    "refused": "refused",
}
PREVIEW = 4000
PROBLEM = "library.problem"


def draw_library() -> None:
    """All files of the project; choose some to see, delete, or read again."""
    show_problem(PROBLEM)
    with state.open_store() as store:
        project = state.project(store)
        entries = store.library.all(project.id)
    if not entries:
        st.info("The library is empty. Files that you add here or at a check appear here.")
        return
    picked = st.dataframe(
        [_cells(entry) for entry in entries],
        key=f"library.table.{st.session_state.get('library.version', 0)}",
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        height="content",
    )
    chosen = [entries[i] for i in picked["selection"]["rows"] if i < len(entries)]
    if not chosen:
        st.caption("Select rows to view, delete or read files again.")
        return
    with st.container(horizontal=True):
        button(
            f"Delete {len(chosen)}",
            "library.delete",
            ask,
            "library.asked",
            [entry.id for entry in chosen],
            icon="delete",
        )
        button(
            "Read again",
            "library.reindex",
            _read_again,
            chosen,
            icon="refresh",
            help="Reads and indexes the file anew, e.g. after the limits were changed",
        )
        _download(chosen)
    asked = st.session_state.get("library.asked") or []
    if asked:
        gone = [entry for entry in entries if entry.id in asked]
        names = ", ".join(escaped(entry.name) for entry in gone[:5])
        words = (
            f"Delete {names}? Runs keep the passages they used; the files and their pictures go."
        )
        draw_question(words, "Delete", "library", _delete, gone, asked="library.asked")
    for entry in chosen[:1]:
        _preview(entry)


def _cells(entry: LibraryEntry) -> dict[str, Any]:
    return {
        "Name": entry.name,
        "State": STATUS[entry.status],
        "What was read": entry.problem or entry_facts(entry),
        "Language": "" if entry.language == "und" else entry.language,
        "Size": size(entry.size),
        "Added": when(entry.added_at),
        "By": entry.added_by,
    }


def _download(chosen: list[LibraryEntry]) -> None:
    if len(chosen) == 1:
        entry = chosen[0]
        download(
            "Download", lambda: file_bytes(state.home(), entry.id), entry.name, "library.download"
        )


def _delete(chosen: list[LibraryEntry]) -> None:
    """Delete, and select nothing: rows move up, and the next one was not meant."""
    ask("library.asked", None)
    st.session_state["library.version"] = st.session_state.get("library.version", 0) + 1
    with problem_kept(PROBLEM), state.open_store() as store:
        for entry in chosen:
            with store.writing():
                state.require(store, entry.project_id, "annotator", "delete files")
                remove_file(store, state.home(), entry.project_id, entry.id, time.time())


def _read_again(chosen: list[LibraryEntry]) -> None:
    with problem_kept(PROBLEM):
        with state.open_store() as store:
            for entry in chosen:
                with store.writing():
                    state.require(store, entry.project_id, "annotator", "read files again")
                    reindex(store, entry.id)
        for entry in chosen:
            state.prereading().submit(entry.id, entry.name, anew=True)
        what = "The file is" if len(chosen) == 1 else f"{len(chosen)} files are"
        st.toast(f"{what} being read again.", icon=":material/refresh:")


def _preview(entry: LibraryEntry) -> None:
    with state.open_store() as store:
        text = store.readings.text(entry.id, 0, PREVIEW)
    if text:
        with st.expander(f"What was read in {escaped(entry.name)}", expanded=True):
            show(marked_text(text, []))
            if entry.characters > PREVIEW:
                st.caption(f"The first {PREVIEW:,} of {entry.characters:,} characters.")
