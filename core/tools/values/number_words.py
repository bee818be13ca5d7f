"""Numbers written as words: text2num where it knows the language, else small lists of our own.

text2num 3 reads English, French, German, Spanish, Italian, Portuguese, Dutch and Danish; it is
given words with their places and never sees digits. Other languages have their number words in
`value_words`; those are added and multiplied up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from core.tools.values.additive_numbers import added_numbers
from core.tools.values.digits import Number
from core.tools.values.english_numbers import english_numbers
from core.tools.values.value_words import ValueWords
from core.tools.values.word_tokens import Found, Word, split_words

TEXT2NUM = frozenset("en fr de es it pt nl da".split())
ONE = frozenset(
    "un une uno una um uma ein eine einen einem einer eines een en et één eins uns unes".split()
)
# These rank only after an article: "il secondo" is a rank, "secondo" mostly "according to".
SHY_RANKS = frozenset("secondo segundo prima primo primeiro seconda".split())
NEVER = frozenset("anden andet andre premier unos unas uns unes".split())
ARTICLES = frozenset(
    """il lo la i le gli al del nel dal sul alla della nella dalla suo sua suoi sue o a os as no na
    do da ao pelo pela seu seus su el los las un una der die das den dem de het het den det en et
    les du au aux ses son leur leurs""".split()
)
OF = re.compile(r" (?:of|de|di|von|van|del|della|dei|da|do|dos|das|des)$")
PHRASE = re.compile(
    r"(?P<about>~)?(?P<low>\d+(?:\.\d+)?)(?:/(?P<bottom>\d+))?(?:\.\.(?P<high>\d+))?(?P<kind>[%x?]?)"
)


@dataclass
class _Token:
    """What text2num asks of a token."""

    word: str
    apart: bool
    barred: bool

    def text(self) -> str:
        """The token's text."""
        return self.word

    def nt_separated(self, _previous: object) -> bool:
        """Whether a pause parts it from the token before."""
        return self.apart

    def not_a_number_part(self) -> bool:
        """Whether it is known not to be a number."""
        return self.barred


def word_numbers(text: str, low: str, words: ValueWords) -> list[Number]:
    """All numbers in words of a plain text; phrases such as "a dozen" come first."""
    tokens = split_words(text, low)
    if not tokens:
        return []
    found = list(_phrases(low, tokens, words))
    if words.language in TEXT2NUM:
        spoken = spoken_numbers(tokens, words.language)
        if words.language == "en":
            found += english_numbers(text, tokens, spoken)
        else:
            found += _other_numbers(tokens, spoken, words.language)
    elif "numbers" in words.own:
        found += added_numbers(tokens, words)
    return found


def spoken_numbers(tokens: Sequence[Word], language: str) -> list[Found]:
    """What text2num finds, by positions in the list of tokens."""
    from text_to_num import find_numbers

    given = [
        _Token(t.low if t.is_word else t.low[:1], _is_apart(tokens, i), t.low in ("o", "oh"))
        for i, t in enumerate(tokens)
    ]
    occurrences: list[Any] = find_numbers(given, language, 0)
    return [
        Found(o.start, o.end, float(o.value), bool(o.is_ordinal))
        for o in occurrences
        if o.value is not None and tokens[o.start].is_word
    ]


def _is_apart(tokens: Sequence[Word], index: int) -> bool:
    """A dash with blanks, or a comma, parts numbers that text2num would join."""
    return bool(index) and tokens[index - 1].low in (",", ";", ":", "–", "—", "/")


def _phrases(low: str, tokens: Sequence[Word], words: ValueWords) -> Iterator[Number]:
    end = 0
    for token in tokens:
        if token.start < end or token.low not in words.phrase_starts:
            continue
        match = words.phrases.at(low, token.start)
        if match:
            end = match[0]
            of = OF.search(low, token.start, end)
            yield _phrase_number(token.start, of.start() if of else end, match[1])


@lru_cache(maxsize=2048)
def _phrase_value(value: str) -> tuple[float, float, str, bool]:
    match = PHRASE.fullmatch(value)
    if not match:
        raise ValueError(f"expected a phrase's value like ~2, 1/3%, 2x, 10..20, found {value!r}")
    low = float(match["low"]) / float(match["bottom"] or 1)
    high = float(match["high"]) if match["high"] else low
    return low, high, match["kind"], bool(match["about"])


def _phrase_number(start: int, end: int, value: str) -> Number:
    low, high, kind, about = _phrase_value(value)
    share = kind == "%"
    if share:
        low, high = 100 * low, 100 * high
    step = 5.0 if share else 1.0
    return Number(
        start,
        end,
        low,
        high,
        step if low >= 1 else 0.05,
        share=share,
        noun="time" if kind == "x" else "",
        bound="about" if about else "exact",
        needs="unit" if kind == "?" else "",
        spelled=True,
    )


def _other_numbers(
    tokens: Sequence[Word], spoken: Sequence[Found], language: str
) -> Iterator[Number]:
    """Numbers of the other languages that text2num reads, articles and prepositions left out."""
    for number in spoken:
        first, last = tokens[number.first], tokens[number.last - 1]
        before = tokens[number.first - 1] if number.first else None
        single = number.last - number.first == 1
        if single and first.low in NEVER:
            continue
        if number.ordinal and single:
            shy = first.low in SHY_RANKS and (before is None or before.low not in ARTICLES)
            if shy or (before and before.is_number):
                continue
        if first.capital and number.first and language != "de" and not first.opens:
            continue
        if before and before.is_number and number.value >= 1000 and single:
            continue  # "3 millions": the number before takes it as its scale
        needs = "unit" if single and first.low in ONE else ""
        yield Number(
            first.start,
            last.end,
            number.value,
            number.value,
            1.0 if number.ordinal else step_of(number.value),
            significant_of(number.value),
            ordinal=number.ordinal,
            needs=needs,
            spelled=True,
        )


def step_of(value: float) -> float:
    """Thousands and more in words are round: 1e6 for two million, 1 for two hundred."""
    for step in (1e12, 1e9, 1e6, 1e3):
        if value and value % step == 0:
            return step
    decimals = f"{value:.6f}".rstrip("0").partition(".")[2]
    return float(10.0 ** -len(decimals))


def significant_of(value: float) -> int:
    """How many digits the number has when written with its step."""
    return max(1, len(str(int(abs(value) / step_of(value)))))
