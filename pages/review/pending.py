"""Review: the queue of items for people, what each would teach, and the next one."""

from components.app.frame import draw_page_title
from components.app.sample import draw_sample_offer
from components.review.check_unchecked import draw_unchecked
from components.review.review_queue import draw_filters_and_next, draw_list, draw_progress

draw_page_title("Review", "Items for review, the most informative first.")
draw_sample_offer("pages/review/pending.py")
draw_progress()
draw_unchecked()
queue_filter = draw_filters_and_next()
draw_list(queue_filter)
