"""Two checks side by side: what was decided before and after, and what changed between."""

import streamlit as st

from components.compare import draw_comparison
from components.frame import page_title
from components.run_view import load_run

page_title("Side by side")
before = load_run(st.query_params.get("before", ""))
after = load_run(st.query_params.get("after", ""))
if before is None or after is None:
    st.info("One of the two runs is not here. Open a run and follow its link “Side by side”.")
    st.stop()
draw_comparison(before, after)
