"""The form in which a roster is written, and the saving of it as a new version."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping

import streamlit as st

from components import state
from components.roster_draft import (
    KEY,
    Place,
    fill,
    forget,
    give_everywhere,
    place_of,
    text,
    typed_sheet,
)
from components.roster_fields import SEAT, TEXTS, draw_refusal, draw_seats
from components.roster_table import roster_table
from components.show import show
from components.words import escaped, roster_words
from core.agents.rosters import ROSTER_WORDS, SHIPPED, one_model, require_filled_in
from core.agents.sheet_rules import LONGEST, check_sheet
from core.errors import ConflictError, InputError, ReviewError
from core.models.prompting import PromptBook
from core.seats import BUILT_IN, RosterSheet
from core.store import Store

DRAFT = "rosters.draft"
CHOICE = "rosters.choice"
REFUSED = "rosters.refused"


def begin(sheet: RosterSheet, *, fixed: str = "", seen: int = 0) -> None:
    """Open the form on a sheet; `fixed` is the name of a kept roster that is being changed.

    `seen` is the number of its version that is changed. Call it from a callback.
    """
    if DRAFT in st.session_state:
        return  # a double click; what is being written stays
    fill(sheet)
    st.session_state[DRAFT] = {"fixed": fixed, "seen": seen}
    st.session_state[SEAT] = "judge"
    st.session_state.pop(REFUSED, None)


def derived_name(name: str, word: str) -> str:
    """The name with a word behind it, no longer than names may be."""
    end = f" ({word})"
    return f"{name[: LONGEST['name'] - len(end)].rstrip()}{end}"


def draw_editor(book: PromptBook) -> None:
    """The form, while a roster is being written, with the roster as it would be."""
    draft = st.session_state.get(DRAFT)
    if not draft:
        return
    message = str(st.session_state.get(REFUSED) or "")
    place = place_of(message) if message else None
    refused = {place: message} if place else {}
    with st.container(border=True, key="rosters.editor"):
        _draw_head(str(draft["fixed"]), refused)
        _draw_one_model()
        draw_seats(refused)
        if message and place is None:
            st.error(escaped(message))
        with st.container(horizontal=True):
            st.button("Save", key="rosters.save", type="primary", on_click=_save)
            st.button("Discard", key="rosters.discard", on_click=_close)
        with contextlib.suppress(InputError):  # Save says what is missing
            shown = roster_table(typed_sheet(), book)
            with st.expander("The roster as it would be", key="rosters.would_be"):
                show(shown)


def _draw_head(fixed: str, refused: Mapping[Place, str]) -> None:
    if fixed:
        st.markdown(f"**Change “{escaped(fixed)}”**  \nThe version before stays in its history.")
    else:
        st.markdown("**A roster of your own**")
        st.text_input("Name", key=f"{KEY}name", max_chars=LONGEST["name"], persist_state="session")
        draw_refusal("", "name", refused)
    st.text_input(
        "In a few words", key=f"{KEY}words", max_chars=LONGEST["words"], persist_state="session"
    )
    draw_refusal("", "words", refused)


def _draw_one_model() -> None:
    """The short way: one model for every role that speaks."""
    with st.expander("One model for every speaking role", icon=":material/group:"):
        for name, (label, words) in TEXTS.items():
            st.text_input(label, key=f"{KEY}all.{name}", help=words, persist_state="session")
        st.button("Use it everywhere", key="rosters.everywhere", on_click=_give_everywhere)
        st.caption("Retrieval and the cutting into statements stay as they are.")


def _give_everywhere() -> None:
    model, api_base, key_name = (text(f"all.{name}") for name in TEXTS)
    if not model:
        st.toast("Write the model's name first.", icon=":material/edit:")
        return
    give_everywhere(model, api_base, key_name)
    if text("words") in ROSTER_WORDS.values():  # they tell of the models that are gone now
        st.session_state[f"{KEY}words"] = one_model(model, api_base).words[: LONGEST["words"]]
    st.toast(f"Every speaking role is {escaped(model)} now.", icon=":material/check:")


def _close() -> None:
    forget()
    st.session_state.pop(DRAFT, None)
    st.session_state.pop(REFUSED, None)


def _save() -> None:
    """Keep what stands in the form; on a refusal it stays open, at the seat in question."""
    draft = st.session_state.get(DRAFT)
    if not draft:
        return  # the second half of a double click
    try:
        sheet = typed_sheet()
        check_sheet(sheet)
        require_filled_in(sheet)
        with state.open_store() as store, store.writing():
            keep(store, sheet, fixed=str(draft["fixed"]), seen=int(draft["seen"]))
    except ReviewError as error:
        _refuse(error)
        return
    _close()
    st.session_state[CHOICE] = sheet.name
    st.toast(f"Saved “{escaped(sheet.name)}”.", icon=":material/check:")


def _refuse(error: ReviewError) -> None:
    draft = st.session_state[DRAFT]
    st.session_state[REFUSED] = str(error)
    place = place_of(str(error))
    if place and place[0]:
        st.session_state[SEAT] = place[0]
    if isinstance(error, ConflictError) and draft["fixed"]:
        with state.open_store() as store:
            newest = store.rosters.newest(str(draft["fixed"]))
        # Saving once more lays ours over theirs, which stays in the history.
        st.session_state[DRAFT] = draft | {"seen": newest.number if newest else 0}


def require_lead(store: Store) -> None:
    """Refuse whoever may not change rosters.

    Raises:
        NotAllowed: the person here is neither lead nor admin of the first project.
    """
    store.projects.require_for_all(state.person(store), "lead", "change rosters")


def keep(store: Store, sheet: RosterSheet, *, fixed: str = "", seen: int = 0) -> None:
    """Append a version of a roster; call it inside `Store.writing()`.

    Raises:
        NotAllowed: the person here is neither lead nor admin of the first project.
        InputError: the name belongs to another roster, a shipped or a kept one.
        ConflictError: somebody else changed the roster since the version `seen`.
    """
    require_lead(store)
    ours = {name.casefold() for name in (*SHIPPED, roster_words(BUILT_IN, short=True))}
    if sheet.name.casefold() in ours:
        raise InputError(
            f"Roster, name: expected one of your own, found “{sheet.name}”, which comes with "
            "Counterpoint and never changes; choose another."
        )
    newest = store.rosters.newest(sheet.name)
    if not fixed:
        if newest is not None and newest.sheet is not None:
            raise InputError(
                f"Roster, name: expected a new one, found “{sheet.name}”, which {newest.author} "
                "keeps already; choose another, or discard this and change that one."
            )
        seen = newest.number if newest else 0
    store.rosters.save(sheet, state.person(store), time.time(), seen=seen)
