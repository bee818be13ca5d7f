"""A small HTTP server on this computer that answers GET requests as a test wants."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from core.tools.web_fetch import AddressGate, GuardedFetch


@dataclass(frozen=True)
class Page:
    """An answer: a status, headers, a body; `pause` seconds before it and within it."""

    body: bytes = b"{}"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pause: float = 0.0
    within: float = 0.0


@dataclass(frozen=True)
class Got:
    """A request as it came."""

    path: str
    params: dict[str, str]
    headers: dict[str, str]


@dataclass
class Server:
    """A running server and what it was asked."""

    port: int
    got: list[Got] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fetch(self, seconds: float = 5.0, most_bytes: int = 100_000) -> GuardedFetch:
        """A fetch for which this server is the one that the operator named."""
        return GuardedFetch(AddressGate(frozenset({self.origin})), seconds, most_bytes)

    def fetch_as(self, host: str, addresses: Sequence[str] = ("127.0.0.1",)) -> GuardedFetch:
        """The same under a name that stands for these addresses."""
        named = frozenset({f"http://{host}:{self.port}"})
        return GuardedFetch(AddressGate(named, lambda _host, _port: addresses), 5.0)


def as_json(value: Any, status: int = 200) -> Page:
    return Page(json.dumps(value).encode(), status)


@contextmanager
def serving(answer: Page | Callable[[Got], Page]) -> Iterator[Server]:
    """The server for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Quiet."""

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            params = {name: values[0] for name, values in parse_qs(parts.query).items()}
            got = Got(parts.path, params, {k.lower(): v for k, v in self.headers.items()})
            server.got.append(got)
            page = answer if isinstance(answer, Page) else answer(got)
            try:
                time.sleep(page.pause)
                self.send_response(page.status)
                for name, value in page.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(page.body)))
                self.end_headers()
                middle = len(page.body) // 2
                self.wfile.write(page.body[:middle])
                time.sleep(page.within)
                self.wfile.write(page.body[middle:])
            except OSError:
                self.close_connection = True

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    server = Server(httpd.server_address[1])
    thread = threading.Thread(target=httpd.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
