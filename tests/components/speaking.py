"""Turns under way, as a page is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.run.transcript import Speaking, rounds_html, rounds_of
from components.widgets.html import Html, joined
from core.debate.signals import Signal
from core.schema.events import TurnStarted
from core.schema.records import Stance, Turn
from core.schema.rosters import Manner


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


def debate_html(
    turns: Sequence[Turn],
    speaking: Mapping[int, Speaking] | None = None,
    signals: Sequence[Signal] = (),
    placed: Mapping[int, Sequence[Html]] | None = None,
) -> Html:
    """All rounds of a debate as one piece."""
    return joined(rounds_html(rounds_of(turns, speaking), signals, placed))
