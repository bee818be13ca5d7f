"""Settings: your name, models, keys, reader, web search, the limits, and what works here."""

from components.app.frame import draw_page_title
from components.setup.rosters import draw_rosters
from components.setup.settings import (
    draw_health,
    draw_keys,
    draw_limits,
    draw_person,
    draw_readers,
    draw_web_search,
)

draw_page_title("Settings")
draw_person()
draw_rosters()
draw_keys()
draw_readers()
draw_web_search()
draw_limits()
draw_health()
