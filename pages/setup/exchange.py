"""Import / export: cases, gold answers and suggestions from files, and answers into files."""

from components.exchange import draw_export, draw_import
from components.frame import page_title

page_title(
    "Import / export", "Cases and answers from other tools, and for them; whole projects too."
)
draw_import()
draw_export()
