"""Reliability: what more agents and debate can bring, by equations and by one's own runs."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components.app import state
from components.measure.reliability_agents import figures
from components.widgets.charts import judge_figure, majority_figure
from components.widgets.controls import table
from components.widgets.wording import LABEL_WORDS, escaped, protocol_words
from core.learning.debate_worth import (
    FEWEST,
    FEWEST_DEBATED,
    Information,
    Measured,
    collaborative,
    competitive,
    effective_agents,
    evidence_in,
    hoeffding,
    information,
    majority_error,
    measured,
    separation,
)
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
    _draw_information(debates)
    _draw_judge(debates[0] if debates else None)


@st.cache_resource(max_entries=4, show_spinner="Looking at first and last turns")
def _measured(
    home: str, project_id: str, mark: Mark, _rows: tuple[Row, ...]
) -> tuple[Measured | None, list[Information]]:
    """Kept until somebody says something or a run ends; `_rows` follow from the rest."""
    return measured(_rows), information(_rows)


def _draw_majority(found: Measured | None) -> None:
    st.subheader("More agents", anchor=False)
    if found is None:
        st.caption(
            f"Nothing is measured yet: that takes {FEWEST} decided cases with two agents' first "
            "words, some right and some wrong. The sliders begin at made-up values."
        )
    else:
        names = "; ".join(words_of(found.agents).values())
        st.caption(
            escaped(
                f"Measured over {found.n} decided cases, of first turns and the judge's readers "
                f"({names}): right {_range(found.accuracy)}, correlation of two agents' errors "
                f"{_range(found.correlation)}. Always saying the more frequent label errs in "
                f"{found.always:.2f}."
            )
        )
    left, middle, right = st.columns(3)
    accuracy = left.slider(
        "How often an agent is right",
        0.0, 1.0, round(found.accuracy.value, 2) if found else ACCURACY, 0.01,
        key="theory.accuracy",
    )  # fmt: skip
    correlation = middle.slider(
        "Correlation of errors",
        0.0, 1.0, round(max(0.0, found.correlation.value), 2) if found else CORRELATION, 0.01,
        key="theory.correlation",
    )  # fmt: skip
    agents = right.slider(
        "Agents", 1, MOST_AGENTS, max(3, len(found.agents)) if found else 5, key="theory.agents"
    )
    _draw_majority_figure(accuracy, correlation, agents, found)


def _draw_majority_figure(
    accuracy: float, correlation: float, agents: int, found: Measured | None
) -> None:
    sizes = range(1, max(agents, 9) + 1)
    own = [
        (k, error, f"{k} of your agents: {error:.3f}, over {cases:.0f} cases on average")
        for k, error, cases in (found.curve if found else ())
    ]
    st.plotly_chart(
        majority_figure(
            [(n, majority_error(n, accuracy, 0.0)) for n in sizes],
            [(n, majority_error(n, accuracy, correlation)) for n in sizes],
            [(n, hoeffding(n, accuracy, correlation)) for n in sizes],
            own,
        ),
        key="theory.majority",
        width="stretch",
    )
    together = majority_error(agents, accuracy, correlation)
    st.markdown(
        f"{agents} such agents are worth **{effective_agents(agents, correlation):.1f}** "
        f"independent ones. Their majority errs in **{together:.3f}** of cases, independent ones "
        f"in {majority_error(agents, accuracy, 0.0):.3f}, one alone in {1 - accuracy:.3f}."
    )
    st.caption(
        "Source: CEDA A.1 (Hoeffding's bound, an effective number of agents). The dashed curve is "
        "a beta-binomial of agents alike: our choice, not the paper's."
        + (f" {same_cases(found.curve)}" if found else "")
    )


def same_cases(curve: Sequence[tuple[int, float, float]]) -> str:
    """Over which cases the diamonds are: those of many agents are over fewer and clearer ones."""
    over = [cases for _, _, cases in curve]
    if len(over) < 2 or round(max(over)) == round(min(over)):
        return ""
    return (
        "A diamond is over the cases on which all of its agents decided: "
        f"{over[0]:.0f} on average for one agent, {over[-1]:.0f} for {curve[-1][0]}. Where these "
        "are the clearer ones, diamonds fall without more agents being the reason."
    )


def _draw_information(debates: list[Information]) -> None:
    st.subheader("Did debate add information", anchor=False)
    if not debates:
        st.caption(
            f"Too few cases to say: that takes {FEWEST_DEBATED} decided cases on which at least "
            f"two debaters spoke, ten of them {LABEL_WORDS['hallucinated'].lower()} and ten "
            f"{LABEL_WORDS['supported'].lower()}."
        )
        return
    st.markdown(finding(debates[0]))
    table([_row(own) for own in debates], "theory.information")
    st.caption(
        "How often a judge would be wrong that goes by the debaters' first stances, or by first "
        "and last ones: logistic models, each case judged by one that has not seen it, 95% "
        "intervals over cases. Bits are what last stances tell beyond first ones. Source: ColMAD "
        "2.1 (equations 1 to 3) and 2.3."
    )


def finding(found: Information) -> str:
    """What the table comes to, in a sentence."""
    bits = f"{found.bits.value:+.3f} bits a case ({found.bits.low:+.3f} to {found.bits.high:+.3f})"
    if found.bits.low > 0:
        return f"Debate **added information**: {bits}, n={found.n}."
    if found.bits.high < 0:
        return f"Debate added **no information**; last stances mislead: {bits}, n={found.n}."
    return f"That debate added information is **not shown**: {bits}, n={found.n}."


def _row(found: Information) -> dict[str, str]:
    name = protocol_words(found.protocol, short=True) if found.protocol else "All debates"
    return {
        "Runs": name,
        "Risk by first stances": _range(found.base),
        "With last ones": _range(found.full),
        "Fall": _range(found.gain),
        "Bits": _range(found.bits, 3),
        "Always the same": f"{found.always:.2f}",
        "n": str(found.n),
        "Somebody turned": str(found.moved),
    }


def _draw_judge(found: Information | None) -> None:
    st.subheader("A judge between debaters", anchor=False)
    begin = round(min(0.49, max(0.01, found.base.value)), 2) if found else BASE_RISK
    left, right = st.columns(2)
    risk = left.slider(
        "The judge's risk without a debate", 0.01, 0.49, begin, 0.01, key="theory.risk"
    )
    weaker = right.slider(
        "How far the weaker debater pushes, beside the stronger",
        0.0, 1.0, 0.5, 0.05,
        key="theory.weaker",
    )  # fmt: skip
    d = separation(risk)
    own = None
    if found is not None and found.gain.value > 0 and abs(risk - begin) < 1e-9:
        own = evidence_in(found.base.value, found.full.value), found.full.value
    st.plotly_chart(
        judge_figure(
            BUDGETS,
            [competitive(d, budget, weaker) for budget in BUDGETS],
            risk,
            [collaborative(d, budget) for budget in BUDGETS],
            own,
        ),
        key="theory.judge",
        width="stretch",
    )
    st.caption(
        "A model to try out, not a measurement: two labels equally likely, evidence that is "
        "normal. Debaters who compete push their own side whatever is true; a judge who takes "
        "that for evidence errs more the less alike they are, and the best judge ignores it. "
        "Debaters who collaborate bring true evidence. Source: ColMAD 2.2, 2.3 and A."
    )


def _range(own: Figure, digits: int = 2) -> str:
    return f"{own.value:.{digits}f} ({own.low:.{digits}f} to {own.high:.{digits}f})"
