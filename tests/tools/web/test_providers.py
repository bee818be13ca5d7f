"""The providers: what each is asked, what is read from its answers, what is wrong in words."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.keys import SEARCH_KEY, Keys
from core.runtime.concurrency import Stop
from core.runtime.errors import ConfigError, ModelError, ReviewError
from core.schema.rosters import Seat
from core.tools.registry import Found
from core.tools.web_fetch import (
    LONGEST_QUERY,
    Answered,
    Google,
    Provider,
    SearXng,
    Wikipedia,
    loose,
    query_of,
)
from tests.tools.web.server import Got, Page, Server, as_json, serving

KEY = "AIza-secret-0123456789"
ITEM = {"title": "Orrin bridge", "link": "https://a.org/orrin", "snippet": "It is 412 m long."}
RESULT = {"title": "Orrin bridge", "url": "https://a.org/orrin", "content": "It is 412 m long."}
PAGE = {
    "title": "Orrin bridge",
    "index": 1,
    "extract": "The Orrin bridge is 412 m long.\nIt opened in 1931.",
    "fullurl": "https://en.wikipedia.org/wiki/Orrin_bridge",
}


def google(server: Server) -> Provider:
    return Google("engine:1", KEY, f"{server.origin}/customsearch/v1")


def searxng(server: Server) -> Provider:
    return SearXng(f"{server.origin}/searx/")


def wikipedia(server: Server) -> Provider:
    return Wikipedia(f"{server.origin}/{{language}}/w/api.php")


ALL: list[Callable[[Server], Provider]] = [google, searxng, wikipedia]


def asked(
    make: Callable[[Server], Provider],
    answer: Page | Callable[[Got], Page],
    query: str = "How long is the Orrin bridge?",
    language: str = "en",
) -> tuple[tuple[Found, ...], list[Got]]:
    with serving(answer) as server:
        found = make(server).search(query, language, server.fetch(), Stop())
    return found, server.got


def test_google_is_asked_for_five_with_the_key_in_a_header() -> None:
    found, (got,) = asked(google, as_json({"items": [ITEM] * 7}))
    assert got.path == "/customsearch/v1"
    assert got.params["cx"] == "engine:1"
    assert got.params["num"] == "5"
    assert got.params["q"] == "How long is the Orrin bridge?"
    assert got.headers["x-goog-api-key"] == KEY
    assert KEY not in str(got.params)
    assert len(found) == 5
    assert found[0] == Found(
        "Orrin bridge",
        "https://a.org/orrin",
        "It is 412 m long.",
        "Google Programmable Search",
    )


def test_searxng_is_asked_at_its_own_address_for_json() -> None:
    found, (got,) = asked(searxng, as_json({"results": [RESULT]}), language="de")
    assert got.path == "/searx/search"
    assert got.params["format"] == "json"
    assert got.params["language"] == "de"
    assert [one.by for one in found] == ["SearXNG"]


def test_wikipedia_is_asked_in_the_language_of_the_statement() -> None:
    other = PAGE | {"title": "Bridge", "index": 2}
    answer = as_json({"query": {"pages": [other, PAGE]}})
    found, (got,) = asked(wikipedia, answer, language="zh-Hant")
    assert got.path == "/zh/w/api.php"
    assert [one.title for one in found] == ["Orrin bridge", "Bridge"]
    assert found[0].text == "The Orrin bridge is 412 m long. It opened in 1931."


@pytest.mark.parametrize("language", ["und", "x@evil.test/", "../..", "", "english"])
def test_a_language_that_is_none_cannot_move_the_address(language: str) -> None:
    _, (got, *_) = asked(wikipedia, as_json({"query": {"pages": [PAGE]}}), language=language)
    assert got.path == "/en/w/api.php"


def test_wikipedia_is_asked_again_for_any_word_where_all_find_nothing() -> None:
    def answer(got: Got) -> Page:
        is_loose = " OR " in got.params["gsrsearch"]
        return as_json({"query": {"pages": [PAGE]}} if is_loose else {"batchcomplete": True})

    query = "The Orrin bridge was opened in 1926."
    found, (_, second) = asked(wikipedia, answer, query)
    assert second.params["gsrsearch"] == "Orrin OR bridge OR opened"
    assert len(found) == 1


def test_words_that_say_nothing_are_not_looked_for_alone() -> None:
    assert loose("It was in 1926.") == ""
    found, got = asked(wikipedia, as_json({"batchcomplete": True}), "It was in 1926.")
    assert (found, len(got)) == ((), 1)


@pytest.mark.parametrize("make", ALL)
def test_nothing_found_is_no_failure(make: Callable[[Server], Provider]) -> None:
    empty = {"items": [], "results": [], "query": {"pages": []}}
    assert asked(make, as_json(empty))[0] == ()


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize(
    "page",
    [
        Page(b"<html>Log in</html>"),
        Page(b""),
        Page(b"[]"),
        Page(b'{"items": 3, "results": 3, "query": 3}'),
        Page(b"[" * 50_000),
        Page(b"\xff\xfe"),
        Page(b"{}", 500),
        Page(b"{}", 429),
        Page(b"", 302, {"Location": "http://127.0.0.1:1/"}),
    ],
)
def test_what_is_no_answer_is_a_failure(make: Callable[[Server], Provider], page: Page) -> None:
    with pytest.raises(ModelError):
        asked(make, page)


@pytest.mark.parametrize(
    ("make", "status", "words"),
    [
        (google, 400, "refused the key"),
        (google, 403, "Custom Search API"),
        (searxng, 403, "search.formats"),
        (searxng, 404, "no search at that address"),
    ],
)
def test_what_the_operator_can_mend_is_said(
    make: Callable[[Server], Provider], status: int, words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        asked(make, as_json({"error": {"message": f"Bad {KEY}"}}, status))


def test_silent_engines_are_not_taken_for_nothing_found() -> None:
    silent = {"results": [], "unresponsive_engines": [["google", "timeout"]]}
    with pytest.raises(ModelError, match="1 of its engines"):
        asked(searxng, as_json(silent))


def test_wikipedias_own_error_is_a_failure() -> None:
    with pytest.raises(ModelError, match="too long"):
        asked(wikipedia, as_json({"error": {"code": "x", "info": "The query is too long."}}))


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "file:///etc/passwd", "", "https://", "http://[", "data:,x"]
)
def test_results_without_a_web_address_are_left_out(link: str) -> None:
    found, _ = asked(google, as_json({"items": [ITEM | {"link": link}, ITEM]}))
    assert [one.address for one in found] == [ITEM["link"]]


def test_long_words_and_controls_are_cut_from_results() -> None:
    odd = RESULT | {"title": "T\x00\n" * 900, "content": "w\u0085 " * 9000}
    ((one,), _) = asked(searxng, as_json({"results": [odd]}))
    assert len(one.title) <= 300
    assert len(one.text) <= 2000
    assert "\x00" not in one.title
    assert "\n" not in one.title


def test_neither_key_nor_words_reach_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    asked(google, as_json({"items": [ITEM]}), "private words of ours")
    assert KEY not in caplog.text
    assert "private" not in caplog.text
    assert KEY not in repr(Google("engine", KEY))


def test_the_search_key_goes_to_no_other_address() -> None:
    """A roster that somebody sends may name a key for its own address; this one it does not get."""
    keys = Keys({SEARCH_KEY: KEY})
    seat = Seat("openai/x", "https://elsewhere.test/v1", key_name=SEARCH_KEY)
    with pytest.raises(ConfigError, match="is not sent"):
        keys.credentials(seat)


@given(st.text(max_size=900))
def test_a_query_is_one_short_line(text: str) -> None:
    query = query_of(text)
    assert len(query) <= LONGEST_QUERY
    assert query == query.strip()
    assert "\n" not in query
    assert query_of(query) == query


@given(st.binary(max_size=300))
def test_whatever_bytes_come_are_read_or_refused(body: bytes) -> None:
    for provider in (Google("e", "k"), SearXng("https://s.test"), Wikipedia()):
        try:
            found = provider.search("x", "en", lambda *_: Answered(200, body), Stop())
        except ReviewError:
            continue
        assert all(isinstance(one.text, str) for one in found)
        json.dumps([one.text for one in found])
