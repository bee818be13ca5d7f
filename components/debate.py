"""The debate of a run that has ended: every turn with its quotes as buttons into their sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.asides import after, asides
from components.audit_rows import has_audit
from components.debate_calls import silence_words
from components.evidence import Place, draw_place_button
from components.markup import Html, element, joined
from components.show import show
from components.state_panel import contested_words
from components.trace import quote_line, turn_html
from components.turn_words import round_in_short, round_words, signals_counted
from components.words import QUOTE_SIGNS, QUOTE_WORDS, escaped
from core.debate.signals import Past, signals_of
from core.progress import Progress
from core.records import Quote, Turn

WHAT_SIGNALS_ARE = (
    "Looked for in every turn by our code, after ColMAD 2.2: quotes that stand in no source, a "
    "tone surer than the debater’s record or quotes allow, turns beside the point, and insisting "
    "without a new quote. A signal is a reason to look at the turn; the verdict does not depend "
    "on it."
)

MOST_UNFOLDED = 15  # turns; beyond them nobody finds a round by scrolling


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
    placed, numbers = asides(progress), [turn.number for turn in turns]
    following = dict(zip(numbers, [*numbers[1:], None], strict=False))
    _draw_asides(after(placed, 0, numbers[0] if numbers else None))
    for turns_of_round in (list(group) for _, group in groupby(turns, key=round_words)):
        with _round(turns_of_round, turns):
            for turn in turns_of_round:
                own = [signal.words for signal in signals if signal.turn == turn.number]
                place = debaters.index(turn.debater) + 1
                show(turn_html(turn, place, with_quotes=False, signals=own))
                _draw_quotes(turn, key)
                _draw_asides(after(placed, turn.number, following[turn.number]))


def _round(own: Sequence[Turn], turns: Sequence[Turn]) -> DeltaGenerator:
    """Where a round's turns are drawn: of a long debate all rounds but the last are folded."""
    if len(turns) <= MOST_UNFOLDED:
        show(element("div", round_words(own[0]), class_="cp-quiet"))
        return st.container()
    return st.expander(escaped(round_in_short(own)), expanded=own[-1] is turns[-1])


def _draw_asides(pieces: Sequence[Html]) -> None:
    if pieces:
        show(joined(pieces))


def _draw_quotes(turn: Turn, key: str) -> None:
    if not turn.quotes:
        return
    with st.container(key=f"cp-quotes-{turn.number}", horizontal=True):
        for number, quote in enumerate(turn.quotes):
            if quote.start is None:
                show(quote_line(quote))
            else:
                draw_place_button(
                    _place(quote, quote.start),
                    f"{key}.{turn.number}.{number}",
                    sign=QUOTE_SIGNS[quote.status],
                    about=QUOTE_WORDS[quote.status],
                )


def _place(quote: Quote, start: int) -> Place:
    end = quote.end or start
    return Place(quote.source_id, quote.source, quote.page, start, end, quote.text)
