"""Checked table: the results of a batch check as they come."""

import streamlit as st

from components.app.frame import page_title
from components.check.batch import draw_batch

page_title("Checked table")
draw_batch(st.query_params.get("batch", ""))
