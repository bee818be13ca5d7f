"""The error rate that a project bears among verdicts that nobody looks at, and its limit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from components import state
from components.calibration import record_of
from components.wording import counted, escaped
from core.errors import ReviewError
from core.learning.track_record import fewest_for, fit
from core.records import Project
from core.review.selective_prediction import HIGHEST, LOWEST, Limit, Policy, policy_of, require_rate
from core.store import Store

HELP = (
    "How many of the verdicts that nobody looks at may be wrong. A limit on confidence is then "
    "fitted on people's answers, so that there are no more with 90% certainty; verdicts below it "
    "are marked for people to decide and come first on Review. Empty: nothing is marked."
)


def draw_error_rate(project: Project, key: str) -> float | None:
    """The field, in percent; its value as a share, None where it is empty."""
    percent = st.number_input(
        "Wanted error rate (%)",
        100 * LOWEST, 100 * HIGHEST,
        None if project.error_rate is None else round(100 * project.error_rate, 2),
        step=0.5, format="%.1f", key=key, placeholder="none", help=HELP,
    )  # fmt: skip
    return None if percent is None else round(percent / 100.0, 6)


def refit(store: Store, project: Project) -> None:
    """Fit the project's limit anew; call it outside of a transaction."""
    known = None if project.error_rate is None else record_of(store, project.id)
    fit(store, project, state.person(store), time.time(), known)


def draw_control(project: Project, *, is_lead: bool) -> None:
    """The rate with its button; only leads may change it."""
    key = f"confidence.{project.id}.rate"
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    with left:
        draw_error_rate(project, key)
    with right:
        st.button(
            "Save and fit the limit",
            key="confidence.fit",
            type="primary",
            icon=":material/tune:",
            disabled=not is_lead,
            help=None if is_lead else "Only leads of this project may do that.",
            on_click=_save,
            args=(project.id, key),
        )
    if problem := st.session_state.pop("confidence.problem", ""):
        st.error(escaped(problem), icon=":material/error:")


def _save(project_id: str, key: str) -> None:
    percent = st.session_state.get(key)
    wanted = None if percent is None else round(float(percent) / 100.0, 6)
    try:
        if wanted is not None:
            require_rate(wanted)
        with state.open_store() as store:
            with store.writing():
                state.require(store, project_id, "lead", "change the wanted error rate")
                known = store.projects.get(project_id)
                if known is None:
                    return
                changed = replace(known, error_rate=wanted)
                store.projects.save(changed)
            refit(store, changed)
            policy = policy_of(store, changed)
    except ReviewError as error:
        st.session_state["confidence.problem"] = str(error)
        return
    holds = policy is not None and any(limit.threshold is not None for limit in policy.limits)
    words = "the limit is fitted" if holds else "nothing can be promised yet"
    st.toast("Saved: no rate is wanted." if policy is None else f"Saved: {words}.")


def draw_rates(
    project: Project,
    policy: Policy | None,
    limits: Sequence[tuple[float, Limit]],
    *,
    is_lead: bool,
) -> None:
    """The control, and what each of some rates would mean; `limits` are those of the rates."""
    st.subheader("What this project answers by itself", anchor=False)
    draw_control(project, is_lead=is_lead)
    if policy is not None and policy.problem:
        st.error(escaped(policy.problem), icon=":material/error:")
    if not limits:
        return
    rows = [_row(rate, limit) for rate, limit in limits]
    st.dataframe(rows, hide_index=True, key="confidence.rates")
    first = limits[0][1]
    drawn = " that were drawn at random" if first.is_random else ""
    st.caption(
        f"What each rate would mean, on {counted(first.n, 'verdict')} looked at{drawn}. “From” is "
        "the lowest of a fixed row of confidences at which no more than the wanted share is "
        "wrong, with 90% certainty. An unclear verdict answers nothing: it says so itself."
    )


def _row(rate: float, limit: Limit) -> dict[str, Any]:
    answered = round(100 * limit.answered / limit.n)
    return {
        "Wanted at most": f"{100 * rate:.3g}%",
        "From": "–" if limit.threshold is None else f"{100 * limit.threshold:.3g}%",
        "Answered": f"{answered}%",
        "To people": f"{100 - answered}%",
        "Wrong of those answered": f"{limit.wrong} of {limit.answered}" if limit.answered else "",
        "Why none": why_words(rate, limit),
    }


def why_words(rate: float, limit: Limit) -> str:
    """Why none is answered at that rate; "" where something is."""
    if limit.threshold is not None:
        return ""
    fewest = fewest_for(rate)
    if limit.n < fewest:
        return f"{fewest} are needed, if none is wrong"
    return "too many wrong to promise it"


def draw_in_use(wanted: float, limit: Limit | None, n: int, since: str) -> None:
    """The limit that counts, and whether more is known by now; `n` could be fitted on today."""
    if limit is None:
        st.markdown(
            "**In use: nothing is answered by itself**: no limit was fitted yet at this rate for "
            "these verdicts. Save and fit it."
        )
        return
    fitted = f"fitted {escaped(since)} on {counted(limit.n, 'verdict')} looked at"
    if limit.threshold is None:
        why = why_words(wanted, limit)
        st.markdown(f"**In use: nothing is answered by itself** ({fitted}): {why}.")
    else:
        answered = round(100 * limit.answered / limit.n)
        st.markdown(
            f"**In use: from a confidence of {100 * limit.threshold:.3g}% on** ({fitted}): "
            f"{answered}% answered, {100 - answered}% to people, {limit.wrong} of the "
            f"{limit.answered} answered ones wrong."
        )
    if n > limit.n:
        more = counted(n - limit.n, "verdict")
        st.caption(f"{more} more can be counted by now: fit the limit anew.")
