"""Rosters in Settings: seats, copies and changes, the history, files out and in.

A file is read strictly, kept whole or not at all, and never over another unasked.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from components.app import state
from components.setup.roster_editor import (
    CHOICE,
    DRAFT,
    begin,
    derived_name,
    draw_editor,
    draw_trial,
    draw_trial_button,
    keep,
    require_lead,
)
from components.setup.roster_fields import roster_table
from components.widgets.controls import ask, button, download, draw_question, problem_kept
from components.widgets.html import paged, show
from components.widgets.wording import escaped, roster_words, when
from core.agents.roster_files import MOST_BYTES, SUFFIX, ReadRoster, read_roster, roster_file
from core.agents.rosters import SHIPPED, sheet_named, sheets_of
from core.errors import InputError, ReviewError
from core.llm.prompting import PromptBook
from core.seats import RosterSheet
from core.store import Store
from core.store.projects import SavedRoster

NOTICE = "rosters.notice"
ROSTER_IMPORT_PROBLEM = "rosters.import_problem"
PENDING = "rosters.pending"
UPLOADS = "rosters.uploads"  # counts them: a new number is an empty uploader
KILOBYTES = MOST_BYTES // 1000


def draw_import() -> None:
    """The field for a file, what is wrong with it, and the question before a new version."""
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    problem = str(st.session_state.get(ROSTER_IMPORT_PROBLEM) or "")
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
        button("New version", "rosters.import.sure", _confirm, type="primary")
        button("Leave it", "rosters.import.leave", _let_go)


def _take(key: str) -> None:
    """Read the file that was given; whatever is wrong with it, nothing of it is kept."""
    upload = st.session_state.get(key)
    st.session_state.pop(PENDING, None)
    st.session_state.pop(ROSTER_IMPORT_PROBLEM, None)
    if upload is None:
        return
    with problem_kept(ROSTER_IMPORT_PROBLEM), state.open_store() as store, store.writing():
        require_lead(store)
        _place(store, upload.getvalue())


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
        st.session_state[ROSTER_IMPORT_PROBLEM] = str(error)
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
    st.session_state.pop(ROSTER_IMPORT_PROBLEM, None)
    st.session_state[UPLOADS] = st.session_state.get(UPLOADS, 0) + 1


PROBLEM = "rosters.problem"
ASKED = "rosters.asked"


def draw_rosters() -> None:
    """Choose a roster, see it, test it, change or copy it, pass it on."""
    st.subheader("Rosters", anchor=False)
    with state.open_store() as store:
        project = state.project(store)
        sheets = {sheet.name: sheet for sheet in sheets_of(store)}
        name = _chosen(list(sheets), project.roster)
        sheet = sheets[name]
        history = [] if name in SHIPPED else store.rosters.history(name)
        book = PromptBook(store.prompt_edits.of_project(project.id))
    st.caption(escaped(sheet.words))
    show(roster_table(sheet, book))
    st.caption(_origin(sheet, history, book.digest()))
    with st.container(horizontal=True):
        draw_trial_button(sheet)
        _draw_changes(sheet, history)
        _draw_export(sheet, book.digest())
    for key, draw in ((PROBLEM, st.error), (NOTICE, st.info)):
        words = st.session_state.pop(key, "")
        if words:
            draw(escaped(words))
    if history and st.session_state.get(ASKED) == (number := history[0].number):
        words = (
            f"Remove “{escaped(name)}”? Runs keep the seats that they used, and its history stays."
        )
        draw_question(words, "Remove", "rosters", _remove, name, number, asked=ASKED)
    draw_editor(book)
    draw_trial(sheet)
    _draw_history(history)
    draw_import()


def _chosen(names: list[str], usual: str) -> str:
    """The roster to look at, at first the project's; one that was removed is let go of."""
    if st.session_state.get(CHOICE) not in names:
        st.session_state[CHOICE] = usual if usual in names else names[0]
    return str(
        st.selectbox(
            "Roster",
            names,
            format_func=partial(roster_words, short=True),
            key=CHOICE,
            persist_state="session",
        )
    )


def _origin(sheet: RosterSheet, history: list[SavedRoster], digest: str) -> str:
    """Where the roster comes from and which prompts are in force, in Markdown."""
    if history:
        saved = history[0]
        first = f"Saved {when(saved.at)} by {escaped(saved.author)}, version {len(history)}."
    else:
        first = "Comes with Counterpoint and never changes; a copy is yours to change."
    if sheet.is_built_in:
        return first
    written = ""
    if sheet.prompts and sheet.prompts != digest:
        written = f"; the roster was written for {escaped(sheet.prompts)}"
    return (
        f"{first} Prompts in force: version {digest}{written}. Where a price is unknown, tokens "
        "are capped instead of money."
    )


def _draw_changes(sheet: RosterSheet, history: list[SavedRoster]) -> None:
    """Copy, change, remove; what is being written must be saved or discarded first."""
    is_writing = DRAFT in st.session_state
    button(
        "Make a copy", "rosters.copy", _copy, sheet.name, icon="content_copy", disabled=is_writing
    )
    if history:
        button("Change", "rosters.change", _change, sheet.name, icon="edit", disabled=is_writing)
        button("Remove", "rosters.remove", ask, ASKED, history[0].number, icon="delete")


def _draw_export(sheet: RosterSheet, digest: str) -> None:
    try:
        data = roster_file(sheet, digest)
    except InputError as error:  # kept by an earlier version with other rules
        st.error(escaped(str(error)))
        return
    download(
        "Export",
        data,
        re.sub(r"[^\w.-]+", "-", sheet.name).strip(".-") + SUFFIX,
        "rosters.export",
        help="The roster as a file, without any key",
    )


def _copy(name: str) -> None:
    with problem_kept(PROBLEM):
        with state.open_store() as store:
            require_lead(store)
            sheet = sheet_named(name, store)
        begin(replace(sheet, name=derived_name(name, "copy")))


def _change(name: str, number: int = 0) -> None:
    """Open the form on the newest version of a roster, or on the one of that number."""
    with problem_kept(PROBLEM):
        with state.open_store() as store:
            require_lead(store)
            history = store.rosters.history(name)
        chosen = next((saved for saved in history if saved.number == number), None) or history[0]
        if chosen.sheet is not None:
            begin(chosen.sheet, fixed=name, seen=history[0].number)


def _remove(name: str, number: int) -> None:
    ask(ASKED, None)
    with problem_kept(PROBLEM):
        with state.open_store() as store, store.writing():
            require_lead(store)
            store.rosters.remove(name, state.person(store), time.time(), seen=number)
        st.toast(f"“{escaped(name)}” is off the list.", icon=":material/delete:")


def _draw_history(history: list[SavedRoster]) -> None:
    if len(history) < 2:
        return
    with st.expander(f"History ({len(history)})", key="rosters.history"):
        for saved in paged(history, "rosters.versions"):
            left, right = st.columns([3, 1], vertical_alignment="center")
            what = "saved" if saved.sheet else "removed"
            left.markdown(f"{when(saved.at)} · {escaped(saved.author)} · {what}")
            if saved.sheet and saved != history[0]:
                right.button(
                    "Take it up again",
                    key=f"rosters.version.{saved.number}",
                    on_click=_change,
                    args=(saved.name, saved.number),
                    disabled=DRAFT in st.session_state,
                )
