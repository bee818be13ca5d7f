"""Retrain: what there is to learn from, and scoring old runs again by the active version."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import state
from components.learn import WORDS
from components.widgets.controls import ask, button, problem_kept, show_problem, table
from components.widgets.wording import LABEL_WORDS, counted, escaped
from core.learning import training_set as training
from core.learning.data_quality import advice
from core.learning.retrain import rescore, waiting_runs
from core.schema.records import Label
from core.store import open_store
from core.store.sqlite import Mark

AGREED, PROBLEM, OUTCOME = "retrain.rescore.go", "retrain.rescore.problem", "retrain.rescore.done"
A_SECOND = 100  # runs, roughly


def draw_rescore(active: str) -> None:
    """The button, the work itself once somebody has agreed, and what came of it."""
    if st.session_state.pop(AGREED, "") == active:
        _score(active)
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(
        "Runs keep the verdict that they ended with. They can get another by the active version, "
        "as an event of its own; the first verdict stays in the trace."
    )
    if right.button(
        "Score old runs again", key="retrain.rescore", icon=":material/replay:", width="stretch"
    ):
        _ask(active)
    show_problem(PROBLEM)
    if outcome := st.session_state.pop(OUTCOME, ""):
        st.success(outcome, icon=":material/check:")


@st.dialog("Score old runs again")
def _ask(active: str) -> None:
    if st.session_state.get(AGREED):
        st.rerun()  # a click in a dialog draws the dialog alone: close it, and begin
    with state.open_store() as store:
        waiting = len(waiting_runs(store, active))
    if not waiting:
        st.markdown(f"Every run's verdict is by **{escaped(active)}** already.")
        return
    runs = counted(waiting, "run")
    st.markdown(
        f"**{runs}** of all projects would get a verdict by "
        f"**{escaped(active)}**, in about {max(1, round(waiting / A_SECOND))} s. History and the "
        "runs then show the new one, with who asked for it; on Calibration they count for it and "
        "no longer for the version before."
    )
    button(f"Score {runs}", "retrain.rescore.agree", ask, AGREED, active, type="primary")


def _score(active: str) -> None:
    """Score them; whoever leaves the page meanwhile finds the rest still waiting."""
    bar = st.progress(0.0, text="Looking for runs")

    def told(done: int, all_: int) -> None:
        bar.progress(done / all_, f"Run {done:,} of {all_:,}")

    with problem_kept(PROBLEM):
        with state.open_store() as store:
            found = rescore(store, state.home(), active, by=state.person(store), done=told)
        st.session_state[OUTCOME] = (
            f"{counted(found.runs, 'run')} scored again by {escaped(active)}; "
            f"{found.changed:,} got another label."
        )
    bar.empty()


ORIGIN_WORDS: dict[training.Origin, str] = WORDS["learning_material.origin_words"]
REASON_WORDS: dict[training.Reason, str] = WORDS["learning_material.reason_words"]
ELSEWHERE = "people of other projects"
LOPSIDED = 0.2
SETTLE_LIST = "pages/review/curate.py"


def material() -> training.Overview:
    """The numbers as of now."""
    with state.open_store() as store:
        changes = store.changes
        mark = (*changes.of_corrections(), *changes.of_runs(), *changes.of_holdout())
    return _overview(str(state.home()), mark)


@st.cache_resource(max_entries=1, show_spinner="Counting the corrections")
def _overview(home: str, mark: Mark) -> training.Overview:
    with open_store(Path(home)) as store:
        return training.overview(store)


@st.cache_resource(max_entries=8, show_spinner=False)
def _conflicts(home: str, project_id: str, mark: Mark) -> int:
    with open_store(Path(home)) as store:
        return training.conflicts(store, project_id, time.time())


def draw_material() -> None:
    """How many corrections there are of each label, and what is missing."""
    st.subheader("What there is to learn from", anchor=False)
    data = material()
    columns = st.columns(4)
    for column, (label, count) in zip(columns, data.labels.items(), strict=False):
        need = data.missing.get(label, 0)
        column.metric(
            f"Corrected as {LABEL_WORDS[label].lower()}",  # type: ignore[index]
            count,
            f"{need} more needed" if need else "enough",
            delta_color="off",
            delta_arrow="off",
        )
    told = "A quarter of the cases is never trained on: on them versions are compared."
    columns[2].metric("Held out", data.held, help=told)
    told = "Why is said under Where they come from."
    columns[3].metric("Not usable", sum(data.unusable.values()), help=told)
    if words := _needed(data):
        st.info(words, icon=":material/info:")
    _draw_conflicts()
    if any(data.labels.values()) or data.unusable:
        with st.expander("Where they come from", icon=":material/group:"):
            _draw_origins(data)


def _needed(data: training.Overview) -> str:
    if data.missing:
        return (
            f"{advice(data.missing, None)} It takes {training.FEWEST_PER_LABEL} of each label: "
            "open runs under History and agree or disagree with them."
        )
    rare = min(training.LABELS, key=lambda label: data.labels[label])
    share = data.labels[rare] / (sum(data.labels.values()) or 1)
    if share >= LOPSIDED:
        return ""
    return (
        f"Only {share:.0%} are {rare}: more {rare} cases would teach more than others. "
        f"Filter History by {LABEL_WORDS[rare].lower()} to find some."
    )


def _draw_conflicts() -> None:
    with state.open_store() as store:
        project_id, mark = state.project(store).id, store.changes.of_corrections()
    differing = _conflicts(str(state.home()), project_id, mark)
    if differing:
        left, right = st.columns([4, 1], vertical_alignment="center")
        left.markdown(
            f":material/warning: People differ on **{counted(differing, 'case')}** of this "
            "project; until a lead settles one, the newest answer on each of its runs is learned."
        )
        right.page_link(SETTLE_LIST, label="Adjudicate them", icon=":material/gavel:")


def _draw_origins(data: training.Overview) -> None:
    by_origin = {ORIGIN_WORDS[name]: own for name, own in data.counts.by_origin.items()}
    tables: tuple[tuple[str, str, Mapping[str, Mapping[Label, int]]], ...] = (
        ("Person", "people", _named(data.counts.by_person)),
        ("Language", "languages", data.counts.by_language),
        ("Source", "origins", by_origin),
    )
    for column, (name, key, counts) in zip(st.columns([6, 6, 7]), tables, strict=True):
        rows: list[dict[str, Any]] = [
            {name: who} | {LABEL_WORDS[label]: own.get(label, 0) for label in training.LABELS}
            for who, own in sorted(counts.items(), key=lambda pair: -sum(pair[1].values()))
        ]
        if rows:
            with column:
                table(rows, f"retrain.{key}", height="content" if len(rows) < 12 else 420)
    st.caption(
        "Each run counts once, with what its case was settled as, else with its newest answer, "
        "under whoever gave that. Held-out cases are among them."
    )
    for reason, count in data.unusable.items():
        st.markdown(f"- Not usable: {counted(count, 'answer')} {REASON_WORDS[reason]}.")


def _named(by_person: Mapping[tuple[str, str], Mapping[Label, int]]) -> dict[str, Counter[Label]]:
    with state.open_store() as store:
        projects = {project_id for project_id, _ in by_person}
        seen = {one for one in projects if state.may_see(store, one)}
    found: dict[str, Counter[Label]] = {}
    for (project_id, name), own in by_person.items():
        shown = name if project_id in seen else ELSEWHERE
        found.setdefault(shown, Counter()).update(own)
    return found
