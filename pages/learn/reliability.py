"""Reliability: how far each agent can be trusted, who makes up for whom, and what they come to."""

from components.app.frame import page_title
from components.measure.reliability import draw_reliability, draw_theory

page_title(
    "Reliability",
    "How often each agent is right by what people decided, on which kinds of cases, and what the "
    "agents come to together.",
)
draw_reliability()
draw_theory()
