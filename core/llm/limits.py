"""What a call could cost at worst, and the caps that it must fit under before it is sent.

Prices and windows are those of litellm's list. Where a model's price is known its calls count in
money, else in tokens; never as free. Tokens are estimated without asking any model: the weights
below were fitted to OpenAI's cl100k on texts, code and tables in 14 languages so that the estimate
lies at or above it: what is cut too early costs a passage, what is cut too late costs the call.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from math import ceil
from typing import Any

from core.llm.call import LOCAL, PRICE_LIST, Call, Message, Picture, bundled, provider_of
from core.runtime.config import SETTINGS, Settings
from core.runtime.errors import BudgetReached, ConfigError
from core.schema.rosters import DEFAULT_WINDOW, Seat
from core.store.ledger import Amount, Spent

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


_LATIN = "A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_RUNS = re.compile(
    rf"(?P<word>[{_LATIN}]+)|(?P<digits>[0-9]+)|(?P<marks>[!-/:-@\[-`{{-~]+)"
    rf"|(?P<gap>[ \t]{{2,}}|[\x00-\x08\x0b-\x1f\x7f])|(?P<foreign>[^\x00-\x7f{_LATIN}]+)"
)

# A word is a token; every letter after the fourth is so much more, less in English, whose words the
# tokenizers know. Accents and capitals within a word break it up.
_SHORT, _LETTER, _ENGLISH_LETTER = 4, 0.64, 0.3
_ACCENT, _CAPITAL = 0.9, 0.35
_ENGLISH = frozenset(
    "the of and to that for with by from are this be not were which what who has have had".split()
)
_ENGLISH_SHARE = 1 / 8
_THREE_DIGITS, _MARK, _FURTHER_MARK, _GAP, _LINE = 1.45, 1.0, 0.35, 1.0, 1.0
_BLANKS = 16  # of a long gap that make a further token

# Tokens for one character, by ranges of code points: first, last, weight.
_SCRIPTS = (
    (0x0370, 0x03FF, 1.1),  # Greek
    (0x0400, 0x052F, 0.7),  # Cyrillic
    (0x0590, 0x05FF, 1.25),  # Hebrew
    (0x0600, 0x077F, 0.92),  # Arabic
    (0x0966, 0x096F, 2.1),  # Devanagari digits
    (0x0900, 0x097F, 1.32),  # Devanagari
    (0x0980, 0x0BFF, 1.6),  # Bengali to Tamil
    (0x0C00, 0x0DFF, 2.1),  # Telugu to Sinhala
    (0x0E00, 0x0E7F, 1.1),  # Thai
    (0x2010, 0x2027, 1.0),  # dashes and quotation marks
    (0x3001, 0x3011, 1.0),  # CJK punctuation
    (0x3040, 0x30FF, 1.0),  # kana
    (0xAC00, 0xD7AF, 1.25),  # Hangul
    (0x1F000, 0x1FAFF, 2.6),  # emoji
)
_FULL_WIDTH_MARKS = frozenset("，：；！？（）")
_HAN = (0x4E00, 0x9FFF)
_COMMON_HAN, _LESS_COMMON_HAN, _RARE_HAN = 1.42, 2.0, 2.6
_BYTE = 1.12  # of UTF-8, in scripts that no tokenizer learned

_PATCH = 750  # pixels that Anthropic counts as a token
_TILE, _TILE_TOKENS, _PICTURE_TOKENS = 512, 170, 85  # OpenAI's way
_LONG_SIDE, _SHORT_SIDE = 2048, 768
_UNKNOWN_SIZE = (1568, 1568)

MESSAGE_TOKENS = 8  # what a message takes besides its text
# The lines of our prompts, and of a run's evidence, come again with every call.
_KEPT_LINES, _LONGEST_KEPT = 4_096, 1_000  # lines, characters


def estimated_tokens(text: str) -> int:
    """About how many tokens the text has; seldom fewer than it really has."""
    return ceil(sum(_line(line) for line in text.split("\n")) + _LINE * text.count("\n"))


def picture_tokens(picture: Picture) -> int:
    """About how many tokens the picture takes, by the more expensive of two common ways."""
    width, height = _size(picture)
    scale = min(1.0, _LONG_SIDE / max(width, height))
    scale = min(scale, _SHORT_SIDE / min(width, height))
    tiles = ceil(width * scale / _TILE) * ceil(height * scale / _TILE)
    return max(ceil(width * height / _PATCH), _PICTURE_TOKENS + _TILE_TOKENS * tiles)


def words_tokens(messages: Iterable[Message]) -> int:
    """About how many tokens the messages take together, without their pictures."""
    return sum(MESSAGE_TOKENS + estimated_tokens(message.text) for message in messages)


def fitting(parts: Sequence[str], room: int) -> int:
    """How many of the leading parts, one below the other, fit into that many tokens."""
    taken = 0
    for number, part in enumerate(parts):
        taken += estimated_tokens(part) + ceil(_LINE)
        if taken > room:
            return number
    return len(parts)


def beginning(text: str, room: int) -> str:
    """As much of the text's beginning as surely fits into that many tokens; all of it if it can."""
    while text and (taken := estimated_tokens(text)) > room:
        text = text[: min(len(text) - 1, len(text) * max(0, room) // taken)]
    return text


def _line(line: str) -> float:
    return _kept_line(line) if len(line) <= _LONGEST_KEPT else _counted_line(line)


@lru_cache(maxsize=_KEPT_LINES)
def _kept_line(line: str) -> float:
    return _counted_line(line)


def _counted_line(line: str) -> float:
    tokens, words, letters, known = 0.0, 0, 0, 0
    for match in _RUNS.finditer(line):
        run = match.group()
        match match.lastgroup:
            case "word":
                words += 1
                letters += max(0, len(run) - _SHORT)
                known += run.lower() in _ENGLISH
                tokens += 1.0 + _broken(run)
            case "digits":
                tokens += _THREE_DIGITS * ceil(len(run) / 3)
            case "marks":
                tokens += _MARK + _FURTHER_MARK * (len(run) - 1)
            case "gap":
                tokens += _GAP + len(run) // _BLANKS
            case _:
                tokens += sum(_WEIGHTS[ord(character)] for character in run)
    is_english = words > 0 and known >= words * _ENGLISH_SHARE
    return tokens + letters * (_ENGLISH_LETTER if is_english else _LETTER)


def _broken(word: str) -> float:
    accents = 0 if word.isascii() else sum(1 + (c >= "\u1e00") for c in word if not c.isascii())
    # Most words have none, which is told without looking at every letter.
    is_plain = word.isupper() or word[1:].islower()
    capitals = 0 if is_plain else sum(c.isupper() for c in word[1:])
    return _ACCENT * accents + _CAPITAL * capitals


class _Weights(dict[int, float]):
    def __missing__(self, code: int) -> float:
        self[code] = weight = _weight(code)
        return weight


_WEIGHTS = _Weights()


def _weight(code: int) -> float:
    character = chr(code)
    if character in _FULL_WIDTH_MARKS:
        return 1.0
    if _HAN[0] <= code <= _HAN[1]:
        return _han_weight(character)
    for first, last, weight in _SCRIPTS:
        if first <= code <= last:
            return weight
    return _BYTE * len(character.encode(errors="surrogatepass"))


def _han_weight(character: str) -> float:
    """By the first standard of Chinese characters, which put the common ones first."""
    try:
        first, _ = character.encode("gb2312")
    except UnicodeEncodeError:
        return _RARE_HAN
    return _COMMON_HAN if first < 0xD8 else _LESS_COMMON_HAN


def _size(picture: Picture) -> tuple[int, int]:
    from PIL import Image

    try:
        with Image.open(BytesIO(picture.data)) as image:
            return image.size
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return _UNKNOWN_SIZE


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

    Raises ConfigError: its seat has no token limit, so there is no most.
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

        Raises BudgetReached: says which cap, what is used, what the call could cost, what to do.
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
