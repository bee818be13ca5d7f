"""Benchmarks: measure models and protocols on labelled cases, and read what was measured."""

from components.app.frame import draw_page_title, stop_for_blind
from components.measure.benchmarks import draw_benchmarks, draw_new_benchmark
from components.measure.paper_tables import draw_paper_tables

draw_page_title(
    "Benchmarks",
    "How often models and protocols are right on labelled cases: your own, a file’s, or a public "
    "set’s.",
)
stop_for_blind()
draw_benchmarks()
draw_new_benchmark()
draw_paper_tables()
