"""Compare: check one case in several ways at once, or see two of its runs side by side."""

import streamlit as st

from components.app import state
from components.app.frame import page_title
from components.check.compare import (
    draw_compared,
    draw_comparison,
    draw_comparisons,
    draw_new_comparison,
)
from components.run.run_view import load_run
from components.widgets.controls import link
from components.widgets.wording import clipped, escaped

if "before" in st.query_params or "after" in st.query_params:
    page_title("Side by side")
    before = load_run(st.query_params.get("before", ""))
    after = load_run(st.query_params.get("after", ""))
    if before is None or after is None:
        st.info(
            "One of the two runs is not here. Open a run and follow its link “Compare with the "
            "previous check”."
        )
        st.stop()
    draw_comparison(before, after)
    st.stop()

page_title(
    "Compare", "One text, checked by several protocols and rosters at once, within one budget."
)

case_id = st.query_params.get("case", "")
with state.open_store() as store:
    case = store.cases.get(case_id) if case_id else None
    if case is not None and not state.may_see(store, case.project_id):
        case = None
if case_id and case is None:
    st.info("There is no case at this link here.")
elif case is not None:
    link("pages/check/compare.py", "New comparison", "arrow_back")
    st.markdown(f"**{escaped(clipped(case.response, 300))}**")
    if case.question:
        st.caption(escaped(clipped(case.question, 300)))
    draw_compared(case)
    with st.expander("Check it another way", icon=":material/add:"):
        draw_new_comparison(case)
    st.stop()
draw_new_comparison(None)
draw_comparisons()
