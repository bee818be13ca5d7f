"""Span tuning: what people's marks teach about which words to mark, with the examples from them."""

from components.frame import page_title
from components.span_learning import draw_marked, draw_members, draw_threshold, material
from components.span_learning_examples import draw_examples

page_title(
    "Span tuning",
    "Marked words set the threshold for marking, and serve as examples for language models.",
)
found = material()
draw_marked(found)
draw_threshold(found)
draw_members(found)
draw_examples(found)
