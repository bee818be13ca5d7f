"""New check: a text, its sources, one button."""

import streamlit as st

from components.frame import page_title
from components.history import draw_checked_before
from components.inputs import draw_sources, draw_uploader
from components.new_check import (
    draw_plan,
    draw_prepared,
    expected_words,
    keep_draft,
    library_choice,
    project_roster,
    restore_draft,
    start_check,
)
from components.roster_choice import (
    draw_protocol_choice,
    draw_roster_choice,
    draw_roster_keys,
    roster_line,
)
from components.wording import escaped

started = st.session_state.pop("new.started", "")
if started:
    st.switch_page("pages/check/run.py", query_params={"run": started})
restore_draft()
page_title("New check", roster_line("new.roster"))

left, right = st.columns([3, 2], gap="large")
with left:
    response = st.text_area(
        "What should be checked",
        key="new.response",
        height=150,
        placeholder="Paste a claim, an answer, or a whole response of a language model.",
        persist_state="session",
    )
    question = st.text_input(
        "The question it answers, if there was one", key="new.question", persist_state="session"
    )
    draw_checked_before(response or "", question or "")
with right:
    uploaded = draw_uploader("new.upload", "Sources: documents and images", choice="new.library")
    chosen = library_choice("new.library")
    sources = list(dict.fromkeys([*uploaded, *chosen]))
    draw_sources(sources)
keep_draft(sources)
protocol = draw_protocol_choice(
    "new.protocol", str(st.session_state.get("new.roster") or project_roster())
)
with st.expander("Role, instruction and options", icon=":material/tune:"):
    draw_plan(protocol)
# On a phone they stand below each other: who checks and what it costs comes before the button.
choice, expected, button = st.columns([5, 6, 4], vertical_alignment="bottom")
with button:
    st.button(
        "Check",
        key="new.check",
        type="primary",
        icon=":material/gavel:",
        shortcut="Ctrl+Enter",
        on_click=start_check,
        width="stretch",
    )
with choice:
    roster = draw_roster_choice("new.roster", project_roster())
with expected:
    st.caption(expected_words(roster, sources))
draw_roster_keys(roster, "new")
problem = st.session_state.pop("new.problem", "")
if problem:
    st.error(escaped(problem), icon=":material/error:")
draw_prepared()
