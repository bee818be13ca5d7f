"""What probabilities are worth, by level, and what the project answers by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from components import state
from components.calibration import level_figure, record_of, risk_figure
from components.error_rate import draw_in_use, draw_rates
from components.wording import counted, percent, roster_words, when
from core.learning.track_record import (
    EDGES,
    FEWEST,
    RATES,
    Point,
    Record,
    Share,
    area,
    bands,
    curve,
    limit_of,
    share_of,
)
from core.review.selective_prediction import KIND, Limit, policy_of
from core.store.answered import Answered

MOST_KEPT = 8


@dataclass(frozen=True)
class Figures:
    """All that is drawn of verdicts of one version and roster."""

    right: Share
    frequent: Share
    drawn: int
    table: list[dict[str, Any]]
    levels: list[tuple[float, Share]]
    points: list[Point]
    area: float
    limits: list[tuple[float, Limit]]


def draw_confidence() -> None:
    """All figures over the project at hand."""
    with state.open_store() as store:
        project = state.project(store)
        role = store.projects.role_of(project.id, state.person(store))
        with st.spinner("Counting over all answers"):
            record = record_of(store, project.id)
        policy = policy_of(store, project)
        chosen = store.learned.choices(KIND, project.id) if policy and policy.limits else []
        active = store.versions.active()
    if record is None or not record.groups:
        st.info(
            "Nobody has answered a verdict with a probability yet: what people save on Review and "
            "on runs counts here."
        )
        draw_rates(project, policy, [], is_lead=role in ("lead", "admin"))
        return
    group = _draw_choice(record, (active, project.roster))
    marks = (record.corrections, record.golds, record.ended, record.runs, record.scores)
    rates = tuple(sorted({*RATES, *([project.error_rate] if project.error_rate else [])}))
    home = str(state.home())
    figures = _figures(home, project.id, marks, group, rates, record.groups[group])
    _draw_past(figures)
    limit = policy.limit(*group) if policy else None
    _draw_plots(figures, project.error_rate, limit)
    draw_rates(project, policy, figures.limits, is_lead=role in ("lead", "admin"))
    if policy is not None:
        since = f"{when(chosen[0].at)} by {chosen[0].by}" if chosen else ""
        draw_in_use(policy.wanted, limit, figures.limits[0][1].n, since)


def _draw_choice(record: Record, usual: tuple[str, str]) -> tuple[str, str]:
    """Whose verdicts: of which version with which roster; those of new checks to begin with."""
    groups = list(record.groups)
    if len(groups) == 1:
        return groups[0]
    return st.selectbox(
        "Verdicts by",
        groups,
        index=groups.index(usual) if usual in groups else 0,
        format_func=lambda group: (
            f"classifier {group[0]}, {roster_words(group[1], short=True)} "
            f"({counted(len(record.groups[group]), 'verdict')})"
        ),
        key="confidence.group",
        help="A probability by another classifier, or over another roster's debates, is worth "
        "something else.",
    )


@st.cache_resource(max_entries=MOST_KEPT, show_spinner="Counting over all answers")
def _figures(
    home: str,
    project_id: str,
    marks: tuple[float | str, ...],
    group: tuple[str, str],
    rates: tuple[float, ...],
    _verdicts: Sequence[Answered],
) -> Figures:
    """Kept until somebody says something more."""
    by_label = [
        sum(one.answer == label for one in _verdicts) for label in ("supported", "hallucinated")
    ]
    filled = [band for band in bands(_verdicts) if band]
    return Figures(
        share_of(_verdicts),
        Share(max(by_label), len(_verdicts)),
        sum(one.is_random for one in _verdicts),
        [_row(n, band) for n, band in enumerate(bands(_verdicts))],
        [(sum(one.confidence for one in band) / len(band), share_of(band)) for band in filled],
        curve(_verdicts),
        area(_verdicts),
        [(rate, limit_of(_verdicts, rate)) for rate in rates],
    )


def _row(number: int, band: Sequence[Answered]) -> dict[str, Any]:
    share = share_of(band)
    low, high = share.interval
    few = "too few to say" if share.n else "–"
    row: dict[str, Any] = {
        "Confidence": f"{100 * EDGES[number]:.0f} to {100 * EDGES[number + 1]:.0f}%",
        "Looked at": share.n,
        "Right": percent(share.value) if share.n >= FEWEST else few,
        "Between": f"{100 * low:.0f} and {100 * high:.0f}%" if share.n >= FEWEST else "",
    }
    for label in ("hallucinated", "supported"):
        own = share_of(one for one in band if one.label == label)
        row[f"Right of “{label}”"] = f"{own.right} of {own.n}"
    row["Drawn at random"] = sum(one.is_random for one in band)
    return row


def _draw_past(figures: Figures) -> None:
    """How many verdicts there are to go by, and how often they were right, by level."""
    right, low_high = figures.right, figures.right.interval
    one, two, three = st.columns(3)
    one.metric(
        "Verdicts looked at",
        f"{right.n:,}",
        f"{figures.drawn:,} of them drawn at random",
        delta_color="off",
        delta_arrow="off",
        help="With a probability, on cases that somebody answered or settled; each text once, and "
        "none that the classifier was trained on. People look at unsure cases first: those drawn "
        "at random, or with an answer that was known before, tell most about all the rest.",
    )
    two.metric(
        "Right",
        percent(right.value),
        f"between {100 * low_high[0]:.0f} and {100 * low_high[1]:.0f}%",
        delta_color="off",
        delta_arrow="off",
    )
    three.metric(
        "Always saying the more frequent label",
        percent(figures.frequent.value),
        f"{figures.frequent.right} of {figures.frequent.n}",
        delta_color="off",
        delta_arrow="off",
        help="What one would have without any check.",
    )
    st.subheader("By level", anchor=False)
    st.dataframe(figures.table, hide_index=True, key="confidence.levels")
    st.caption(
        f"“Between”: where the true share lies 95 times in 100. Below {FEWEST} verdicts a share "
        "says little."
    )


def _draw_plots(figures: Figures, wanted: float | None, limit: Limit | None) -> None:
    left, right = st.columns(2)
    left.plotly_chart(level_figure(figures.levels), key="confidence.said", width="stretch")
    inside = sum(low <= said <= high for said, s in figures.levels for low, high in [s.interval])
    left.caption(
        f"On the dotted line what is said is what is right; {inside} of "
        f"{counted(len(figures.levels), 'level')} have it within their range."
    )
    chosen = None
    if limit is not None and limit.threshold is not None:
        share = limit.answered / limit.n
        chosen = Point(limit.threshold, share, Share(limit.wrong, limit.answered))
    figure = risk_figure(figures.points, wanted, chosen)
    right.plotly_chart(figure, key="confidence.risk", width="stretch")
    everything = 1.0 - figures.right.value
    right.caption(
        f"Mean error over all shares answered: {100 * figures.area:.1f}% with the surest first, "
        f"{100 * everything:.1f}% in a random order (n={figures.right.n}; area under the curve)."
    )
