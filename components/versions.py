"""Classifier versions: how each did on the same hold-out, activation and rolling back."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components import login, state
from components.charts import confusion_figure, shift_figure
from components.words import LABEL_WORDS, clipped, escaped, percent, when
from core.errors import ReviewError
from core.learning.retrain import activate, is_worse
from core.store.versions import SEED_VERSION, Version

RATES = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "f1": "F1 (hallucinated)",
    "brier": "Brier score (lower is better)",
}
FEW = 30


def draw_versions() -> None:
    """Every version with how it did before and after on the same hold-out."""
    with state.open_store() as store:
        versions = store.versions.all()
        active = store.versions.active()
        activations = store.versions.activations()
        worse = {version.id: is_worse(store, version.id) for version in versions}
    st.subheader("Versions", anchor=False)
    problem = st.session_state.pop("retrain.activate.problem", "")
    if problem:
        st.error(escaped(problem))
    for version in versions:
        _draw_version(version, version.id == active, worse[version.id])
    with st.container(border=True):
        mark = " · **active**" if active == SEED_VERSION else ""
        st.markdown(f"**{SEED_VERSION}**{mark}  \nShips with Counterpoint; never changes.")
        if active != SEED_VERSION:
            _activation(SEED_VERSION, "Roll back to this", needs_reason=False)
    if activations:
        with st.expander("Who activated what"):
            for item in activations:
                reason = f": {escaped(item.reason)}" if item.reason else ""
                st.markdown(
                    f"{when(item.at)} · {escaped(item.by)} · {escaped(item.version_id)}{reason}"
                )


def _draw_version(version: Version, is_active: bool, worse: bool) -> None:
    held = version.card.get("holdout", {})
    with st.container(border=True):
        mark = " · **active**" if is_active else ""
        trained = version.card.get("trained_on", {})
        st.markdown(
            f"**{escaped(version.id)}**{mark}  \n{when(version.created_at)} · "
            f"{escaped(version.author)} · {len(trained.get('corrections', []))} corrections and "
            f"{trained.get('seed_texts', 0)} seed texts · {version.card.get('seconds', 0):.0f} s"
        )
        _draw_figures(held, str(version.card.get("compared_with", "")), version.id)
        if worse:
            st.warning("Worse on the held-out cases than the version before.")
        if not is_active:
            _activation(version.id, "Activate", needs_reason=worse)


def _draw_figures(held: dict[str, Any], compared_with: str, version_id: str) -> None:
    """The same held-out cases before and after."""
    before, after = held.get("before", {}), held.get("after", {})
    n = after.get("n", 0)
    if not n:
        st.caption("No case is held out yet, so nothing can be compared.")
        return
    trivial = after.get("always_hallucinated")
    st.caption(
        f"On {n} held-out verdicts; before: {escaped(compared_with)}. "
        f"Always saying hallucinated would be right on {percent(trivial or 0.0)}."
        + (" Too few to be sure of any difference." if n < FEW else "")
    )
    columns = st.columns(len(RATES))
    for column, (name, words) in zip(columns, RATES.items(), strict=True):
        _draw_rate(column, words, before.get(name), after.get(name), name == "brier")
    with st.expander("Which cases changed"):
        rows = _seen(held.get("rows", []))
        left, right = st.columns(2)
        left.plotly_chart(
            confusion_figure(before, after), key=f"retrain.confusion.{version_id}", width="stretch"
        )
        right.plotly_chart(shift_figure(rows), key=f"retrain.shift.{version_id}", width="stretch")
        _draw_rows(rows)


def _draw_rate(
    column: DeltaGenerator, words: str, old: float | None, new: float | None, is_loss: bool
) -> None:
    """One figure with its change; what has not changed is neither praised nor blamed."""
    shown = "–" if new is None else f"{new:.2f}"
    change = None if old is None or new is None else f"{new - old:+.2f}"
    if change in ("+0.00", "-0.00"):
        column.metric(words, shown, "no change", delta_color="off", delta_arrow="off")
    else:
        column.metric(words, shown, change, delta_color="inverse" if is_loss else "normal")


def _seen(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without those of other people's projects: one classifier learns from all of them."""
    if not login.is_on():
        return rows
    now = time.time()
    with state.open_store() as store:
        runs = {str(row["run_id"]): store.runs.get(str(row["run_id"]), now, 0.0) for row in rows}
        projects = {run.project_id for run in runs.values() if run is not None}
        mine = {project_id for project_id in projects if state.may_see(store, project_id)}
    return [row for row in rows if (run := runs[str(row["run_id"])]) and run.project_id in mine]


def _draw_rows(rows: list[dict[str, Any]]) -> None:
    table = [
        {
            "Claim": clipped(str(row["claim"]), 160),
            "People say": LABEL_WORDS[row["label"]],
            "p before": row["before"],
            "p after": row["after"],
            "Right now": (row["after"] >= 0.5) == (row["label"] == "hallucinated"),
        }
        for row in rows
    ]
    st.dataframe(table, hide_index=True)


def _activation(version_id: str, words: str, *, needs_reason: bool) -> None:
    key = f"retrain.activate.{version_id}"
    if needs_reason:
        st.text_input("Reason for activating it all the same", key=f"{key}.reason")
    st.button(
        words,
        key=key,
        icon=":material/check_circle:",
        on_click=_activate,
        args=(version_id,),
    )


def _activate(version_id: str) -> None:
    reason = str(st.session_state.get(f"retrain.activate.{version_id}.reason") or "")
    try:
        with state.open_store() as store:
            person = state.person(store)
            activate(store, state.home(), version_id, by=person, reason=reason)
    except ReviewError as error:
        st.session_state["retrain.activate.problem"] = str(error)
        return
    st.toast(f"{escaped(version_id)} is active: new checks use it.", icon=":material/check:")
