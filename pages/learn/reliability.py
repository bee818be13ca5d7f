"""Reliability: how often each agent is right, alone and together with the others."""

from components.app.frame import draw_page_title, stop_for_blind
from components.app.sample import draw_sample_offer
from components.measure.reliability import draw_reliability, draw_theory
from components.measure.reliability_weeks import draw_weeks
from components.review.ground_truth import draw_truth_line

draw_page_title(
    "Reliability",
    "How often each agent is right by what people decided, on which kinds of cases, and what the "
    "agents come to together.",
)
stop_for_blind()
draw_sample_offer("pages/learn/reliability.py")
draw_truth_line()
draw_reliability()
draw_weeks()
draw_theory()
