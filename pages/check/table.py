"""A table of claims that was checked: its results as they come."""

import streamlit as st

from components.batch import draw_batch
from components.frame import page_title

page_title("Checked table")
draw_batch(st.query_params.get("batch", ""))
