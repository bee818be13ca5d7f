"""A roster while it is being written: what stands in its fields, to and from a sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from core.agents.sheet_rules import DEBATERS, PANELISTS, wrong
from core.agents.shipped import COOL, TURN_TOKENS, WARM, WRITING_TOKENS
from core.seats import PANEL, PANEL_READERS, READERS, DebaterSeat, RosterSheet, Seat

KEY = "rosters.edit."
BEFORE = (
    "retriever", "segmenter", "tool picker", "reflector", "image reader", "context writer",
)  # fmt: skip
AFTER = ("judge", "span extractor", "span adjudicator")
SILENT = ("retriever", "segmenter")  # they stay as they are when one model gets every role
MODEL = "model"
TEXTS = ("model", "api_base", "key_name")
FRACTIONS = ("temperature", "price_in", "price_out")
NUMBERS = ("temperature", "max_tokens", "window", "seconds", "price_in", "price_out")
SEAT_FIELDS = (*TEXTS, *NUMBERS)
Place = tuple[str, str]  # of a field: its seat, empty for the whole roster, and its name


def fill(sheet: RosterSheet) -> None:
    """Put a sheet into the fields; call it from a callback."""
    forget()
    for name in ("name", "words", "prompts"):
        st.session_state[f"{KEY}{name}"] = getattr(sheet, name)
    st.session_state[f"{KEY}debaters"] = list(range(len(sheet.debaters)))
    for number, debater in enumerate(sheet.debaters):
        st.session_state[key_of(f"debater.{number}", "name")] = debater.name
    st.session_state[f"{KEY}panel"] = len(sheet.span_panel)
    st.session_state[f"{KEY}sees"] = sheet.panel_sees_evidence
    for place, (_, seat) in zip(places(), sheet.seats(), strict=True):
        _fill_seat(place, seat)


def _fill_seat(place: str, seat: Seat) -> None:
    """What a built-in seat does not say is what its role usually has (CEDA 5.2)."""
    who = MODEL if seat.model else "built-in"
    shown = seat
    if place.startswith("debater.") and not seat.model:
        order = _numbers().index(_number(place))
        who = seat.reader or READERS[order % len(READERS)]
        shown = replace(seat, temperature=(COOL, WARM)[order % 2], max_tokens=TURN_TOKENS)
    if place.startswith(PANEL) and not seat.model:
        who, shown = seat.reader, replace(seat, max_tokens=WRITING_TOKENS)
    st.session_state[key_of(place, "who")] = who
    for name in SEAT_FIELDS:
        value = getattr(shown, name)
        is_fraction = name in FRACTIONS and value is not None
        st.session_state[key_of(place, name)] = float(value) if is_fraction else value


def forget() -> None:
    """Empty all fields."""
    for name in [str(name) for name in st.session_state if str(name).startswith(KEY)]:
        del st.session_state[name]


def places() -> list[str]:
    """The seats in the order of `RosterSheet.seats`; debaters by number, names may change."""
    panel = (f"{PANEL}{number}" for number in range(1, _panelists() + 1))
    return [*BEFORE, *(f"debater.{number}" for number in _numbers()), *AFTER, *panel]


def typed_sheet() -> RosterSheet:
    """The roster as it stands in the fields.

    Raises:
        InputError: a language model is to play and has no name.
    """
    seats = {place: _typed_seat(place) for place in places()}
    debaters = [place for place in seats if place.startswith("debater.")]
    named: dict[str, Any] = {place.replace(" ", "_"): seats[place] for place in (*BEFORE, *AFTER)}
    return RosterSheet(
        text("name"),
        text("words"),
        debaters=tuple(DebaterSeat(text(f"{place}.name"), seats[place]) for place in debaters),
        prompts=text("prompts"),
        span_panel=tuple(seats[place] for place in seats if place.startswith(PANEL)),
        panel_sees_evidence=bool(st.session_state.get(f"{KEY}sees", True)),
        **named,
    )


def _typed_seat(place: str) -> Seat:
    who = st.session_state.get(key_of(place, "who"))
    if who != MODEL:
        return Seat(reader=str(who) if who in PANEL_READERS else "")
    typed: dict[str, Any] = {name: text(f"{place}.{name}") for name in TEXTS}
    if not typed["model"]:
        example = "a name such as openai/gpt-4o-mini"
        raise wrong(f"{role_of(place)}, model", example, "none; write one or choose built-in")
    usual = Seat()
    for name in NUMBERS:
        value = st.session_state.get(key_of(place, name))
        typed[name] = getattr(usual, name) if value is None else value
    return Seat(**typed)


def role_of(place: str) -> str:
    """The role as traces and messages name it."""
    return f"debater {text(f'{place}.name')}" if place.startswith("debater.") else place


def place_of(message: str) -> Place | None:
    """Which field a refusal of a sheet speaks of; None where it is none of ours."""
    begins: dict[str, Place] = {f"Roster, {name}: ": ("", name) for name in ("name", "words")}
    debaters = [place for place in places() if place.startswith("debater.")]
    for number, place in enumerate(debaters, 1):
        begins[f"Roster, debater {number}, name: "] = (place, "name")
    for place in places():
        role = role_of(place)
        begins |= {f"Roster, {role}, {name}: ": (place, name) for name in SEAT_FIELDS}
        begins[f"Roster, {role}: "] = (place, "price_in")  # the rule that both prices are there
        begins[f"Roster “{text('name')}”, {role}: "] = (place, "model")
    return next((place for begin, place in begins.items() if message.startswith(begin)), None)


def give_everywhere(model: str, api_base: str, key_name: str) -> None:
    """Seat one model in every speaking role; call it from a callback.

    The window and the prices that stand there were another model's.
    """
    given = {"model": model, "api_base": api_base, "key_name": key_name}
    given_numbers = {"window": 0, "price_in": None, "price_out": None}
    for place in places():
        if place not in SILENT:
            for name, value in {"who": MODEL, **given, **given_numbers}.items():
                st.session_state[key_of(place, name)] = value


def change_debaters(away: str = "") -> str:
    """Add a debater and say its place, or take out the one at `away`; call it from a callback."""
    if away:
        st.session_state[f"{KEY}debaters"] = [n for n in _numbers() if n != _number(away)]
        return ""
    number = max(_numbers()) + 1
    place = f"debater.{number}"
    st.session_state[f"{KEY}debaters"] = [*_numbers(), number]
    st.session_state[key_of(place, "name")] = ""
    _fill_seat(place, Seat())
    return place


def may_change_debaters() -> tuple[bool, bool]:
    """Whether another debater may be added, and whether one may be taken out."""
    low, high = DEBATERS
    return len(_numbers()) < high, len(_numbers()) > low


def change_panel(count: int) -> None:
    """Have so many seats in the panel that marks words, 0 for none; call it from a callback."""
    for number in range(_panelists(), count):
        reader = PANEL_READERS[number % len(PANEL_READERS)]
        _fill_seat(f"{PANEL}{number + 1}", Seat(reader=reader))
    st.session_state[f"{KEY}panel"] = count


def panel_sizes() -> tuple[int, int]:
    """How many seats one more and one fewer make; the same number where there is no such step."""
    low, high = PANELISTS
    now = _panelists()
    return (low if now < low else min(high, now + 1)), (0 if now <= low else now - 1)


def text(name: str) -> str:
    """What stands in a text field, by its key after `KEY`."""
    return str(st.session_state.get(f"{KEY}{name}") or "").strip()


def key_of(place: str, name: str) -> str:
    """The key of a seat's field."""
    return f"{KEY}{place}.{name}"


def _numbers() -> Sequence[int]:
    numbers: Sequence[int] = st.session_state.get(f"{KEY}debaters", ())
    return numbers


def _panelists() -> int:
    return int(st.session_state.get(f"{KEY}panel") or 0)


def _number(place: str) -> int:
    return int(place.removeprefix("debater."))
