"""A run that comes in as a trace file: read, stored, linked to."""

from __future__ import annotations

import streamlit as st

from components import state
from components.words import escaped
from core.config import MEGABYTE
from core.documents.terms import terms
from core.errors import ReviewError
from core.store.traces import MOST_BYTES, import_trace


def draw_trace_import() -> None:
    """Open a trace file that was exported here or elsewhere."""
    with st.expander("Open a trace file", icon=":material/movie:"):
        upload = st.file_uploader(
            "A run that was exported as a trace",
            key="history.trace",
            max_upload_size=MOST_BYTES // MEGABYTE,
        )
        if upload is None:
            return
        try:
            with state.open_store() as store:
                project = state.project(store)
                state.require(store, project.id, "annotator", "open a trace file")
                run_id = import_trace(
                    store,
                    upload.getvalue(),
                    project.id,
                    lambda text, language: list(terms(text, language)),
                )
        except ReviewError as error:
            st.error(escaped(f"{upload.name}: {error}"), icon=":material/error:")
            return
        st.page_link(
            "pages/check/run.py",
            label="Open the run",
            icon=":material/open_in_new:",
            query_params={"run": run_id},
        )
        st.page_link(
            "pages/check/replay.py",
            label="Play it",
            icon=":material/play_circle:",
            query_params={"run": run_id},
        )
