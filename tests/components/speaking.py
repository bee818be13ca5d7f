"""Turns under way, as a page is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.run.transcript import OpenTurn, render_rounds, split_rounds
from components.widgets.html import Html, join_html
from core.debate.signals import DebateSignal
from core.schema.events import TurnStarted
from core.schema.records import Stance, Turn
from core.schema.rosters import TurnMode


def under_way(
    number: int,
    debater: str,
    words: str = "",
    *,
    manner: TurnMode = "debate",
    round_: int = 1,
    about: str = "",
    assigned: Stance | None = None,
) -> dict[int, OpenTurn]:
    """The turn by its number."""
    asked = TurnStarted(1.0, debater, "m", number, round_, manner, about, assigned)
    return {number: OpenTurn(asked, words)}


def debate_html(
    turns: Sequence[Turn],
    speaking: Mapping[int, OpenTurn] | None = None,
    signals: Sequence[DebateSignal] = (),
    placed: Mapping[int, Sequence[Html]] | None = None,
) -> Html:
    """All rounds of a debate as one piece."""
    return join_html(render_rounds(split_rounds(turns, speaking), signals, placed))
