"""One case to settle: everybody's version side by side, and the right answer."""

import streamlit as st

from components.adjudication import draw_settlement
from components.frame import page_title

page_title("Adjudicate a case")
draw_settlement(st.query_params.get("case", ""))
