"""What a model's tokens cost and how long its window is, by litellm's own list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.llm.call import LOCAL, PRICE_LIST, bundled, provider_of
from core.seats import DEFAULT_WINDOW, Seat

MILLION = 1_000_000
_ROUTES = ("converse/", "invoke/")


@dataclass(frozen=True)
class Price:
    """US dollars for one token read and for one token written."""

    per_token_in: float
    per_token_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """US dollars for that many tokens."""
        return tokens_in * self.per_token_in + tokens_out * self.per_token_out


def price_of(seat: Seat) -> Price | None:
    """The seat's own price, else the list's; None where nobody knows it.

    A price set on the seat counts, zero too. A zero in the list does not: lists say 0 for what
    they do not know. At an address of the seat's own another server sets the price.
    """
    listed = _listed_price(seat)
    per_in = listed.per_token_in if listed else None
    per_out = listed.per_token_out if listed else None
    if seat.price_in is not None:
        per_in = seat.price_in / MILLION
    if seat.price_out is not None:
        per_out = seat.price_out / MILLION
    return None if per_in is None or per_out is None else Price(per_in, per_out)


def window_of(seat: Seat) -> int:
    """How many tokens the model reads at most: the seat's word, the list's, or a modest guess."""
    if seat.window:
        return seat.window
    entry = _entry(seat)
    listed = entry.get("max_input_tokens") or entry.get("max_tokens")
    return listed if isinstance(listed, int) and listed > 0 else DEFAULT_WINDOW


def _listed_price(seat: Seat) -> Price | None:
    entry = _entry(seat)
    per_in, per_out = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if not isinstance(per_in, int | float) or per_in <= 0:
        return None
    if entry.get("mode") == "embedding":
        return Price(per_in, 0.0)  # it writes no tokens
    if not isinstance(per_out, int | float) or per_out <= 0:
        return None
    return Price(per_in, per_out)


def _entry(seat: Seat) -> dict[str, Any]:
    """What the list says about the seat's model; empty where it is another server's."""
    provider = provider_of(seat)
    if seat.is_built_in or seat.api_base or provider is None or provider in LOCAL:
        return {}
    listed = bundled(PRICE_LIST)
    short = seat.model.removeprefix(f"{provider}/")
    for route in _ROUTES:
        short = short.removeprefix(route)
    for name in (seat.model, f"{provider}/{short}", short):
        entry: dict[str, Any] = listed.get(name, {})
        if str(entry.get("litellm_provider", "")).startswith(provider):
            return entry
    return {}
