"""Weights of debaters' answers, w(Q): trained with a policy or without, compared, shown."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import streamlit as st

from components.learning_charts import reward_figure
from components.reliability_kept import Figures
from components.reliability_use import write
from components.words import escaped
from core.learning.learned_consensus import adapt, learn
from core.learning.learned_weights import policy_words
from core.store.learned import Learned, read_body

METHOD_WORDS = {
    "uniform": "All alike",
    "record": "By record",
    "logistic": "Logistic",
    "policy": "Policy (PPO)",
    "always": "Always the same answer",
}
METHOD_HELP = (
    "By record: an agent weighs as much as its past answers were right. Logistic: agents that err "
    "together share their weight. Policy: a small network weighs each answer by how it fared in "
    "the debate; PPO trained it on a reward model of people's answers and ratings (SC-MAKS 3.5). "
    "Always the same answer: hallucinated, or for log loss the share that is."
)
FIGURES = {
    "log_loss": "Log loss",
    "auroc": "AUROC",
    "balanced_accuracy": "Balanced accuracy",
    "f1": "F1",
    "f2": "F2",
}
READ = ("lacking",)
WITH_ANSWERS = ("weights", "compared", "mean_weights")


def draw_learning(
    project_id: str, found: Figures, newest: Learned | None, *, is_lead: bool
) -> None:
    """The buttons: learn all weights, with a policy where it can be trained; go on with one."""
    words = policy_words()
    row = st.container(horizontal=True, vertical_alignment="center")
    pressed = row.button(
        "Learn weights",
        key="reliability.learn",
        icon=":material/balance:",
        disabled=not is_lead,
        help="Compares the weightings on five folds of cases and keeps the one that is proposed. "
        "Takes some seconds, with a policy about a minute. Leads only.",
    )
    with_policy = row.checkbox(
        "Train a policy too", key="reliability.policy", disabled=bool(words) or not is_lead
    )
    has_policy = newest is not None and bool((newest.body.get("answers") or {}).get("policy"))
    adapts = has_policy and row.button(
        "Go on with new answers",
        key="reliability.adapt",
        icon=":material/update:",
        disabled=bool(words) or not is_lead,
        help="The newest policy learns from what was answered since, in small steps, and is kept "
        "where it does better on these answers beyond chance.",
    )
    if words:
        st.caption(words)  # our own
    if pressed:
        with st.spinner("Comparing the weightings on five folds"):
            write(
                lambda store, by: learn(
                    store, project_id, found.rows, by, time.time(), with_policy=bool(with_policy)
                )
            )
    if adapts:
        with st.spinner("Going on with the new answers"):
            write(lambda store, by: adapt(store, project_id, found.rows, by, time.time()))


def require_readable(learned: Learned) -> None:
    """Refuse what cannot be drawn.

    Raises:
        ConfigError: it has another form.
    """

    def read(body: dict[str, Any]) -> None:
        own = body.get("answers")
        if own is not None:
            _ = [own[name] for name in (READ if own["lacking"] else WITH_ANSWERS)]

    read_body(learned, read)


def draw_answers(learned: Learned) -> None:
    """How the weightings of debaters' answers compare, which is used, and how the policy fared."""
    own: dict[str, Any] | None = learned.body.get("answers")
    if own is None:
        return
    st.markdown("**Weights of debaters in a consensus (SC-MAKS)**")
    if own["lacking"]:
        st.caption(f"None yet: {escaped(own['lacking'])}. All debaters count alike.")
        return
    compared = own["compared"]
    st.markdown(
        f"Used: **{METHOD_WORDS[compared['used']].lower()}**. Other weights than all alike are "
        "used only where their log loss is lower beyond chance."
    )
    st.dataframe(
        [_row(method, compared) for method in METHOD_WORDS if method in compared["figures"]],
        key="reliability.answers",
        hide_index=True,
        height="content",
        column_config={"Weights": st.column_config.Column(help=METHOD_HELP)},
    )
    st.caption(
        f"On the same five folds, n={compared['n']:,} debates over {compared['groups']:,} cases, "
        f"{compared['hallucinated']:,} hallucinated. In brackets: 95 % of resamples of cases. The "
        "last columns are against all alike, case by case; p is Wilcoxon's."
    )
    with st.expander("How much each debater weighs"):
        st.dataframe(
            [{"Debater": _name(*row[:2]), "Mean weight": row[2]} for row in own["mean_weights"]],
            hide_index=True,
            height="content",
            column_config={"Mean weight": st.column_config.NumberColumn(format="%.2f")},
        )
    if "policy" in own:
        _draw_policy(own)


def _draw_policy(own: dict[str, Any]) -> None:
    policy = own["policy"]
    with st.expander("How the policy was trained"):
        figure = reward_figure(
            [pair[0] for pair in policy["curve"]], [p[1] for p in policy["curve"]]
        )
        st.plotly_chart(figure, key="reliability.curve", width="stretch")
        ranks = policy["reward_auroc"]
        st.caption(
            f"Kept is the policy after update {policy['best']}: training stops where the reward on "
            "debates held out comes to a plateau. The reward model was fitted to "
            f"{policy['answers']:,} answers and ranks these with AUROC "
            f"{'–' if ranks is None else f'{ranks:.2f}'} (0.5 is chance; they are its own)."
        )
    if "adapted" in own:
        gone = own["adapted"]
        gain = gone["gain"]
        st.caption(
            f"Went on with {gone['groups']:,} cases: log loss lower by {gain['value']:+.3f} "
            f"({gain['low']:+.3f} to {gain['high']:+.3f}) than before; "
            + ("the new policy is used." if gone["is_used"] else "the earlier weights are kept.")
        )


def _row(method: str, compared: dict[str, Any]) -> dict[str, str]:
    figures, gain = compared["figures"][method], compared["gains"].get(method)
    used = " (used)" if method == compared["used"] else ""
    cells = {title: _figure(figures[name]) for name, title in FIGURES.items()}
    better = "–" if gain is None else _figure([gain["value"], gain["low"], gain["high"]])
    p = None if gain is None else gain["p"]
    chance = "–" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"
    return {"Weights": METHOD_WORDS[method] + used} | cells | {"Lower by": better, "p": chance}


def _name(name: str, seat: str) -> str:
    return f"{name}, {seat}" if seat else name


def _figure(figure: Sequence[float]) -> str:
    value, low, high = figure
    return f"{value:.3f} ({low:.3f} to {high:.3f})"
