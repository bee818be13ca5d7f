"""Calibration: how often verdicts at each confidence were right, and which go to people."""

from components.app.frame import draw_page_title
from components.app.sample import draw_sample_offer
from components.measure.calibration import draw_calibration
from components.review.ground_truth import draw_truth_line

draw_page_title(
    "Calibration",
    "How often verdicts at each level of confidence were right, and which of them this project "
    "answers by itself.",
)
draw_sample_offer("pages/learn/calibration.py")
draw_truth_line()
draw_calibration()
