"""Hears which words of the response a debater contests, and a text that it gives mended.

A contested place is a line of its own, “Words: “1926” -> “1931””, in English or Chinese; what is
behind the arrow should stand there instead. A mended text stands between <<<TEXT and TEXT>>>, so
that nothing that is said about it becomes part of it. Source: SC-MAKS 2.1.4 (MAMM-REFINE).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from core.agents.placed import placed
from core.agents.stated import WORDS_LINE
from core.categories import Category
from core.records import Case, Point, Statement

ARROW = re.compile(r"\s*(?:-+>|=+>|→|⇒|➔)\s*")
# Quoted words end at their own mark: the response's may hold an arrow themselves.
QUOTED = re.compile(
    r"[\s*_]*(?:“(?P<a>[^“”]*)”|„(?P<b>[^“”„]*)[“”]|«(?P<c>[^«»]*)»|「(?P<d>[^「」]*)」|"
    r"『(?P<e>[^『』]*)』|\"(?P<f>[^\"]*)\")[\s*_]*"
)
QUOTES = "“”„«»「」『』\"'‘’ \t*_`"
NOTHING = re.compile(
    r"\W*(?:nothing|none|(?:leave|left|take|taken) (?:it )?out|delete|remove|删除|删去|无)?\W*",
    re.I,
)
MARKED = re.compile(
    r"^[ \t]*<<<[ \t]*TEXT[ \t]*\n(?P<text>.*?)\n?[ \t]*TEXT[ \t]*>>>[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
MARK = re.compile(r"<<<[ \t]*TEXT|TEXT[ \t]*>>>")
MOST_PLACES = 20
UNSTATED = 0.5  # the weight of what is contested without a stated confidence


@dataclass(frozen=True)
class Contested:
    """The places that were found in the response, and the words that stand nowhere in it."""

    points: tuple[Point, ...]
    nowhere: tuple[str, ...]


def contested_in(
    text: str, case: Case, statements: tuple[Statement, ...], confidence: float | None
) -> Contested:
    """What the turn's lines contest; offsets are in `case.response`, and equal places are one."""
    points: dict[tuple[int, int], Point] = {}
    nowhere: list[str] = []
    for line in list(WORDS_LINE.finditer(text))[:MOST_PLACES]:
        words, rest = _parted(line["value"])
        place = placed(words, case.response, tuple(points))
        if place is None:
            nowhere.append(words)
            continue
        instead = "" if NOTHING.fullmatch(rest) else rest
        there = case.response[place[0] : place[1]]
        if instead != there:  # what is to stay is not contested
            points[place] = _point(place, there, instead, statements, confidence)
    return Contested(tuple(points[place] for place in sorted(points)), tuple(nowhere))


def _parted(line: str) -> tuple[str, str]:
    """The words that are contested, and what should stand there; "" where nothing is said."""
    quoted = QUOTED.match(line)
    arrow = ARROW.match(line, quoted.end()) if quoted else None
    if quoted and (arrow or quoted.end() == len(line)):
        words = next(part for part in quoted.groups() if part is not None)
        return words.strip(QUOTES), line[arrow.end() :].strip(QUOTES) if arrow else ""
    words, _, rest = ARROW.sub("\n", line, count=1).partition("\n")
    return words.strip(QUOTES), rest.strip(QUOTES)


def place_lines(points: Iterable[Point]) -> str:
    """These places, each once, with what should stand there where somebody said so."""
    lines = [
        f"“{point.text}” -> “{point.evidence}”" if point.evidence else f"“{point.text}”"
        for point in points
        if point.finding != "carried"
    ]
    return "\n".join(dict.fromkeys(lines))


def marked_in(text: str) -> str | None:
    """The text between the marks as it stands there; None where there is none, or no end of it.

    None, too, where more marks stand there than pairs: a response may hold such marks itself, and
    half of it would be offered as the whole.
    """
    found = list(MARKED.finditer(text))
    is_paired = len(MARK.findall(text)) == 2 * len(found)
    return found[-1]["text"] if found and is_paired and found[-1]["text"].strip() else None


def _point(
    place: tuple[int, int],
    words: str,
    instead: str,
    statements: tuple[Statement, ...],
    confidence: float | None,
) -> Point:
    within = [s.index for s in statements if s.start <= place[0] < s.end]
    both = all(any(sign.isdigit() for sign in one) for one in (words, instead))
    category: Category = "number_or_date" if both else "contradicted"
    return Point(
        within[0] if within else 0,
        "contradicted",
        *place,
        words,
        category,
        instead,
        f"the evidence says “{instead}”, not “{words}”" if instead else "it does not hold",
        UNSTATED if confidence is None else confidence,
    )
