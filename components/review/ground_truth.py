"""What counts as true in a project: the choice of its rule, and the line that names it."""

from __future__ import annotations

import time
from pathlib import Path

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.review.review_queue import ADJUDICATION_PAGE, DISPUTED
from components.widgets.controls import draw_link
from components.widgets.wording import format_count
from core.learning.training_set import count_disputed
from core.schema.records import Project, TruthRule
from core.store import open_store
from core.store.ground_truth import TRUTH_RULE_WORDS, describe_truth_rule
from core.store.sqlite import ChangeMark

ABOUT_RULE = (
    "What a lead settled counts first, then a right answer that came with a file, then this, once "
    "as many people as above have answered. Cases on which they do not agree are disputed: they "
    "are not learned from and not exported as true until a lead settles them."
)


def draw_truth_rule(project: Project) -> TruthRule:
    """Draw the choice of what counts as true for a case that no lead settled."""
    rules: list[TruthRule] = list(TRUTH_RULE_WORDS)
    chosen = st.selectbox(
        "What counts as true",
        rules,
        index=rules.index(project.truth_rule),
        format_func=lambda rule: TRUTH_RULE_WORDS[rule].capitalize(),
        key=f"project.{project.id}.truth",
        help="Words count as wrong that both of two people, or at least half of more, marked. Only "
        "those count who said which words are wrong, or that no single word is.",
    )
    st.caption(ABOUT_RULE)
    return chosen or project.truth_rule


def draw_truth_line() -> None:
    """Name the current project's rule in one line, with a link to the cases in dispute."""
    with state.open_store() as store:
        project, mark = state.get_project(store), store.changes.of_corrections()
    st.caption(f"True for a case is {describe_truth_rule(project)}. An admin sets it on Project.")
    # In a blind project the count would tell annotators whether their answer made a dispute.
    if not has_role("lead"):
        return
    if disputed := _count_disputed(str(state.home_folder()), project.id, mark):
        words = f"Adjudicate {format_count(disputed, 'case')} in dispute: nothing learns from them"
        draw_link(ADJUDICATION_PAGE, words, "gavel", show=DISPUTED)


@st.cache_resource(max_entries=8, show_spinner=False)
def _count_disputed(home: str, project_id: str, mark: ChangeMark) -> int:
    with open_store(Path(home)) as store:
        return count_disputed(store, project_id, time.time())
