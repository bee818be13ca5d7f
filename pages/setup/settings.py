"""Settings: your name, the limits, and what works here."""

from components.frame import page_title
from components.settings import draw_health, draw_limits, draw_person

page_title("Settings")
draw_person()
draw_limits()
draw_health()
