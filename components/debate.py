"""The debate of a run that has ended: every turn with its quotes as buttons into their sources."""

from __future__ import annotations

import streamlit as st

from components.audit_rows import has_audit
from components.debate_calls import silence_words
from components.evidence import Place, draw_place_button
from components.markup import element
from components.show import show
from components.state_panel import contested_words
from components.trace import quote_line, turn_html
from components.turn_words import round_words
from components.words import QUOTE_SIGNS, QUOTE_WORDS, escaped
from core.progress import Progress
from core.records import Quote, Turn


def draw_debate(progress: Progress, key: str) -> None:
    """All turns by rounds; a quote that was found opens where it stands."""
    if not progress.turns:
        st.caption(escaped(silence_words(progress)))
    elif has_audit(progress):
        st.caption(f"The debate is about {contested_words(progress)}.")
    turns = sorted(progress.turns, key=lambda turn: turn.number)
    debaters = list(dict.fromkeys(turn.debater for turn in turns))
    shown_round = ""
    for turn in turns:
        if round_words(turn) != shown_round:
            shown_round = round_words(turn)
            show(element("div", shown_round, class_="cp-quiet"))
        show(turn_html(turn, debaters.index(turn.debater) + 1, with_quotes=False))
        _draw_quotes(turn, key)


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
