"""The reader in Settings: which model reads evidence, and bringing another one."""

from __future__ import annotations

import streamlit as st

from components import state
from components.words import escaped
from core.baseline.readers import (
    SHIPPED,
    brought,
    calibration_of,
    choose_reader,
    reader_card,
    reader_folders,
    reader_in_use,
)
from core.errors import ReviewError
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
    st.button("Import", key=f"{FIELD}.import", icon=":material/download:", on_click=_import)
    if problem := st.session_state.pop(PROBLEM, ""):
        st.error(escaped(problem), icon=":material/error:")


def _draw_known(name: str) -> None:
    folder = reader_folders(state.home()).get(name)
    if folder is None:
        return
    try:
        card, found = reader_card(folder), calibration_of(folder)
    except ReviewError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    st.caption(escaped(f"{card['architecture']} from {card['source']}"))
    if found is None:
        st.warning(escaped(UNCALIBRATED), icon=":material/tune:")
        st.code(f"python -m core reader calibrate {name} --decided-here", language="shell")
        return
    own = found["measured"]["all"]
    told = f"Calibrated on {own['n']:,} statements: AUROC {own['auroc']:.3f}, ECE {own['ece']:.3f}."
    st.caption(told)


def _require_admin(store: Store) -> None:
    store.projects.require_for_all(state.person(store), "admin", "change the reader")


def _choose() -> None:
    name = str(st.session_state.get(f"{FIELD}.name") or "")
    try:
        with state.open_store() as store:
            _require_admin(store)
            choose_reader(store, state.home(), name)
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)
        return
    st.toast("New checks read with it.", icon=":material/check:")


def _import() -> None:
    source = str(st.session_state.get(f"{FIELD}.source") or "").strip()
    try:
        with state.open_store() as store:
            _require_admin(store)
        with st.spinner("Exporting the model; large ones take a minute…"):
            name = brought(state.home(), source)
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)
        return
    st.session_state[f"{FIELD}.source"] = ""
    st.toast(escaped(f"{name} is here; choose it above."), icon=":material/check:")
