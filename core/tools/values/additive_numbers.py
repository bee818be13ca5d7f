"""Number words of languages that text2num does not know, added and multiplied up from a list.

Endings are those of the list: inflected languages are covered as far as their commonest forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from core.tools.values.digits import Number
from core.tools.values.value_words import ValueWords, value_words
from core.tools.values.word_tokens import Word

SHORTEST_COMPOUND, LONGEST_COMPOUND = 6, 60
LONGEST_JOINT = 3  # vint-i-cinc
TENS_LAST = frozenset(["ar"])


def added_numbers(tokens: Sequence[Word], words: ValueWords) -> Iterator[Number]:
    """Cardinals made of neighbouring number words, and the ordinals the list has."""
    ordinals: Mapping[str, int] = words.own.get("ordinals", {})
    joiners = words.listed("and")
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.low in ordinals and not (token.capital and not token.opens):
            value = float(ordinals[token.low])
            yield Number(token.start, token.end, value, value, ordinal=True, spelled=True)
        parts = _parts(token, words.language)
        if not parts or (token.capital and not token.opens):
            index += 1
            continue
        last, values = _run(tokens, index, words.language, joiners)
        number = _number(tokens, index, last, values, words)
        if number:
            yield number
        index = last


def _run(
    tokens: Sequence[Word], first: int, language: str, joiners: frozenset[str]
) -> tuple[int, list[float]]:
    """The tokens from `first` that make one number, and their values."""
    values = list(_parts(tokens[first], language))
    last = first + 1
    while last < len(tokens):
        skip = 0
        while (
            last + skip < len(tokens)
            and skip < LONGEST_JOINT
            and _is_joint(tokens[last + skip], joiners)
        ):
            skip += 1
        if last + skip >= len(tokens):
            break
        more = _parts(tokens[last + skip], language)
        if not more or not _fits(values, more[0], tens_last=language in TENS_LAST):
            break
        values += more
        last += skip + 1
    return last, values


def _is_joint(token: Word, joiners: frozenset[str]) -> bool:
    return token.low == "-" or token.low in joiners


def _fits(values: Sequence[float], value: float, *, tens_last: bool) -> bool:
    """Whether a value continues the number: fills zeros, or multiplies what is smaller."""
    if value >= 100:
        return values[-1] < value
    previous = values[-1]
    if tens_last and previous < 10 <= value:
        return True
    return previous >= 100 or (previous > 10 and previous % 10 == 0 and value < 10)


def _parts(token: Word, language: str) -> tuple[float, ...]:
    return _word_parts(token.low, language) if token.is_word else ()


@lru_cache(maxsize=20_000)
def _word_parts(word: str, language: str) -> tuple[float, ...]:
    """The values a word is made of: one, several where words compound, or none."""
    own = value_words(language).own
    numbers: Mapping[str, float] = own["numbers"]
    if word in numbers:
        return (float(numbers[word]),)
    for prefix in own.get("joined_and", ()):
        if word.startswith(prefix) and word[len(prefix) :] in numbers:
            return (float(numbers[word[len(prefix) :]]),)
    if not own.get("compounds") or not SHORTEST_COMPOUND <= len(word) <= LONGEST_COMPOUND:
        return ()
    return _split(word, numbers) or ()


def _split(word: str, numbers: Mapping[str, float]) -> tuple[float, ...] | None:
    """Number words that together are the word, longest first."""
    if not word:
        return ()
    for length in range(len(word), 1, -1):
        value = numbers.get(word[:length])
        rest = _split(word[length:], numbers) if value is not None else None
        if value is not None and rest is not None:
            return (float(value), *rest)
    return None


def _number(
    tokens: Sequence[Word], first: int, last: int, values: Sequence[float], words: ValueWords
) -> Number | None:
    before = tokens[first - 1] if first else None
    if before and before.is_number and values[0] >= 100 and len(values) == 1:
        return None  # a scale of the digits before
    total = section = 0.0
    for value in values:
        if value >= 1000:
            total, section = total + (section or 1.0) * value, 0.0
        elif value == 100:
            section = (section or 1.0) * value
        else:
            section += value
    total += section
    step = next((s for s in (1e12, 1e9, 1e6, 1e3) if total and total % s == 0), 1.0)
    alone = last - first == 1 and tokens[first].low in words.listed("one")
    return Number(
        tokens[first].start,
        tokens[last - 1].end,
        total,
        total,
        step,
        max(1, len(str(int(total / step)))),
        needs="unit" if alone else "",
        spelled=True,
    )
