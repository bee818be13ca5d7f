"""Library: files uploaded once and used in many checks."""

from components.app.frame import draw_page_title, has_role
from components.check.new_check import draw_sources, draw_uploader
from components.setup.project import draw_library

draw_page_title(
    "Library", "Upload once, use in many checks. Identical files are read and indexed once."
)
if has_role("annotator", "add files"):
    draw_sources(draw_uploader("library.upload", "Add documents and images"))
draw_library()
