"""Retrain screen: classifier versions, activation, rescoring old runs, comparing two versions."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import login, state
from components.app.frame import has_role
from components.app.state import StoredResult, find_result, store_result
from components.widgets.charts import (
    confusion_matrix_figure,
    loss_figure,
    reliability_figure,
)
from components.widgets.controls import (
    ask_confirmation,
    draw_button,
    draw_choice_table,
    draw_download,
    draw_table,
    open_run,
    show_problem,
    store_problem,
)
from components.widgets.wording import (
    LABEL_WORDS,
    clip_text,
    escape_markdown,
    format_count,
    format_duration,
    format_time,
)
from core.learning.metrics import compare_versions
from core.learning.retrain import (
    activate_version,
    is_worse_version,
    list_waiting_runs,
    rescore_runs,
)
from core.learning.track_record import MIN_CASES
from core.schema.records import Label
from core.store import open_store
from core.store.sqlite import ChangeMark
from core.store.versions import SEED_VERSION, ClassifierVersion

METRIC_NAMES: dict[str, Any] = {
    "balanced_accuracy": ["Balanced accuracy", False],
    "accuracy": ["Accuracy", False],
    "f1": ["F1 (hallucinated)", False],
    "auroc": ["AUROC", False],
    "brier": ["Brier score", True],
    "log_loss": ["Log loss", True],
    "ece": ["Calibration error (ECE)", True],
}
METRIC_MEANINGS = (
    "**Balanced accuracy**: the mean share of each label that is recognised. **F1**: finding "
    "hallucinated ones and being right when saying so, in one figure. **AUROC**: how often a "
    "hallucinated case gets the higher probability of two. **Brier score**, **log loss**: how far "
    "probabilities lie from what was true. **ECE**: how far stated confidence lies from the share "
    "that was right. The last column always answers hallucinated, with a probability of 1."
)
CARD_TITLES: dict[str, str] = {
    "compared_with": "Compared with",
    "options": "Options",
    "recipe": "Options",
    "splits": "Cases",
    "calibration": "Calibration",
    "packages": "Packages",
    "encoder": "Encoder",
    "limits": "Limits",
}
TRAINED_ON_TITLES: dict[str, str] = {
    "labels": "labels",
    "languages": "languages",
    "authors": "people",
    "seed_texts": "texts of our own",
    "corrections_sha256": "digest of the corrections' ids",
}
CHANGES_HINT = (
    "p is the probability of being hallucinated. A verdict is unclear if judge and classifier "
    "disagree. A click opens the run."
)
RESCORE_HINT = (
    "Runs keep the verdict that they ended with. They can get another by the active version, as an "
    "event of its own; the first verdict stays in the trace."
)

MetricValues = dict[str, Any]
GOT_RIGHT, LOST = "got right", "no longer right"
STILL_RIGHT, STILL_WRONG = "right as before", "not right, as before"
CHANGE_SIDES = (GOT_RIGHT, LOST, STILL_WRONG, STILL_RIGHT)
VERSION_PAIR_PROBLEM = "retrain.pair.problem"
MAX_EXPANDED_VERSIONS = 5
ACTIVATION_PROBLEM = "retrain.activate.problem"
RESCORE_CONFIRMED, RESCORE_OUTCOME = "retrain.rescore.go", "retrain.rescore.done"
RESCORE_PROBLEM = "retrain.rescore.problem"
RUNS_PER_SECOND = 100  # runs rescored per second, roughly


def classify_change(row: MetricValues) -> str:
    """Return how a held-out row changed between the two versions."""
    was_right, is_right = (label == row["label"] for label in list_verdicts(row))
    if was_right == is_right:
        return STILL_RIGHT if is_right else STILL_WRONG
    return GOT_RIGHT if is_right else LOST


def list_verdicts(row: MetricValues) -> list[Label]:
    """Return a row's verdicts by both versions; cards of old versions have probabilities only."""
    by_p: list[Label] = [
        "hallucinated" if row[side] >= 0.5 else "supported" for side in ("before", "after")
    ]
    return row.get("verdicts") or by_p


def _draw_changes(held: MetricValues, before: str, after: str) -> None:
    by_side: dict[str, list[MetricValues]] = {side: [] for side in CHANGE_SIDES}
    for row in _filter_visible(held.get("rows", [])):
        by_side[classify_change(row)].append(row)
    first = next((side for side in CHANGE_SIDES if by_side[side]), None)
    if first is None:
        return
    st.markdown("**Which cases changed sides**")
    side = st.segmented_control(
        "Which cases changed sides",
        CHANGE_SIDES,
        format_func=lambda side: f"{side} ({len(by_side[side])})",
        default=first,
        key="retrain.side",
        label_visibility="collapsed",
    )
    side = str(side or first)
    if not by_side[side]:
        st.caption("None.")
        return
    rows = [
        {
            "Claim": clip_text(str(row["claim"]), 160),
            "People say": LABEL_WORDS[row["label"]],
            f"By {before}": f"{LABEL_WORDS[was]}, p {row['before']:.2f}",
            f"By {after}": f"{LABEL_WORDS[now]}, p {row['after']:.2f}",
        }
        for row in by_side[side]
        for was, now in [list_verdicts(row)]
    ]
    chosen = draw_choice_table(
        rows,
        f"retrain.rows.{before}.{after}.{side}",
        height="content" if len(rows) < 12 else 420,
        column_config={"Claim": st.column_config.TextColumn(width="large")},
    )
    st.caption(CHANGES_HINT)
    if chosen is not None:
        open_run(str(by_side[side][chosen]["run_id"]))


def _filter_visible(rows: list[MetricValues]) -> list[MetricValues]:
    """Return the rows of visible projects; the classifier learns from those of all projects."""
    if not login.is_login_required():
        return rows
    now = time.time()
    with state.open_store() as store:
        runs = {str(row["run_id"]): store.runs.get(str(row["run_id"]), now, 0.0) for row in rows}
        projects = {run.project_id for run in runs.values() if run is not None}
        visible = {
            project_id for project_id in projects if state.can_see_project(store, project_id)
        }
    return [row for row in rows if (run := runs[str(row["run_id"])]) and run.project_id in visible]


def _draw_figures(held: MetricValues, before: str, after: str, losses: list[list[float]]) -> None:
    old, new = held.get("before", {}), held.get("after", {})
    n = int(new.get("n") or 0)
    if not n:
        st.caption("No case is held out yet, so nothing can be compared.")
        return
    st.markdown(_summarise_difference(held, n))
    draw_table(build_metric_rows(old, new, before, after), "retrain.metrics")
    if new.get("balanced_accuracy") is None:
        st.caption("All held-out cases have one label: balanced accuracy and AUROC need both.")
    with st.popover("What these figures mean", icon=":material/help:"):
        st.markdown(METRIC_MEANINGS)
    if words := format_ece_chance(new):
        st.caption(words)
    bins = held.get("reliability") or {}
    charts = [
        ("matrix.True", confusion_matrix_figure(old, before)),
        ("matrix.False", confusion_matrix_figure(new, after)),
    ]
    both = bins.get("before") or [], bins.get("after") or []
    if any(entry.get("n", 0) >= MIN_CASES for entry in (*both[0], *both[1])):
        charts.append(("reliability", reliability_figure(*both, (before, after))))
    elif both[0] or both[1]:
        st.caption(
            f"Confidence is not drawn against right verdicts: no level has {MIN_CASES} "
            "held-out verdicts."
        )
    if len(losses) > 1:
        charts.append(("losses", loss_figure(losses)))
    for first in range(0, len(charts), 2):  # two charts in a row
        for column, (key, figure) in zip(st.columns(2), charts[first : first + 2], strict=False):
            column.plotly_chart(figure, key=f"retrain.{key}", width="stretch")
    _draw_changes(held, before, after)


def _summarise_difference(held: MetricValues, n: int) -> str:
    words = f"On **{format_count(n, 'held-out verdict')}**, trained on by neither."
    difference = held.get("difference")
    if n < MIN_CASES:
        words += " Too few to be sure of any difference."
    elif difference and not any(difference.values()):
        words += " Balanced accuracy is the same."
    elif difference:
        words += (
            f" Balanced accuracy changes by **{difference['value']:+.2f}** (95% interval over "
            f"resampled cases: {difference['low']:+.2f} to {difference['high']:+.2f})"
        )
        is_open = difference["low"] <= 0.0 <= difference["high"]
        words += ": it may be chance." if is_open else "."
    return words


def build_metric_rows(
    old: MetricValues, new: MetricValues, before: str, after: str
) -> list[dict[str, str]]:
    """Return a row for each known figure: before, after, difference, the trivial answer."""
    trivial = compute_trivial_metrics(new)
    rows = []
    for key, (words, is_loss) in METRIC_NAMES.items():
        one, other = old.get(key), new.get(key)
        if one is None and other is None:
            continue
        rows.append(
            {
                "": words + (" (lower is better)" if is_loss else ""),
                before: _format_figure(one),
                after: _format_figure(other),
                "Difference": _format_difference(one, other, is_loss=is_loss),
                "Always hallucinated": _format_figure(trivial.get(key)),
            }
        )
    return rows


def compute_trivial_metrics(figures: MetricValues) -> dict[str, float]:
    """Return the figures of always answering hallucinated, with p = 1, on the same cases."""
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


def _format_figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _format_difference(old: float | None, new: float | None, *, is_loss: bool) -> str:
    if old is None or new is None:
        return "–"
    words = f"{new - old:+.2f}"
    if words in ("+0.00", "-0.00"):
        return "no change"
    return words + (" better" if (new < old) == is_loss else " worse")


def format_ece_chance(figures: MetricValues) -> str:
    """Return a sentence comparing the ECE with chance alone; "" if that is not known."""
    null = figures.get("ece_null")
    if not isinstance(null, dict) or figures.get("ece") is None:
        return ""
    is_within_chance = figures["ece"] <= null["high"]
    return (
        f"On {figures['n']} verdicts a perfectly calibrated version would show an ECE of about "
        f"{null['mean']:.2f}, up to {null['high']:.2f}, by chance: "
        + ("this one is within that." if is_within_chance else "this one is beyond that.")
    )


def format_holdout_summary(held: MetricValues) -> str:
    """Return one line for the list of versions: the deciding figure, before, after, and n."""
    old, new = held.get("before", {}), held.get("after", {})
    if not new.get("n"):
        return "no case was held out"
    key = "balanced_accuracy" if new.get("balanced_accuracy") is not None else "accuracy"
    baselines = [] if old.get(key) is None else [f"{old[key]:.2f} before"]
    if (trivial := compute_trivial_metrics(new).get(key)) is not None:
        baselines.append(f"{trivial:.2f} for always hallucinated")
    note = f" ({', '.join(baselines)})" if baselines else ""
    return escape_markdown(
        f"{METRIC_NAMES[key][0].lower()} {_format_figure(new.get(key))}{note}, "
        f"on {format_count(new['n'], 'held-out verdict')}"
    )


def format_card_details(card: dict[str, Any]) -> list[str]:
    """Return a line of Markdown for each part that the card has."""
    trained = card.get("trained_on", {})
    lines = []
    if "corrections" in trained:
        lines.append(f"**Trained on**: {len(trained['corrections'])} corrections")
    lines += [
        f"**Trained on**, {words}: {_format_value(trained[key])}"
        for key, words in TRAINED_ON_TITLES.items()
        if trained.get(key)
    ]
    lines += [
        f"**{words}**: {_format_value(card[key])}"
        for key, words in CARD_TITLES.items()
        if card.get(key)
    ]
    if card.get("seconds"):
        lines.append(f"**It took**: {escape_markdown(format_duration(card['seconds']))}")
    if card.get("memory_mb"):
        lines.append(f"**Memory**: {card['memory_mb']} MB at most")
    return lines


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{escape_markdown(str(name))} {_format_value(part)}" for name, part in value.items()
        )
    if isinstance(value, list):
        return " ".join(_format_value(part) for part in value)
    if isinstance(value, float):
        return escape_markdown(f"{value:.4g}")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return escape_markdown(str(value))


def _draw_pair(versions: Sequence[ClassifierVersion], active: str) -> None:
    """Draw the two chosen versions; by default the newest and the one it was compared with."""
    cards = {version.id: version.card for version in versions}
    names = [*cards, SEED_VERSION]
    st.subheader("Side by side", anchor=False)
    left, right = st.columns(2)
    with left:
        after = _choose_version("version", "Version", names, names[0])
    with right:
        default = str(cards.get(after, {}).get("compared_with") or active)
        before = _choose_version("beside", "Beside", names, default)
    if after == before:
        st.caption("Choose two different ones.")
        return
    card = cards.get(after, {})
    latest = find_result(f"pair {before} {after}")
    if latest is not None:
        st.caption(f"On all cases that were held out on {format_time(latest.at)}.")
        _draw_figures(latest.value, before, after, card.get("losses", []))
    elif before == str(card.get("compared_with") or active) and card.get("holdout"):
        st.caption("On the cases that were held out when it was trained.")
        _draw_figures(card["holdout"], before, after, card.get("losses", []))
    _draw_compare(before, after, latest)
    if card:
        with st.expander(f"What {escape_markdown(after)} was made of", icon=":material/badge:"):
            st.markdown("\n".join(f"- {line}" for line in format_card_details(card)))
            data = json.dumps(card, indent=1, ensure_ascii=False)
            draw_download("Model card (JSON)", data, f"{after}.card.json", "retrain.card")


def _choose_version(name: str, words: str, names: list[str], default: str) -> str:
    """Draw a choice that the URL carries; an unknown version there means the default."""
    key = f"retrain.pair.{name}"
    from_url = st.query_params.get(name, "")
    if st.session_state.get(key) not in names:
        wanted = from_url if from_url in names else default
        st.session_state[key] = wanted if wanted in names else SEED_VERSION
    # The options do not say which version is active: Streamlit keeps a choice by its words.
    value = str(st.selectbox(words, names, key=key))
    if st.query_params.get(name) != value:
        st.query_params[name] = value
    return value


def reset_version_pair() -> None:
    """Reset the choice of two versions, so that a new one is shown."""
    for name in ("version", "beside"):
        st.session_state.pop(f"retrain.pair.{name}", None)
        if name in st.query_params:
            del st.query_params[name]


def _draw_compare(before: str, after: str, latest: StoredResult | None) -> None:
    with state.open_store() as store:
        mark: ChangeMark = (*store.changes.of_corrections(), *store.changes.of_holdout())
    words, key = "Compare on the cases that are held out now", "retrain.pair.compare"
    is_old = latest is None or latest.mark != mark
    if is_old and st.button(words, key=key, icon=":material/balance:"):
        with store_problem(VERSION_PAIR_PROBLEM):
            with st.spinner("Asking both of them"), state.open_store() as store:
                figures: MetricValues = compare_versions(store, state.home_folder(), before, after)
            store_result(f"pair {before} {after}", figures, mark, time.time())
        st.rerun()
    show_problem(VERSION_PAIR_PROBLEM)


@st.cache_resource(max_entries=1, show_spinner=False)
def _load_versions(home: str, mark: ChangeMark) -> tuple[list[ClassifierVersion], set[str]]:
    """Return all versions and the ids of worse ones; cached, as cards hold all held-out rows."""
    with open_store(Path(home)) as store:
        versions = store.versions.all()
        return versions, {version.id for version in versions if is_worse_version(store, version.id)}


def draw_versions() -> None:
    """Draw every version with its figures, and any two of them side by side."""
    with state.open_store() as store:
        active = store.versions.active()
        activations = store.versions.activations()
        mark = store.changes.of_learned()
    versions, worse = _load_versions(str(state.home_folder()), mark)
    st.subheader("Versions", anchor=False)
    show_problem(ACTIVATION_PROBLEM)
    known = {item.version_id for item in activations}
    for version in versions[:MAX_EXPANDED_VERSIONS]:
        _draw_version(version, active, version.id in worse, version.id in known)
    if len(versions) > MAX_EXPANDED_VERSIONS:
        with st.expander(f"{len(versions) - MAX_EXPANDED_VERSIONS} older"):
            for version in versions[MAX_EXPANDED_VERSIONS:]:
                _draw_version(version, active, version.id in worse, version.id in known)
    with st.container(border=True):
        st.markdown(
            f"**{SEED_VERSION}**{_format_active_badge(active == SEED_VERSION)}  \n"
            "Ships with Counterpoint; never changes."
        )
        if active != SEED_VERSION and has_role("lead", for_all=True):
            _draw_activation(SEED_VERSION, "Roll back to this", needs_reason=False)
    _draw_rescore(active)
    if activations:
        with st.expander("Who activated what", icon=":material/history:"):
            for item in activations:
                reason = f": {escape_markdown(item.reason)}" if item.reason else ""
                st.markdown(
                    f"{format_time(item.at)} · {escape_markdown(item.by)} · "
                    f"{escape_markdown(item.version_id)}{reason}"
                )
    if versions:
        _draw_pair(versions, active)


def _draw_version(version: ClassifierVersion, active: str, worse: bool, was_active: bool) -> None:
    with st.container(border=True):
        trained = version.card.get("trained_on", {})
        st.markdown(
            f"**{escape_markdown(version.id)}**{_format_active_badge(version.id == active)}  \n"
            f"{format_time(version.created_at)} · {escape_markdown(version.author)} · "
            f"{len(trained.get('corrections', []))} corrections and "
            f"{trained.get('seed_texts', 0)} seed texts"
        )
        st.caption(format_holdout_summary(version.card.get("holdout", {})))
        if worse:
            st.warning("Worse on the held-out cases than the version before.")
        if version.id != active and has_role("lead", for_all=True):
            words = "Roll back to this" if was_active else "Activate"
            _draw_activation(version.id, words, needs_reason=worse)


def _format_active_badge(is_active: bool) -> str:
    return " · :green-badge[active: new checks use it]" if is_active else ""


def _draw_activation(version_id: str, words: str, *, needs_reason: bool) -> None:
    key = f"retrain.activate.{version_id}"
    label = "Reason for activating it all the same" if needs_reason else "Reason (kept)"
    left, right = st.columns([3, 1], vertical_alignment="bottom")
    left.text_input(label, key=f"{key}.reason")
    with right:
        draw_button(words, key, _activate, version_id, icon="check_circle", width="stretch")


def _activate(version_id: str) -> None:
    reason = str(st.session_state.get(f"retrain.activate.{version_id}.reason") or "")
    with store_problem(ACTIVATION_PROBLEM):
        with state.open_store() as store:
            person = state.get_person(store)
            activate_version(store, state.home_folder(), version_id, by=person, reason=reason)
        st.toast(
            f"{escape_markdown(version_id)} is active: new checks use it.", icon=":material/check:"
        )


def _draw_rescore(active: str) -> None:
    """Draw the button; rescore once the dialog is confirmed, and show the outcome."""
    if not has_role("lead", "activate a version or score old runs again", for_all=True):
        return
    if st.session_state.pop(RESCORE_CONFIRMED, "") == active:
        _rescore_runs(active)
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(RESCORE_HINT)
    if right.button(
        "Score old runs again", key="retrain.rescore", icon=":material/replay:", width="stretch"
    ):
        _draw_rescore_dialog(active)
    show_problem(RESCORE_PROBLEM)
    if outcome := st.session_state.pop(RESCORE_OUTCOME, ""):
        st.success(outcome, icon=":material/check:")


@st.dialog("Score old runs again")
def _draw_rescore_dialog(active: str) -> None:
    if st.session_state.get(RESCORE_CONFIRMED):
        st.rerun()  # a click redraws only the dialog: close it, so that the page begins
    with state.open_store() as store:
        waiting = len(list_waiting_runs(store, active))
    if not waiting:
        st.markdown(f"Every run's verdict is by **{escape_markdown(active)}** already.")
        return
    runs = format_count(waiting, "run")
    st.markdown(
        f"**{runs}** of all projects would get a verdict by "
        f"**{escape_markdown(active)}**, in about {max(1, round(waiting / RUNS_PER_SECOND))} s. "
        f"History and the "
        "runs then show the new one, with who asked for it; on Calibration they count for it and "
        "no longer for the version before."
    )
    draw_button(
        f"Score {runs}",
        "retrain.rescore.agree",
        ask_confirmation,
        RESCORE_CONFIRMED,
        active,
        type="primary",
    )


def _rescore_runs(active: str) -> None:
    """Rescore the runs; if the person leaves the page meanwhile, the rest stays waiting."""
    bar = st.progress(0.0, text="Looking for runs")

    def show_progress(done: int, total: int) -> None:
        bar.progress(done / total, f"Run {done:,} of {total:,}")

    with store_problem(RESCORE_PROBLEM):
        with state.open_store() as store:
            outcome = rescore_runs(
                store, state.home_folder(), active, by=state.get_person(store), done=show_progress
            )
        st.session_state[RESCORE_OUTCOME] = (
            f"{format_count(outcome.runs, 'run')} scored again by {escape_markdown(active)}; "
            f"{outcome.changed:,} got another label."
        )
    bar.empty()
