"""Who plays which role, as it is written down: seats and roster sheets.

A sheet is what is stored with a run, edited in Settings and exchanged as a file; `Roster` in
`core/roles.py` is the same with living agents in the seats. Source: CEDA 4.1, 5.2, table 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

BUILT_IN = "builtin"
READERS = ("rules", "overlap", "entailment")
PANEL_READERS = (*READERS, "words")
PANEL = "span panel "  # begins the name of a seat in the panel that marks words
DEFAULT_WINDOW = 8192
DEFAULT_SECONDS = 60
LONGEST_NAME = 80  # characters of a roster's


@dataclass(frozen=True)
class Seat:
    """One role's player: the built-in agent when `model` is empty, else a language model.

    `model` is litellm's name, `provider/model`; `api_base` an OpenAI-compatible address. `key_name`
    says under which name its key is looked for (empty: the provider's usual one), never the key.
    `window` is in tokens, 0 where litellm knows it. Prices are US dollars for a million tokens,
    None where litellm's list decides. `seconds` is the longest silence that is waited for.
    `reader` picks the built-in debater, one of `READERS`, or member of the panel that marks
    words, one of `PANEL_READERS`.
    """

    model: str = ""
    api_base: str = ""
    key_name: str = ""
    temperature: float = 0.0
    max_tokens: int = 800
    window: int = 0
    price_in: float | None = None
    price_out: float | None = None
    seconds: int = DEFAULT_SECONDS
    reader: str = ""

    @property
    def is_built_in(self) -> bool:
        """True when no language model plays it."""
        return not self.model


@dataclass(frozen=True)
class DebaterSeat:
    """A debater's name in the debate, and who it is."""

    name: str
    seat: Seat


@dataclass(frozen=True)
class RosterSheet:
    """A seat for every role; the defaults are the built-in engine.

    `retriever` embeds passages (CEDA's agent A); `prompts` is the digest of the prompts that the
    sheet was written for, empty for whichever are current. Two or more seats in `span_panel` mark
    words by rotation (MSA 3.3) in place of span extractor and adjudicator; `panel_sees_evidence`
    says whether its language models are shown the evidence (the paper's were not).
    """

    name: str
    words: str = ""
    retriever: Seat = field(default_factory=Seat)
    segmenter: Seat = field(default_factory=Seat)
    tool_picker: Seat = field(default_factory=Seat)
    reflector: Seat = field(default_factory=Seat)
    image_reader: Seat = field(default_factory=Seat)
    context_writer: Seat = field(default_factory=Seat)
    debaters: tuple[DebaterSeat, ...] = (
        DebaterSeat("Ada", Seat(reader="rules")),
        DebaterSeat("Ben", Seat(reader="overlap")),
        DebaterSeat("Cleo", Seat(reader="entailment")),
    )
    judge: Seat = field(default_factory=Seat)
    span_extractor: Seat = field(default_factory=Seat)
    span_adjudicator: Seat = field(default_factory=Seat)
    prompts: str = ""
    span_panel: tuple[Seat, ...] = ()
    panel_sees_evidence: bool = True

    def seats(self) -> Iterator[tuple[str, Seat]]:
        """Every role's name as people and traces see it, with its seat."""
        yield "retriever", self.retriever
        yield "segmenter", self.segmenter
        yield "tool picker", self.tool_picker
        yield "reflector", self.reflector
        yield "image reader", self.image_reader
        yield "context writer", self.context_writer
        for debater in self.debaters:
            yield f"debater {debater.name}", debater.seat
        yield "judge", self.judge
        yield "span extractor", self.span_extractor
        yield "span adjudicator", self.span_adjudicator
        for number, seat in enumerate(self.span_panel, 1):
            yield f"{PANEL}{number}", seat

    def with_seat(self, role: str, seat: Seat) -> RosterSheet:
        """A copy with another seat for the role of that name, as `seats` names it."""
        if role.startswith("debater "):
            name = role.removeprefix("debater ")
            debaters = (DebaterSeat(d.name, seat) if d.name == name else d for d in self.debaters)
            return replace(self, debaters=tuple(debaters))
        if role.startswith(PANEL):
            seats = list(self.span_panel)
            seats[int(role.removeprefix(PANEL)) - 1] = seat
            return replace(self, span_panel=tuple(seats))
        changed: dict[str, Any] = {role.replace(" ", "_"): seat}
        return replace(self, **changed)

    def with_windows_of(self, other: RosterSheet) -> RosterSheet:
        """A copy with the windows that `other` says the same models at the same addresses have."""
        said, found = dict(other.seats()), self
        for role, seat in self.seats():
            now = said.get(role)
            if now and (now.model, now.api_base) == (seat.model, seat.api_base):
                found = found.with_seat(role, replace(seat, window=now.window))
        return found

    @property
    def is_built_in(self) -> bool:
        """True when no seat calls a model."""
        return all(seat.is_built_in for _, seat in self.seats())
