"""Label: one item of the review queue, then the next."""

import streamlit as st

from components.review.review_item import draw_item

draw_item(st.query_params.get("case", ""))
