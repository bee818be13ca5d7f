"""Agreement: how far people agree with each other and with the machine."""

from components.agreement import draw_agreement
from components.frame import page_title

page_title("Agreement", "How far people agree with each other and with the machine.")
draw_agreement()
