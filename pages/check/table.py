"""Checked table: the results of a batch check as they come."""

import streamlit as st

from components.app.frame import draw_page_title
from components.check.batch import draw_batch

draw_page_title("Checked table")
draw_batch(st.query_params.get("batch", ""))
