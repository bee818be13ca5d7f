"""From which probability words are marked: as it ships, as it is now, and as people's marks say."""

from __future__ import annotations

from typing import Any

import streamlit as st

from components.charts import threshold_figure
from components.span_learning import (
    Material,
    draw_choices,
    draw_take,
    language_words,
    needs_more,
    used_now,
)
from components.words import counted, when
from core.learned_marks import THRESHOLD, Levels, SpanThreshold, threshold_from
from core.learning.span_threshold import (
    FEWEST_CASES,
    GRID,
    PRIOR_CASES,
    Figure,
    Fit,
    Kind,
)

FEW = 30
KIND_WORDS: dict[Kind, str] = {
    "reader": "Built-in span reader",
    "votes": "Votes of language models",
    "panel": "Panel in which most runs decide",
    "weighted": "Panel of the built-in readers",
}
KIND_HELP: dict[Kind, str] = {
    "reader": "It gives every word a probability of being wrong; from the threshold on it is "
    "marked.",
    "votes": "A language model that votes on a marked place gives a probability. As it ships, its "
    "yes or no decides, which counts here as 0.50; with a threshold the probability does.",
    "panel": "Each member marks words and the others vote on them; words count as wrong from the "
    "threshold at which more than half of the runs mark them.",
    "weighted": "The four built-in readers' votes are summed with weights; from the threshold on "
    "words are marked.",
}
IOU_HELP = (
    "IoU (intersection over union): the characters that both the machine and people marked, as a "
    "share of those that either marked; 1 where neither marked any."
)
RULE = (
    "The best threshold is the one with the highest mean IoU, smoothed over its neighbours. Few "
    f"cases say little: it is drawn towards the one that ships as if {PRIOR_CASES} more cases had "
    "spoken for that, and a language's own in the same way towards the one of all. Each is then "
    "tried on cases it was not fitted to, in five parts; where it does no better there than the "
    f"one that ships, that one stays. A language gets its own from {FEWEST_CASES} cases on; "
    "one with fewer follows all, unless that does worse on the few it has. As the "
    "same five parts also decide what stays, the figures here are a little too kind."
)


def draw_threshold(found: Material) -> None:
    """Every kind of scores with its threshold; what is proposed can be taken into use."""
    st.subheader("Threshold", anchor=False, help=IOU_HELP)
    current = used_now(THRESHOLD, found.project_id, lambda body: threshold_from(0, body))
    used = threshold_from(current.number, current.body) if current else SpanThreshold()
    st.markdown(
        f"In use: **no. {current.number}**, learned {when(current.at)}."
        if current
        else "In use: **what ships**."
    )
    for kind in KIND_WORDS:
        if found.scored[kind] or getattr(used, kind).words:
            _draw_kind(kind, found, getattr(used, kind))
    if not any(found.scored.values()):
        st.info(_too_few("reader", found), icon=":material/info:")
    better = {kind for kind, one in found.proposals.items() if one.is_better}
    if better and (current is None or found.threshold != current.body):
        draw_take(THRESHOLD, found.project_id, found.threshold)
    elif better:
        st.success("What people's marks speak for is in use.", icon=":material/check:")
    if found.proposals:
        with st.expander("How the threshold is chosen"):
            st.markdown(RULE)
    draw_choices(THRESHOLD, found.project_id)


def _too_few(kind: Kind, found: Material) -> str:
    count = found.scored[kind]
    return (
        f"{counted(count, 'case')} with people's marks that the machine called hallucinated: "
        f"{needs_more(count, FEWEST_CASES)} before there is anything to say."
    )


def _draw_kind(kind: Kind, found: Material, used: Levels) -> None:
    st.markdown(f"**{KIND_WORDS[kind]}**", help=KIND_HELP[kind])
    one = found.proposals.get(kind)
    if one is None:
        st.info(_too_few(kind, found), icon=":material/info:")
        return
    whole = one.whole
    if not one.is_better:
        st.info(
            f"No better threshold was found on {counted(one.n, 'case')}: the one that ships "
            f"({one.shipped:.2f}) stays. At it the mean IoU is {_words(whole.before)}. "
            f"{trivial_words(whole, whole.before)}",
            icon=":material/info:",
        )
    else:
        st.markdown(
            f"People's marks speak for **{one.levels.words}**. Mean IoU over "
            f"{counted(one.n, 'case')}, each with thresholds fitted without it: "
            f"**{_words(whole.after)}**, against {_words(whole.before)} at {one.shipped:.2f} as "
            f"shipped. {trivial_words(whole, whole.after)}"
        )
        if whole.gain.low <= 0:
            st.caption("The gain may be chance: its interval reaches 0 or below.")
    if one.n < FEW:
        st.caption(f"Only {one.n} cases: too few to be sure of any difference.")
    fits = {fit.language: fit for fit in (whole, *one.languages)}
    chosen = whole
    if len(one.languages) > 1:
        name = st.selectbox(
            "Language", list(fits), key=f"spans.language.{kind}", format_func=language_words
        )
        chosen = fits[name]
    st.plotly_chart(
        threshold_figure([float(x) for x in GRID], chosen.curve, _levels(chosen, used)),
        key=f"spans.curve.{kind}",
        width="stretch",
    )
    st.dataframe(
        [_row(fit, used) for fit in fits.values()],
        key=f"spans.languages.{kind}",
        hide_index=True,
        height="content",
    )
    st.caption(
        "In brackets: between which values a figure lies in 95 of 100 resamples of the cases. "
        "“Mark all” and “mark nothing” are what a machine without any judgement would reach."
    )


def trivial_words(fit: Fit, reached: Figure) -> str:
    """What marking all and nothing come to, and whether the machine's marks come to more."""
    words = (
        f"Marking everything would reach {fit.mark_all:.2f}, marking nothing "
        f"{fit.mark_nothing:.2f}."
    )
    if round(reached.value, 2) <= round(max(fit.mark_all, fit.mark_nothing), 2):
        words += " On these cases its marks come **no closer** to people's than that."
    return words


def _levels(fit: Fit, used: Levels) -> dict[str, float]:
    """The thresholds that the figure shows; where nothing is proposed none is drawn for it."""
    named = {"as shipped": fit.shipped}
    now = used.at(fit.language)
    if now is not None:
        named["in use"] = now
    if fit.is_better:
        named["proposed"] = fit.tau
    return named


def _row(fit: Fit, used: Levels) -> dict[str, Any]:
    now = used.at(fit.language)
    return {
        "Language": language_words(fit.language),
        "Cases": fit.n,
        "In use": f"{fit.shipped if now is None else now:.2f}",
        "Proposed": f"{fit.tau:.2f}",
        "IoU, shipped": _words(fit.before),
        "IoU, proposed": _words(fit.after),
        "Gain": _words(fit.gain, is_signed=True) if any(fit.gain.body) else "–",
        "Mark all": f"{fit.mark_all:.2f}",
        "Mark nothing": f"{fit.mark_nothing:.2f}",
        "Best on its cases alone": f"{fit.own:.2f}",
    }


def _words(figure: Figure, *, is_signed: bool = False) -> str:
    """“0.61 (0.40 to 0.79)”."""
    sign = "+" if is_signed else ""
    value, low, high = (f"{x:{sign}.2f}" for x in (figure.value, figure.low, figure.high))
    return f"{value} ({low} to {high})"
