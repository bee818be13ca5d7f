"""Calibration screen: how often verdicts at each confidence were right, and the error rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.measure.summary import draw_counts, draw_next_step
from components.review.review_queue import QUEUE_PAGE
from components.run.verdict import NO_PAST_VERDICTS, PastVerdicts
from components.widgets.charts import (
    HALLUCINATED_COLOR,
    NEUTRAL_COLOR,
    SHARE_RANGE,
    SUPPORTED_COLOR,
    style_figure,
)
from components.widgets.controls import draw_button, draw_table, show_problem, store_problem
from components.widgets.wording import (
    escape_markdown,
    format_count,
    format_percent,
    format_roster,
    format_time,
)
from core.learning import track_record as past
from core.learning.track_record import MIN_CASES
from core.review.queue_ranking import (
    LIMIT_KIND,
    MAX_ERROR_RATE,
    MIN_ERROR_RATE,
    AutomationPolicy,
    ConfidenceLimit,
    check_error_rate,
    load_policy,
)
from core.schema.records import Project, Run, Verdict
from core.schema.run_state import RunState
from core.store import Store, open_store
from core.store.answered_verdicts import AnsweredVerdict
from core.store.versions import SEED_VERSION

ERROR_RATE_HELP = (
    "How many of the verdicts that nobody looks at may be wrong. A limit on confidence is then "
    "fitted on people's answers, so that there are no more with 90% certainty; verdicts below it "
    "are marked for people to decide and come first on Review. Empty: nothing is marked."
)
REVIEWED_HELP = (
    "With a probability, on cases that somebody answered or settled; each text once, and none that "
    "the classifier was trained on. People look at unsure cases first: those drawn at random, or "
    "with an answer that was known before, tell most about all the rest."
)
NOTHING_FITTED = (
    "**In use: nothing is answered by itself**: no limit was fitted yet at this rate for these "
    "verdicts. Save and fit it."
)
NOTHING_ANSWERED = (
    "Nobody has answered a verdict with a probability yet: what people save on Review and on runs "
    "counts here."
)
GROUP_HELP = (
    "A probability by another classifier, or over the debates of other models, is worth something "
    "else."
)

NUMBERS_HEIGHT = -0.06  # below the shares, so that no point covers a number
DOTTED_LINE = {"color": NEUTRAL_COLOR, "dash": "dot", "width": 1}
INTERVAL_SHADE = "rgba(2, 132, 199, 0.16)"  # SUPPORTED, visible on light and dark pages
WAIT_SECONDS = 0.2
HomeAndProject = tuple[str, str]  # (home, project id)
MAX_CACHED_FIGURES = 8


def plot_levels(levels: Sequence[tuple[float, past.WilsonShare]]) -> go.Figure:
    """Plot (mean confidence, share right) of each level; calibrated levels lie on the line."""
    ends = [share.interval for _, share in levels]
    values = [share.value for _, share in levels]
    figure = go.Figure()
    figure.add_scatter(
        name="was right, with the range of 95 in 100",
        x=[confidence for confidence, _ in levels],
        y=values,
        mode="markers",
        marker={"color": SUPPORTED_COLOR, "symbol": "circle", "size": 9},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [high - value for (_, high), value in zip(ends, values, strict=True)],
            "arrayminus": [value - low for (low, _), value in zip(ends, values, strict=True)],
            "color": SUPPORTED_COLOR,
        },
    )
    figure.add_scatter(
        name="numbers: how many were looked at",
        x=[confidence for confidence, _ in levels],
        y=[NUMBERS_HEIGHT] * len(levels),
        text=[f"{share.n}" for _, share in levels],
        mode="text",
        hoverinfo="skip",
    )
    figure.add_shape(type="line", x0=0.5, y0=0.5, x1=1, y1=1, line=DOTTED_LINE)
    figure.update_layout(title="Said and right")
    figure.update_xaxes(title="stated confidence", range=[0.48, 1.03], tickformat=".0%")
    figure.update_yaxes(
        title="were right", range=[2 * NUMBERS_HEIGHT, SHARE_RANGE[1]], tickformat=".0%"
    )
    return style_figure(figure, height=360)


def plot_risk(
    points: Sequence[past.ThresholdPoint], wanted: float | None, chosen: past.ThresholdPoint | None
) -> go.Figure:
    """Plot the error rate by share answered, most confident first; `chosen` is the one in use."""
    drawn = [point for point in points if point.wrong.n >= MIN_CASES] or list(points[-1:])
    x = [point.answered for point in drawn]
    rates = [point.wrong.value for point in drawn]
    ends = [point.wrong.interval for point in drawn]
    lows, highs = [low for low, _ in ends], [high for _, high in ends]
    words = [
        f"from a confidence of {100 * point.threshold:.1f}%, n={point.wrong.n}" for point in drawn
    ]
    everything = rates[-1]
    figure = go.Figure()

    def add_line(x: Sequence[float], y: Sequence[float], **style: Any) -> None:
        figure.add_scatter(x=x, y=y, mode="lines", **style)

    edge = {"line": {"width": 0}, "hoverinfo": "skip"}
    add_line(x, highs, showlegend=False, **edge)
    add_line(x, lows, fill="tonexty", fillcolor=INTERVAL_SHADE, name="range of 95 in 100", **edge)
    line = {"color": SUPPORTED_COLOR, "width": 2}
    add_line(x, rates, text=words, name="the surest first", line=line)
    add_line([0, 1], [everything] * 2, name="in a random order", line=DOTTED_LINE)
    if wanted is not None:
        line = {"color": HALLUCINATED_COLOR, "dash": "dash", "width": 1}
        add_line([0, 1], [wanted] * 2, name="target", line=line)
    if chosen is not None:
        figure.add_scatter(
            x=[chosen.answered],
            y=[chosen.wrong.value],
            mode="markers",
            name="in use",
            marker={"color": HALLUCINATED_COLOR, "symbol": "diamond", "size": 12},
        )
    figure.update_layout(title="Answered and wrong")
    figure.update_xaxes(
        title="share of verdicts answered", range=list(SHARE_RANGE), tickformat=".0%"
    )
    top = max([wanted or 0.0, *highs, chosen.wrong.value if chosen else 0.0])
    figure.update_yaxes(title="wrong", range=[-0.05 * top, 1.1 * top], tickformat=".0%")
    return style_figure(figure, height=360)


@dataclass
class _RecordCache:
    """Track records by home and project, and those being counted in the background."""

    records: dict[HomeAndProject, past.TrackRecord] = field(default_factory=dict)
    counting: dict[HomeAndProject, Future[past.TrackRecord]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "record"))


@st.cache_resource
def _record_cache() -> _RecordCache:
    return _RecordCache()


def _load_record(
    store: Store, project_id: str, wait: float | None = None
) -> past.TrackRecord | None:
    """Return the project's current record, or None if counting takes longer than `wait` seconds.

    With `wait`, only the one who begins the counting waits: the next need not wait for it again.
    """
    cache, key = _record_cache(), (str(state.home_folder()), project_id)
    before = cache.records.get(key)
    renewed = past.renew_track_record(store, project_id, before) if before is not None else None
    record = renewed or _await_count(cache, key, wait) or before
    if record is not None:
        cache.records[key] = record
    return record


def _await_count(
    cache: _RecordCache, key: HomeAndProject, wait: float | None
) -> past.TrackRecord | None:
    with cache.lock:
        future = cache.counting.get(key)
        if future is None:
            future = cache.counting[key] = cache.worker.submit(_count_record, *key)
        elif wait is not None:
            wait = 0.0
    try:
        return future.result(wait)
    except TimeoutError:
        return None
    finally:
        if future.done():
            cache.counting.pop(key, None)


def _count_record(home: str, project_id: str) -> past.TrackRecord:
    with open_store(Path(home)) as store:
        return past.count_track_record(store, project_id)


def load_past_verdicts(run: Run, progress: RunState) -> PastVerdicts:
    """Return what the project's past verdicts say about this run's verdict."""
    verdict = progress.verdict
    if verdict is None or verdict.confidence is None:
        return NO_PAST_VERDICTS
    with state.open_store() as store:
        policy = load_policy(store, store.projects.get(run.project_id))
        record = _load_record(store, run.project_id, WAIT_SECONDS)
    version = progress.classifier or run.plan.classifier or SEED_VERSION
    roster = run.plan.roster
    people = _explain_for_people(policy, version, roster, verdict.confidence)
    if record is None:
        return PastVerdicts(for_people=people)
    by_tool = progress.judgement is not None and bool(progress.judgement.by_tool)
    standing = record.standing(version, roster, verdict.label, verdict.confidence, by_tool=by_tool)
    method = _describe_method(standing, version, roster, by_tool=by_tool)
    return PastVerdicts(
        _describe_standing(standing, verdict), method, standing.share is not None, people
    )


def _describe_standing(standing: past.LevelRecord, verdict: Verdict) -> str:
    share = standing.share
    if share is None:
        if not standing.looked_at:
            return ""
        were = "was" if standing.looked_at == 1 else "were"
        return (
            f"Only {format_count(standing.looked_at, 'past verdict')} at this level {were} looked "
            "at: too few to say how often they are right."
        )
    low, high = share.interval
    kind = f"past “{verdict.label}” verdicts" if standing.label else "past verdicts"
    return (
        f"Of {kind} at this level, {format_percent(share.value)} were right "
        f"(n={share.n}, between {100 * low:.0f} and {100 * high:.0f}%)."
    )


def _describe_method(
    standing: past.LevelRecord, version: str, roster: str, *, by_tool: bool = False
) -> str:
    if not standing.looked_at:
        return ""
    source = "that a tool decided" if by_tool else f"by “{format_roster(roster, short=True)}”"
    selection = (
        "Only cases that were drawn at random or whose answer was known before are counted."
        if standing.is_random
        else "People look at unsure cases first, so these may have been harder than most."
    )
    return (
        f"Counted are this project's verdicts {source} and classifier {version} with a confidence "
        f"from {100 * standing.low:.0f} to {100 * standing.high:.0f}% on cases that somebody "
        "answered or settled, each text once. Cases that the classifier was trained on are left "
        f"out. {selection} The range is a 95% interval."
    )


def _explain_for_people(
    policy: AutomationPolicy | None, version: str, roster: str, confidence: float
) -> str:
    """Return why people must decide; "" if the project answers by itself or has no policy."""
    if policy is None:
        return ""
    threshold = policy.threshold(version, roster)
    if threshold is None:
        return (
            f"This project answers nothing by itself yet, for at most {100 * policy.wanted:.3g}% "
            "wrong cannot be promised (Calibration says why): for people to decide."
        )
    if confidence >= threshold:
        return ""
    return (
        f"Below what this project answers by itself (a confidence of {100 * threshold:.3g}%, so "
        f"that at most {100 * policy.wanted:.3g}% are wrong): for people to decide."
    )


def draw_error_rate(project: Project, key: str) -> float | None:
    """Draw the field, in percent; return its value as a share, or None if it is empty."""
    percent = st.number_input(
        "Target error rate (%)",
        100 * MIN_ERROR_RATE,
        100 * MAX_ERROR_RATE,
        None if project.error_rate is None else round(100 * project.error_rate, 2),
        step=0.5,
        format="%.1f",
        key=key,
        placeholder="none",
        help=ERROR_RATE_HELP,
    )
    return None if percent is None else round(percent / 100.0, 6)


def refit_limit(store: Store, project: Project) -> None:
    """Fit the project's limit again; call it outside a transaction."""
    known = None if project.error_rate is None else _load_record(store, project.id)
    past.fit_limits(store, project, state.get_person(store), time.time(), known)


def _save_rate(project_id: str, key: str) -> None:
    percent = st.session_state.get(key)
    wanted = None if percent is None else round(float(percent) / 100.0, 6)
    with store_problem("confidence.problem"):
        if wanted is not None:
            check_error_rate(wanted)
        with state.open_store() as store:
            with store.writing():
                state.require_role(store, project_id, "lead", "change the target error rate")
                known = store.projects.get(project_id)
                if known is None:
                    return
                changed = replace(known, error_rate=wanted)
                store.projects.save(changed)
            refit_limit(store, changed)
            policy = load_policy(store, changed)
        holds = policy is not None and any(limit.threshold is not None for limit in policy.limits)
        outcome = "the limit is fitted" if holds else "nothing can be promised yet"
        st.toast("Saved: no target is set." if policy is None else f"Saved: {outcome}.")


def _draw_rates(
    project: Project,
    policy: AutomationPolicy | None,
    limits: Sequence[tuple[float, ConfidenceLimit]],
) -> None:
    st.subheader("What this project answers by itself", anchor=False)
    if has_role("lead", "set the target error rate"):
        key = f"confidence.{project.id}.rate"
        left, right = st.columns([2, 3], vertical_alignment="bottom")
        with left:
            draw_error_rate(project, key)
        with right:
            draw_button(
                "Save and fit the limit",
                "confidence.fit",
                _save_rate,
                project.id,
                key,
                icon="tune",
                type="primary",
            )
    show_problem("confidence.problem")
    if policy is not None and policy.problem:
        st.error(escape_markdown(policy.problem), icon=":material/error:")
    if not limits:
        return
    rows = [_build_rate_row(rate, limit) for rate, limit in limits]
    draw_table(rows, "confidence.rates")
    first = limits[0][1]
    drawn = " that were drawn at random or known before" if first.is_random else ""
    st.caption(
        f"What each rate would mean, on {format_count(first.n, 'verdict')} looked at{drawn}. "
        f"“From” is "
        "the lowest of a fixed row of confidences at which no more than the wanted share is "
        "wrong, with 90% certainty. An unclear verdict answers nothing: it says so itself."
    )


def _build_rate_row(rate: float, limit: ConfidenceLimit) -> dict[str, Any]:
    answered = round(100 * limit.answered / limit.n)
    return {
        "Target": f"{100 * rate:.3g}%",
        "From": "–" if limit.threshold is None else f"{100 * limit.threshold:.3g}%",
        "Answered": f"{answered}%",
        "To people": f"{100 - answered}%",
        "Wrong of those answered": f"{limit.wrong} of {limit.answered}" if limit.answered else "",
        "Why none": _explain_no_limit(rate, limit),
    }


def _explain_no_limit(rate: float, limit: ConfidenceLimit) -> str:
    """Return why nothing is answered at that rate; "" if something is."""
    if limit.threshold is not None:
        return ""
    fewest = past.count_needed_verdicts(rate)
    if limit.n < fewest:
        return f"{fewest} are needed, if none is wrong"
    return "too many wrong to promise it"


def _draw_in_use(wanted: float, limit: ConfidenceLimit | None, n: int, since: str) -> None:
    """Draw the limit in use, and how many of today's `n` verdicts it was not fitted on."""
    if limit is None:
        st.markdown(NOTHING_FITTED)
        return
    fitted = f"fitted {escape_markdown(since)} on {format_count(limit.n, 'verdict')} looked at"
    if limit.threshold is None:
        reason = _explain_no_limit(wanted, limit)
        st.markdown(f"**In use: nothing is answered by itself** ({fitted}): {reason}.")
    else:
        answered = round(100 * limit.answered / limit.n)
        st.markdown(
            f"**In use: from a confidence of {100 * limit.threshold:.3g}% on** ({fitted}): "
            f"{answered}% answered, {100 - answered}% to people, {limit.wrong} of the "
            f"{limit.answered} answered ones wrong."
        )
    if n > limit.n:
        more = format_count(n - limit.n, "verdict")
        st.caption(f"{more} more can be counted by now: fit the limit again.")


@dataclass(frozen=True)
class CalibrationFigures:
    """The figures drawn for the verdicts of one classifier version and roster."""

    right: past.WilsonShare
    frequent: past.WilsonShare
    drawn: int
    table: list[dict[str, Any]]
    levels: list[tuple[float, past.WilsonShare]]
    points: list[past.ThresholdPoint]
    mean_error: float
    limits: list[tuple[float, ConfidenceLimit]]


def draw_calibration() -> None:
    """Draw all figures for the current project."""
    with state.open_store() as store:
        project = state.get_project(store)
        with st.spinner("Counting over all answers"):
            record = _load_record(store, project.id)
        policy = load_policy(store, project)
        chosen = store.learned.choices(LIMIT_KIND, project.id) if policy and policy.limits else []
        active = store.versions.active()
    if record is None or not record.groups:
        st.info(NOTHING_ANSWERED)
        draw_next_step("answer cases.", QUEUE_PAGE, "Review")
        draw_counts("Here counts none of them yet.")
        _draw_rates(project, policy, [])
        return
    group = _draw_choice(record, (active, project.roster))
    marks = (record.corrections, record.golds, record.ended, record.runs, record.scores)
    rates = tuple(
        sorted({*past.ERROR_RATE_CHOICES, *([project.error_rate] if project.error_rate else [])})
    )
    home = str(state.home_folder())
    figures = _compute_figures(home, project.id, marks, group, rates, record.groups[group])
    limit = policy.limit(*group) if policy else None
    _draw_next_step(figures, policy, limit)
    draw_counts(
        f"Here count {format_count(figures.right.n, 'verdict')} by classifier {group[0]} and "
        f"{escape_markdown(format_roster(group[1], short=True))}, on decided cases, each text "
        "once; left out are cases left unclear and those that the classifier was trained on."
    )
    _draw_past(figures)
    _draw_plots(figures, project.error_rate, limit)
    _draw_rates(project, policy, figures.limits)
    if policy is not None:
        since = f"{format_time(chosen[0].at)} by {chosen[0].by}" if chosen else ""
        _draw_in_use(policy.wanted, limit, figures.limits[0][1].n, since)


def _draw_next_step(
    figures: CalibrationFigures, policy: AutomationPolicy | None, limit: ConfidenceLimit | None
) -> None:
    n = figures.right.n
    if n < MIN_CASES:
        words = f"answer {MIN_CASES - n} more of these verdicts: shares are shown from {MIN_CASES}."
        draw_next_step(words, QUEUE_PAGE, "Review")
    elif policy is None:
        draw_next_step("set a target error rate below, so that sure verdicts need no person.")
    elif limit is None or figures.limits[0][1].n > limit.n:
        draw_next_step("fit the limit again below: answers came since.")
    elif limit.threshold is None:
        draw_next_step("answer more verdicts, for the target to hold.", QUEUE_PAGE, "Review")
    else:
        words = "the limit holds: answer verdicts drawn at random, to see that it stays so."
        draw_next_step(words, QUEUE_PAGE, "Review")


def _draw_choice(record: past.TrackRecord, default: tuple[str, str]) -> tuple[str, str]:
    """Draw the choice of (version, roster) and return it."""
    groups = list(record.groups)
    if len(groups) == 1:
        return groups[0]
    return st.selectbox(
        "Verdicts by",
        groups,
        index=groups.index(default) if default in groups else 0,
        format_func=lambda group: (
            f"classifier {group[0]}, {format_roster(group[1], short=True)} "
            f"({format_count(len(record.groups[group]), 'verdict')})"
        ),
        key="confidence.group",
        help=GROUP_HELP,
    )


@st.cache_resource(max_entries=MAX_CACHED_FIGURES, show_spinner="Counting over all answers")
def _compute_figures(
    home: str,
    project_id: str,
    marks: tuple[float | str, ...],
    group: tuple[str, str],
    rates: tuple[float, ...],
    _verdicts: Sequence[AnsweredVerdict],
) -> CalibrationFigures:
    by_label = [
        sum(each.answer == label for each in _verdicts) for label in ("supported", "hallucinated")
    ]
    filled = [band for band in past.group_by_level(_verdicts) if band]
    return CalibrationFigures(
        past.compute_right_share(_verdicts),
        past.WilsonShare(max(by_label), len(_verdicts)),
        sum(each.is_drawn for each in _verdicts),
        [_build_level_row(n, band) for n, band in enumerate(past.group_by_level(_verdicts))],
        [
            (sum(each.confidence for each in band) / len(band), past.compute_right_share(band))
            for band in filled
        ],
        past.build_risk_curve(_verdicts),
        past.compute_aurc(_verdicts),
        [(rate, past.fit_limit(_verdicts, rate)) for rate in rates],
    )


def _build_level_row(number: int, band: Sequence[AnsweredVerdict]) -> dict[str, Any]:
    share = past.compute_right_share(band)
    right, interval = _describe_share(share)
    row: dict[str, Any] = {
        "Confidence": (
            f"{100 * past.LEVEL_EDGES[number]:.0f} to {100 * past.LEVEL_EDGES[number + 1]:.0f}%"
        ),
        "Reviewed": share.n,
        "Right": right if share.n else "–",
        "Between": interval,
    }
    for label in ("hallucinated", "supported"):
        by_label = past.compute_right_share(each for each in band if each.label == label)
        row[f"Right of “{label}”"] = f"{by_label.right:,} of {by_label.n:,}" if by_label.n else "–"
    row["Drawn at random"] = sum(each.is_drawn for each in band)
    return row


def _describe_share(share: past.WilsonShare) -> tuple[str, str]:
    """Return the share and the bounds of its interval; of few verdicts only the count."""
    if share.is_thin:
        return f"{share.right} of {share.n}", ""
    low, high = share.interval
    return format_percent(share.value), f"{100 * low:.0f} and {100 * high:.0f}%"


def _draw_past(figures: CalibrationFigures) -> None:
    right, frequent = figures.right, figures.frequent
    right_words, interval = _describe_share(right)
    cells = (
        (
            "Verdicts reviewed",
            f"{right.n:,}",
            f"{figures.drawn:,} of them drawn at random",
            REVIEWED_HELP,
        ),
        (
            "Right",
            right_words,
            f"between {interval}" if interval else "too few for a share",
            None,
        ),
        (
            "Always saying the more frequent label",
            _describe_share(frequent)[0],
            f"{frequent.right} of {frequent.n}",
            "What you would have without any check.",
        ),
    )
    for column, (label, value, note, tip) in zip(st.columns(3), cells, strict=True):
        column.metric(label, value, note, delta_color="off", delta_arrow="off", help=tip)
    st.subheader("By level", anchor=False)
    draw_table(figures.table, "confidence.levels")
    st.caption(
        f"“Between” is a 95% interval. Of fewer than {MIN_CASES} verdicts only the count "
        "is shown: a share would say little."
    )


def _draw_plots(
    figures: CalibrationFigures, wanted: float | None, limit: ConfidenceLimit | None
) -> None:
    if figures.right.n < MIN_CASES:
        st.caption(f"Charts are drawn from {MIN_CASES} reviewed verdicts on.")
        return
    left, right = st.columns(2)
    drawn = [(mean, share) for mean, share in figures.levels if share.n >= MIN_CASES]
    inside = sum(low <= mean <= high for mean, s in drawn for low, high in [s.interval])
    thin = len(figures.levels) - len(drawn)
    words = f"{format_count(thin, 'level')} of fewer than {MIN_CASES} verdicts not drawn."
    if drawn:
        left.plotly_chart(plot_levels(drawn), key="confidence.said", width="stretch")
        left.caption(
            f"On the dotted line what is said is what is right; {inside} of "
            f"{format_count(len(drawn), 'level')} {'has' if len(drawn) == 1 else 'have'} it within "
            f"the range. {words if thin else ''}"
        )
    else:
        left.caption(words)
    chosen = None
    if limit is not None and limit.threshold is not None:
        share = limit.answered / limit.n
        chosen = past.ThresholdPoint(
            limit.threshold, share, past.WilsonShare(limit.wrong, limit.answered)
        )
    figure = plot_risk(figures.points, wanted, chosen)
    right.plotly_chart(figure, key="confidence.risk", width="stretch")
    everything = 1.0 - figures.right.value
    right.caption(
        f"Mean error over all shares answered: {100 * figures.mean_error:.1f}% with the surest "
        f"first, {100 * everything:.1f}% in a random order (n={figures.right.n}; area under the "
        "curve)."
    )
