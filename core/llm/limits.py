"""What a call could cost at worst, and the caps that it must fit under before it is sent.

Calls of a known price count in money, others in tokens; never as free. The weights were fitted to
cl100k in 14 languages so that an estimate lies at or above it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from math import ceil
from typing import Any

from core.llm.call import LOCAL, PRICE_LIST, Call, Message, Picture, load_bundled_list, provider_of
from core.runtime.config import SETTINGS, Settings
from core.runtime.errors import BudgetReached, ConfigError
from core.schema.rosters import DEFAULT_WINDOW_TOKENS, AgentConfig
from core.store.ledger import SpendAmount, SpendTotals

MILLION = 1_000_000
_ROUTES = ("converse/", "invoke/")


@dataclass(frozen=True)
class Price:
    """US dollars for one token read and for one token written."""

    per_token_in: float
    per_token_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """Return US dollars for that many tokens."""
        return tokens_in * self.per_token_in + tokens_out * self.per_token_out


def price_of(agent: AgentConfig) -> Price | None:
    """Return the agent's own price, else the list's, else None.

    A price set on the agent counts, zero too. A zero in the list does not: lists say 0 for what
    they do not know. At an address of the agent's own another server sets the price.
    """
    entry = _entry(agent)
    per_in, per_out = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if entry.get("mode") == "embedding":
        per_out = 0.0  # it writes no tokens
    elif not isinstance(per_out, int | float) or per_out <= 0:
        per_in = None
    if not isinstance(per_in, int | float) or per_in <= 0:
        per_in = per_out = None
    per_in = per_in if agent.price_in is None else agent.price_in / MILLION
    per_out = per_out if agent.price_out is None else agent.price_out / MILLION
    return None if per_in is None or per_out is None else Price(per_in, per_out)


def window_of(agent: AgentConfig) -> int:
    """Return the model's context window in tokens: the agent's, the list's, or a modest guess."""
    if agent.window:
        return agent.window
    entry = _entry(agent)
    listed = entry.get("max_input_tokens") or entry.get("max_tokens")
    return listed if isinstance(listed, int) and listed > 0 else DEFAULT_WINDOW_TOKENS


def _entry(agent: AgentConfig) -> dict[str, Any]:
    provider = provider_of(agent)
    if agent.is_built_in or agent.api_base or provider is None or provider in LOCAL:
        return {}
    listed = load_bundled_list(PRICE_LIST)
    short = agent.model.removeprefix(f"{provider}/")
    for route in _ROUTES:
        short = short.removeprefix(route)
    for name in (agent.model, f"{provider}/{short}", short):
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


def estimate_tokens(text: str) -> int:
    """Estimate the text's tokens, seldom too low."""
    lines = text.split("\n")
    tokens = sum(
        _kept_line(line) if len(line) <= _LONGEST_KEPT else _counted_line(line) for line in lines
    )
    return ceil(tokens + _LINE * (len(lines) - 1))


def picture_tokens(picture: Picture) -> int:
    """Estimate the picture's tokens, by the more expensive of two common rules."""
    width, height = _size(picture)
    scale = min(1.0, _LONG_SIDE / max(width, height))
    scale = min(scale, _SHORT_SIDE / min(width, height))
    tiles = ceil(width * scale / _TILE) * ceil(height * scale / _TILE)
    return max(ceil(width * height / _PATCH), _PICTURE_TOKENS + _TILE_TOKENS * tiles)


def count_message_tokens(messages: Iterable[Message]) -> int:
    """Estimate the messages' tokens together, without their pictures."""
    return sum(MESSAGE_TOKENS + estimate_tokens(message.text) for message in messages)


def count_fitting(parts: Sequence[str], room: int) -> int:
    """Count the leading parts, one a line, that fit into that many tokens."""
    taken = 0
    for number, part in enumerate(parts):
        taken += estimate_tokens(part) + ceil(_LINE)
        if taken > room:
            return number
    return len(parts)


def truncate_to_tokens(text: str, room: int) -> str:
    """Return as much of the text's beginning as surely fits into that many tokens."""
    while text and (taken := estimate_tokens(text)) > room:
        text = text[: min(len(text) - 1, len(text) * max(0, room) // taken)]
    return text


def _counted_line(line: str) -> float:
    tokens, words, letters, known = 0.0, 0, 0, 0
    for match in _RUNS.finditer(line):
        run = match.group()
        match match.lastgroup:
            case "word":
                words += 1
                letters += max(0, len(run) - _SHORT)
                known += run.lower() in _ENGLISH
                tokens += 1.0
                # Most words have neither accents nor capitals, which is told at a glance.
                if not run.isascii():
                    tokens += _ACCENT * sum(1 + (c >= "\u1e00") for c in run if not c.isascii())
                if not (run.isupper() or run[1:].islower()):
                    tokens += _CAPITAL * sum(c.isupper() for c in run[1:])
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


_kept_line = lru_cache(maxsize=_KEPT_LINES)(_counted_line)


class _Weights(dict[int, float]):
    def __missing__(self, code: int) -> float:
        self[code] = weight = _weight(code)
        return weight


_WEIGHTS = _Weights()


def _weight(code: int) -> float:
    character = chr(code)
    if character in _FULL_WIDTH_MARKS:
        return 1.0
    if _HAN[0] <= code <= _HAN[1]:  # the first standard put the common ones first
        first = character.encode("gb2312", "ignore")[:1]
        return _RARE_HAN if not first else _COMMON_HAN if first < b"\xd8" else _LESS_COMMON_HAN
    for first_code, last_code, weight in _SCRIPTS:
        if first_code <= code <= last_code:
            return weight
    return _BYTE * len(character.encode(errors="surrogatepass"))


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
MOST_PICTURE_TOKENS = 40_000  # gpt-4o-mini counts up to 36,835 for a picture
MOST_HIDDEN_TOKENS = 1_000  # of a service's own prompt around ours


@dataclass(frozen=True)
class WorstCase:
    """The most that a call can use: price (US dollars a token), prompt and longest reply.

    `price` is None where it is not known; the sizes are in tokens, the prompt's is our estimate.
    `most_prompt_tokens` is more than any service can count for the prompt.
    """

    price: Price | None
    prompt_tokens: int
    reply_tokens: int
    most_prompt_tokens: int

    @property
    def tokens(self) -> int:
        """Prompt and longest reply together."""
        return min(self.prompt_tokens + self.reply_tokens, MOST_TOKENS)

    def nano(self, tokens_in: int, tokens_out: int) -> int | None:
        """Return the cost in billionths of a US dollar, rounded up; None if not known."""
        return None if self.price is None else to_nano_dollars(self.price.of(tokens_in, tokens_out))

    def counts(self, tokens_in: int, tokens_out: int) -> tuple[int, int]:
        """Return what the tokens take from the caps: (nano dollars, tokens), one of them 0."""
        nano = self.nano(tokens_in, tokens_out)
        return (0, min(tokens_in + tokens_out, MOST_TOKENS)) if nano is None else (nano, 0)


def to_nano_dollars(dollars: float) -> int:
    """Convert US dollars to whole billionths, rounded up but not by float noise."""
    return math.ceil(round(min(max(dollars, 0.0) * NANO, MOST_NANO), 3))


def worst_case(call: Call) -> WorstCase:
    """Return the most that a call can use. Raises ConfigError: its agent has no token limit."""
    agent = call.agent
    if agent.max_tokens < 1:
        raise ConfigError(
            f"{agent.model}: expected a limit of at least 1 token for the reply, found "
            f"{agent.max_tokens}; change it in the roster."
        )
    pictures = [picture for message in call.messages for picture in message.pictures]
    prompt = count_message_tokens(call.messages) + sum(map(picture_tokens, pictures))
    texts = [message.text for message in call.messages]
    if call.schema is not None:  # many services write it into the prompt
        texts.append(json.dumps(call.schema, ensure_ascii=False))
        prompt += estimate_tokens(texts[-1])
    most = _most_tokens(texts) + MOST_PICTURE_TOKENS * len(pictures)
    return WorstCase(_sound_price(agent), prompt, agent.max_tokens, most)


def worst_case_of_texts(agent: AgentConfig, texts: Sequence[str]) -> WorstCase:
    """Return the most that embedding the texts can use."""
    tokens = sum(MESSAGE_TOKENS + estimate_tokens(text) for text in texts)
    return WorstCase(_sound_price(agent), tokens, 0, _most_tokens(texts))


def _most_tokens(texts: Sequence[str]) -> int:
    """Return more tokens than a service can count for the texts: a token has at least one byte."""
    return MOST_HIDDEN_TOKENS + sum(len(text.encode(errors="surrogatepass")) for text in texts)


def _sound_price(agent: AgentConfig) -> Price | None:
    """Return the price, or None for one that is no amount of money: it must not lift a cap."""
    price = price_of(agent)
    parts = (price.per_token_in, price.per_token_out) if price else (-1.0,)
    return price if all(math.isfinite(part) and part >= 0 for part in parts) else None


@dataclass(frozen=True)
class SpendingCaps:
    """Limits on spending: US cents, and tokens for models without a known price.

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
    def of(settings: Settings, token_cap: int = 0, cent_cap: int = 0) -> SpendingCaps:
        """Return the caps in Settings, replaced by the run's own where these are above 0.

        With a `cent_cap` the run's caps are its share of a comparison's budget.
        """
        return SpendingCaps(
            cent_cap if cent_cap > 0 else settings.run_cents,
            settings.day_cents,
            settings.person_day_cents,
            token_cap if token_cap > 0 else settings.run_tokens,
            settings.day_tokens,
            settings.person_day_tokens,
            share_cents=max(0, cent_cap),
        )

    def check(self, worst: WorstCase, spent: SpendTotals, who: str) -> None:
        """Refuse a call that could pass a cap; `who` names role and model.

        Raises BudgetReached: says which cap, what is used, what the call could cost, what to do.
        """
        nano = worst.nano(worst.prompt_tokens, worst.reply_tokens)
        amounts = {"run": spent.run, "person_day": spent.person_day, "day": spent.day}
        for span, amount in amounts.items():
            setting = f"{span}_{'tokens' if nano is None else 'cents'}"
            cap = getattr(self, setting)
            if nano is None:
                is_over = worst.tokens > cap - amount.tokens
            else:
                is_over = nano > cap * NANO_PER_CENT - amount.nano
            if is_over:
                is_share = self.share_cents > 0 and span == "run"
                raise BudgetReached(_refusal(setting, cap, amount, worst, who, is_share=is_share))


def _refusal(
    setting: str, cap: int, amount: SpendAmount, worst: WorstCase, who: str, *, is_share: bool
) -> str:
    """Return the message for a cap that leaves no room."""
    why = line = ""
    nano = worst.nano(worst.prompt_tokens, worst.reply_tokens)
    if nano is not None:
        limit, used, held, could = (
            format_money(each)
            for each in (cap * NANO_PER_CENT, amount.nano, amount.held_nano, nano)
        )
        is_held, could = amount.held_nano > 0, f"cost up to {could}"
    else:
        limit, used, held, could = (
            f"{each:,} tokens" for each in (cap, amount.tokens, amount.held_tokens, worst.tokens)
        )
        is_held, could = amount.held_tokens > 0, f"take up to {could}"
        why = "The model's price is not known, so its tokens are capped. "
        line = " or give a higher --token-cap" if setting == "run_tokens" else ""
    kept = f", of which {held} are held for calls under way" if is_held else ""
    name = f"The cap “{SETTINGS[setting].label}”"
    advice = f"Raise the cap in Settings{line}, then resume the run."
    if is_share:
        name = "This run's share of the comparison's budget"
        advice = "Compare again with a larger budget."
    return (
        f"{who}: not asked, nothing was sent. {why}{name} is {limit}; "
        f"used so far: {used}{kept}; this call could {could}. {advice}"
    )


def format_dollars(cost: float) -> str:
    """Format US dollars; a positive amount never shows as zero."""
    return format_money(to_nano_dollars(cost))


def format_money(nano: int) -> str:
    """Format an amount in cents, with further digits for a small one."""
    dollars = nano / NANO
    digits = 2 if nano % NANO_PER_CENT == 0 or dollars >= 1 else 4 if dollars >= 0.0001 else 9
    return f"US${dollars:,.{digits}f}"
