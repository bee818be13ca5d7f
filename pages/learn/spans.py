"""Span tuning: what people's marks teach about which words to mark, with the examples from them."""

from components.app.frame import page_title
from components.learn.span_tuning import (
    draw_examples,
    draw_marked,
    draw_members,
    draw_threshold,
    material,
)

page_title(
    "Span tuning",
    "Marked words set the threshold for marking, and serve as examples for language models.",
)
found = material()
draw_marked(found)
draw_threshold(found)
draw_members(found)
draw_examples(found)
