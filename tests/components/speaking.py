"""Turns under way, as a page is told of them."""

from __future__ import annotations

from components.run.transcript import Speaking
from core.events import TurnStarted
from core.records import Stance
from core.seats import Manner


def under_way(
    number: int,
    debater: str,
    words: str = "",
    *,
    manner: Manner = "debate",
    round_: int = 1,
    about: str = "",
    assigned: Stance | None = None,
) -> dict[int, Speaking]:
    """The turn by its number."""
    asked = TurnStarted(1.0, debater, "m", number, round_, manner, about, assigned)
    return {number: Speaking(asked, words)}
