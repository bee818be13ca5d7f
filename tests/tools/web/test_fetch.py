"""The gate, one answer past it, and the providers: what each is asked and what is read of it."""

from __future__ import annotations

import gzip
import ipaddress
import json
import logging
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.keys import SEARCH_KEY, Keys
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ConfigError, ModelError, ModelTimeout, ReviewError, Stopped
from core.schema.rosters import AgentConfig
from core.tools.registry import SearchResult
from core.tools.web_fetch import (
    MAX_QUERY_CHARS,
    AddressGate,
    GoogleSearch,
    GuardedFetch,
    HttpResponse,
    SearchProvider,
    SearXngSearch,
    WikipediaSearch,
    explain_refusal,
    make_loose_query,
    parse_origin,
    shorten_query,
)
from tests.tools.corpus import table
from tests.tools.web.certificates import certified
from tests.tools.web.server import Got, Page, Server, as_json, serving


def test_an_answer_comes_whole_with_its_status() -> None:
    with serving(Page(b"hello " * 1000, 404)) as server:
        answered = server.fetch()(
            f"{server.origin}/a", {"q": "ä & b"}, StopSignal(), {"X-Key": "k"}
        )
    assert (answered.status, answered.body) == (404, b"hello " * 1000)
    (got,) = server.got
    assert (got.path, got.params) == ("/a", {"q": "ä & b"})
    assert got.headers["x-key"] == "k"
    assert got.headers["accept-encoding"] == "identity"
    assert got.headers["user-agent"].startswith("Counterpoint")


def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    """A name that points inside at its second look gains nothing: there is no second look."""
    looks: list[str] = []
    with serving(Page(b"here")) as server:

        def resolve(host: str, port: int) -> list[str]:
            looks.append(host)
            return ["127.0.0.1"] if len(looks) == 1 else ["10.255.255.1"]

        origin = f"http://rebinding.test:{server.port}"
        fetch = GuardedFetch(AddressGate(frozenset({origin}), resolve), 5.0)
        assert fetch(f"{origin}/", {}, StopSignal(), {}).body == b"here"
    assert looks == ["rebinding.test"]
    assert server.got[0].headers["host"] == f"rebinding.test:{server.port}"


def test_nothing_is_sent_inside_unless_it_was_named() -> None:
    with serving(Page()) as server:
        for fetch in (GuardedFetch(AddressGate()), server.fetch_as("other.test")):
            with pytest.raises(ConfigError):
                fetch(f"{server.origin}/", {}, StopSignal(), {})
        assert server.got == []


def test_no_redirect_is_followed() -> None:
    with serving(Page(b"", 302, {"Location": "/secret"})) as server:
        assert server.fetch()(f"{server.origin}/", {}, StopSignal(), {}).status == 302
    assert [got.path for got in server.got] == ["/"]


def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    with serving(Page(b"here")) as server:
        fetch = server.fetch_as("two.test", ("::1", "127.0.0.1"))
        answered = fetch(f"http://two.test:{server.port}/", {}, StopSignal(), {})
    assert answered.body == b"here"


def test_an_answer_too_large_is_not_read_to_its_end() -> None:
    with (
        serving(Page(b"x" * 3_000_000)) as server,
        pytest.raises(ModelError, match="larger than 100,000 bytes"),
    ):
        server.fetch()(f"{server.origin}/", {}, StopSignal(), {})


def test_an_answer_that_would_unpack_is_refused() -> None:
    bomb = Page(gzip.compress(b"0" * 5_000_000), headers={"Content-Encoding": "gzip"})
    with serving(bomb) as server, pytest.raises(ModelError, match="packed"):
        server.fetch()(f"{server.origin}/", {}, StopSignal(), {})


@pytest.mark.parametrize("page", [Page(pause=20), Page(b"ab", within=20)])
def test_a_silent_server_is_left(page: Page) -> None:
    with serving(page) as server:
        began = time.monotonic()
        with pytest.raises(ModelTimeout):
            server.fetch(seconds=0.4)(f"{server.origin}/", {}, StopSignal(), {})
        assert time.monotonic() - began < 3


def test_stop_is_heard_at_once() -> None:
    stop = StopSignal()
    with serving(Page(pause=20)) as server:
        threading.Timer(0.2, stop.set).start()
        began = time.monotonic()
        with pytest.raises(Stopped):
            server.fetch(seconds=10)(f"{server.origin}/", {}, stop, {})
        assert time.monotonic() - began < 2


def test_a_closed_port_is_a_failure_without_the_words_that_were_searched_for() -> None:
    with serving(Page()) as server:
        fetch, origin = server.fetch(), server.origin
    with pytest.raises(ModelError) as raised:
        fetch(f"{origin}/", {"q": "private words"}, StopSignal(), {"X-Key": "sk-secret"})
    assert "private" not in str(raised.value)
    assert "secret" not in str(raised.value)


def test_an_address_that_no_request_can_be_made_of_is_a_failure() -> None:
    with serving(Page()) as server, pytest.raises(ModelError, match="could not be asked"):
        server.fetch()(f"{server.origin}/\x7f", {}, StopSignal(), {})


def test_a_certificate_is_asked_for_by_name_and_looked_at(tmp_path: Path) -> None:
    """TLS goes to the pinned address, and the certificate must be the name's."""
    named: list[str | None] = []
    with certified(tmp_path, "site.test", lambda name: named.append(name)) as port:
        origin = f"https://site.test:{port}"
        fetch = GuardedFetch(AddressGate(frozenset({origin}), lambda _h, _p: ["127.0.0.1"]), 5.0)
        with pytest.raises(ModelError, match="certificate"):
            fetch(f"{origin}/", {}, StopSignal(), {})
    assert named == ["site.test"]
    assert ssl.HAS_SNI


INSIDE = [
    "127.0.0.1", "127.8.9.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "::1", "fd12:3456::1", "fc00::1", "fec0::1",
]  # fmt: skip
NEVER = [
    "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "168.63.129.16", "100.100.100.200",  # noqa: S104
    "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "::", "fe80::1",
    "fe80::1%eth0", "ff02::1", "fd00:ec2::254", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:8.8.8.8", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "not an address", "", "127.1",
]  # fmt: skip
SHARED = ["100.64.0.1", "198.18.0.1", "192.0.2.1", "2001:db8::1"]
OUTSIDE = ["8.8.8.8", "91.198.174.192", "2620:0:862:ed1a::1"]


@pytest.mark.parametrize("address", [*INSIDE, *NEVER, *SHARED])
def test_nothing_is_fetched_from_there(address: str) -> None:
    assert explain_refusal(address)
    with pytest.raises(ConfigError, match="nothing was sent"):
        AddressGate(resolve=lambda _host, _port: [address]).addresses_of("https://example.org/")


@pytest.mark.parametrize("address", OUTSIDE)
def test_public_addresses_pass(address: str) -> None:
    assert AddressGate(resolve=lambda _h, _p: [address]).addresses_of("https://a.org/x") == [
        address
    ]


@pytest.mark.parametrize("address", INSIDE)
def test_a_named_origin_may_be_inside(address: str) -> None:
    gate = AddressGate(frozenset({"http://search.lan:8080"}), lambda _host, _port: [address])
    assert gate.addresses_of("http://search.lan:8080/search?q=x") == [address]


@pytest.mark.parametrize("address", NEVER)
def test_a_named_origin_is_never_one_of_these(address: str) -> None:
    gate = AddressGate(frozenset({"http://search.lan:80"}), lambda _host, _port: [address])
    with pytest.raises(ConfigError):
        gate.addresses_of("http://search.lan/")


@pytest.mark.parametrize(*table("gate: only that very origin is named"))
def test_only_that_very_origin_is_named(url: str) -> None:
    gate = AddressGate(frozenset({"http://search.lan:8080"}), lambda _host, _port: ["192.168.1.1"])
    with pytest.raises(ConfigError):
        gate.addresses_of(url)


def test_one_address_inside_spoils_the_name() -> None:
    gate = AddressGate(resolve=lambda _host, _port: ["8.8.8.8", "127.0.0.1"])
    with pytest.raises(ConfigError, match="this computer"):
        gate.addresses_of("https://example.org/")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "2130706433", "0x7f.1"])
def test_the_real_resolver_leads_inside_by_no_spelling(host: str) -> None:
    with pytest.raises((ConfigError, ModelError)):
        AddressGate().addresses_of(f"https://{host}/")


def test_a_name_that_nobody_has_is_said_not_to_be_found() -> None:
    def nobody(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    with pytest.raises(ModelError, match=r"example\.org was not found"):
        AddressGate(resolve=nobody).addresses_of("https://example.org/")
    with pytest.raises(ModelError, match="not found"):
        AddressGate(resolve=lambda _host, _port: []).addresses_of("https://example.org/")


@pytest.mark.parametrize(*table("gate: what is no web address is refused"))
def test_what_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        parse_origin(url)


def test_an_origin_always_says_its_port() -> None:
    assert parse_origin("https://A.org/x?y") == "https://a.org:443"
    assert parse_origin("http://[::1]:81/") == "http://[::1]:81"


@given(st.ip_addresses())
def test_whatever_is_not_global_is_refused(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if not address.is_global or address.is_multicast:
        assert explain_refusal(str(address))
    if not (address.is_private or address.is_loopback or address.is_global):
        assert explain_refusal(str(address), is_named=True)


KEY = "AIza-secret-0123456789"
ITEM = {"title": "Orrin bridge", "link": "https://a.org/orrin", "snippet": "It is 412 m long."}
RESULT = {"title": "Orrin bridge", "url": "https://a.org/orrin", "content": "It is 412 m long."}
PAGE = {
    "title": "Orrin bridge",
    "index": 1,
    "extract": "The Orrin bridge is 412 m long.\nIt opened in 1931.",
    "fullurl": "https://en.wikipedia.org/wiki/Orrin_bridge",
}


def google(server: Server) -> SearchProvider:
    return GoogleSearch("engine:1", KEY, f"{server.origin}/customsearch/v1")


def searxng(server: Server) -> SearchProvider:
    return SearXngSearch(f"{server.origin}/searx/")


def wikipedia(server: Server) -> SearchProvider:
    return WikipediaSearch(f"{server.origin}/{{language}}/w/api.php")


ALL: list[Callable[[Server], SearchProvider]] = [google, searxng, wikipedia]


def asked(
    make: Callable[[Server], SearchProvider],
    answer: Page | Callable[[Got], Page],
    query: str = "How long is the Orrin bridge?",
    language: str = "en",
) -> tuple[tuple[SearchResult, ...], list[Got]]:
    with serving(answer) as server:
        found = make(server).search(query, language, server.fetch(), StopSignal())
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
    assert found[0] == SearchResult(
        "Orrin bridge", "https://a.org/orrin", "It is 412 m long.", "Google Programmable Search"
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
    assert make_loose_query("It was in 1926.") == ""
    found, got = asked(wikipedia, as_json({"batchcomplete": True}), "It was in 1926.")
    assert (found, len(got)) == ((), 1)


@pytest.mark.parametrize("make", ALL)
def test_nothing_found_is_no_failure(make: Callable[[Server], SearchProvider]) -> None:
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
def test_what_is_no_answer_is_a_failure(
    make: Callable[[Server], SearchProvider], page: Page
) -> None:
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
    make: Callable[[Server], SearchProvider], status: int, words: str
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
    assert KEY not in repr(GoogleSearch("engine", KEY))


def test_the_search_key_goes_to_no_other_address() -> None:
    """A roster that somebody sends may name a key for its own address; this one it does not get."""
    keys = Keys({SEARCH_KEY: KEY})
    seat = AgentConfig("openai/x", "https://elsewhere.test/v1", key_name=SEARCH_KEY)
    with pytest.raises(ConfigError, match="is not sent"):
        keys.credentials(seat)


@given(st.text(max_size=900))
def test_a_query_is_one_short_line(text: str) -> None:
    query = shorten_query(text)
    assert len(query) <= MAX_QUERY_CHARS
    assert query == query.strip()
    assert "\n" not in query
    assert shorten_query(query) == query


@given(st.binary(max_size=300))
def test_whatever_bytes_come_are_read_or_refused(body: bytes) -> None:
    for provider in (GoogleSearch("e", "k"), SearXngSearch("https://s.test"), WikipediaSearch()):
        try:
            found = provider.search("x", "en", lambda *_: HttpResponse(200, body), StopSignal())
        except ReviewError:
            continue
        assert all(isinstance(one.text, str) for one in found)
        json.dumps([one.text for one in found])
