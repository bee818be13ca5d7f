"""Label: one item of the review queue, then the next."""

import streamlit as st

from components.app.frame import ask_name, draw_page_title, has_role
from components.review.review_item import draw_item

heading = st.container()
if ask_name() and has_role("annotator", "answer"):
    draw_item(st.query_params.get("case", ""))
else:
    with heading:
        draw_page_title("Label")
