"""Holds a text against a format: JSON, a table, CSV, a list, capitals, a title, no commas."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from core.tools.kept import Kept, kept_otherwise

FormatName = Literal[
    "json", "table", "csv", "bullets", "numbers", "upper", "lower", "title", "no_commas"
]
NAMES: Mapping[FormatName, str] = {
    "json": "JSON",
    "table": "a table",
    "csv": "CSV",
    "bullets": "a bulleted list",
    "numbers": "a numbered list",
    "upper": "capital letters throughout",
    "lower": "small letters throughout",
    "title": "a title first",
    "no_commas": "no comma",
}
FENCED = re.compile(r"^[ \t]*```[ \t]*\w*[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
RULED = re.compile(r"^[ \t]*\|?[ \t]*:?-{1,200}:?[ \t]*(?:\|[ \t:-]*)+$", re.MULTILINE)
BULLET = re.compile(r"^[ \t]*(?:[-*+–][ \t]+|[•◦▪·][ \t]*)(?=\S)", re.MULTILINE)
NUMBERED = re.compile(r"^[ \t]*(?:\d{1,3}[.)、．]|[（(]\d{1,3}[)）])", re.MULTILINE)
COMMA = re.compile("[,，]")
LONGEST_TITLE = 120  # characters
LAST_OF_SENTENCE = (".", "。", ",", "，", ";", "；")


@dataclass(frozen=True)
class Format:
    """A format that is asked for; `items` is how many entries a list shall have, None for any."""

    name: FormatName
    items: int | None = None


def check_format(text: str, asked: Format) -> Kept:
    """Whether the text has the format; a fence around it and words beside it do not matter."""
    if asked.name in ("bullets", "numbers"):
        return _list(text, asked)
    wanted = NAMES[asked.name]
    if asked.name == "no_commas":
        comma = COMMA.search(text)
        found = "has one" if comma else "has none"
        return kept_otherwise("format", wanted, found, holds=not comma, place=_span(comma))
    if asked.name in ("upper", "lower"):
        return _letters(text, asked.name)
    found = CHECKS[asked.name](text)
    return kept_otherwise("format", wanted, found or "has that form", holds=not found)


def _span(match: re.Match[str] | None) -> tuple[int, int] | None:
    return match.span() if match else None


def _list(text: str, asked: Format) -> Kept:
    """Entries are counted at every depth and at the outermost one: either may be meant."""
    signs = list((BULLET if asked.name == "bullets" else NUMBERED).finditer(text))
    depths = [len(re.match(r"[ \t]*", sign.group()).group()) for sign in signs]  # type: ignore[union-attr]
    outermost = sum(1 for depth in depths if depth == min(depths))
    wanted = NAMES[asked.name]
    if asked.items is None:
        found = f"has {len(signs)} entries" if signs else "has no such entry"
        return kept_otherwise("format", wanted, found, holds=len(signs) > 0)
    count = outermost if signs else 0
    noun = "entry" if asked.items == 1 else "entries"
    return kept_otherwise(
        "format",
        f"{wanted} of {asked.items} {noun}",
        f"has {count}",
        holds=asked.items in (count, len(signs)),
    )


def _letters(text: str, name: Literal["upper", "lower"]) -> Kept:
    is_wrong = str.islower if name == "upper" else str.isupper
    place = next((index for index, char in enumerate(text) if is_wrong(char)), None)
    wrong = "small" if name == "upper" else "capital"
    found = f"has {'no' if place is None else 'a'} {wrong} letter"
    end = (place, place + 1) if place is not None else None
    return kept_otherwise("format", NAMES[name], found, holds=place is None, place=end)


def _json(text: str) -> str:
    """What is wrong with it as JSON; empty where nothing is."""
    shown = [text, *FENCED.findall(text)]
    why = "is none"
    for part in shown:
        try:
            value = json.loads(part)
        except (ValueError, RecursionError) as error:
            if part.strip()[:1] in ("{", "["):
                why = f"cannot be read as such ({str(error)[:80]})"
        else:
            if isinstance(value, dict | list):
                return ""
    return why


def _table(text: str) -> str:
    tabs = sum(1 for line in text.splitlines() if "\t" in line.strip())
    # However it is drawn: with pipes, in HTML, in box characters, with tabs.
    drawn = RULED.search(text) or "<table" in text or "│" in text or "┃" in text or tabs > 1
    piped = sum(1 for line in text.splitlines() if line.count("|") > 1)
    return "" if drawn or piped > 1 else "has none"


def _csv(text: str) -> str:
    for part in (*FENCED.findall(text), text):
        lines = [line for line in part.strip().splitlines() if line.strip()]
        try:
            widths = {len(row) for row in csv.reader(io.StringIO("\n".join(lines)))}
        except csv.Error:
            continue
        if len(lines) > 1 and len(widths) == 1 and widths != {1}:
            return ""
    return "has rows of different length, or only one" if "," in text else "has no such rows"


def _title(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "is empty"
    first = lines[0]
    is_title = first.startswith(("#", "**", "<<", "《", "【")) or (
        len(lines) > 1 and len(first) <= LONGEST_TITLE and not first.endswith(LAST_OF_SENTENCE)
    )
    return "" if is_title else "begins with a sentence"


CHECKS: Mapping[str, Callable[[str], str]] = {
    "json": _json, "table": _table, "csv": _csv, "title": _title
}  # fmt: skip
