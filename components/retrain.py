"""The parts of Retrain: what there is to learn from, and the training under way."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from components import state
from components.words import LABEL_WORDS, escaped, seconds
from core.errors import ReviewError
from core.learning.retrain import (
    TRAINING_LEASE_SECONDS,
    cancel_training,
    start_training,
)
from core.learning.training_set import FEWEST_PER_LABEL, training_set
from core.store import open_store
from core.store.changes import Mark
from core.store.versions import Training

POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Material:
    """What there is to learn from, in numbers."""

    counts: dict[str, int]
    missing: dict[str, int]
    held: int
    unusable: int


def material() -> Material:
    """The numbers as of now."""
    with state.open_store() as store:
        changes = store.changes
        mark = (*changes.of_corrections(), *changes.of_runs(), *changes.of_holdout())
    return _material(str(state.home()), mark)


@st.cache_resource(max_entries=1, show_spinner="Counting the corrections")
def _material(home: str, mark: Mark) -> Material:
    """Kept until somebody corrects, a run ends, or cases are held out."""
    with open_store(Path(home)) as store:
        data = training_set(store)
    return Material(data.counts(), data.missing(), len(data.held), data.unusable)


def draw_material() -> None:
    """How many corrections there are of each label, and what is missing."""
    st.subheader("What there is to learn from", anchor=False)
    data = material()
    counts, missing = data.counts, data.missing
    columns = st.columns(4)
    for column, (label, count) in zip(columns, counts.items(), strict=False):
        need = missing.get(label, 0)
        column.metric(
            f"Corrected as {LABEL_WORDS[label].lower()}",  # type: ignore[index]
            count,
            f"{need} more needed" if need else "enough",
            delta_color="off",
            delta_arrow="off",
        )
    columns[2].metric("Held out", data.held)
    columns[3].metric(
        "Not usable",
        data.unusable,
        help="Corrections as unclear, or of runs in which the judge reached no verdict.",
    )
    if missing:
        st.info(
            f"Training takes {FEWEST_PER_LABEL} corrections of each label. Open runs under "
            "History and agree or disagree with them.",
            icon=":material/info:",
        )


def draw_training() -> None:
    """Start, or the training under way."""
    st.subheader("Training", anchor=False)
    with state.open_store() as store:
        trainings = store.versions.trainings(time.time(), TRAINING_LEASE_SECONDS)
    ready = not material().missing
    running = next((t for t in trainings if t.status == "running"), None)
    if running is not None:
        _follow()
        return
    if trainings:
        _draw_ended(trainings[0])
    st.button(
        "Retrain",
        key="retrain.start",
        type="primary",
        icon=":material/model_training:",
        disabled=not ready,
        on_click=_start,
    )
    st.caption("Takes about a minute on two cores. You may leave this page meanwhile.")
    problem = st.session_state.pop("retrain.problem", "")
    if problem:
        st.error(escaped(problem))


def _start() -> None:
    try:
        with state.open_store() as store:
            start_training(store, state.home(), state.person(store))
    except ReviewError as error:
        st.session_state["retrain.problem"] = str(error)


@st.fragment(run_every=POLL_SECONDS)
def _follow() -> None:
    with state.open_store() as store:
        trainings = store.versions.trainings(time.time(), TRAINING_LEASE_SECONDS)
    running = next((t for t in trainings if t.status == "running"), None)
    if running is None:
        st.rerun()
        return
    progress = running.progress
    stage = str(progress.get("stage", "Starting the training process"))
    elapsed = time.time() - running.started_at
    step, steps = int(progress.get("step", 0)), int(progress.get("steps", 0))
    if steps:
        loss = progress.get("loss")
        words = f"{stage}: step {step} of {steps}"
        words += f" · loss {loss:.3f}" if loss is not None else ""
        st.progress(min(1.0, step / steps), text=f"{words} · {seconds(elapsed)} so far")
    else:
        st.markdown(f":material/progress_activity: {escaped(stage)} · {seconds(elapsed)} so far")
    st.button(
        "Cancel",
        key="retrain.cancel",
        icon=":material/close:",
        on_click=_cancel,
        args=(running.id,),
    )


def _cancel(training_id: str) -> None:
    try:
        with state.open_store() as store:
            cancel_training(store, training_id, state.person(store))
    except ReviewError as error:
        st.session_state["retrain.problem"] = str(error)


def _draw_ended(training: Training) -> None:
    if training.status == "failed":
        st.error(f"The last training failed: {escaped(training.message)}", icon=":material/error:")
    elif training.status == "cancelled":
        st.info(escaped(training.message) or "The last training was cancelled.")
    elif training.status == "interrupted":
        st.warning("The last training's process went away; the active version stays as it is.")
