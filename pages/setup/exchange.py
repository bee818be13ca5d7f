"""Import / export: cases, gold answers and suggestions from files, and answers into files."""

from components.app.frame import draw_page_title, has_role
from components.review.check_unchecked import draw_unchecked
from components.review.ground_truth import draw_truth_line
from components.setup.import_export import draw_export, draw_import

draw_page_title("Import / export", "Exchange cases, answers or whole projects with other tools.")
draw_truth_line()
draw_import()
if has_role("lead"):
    draw_unchecked()
draw_export()
