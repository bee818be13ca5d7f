"""A run under way: stage, progress, the debate as it is spoken, Stop. Redrawn by a fragment."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components import state
from components.audit import draw_audit_so_far, parts_of
from components.debate_so_far import draw_debate_so_far
from components.highlight import marked_text
from components.rounds import Speaking
from components.show import show
from components.words import escaped, seconds
from core.errors import ReviewError
from core.events import Event, ProgressMade, Stage
from core.progress import Progress, folded
from core.records import RunStatus
from core.underway import Live

POLL_SECONDS = 0.25
AWAY_SECONDS = 2.0
# A long response would push the debate out of sight while it is spoken.
MOST_SHOWN = 600
STAGE_WORDS: dict[Stage, str] = {
    "reading": "Reading the sources",
    "searching": "Searching for evidence",
    "auditing": "Checking statement by statement",
    "debating": "Debating",
    "judging": "Judging",
    "marking": "Marking the words",
}


@st.fragment(run_every=POLL_SECONDS)
def follow(run_id: str) -> None:
    """Draw the run as it is now; when it has ended, draw the page anew."""
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        run = store.runs.get(run_id, time.time(), lease)
        events = [event for _, event in store.runs.events(run_id)]
        case = store.cases.get(run.case_id) if run else None
        if run is not None and not state.may_see(store, run.project_id):
            run = None  # their role was taken away meanwhile
    if run is None or case is None or run.status not in ("queued", "running"):
        st.rerun()
        return
    progress = folded(events)
    live = state.jobs().live(run_id)
    left, right = st.columns([4, 1.4], vertical_alignment="center")
    with left, st.container(key="run.stage"):
        _draw_stage(progress, live, run.started_at, waiting=run.status == "queued")
    with right:
        st.button(
            "Stop",
            key="run.stop",
            icon=":material/stop:",
            on_click=stop,
            args=([run_id], run.project_id),
            shortcut="Ctrl+Shift+S",
            width="stretch",
        )
    more = "…" if len(case.response) > MOST_SHOWN else ""
    shown = case.response[:MOST_SHOWN]
    show(marked_text(shown + more, [], parts_of(progress)))
    for problem in progress.problems:
        st.warning(escaped(problem.message), icon=":material/warning:")
    draw_audit_so_far(progress, f"run.{run_id}.audit", len(shown))
    draw_debate_so_far(run, progress, speaking_now(events, live))


@st.fragment(run_every=AWAY_SECONDS)
def notice(run_id: str, status: RunStatus) -> None:
    """Draw the page anew when another tab or person takes up a run that came to no end."""
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        run = store.runs.get(run_id, time.time(), lease)
    if run is not None and run.status != status:
        st.rerun()


def stop(run_ids: Sequence[str], project_id: str) -> None:
    """Stop these runs of a project, if whoever is here may."""
    try:
        with state.open_store() as store:
            by = state.require(store, project_id, "annotator", "stop a check")
    except ReviewError as error:
        st.toast(escaped(str(error)), icon=":material/error:")
        return
    for run_id in run_ids:
        state.jobs().stop(run_id, by)


def _draw_stage(progress: Progress, live: Live | None, started_at: float, *, waiting: bool) -> None:
    note, share = stage_of(progress, live.progress if live else None)
    if waiting:
        note, share = "Waiting for its turn", None
    worked = worked_seconds(progress, started_at, time.time(), waiting=waiting)
    elapsed = note if worked is None else f"{note} · {seconds(worked)}"
    if share is None:
        st.markdown(f":material/progress_activity: {escaped(elapsed)}")
    else:
        st.progress(share, text=escaped(elapsed))


def worked_seconds(
    progress: Progress, started_at: float, now: float, *, waiting: bool
) -> float | None:
    """Seconds to show beside the stage; pauses before a Resume are no work.

    None for a run that was taken up again and has not begun anew: nobody noted when.
    """
    if not progress.began_at:
        return now - started_at
    if waiting or progress.ending is not None:
        return None
    return progress.seconds(now)


def stage_of(progress: Progress, passing: ProgressMade | None) -> tuple[str, float | None]:
    """What is being done, and how much of it is done where that is known."""
    if passing is not None and passing.at >= progress.last_at:
        share = min(1.0, passing.done / passing.total) if passing.total else None
        return passing.note or STAGE_WORDS[passing.stage], share
    return STAGE_WORDS[progress.stage], None


def speaking_now(events: list[Event], live: Live | None) -> dict[int, Speaking]:
    """Each turn under way by its number, with the words so far.

    Nobody speaks in a turn whose reply was of no use, nor in one that Resume begins anew.
    """
    words = dict(live.words) if live else {}
    speaking: dict[int, Speaking] = {}
    for event in events:
        if event.kind == "turn_started":
            speaking[event.number] = Speaking(event, words.get(event.number, ""))
        elif event.kind == "turn_finished":
            speaking.pop(event.turn.number, None)
        elif event.kind == "run_resumed":
            speaking.clear()
        elif event.kind == "problem_met" and event.stage == "debating" and event.reply:
            if event.turn:
                speaking.pop(event.turn, None)
            else:  # an older run's, in which one spoke at a time
                speaking.clear()
    return speaking
