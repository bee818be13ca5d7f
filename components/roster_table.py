"""A roster as a table: who sits in every seat, where, how, at what price, with which prompt."""

from __future__ import annotations

from collections.abc import Sequence

from components.markup import Html, element, joined
from core.models.prices import price_of
from core.models.prompting import LANGUAGES, Prompt, PromptBook
from core.models.provider import shown_address
from core.seats import READERS, RosterSheet, Seat

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
