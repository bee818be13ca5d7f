"""Counts a text in words, characters, sentences, paragraphs or lines; holds it to a length.

Two people count a text differently (hyphens, punctuation, blanks), so a count has a main figure
and a least and a most. Nobody is called wrong over a way of counting: "at least" and "at most" hold
where one of the counts holds. Source: HaluAgent 2.2 (condition verifier).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import regex

from core.evidence.segment import sentences

LengthUnit = Literal["word", "character", "sentence", "paragraph", "line"]
Strictness = Literal["exact", "about"]

# Of HaluAgent's 100 shared answers none was called right above 5.1 % nor wrong below 10 %, counted
# in characters other than blanks: the middle of that gap.
TOLERANCE = 0.075
# No set says how far "about" reaches; people asked for about 100 words take 80 as meant.
ABOUT = 0.2
# Asked for "two characters" people count no full stop; from here on the sets count it.
FEW = 10
BLANK = regex.compile(r"\s+")
MARK = regex.compile(r"[\s\p{P}\p{S}]+")
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}]"
UNCOUNTABLE = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
EAST_ASIAN = regex.compile(UNSPACED)
PART_OF_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")
HAS_LETTER = regex.compile(r"[\p{L}\p{N}]")
PARAGRAPH = regex.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Length:
    """A length that is asked for: `least` to `most` units, None where there is no such bound.

    `strictness` is read where both are the same: "in 100 words" or "in about 100 words".
    """

    unit: LengthUnit
    least: int | None
    most: int | None
    strictness: Strictness = "exact"

    @property
    def is_point(self) -> bool:
        """True where one figure is asked for and not a bound or a range."""
        return self.least is not None and self.least == self.most


@dataclass(frozen=True)
class Count:
    """How long a text is; `least` and `most` are what other ways of counting give."""

    main: int
    least: int
    most: int


@dataclass(frozen=True)
class LengthCheck:
    """Whether a length asked for is kept.

    `strain` is the deviation as a multiple of what is allowed, so that 1.0 is the edge; it is 0.0
    within bounds that allow nothing, and 1.0 plus the excess in twentieths outside them.
    """

    holds: bool
    asked: Length
    counted: int
    strain: float
    words: str


def count(text: str, unit: LengthUnit, language: str = "en") -> Count | None:
    """The text's length in a unit; None where it cannot be told.

    That is words of a script that does not part them by blanks, and lines of a text on one line:
    where that breaks is up to the page.
    """
    if unit == "character":
        bare, inked = len(MARK.sub("", text)), len(BLANK.sub("", text))
        # Blanks count where a script writes them between words.
        whole = inked if EAST_ASIAN.search(text) else len(text.strip())
        return Count(inked, bare, whole)
    if unit == "word":
        return _words(text)
    if unit == "sentence":
        found = len(sentences(text, language))
        return Count(found, found, found)
    lines = sum(1 for line in text.splitlines() if line.strip())
    if unit == "line":
        return Count(lines, lines, lines) if lines > 1 else None
    paragraphs = sum(1 for part in PARAGRAPH.split(text) if part.strip())
    return Count(paragraphs, paragraphs, lines)


def _words(text: str) -> Count | None:
    if UNCOUNTABLE.search(text):
        return None
    han = len(EAST_ASIAN.findall(text))
    rest = EAST_ASIAN.sub(" ", text)
    joined = sum(1 for token in rest.split() if HAS_LETTER.search(token))
    return Count(han + joined, han + joined, han + max(joined, len(PART_OF_WORD.findall(rest))))


def check_length(text: str, asked: Length, language: str = "en") -> LengthCheck | None:
    """The text against the length asked for; None where it cannot be counted."""
    found = count(text, asked.unit, language)
    if found is None:
        return None
    strain = _strain_of_point(found, asked) if asked.is_point else _strain_of_bounds(found, asked)
    holds = strain <= 1.0
    return LengthCheck(holds, asked, found.main, strain, _sentence(asked, found.main, holds))


def _strain_of_point(found: Count, asked: Length) -> float:
    wanted = asked.least or 0
    counts = {found.main, found.most} | ({found.least} if wanted <= FEW else set())
    off = min(abs(counted - wanted) for counted in counts)
    allowed = (ABOUT if asked.strictness == "about" else TOLERANCE) * wanted
    if off == 0:
        return 0.0
    # Below one unit nothing is allowed: "three sentences" are three.
    return off / allowed if allowed >= 1.0 else 1.0 + off


def _strain_of_bounds(found: Count, asked: Length) -> float:
    short = max(0, (asked.least or 0) - found.most)
    long = 0 if asked.most is None else max(0, found.least - asked.most)
    off = max(short, long)
    edge = asked.most if long else asked.least
    return 1.0 + 20.0 * off / max(1, edge or 0) if off else 0.0


def _sentence(asked: Length, counted: int, holds: bool) -> str:
    begin = f"{length_words(asked)} {'was' if _is_one(asked) else 'were'} asked for"
    verb = "and" if holds else "but"
    what = " (without blanks)" if asked.unit == "character" else ""
    return f"{begin[0].upper()}{begin[1:]} {verb} the answer has {counted:,}{what}."


def _is_one(asked: Length) -> bool:
    return asked.is_point and asked.least == 1


def length_words(asked: Length) -> str:
    """The length asked for in words: "at least 3 sentences", "50 to 100 words"."""
    least, most = asked.least, asked.most
    unit = asked.unit if 1 in (least, most) and least in (most, None) else asked.unit + "s"
    if least is None:
        return f"at most {most:,} {unit}"
    if most is None:
        return f"at least {least:,} {asked.unit if least == 1 else asked.unit + 's'}"
    if asked.is_point:
        return f"{'about ' if asked.strictness == 'about' else ''}{least:,} {unit}"
    return f"{least:,} to {most:,} {unit}"
