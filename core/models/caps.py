"""What a call could cost at worst, and the caps that it must fit under before it is sent.

Where the price of a model is known its calls count in money, else in tokens; never as free.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.config import SETTINGS, Settings
from core.errors import BudgetReached, ConfigError
from core.models.call import Call
from core.models.prices import Price, price_of
from core.models.window import (
    MESSAGE_TOKENS,
    estimated_tokens,
    picture_tokens,
    words_tokens,
)
from core.seats import Seat
from core.store.ledger import Amount, Spent

NANO = 10**9
NANO_PER_CENT = NANO // 100
# Far above any cap, and sums of thousands of them still fit the database's whole numbers.
MOST_NANO = 10**15
MOST_TOKENS = 10**12


@dataclass(frozen=True)
class WorstCase:
    """A call before it is sent: its model's price (US dollars a token), prompt and longest reply.

    `price` is None where it is not known; both sizes are in tokens, the prompt's is our estimate.
    """

    price: Price | None
    prompt_tokens: int
    reply_tokens: int

    @property
    def tokens(self) -> int:
        """Prompt and longest reply together."""
        return min(self.prompt_tokens + self.reply_tokens, MOST_TOKENS)

    def nano(self, tokens_in: int, tokens_out: int) -> int | None:
        """What so many tokens cost, in billionths of a US dollar, rounded up; None if not known."""
        if self.price is None:
            return None
        dollars = tokens_in * self.price.per_token_in + tokens_out * self.price.per_token_out
        return in_nano(dollars)

    def counts(self, tokens_in: int, tokens_out: int) -> tuple[int, int]:
        """What so many tokens take from the caps: money (nano), tokens; one of them is 0."""
        nano = self.nano(tokens_in, tokens_out)
        return (0, min(tokens_in + tokens_out, MOST_TOKENS)) if nano is None else (nano, 0)


def in_nano(dollars: float) -> int:
    """US dollars as whole billionths, rounded up past what floats add of themselves."""
    return math.ceil(round(min(max(dollars, 0.0) * NANO, MOST_NANO), 3))


def worst_case(call: Call) -> WorstCase:
    """The most that a call can use.

    Raises:
        ConfigError: its seat has no token limit, so there is no most.
    """
    seat = call.seat
    if seat.max_tokens < 1:
        raise ConfigError(
            f"{seat.model}: expected a limit of at least 1 token for the reply, found "
            f"{seat.max_tokens}; change it in the roster."
        )
    pictures = (picture for message in call.messages for picture in message.pictures)
    prompt = words_tokens(call.messages) + sum(map(picture_tokens, pictures))
    if call.schema is not None:  # many services write it into the prompt
        prompt += estimated_tokens(json.dumps(call.schema, ensure_ascii=False))
    return WorstCase(_usable(price_of(seat)), prompt, seat.max_tokens)


def worst_of_texts(seat: Seat, texts: Sequence[str]) -> WorstCase:
    """The most that embedding the texts can use; there is no reply to pay for."""
    tokens = sum(MESSAGE_TOKENS + estimated_tokens(text) for text in texts)
    return WorstCase(_usable(price_of(seat)), tokens, 0)


def _usable(price: Price | None) -> Price | None:
    """A price that is no amount of money is not known: it must not open a cap."""
    if price is None:
        return None
    parts = (price.per_token_in, price.per_token_out)
    return price if all(math.isfinite(part) and part >= 0 for part in parts) else None


@dataclass(frozen=True)
class Caps:
    """What may be used: money in US cents, and tokens for models of no known price.

    “Day” is everybody's UTC day, “person_day” one person's. `share_cents` is above 0 where
    the run's caps are its share of a comparison's budget.
    """

    run_cents: int
    day_cents: int
    person_day_cents: int
    run_tokens: int
    day_tokens: int
    person_day_tokens: int
    share_cents: int = 0

    @staticmethod
    def of(settings: Settings, token_cap: int = 0, cent_cap: int = 0) -> Caps:
        """The caps in Settings; caps above 0 stand for the run's own.

        With a `cent_cap` the run's caps are its share of a comparison's budget.
        """
        return Caps(
            cent_cap if cent_cap > 0 else settings.run_cents,
            settings.day_cents,
            settings.person_day_cents,
            token_cap if token_cap > 0 else settings.run_tokens,
            settings.day_tokens,
            settings.person_day_tokens,
            share_cents=max(0, cent_cap),
        )

    def check(self, worst: WorstCase, spent: Spent, who: str) -> None:
        """Refuse a call that could pass a cap; `who` names role and model.

        Raises:
            BudgetReached: says which cap, what is used, what the call could cost, what to do.
        """
        nano = worst.nano(worst.prompt_tokens, worst.reply_tokens)
        for setting, amount in _amounts(spent, "tokens" if nano is None else "cents"):
            cap = getattr(self, setting)
            if nano is None:
                has_room = worst.tokens <= cap - amount.tokens
            else:
                has_room = nano <= cap * NANO_PER_CENT - amount.nano
            if not has_room:
                is_share = self.share_cents > 0 and setting.startswith("run_")
                raise BudgetReached(_refusal(setting, cap, amount, worst, who, is_share=is_share))


def _amounts(spent: Spent, unit: str) -> Iterator[tuple[str, Amount]]:
    yield f"run_{unit}", spent.run
    yield f"person_day_{unit}", spent.person_day
    yield f"day_{unit}", spent.day


def _refusal(
    setting: str, cap: int, amount: Amount, worst: WorstCase, who: str, *, is_share: bool
) -> str:
    """The whole sentence for a cap that leaves no room."""
    is_money = setting.endswith("cents")
    if is_money:
        nano = worst.nano(worst.prompt_tokens, worst.reply_tokens) or 0
        limit, used, held = (
            money(nano) for nano in (cap * NANO_PER_CENT, amount.nano, amount.held_nano)
        )
        could = f"cost up to {money(nano)}"
    else:
        limit, used, held = (
            f"{tokens:,} tokens" for tokens in (cap, amount.tokens, amount.held_tokens)
        )
        could = f"take up to {worst.tokens:,} tokens"
    why = "" if is_money else "The model's price is not known, so its tokens are capped. "
    under_way = amount.held_nano if is_money else amount.held_tokens
    kept = f", of which {held} are held for calls under way" if under_way else ""
    line = " or give a higher --token-cap" if setting == "run_tokens" else ""
    name = "This run's share of the comparison's budget"
    advice = "Compare again with a larger budget."
    if not is_share:
        name = f"The cap “{SETTINGS[setting].label}”"
        advice = f"Raise the cap in Settings{line}, then resume the run."
    return (
        f"{who}: not asked, nothing was sent. {why}{name} is {limit}; "
        f"used so far: {used}{kept}; this call could {could}. {advice}"
    )


def dollars_words(cost: float) -> str:
    """US dollars for people: what is not nothing never looks like it."""
    return money(in_nano(cost))


def money(nano: int) -> str:
    """An amount for people: cents, and as many further digits as a small one needs."""
    dollars = nano / NANO
    digits = 2 if nano % NANO_PER_CENT == 0 or dollars >= 1 else 4 if dollars >= 0.0001 else 9
    return f"US${dollars:,.{digits}f}"
