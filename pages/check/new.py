"""New check: a text, its sources, one button."""

import streamlit as st

from components.app.frame import draw_page_title, has_role
from components.app.sample import draw_sample_button, draw_tour_button, is_touring
from components.check.history import draw_earlier_checks
from components.check.new_check import (
    describe_expected_cost,
    draw_prepared_cases,
    draw_source_fields,
    draw_way_to_check,
    get_project_roster,
    restore_draft,
    start_check,
)
from components.check.roster_choice import describe_roster, draw_roster_keys
from components.widgets.controls import draw_button, show_problem
from components.widgets.drafts import save_check_draft

started = st.session_state.pop("new.started", "")
if started:
    st.switch_page("pages/check/run.py", query_params={"run": started})
restore_draft()
draw_page_title("New check", describe_roster("new.roster", get_project_roster()))
if not has_role("annotator", "check a claim"):
    draw_sample_button("pages/review/pending.py")
    st.stop()

left, right = st.columns([3, 2], gap="large")
with left:
    response = st.text_area(
        "Text to check",
        key="new.response",
        height=120,
        placeholder="Paste a claim, an answer, or a whole response of a language model.",
        persist_state="session",
    )
    question = st.text_input(
        "The question it answers (optional)", key="new.question", persist_state="session"
    )
    draw_earlier_checks(response or "", question or "")
with right:
    sources = draw_source_fields("new", "Sources: documents and images")
save_check_draft(sources)
roster, protocol = draw_way_to_check(get_project_roster())
# Columns stack on a phone: the cost then comes before the button.
expected, start = st.columns([12, 4], vertical_alignment="center")
with start:
    draw_button(
        "Check",
        "new.check",
        start_check,
        icon="gavel",
        type="primary",
        shortcut="Ctrl+Enter",
        width="stretch",
    )
with expected:
    st.caption(describe_expected_cost(roster, sources))
draw_roster_keys([roster], "new")
show_problem("new.problem")
if not is_touring():  # which fills the page itself
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Or try a prepared case", anchor=False, width="content")
        draw_tour_button()
        draw_sample_button("pages/review/pending.py", type="tertiary")
    draw_prepared_cases()
