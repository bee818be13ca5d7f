"""Retrain: the training data, a training under way, the candidate beside the active version."""

from components.app.frame import draw_page_title
from components.app.sample import draw_sample_offer
from components.app.state import get_answers_mark
from components.learn.retrain import (
    draw_doubts,
    draw_gain,
    draw_material,
    draw_next_training_step,
    draw_training,
)
from components.learn.versions import draw_versions
from components.review.ground_truth import draw_truth_line

draw_page_title(
    "Retrain",
    "People's corrections retrain the classifier that turns the judge's text into a label and a "
    "probability. Held-out cases are never trained on.",
)
draw_sample_offer("pages/learn/retrain.py")
draw_next_training_step()
draw_truth_line()
draw_material()
mark = get_answers_mark()
draw_doubts(mark)
draw_gain(mark)
draw_training()
draw_versions()
