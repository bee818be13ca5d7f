"""Wikipedia in the statement's language, through the MediaWiki API: how five articles begin."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from core.concurrency import Stop
from core.errors import ModelError
from core.evidence.terms import FUNCTION_WORDS, WORD
from core.tools.toolbox import Found
from core.tools.web.fetch import Fetch
from core.tools.web.provider import MOST_RESULTS, NO_HEADERS, body_of, found_of

DEFAULT_LANGUAGE = "en"
MOST_WORDS = 12
_TAG = re.compile(r"[a-z]{2,3}")


class _Page(msgspec.Struct):
    title: str
    index: int = 0
    extract: str = ""
    fullurl: str = ""


class _Query(msgspec.Struct):
    pages: list[_Page] = []


class _Error(msgspec.Struct):
    info: str = ""


class _Reply(msgspec.Struct):
    query: _Query | None = None
    error: _Error | None = None


@dataclass(frozen=True)
class Wikipedia:
    """`address` has a place for the language."""

    address: str = "https://{language}.wikipedia.org/w/api.php"

    name = "Wikipedia"
    service = "wikipedia"

    def search(self, query: str, language: str, fetch: Fetch, stop: Stop) -> tuple[Found, ...]:
        """The articles' opening paragraphs, the likeliest article first.

        Its search wants every word. A statement with a wrong figure in it would find nothing, so
        then its words without figures are looked for, any of them.
        """
        found = self._asked(query, language, fetch, stop)
        loosened = loose(query)
        return found or (self._asked(loosened, language, fetch, stop) if loosened else ())

    def _asked(self, query: str, language: str, fetch: Fetch, stop: Stop) -> tuple[Found, ...]:
        primary = language.split("-")[0].lower()
        host = primary if _TAG.fullmatch(primary) and primary != "und" else DEFAULT_LANGUAGE
        params = {
            "action": "query",
            "format": "json",
            "formatversion": "2",
            "generator": "search",
            "gsrsearch": query,
            "gsrlimit": str(MOST_RESULTS),
            "prop": "extracts|info",
            "inprop": "url",
            "exintro": "1",
            "explaintext": "1",
            "exlimit": str(MOST_RESULTS),
        }
        url = self.address.format(language=host)
        reply = body_of(fetch(url, params, stop, NO_HEADERS), self.name, _Reply)
        if reply.error is not None:
            raise ModelError(f"{self.name} refused the search: {reply.error.info[:200]}")
        pages = sorted(reply.query.pages if reply.query else (), key=lambda page: page.index)
        found = (found_of(p.title, p.fullurl, p.extract, self.name) for p in pages)
        return tuple(one for one in found if one)[:MOST_RESULTS]


def loose(query: str) -> str:
    """Any of the words that say something, names and long ones first; empty where none is left."""
    words = [match.group() for match in WORD.finditer(query)]
    kept = [
        word
        for word in dict.fromkeys(words)
        if word.casefold() not in FUNCTION_WORDS and not word[0].isnumeric()
    ]
    kept.sort(key=lambda word: (not word[0].isupper(), -len(word)))
    return " OR ".join(kept[:MOST_WORDS])
