"""Settings: your name, keys, rosters, reader, web search, the limits, and what works here."""

from components.frame import page_title
from components.key_table import draw_keys
from components.reader_choice import draw_readers
from components.rosters import draw_rosters
from components.settings import draw_health, draw_limits, draw_person
from components.web_search import draw_web_search

page_title("Settings")
draw_person()
draw_keys()
draw_rosters()
draw_readers()
draw_web_search()
draw_limits()
draw_health()
