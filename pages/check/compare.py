"""Compare: check one case in several ways at once, or see two of its runs side by side."""

import streamlit as st

from components.app import state
from components.app.frame import draw_page_title, has_role, stop_before_answer
from components.check.compare import (
    draw_case_comparison,
    draw_earlier_comparisons,
    draw_new_comparison,
    draw_side_by_side,
)
from components.run.run_view import load_run
from components.widgets.controls import draw_link
from components.widgets.wording import clip_text, escape_markdown

if "before" in st.query_params or "after" in st.query_params:
    draw_page_title("Side by side")
    before = load_run(st.query_params.get("before", ""))
    after = load_run(st.query_params.get("after", ""))
    if before is None or after is None:
        st.info(
            "One of the two runs is not here. Open a run and follow its link “Compare with the "
            "previous check”."
        )
        st.stop()
    stop_before_answer(before[1], after[1])
    draw_side_by_side(before, after)
    st.stop()

draw_page_title(
    "Compare", "One text, checked by several protocols and rosters at once, within one budget."
)

case_id = st.query_params.get("case", "")
with state.open_store() as store:
    case = store.cases.get(case_id) if case_id else None
    if case is not None and not state.can_see_project(store, case.project_id):
        case = None
if case_id and case is None:
    st.info("There is no case at this link here.")
elif case is not None:
    draw_link("pages/check/compare.py", "New comparison", "arrow_back")
    st.markdown(f"**{escape_markdown(clip_text(case.response, 300))}**")
    if case.question:
        st.caption(escape_markdown(clip_text(case.question, 300)))
    stop_before_answer(case)
    draw_case_comparison(case)
    if has_role("annotator", "compare ways to check"):
        with st.expander("Check it another way", icon=":material/add:"):
            draw_new_comparison(case)
    st.stop()
if has_role("annotator", "compare ways to check"):
    draw_new_comparison(None)
draw_earlier_comparisons()
