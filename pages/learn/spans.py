"""Spans: what people's marks teach about which words to mark, and the examples taken from them."""

from components.frame import page_title
from components.span_learning import draw_marked, material
from components.span_learning_examples import draw_examples
from components.span_learning_member import draw_members
from components.span_learning_threshold import draw_threshold

page_title(
    "Spans",
    "The wrong words that people mark teach the machine from when to mark a word, and serve "
    "language models as examples.",
)
found = material()
draw_marked(found)
draw_threshold(found)
draw_members(found)
draw_examples(found)
