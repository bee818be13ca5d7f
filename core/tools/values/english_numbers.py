"""English number words that are numbers: which "one", "second", "half" and "third" count.

Capitalised number words inside a sentence are taken for names ("Ocean's Eleven"), ranks excepted
("the Second World War").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from core.tools.values.digits import Number
from core.tools.values.word_tokens import Found, Word

NOT_ONE_BEFORE = frozenset(
    """no any every some each this that the which another such either neither whichever last
    next first""".split()
)
NOT_ONE_AFTER = frozenset(
    """of another who that which whom whose is was are were can could should must may might would
    will has had have does did do in to on at by and but for from with as can't cannot so if when
    where because then than might - ' day""".split()
)
DENOMINATORS = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4,
    "fourths": 4, "fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "seventh": 7, "sevenths": 7,
    "eighth": 8, "eighths": 8, "ninth": 9, "ninths": 9, "tenth": 10, "tenths": 10,
    "hundredth": 100, "hundredths": 100, "thousandth": 1000, "thousandths": 1000,
}  # fmt: skip
HALF_BEFORE = frozenset(
    "by over than nearly about almost approximately roughly only least under around another".split()
)
HALF_AFTER = frozenset("the its their his her all as our my your that this these those".split())
NOT_HALVES = frozenset(
    """first second third other latter early top bottom last northern southern eastern western
    upper lower left right back front better final same each either every that this what""".split()
)
TIME_AFTER = frozenset("later ago after before earlier apart passed passes".split())
SECOND_UNIT_BEFORE = frozenset("per each every split a one half".split())
RANKS_FIRST = frozenset(
    """the its his her their my our your 's on in of for became team's at finished placed came
    ranked""".split()
)
NOT_FIRST_AFTER = frozenset("of hand name".split())
ONE_AT_ALL = frozenset("than least only exactly most just".split())
RATIO_BASES = frozenset("two three four five six seven eight nine ten 2 3 4 5 10 100 every".split())
NO_SHARES = frozenset("time final finals".split())
SCALE_ENDS = {"hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}


def english_numbers(text: str, tokens: Sequence[Word], spoken: Sequence[Found]) -> Iterator[Number]:
    """Numbers in words of an English text: fractions, then what text2num found and is one."""
    fractions = list(_fractions(tokens, spoken))
    yield from fractions
    taken = {i for f in fractions for i, t in enumerate(tokens) if f.start <= t.start < f.end}
    for found in spoken:
        if found.first in taken or found.last - 1 in taken:
            continue
        number = _rank(tokens, found) if found.ordinal else _count(tokens, found)
        if number:
            yield _with_half(tokens, found.last, number)


def _low(tokens: Sequence[Word], index: int) -> str:
    return tokens[index].low if 0 <= index < len(tokens) else ""


def _number(tokens: Sequence[Word], first: int, found: Found) -> Number:
    value = found.value
    step = 1.0 if found.ordinal or value != int(value) else _step(value)
    if value != int(value):
        step = 10.0 ** -len(f"{value:.9f}".rstrip("0").partition(".")[2])
    return Number(
        tokens[first].start,
        tokens[found.last - 1].end,
        value,
        value,
        step,
        max(1, len(str(int(abs(value) / step)))),
        ordinal=found.ordinal,
        spelled=True,
    )


def _step(value: float) -> float:
    return next((step for step in (1e12, 1e9, 1e6, 1e3) if value and value % step == 0), 1.0)


def _count(tokens: Sequence[Word], found: Found) -> Number | None:
    first, last = found.first, found.last
    word = tokens[first]
    single = last - first == 1
    if word.low.endswith("s") and single and word.low not in ("six", "plus"):
        return None  # hundreds, firsts, ones
    if word.capital and not word.opens and not _is_title(tokens, first, last):
        return None
    if single and word.low in ("one", "zero", "nil") and not _is_one(tokens, first):
        return None
    if single and word.low in SCALE_ENDS:
        before = _low(tokens, first - 1)
        if before not in ("a", "an"):
            return None
        return _number(tokens, first - 1, found)
    return _number(tokens, first, found)


def _is_title(tokens: Sequence[Word], first: int, last: int) -> bool:
    """Whether capitals here are those of a heading: all words around have them."""
    around = [t for t in tokens[max(0, first - 3) : last + 3] if t.is_word and len(t.low) > 3]
    return len(around) > 4 and all(t.capital for t in around) and len(tokens) > 12


def _is_one(tokens: Sequence[Word], index: int) -> bool:
    """Whether "one" counts something, rather than standing for it."""
    before, after = _low(tokens, index - 1), _low(tokens, index + 1)
    if _low(tokens, index) != "one":
        return index + 1 < len(tokens) and tokens[index + 1].is_word
    if after == "in" and index + 2 < len(tokens):
        return _low(tokens, index + 2) in RATIO_BASES
    if before in ONE_AT_ALL and after not in NOT_ONE_AFTER:
        return index + 1 < len(tokens) and tokens[index + 1].is_word
    if after == "or" and _low(tokens, index + 2) in ("two", "more"):
        return True
    if before in NOT_ONE_BEFORE or after in NOT_ONE_AFTER:
        return False
    follows = tokens[index + 1] if index + 1 < len(tokens) else None
    if follows is None or not follows.is_word or follows.capital:
        return False
    return not (before == "-" or after.endswith("ly"))


def _rank(tokens: Sequence[Word], found: Found) -> Number | None:
    """Ordinals, unless they are a unit ("5 second"), an adverb or a plural."""
    word = tokens[found.first]
    single = found.last - found.first == 1
    before, after = _low(tokens, found.first - 1), _low(tokens, found.last)
    if single and word.low.endswith("s"):
        return None
    if single and word.low == "second":
        counted = found.first and (tokens[found.first - 1].is_number or before == "-")
        unit = before in SECOND_UNIT_BEFORE and (after in TIME_AFTER or before in ("per", "split"))
        if unit or counted:
            return None
    if single and word.low == "first":
        named = word.capital and not word.opens
        ranked = named or before in RANKS_FIRST or before.endswith("'s")
        if after in NOT_FIRST_AFTER or not ranked:
            return None
        if before == "at" or not after:
            return None
    return _number(tokens, found.first, found)


def _with_half(tokens: Sequence[Word], index: int, number: Number) -> Number:
    """Adds "and a half", "and a quarter" that follow the token before `index`."""
    following = [_low(tokens, index + i) for i in range(3)]
    share = {"half": 0.5, "quarter": 0.25}.get(following[2])
    if number.ordinal or share is None or following[:2] != ["and", "a"]:
        return number
    scale = next((s for s in (1e12, 1e9, 1e6, 1e3) if number.low and number.low % s == 0), 1.0)
    value = number.low + share * scale
    end = tokens[index + 2].end
    return replace(number, end=end, low=value, high=value, step=scale * 0.1)


def _fractions(tokens: Sequence[Word], spoken: Sequence[Found]) -> Iterator[Number]:
    """Two thirds, one-fifth, a quarter of, half of the: shares in per cent."""
    counts = {f.last: f for f in spoken if not f.ordinal and f.value <= 20}
    for index, token in enumerate(tokens):
        bottom = DENOMINATORS.get(token.low)
        if bottom is None or (token.capital and not token.opens):
            continue
        first, top = _numerator(tokens, index, counts)
        if first is None:
            continue
        value = 100.0 * top / bottom
        if not 0 < value < 100:
            continue
        yield Number(tokens[first].start, token.end, value, value, 5.0, 1, share=True, spelled=True)


def _numerator(
    tokens: Sequence[Word], index: int, counts: dict[int, Found]
) -> tuple[int | None, float]:
    """The first token of a fraction that ends at `index` and its numerator, or None."""
    word = tokens[index].low
    hyphen = 1 if _low(tokens, index - 1) == "-" else 0
    before, after = _low(tokens, index - 1), _low(tokens, index + 1)
    found = counts.get(index - hyphen)
    if found and (found.value == 1) != word.endswith("s"):
        return (None, 0.0) if after in NO_SHARES else (found.first, found.value)
    if word == "half":
        counted = before in HALF_BEFORE or after in HALF_AFTER
        if (after == "of" and before not in NOT_HALVES) or (counted and before not in NOT_HALVES):
            return index, 1.0
        return None, 0.0
    introduced = after == "of" or _low(tokens, index - 2) in HALF_BEFORE
    if before == "a" and not word.endswith("s") and introduced:
        return index - 1, 1.0
    return None, 0.0
