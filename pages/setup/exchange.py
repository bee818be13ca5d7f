"""Import / export: cases, gold answers and suggestions from files, and answers into files."""

from components.exchange import draw_export, draw_import
from components.frame import page_title

page_title("Import / export", "Exchange cases, answers or whole projects with other tools.")
draw_import()
draw_export()
