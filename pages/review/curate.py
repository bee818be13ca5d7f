"""Adjudicate: where people differ, what was flagged, and what was settled."""

from components.app.frame import page_title
from components.review.review_queue import draw_settling

page_title("Adjudicate", "Settle cases where reviewers differ or asked for a lead.")
draw_settling()
