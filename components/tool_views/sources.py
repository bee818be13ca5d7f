"""What was read: title, address and words of each source; what a comparison came to."""

from __future__ import annotations

import msgspec

from components.markup import Html, element, joined, outward
from components.tool_views.view import View
from components.words import clipped

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
    """What the search tool gives; `by` says who answered."""

    sources: list[Source]
    by: str = ""


class Match(msgspec.Struct):
    """What the match tool gives."""

    finding: str
    by: str = ""
    sources: list[Source] = []


def _search(given: Search) -> Html:
    by = [element("div", f"Answered by {clipped(given.by, 80)}.", class_="cp-quiet")]
    return joined([*(by if given.by else []), sources_html(given.sources)])


def _match(given: Match) -> Html:
    words = FINDING_WORDS.get(given.finding, clipped(given.finding, 60))
    by = f" ({clipped(given.by, 60)})" if given.by else ""
    return joined([element("div", f"Compared{by}: {words}."), sources_html(given.sources)])


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
