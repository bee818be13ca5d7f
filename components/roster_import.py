"""A roster from a file: read strictly, kept whole or not at all, and never over another unasked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from components import state
from components.roster_editor import CHOICE, DRAFT, begin, derived_name, keep, require_lead
from components.words import escaped, when
from core.agents.roster_file import MOST_BYTES, ReadRoster, read_roster
from core.agents.rosters import SHIPPED
from core.errors import InputError, ReviewError
from core.models.prompting import PromptBook
from core.store import Store

NOTICE = "rosters.notice"
PROBLEM = "rosters.import_problem"
PENDING = "rosters.pending"
UPLOADS = "rosters.uploads"  # counts them: a new number is an empty uploader
KILOBYTES = MOST_BYTES // 1000


def draw_import() -> None:
    """The field for a file, what is wrong with it, and the question before a new version."""
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    problem = str(st.session_state.get(PROBLEM) or "")
    with st.expander(
        "Import a roster", icon=":material/upload:", expanded=bool(pending or problem)
    ):
        key = f"rosters.import.{st.session_state.get(UPLOADS, 0)}"
        st.file_uploader(
            f"A file that was exported from Counterpoint, at most {KILOBYTES} kB",
            type=["json"],
            key=key,
            on_change=_take,
            args=(key,),
        )
        if problem:
            st.error(escaped(problem))
        if pending:
            _draw_question(pending)


def _draw_question(pending: dict[str, Any]) -> None:
    st.markdown(
        f"There is a roster “{escaped(pending['name'])}”, saved {when(pending['at'])} by "
        f"{escaped(pending['author'])}, with other seats. Keep the file's as a new version of it?"
    )
    with st.container(horizontal=True):
        st.button("New version", key="rosters.import.sure", type="primary", on_click=_confirm)
        st.button("Leave it", key="rosters.import.leave", on_click=_let_go)


def _take(key: str) -> None:
    """Read the file that was given; whatever is wrong with it, nothing of it is kept."""
    upload = st.session_state.get(key)
    st.session_state.pop(PENDING, None)
    st.session_state.pop(PROBLEM, None)
    if upload is None:
        return
    try:
        with state.open_store() as store, store.writing():
            require_lead(store)
            _place(store, upload.getvalue())
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)


def _place(store: Store, data: bytes) -> None:
    """Keep a new name, ask about a known one, open the form where the name is ours."""
    read = _read(store, data)
    name = read.sheet.name
    ours = next((ours for ours in SHIPPED if ours.casefold() == name.casefold()), None)
    newest = store.rosters.newest(name)
    if ours is not None:
        _open_copy(read)
    elif newest is None or newest.sheet is None:
        keep(store, read.sheet)
        _kept(read)
    elif newest.sheet == replace(read.sheet, prompts=newest.sheet.prompts):
        _say(f"“{name}” is here already, just as in the file.")
        _let_go()
    else:
        told = {"name": name, "author": newest.author, "at": newest.at}
        st.session_state[PENDING] = {"data": data, "seen": newest.number, **told}


def _read(store: Store, data: bytes) -> ReadRoster:
    book = PromptBook(store.prompt_edits.of_project(state.project(store).id))
    return read_roster(data, book.digest())


def _open_copy(read: ReadRoster) -> None:
    if DRAFT in st.session_state:
        raise InputError(
            f"“{read.sheet.name}” comes with Counterpoint, so the file's needs another name; "
            "save or discard the roster that you are writing, then import it again."
        )
    name = read.sheet.name
    begin(replace(read.sheet, name=derived_name(name, "imported")))
    _say(
        f"“{name}” comes with Counterpoint and never changes. The file's roster is open below "
        f"under another name; nothing is kept until you save it. {read.notice}"
    )
    _let_go()


def _confirm() -> None:
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    if not pending:
        return  # the second half of a double click
    try:
        with state.open_store() as store, store.writing():
            read = _read(store, pending["data"])
            keep(store, read.sheet, fixed=read.sheet.name, seen=pending["seen"])
    except ReviewError as error:
        _let_go()
        st.session_state[PROBLEM] = str(error)
        return
    _kept(read)


def _kept(read: ReadRoster) -> None:
    st.session_state[CHOICE] = read.sheet.name
    _say(f"Imported “{read.sheet.name}”. {read.notice}")
    _let_go()


def _say(words: str) -> None:
    st.session_state[NOTICE] = words.strip()


def _let_go() -> None:
    """Empty the uploader: its file has been dealt with."""
    st.session_state.pop(PENDING, None)
    st.session_state.pop(PROBLEM, None)
    st.session_state[UPLOADS] = st.session_state.get(UPLOADS, 0) + 1
