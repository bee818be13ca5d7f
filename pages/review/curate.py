"""Adjudicate: where people differ, what was flagged, and what was settled."""

from components.frame import page_title
from components.settling import draw_settling

page_title(
    "Adjudicate", "Where people differ or asked for a lead, one answer is made the right one."
)
draw_settling()
