"""The parts of Settings: the person, the limits with their bounds, the health of the install."""

from __future__ import annotations

import time

import streamlit as st

from components import login, state
from components.words import escaped
from core.config import SETTINGS
from core.doctor import checks
from core.errors import NotAllowed, ReviewError
from core.people import change_person, rename_person


def draw_person() -> None:
    """The name that stands at corrections; whoever logged in has theirs from the provider."""
    with state.open_store() as store:
        name = state.person(store)
    if login.is_on():
        st.markdown(f"You are logged in as **{escaped(name)}**; so it stands at your corrections.")
        return
    typed = st.text_input(
        "Your name, as it stands at your corrections",
        value=name,
        key="settings.person",
        max_chars=80,
    )
    if typed and typed.strip() != name:
        with st.container(horizontal=True):
            st.button("I am called this now", key="settings.rename", on_click=_rename)
            st.button("Somebody else works here now", key="settings.change", on_click=_change)
        st.caption(
            f"Your roles, drafts and what you have in hand go along; or they stay "
            f"{escaped(name)}'s, and the other begins as an annotator of this project."
        )
    _show("settings.person.problem")


def _change() -> None:
    """Another person at the same computer: they see nothing of the drafts of who was here."""
    name = str(st.session_state.get("settings.person") or "").strip()
    try:
        if login.is_on():
            raise NotAllowed("Whoever logged in cannot take another name; log out instead.")
        with state.open_store() as store:
            change_person(store, state.project(store).id, name, time.time())
    except ReviewError as error:
        st.session_state["settings.person.problem"] = str(error)
        return
    state.begin_as(name)
    st.toast(f"{escaped(name)} works here now.", icon=":material/check:")


def _rename() -> None:
    name = str(st.session_state.get("settings.person") or "").strip()
    try:
        if login.is_on():
            raise NotAllowed("Whoever logged in cannot take another name; log out instead.")
        with state.open_store() as store:
            rename_person(store, state.person(store), name, time.time())
    except ReviewError as error:
        st.session_state["settings.person.problem"] = str(error)
        return
    st.session_state["person"] = name
    st.toast(
        f"From now on your corrections say {escaped(name)}. Earlier ones keep their name, which "
        "stays among the project's people.",
        icon=":material/check:",
    )


def draw_limits() -> None:
    """Every setting with its bounds; a change is kept at once."""
    st.subheader("Limits", anchor=False)
    with state.open_store() as store:
        values = store.projects.settings().as_dict()
    columns = st.columns(3)
    for place, (name, about) in enumerate(SETTINGS.items()):
        with columns[place % 3]:
            st.number_input(
                f"{about.label} ({about.unit})",
                min_value=about.low,
                max_value=about.high,
                value=values[name],
                step=1,
                key=f"settings.{name}",
                help=about.help,
                on_change=_set,
                args=(name,),
            )
    _show("settings.problem")


def _set(name: str) -> None:
    value = st.session_state.get(f"settings.{name}")
    try:
        with state.open_store() as store, store.writing():
            store.projects.require_for_all(state.person(store), "admin", "change limits")
            store.projects.save_setting(name, int(value or 0))
    except ReviewError as error:
        st.session_state["settings.problem"] = str(error)
        return
    st.toast("Saved.", icon=":material/check:")


def draw_health() -> None:
    """What works here and what to do about the rest."""
    st.subheader("What works here", anchor=False)
    st.caption(f"Everything is kept in {escaped(str(state.home()))}.")
    if not st.button("Look", key="settings.health", icon=":material/stethoscope:"):
        return
    for item in checks(state.home()):
        if item.works:
            st.markdown(f":material/check_circle: **{escaped(item.name)}** · {escaped(item.words)}")
        else:
            st.error(escaped(f"{item.name}: {item.words}"), icon=":material/error:")


def _show(key: str) -> None:
    problem = st.session_state.pop(key, "")
    if problem:
        st.error(escaped(problem))
