"""Searches the project's sources, and the web where the operator has chosen a provider.

The sources go first: the web is asked where they hardly speak of it. Source: HaluAgent 2.2
(`web_search`, the five best results).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from core.errors import InputError, ModelError
from core.evidence.terms import query_terms, terms
from core.records import Case, Passage, Statement
from core.tools.toolbox import Answer, Bench, Example, Found, Tool

MOST = 5
LIBRARY = "the project's sources"
NO_WEB = "The web was not searched: no provider is chosen under Settings, Web search."
OFF = (
    "There are no sources to search here, and no provider of web searches is chosen under "
    "Settings, Web search."
)
# Share of a query's words that the sources must hold for the web not to be asked.
SPOKEN_FROM = 0.5
SHORT_TERMS = 4


class Search(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to look for, and where.

    query: the words to look for: a whole statement, or a question.
    where: library (the project's own sources), web, or both: the sources first, the web where
    they hardly speak of it.
    """

    query: str
    where: Literal["both", "library", "web"] = "both"


def _search(given: Search, bench: Bench) -> Answer:
    if not given.query.strip():
        raise InputError("Expected words to search for, found none; give a statement's.")
    passages: Sequence[Passage] = ()
    if given.where != "web" and bench.library is not None:
        passages = bench.library(given.query, MOST)[:MOST]
    elif given.where == "library":
        raise InputError("There are no sources to search here; add a document to the check.")
    if given.where == "library" or _speaks(given.query, passages):
        return _answer(given, passages, (), "")
    if bench.web is None:
        if given.where == "web":
            raise InputError(NO_WEB)
        return _answer(given, passages, (), NO_WEB)
    try:
        found = bench.web(given.query, MOST)[:MOST]
    except ModelError as error:
        if not passages:
            raise
        return _answer(given, passages, (), f"The web could not be searched: {error}")
    return _answer(given, passages, found, "")


def _speaks(query: str, passages: Sequence[Passage]) -> bool:
    """True where the passages hold enough of the query's words."""
    wanted = query_terms(query)
    texts = (f"{p.heading} {p.before} {p.text} {p.after}" for p in passages)
    there = {term for text in texts for term in terms(text)}
    held = sum(term in there for term in wanted)
    return bool(passages) and held >= SPOKEN_FROM * len(wanted)


def _answer(
    given: Search, passages: Sequence[Passage], found: Sequence[Found], note: str
) -> Answer:
    """What was found, who found it and from when it is; it carries no label by itself."""
    sources = [_of_passage(passage) for passage in passages]
    sources += [_of_found(one) for one in found]
    who = [LIBRARY] if passages else []
    who += [
        f"{name}{_as_of(found)}" for name in dict.fromkeys(one.by or "the web" for one in found)
    ]
    by = " and ".join(who)
    count = "1 place" if len(sources) == 1 else f"{len(sources)} places"
    words = f"Found {count} in {by}." if sources else "Nothing was found."
    gave = {"query": given.query, "by": by, "sources": sources}
    whole = f"{words} {note}".strip()
    return Answer("unclear", whole, gave, has_something=bool(sources))


def _of_passage(passage: Passage) -> dict[str, str]:
    place = "" if passage.page is None else f"page {passage.page}"
    around = f"{passage.before} {passage.text} {passage.after}".strip()
    return {"by": LIBRARY, "title": passage.source, "address": place, "text": around}


def _of_found(found: Found) -> dict[str, str]:
    shown = {"by": found.by, "title": found.title, "address": found.address, "text": found.text}
    return shown if found.seen_at is None else {**shown, "seen": _day(found.seen_at)}


def _as_of(found: Sequence[Found]) -> str:
    """From when kept results are."""
    seen = [one.seen_at for one in found if one.seen_at is not None]
    return f" (as found on {_day(min(seen))})" if seen else ""


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _reads(statement: Statement | None, case: Case) -> Search | None:
    """Every statement; one too short to be looked for alone goes with its question."""
    if statement is None:
        return None
    is_short = len(query_terms(statement.rewrite, case.language)) < SHORT_TERMS
    if is_short and case.question.strip():
        return Search(f"{case.question.strip()} {statement.rewrite}")
    return Search(statement.rewrite)


def _why_off(bench: Bench) -> str:
    return OFF if bench.library is None and bench.web is None else ""


TOOL = Tool(
    name="search",
    description=(
        "Looks for sources that speak of a statement: in the project's own documents, and on the "
        "web where a provider is chosen and the documents hardly speak of it. Use it for "
        "statements of fact. Comes back with at most five results of each, with title, address "
        "and words; web results are the provider's snippets, the pages themselves are not read. "
        "It gives no label: compare the statement with what was found by the tool match."
    ),
    takes=Search,
    work=_search,
    examples=(
        Example(
            question="When was the Harlow lighthouse built?",
            response="The Harlow lighthouse was built in 1841.",
            given=Search("The Harlow lighthouse was built in 1841."),
            label="unclear",
            thought="This is a statement of fact, so I look for sources that speak of it.",
        ),
        Example(
            question="云溪桥有多长？",
            response="云溪桥长512米。",
            given=Search("云溪桥长512米。", "library"),
            label="unclear",
            thought="这是一个事实陈述，先在项目文档中查找它的长度。",
        ),
    ),
    reads=_reads,
    why_off=_why_off,
)
