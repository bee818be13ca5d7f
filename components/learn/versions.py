"""Retrain: classifier versions, activation, old runs scored again, two versions side by side."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import login, state
from components.app.state import KeptResult, keep_result, kept_result
from components.learn import WORDS
from components.widgets.charts import loss_figure, matrix_figure, reliability_figure
from components.widgets.controls import (
    ask,
    button,
    choice_table,
    download,
    open_run,
    problem_kept,
    show_problem,
    table,
)
from components.widgets.wording import LABEL_WORDS, clipped, counted, escaped, seconds, when
from core.learning.metrics import compare
from core.learning.retrain import activate, is_worse, rescore, waiting_runs
from core.store import open_store
from core.store.sqlite import Mark
from core.store.versions import SEED_VERSION, Version

Figures = dict[str, Any]
GOT_RIGHT, GOT_WRONG = "got right", "got wrong"
STILL_RIGHT, STILL_WRONG = "right as before", "wrong as before"
SIDES = (GOT_RIGHT, GOT_WRONG, STILL_WRONG, STILL_RIGHT)


def side_of(row: Figures) -> str:
    """Which way a held-out row went between the two versions."""
    truth = row["label"] == "hallucinated"
    was, is_now = (row["before"] >= 0.5) == truth, (row["after"] >= 0.5) == truth
    if was == is_now:
        return STILL_RIGHT if is_now else STILL_WRONG
    return GOT_RIGHT if is_now else GOT_WRONG


def _draw_changes(held: Figures, before: str, after: str) -> None:
    by: dict[str, list[Figures]] = {side: [] for side in SIDES}
    for row in _seen(held.get("rows", [])):
        by[side_of(row)].append(row)
    first = next((side for side in SIDES if by[side]), None)
    if first is None:
        return
    st.markdown("**Which cases changed sides**")
    side = st.segmented_control(
        "Which cases changed sides",
        SIDES,
        format_func=lambda side: f"{side} ({len(by[side])})",
        default=first,
        key="retrain.side",
        label_visibility="collapsed",
    )
    side = str(side or first)
    if not by[side]:
        st.caption("None.")
        return
    rows = [
        {
            "Claim": clipped(str(row["claim"]), 160),
            "People say": LABEL_WORDS[row["label"]],
            f"p by {before}": f"{row['before']:.2f}",
            f"p by {after}": f"{row['after']:.2f}",
        }
        for row in by[side]
    ]
    chosen = choice_table(
        rows,
        f"retrain.rows.{before}.{after}.{side}",
        height="content" if len(rows) < 12 else 420,
        column_config={"Claim": st.column_config.TextColumn(width="large")},
    )
    st.caption(WORDS["versions.draw_changes"])  # fmt: skip
    if chosen is not None:
        open_run(str(by[side][chosen]["run_id"]))


def _seen(rows: list[Figures]) -> list[Figures]:
    """Rows without those of other people's projects: one classifier learns from all of them."""
    if not login.is_on():
        return rows
    now = time.time()
    with state.open_store() as store:
        runs = {str(row["run_id"]): store.runs.get(str(row["run_id"]), now, 0.0) for row in rows}
        projects = {run.project_id for run in runs.values() if run is not None}
        mine = {project_id for project_id in projects if state.may_see(store, project_id)}
    return [row for row in rows if (run := runs[str(row["run_id"])]) and run.project_id in mine]


FEW = 30
RATES: dict[str, Any] = WORDS["versions.rates"]


def _draw_figures(held: Figures, before: str, after: str, losses: list[list[float]]) -> None:
    old, new = held.get("before", {}), held.get("after", {})
    n = int(new.get("n") or 0)
    if not n:
        st.caption("No case is held out yet, so nothing can be compared.")
        return
    st.markdown(_in_words(held, n))
    table(metric_rows(old, new, before, after), "retrain.metrics")
    with st.popover("What these figures mean", icon=":material/help:"):
        st.markdown(WORDS["versions.meanings"])
    if words := ece_words(new):
        st.caption(words)
    bins = held.get("reliability") or {}
    charts = [
        ("matrix.True", matrix_figure(old, before)), ("matrix.False", matrix_figure(new, after)),
    ]  # fmt: skip
    if bins.get("before") or bins.get("after"):
        both = bins.get("before", []), bins.get("after", [])
        charts.append(("reliability", reliability_figure(*both, (before, after))))
    if len(losses) > 1:
        charts.append(("losses", loss_figure(losses)))
    for first in range(0, len(charts), 2):  # a row of its own for what was learned
        for column, (key, figure) in zip(st.columns(2), charts[first : first + 2], strict=False):
            column.plotly_chart(figure, key=f"retrain.{key}", width="stretch")
    _draw_changes(held, before, after)


def _in_words(held: Figures, n: int) -> str:
    words = f"On **{counted(n, 'held-out verdict')}**, trained on by neither."
    sure = held.get("difference")
    if n < FEW:
        words += " Too few to be sure of any difference."
    elif sure and not any(sure.values()):
        words += " Balanced accuracy is the same."
    elif sure:
        words += (
            f" Balanced accuracy changes by **{sure['value']:+.2f}** (95% interval over "
            f"resampled cases: {sure['low']:+.2f} to {sure['high']:+.2f})"
        )
        is_open = sure["low"] <= 0.0 <= sure["high"]
        words += ": it may be chance." if is_open else "."
    return words


def metric_rows(old: Figures, new: Figures, before: str, after: str) -> list[dict[str, str]]:
    """A row for each figure that is known: before, after, their difference, the trivial answer."""
    trivial = trivial_figures(new)
    rows = []
    for key, (words, is_loss) in RATES.items():
        one, other = old.get(key), new.get(key)
        if one is None and other is None:
            continue
        rows.append(
            {
                "": words + (" (lower is better)" if is_loss else ""),
                before: _figure(one),
                after: _figure(other),
                "Difference": _difference(one, other, is_loss=is_loss),
                "Always hallucinated": _figure(trivial.get(key)),
            }
        )
    return rows


def trivial_figures(figures: Figures) -> dict[str, float]:
    """What always answering hallucinated, with a p of 1, would come to on the same cases."""
    share = figures.get("always_hallucinated")
    if share is None:
        return {}
    return {
        "balanced_accuracy": 0.5,
        "accuracy": share,
        "f1": 2 * share / (1 + share),
        "auroc": 0.5,
        "brier": 1 - share,
        "ece": 1 - share,
    }


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _difference(old: float | None, new: float | None, *, is_loss: bool) -> str:
    if old is None or new is None:
        return "–"
    words = f"{new - old:+.2f}"
    if words in ("+0.00", "-0.00"):
        return "no change"
    return words + (" better" if (new < old) == is_loss else " worse")


def ece_words(figures: Figures) -> str:
    """The calibration error beside what chance alone gives; nothing where that is not known."""
    null = figures.get("ece_null")
    if not isinstance(null, dict) or figures.get("ece") is None:
        return ""
    inside = figures["ece"] <= null["high"]
    return (
        f"On {figures['n']} verdicts a perfectly calibrated version would show an ECE of about "
        f"{null['mean']:.2f}, up to {null['high']:.2f}, by chance: "
        + ("this one is within that." if inside else "this one is beyond that.")
    )


def summary(held: Figures) -> str:
    """One line for a list of versions: the figure that decides, before and after, and n."""
    old, new = held.get("before", {}), held.get("after", {})
    if not new.get("n"):
        return "no case was held out"
    key = "balanced_accuracy" if new.get("balanced_accuracy") is not None else "accuracy"
    beside = [] if old.get(key) is None else [f"{old[key]:.2f} before"]
    if (trivial := trivial_figures(new).get(key)) is not None:
        beside.append(f"{trivial:.2f} for always hallucinated")
    told = f" ({', '.join(beside)})" if beside else ""
    return escaped(
        f"{RATES[key][0].lower()} {_figure(new.get(key))}{told}, "
        f"on {counted(new['n'], 'held-out verdict')}"
    )


CARD_WORDS: dict[str, str] = WORDS["versions.card_words"]
TRAINED_WORDS: dict[str, str] = WORDS["versions.trained_words"]


def detail_lines(card: dict[str, Any]) -> list[str]:
    """A line of Markdown for each part of the card that is there."""
    trained = card.get("trained_on", {})
    lines = []
    if "corrections" in trained:
        lines.append(f"**Trained on**: {len(trained['corrections'])} corrections")
    lines += [
        f"**Trained on**, {words}: {_said(trained[key])}"
        for key, words in TRAINED_WORDS.items()
        if trained.get(key)
    ]
    lines += [
        f"**{words}**: {_said(card[key])}" for key, words in CARD_WORDS.items() if card.get(key)
    ]
    if card.get("seconds"):
        lines.append(f"**It took**: {escaped(seconds(card['seconds']))}")
    if card.get("memory_mb"):
        lines.append(f"**Memory**: {card['memory_mb']} MB at most")
    return lines


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{escaped(str(name))} {_said(own)}" for name, own in value.items())
    if isinstance(value, list):
        return " ".join(_said(own) for own in value)
    if isinstance(value, float):
        return escaped(f"{value:.4g}")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return escaped(str(value))


VERSION_PAIR_PROBLEM = "retrain.pair.problem"


def _draw_pair(versions: Sequence[Version], active: str) -> None:
    """The two that were chosen; first the newest beside the one that it was compared with."""
    cards = {version.id: version.card for version in versions}
    names = [*cards, SEED_VERSION]
    st.subheader("Side by side", anchor=False)
    left, right = st.columns(2)
    with left:
        after = _chosen("version", "Version", names, names[0])
    with right:
        usual = str(cards.get(after, {}).get("compared_with") or active)
        before = _chosen("beside", "Beside", names, usual)
    if after == before:
        st.caption("Choose two different ones.")
        return
    card = cards.get(after, {})
    today = kept_result(f"pair {before} {after}")
    if today is not None:
        st.caption(f"On all cases that were held out on {when(today.at)}.")
        _draw_figures(today.value, before, after, card.get("losses", []))
    elif before == str(card.get("compared_with") or active) and card.get("holdout"):
        st.caption("On the cases that were held out when it was trained.")
        _draw_figures(card["holdout"], before, after, card.get("losses", []))
    _draw_compare(before, after, today)
    if card:
        with st.expander(f"What {escaped(after)} was made of", icon=":material/badge:"):
            st.markdown("\n".join(f"- {line}" for line in detail_lines(card)))
            data = json.dumps(card, indent=1, ensure_ascii=False)
            download("Model card (JSON)", data, f"{after}.card.json", "retrain.card")


def _chosen(name: str, words: str, names: list[str], usual: str) -> str:
    """A choice that the address carries; an unknown one in it is the usual one."""
    key = f"retrain.pair.{name}"
    given = st.query_params.get(name, "")
    if st.session_state.get(key) not in names:
        wanted = given if given in names else usual
        st.session_state[key] = wanted if wanted in names else SEED_VERSION
    # Which is active stands above: a choice once made keeps the words that it was made in.
    value = str(st.selectbox(words, names, key=key))
    if st.query_params.get(name) != value:
        st.query_params[name] = value
    return value


def choose_newest() -> None:
    """Forget which two were chosen: a new version is there to be looked at."""
    for name in ("version", "beside"):
        st.session_state.pop(f"retrain.pair.{name}", None)
        if name in st.query_params:
            del st.query_params[name]


def _draw_compare(before: str, after: str, today: KeptResult | None) -> None:
    with state.open_store() as store:
        mark: Mark = (*store.changes.of_corrections(), *store.changes.of_holdout())
    words, key = "Compare on the cases that are held out now", "retrain.pair.compare"
    is_old = today is None or today.mark != mark
    if is_old and st.button(words, key=key, icon=":material/balance:"):
        with problem_kept(VERSION_PAIR_PROBLEM):
            with st.spinner("Asking both of them"), state.open_store() as store:
                found: dict[str, Any] = compare(store, state.home(), before, after)
            keep_result(f"pair {before} {after}", found, mark, time.time())
        st.rerun()
    show_problem(VERSION_PAIR_PROBLEM)


NEWEST = 5
PROBLEM = "retrain.activate.problem"


@st.cache_resource(max_entries=1, show_spinner=False)
def _versions(home: str, mark: Mark) -> tuple[list[Version], set[str]]:
    """All versions, and which are known to be worse; their cards hold every held-out row."""
    with open_store(Path(home)) as store:
        versions = store.versions.all()
        return versions, {version.id for version in versions if is_worse(store, version.id)}


def draw_versions() -> None:
    """Every version with what it came to, and any two of them side by side."""
    with state.open_store() as store:
        active = store.versions.active()
        activations = store.versions.activations()
        mark = store.changes.of_learned()
    versions, worse = _versions(str(state.home()), mark)
    st.subheader("Versions", anchor=False)
    show_problem(PROBLEM)
    known = {item.version_id for item in activations}
    for version in versions[:NEWEST]:
        _draw_version(version, active, version.id in worse, version.id in known)
    if len(versions) > NEWEST:
        with st.expander(f"{len(versions) - NEWEST} older"):
            for version in versions[NEWEST:]:
                _draw_version(version, active, version.id in worse, version.id in known)
    with st.container(border=True):
        told = "Ships with Counterpoint; never changes."
        st.markdown(f"**{SEED_VERSION}**{_mark(active == SEED_VERSION)}  \n{told}")
        if active != SEED_VERSION:
            _activation(SEED_VERSION, "Roll back to this", needs_reason=False)
    _draw_rescore(active)
    if activations:
        with st.expander("Who activated what", icon=":material/history:"):
            for item in activations:
                reason = f": {escaped(item.reason)}" if item.reason else ""
                st.markdown(
                    f"{when(item.at)} · {escaped(item.by)} · {escaped(item.version_id)}{reason}"
                )
    if versions:
        _draw_pair(versions, active)


def _draw_version(version: Version, active: str, worse: bool, was_active: bool) -> None:
    with st.container(border=True):
        trained = version.card.get("trained_on", {})
        st.markdown(
            f"**{escaped(version.id)}**{_mark(version.id == active)}  \n{when(version.created_at)}"
            f" · {escaped(version.author)} · {len(trained.get('corrections', []))} corrections and "
            f"{trained.get('seed_texts', 0)} seed texts"
        )
        st.caption(summary(version.card.get("holdout", {})))
        if worse:
            st.warning("Worse on the held-out cases than the version before.")
        if version.id != active:
            words = "Roll back to this" if was_active else "Activate"
            _activation(version.id, words, needs_reason=worse)


def _mark(is_active: bool) -> str:
    return " · :green-badge[active: new checks use it]" if is_active else ""


def _activation(version_id: str, words: str, *, needs_reason: bool) -> None:
    key = f"retrain.activate.{version_id}"
    label = "Reason for activating it all the same" if needs_reason else "Reason (kept)"
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.text_input(label, key=f"{key}.reason")
    with right:
        button(words, key, _activate, version_id, icon="check_circle", width="stretch")


def _activate(version_id: str) -> None:
    reason = str(st.session_state.get(f"retrain.activate.{version_id}.reason") or "")
    with problem_kept(PROBLEM):
        with state.open_store() as store:
            person = state.person(store)
            activate(store, state.home(), version_id, by=person, reason=reason)
        st.toast(f"{escaped(version_id)} is active: new checks use it.", icon=":material/check:")


AGREED, OUTCOME = "retrain.rescore.go", "retrain.rescore.done"
RESCORE_PROBLEM = "retrain.rescore.problem"
A_SECOND = 100  # runs, roughly


def _draw_rescore(active: str) -> None:
    """The button, the work itself once somebody has agreed, and what came of it."""
    if st.session_state.pop(AGREED, "") == active:
        _score(active)
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(WORDS["versions.draw_rescore"])
    if right.button(
        "Score old runs again", key="retrain.rescore", icon=":material/replay:", width="stretch"
    ):
        _ask(active)
    show_problem(RESCORE_PROBLEM)
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

    with problem_kept(RESCORE_PROBLEM):
        with state.open_store() as store:
            found = rescore(store, state.home(), active, by=state.person(store), done=told)
        st.session_state[OUTCOME] = (
            f"{counted(found.runs, 'run')} scored again by {escaped(active)}; "
            f"{found.changed:,} got another label."
        )
    bar.empty()
