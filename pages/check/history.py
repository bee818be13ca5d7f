"""History: every run, found by words, label, status, protocol, or whether people corrected it."""

from components.batch import draw_report_button
from components.exchange import draw_trace_import
from components.frame import page_title
from components.history import draw_filters, draw_page

page_title("History", "Every check of this project, newest first.")
wanted = draw_filters()
if draw_page(wanted):
    draw_report_button(wanted)
draw_trace_import()
