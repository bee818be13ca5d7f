"""Adjudicate: cases where people differ or asked for a lead, and settled ones."""

from components.app.frame import page_title
from components.review.review_queue import draw_settling

page_title("Adjudicate", "Settle cases where reviewers differ or asked for a lead.")
draw_settling()
