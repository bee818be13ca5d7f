"""The providers of web searches, and the gate that all their requests pass.

The gate allows public addresses and the one origin that the operator named; the connection goes to
a checked address, so that the name cannot point elsewhere meanwhile. Redirects are not followed,
proxies not used, bodies not decompressed, cookies not kept; httpx's client, which logs, is not
used.
"""

from __future__ import annotations

import contextlib
import ipaddress
import queue
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

import msgspec

from core.documents.segmentation import FUNCTION_WORDS, WORD_TOKEN
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ConfigError, ModelError, ModelTimeout
from core.tools.registry import SearchResult

if TYPE_CHECKING:
    import httpx

FetchedValue = TypeVar("FetchedValue")

DEFAULT_PORTS = {"http": 80, "https": 443}
# Cloud metadata services, which hand out a machine's keys; the first is among public addresses.
METADATA_ADDRESSES = frozenset(
    {"168.63.129.16", "169.254.169.254", "fd00:ec2::254", "100.100.100.200"}
)
NAT64_NETWORK = ipaddress.ip_network("64:ff9b::/96")  # NAT64: embeds an IPv4 address
THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")
MAX_RESPONSE_BYTES = 1_000_000
TIMEOUT_SECONDS, CONNECT_SECONDS, POLL_SECONDS = 12.0, 4.0, 0.05
MAX_ADDRESSES = 3
REQUEST_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # an uncompressed body cannot grow
    "User-Agent": "Counterpoint/0.1 (reviews what language models say; one search per statement)",
}
MAX_RESULTS = 5  # HaluAgent 2.2
MAX_TITLE_CHARS, MAX_SNIPPET_CHARS, MAX_URL_CHARS = 300, 2_000, 2_000
MAX_QUERY_CHARS = 300  # characters; Wikipedia takes no more
_WHITESPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
GOOGLE_URL = "https://www.googleapis.com/customsearch/v1"
GOOGLE_REFUSALS = {
    400: "it refused the key or the engine's cx; copy both again.",
    401: "it refused the key; copy it again.",
    403: "the key may not be used for searches; switch the Custom Search API on for it in Google's "
    "console, and look at its restrictions.",
    404: "there is no engine of that cx; copy it again.",
}
SEARXNG_REFUSALS = {
    403: "it does not answer in JSON; add “json” to search.formats in its settings.yml, or let "
    "this computer past its limiter.",
    404: "there is no search at that address; give the one that its page has.",
}
MAX_QUERY_WORDS = 12
_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}")


def resolve_host(host: str, port: int) -> list[str]:
    """Return all addresses that the system knows for a name, in its order.

    Raises OSError if it knows none.
    """
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


@dataclass(frozen=True)
class AddressGate:
    """Decides which addresses may be connected to.

    `named` holds origins (`scheme://host:port`) from the operator's settings: exactly these may use
    http and lie on this computer or in a private network.
    """

    named: frozenset[str] = frozenset()
    resolve: Callable[[str, int], Sequence[str]] = resolve_host

    def addresses_of(self, url: str) -> list[str]:
        """Return the addresses to connect to for a URL, in order of preference.

        Raises:
            ConfigError: nothing may be fetched from there.
            ModelError: its name cannot be resolved.
        """
        origin = parse_origin(url)
        parts = urlsplit(origin)
        host, port, is_named = parts.hostname or "", parts.port or 0, origin in self.named
        if parts.scheme != "https" and not is_named:
            raise ConfigError(f"Expected https for {host}, found {parts.scheme}; nothing was sent.")
        addresses: list[str] = []
        with contextlib.suppress(OSError, UnicodeError):
            addresses = list(self.resolve(host, port))
        if not addresses:
            raise ModelError(f"{host} was not found: no address is known for that name.")
        for address in addresses:
            if why := explain_refusal(address, is_named=is_named):
                raise ConfigError(
                    f"{host} leads to {why}; nothing was sent. Expected an address on the internet."
                )
        return addresses


def parse_origin(url: str) -> str:
    """Return `scheme://host:port` of a URL, always with the port.

    Raises ConfigError if it is no web address, or carries a name and password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigError(f"Expected a web address, found “{url[:80]}”: {error}.") from error
    if parts.scheme not in DEFAULT_PORTS or not host:
        raise ConfigError(
            f"Expected an address that begins with http:// or https://, found “{url[:80]}”."
        )
    if "@" in parts.netloc:
        raise ConfigError("Expected an address without a name and password before “@”; leave them.")
    authority = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{authority}:{port or DEFAULT_PORTS[parts.scheme]}"


def explain_refusal(text: str, *, is_named: bool = False) -> str:
    """Return why nothing is fetched from an address; empty if it is allowed.

    A named origin may be private or this computer, but no link-local or metadata address.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "something that is no address"
    if str(address) in METADATA_ADDRESSES or address.is_link_local:
        return "an address at which machines keep their keys"
    is_unassigned, is_internal = address.is_reserved, address.is_private or address.is_loopback
    if isinstance(address, ipaddress.IPv4Address):
        is_unassigned |= address in THIS_NETWORK
    else:  # refuse addresses that embed IPv4; `is_private` leaves site-local ones out
        is_unassigned |= address in NAT64_NETWORK or bool(address.sixtofour or address.teredo)
        is_internal |= address.is_site_local
    if (
        address.is_multicast
        or address.is_unspecified
        or (is_unassigned and not address.is_loopback)
    ):
        return "an address that belongs to no one server"
    is_allowed = is_named if is_internal else address.is_global
    return "" if is_allowed else "this computer or a private network"


@dataclass(frozen=True)
class HttpResponse:
    """The status and the whole body of a response."""

    status: int
    body: bytes


# Sends a GET request for (url, parameters, stop, headers) and returns the response, whatever its
# status. Raises ConfigError if the address is not allowed, ModelError if there is no response or it
# is too large.
FetchFunction = Callable[[str, Mapping[str, str], StopSignal, Mapping[str, str]], HttpResponse]


@dataclass(frozen=True)
class GuardedFetch:
    """The `FetchFunction` of all providers."""

    gate: AddressGate
    seconds: float = TIMEOUT_SECONDS
    most_bytes: int = MAX_RESPONSE_BYTES

    def __call__(
        self, url: str, params: Mapping[str, str], stop: StopSignal, headers: Mapping[str, str]
    ) -> HttpResponse:
        """Return the response; the time limit includes resolving the name."""
        given_up = threading.Event()
        get = partial(self._get, url, params, headers, given_up)
        return _run_with_timeout(get, stop, self.seconds, given_up)

    def _get(
        self,
        url: str,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        given_up: threading.Event,
    ) -> HttpResponse:
        import httpx

        addresses = self.gate.addresses_of(url)
        problem: Exception = ModelError("No address answered.")
        with httpx.HTTPTransport(trust_env=False) as transport:
            for address in addresses[:MAX_ADDRESSES]:
                try:
                    request = _build_request(httpx.URL(url, params=dict(params)), address, headers)
                    return self._read_response(transport.handle_request(request), given_up)
                except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                    problem = error
                except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                    raise _wrap_error(url, error) from error
        raise _wrap_error(url, problem) from problem

    def _read_response(self, response: httpx.Response, given_up: threading.Event) -> HttpResponse:
        body = b""
        try:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ModelError("It answered in packed form, which was not asked for.")
            for piece in response.iter_raw():
                body += piece
                if len(body) > self.most_bytes:
                    raise ModelError(
                        f"Its answer is larger than {self.most_bytes:,} bytes and was not read."
                    )
                if given_up.is_set():
                    break
        finally:
            response.close()
        return HttpResponse(response.status_code, body)


def _build_request(url: httpx.URL, address: str, headers: Mapping[str, str]) -> httpx.Request:
    """Build the request to the checked address; certificate and Host use the name."""
    import httpx

    limits = dict.fromkeys(("connect", "pool"), CONNECT_SECONDS)
    return httpx.Request(
        "GET",
        url.copy_with(host=address),
        headers={**REQUEST_HEADERS, **headers, "Host": url.netloc.decode("ascii")},
        extensions={
            "sni_hostname": url.raw_host.decode("ascii"),
            "timeout": {**limits, **dict.fromkeys(("read", "write"), TIMEOUT_SECONDS)},
        },
    )


def _wrap_error(url: str, error: Exception) -> ModelError:
    import httpx

    host = urlsplit(url).hostname
    if isinstance(error, httpx.TimeoutException):
        return ModelTimeout(f"{host} did not answer in time.")
    words = str(error).strip().rstrip(".") or type(error).__name__
    return ModelError(f"{host} could not be asked: {words}.")


def _run_with_timeout(
    work: Callable[[], FetchedValue], stop: StopSignal, seconds: float, given_up: threading.Event
) -> FetchedValue:
    """Return the result of `work`; stop waiting on a stop or timeout, even if it hangs."""
    results: queue.SimpleQueue[tuple[FetchedValue | None, BaseException | None]] = (
        queue.SimpleQueue()
    )

    def run() -> None:
        try:
            results.put((work(), None))
        except BaseException as error:  # noqa: BLE001 - raised again by the waiting thread
            results.put((None, error))

    threading.Thread(target=run, daemon=True, name="web search").start()
    end = time.monotonic() + seconds
    try:
        while True:
            stop.check()
            try:
                value, error = results.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if time.monotonic() > end:
                    raise ModelTimeout(f"No answer came in {seconds:g} seconds.") from None
                continue
            if error is not None:
                raise error
            return value  # type: ignore[return-value]
    finally:
        given_up.set()


class SearchProvider(Protocol):
    """A search service; `name` is for people.

    `service` identifies the source of cached answers: provider, address and engine, never a key.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def service(self) -> str: ...  # noqa: D102

    def search(
        self, query: str, language: str, fetch: FetchFunction, stop: StopSignal
    ) -> tuple[SearchResult, ...]:
        """Return at most `MAX_RESULTS` results, best first; none if nothing was found.

        Raises:
            ConfigError: key, engine or address are wrong.
            ModelError: the search failed.
        """
        ...


def _decode_reply(
    response: HttpResponse, name: str, shape: type[FetchedValue], refusals: Mapping[int, str]
) -> FetchedValue:
    """Decode a response of that form; `refusals` explains this provider's status codes.

    Raises:
        ConfigError: the provider refuses for a reason that the operator can fix.
        ModelError: it failed, redirects, or answers in another form.
    """
    status = response.status
    if status in refusals:
        raise ConfigError(f"{name}: {refusals[status]}")
    if 300 <= status < 400:
        raise ModelError(f"{name} sends to another address ({status}); that is never followed.")
    if status == 429:
        raise ModelError(f"{name} takes no more searches for now (429); try again later.")
    if status != 200:
        raise ModelError(f"{name} answered with status {status} instead of results.")
    try:
        return msgspec.json.decode(response.body, type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ModelError(
            f"{name} answered in a form that is not its API's; is it the right address?"
        ) from error


def _make_results(results: Iterable[_Result], name: str) -> tuple[SearchResult, ...]:
    """Convert the results, dropping those without text or without a web address."""
    kept_results = []
    for one in results:
        words = _collapse_whitespace(one.snippet or one.content or one.extract, MAX_SNIPPET_CHARS)
        address = one.link or one.url or one.fullurl
        try:
            parts = urlsplit(address)
            is_web = parts.scheme in DEFAULT_PORTS and bool(parts.hostname)
        except ValueError:
            is_web = False
        if words and is_web and len(address) <= MAX_URL_CHARS:
            kept_results.append(
                SearchResult(
                    _collapse_whitespace(one.title or "", MAX_TITLE_CHARS), address, words, name
                )
            )
    return tuple(kept_results[:MAX_RESULTS])


def shorten_query(text: str) -> str:
    """Return the query to send: on one line, cut between words if it is too long."""
    line = _collapse_whitespace(text, MAX_QUERY_CHARS + 1)
    return line if len(line) <= MAX_QUERY_CHARS else line[:MAX_QUERY_CHARS].rsplit(" ", 1)[0]


def _collapse_whitespace(text: str, most: int) -> str:
    return _WHITESPACE.sub(" ", text).strip()[:most]


class _Result(msgspec.Struct):
    """A result of any provider, with every provider's field names."""

    title: str | None = None
    link: str = ""
    url: str = ""
    fullurl: str = ""
    snippet: str = ""
    content: str | None = None
    extract: str = ""
    index: int = 0


class _GoogleReply(msgspec.Struct):
    items: list[_Result] = []


class _SearXngReply(msgspec.Struct):
    results: list[_Result]
    unresponsive_engines: list[Any] = []


class _WikiReply(msgspec.Struct):
    query: dict[str, Any] = {}
    error: dict[str, Any] = {}


@dataclass(frozen=True)
class GoogleSearch:
    """One engine, `cx`, with its key, which is sent in a header so that no log of URLs has it."""

    cx: str
    key: str = field(repr=False)
    address: str = GOOGLE_URL

    name = "Google Programmable Search"

    @property
    def service(self) -> str:
        """The engine; the results do not depend on the key."""
        return f"google {self.cx}"

    def search(
        self, query: str, language: str, fetch: FetchFunction, stop: StopSignal
    ) -> tuple[SearchResult, ...]:
        """Search and return the snippets found."""
        params = {"cx": self.cx, "q": query, "num": str(MAX_RESULTS), "safe": "off"}
        response = fetch(self.address, params, stop, {"X-Goog-Api-Key": self.key})
        return _make_results(
            _decode_reply(response, self.name, _GoogleReply, GOOGLE_REFUSALS).items, self.name
        )


@dataclass(frozen=True)
class SearXngSearch:
    """A SearXNG server; `address` is without its `/search`."""

    address: str

    name = "SearXNG"

    @property
    def service(self) -> str:
        """The server that is asked."""
        return f"searxng {self.address}"

    def search(
        self, query: str, language: str, fetch: FetchFunction, stop: StopSignal
    ) -> tuple[SearchResult, ...]:
        """Search and return snippets; silent engines are an error if nothing was found."""
        params = {"q": query, "format": "json"}
        params |= {} if language == "und" else {"language": language}
        answered = fetch(f"{self.address.rstrip('/')}/search", params, stop, {})
        reply = _decode_reply(answered, self.name, _SearXngReply, SEARXNG_REFUSALS)
        results = _make_results(reply.results, self.name)
        silent = len(reply.unresponsive_engines)
        if silent and not results:
            raise ModelError(
                f"{self.name}: {silent} of its engines did not answer, the rest found nothing."
            )
        return results


@dataclass(frozen=True)
class WikipediaSearch:
    """Wikipedia; `address` is a template with a field for the language."""

    address: str = "https://{language}.wikipedia.org/w/api.php"

    name = "Wikipedia"
    service = "wikipedia"

    def search(
        self, query: str, language: str, fetch: FetchFunction, stop: StopSignal
    ) -> tuple[SearchResult, ...]:
        """Return the articles' opening paragraphs, the likeliest article first.

        Its search requires every word, so a statement with a wrong figure would find nothing. In
        that case any of its words except figures are searched for.
        """
        queries = (query, make_loose_query(query))
        answers = (self._search_once(words, language, fetch, stop) for words in queries if words)
        return next(filter(None, answers), ())

    def _search_once(
        self, query: str, language: str, fetch: FetchFunction, stop: StopSignal
    ) -> tuple[SearchResult, ...]:
        primary, most = language.split("-")[0].lower(), str(MAX_RESULTS)
        host = primary if _LANGUAGE_CODE.fullmatch(primary) and primary != "und" else "en"
        params = {
            "action": "query", "format": "json", "formatversion": "2", "generator": "search",
            "gsrsearch": query, "gsrlimit": most, "prop": "extracts|info", "inprop": "url",
            "exintro": "1", "explaintext": "1", "exlimit": most,
        }  # fmt: skip
        response = fetch(self.address.format(language=host), params, stop, {})
        reply = _decode_reply(response, self.name, _WikiReply, {})
        if reply.error:
            raise ModelError(
                f"{self.name} refused the search: {reply.error.get('info', '')!s:.200}"
            )
        try:
            pages = msgspec.convert(reply.query.get("pages", []), list[_Result])
        except msgspec.ValidationError as error:
            raise ModelError(f"{self.name} answered in a form that is not its API's.") from error
        return _make_results(sorted(pages, key=lambda page: page.index), self.name)


def make_loose_query(query: str) -> str:
    """Return a query for any of the content words, names and long words first; may be empty."""
    words = dict.fromkeys(match.group() for match in WORD_TOKEN.finditer(query))
    content_words = [
        w for w in words if w.casefold() not in FUNCTION_WORDS and not w[0].isnumeric()
    ]
    content_words.sort(key=lambda word: (not word[0].isupper(), -len(word)))
    return " OR ".join(content_words[:MAX_QUERY_WORDS])
