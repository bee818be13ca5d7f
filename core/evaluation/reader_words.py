"""Words that turn a statement wrong when one takes the place of the other; how words are found."""

from __future__ import annotations

import re

import regex

NUMBER = regex.compile(
    r"(?<![\p{L}\p{N}.,-])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\p{L}\p{N}.,-])\d+(?:\.\d+)?(?![\p{L}\p{N}])"
)
NAME = regex.compile(
    r"(?<![.!?:]\s)(?<!^)\b\p{Lu}[\p{L}'’-]+(?:\s+(?:of|de|the|van|von)?\s*\p{Lu}[\p{L}'’-]+){0,3}"
)
BE = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|does|did|should)\b(?! not\b)"
)
OPENING = regex.compile(r"(?P<name>\p{Lu}[\p{L}'’.-]+(?:\s+\p{Lu}[\p{L}'’.-]+){1,3})")
PRONOUN = re.compile(r"(?:He|She|His|Her) ")
WORD = re.compile(r"[A-Za-z]+")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"“])")
MONTHS = (
    "January February March April May June July August September October November December"
).split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
# One of a row in place of another makes a statement wrong.
ROWS: tuple[tuple[str, ...], ...] = (
    tuple(MONTHS),
    tuple(DAYS),
    tuple(f"{day}s" for day in DAYS),
    tuple("two three four five six seven eight nine ten eleven twelve".split()),
    tuple("black white red green blue yellow brown orange purple grey pink".split()),
    tuple("second third fourth fifth sixth seventh eighth ninth tenth".split()),
    tuple("dozens hundreds thousands millions billions".split()),
    tuple("days weeks months years decades centuries".split()),
)
# What bounds from below against what bounds from above.
BOUNDS: tuple[tuple[str, ...], ...] = (
    ("at least", "more than", "over", "no fewer than", "a minimum of"),
    ("at most", "fewer than", "under", "up to", "no more than", "a maximum of", "less than"),
)
ROW_OF = {word: row for row in ROWS for word in row}
ROW_WORD = re.compile(rf"\b(?:{'|'.join(ROW_OF)})\b")
BOUND_OF = {words: other for row, other in (BOUNDS, BOUNDS[::-1]) for words in row}
BOUND = re.compile(
    rf"\b(?:{'|'.join(sorted(BOUND_OF, key=len, reverse=True))})(?= (?:\d|(?:\w+ty|ten)\b))"
)
OPPOSITES = {
    "first": "last", "last": "first", "more": "less", "less": "more", "most": "least",
    "least": "most", "largest": "smallest", "smallest": "largest", "highest": "lowest",
    "lowest": "highest", "before": "after", "after": "before", "increased": "decreased",
    "decreased": "increased", "increase": "decrease", "decrease": "increase", "older": "younger",
    "younger": "older", "north": "south", "south": "north", "east": "west", "west": "east",
    "northern": "southern", "southern": "northern", "eastern": "western", "western": "eastern",
    "male": "female", "female": "male", "men": "women", "women": "men", "won": "lost",
    "lost": "won", "all": "none", "always": "never", "never": "always", "higher": "lower",
    "lower": "higher", "above": "below", "below": "above", "father": "mother", "mother": "father",
    "brother": "sister", "sister": "brother", "son": "daughter", "daughter": "son",
    "early": "late", "late": "early", "left": "right", "right": "left", "major": "minor",
    "best": "worst", "worst": "best", "oldest": "youngest", "youngest": "oldest",
    "positive": "negative", "negative": "positive", "reduces": "raises", "reduce": "raise",
    "born": "died", "died": "born", "actor": "painter", "actress": "novelist",
    "singer": "director", "director": "singer", "American": "British", "British": "American",
    "English": "French", "French": "German", "German": "Italian", "Italian": "Spanish",
    "author": "editor", "book": "film", "film": "novel", "novel": "play", "band": "company",
}  # fmt: skip


def sentences(text: str) -> list[str]:
    """A rough cut; what it misses only makes a longer sentence."""
    return [part for part in SENTENCE.split(text) if len(part) > 20]
