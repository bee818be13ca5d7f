"""Project: its name and defaults, its members and their roles, its prompts."""

from components.app.frame import draw_page_title
from components.review.guidelines import draw_guideline_editor
from components.setup.project import draw_choice, draw_members, draw_record
from components.setup.prompts import draw_prompts

draw_page_title("Project", "People, defaults, library and cases that belong together.")
draw_choice()
draw_record()
draw_members()
draw_guideline_editor()
draw_prompts()
