"""Span tuning: learn from people's marks which words to mark, and use them as examples."""

from components.app.frame import draw_page_title
from components.learn.span_tuning import (
    draw_examples,
    draw_marked,
    draw_members,
    draw_threshold,
    load_span_material,
)
from components.review.ground_truth import draw_truth_line

draw_page_title(
    "Span tuning",
    "Marked words set the threshold for marking, and serve as examples for language models.",
)
draw_truth_line()
marks = load_span_material()
draw_marked(marks)
draw_threshold(marks)
draw_members(marks)
draw_examples(marks)
