"""Retrain: what there is to learn from, training under way, the candidate beside the active one."""

from components.frame import page_title
from components.kept_results import answers_mark
from components.learning_material import draw_material
from components.retrain import draw_doubts, draw_gain, draw_training
from components.versions import draw_versions

page_title(
    "Retrain",
    "People's corrections retrain the classifier that turns the judge's text into a label and a "
    "probability. Held-out cases are never trained on.",
)
draw_material()
mark = answers_mark()
draw_doubts(mark)
draw_gain(mark)
draw_training()
draw_versions()
