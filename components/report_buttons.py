"""What a person takes away from a run: the report, the trace file, the replay."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components import state
from components.cues import can_play
from components.debate_calls import silence_words
from components.report import html_report, markdown_report
from components.run_view import classifier_card
from components.track_record import past_of
from components.words import escaped
from core.progress import Progress
from core.records import Case, Run
from core.reviews import Correction
from core.store.traces import export_trace


def draw_downloads(
    run: Run, case: Case, progress: Progress, corrections: Sequence[Correction]
) -> None:
    """Buttons in one row; files are made when they are asked for."""
    card, past = classifier_card(progress.classifier), past_of(run, progress)
    name = f"counterpoint-{run.id[:8]}"
    st.subheader("Take away", anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "Report (HTML)",
            data=lambda: html_report(run, case, progress, corrections, card, past),
            file_name=f"{name}.html",
            mime="text/html",
            key="run.report.html",
            icon=":material/description:",
            on_click="ignore",
        )
        st.download_button(
            "Report (Markdown)",
            data=lambda: markdown_report(run, case, progress, corrections, card, past),
            file_name=f"{name}.md",
            mime="text/markdown",
            key="run.report.md",
            icon=":material/markdown:",
            on_click="ignore",
        )
        if progress.began_at:  # of a run that was never begun there is nothing to play
            st.download_button(
                "Trace file",
                data=lambda: _trace(run.id),
                file_name=f"{name}.trace.json",
                mime="application/json",
                key="run.trace",
                icon=":material/movie:",
                on_click="ignore",
            )
        if can_play(progress):
            st.page_link(
                "pages/check/replay.py",
                label="Replay the debate" if progress.turns else "Replay the check",
                icon=":material/play_circle:",
                query_params={"run": run.id},
            )
    if not can_play(progress):
        st.caption(escaped(f"There is nothing to replay. {silence_words(progress)}"))


def _trace(run_id: str) -> bytes:
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        return export_trace(store, run_id, time.time(), lease)
