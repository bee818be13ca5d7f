"""Adjudicate: cases where people differ or asked for a lead, and settled ones."""

from components.app.frame import draw_page_title, has_role
from components.review.review_queue import draw_adjudication_list

draw_page_title("Adjudicate", "Settle cases where reviewers differ or asked for a lead.")
if has_role("lead", "settle cases"):
    draw_adjudication_list()
