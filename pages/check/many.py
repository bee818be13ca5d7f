"""Check many: a table of claims in, a table of verdicts out, each row a run of its own."""

import streamlit as st

from components.frame import page_title
from components.many import draw_new_table
from components.many_results import draw_batch, draw_batches

batch_id = st.query_params.get("batch", "")
if batch_id:
    page_title("Check many")
    draw_batch(batch_id)
else:
    page_title(
        "Check many",
        "A table with a column “claim”, and if you like “question” and “document” (names of "
        "library files, several parted by semicolons).",
    )
    draw_new_table()
    draw_batches()
