"""Does the debate beat one agent alone on the project's own cases, and at what cost."""

from __future__ import annotations

import streamlit as st

from components.reliability_kept import Figures
from components.words import counted, seconds
from core.learning.debate_worth import Cost, Step, Worth

FEWEST = 30
STEP_WORDS = {
    "opener": "First turn of who speaks first: one agent alone",
    "openings": "Majority of all first turns",
    "closings": "Majority of all last turns",
    "judge": "The judge's own label",
    "verdict": "The verdict in the end",
}
PART_WORDS = {
    "debaters": "Debaters' turns",
    "judge": "Judge",
    "others": "All other roles",
}


def draw_debate_worth(found: Figures) -> None:
    """The steps of a run by how often they were right, and what a run takes."""
    worth = found.worth
    if worth is None:
        return
    st.subheader("Is the debate worth it", anchor=False)
    st.markdown(finding(worth))
    st.dataframe(
        [_step_row(step) for step in worth.steps]
        + [{"Step of a run": "Always saying hallucinated", "Right": f"{worth.always:.2f}",
            "Unclear": "0", "The verdict's lead": "–"}],
        key="reliability.debate",
        hide_index=True,
        height="content",
        column_config={
            "Right": st.column_config.Column(
                help="Of all cases; unclear counts as not right. In brackets: 95 % interval."
            ),
            "The verdict's lead": st.column_config.Column(
                help="How much more often the verdict in the end is right, over the cases on "
                "which both spoke, with a 95 % interval of the paired difference."
            ),
        },
    )  # fmt: skip
    _draw_costs(worth)


def finding(worth: Worth) -> str:
    """What the table comes to: beside one agent, and beside all of them before any answered."""
    alone, openings = worth.steps[:2]
    if alone.lead is None or alone.paired < FEWEST:
        return (
            f"Too few cases to say ({alone.paired}; from {FEWEST} on a difference can be judged)."
        )
    told = _lead_words(alone, "its first speaker alone")
    if openings.lead is None or openings.paired < FEWEST:
        return told
    return f"{told} {_lead_words(openings, 'the majority of all first turns, without a debate')}"


def _lead_words(step: Step, what: str) -> str:
    lead, low, high = (100 * (x or 0.0) for x in (step.lead, step.low, step.high))
    words = f"{lead:+.0f} points ({low:+.0f} to {high:+.0f})"
    if low > 0:
        return f"The verdict beats {what}, by **{words}**, n={step.paired}."
    if high < 0:
        return f"The verdict is **worse** than {what}: {words}, n={step.paired}."
    return f"No difference to {what} is shown: {words}, n={step.paired}."


def _step_row(step: Step) -> dict[str, object]:
    share = step.accuracy
    lead = "–"
    if step.step != "verdict" and step.lead is not None:
        lead = f"{step.lead:+.2f} ({step.low:+.2f} to {step.high:+.2f}), n={step.paired}"
    right = f"{share.mean:.2f} ({share.low:.2f} to {share.high:.2f}), n={share.n}"
    return {
        "Step of a run": STEP_WORDS[step.step],
        "Right": right if share.n else "–",
        "Unclear": str(step.unclear),
        "The verdict's lead": lead,
    }


def _draw_costs(worth: Worth) -> None:
    timing = (
        f"A run took {seconds(worth.seconds)} on average, the first turn was there after "
        f"{seconds(worth.opening_seconds)} (over {counted(worth.runs, 'run')})."
    )
    if not any(cost.calls for cost in worth.costs):
        st.caption(f"{timing} No language model was asked: the calls cost nothing.")
        return
    st.dataframe(
        [_cost_row(cost) for cost in worth.costs],
        key="reliability.costs",
        hide_index=True,
        height="content",
    )
    st.caption(timing)


def _cost_row(cost: Cost) -> dict[str, object]:
    return {
        "Of a run, on average": PART_WORDS[cost.part],
        "Calls": f"{cost.calls:.1f}",
        "Tokens": f"{cost.tokens:,.0f}",
        "US dollars": "not known" if cost.dollars is None else f"{cost.dollars:.5f}",
    }
