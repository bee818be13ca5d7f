"""The fields of a roster that is being written, seat by seat, and a roster as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from components.widgets.controls import button
from components.widgets.html import Html, element, joined
from components.widgets.wording import escaped
from core.agents.roster_files import DEBATERS, HIGHEST_PRICE, PANELISTS, TEMPERATURE, WHOLE, wrong
from core.agents.rosters import COOL, TURN_TOKENS, WARM, WRITING_TOKENS
from core.llm.call import shown_address
from core.llm.limits import price_of
from core.llm.prompting import LANGUAGES, Prompt, PromptBook
from core.schema.rosters import PANEL, PANEL_READERS, READERS, DebaterSeat, RosterSheet, Seat

KEY = "rosters.edit."
BEFORE = (
    "retriever", "segmenter", "tool picker", "reflector", "image reader", "context writer",
)  # fmt: skip
AFTER = ("judge", "span extractor", "span adjudicator")
SILENT = ("retriever", "segmenter")  # they stay as they are when one model gets every role
MODEL = "model"
TEXT_FIELDS = ("model", "api_base", "key_name")
FRACTIONS = ("temperature", "price_in", "price_out")
NUMBERS = ("temperature", "max_tokens", "window", "seconds", "price_in", "price_out")
SEAT_FIELDS = (*TEXT_FIELDS, *NUMBERS)
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
    typed: dict[str, Any] = {name: text(f"{place}.{name}") for name in TEXT_FIELDS}
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


MILLION = 1_000_000
READER_WORDS = {
    "rules": "built-in value checker",
    "overlap": "built-in overlap reader",
    "entailment": "built-in entailment reader",
    "words": "built-in span reader",
}
PROMPTS: dict[str, tuple[str, ...]] = {
    "retriever": (),
    "segmenter": ("segment",),
    "tool picker": ("pick_tool",),
    "reflector": ("reflect",),
    "image reader": ("image_question", "image_reading"),
    "context writer": ("context",),
    "debater": ("debate",),
    "judge": ("judge",),
    "span extractor": ("spans",),
    "span adjudicator": ("span_vote",),
    "span panel": ("panel_spans", "panel_votes"),
}
HEADS = ("Role", "Played by", "Address", "Temp.", "Tokens", "Price", "Prompt")
NONE = "–"
LINE = "1px solid var(--cp-line)"
# A wide table scrolls within itself, so that a narrow screen keeps the rest of the page in sight.
AROUND = "overflow-x: auto; margin-bottom: 0.5rem"
TABLE = "border-collapse: collapse; width: 100%; font-size: 0.87rem"
CELL = f"padding: 5px 10px 5px 0; border-bottom: {LINE}; vertical-align: top; text-align: start"
NAME = "min-width: 10rem; overflow-wrap: anywhere"
QUIET = "color: var(--cp-quiet); font-size: 0.92em"


def roster_table(sheet: RosterSheet, book: PromptBook) -> Html:
    """Every seat of the sheet as a row; `book` holds the prompts in force."""
    rows = [_cells(role, seat, sheet, book) for role, seat in sheet.seats()]
    return table(HEADS, rows)


def table(heads: Sequence[str], rows: Sequence[Sequence[str | Html]]) -> Html:
    """A plain table; the first cell of each row is its heading."""
    head = element("tr", *(element("th", name, style=f"{CELL}; {QUIET}") for name in heads))
    body = [
        element(
            "tr",
            element("th", first, style=f"{CELL}; font-weight: 600"),
            *(element("td", cell, style=CELL) for cell in rest),
        )
        for first, *rest in rows
    ]
    inside = element("table", element("thead", head), element("tbody", *body), style=TABLE)
    return element("div", inside, style=AROUND)


def agent_words(role: str, seat: Seat, place: int = 0) -> str:
    """Who sits there; `place` counts the debaters, among whom the built-in readers take turns."""
    if not seat.is_built_in:
        return seat.model
    if role.startswith("debater"):
        return READER_WORDS[seat.reader or READERS[place % len(READERS)]]
    return READER_WORDS.get(seat.reader, "built-in")


def price_words(seat: Seat) -> str:
    """US dollars for a million tokens in and out, or that nobody knows them."""
    if seat.is_built_in:
        return NONE
    price = price_of(seat)
    if price is None:
        return "unknown"
    per_in, per_out = price.per_token_in * MILLION, price.per_token_out * MILLION
    if not per_in and not per_out:
        return "free"
    return f"${per_in:,.6g} in, ${per_out:,.6g} out, a million tokens"


def _cells(role: str, seat: Seat, sheet: RosterSheet, book: PromptBook) -> list[str | Html]:
    debaters = [f"debater {debater.name}" for debater in sheet.debaters]
    place = debaters.index(role) if role in debaters else 0
    has_text = not seat.is_built_in and role != "retriever"
    return [
        role[:1].upper() + role[1:],
        element("div", agent_words(role, seat, place), style=NAME),
        NONE if seat.is_built_in else shown_address(seat),
        f"{seat.temperature:g}" if has_text else NONE,
        f"{seat.max_tokens:,}" if has_text else NONE,
        price_words(seat),
        _prompt_cell(role, book) if has_text else NONE,
    ]


def _prompt_cell(role: str, book: PromptBook) -> Html:
    """Each prompt of the role by name, with the hashes by which traces name its versions."""
    kind = next((one for one in ("debater", "span panel") if role.startswith(f"{one} ")), role)
    lines: list[Html] = []
    for name in PROMPTS[kind]:
        versions = " · ".join(_version(book.prompt(name, language)) for language in LANGUAGES)
        small = element("span", versions, style=f"{QUIET}; white-space: nowrap")
        lines.append(element("div", f"{name} ", small))
    return joined(lines)


def _version(prompt: Prompt) -> str:
    return f"{prompt.language} {prompt.hash}{' (edited)' if prompt.is_edited else ''}"


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
            button("Add a debater", "rosters.more", _add_debater)
        if fewer and place and place.startswith("debater."):
            button("Take this one out", "rosters.fewer", _drop, place)
        _draw_panel_size(seats)


def _draw_panel_size(seats: Sequence[str]) -> None:
    """How many members the panel that marks words has, and what its models see."""
    now = sum(place.startswith(PANEL) for place in seats)
    larger, smaller = panel_sizes()
    if larger != now:
        words = "Add a panel seat" if now else "Mark words by a panel"
        button(words, "rosters.panel.more", change_panel, larger, help=PANEL_HELP)
    if now:
        words = "Take the last panel seat out" if smaller else "Mark words without a panel"
        button(words, "rosters.panel.fewer", change_panel, smaller)
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
