"""In and out: cases, gold answers and suggestions from files, and answers into files."""

from components.exchange_in import draw_import
from components.exchange_out import draw_export
from components.frame import page_title

page_title("In and out", "Cases and answers from other tools, and for them; whole projects too.")
draw_import()
draw_export()
