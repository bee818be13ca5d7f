"""Theory: what more agents and more debate can bring, by equations and by one's own runs."""

from components.frame import page_title
from components.theory import draw_theory

page_title(
    "Theory",
    "What more agents and more debate can bring: equations to try out, started at what your own "
    "runs over decided cases measured.",
)
draw_theory()
