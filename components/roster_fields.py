"""The fields of a roster's seats, one seat at a time, each with what is wrong with it below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from components.roster_draft import (
    KEY,
    MODEL,
    NUMBERS,
    Place,
    change_debaters,
    change_panel,
    key_of,
    may_change_debaters,
    panel_sizes,
    places,
)
from components.roster_table import READER_WORDS
from components.words import escaped
from core.agents.sheet_rules import HIGHEST_PRICE, TEMPERATURE, WHOLE
from core.seats import PANEL, PANEL_READERS, READERS

SEAT = "rosters.seat"
IN_A_ROW = 3
TEXTS = {
    "model": ("Model", "provider/model as litellm names it, e.g. openai/gpt-4o-mini"),
    "api_base": ("Address", "Of an OpenAI-compatible server, usually ending in /v1; else empty"),
    "key_name": ("Name of its key", "E.g. OPENAI_API_KEY; empty for the usual one; never the key"),
}
NUMBER_WORDS = {
    "temperature": ("Temperature", "0 gives much the same answer each time"),
    "max_tokens": ("Longest reply (tokens)", "A debate turn in the paper has 100"),
    "window": ("Window (tokens)", "How much the model reads; 0: as litellm's list has it"),
    "seconds": ("Longest silence (seconds)", "The call counts as failed after it"),
    "price_in": ("Price in ($ a million tokens)", "Empty: litellm's list decides; 0: free"),
    "price_out": ("Price out ($ a million tokens)", "Empty: litellm's list decides; 0: free"),
}
ROLE_HELP = {
    "retriever": "Finds passages; a model here is one for embeddings.",
    "segmenter": "Cuts a response into statements.",
    "tool picker": "In an audit: picks the tool that checks a statement.",
    "reflector": "In an audit: looks over what was found, statement by statement.",
    "image reader": "Says what images show; the model must take images.",
    "context writer": "Sorts the evidence and shares it out among the debaters.",
    "judge": "Reads the debate and decides.",
    "span extractor": "Marks the words that do not hold.",
    "span adjudicator": "Keeps or drops each mark.",
}
PANEL_HELP = "Marks words by itself, and votes on what the other members mark."


def draw_seats(refused: Mapping[Place, str]) -> None:
    """The choice of a seat, its fields, and how many debaters there are."""
    seats = places()
    if st.session_state.get(SEAT) not in seats:
        st.session_state[SEAT] = seats[0]
    place = st.selectbox(
        "Seat",
        seats,
        format_func=_seat_words(seats).__getitem__,
        key=SEAT,
        persist_state="session",
        help="Each seat has fields of its own; what you typed stays while you go through them.",
    )
    _draw_seat(place or seats[0], refused)
    more, fewer = may_change_debaters()
    with st.container(horizontal=True):
        if more:
            st.button("Add a debater", key="rosters.more", on_click=_add_debater)
        if fewer and place and place.startswith("debater."):
            st.button("Take this one out", key="rosters.fewer", on_click=_drop, args=(place,))
        _draw_panel_size(seats)


def _draw_panel_size(seats: Sequence[str]) -> None:
    """How many members the panel that marks words has, and what its models see."""
    now = sum(place.startswith(PANEL) for place in seats)
    larger, smaller = panel_sizes()
    if larger != now:
        words = "Add a panel seat" if now else "Mark words by a panel"
        st.button(
            words, key="rosters.panel.more", on_click=change_panel, args=(larger,), help=PANEL_HELP
        )
    if now:
        words = "Take the last panel seat out" if smaller else "Mark words without a panel"
        st.button(words, key="rosters.panel.fewer", on_click=change_panel, args=(smaller,))
        st.checkbox(
            "The panel's models see the evidence", key=f"{KEY}sees", persist_state="session"
        )


def _seat_words(seats: Sequence[str]) -> dict[str, str]:
    """Each seat's label; of the role alone, because a choice whose label changes is lost."""
    debaters = [place for place in seats if place.startswith("debater.")]
    words = {place: place[:1].upper() + place[1:] for place in seats}
    return words | {place: f"Debater {number}" for number, place in enumerate(debaters, 1)}


def _add_debater() -> None:
    st.session_state[SEAT] = change_debaters()


def _drop(place: str) -> None:
    change_debaters(away=place)
    st.session_state[SEAT] = next(p for p in places() if p.startswith("debater."))


def _draw_seat(place: str, refused: Mapping[Place, str]) -> None:
    """Who sits there, and the model's fields when it is one."""
    is_debater = place.startswith("debater.")
    if is_debater:
        st.text_input("Name in the debate", key=key_of(place, "name"), persist_state="session")
        draw_refusal(place, "name", refused)
    st.selectbox(
        "Played by",
        (*_readers(place), MODEL),
        format_func={MODEL: "a language model", "built-in": "built-in", **READER_WORDS}.__getitem__,
        key=key_of(place, "who"),
        help=PANEL_HELP
        if place.startswith(PANEL)
        else ROLE_HELP.get(place, "Argues from its share of the evidence."),
        persist_state="session",
    )
    if st.session_state.get(key_of(place, "who")) != MODEL:
        return
    for name, (label, words) in TEXTS.items():
        st.text_input(label, key=key_of(place, name), help=words, persist_state="session")
        draw_refusal(place, name, refused)
    hidden = ("temperature", "max_tokens") if place == "retriever" else ()
    names = [name for name in NUMBERS if name not in hidden]
    for start in range(0, len(names), IN_A_ROW):  # row by row, so that a phone keeps their order
        for name, column in zip(names[start:], st.columns(IN_A_ROW), strict=False):
            with column:
                _draw_number(place, name)
                draw_refusal(place, name, refused)


def _readers(place: str) -> tuple[str, ...]:
    """The built-in agents that may sit there."""
    if place.startswith(PANEL):
        return PANEL_READERS
    return READERS if place.startswith("debater.") else ("built-in",)


def _draw_number(place: str, name: str) -> None:
    label, words = NUMBER_WORDS[name]
    key = key_of(place, name)
    if name in WHOLE:
        least, most = WHOLE[name]
        st.number_input(label, least, most, key=key, help=words, persist_state="session")
        return
    if name == "temperature":
        low, high = TEMPERATURE
        st.number_input(
            label, low, high, step=0.1, format="%.6g", key=key, help=words, persist_state="session"
        )
        return
    st.number_input(
        label,
        0.0,
        HIGHEST_PRICE,
        value=None,
        step=0.1,
        format="%.6g",
        key=key,
        help=words,
        persist_state="session",
    )


def draw_refusal(place: str, name: str, refused: Mapping[Place, str]) -> None:
    """What is wrong with a field, if something is."""
    if (place, name) in refused:
        st.error(escaped(refused[place, name]))
