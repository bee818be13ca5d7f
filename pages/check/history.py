"""History: every run, found by words, label, status, protocol, or whether people corrected it."""

from components.app.frame import page_title
from components.check.history import draw_filters, draw_page
from components.report import draw_report_button
from components.setup.import_export import draw_trace_import

page_title("History", "Every check of this project, newest first.")
wanted = draw_filters()
if draw_page(wanted):
    draw_report_button(wanted)
draw_trace_import()
