"""A table of claims that was checked: its results as they come."""

import streamlit as st

from components.frame import page_title
from components.many_results import draw_batch

page_title("Checked table")
draw_batch(st.query_params.get("batch", ""))
