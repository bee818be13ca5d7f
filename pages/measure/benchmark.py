"""A benchmark: how far it is, its figures with intervals, and its errors."""

import streamlit as st

from components.app.frame import draw_page_title, stop_for_blind
from components.measure.benchmarks import draw_benchmark

draw_page_title("Benchmark")
stop_for_blind()
draw_benchmark(str(st.query_params.get("benchmark", "")))
