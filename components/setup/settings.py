"""Settings: the person, the reader, the limits, and what works here."""

from __future__ import annotations

import time

import streamlit as st

from components.app import login, state
from components.widgets.controls import button, problem_kept, problem_shown, show_problem
from components.widgets.wording import escaped
from core.baseline.entailment import (
    SHIPPED,
    brought,
    calibration_of,
    choose_reader,
    reader_card,
    reader_folders,
    reader_in_use,
)
from core.config import SETTINGS
from core.doctor import checks
from core.errors import NotAllowed
from core.review.people import change_person, rename_person
from core.store import Store

FIELD = "settings.reader"
PROBLEM = f"{FIELD}.problem"
ABOUT = (
    "What reads a statement against the evidence, on this computer. You may bring any model that "
    "says whether a text supports a claim, or that marks unsupported words: it is exported once. "
    "docs/readers.md names some that are worth downloading."
)
UNCALIBRATED = "This reader is not calibrated, so its probabilities may be off."


def draw_readers() -> None:
    """The reader in use, what is known of it, and a field for another."""
    st.subheader("Reader", anchor=False)
    st.caption(ABOUT)
    with state.open_store() as store:
        used = reader_in_use(store)
    names = [SHIPPED, *reader_folders(state.home())]
    if used not in names:
        st.error(
            escaped(f"The reader “{used}” is not in the home any more; choose another."),
            icon=":material/error:",
        )
    st.selectbox(
        "Checks read with",
        names,
        index=names.index(used) if used in names else None,
        format_func=lambda name: "the reader that ships (English)" if name == SHIPPED else name,
        key=f"{FIELD}.name",
        on_change=_choose,
    )
    _draw_known(used)
    st.text_input(
        "Bring a reader",
        key=f"{FIELD}.source",
        placeholder="organisation/model on the Hugging Face Hub, or a folder",
    )
    button("Import", f"{FIELD}.import", _import, icon="download")
    show_problem(PROBLEM)


def _draw_known(name: str) -> None:
    folder = reader_folders(state.home()).get(name)
    if folder is None:
        return
    with problem_shown():
        card, found = reader_card(folder), calibration_of(folder)
        st.caption(escaped(f"{card['architecture']} from {card['source']}"))
        if found is None:
            st.warning(escaped(UNCALIBRATED), icon=":material/tune:")
            st.code(f"python -m core reader calibrate {name} --decided-here", language="shell")
            return
        own = found["measured"]["all"]
        st.caption(
            f"Calibrated on {own['n']:,} statements: AUROC {own['auroc']:.3f}, "
            f"ECE {own['ece']:.3f}."
        )


def _require_admin(store: Store) -> None:
    store.projects.require_for_all(state.person(store), "admin", "change the reader")


def _choose() -> None:
    name = str(st.session_state.get(f"{FIELD}.name") or "")
    with problem_kept(PROBLEM):
        with state.open_store() as store:
            _require_admin(store)
            choose_reader(store, state.home(), name)
        st.toast("New checks read with it.", icon=":material/check:")


def _import() -> None:
    source = str(st.session_state.get(f"{FIELD}.source") or "").strip()
    with problem_kept(PROBLEM):
        with state.open_store() as store:
            _require_admin(store)
        with st.spinner("Exporting the model; large ones take a minute…"):
            name = brought(state.home(), source)
        st.session_state[f"{FIELD}.source"] = ""
        st.toast(escaped(f"{name} is here; choose it above."), icon=":material/check:")


def draw_person() -> None:
    """The name that stands at corrections; whoever logged in has theirs from the provider."""
    with state.open_store() as store:
        name = state.person(store)
    if login.is_on():
        st.markdown(f"You are logged in as **{escaped(name)}**; so it stands at your corrections.")
        return
    typed = st.text_input(
        "Your name, as shown on your corrections", value=name, key="settings.person", max_chars=80
    )
    if typed and typed.strip() != name:
        with st.container(horizontal=True):
            button("I am called this now", "settings.rename", _rename)
            button("Somebody else works here now", "settings.change", _change)
        st.caption(
            f"Your roles, drafts and what you have in hand go along; or they stay "
            f"{escaped(name)}'s, and the other begins as an annotator of this project."
        )
    show_problem("settings.person.problem")


def _typed_name() -> str:
    """What stands in the field, where one may have another name.

    Raises:
        NotAllowed: the name comes from a login.
    """
    if login.is_on():
        raise NotAllowed("Whoever logged in cannot take another name; log out instead.")
    return str(st.session_state.get("settings.person") or "").strip()


def _change() -> None:
    """Another person at the same computer: they see nothing of the drafts of who was here."""
    with problem_kept("settings.person.problem"):
        name = _typed_name()
        with state.open_store() as store:
            change_person(store, state.project(store).id, name, time.time())
        state.begin_as(name)
        st.toast(f"{escaped(name)} works here now.", icon=":material/check:")


def _rename() -> None:
    with problem_kept("settings.person.problem"):
        name = _typed_name()
        with state.open_store() as store:
            rename_person(store, state.person(store), name, time.time())
        st.session_state["person"] = name
        st.toast(
            f"From now on your corrections say {escaped(name)}. Earlier ones keep their name, "
            "which stays among the project's people.",
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
    show_problem("settings.problem")


def _set(name: str) -> None:
    value = st.session_state.get(f"settings.{name}")
    with problem_kept("settings.problem"):
        with state.open_store() as store, store.writing():
            store.projects.require_for_all(state.person(store), "admin", "change limits")
            store.projects.save_setting(name, int(value or 0))
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
