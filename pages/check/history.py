"""History: every run, found by words, label, status, protocol, or whether people corrected it."""

from components.frame import page_title
from components.history import draw_page
from components.history_filters import draw_filters
from components.report_many import draw_report_button
from components.trace_import import draw_trace_import

page_title("History", "Every check of this project, newest first.")
wanted = draw_filters()
if draw_page(wanted):
    draw_report_button(wanted)
draw_trace_import()
