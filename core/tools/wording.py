"""Holds a text against words that it shall have or lack, begin or end with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from core.tools.kept import Kept, kept_otherwise

WordingKind = Literal["has", "lacks", "starts", "ends", "asks"]
CLOSING = "\"'“”‘’»«」』）)*_` \n\t"
QUESTION_MARKS = ("?", "？", "؟")


@dataclass(frozen=True)
class Wording:
    """Words that are asked for: any one of `words`, `least` to `most` times in all.

    `lacks` are words that must not be there, `asks` is an end with a question. `is_letter` looks
    for the words anywhere and not as whole words.
    """

    kind: WordingKind
    words: tuple[str, ...] = ()
    least: int = 1
    most: int | None = None
    is_letter: bool = False


def check_wording(text: str, asked: Wording) -> Kept:
    """Whether the text keeps to the words asked of it, capitals and small letters alike."""
    if asked.kind == "asks":
        holds = text.rstrip(CLOSING).endswith(QUESTION_MARKS)
        found = "ends with one" if holds else "does not end with one"
        return kept_otherwise("wording", "a question at the end", found, holds=holds)
    named = " or ".join(f"“{word}”" for word in asked.words)
    if asked.kind in ("starts", "ends"):
        return _edge(text, asked, named)
    return _lacks(text, asked, named) if asked.kind == "lacks" else _has(text, asked, named)


def _edge(text: str, asked: Wording, named: str) -> Kept:
    where = "beginning" if asked.kind == "starts" else "end"
    bare = _letters(text)
    words = [_letters(word) for word in asked.words]
    is_there = bare.startswith if asked.kind == "starts" else bare.endswith
    holds = any(is_there(word) for word in words)
    found = f"{'has' if holds else 'does not have'} it there"
    return kept_otherwise("wording", f"{named} at the {where}", found, holds=holds)


def _lacks(text: str, asked: Wording, named: str) -> Kept:
    place = next((match for word in asked.words for match in _places(text, word, asked)), None)
    found = "has it" if place else "does not have it"
    span = place.span() if place else None
    return kept_otherwise("wording", f"no {named}", found, holds=place is None, place=span)


def _has(text: str, asked: Wording, named: str) -> Kept:
    whole = sum(1 for word in asked.words for _ in _places(text, word, asked))
    # "solar" stands in "solarpunk" for some who count, for others not.
    within = max(whole, sum(_folded(text).count(_folded(word)) for word in asked.words))
    is_short = within < asked.least
    is_over = asked.most is not None and whole > asked.most
    times = "once" if whole == 1 else f"{whole} times"
    found = f"has it {times}" if whole else "does not have it"
    return kept_otherwise(
        "wording", f"{named}{_how_often(asked)}", found, holds=not (is_short or is_over)
    )


def _how_often(asked: Wording) -> str:
    times = "time" if asked.least == 1 else "times"
    if asked.most is None:
        return "" if asked.least == 1 else f" at least {asked.least} {times}"
    if asked.least == asked.most:
        return f" exactly {asked.least} {times}"
    return f" at most {asked.most} {'time' if asked.most == 1 else 'times'}"


def _places(text: str, word: str, asked: Wording) -> list[re.Match[str]]:
    """Where the word stands by itself; in a script without blanks, wherever it stands."""
    bare = re.escape(word.strip())
    if asked.is_letter or (not word.isascii() and not word[:1].isalpha()):
        return list(re.finditer(bare, text, re.IGNORECASE))
    is_unspaced = re.search("[\u3040-\u30ff\u3400-\u9fff]", word) is not None
    edges = ("", "") if is_unspaced else (r"(?<!\w)", r"(?!\w)")
    return list(re.finditer(f"{edges[0]}{bare}{edges[1]}", text, re.IGNORECASE))


def _folded(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("’", "'").casefold()


def _letters(text: str) -> str:
    """Letters and figures alone: a comma more or less is no other beginning."""
    return re.sub(r"[\W_]+", "", _folded(text))
