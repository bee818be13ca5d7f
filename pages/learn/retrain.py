"""Retrain: the training data, a training under way, the candidate beside the active version."""

from components.app.frame import page_title
from components.app.state import answers_mark
from components.learn.retrain import draw_doubts, draw_gain, draw_material, draw_training
from components.learn.versions import draw_versions

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
