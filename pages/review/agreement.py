"""Agreement: how far people agree with each other and with the machine."""

from components.app.frame import draw_page_title
from components.measure.agreement import draw_agreement, draw_work_times

draw_page_title("Agreement", "How far people agree with each other and with the machine.")
draw_agreement()
draw_work_times()
