"""The debate of a run that has ended: every turn with its quotes as buttons into their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.asides import after, asides
from components.audit_rows import has_audit
from components.debate_calls import silence_words
from components.evidence import Place, draw_place_button
from components.markup import Html, element, joined
from components.rounds import MOST_UNFOLDED, Round, rounds_of
from components.show import show
from components.state_panel import contested_words
from components.trace import quote_line, turn_html
from components.turn_words import WHAT_SIGNALS_ARE, round_in_short, signals_counted
from components.words import QUOTE_SIGNS, QUOTE_WORDS, escaped
from core.debate.signals import Past, Signal, signals_of
from core.progress import Progress
from core.records import Quote, Turn


def draw_debate(progress: Progress, key: str, pasts: Mapping[str, Past] | None = None) -> None:
    """All turns by rounds, each with its signals; a quote that was found opens where it stands."""
    if not progress.turns:
        st.caption(escaped(silence_words(progress)))
    elif has_audit(progress):
        st.caption(f"The debate is about {contested_words(progress)}.")
    turns = sorted(progress.turns, key=lambda turn: turn.number)
    debaters = list(dict.fromkeys(turn.debater for turn in turns))
    signals = signals_of(progress, pasts)
    if turns:
        st.caption(escaped(signals_counted(signals, debaters)), help=WHAT_SIGNALS_ARE)
    _draw_rounds(turns, signals, asides(progress), key)


@st.fragment  # a round that is unfolded, or a source that is opened, draws nothing else anew
def _draw_rounds(
    turns: Sequence[Turn],
    signals: Sequence[Signal],
    placed: Mapping[int, Sequence[Html]],
    key: str,
) -> None:
    debaters = list(dict.fromkeys(turn.debater for turn in turns))
    numbers = [turn.number for turn in turns]
    _draw_asides(after(placed, 0, numbers[0] if numbers else None))
    at = 0  # how many turns stand before; a trace from elsewhere may number two alike
    for number, one in enumerate(rounds_of(turns), start=1):
        if one.sides:
            show(element("div", one.sides, class_="cp-sides", dir="auto"))
        is_last = at + len(one.turns) == len(turns)
        place, is_shown = _place_of(one, len(turns), f"{key}.round.{number}", is_last=is_last)
        for turn in one.turns:
            at += 1
            if is_shown:
                following = numbers[at] if at < len(numbers) else None
                with place:
                    _draw_turn(turn, debaters, signals, f"{key}.{at}")
                    _draw_asides(after(placed, turn.number, following))


def _place_of(one: Round, turns: int, key: str, *, is_last: bool) -> tuple[DeltaGenerator, bool]:
    """Where a round's turns are drawn, and whether they are: not before it is unfolded.

    Of a long debate all rounds but the last are folded.
    """
    if turns <= MOST_UNFOLDED:
        show(element("div", one.heading, class_="cp-quiet"))
        return st.container(), True
    fold = st.expander(
        escaped(round_in_short(one.heading, one.turns)),
        expanded=is_last,
        key=key,
        on_change="rerun",
    )
    return fold, bool(fold.open)


def _draw_turn(turn: Turn, debaters: Sequence[str], signals: Sequence[Signal], key: str) -> None:
    own = [signal.words for signal in signals if signal.turn == turn.number]
    show(turn_html(turn, debaters.index(turn.debater) + 1, with_quotes=False, signals=own))
    if not turn.quotes:
        return
    with st.container(key=f"cp-quotes-{key}", horizontal=True):
        for number, quote in enumerate(turn.quotes):
            if quote.start is None:
                show(quote_line(quote))
            else:
                draw_place_button(
                    _place(quote, quote.start),
                    f"{key}.{number}",
                    sign=QUOTE_SIGNS[quote.status],
                    about=QUOTE_WORDS[quote.status],
                )


def _draw_asides(pieces: Sequence[Html]) -> None:
    if pieces:
        show(joined(pieces))


def _place(quote: Quote, start: int) -> Place:
    end = quote.end or start
    return Place(quote.source_id, quote.source, quote.page, start, end, quote.text)
