"""History: all runs, filtered by words, document, person, dates, verdict and protocol."""

from components.app.frame import draw_page_title
from components.check.history import draw_filters, draw_runs_page
from components.report import draw_report_button
from components.setup.import_export import draw_trace_import

draw_page_title("History", "Every check of this project, newest first.")
run_filter = draw_filters()
if draw_runs_page(run_filter):
    draw_report_button(run_filter)
draw_trace_import()
