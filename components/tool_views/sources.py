"""What was read: title, address and words of each source; what a comparison came to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from components.html import Html, element, joined, outward
from components.tool_views.plain import read_object
from components.tool_views.view import View
from components.wording import clipped, counted
from core.events import ToolUse

MOST_SOURCES = 8
LONGEST_TEXT = 500
FINDING_WORDS = {
    "holds": "the evidence says the same",
    "contradicted": "the evidence says otherwise",
    "unsupported": "the evidence does not carry it",
    "irrelevant": "it does not answer the question",
    "self_contradictory": "another statement of the response says otherwise",
    "open": "nothing decides it",
}


class Source(msgspec.Struct):
    """One thing that was read."""

    title: str = ""
    address: str = ""
    text: str = ""


class Search(msgspec.Struct):
    """What the search tool gives beside its words; `above` tells how many stand above already."""

    sources: list[Source]
    above: int = 0


class Match(msgspec.Struct):
    """What the match tool gives."""

    finding: str
    by: str = ""
    sources: list[Source] = []
    above: int = 0


def _search(given: Search) -> Html:
    above = f"{counted(given.above, 'place')} of it shown above." if given.above > 0 else ""
    line = [element("div", above, class_="cp-quiet")] if above else []
    return joined([*line, sources_html(given.sources)])


def _match(given: Match) -> Html:
    words = FINDING_WORDS.get(given.finding, clipped(given.finding, 60))
    by = f" ({clipped(given.by, 60)})" if given.by else ""
    above = f" with the {counted(given.above, 'place')} above" if given.above > 0 else ""
    return joined([element("div", f"Compared{by}{above}: {words}."), sources_html(given.sources)])


def shown_once(uses: Sequence[ToolUse]) -> tuple[list[ToolUse], list[str]]:
    """The uses without sources that an earlier one shows; all words of sources as they show them.

    What a search found is compared next, and kept in memory: three times the same passages.
    """
    shown: list[str] = []
    kept = []
    for use in uses:
        fields = read_object(use.gave) if use.tool in ("search", "match") else {}
        found = fields.get("sources")
        sources = found if isinstance(found, list) else []
        new = [source for source in sources if not is_shown(_words_of(source), shown)]
        shown += [_words_of(source) for source in new[:MOST_SOURCES]]
        above = len(sources) - len(new)
        told = json.dumps(fields | {"sources": new, "above": above}) if above else use.gave
        kept.append(replace(use, gave=told))
    return kept, shown


def is_shown(text: str, shown: Sequence[str]) -> bool:
    """True for words that stand among those already, as far as they would be shown."""
    words = clipped(text, LONGEST_TEXT).rstrip("…")
    return bool(words) and any(words in other for other in shown)


def _words_of(source: object) -> str:
    text = source.get("text") if isinstance(source, dict) else None
    return clipped(text, LONGEST_TEXT) if isinstance(text, str) else ""


def sources_html(sources: list[Source]) -> Html:
    """Each source with its words; an address is a link only where it is a web address."""
    drawn = [_source(source) for source in sources[:MOST_SOURCES]]
    more = len(sources) - MOST_SOURCES
    rest = [element("div", f"and {more:,} more", class_="cp-quiet")] if more > 0 else []
    return joined([*drawn, *rest])


def _source(source: Source) -> Html:
    return element(
        "div",
        element("strong", clipped(source.title, 120)),
        *([" ", _address(source.address)] if source.address else []),
        element("div", clipped(source.text, LONGEST_TEXT), dir="auto"),
        class_="cp-quote",
        dir="auto",
    )


def _address(address: str) -> Html:
    is_short = len(address) <= 300
    shown = outward(address) if is_short else clipped(address, 120)
    return element("span", shown, class_="cp-quiet")


SEARCH = View(Search, _search)
MATCH = View(Match, _match)
