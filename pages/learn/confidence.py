"""Calibration: how often verdicts at each level were right, and which are left to people."""

from components.confidence import draw_confidence
from components.frame import page_title

page_title(
    "Calibration",
    "How often verdicts at each level of confidence were right, and which of them this project "
    "answers by itself.",
)
draw_confidence()
