"""Out: the project's cases in each format, or the whole of it as an archive.

Streamlit makes a file in a thread that knows nothing of the session, so who asks and for which
project is settled while the button is drawn, and their role is asked again when they click.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from components import state
from core.errors import InputError
from core.exchange.archive import give
from core.exchange.outgoing import rows_of
from core.exchange.trajectories_out import sorted_out, zipped
from core.formats.label_studio import config_of
from core.formats.names import WRITTEN
from core.formats.registry import FORMATS
from core.records import Project
from core.store import Store
from core.store import open_store as open_store_in

WHICH = {"all": "all cases", "reviewed": "those with an answer"}


@dataclass(frozen=True)
class Asker:
    """Who takes a project's answers away, and from which home."""

    home: Path
    project_id: str
    person: str

    def project(self, store: Store) -> Project:
        """The project as it is now.

        Raises:
            NotAllowed: they have no role there, or a lesser one than lead.
            InputError: it is not there any more.
        """
        store.projects.require(self.project_id, self.person, "lead", "export the answers of all")
        project = store.projects.get(self.project_id)
        if project is None:
            raise InputError("Expected a project that is there, found none; reload the page.")
        return project


def draw_export() -> None:
    """A button for each format; files are made when they are asked for."""
    st.subheader("Out", anchor=False)
    with state.open_store() as store:
        asker = Asker(state.home(), state.project(store).id, state.person(store))
        categories = asker.project(store).categories
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
                data=_maker(asker, name, which or "all"),
                file_name=f"counterpoint-{name}.{how.ending}",
                key=f"exchange.out.{name}",
                icon=":material/download:",
                on_click="ignore",
            )
        st.download_button(
            "Trajectories (ReAct)",
            data=lambda: _trajectories(asker, which or "all"),
            file_name="counterpoint-trajectories.zip",
            mime="application/zip",
            key="exchange.out.trajectories",
            icon=":material/download:",
            on_click="ignore",
        )
        st.download_button(
            "Whole project (archive)",
            data=lambda: _archive(asker),
            file_name="counterpoint-project.zip",
            mime="application/zip",
            key="exchange.out.archive",
            icon=":material/archive:",
            on_click="ignore",
        )
    st.caption(
        "The answer that counts is written: a settled one, else the newest correction, else the "
        "imported gold. An archive holds documents, checks and the whole history too. Trajectories "
        "are audits step by step, to train an agent on: those that people found right in one file, "
        "the others with the reason in a second."
    )
    with st.expander("The labelling configuration for Label Studio"):
        st.code(config_of(categories), language="xml")


def _maker(asker: Asker, name: str, which: str) -> Callable[[], bytes]:
    def make() -> bytes:
        write = FORMATS[name].write
        with open_store_in(asker.home) as store:
            rows = rows_of(store, asker.home, asker.project(store), which)
        return write(rows) if write else b""

    return make


def _trajectories(asker: Asker, which: str) -> bytes:
    with open_store_in(asker.home) as store:
        return zipped(sorted_out(store, asker.project(store), which, balance=False))


def _archive(asker: Asker) -> bytes:
    stream = io.BytesIO()
    with open_store_in(asker.home) as store:
        give(store, asker.home, asker.project(store), stream)
    return stream.getvalue()
