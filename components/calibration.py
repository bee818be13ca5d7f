"""What past verdicts say of one, and the figures of the Calibration page.

They are counted in the background and kept between reruns: where very much was said that takes
seconds, and a page then goes without for once.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import plotly.graph_objects as go
import streamlit as st

from components import state
from components.charts import HALLUCINATED, QUIET, SUPPORTED
from components.verdict import NO_PAST, Past
from components.wording import counted as number_of
from components.wording import percent, roster_words
from core.learning.track_record import Point, Record, Share, Standing, counted, renewed
from core.progress import Progress
from core.records import Run, Verdict
from core.review.selective_prediction import Policy, policy_of
from core.store import Store, open_store
from core.store.versions import SEED_VERSION

DOTTED = {"color": QUIET, "dash": "dot", "width": 1}
SHADE = "rgba(2, 132, 199, 0.16)"  # of SUPPORTED; shows on the light and on the dark page
FEWEST_DRAWN = 10  # answered verdicts below which an error rate only jumps about


def level_figure(levels: Sequence[tuple[float, Share]]) -> go.Figure:
    """(mean confidence, how many were right) of each level; a calibrated one lies on the line."""
    ends = [share.interval for _, share in levels]
    values = [share.value for _, share in levels]
    figure = go.Figure()
    figure.add_scatter(
        name="was right, with the range of 95 in 100",
        x=[said for said, _ in levels],
        y=values,
        mode="markers",
        marker={"color": SUPPORTED, "symbol": "circle", "size": 9},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [high - value for (_, high), value in zip(ends, values, strict=True)],
            "arrayminus": [value - low for (low, _), value in zip(ends, values, strict=True)],
            "color": SUPPORTED,
        },
    )
    figure.add_scatter(
        name="numbers: how many were looked at",
        x=[said for said, _ in levels],
        y=[0.04] * len(levels),
        text=[f"{share.n}" for _, share in levels],
        mode="text",
        hoverinfo="skip",
    )
    figure.add_shape(type="line", x0=0.5, y0=0.5, x1=1, y1=1, line=DOTTED)
    figure.update_layout(title="Said and right")
    figure.update_xaxes(title="stated confidence", range=[0.48, 1.05], tickformat=".0%")
    figure.update_yaxes(title="were right", range=[0, 1.05], tickformat=".0%")
    return _framed(figure)


def risk_figure(points: Sequence[Point], wanted: float | None, chosen: Point | None) -> go.Figure:
    """The error rate for each share of verdicts answered, the surest first; `chosen` is in use.

    The dotted line is what answering in a random order gives: the error rate of all.
    """
    drawn = [point for point in points if point.wrong.n >= FEWEST_DRAWN] or list(points[-1:])
    x = [point.answered for point in drawn]
    rates = [point.wrong.value for point in drawn]
    ends = [point.wrong.interval for point in drawn]
    figure = go.Figure()
    figure.add_scatter(x=x, y=[high for _, high in ends], mode="lines", line={"width": 0},
                       showlegend=False, hoverinfo="skip")  # fmt: skip
    figure.add_scatter(x=x, y=[low for low, _ in ends], mode="lines", line={"width": 0},
                       fill="tonexty", fillcolor=SHADE, name="range of 95 in 100",
                       hoverinfo="skip")  # fmt: skip
    words = [f"from a confidence of {100 * point.threshold:.1f}%, n={point.wrong.n}"
             for point in drawn]  # fmt: skip
    figure.add_scatter(x=x, y=rates, text=words, mode="lines", name="the surest first",
                       line={"color": SUPPORTED, "width": 2})  # fmt: skip
    everything = rates[-1]
    figure.add_scatter(x=[0, 1], y=[everything] * 2, mode="lines", name="in a random order",
                       line=DOTTED)  # fmt: skip
    if wanted is not None:
        figure.add_scatter(x=[0, 1], y=[wanted] * 2, mode="lines", name="wanted at most",
                           line={"color": HALLUCINATED, "dash": "dash", "width": 1})  # fmt: skip
    if chosen is not None:
        figure.add_scatter(x=[chosen.answered], y=[chosen.wrong.value], mode="markers",
                           name="in use",
                           marker={"color": HALLUCINATED, "symbol": "diamond", "size": 12},
                           )  # fmt: skip
    figure.update_layout(title="Answered and wrong")
    figure.update_xaxes(title="share of verdicts answered", range=[0, 1.02], tickformat=".0%")
    seen = [high for share, (_, high) in zip(x, ends, strict=True) if share >= 0.2]
    top = max([everything, wanted or 0.0, *rates, *seen])
    figure.update_yaxes(title="wrong", range=[0, min(1.0, 1.1 * top) or 1.0], tickformat=".0%")
    return _framed(figure)


def _framed(figure: go.Figure) -> go.Figure:
    figure.update_layout(
        margin={"l": 40, "r": 10, "t": 40, "b": 40},
        height=360,
        legend={"orientation": "h", "y": -0.25},
    )
    return figure


WAIT_SECONDS = 0.2
Key = tuple[str, str]  # a home, a project


@dataclass
class _Kept:
    """Records by home and project, and those that are being counted."""

    records: dict[Key, Record] = field(default_factory=dict)
    counting: dict[Key, Future[Record]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    worker: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "record"))


@st.cache_resource
def _kept() -> _Kept:
    return _Kept()


def record_of(store: Store, project_id: str, wait: float | None = None) -> Record | None:
    """The project's record as of now; None where counting it takes longer than `wait` seconds.

    Where another version has become active, the one from before is given meanwhile.
    """
    kept, key = _kept(), (str(state.home()), project_id)
    before = kept.records.get(key)
    now = renewed(store, project_id, before) if before is not None else None
    found = now or _counted(kept, key, wait) or before
    if found is not None:
        kept.records[key] = found
    return found


def _counted(kept: _Kept, key: Key, wait: float | None) -> Record | None:
    with kept.lock:
        future = kept.counting.get(key)
        if future is None:
            future = kept.counting[key] = kept.worker.submit(_count, *key)
    try:
        found = future.result(wait)
    except TimeoutError:
        return None
    finally:
        if future.done():
            kept.counting.pop(key, None)
    return found


def _count(home: str, project_id: str) -> Record:
    with open_store(Path(home)) as store:
        return counted(store, project_id)


def past_of(run: Run, progress: Progress) -> Past:
    """What the project's past verdicts say of this run's."""
    verdict = progress.verdict
    if verdict is None or verdict.confidence is None:
        return NO_PAST
    with state.open_store() as store:
        policy = policy_of(store, store.projects.get(run.project_id))
        record = record_of(store, run.project_id, WAIT_SECONDS)
    version = progress.classifier or run.plan.classifier or SEED_VERSION
    roster = run.plan.roster
    people = people_words(policy, version, roster, verdict.confidence)
    if record is None:
        return Past(for_people=people)
    by_tool = progress.judgement is not None and bool(progress.judgement.by_tool)
    standing = record.standing(version, roster, verdict.label, verdict.confidence, by_tool=by_tool)
    how = how_words(standing, version, roster, by_tool=by_tool)
    return Past(standing_words(standing, verdict), how, standing.share is not None, people)


def standing_words(standing: Standing, verdict: Verdict) -> str:
    """How often verdicts like this one were right; "" where nobody has looked at any."""
    share = standing.share
    if share is None:
        if not standing.looked_at:
            return ""
        were = "was" if standing.looked_at == 1 else "were"
        return (
            f"Only {number_of(standing.looked_at, 'past verdict')} at this level {were} looked "
            "at: too few to say how often they are right."
        )
    low, high = share.interval
    kind = f"past “{verdict.label}” verdicts" if standing.label else "past verdicts"
    return (
        f"Of {kind} at this level, {percent(share.value)} were right "
        f"(n={share.n}, between {100 * low:.0f} and {100 * high:.0f}%)."
    )


def how_words(standing: Standing, version: str, roster: str, *, by_tool: bool = False) -> str:
    """What was counted, for whoever wants to know."""
    if not standing.looked_at:
        return ""
    who = "that a tool decided" if by_tool else f"by “{roster_words(roster, short=True)}”"
    drawn = (
        "Only cases that were drawn at random or whose answer was known before are counted."
        if standing.is_random
        else "People look at unsure cases first, so these may have been harder than most."
    )
    return (
        f"Counted are this project's verdicts {who} and classifier {version} with a confidence "
        f"from {100 * standing.low:.0f} to {100 * standing.high:.0f}% on cases that somebody "
        "answered or settled, each text once. Cases that the classifier was trained on are left "
        f"out. {drawn} The range holds the true share 95 times in 100."
    )


def people_words(policy: Policy | None, version: str, roster: str, confidence: float) -> str:
    """Why people must decide; "" where the project answers by itself, or has not said."""
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
