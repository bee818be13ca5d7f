"""Review: the queue of items for people, what each would teach, and the next one."""

from components.app.frame import page_title
from components.review.review_queue import draw_list, draw_progress, draw_start

page_title("Review", "Items for review, the most informative first.")
draw_progress()
queue_filter = draw_start()
draw_list(queue_filter)
