"""Retrain: what there is to learn from, training under way, the candidate beside the active one."""

from components.frame import page_title
from components.retrain import draw_material, draw_training
from components.versions import draw_versions

page_title(
    "Retrain",
    "People's corrections retrain the classifier that turns the judge's text into a label and a "
    "probability. Held-out cases are never trained on.",
)
draw_material()
draw_training()
draw_versions()
