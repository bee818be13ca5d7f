"""Out: the project's cases in each format, or the whole of it as an archive."""

from __future__ import annotations

import io
from collections.abc import Callable

import streamlit as st

from components import state
from core.exchange.archive import give
from core.exchange.outgoing import rows_of
from core.formats.label_studio import CONFIG
from core.formats.names import WRITTEN
from core.formats.registry import FORMATS

WHICH = {"all": "all cases", "reviewed": "those with an answer"}


def draw_export() -> None:
    """A button for each format; files are made when they are asked for."""
    st.subheader("Out", anchor=False)
    with state.open_store() as store:
        project, person = state.project(store), state.person(store)
        store.projects.require(project.id, person, "lead", "export the answers of all")
    which = st.segmented_control(
        "Which cases",
        list(WHICH),
        default="all",
        format_func=lambda name: WHICH[name],
        key="exchange.which",
    )
    with st.container(horizontal=True):
        for name in WRITTEN:
            how = FORMATS[name]
            st.download_button(
                how.words,
                data=_maker(name, which or "all"),
                file_name=f"counterpoint-{name}.{how.ending}",
                key=f"exchange.out.{name}",
                icon=":material/download:",
                on_click="ignore",
            )
        st.download_button(
            "Whole project (archive)",
            data=_archive,
            file_name="counterpoint-project.zip",
            mime="application/zip",
            key="exchange.out.archive",
            icon=":material/archive:",
            on_click="ignore",
        )
    st.caption(
        "The answer that counts is written: a settled one, else the newest correction, else the "
        "imported gold. An archive holds documents, checks and the whole history too."
    )
    with st.expander("The labelling configuration for Label Studio"):
        st.code(CONFIG, language="xml")


def _maker(name: str, which: str) -> Callable[[], bytes]:
    def make() -> bytes:
        write = FORMATS[name].write
        with state.open_store() as store:
            rows = rows_of(store, state.home(), state.project(store), which)
        return write(rows) if write else b""

    return make


def _archive() -> bytes:
    stream = io.BytesIO()
    with state.open_store() as store:
        give(store, state.home(), state.project(store), stream)
    return stream.getvalue()
