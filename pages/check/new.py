"""New check: a text, its sources, one button."""

import streamlit as st

from components.app.frame import page_title
from components.check.history import draw_checked_before
from components.check.new_check import (
    draw_plan,
    draw_prepared,
    draw_source_fields,
    expected_words,
    keep_draft,
    project_roster,
    restore_draft,
    start_check,
)
from components.check.roster_choice import (
    draw_keys_of_rosters,
    draw_protocol_choice,
    draw_roster_choice,
    roster_line,
)
from components.widgets.controls import button, show_problem

started = st.session_state.pop("new.started", "")
if started:
    st.switch_page("pages/check/run.py", query_params={"run": started})
restore_draft()
page_title("New check", roster_line("new.roster"))

left, right = st.columns([3, 2], gap="large")
with left:
    response = st.text_area(
        "Text to check",
        key="new.response",
        height=150,
        placeholder="Paste a claim, an answer, or a whole response of a language model.",
        persist_state="session",
    )
    question = st.text_input(
        "The question it answers (optional)", key="new.question", persist_state="session"
    )
    draw_checked_before(response or "", question or "")
with right:
    sources = draw_source_fields("new", "Sources: documents and images")
keep_draft(sources)
protocol = draw_protocol_choice(
    "new.protocol", str(st.session_state.get("new.roster") or project_roster())
)
with st.expander("Role, instruction and options", icon=":material/tune:"):
    draw_plan(protocol)
# Columns stack on a phone: roster and cost then come before the button.
choice, expected, start = st.columns([5, 6, 4], vertical_alignment="bottom")
with start:
    button(
        "Check",
        "new.check",
        start_check,
        icon="gavel",
        type="primary",
        shortcut="Ctrl+Enter",
        width="stretch",
    )
with choice:
    roster = draw_roster_choice("new.roster", project_roster())
with expected:
    st.caption(expected_words(roster, sources))
draw_keys_of_rosters([roster], "new")
show_problem("new.problem")
draw_prepared()
