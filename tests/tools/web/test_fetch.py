"""One answer past the gate: pinned to the address that was checked, in time, of bounded size."""

from __future__ import annotations

import gzip
import ssl
import threading
import time
from pathlib import Path

import pytest

from core.runtime.concurrency import Stop
from core.runtime.errors import ConfigError, ModelError, ModelTimeout, Stopped
from core.tools.web_fetch import Gate, GuardedFetch
from tests.tools.web.certificates import certified
from tests.tools.web.server import Page, serving


def test_an_answer_comes_whole_with_its_status() -> None:
    with serving(Page(b"hello " * 1000, 404)) as server:
        answered = server.fetch()(f"{server.origin}/a", {"q": "ä & b"}, Stop(), {"X-Key": "k"})
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
        fetch = GuardedFetch(Gate(frozenset({origin}), resolve), 5.0)
        assert fetch(f"{origin}/", {}, Stop(), {}).body == b"here"
    assert looks == ["rebinding.test"]
    assert server.got[0].headers["host"] == f"rebinding.test:{server.port}"


def test_nothing_is_sent_inside_unless_it_was_named() -> None:
    with serving(Page()) as server:
        for fetch in (GuardedFetch(Gate()), server.fetch_as("other.test")):
            with pytest.raises(ConfigError):
                fetch(f"{server.origin}/", {}, Stop(), {})
        assert server.got == []


def test_no_redirect_is_followed() -> None:
    with serving(Page(b"", 302, {"Location": "/secret"})) as server:
        assert server.fetch()(f"{server.origin}/", {}, Stop(), {}).status == 302
    assert [got.path for got in server.got] == ["/"]


def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    with serving(Page(b"here")) as server:
        fetch = server.fetch_as("two.test", ("::1", "127.0.0.1"))
        answered = fetch(f"http://two.test:{server.port}/", {}, Stop(), {})
    assert answered.body == b"here"


def test_an_answer_too_large_is_not_read_to_its_end() -> None:
    with (
        serving(Page(b"x" * 3_000_000)) as server,
        pytest.raises(ModelError, match="larger than 100,000 bytes"),
    ):
        server.fetch()(f"{server.origin}/", {}, Stop(), {})


def test_an_answer_that_would_unpack_is_refused() -> None:
    bomb = Page(gzip.compress(b"0" * 5_000_000), headers={"Content-Encoding": "gzip"})
    with serving(bomb) as server, pytest.raises(ModelError, match="packed"):
        server.fetch()(f"{server.origin}/", {}, Stop(), {})


@pytest.mark.parametrize("page", [Page(pause=20), Page(b"ab", within=20)])
def test_a_silent_server_is_left(page: Page) -> None:
    with serving(page) as server:
        began = time.monotonic()
        with pytest.raises(ModelTimeout):
            server.fetch(seconds=0.4)(f"{server.origin}/", {}, Stop(), {})
        assert time.monotonic() - began < 3


def test_stop_is_heard_at_once() -> None:
    stop = Stop()
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
        fetch(f"{origin}/", {"q": "private words"}, Stop(), {"X-Key": "sk-secret"})
    assert "private" not in str(raised.value)
    assert "secret" not in str(raised.value)


def test_an_address_that_no_request_can_be_made_of_is_a_failure() -> None:
    with serving(Page()) as server, pytest.raises(ModelError, match="could not be asked"):
        server.fetch()(f"{server.origin}/\x7f", {}, Stop(), {})


def test_a_certificate_is_asked_for_by_name_and_looked_at(tmp_path: Path) -> None:
    """TLS goes to the pinned address, and the certificate must be the name's."""
    named: list[str | None] = []
    with certified(tmp_path, "site.test", lambda name: named.append(name)) as port:
        origin = f"https://site.test:{port}"
        fetch = GuardedFetch(Gate(frozenset({origin}), lambda _h, _p: ["127.0.0.1"]), 5.0)
        with pytest.raises(ModelError, match="certificate"):
            fetch(f"{origin}/", {}, Stop(), {})
    assert named == ["site.test"]
    assert ssl.HAS_SNI
