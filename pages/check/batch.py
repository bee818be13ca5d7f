"""Batch check: a table of claims in, a table of verdicts out, a run for each row."""

from components.app.frame import draw_page_title, has_role
from components.check.batch import draw_batches, draw_new_table

draw_page_title(
    "Batch check",
    "A table with a column “claim”, and optionally “question”, “document” (names of library files, "
    "separated by semicolons) and “context” (the source's text itself).",
)
if has_role("annotator", "check a table"):
    draw_new_table()
draw_batches()
