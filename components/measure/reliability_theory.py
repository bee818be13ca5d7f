"""Reliability: what more agents and debate can bring, by equations and by one's own runs."""

from __future__ import annotations

import streamlit as st

from components.app import state
from components.measure import WORDS
from components.measure.agreement import between
from components.measure.reliability_agents import figures
from components.widgets.charts import judge_figure, majority_figure
from components.widgets.wording import escaped
from core.learning import debate_worth as theory
from core.learning.metrics import Figure
from core.learning.reasoning import Row, words_of
from core.store.sqlite import Mark

MOST_AGENTS = 25
BUDGETS = [step / 20 for step in range(101)]
ACCURACY, CORRELATION, BASE_RISK = 0.7, 0.3, 0.3  # where nothing is measured yet


def draw_theory() -> None:
    """Equations to try out, on request; sliders begin at what was measured."""
    if not st.toggle("Show what more agents and debate can bring", key="theory.shown"):
        return
    project_id, found = figures()
    agents, debates = _measured(str(state.home()), project_id, state.answers_mark(), found.rows)
    _draw_majority(agents)
    _draw_judge(debates[0] if debates else None)


@st.cache_resource(max_entries=4, show_spinner="Looking at first and last turns")
def _measured(
    home: str, project_id: str, mark: Mark, _rows: tuple[Row, ...]
) -> tuple[theory.Measured | None, list[theory.Information]]:
    """Kept until somebody says something or a run ends; `_rows` follow from the rest."""
    return theory.measured(_rows), theory.information(_rows)


def _draw_majority(found: theory.Measured | None) -> None:
    st.subheader("More agents", anchor=False)
    if found is None:
        st.caption(
            f"Nothing is measured yet: that takes {theory.FEWEST} decided cases with two agents' "
            "first words, some right and some wrong. The sliders begin at made-up values."
        )
    else:
        names = "; ".join(words_of(found.agents).values())
        told = (
            f"Measured over {found.n} decided cases, of first turns and the judge's readers "
            f"({names}): right {_range(found.accuracy)}, correlation of two agents' errors "
            f"{_range(found.correlation)}. Always saying the more frequent label errs in "
            f"{found.always:.2f}."
        )
        st.caption(escaped(told))
    begin = (found.accuracy.value, found.correlation.value) if found else (ACCURACY, CORRELATION)
    left, middle, right = st.columns(3)
    accuracy = left.slider(
        "How often an agent is right", 0.0, 1.0, round(begin[0], 2), 0.01, key="theory.accuracy"
    )
    correlation = middle.slider(
        "Correlation of errors", 0.0, 1.0, round(max(0.0, begin[1]), 2), 0.01,
        key="theory.correlation",
    )  # fmt: skip
    agents = right.slider(
        "Agents", 1, MOST_AGENTS, max(3, len(found.agents)) if found else 5, key="theory.agents"
    )
    sizes = range(1, max(agents, 9) + 1)
    figure = majority_figure(
        [(n, theory.majority_error(n, accuracy, 0.0)) for n in sizes],
        [(n, theory.majority_error(n, accuracy, correlation)) for n in sizes],
        [(n, theory.hoeffding(n, accuracy, correlation)) for n in sizes],
        [
            (k, error, f"{k} of your agents: {error:.3f}, over {cases:.0f} cases on average")
            for k, error, cases in (found.curve if found else ())
        ],
    )
    st.plotly_chart(figure, key="theory.majority", width="stretch")
    st.caption(
        f"{agents} such agents are worth {theory.effective_agents(agents, correlation):.1f} "
        "independent ones. Source: CEDA A.1 (Hoeffding's bound, an effective number of agents). "
        "The dashed curve is a beta-binomial of agents alike: our choice, not the paper's. A "
        "diamond is over the cases on which all of its agents decided."
    )


def finding(found: theory.Information) -> str:
    """Whether debate added information, in a sentence (ColMAD 2.1, equations 1 to 3)."""
    told = f"{between(found.bits.value, found.bits.low, found.bits.high, 3, '+')}, n={found.n}"
    told = told.replace(" (", " bits a case (", 1)
    if found.bits.low > 0:
        return f"Debate **added information**: {told}."
    if found.bits.high < 0:
        return f"Debate added **no information**; last stances mislead: {told}."
    return f"That debate added information is **not shown**: {told}."


def _draw_judge(found: theory.Information | None) -> None:
    st.subheader("A judge between debaters", anchor=False)
    st.markdown(
        finding(found)
        if found
        else "Too few cases to say whether debate added information: that takes "
        f"{theory.FEWEST_DEBATED} decided cases on which at least two debaters spoke, ten of "
        "each label."
    )
    begin = round(min(0.49, max(0.01, found.base.value)), 2) if found else BASE_RISK
    left, right = st.columns(2)
    risk = left.slider(
        "The judge's risk without a debate", 0.01, 0.49, begin, 0.01, key="theory.risk"
    )
    weaker = right.slider(
        "How far the weaker debater pushes, beside the stronger",
        0.0, 1.0, 0.5, 0.05, key="theory.weaker",
    )  # fmt: skip
    d = theory.separation(risk)
    own = None
    if found is not None and found.gain.value > 0 and abs(risk - begin) < 1e-9:
        own = theory.evidence_in(found.base.value, found.full.value), found.full.value
    against = [theory.competitive(d, budget, weaker) for budget in BUDGETS]
    together = [theory.collaborative(d, budget) for budget in BUDGETS]
    figure = judge_figure(BUDGETS, against, risk, together, own)
    st.plotly_chart(figure, key="theory.judge", width="stretch")
    st.caption(WORDS["reliability_theory.draw_judge"])


def _range(own: Figure) -> str:
    return between(own.value, own.low, own.high)
