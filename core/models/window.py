"""How much of a model's window texts and pictures take, estimated without asking any model.

Every provider cuts text into tokens in its own way. The weights below were fitted to OpenAI's
cl100k on questions, answers and articles in 14 languages, on code, tables and samples of twenty
further kinds, so that the estimate lies at or above it: what is cut too early costs a passage, what
is cut too late costs the call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from io import BytesIO
from math import ceil

from core.models.call import Message, Picture

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
    """What accents and capitals in the midst of a word add to it."""
    accents = 0 if word.isascii() else sum(1 + (c >= "\u1e00") for c in word if not c.isascii())
    # Most words have none, which is told without looking at every letter.
    is_plain = word.isupper() or word[1:].islower()
    capitals = 0 if is_plain else sum(c.isupper() for c in word[1:])
    return _ACCENT * accents + _CAPITAL * capitals


class _Weights(dict[int, float]):
    """Tokens for one character, worked out when it is first met."""

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
