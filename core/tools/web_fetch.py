"""The providers of web searches, and the one gate through which they are asked.

The gate lets through public addresses and the one origin that the operator named; the connection
goes to an address that passed, so that a name cannot point elsewhere meanwhile. No redirect is
followed, no proxy used, nothing unpacked, no cookie kept; httpx's client, which logs, is left out.
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

from core.documents.segmentation import FUNCTION_WORDS, WORD
from core.runtime.concurrency import Stop
from core.runtime.errors import ConfigError, ModelError, ModelTimeout
from core.tools.registry import SearchResult

if TYPE_CHECKING:
    import httpx

Value = TypeVar("Value")


PORTS = {"http": 80, "https": 443}
# Where clouds hand out a machine's own keys; this one lies among public addresses.
METADATA = frozenset({"168.63.129.16", "169.254.169.254", "fd00:ec2::254", "100.100.100.200"})
EMBEDDING = ipaddress.ip_network("64:ff9b::/96")  # NAT64: an IPv4 address within
THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")


def resolved(host: str, port: int) -> list[str]:
    """All addresses that the system knows for a name, in its order.

    Raises OSError if it knows none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True)
class Gate:
    """What may be connected to.

    `named` are origins (`scheme://host:port`) that the operator wrote into the settings: these,
    to the letter, may use http and lie on this computer or in a private network.
    """

    named: frozenset[str] = frozenset()
    resolve: Callable[[str, int], Sequence[str]] = resolved

    def addresses_of(self, url: str) -> list[str]:
        """The addresses to connect to for that URL, in order of preference.

        Raises:
            ConfigError: it leads where nothing may be fetched from.
            ModelError: its name cannot be resolved.
        """
        origin = origin_of(url)
        parts = urlsplit(origin)
        host, port, is_named = parts.hostname or "", parts.port or 0, origin in self.named
        if parts.scheme != "https" and not is_named:
            raise ConfigError(f"Expected https for {host}, found {parts.scheme}; nothing was sent.")
        found: list[str] = []
        with contextlib.suppress(OSError, UnicodeError):
            found = list(self.resolve(host, port))
        if not found:
            raise ModelError(f"{host} was not found: no address is known for that name.")
        for address in found:
            if why := why_refused(address, is_named=is_named):
                raise ConfigError(
                    f"{host} leads to {why}; nothing was sent. Expected an address on the internet."
                )
        return found


def origin_of(url: str) -> str:
    """`scheme://host:port` of a URL, the port always said.

    Raises ConfigError if it is no web address, or carries a name and password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ConfigError(f"Expected a web address, found “{url[:80]}”: {error}.") from error
    if parts.scheme not in PORTS or not host:
        raise ConfigError(
            f"Expected an address that begins with http:// or https://, found “{url[:80]}”."
        )
    if "@" in parts.netloc:
        raise ConfigError("Expected an address without a name and password before “@”; leave them.")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{port or PORTS[parts.scheme]}"


def why_refused(text: str, *, is_named: bool = False) -> str:
    """Why none is fetched from an address, in words; empty where it may be.

    A named origin may be private or this computer, but no link-local or metadata address.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "something that is no address"
    if str(address) in METADATA or address.is_link_local:
        return "an address at which machines keep their keys"
    is_nobodys, is_inside = address.is_reserved, address.is_private or address.is_loopback
    if isinstance(address, ipaddress.IPv4Address):
        is_nobodys |= address in THIS_NETWORK
    else:  # no name has an address that stands for one of IPv4; `is_private` leaves old ones out
        is_nobodys |= address in EMBEDDING or bool(address.sixtofour or address.teredo)
        is_inside |= address.is_site_local
    if address.is_multicast or address.is_unspecified or (is_nobodys and not address.is_loopback):
        return "an address that belongs to no one server"
    is_let_in = is_named if is_inside else address.is_global
    return "" if is_let_in else "this computer or a private network"


MOST_BYTES = 1_000_000
SECONDS, CONNECT_SECONDS, LOOK_SECONDS = 12.0, 4.0, 0.05
MOST_ADDRESSES = 3
HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # what is not packed cannot unpack to more than its size
    "User-Agent": "Counterpoint/0.1 (reviews what language models say; one search per statement)",
}


@dataclass(frozen=True)
class HttpAnswer:
    """An answer's status and its whole body."""

    status: int
    body: bytes


# Gets the answer to a GET request for (url, parameters, stop, headers), whatever its status. Raises
# ConfigError if nothing may be fetched from there, ModelError if no answer came or too large a one.
Fetch = Callable[[str, Mapping[str, str], Stop, Mapping[str, str]], HttpAnswer]


@dataclass(frozen=True)
class GuardedFetch:
    """The `Fetch` of all providers."""

    gate: Gate
    seconds: float = SECONDS
    most_bytes: int = MOST_BYTES

    def __call__(
        self, url: str, params: Mapping[str, str], stop: Stop, headers: Mapping[str, str]
    ) -> HttpAnswer:
        """The answer; the time allowed holds for all of it, looking up the name included."""
        given_up = threading.Event()
        work = partial(self._get, url, params, headers, given_up)
        return _in_time(work, stop, self.seconds, given_up)

    def _get(
        self, url: str, params: Mapping[str, str], headers: Mapping[str, str],
        given_up: threading.Event,
    ) -> HttpAnswer:  # fmt: skip
        import httpx

        addresses = self.gate.addresses_of(url)
        problem: Exception = ModelError("No address answered.")
        with httpx.HTTPTransport(trust_env=False) as transport:
            for address in addresses[:MOST_ADDRESSES]:
                try:
                    request = _request(httpx.URL(url, params=dict(params)), address, headers)
                    return self._answer(transport.handle_request(request), given_up)
                except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                    problem = error
                except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                    raise _failed(url, error) from error
        raise _failed(url, problem) from problem

    def _answer(self, response: httpx.Response, given_up: threading.Event) -> HttpAnswer:
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
        return HttpAnswer(response.status_code, body)


def _request(url: httpx.URL, address: str, headers: Mapping[str, str]) -> httpx.Request:
    """The request to the address that was checked; certificate and Host are the name's."""
    import httpx

    limits = dict.fromkeys(("connect", "pool"), CONNECT_SECONDS)
    return httpx.Request(
        "GET",
        url.copy_with(host=address),
        headers={**HEADERS, **headers, "Host": url.netloc.decode("ascii")},
        extensions={
            "sni_hostname": url.raw_host.decode("ascii"),
            "timeout": {**limits, **dict.fromkeys(("read", "write"), SECONDS)},
        },
    )


def _failed(url: str, error: Exception) -> ModelError:
    import httpx

    host = urlsplit(url).hostname
    if isinstance(error, httpx.TimeoutException):
        return ModelTimeout(f"{host} did not answer in time.")
    words = str(error).strip().rstrip(".") or type(error).__name__
    return ModelError(f"{host} could not be asked: {words}.")


def _in_time(
    work: Callable[[], Value], stop: Stop, seconds: float, given_up: threading.Event
) -> Value:
    """What `work` returns; waiting ends with a stop or with the time, whatever it is stuck in."""
    results: queue.SimpleQueue[tuple[Value | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put((work(), None))
        except BaseException as error:  # noqa: BLE001 - carried over to whoever waits
            results.put((None, error))

    threading.Thread(target=run, daemon=True, name="web search").start()
    end = time.monotonic() + seconds
    try:
        while True:
            stop.check()
            try:
                value, error = results.get(timeout=LOOK_SECONDS)
            except queue.Empty:
                if time.monotonic() > end:
                    raise ModelTimeout(f"No answer came in {seconds:g} seconds.") from None
                continue
            if error is not None:
                raise error
            return value  # type: ignore[return-value]
    finally:
        given_up.set()


MOST_RESULTS = 5  # HaluAgent 2.2
LONGEST_TITLE, LONGEST_TEXT, LONGEST_ADDRESS = 300, 2_000, 2_000
LONGEST_QUERY = 300  # characters; Wikipedia takes no more
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class Provider(Protocol):
    """A search service. `name` is for people.

    `service` names whom cached answers come from: provider, address and engine, never a key.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def service(self) -> str: ...  # noqa: D102

    def search(
        self, query: str, language: str, fetch: Fetch, stop: Stop
    ) -> tuple[SearchResult, ...]:
        """At most `MOST_RESULTS`, best first; none where it knows of nothing.

        Raises:
            ConfigError: key, engine or address are not right.
            ModelError: the search failed.
        """
        ...


def _read(
    answered: HttpAnswer, name: str, shape: type[Value], refusals: Mapping[int, str]
) -> Value:
    """The answer in that shape; `refusals` are what statuses of this provider mean.

    Raises:
        ConfigError: the provider refuses for a reason that the operator can mend.
        ModelError: it failed, sends elsewhere, or answers in another form.
    """
    status = answered.status
    if status in refusals:
        raise ConfigError(f"{name}: {refusals[status]}")
    if 300 <= status < 400:
        raise ModelError(f"{name} sends to another address ({status}); that is never followed.")
    if status == 429:
        raise ModelError(f"{name} takes no more searches for now (429); try again later.")
    if status != 200:
        raise ModelError(f"{name} answered with status {status} instead of results.")
    try:
        return msgspec.json.decode(answered.body, type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ModelError(
            f"{name} answered in a form that is not its API's; is it the right address?"
        ) from error


def _shown(results: Iterable[_Result], name: str) -> tuple[SearchResult, ...]:
    """The results as they are shown, without those that lack words or a web address."""
    found = []
    for one in results:
        words = _on_one_line(one.snippet or one.content or one.extract, LONGEST_TEXT)
        address = one.link or one.url or one.fullurl
        try:
            parts = urlsplit(address)
            is_web = parts.scheme in PORTS and bool(parts.hostname)
        except ValueError:
            is_web = False
        if words and is_web and len(address) <= LONGEST_ADDRESS:
            found.append(
                SearchResult(_on_one_line(one.title or "", LONGEST_TITLE), address, words, name)
            )
    return tuple(found[:MOST_RESULTS])


def query_of(text: str) -> str:
    """The words that are sent: on one line, cut at a word where they are too many."""
    line = _on_one_line(text, LONGEST_QUERY + 1)
    return line if len(line) <= LONGEST_QUERY else line[:LONGEST_QUERY].rsplit(" ", 1)[0]


def _on_one_line(text: str, most: int) -> str:
    return _BLANKS.sub(" ", text).strip()[:most]


GOOGLE = "https://www.googleapis.com/customsearch/v1"
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
MOST_WORDS = 12
_TAG = re.compile(r"[a-z]{2,3}")


class _Result(msgspec.Struct):
    """A result of any provider, under the names that each has for its parts."""

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
class Google:
    """One engine, `cx`, with its key; the key travels in a header, where no log of addresses is."""

    cx: str
    key: str = field(repr=False)
    address: str = GOOGLE

    name = "Google Programmable Search"

    @property
    def service(self) -> str:
        """The engine; the key does not matter to what it finds."""
        return f"google {self.cx}"

    def search(
        self, query: str, language: str, fetch: Fetch, stop: Stop
    ) -> tuple[SearchResult, ...]:
        """Search and return the snippets that were found."""
        params = {"cx": self.cx, "q": query, "num": str(MOST_RESULTS), "safe": "off"}
        answered = fetch(self.address, params, stop, {"X-Goog-Api-Key": self.key})
        return _shown(_read(answered, self.name, _GoogleReply, GOOGLE_REFUSALS).items, self.name)


@dataclass(frozen=True)
class SearXng:
    """The server at `address`, without its `/search`."""

    address: str

    name = "SearXNG"

    @property
    def service(self) -> str:
        """The name of the server that is asked."""
        return f"searxng {self.address}"

    def search(
        self, query: str, language: str, fetch: Fetch, stop: Stop
    ) -> tuple[SearchResult, ...]:
        """Snippets; silent engines are a failure where nobody found anything."""
        params = {"q": query, "format": "json"}
        params |= {} if language == "und" else {"language": language}
        answered = fetch(f"{self.address.rstrip('/')}/search", params, stop, {})
        reply = _read(answered, self.name, _SearXngReply, SEARXNG_REFUSALS)
        kept, silent = _shown(reply.results, self.name), len(reply.unresponsive_engines)
        if silent and not kept:
            raise ModelError(
                f"{self.name}: {silent} of its engines did not answer, the rest found nothing."
            )
        return kept


@dataclass(frozen=True)
class Wikipedia:
    """`address` has a place for the language."""

    address: str = "https://{language}.wikipedia.org/w/api.php"

    name = "Wikipedia"
    service = "wikipedia"

    def search(
        self, query: str, language: str, fetch: Fetch, stop: Stop
    ) -> tuple[SearchResult, ...]:
        """The articles' opening paragraphs, the likeliest article first.

        Its search wants every word. A statement with a wrong figure in it would find nothing, so
        then its words without figures are looked for, any of them.
        """
        queries = (query, loose(query))
        found = (self._asked(words, language, fetch, stop) for words in queries if words)
        return next(filter(None, found), ())

    def _asked(
        self, query: str, language: str, fetch: Fetch, stop: Stop
    ) -> tuple[SearchResult, ...]:
        primary, most = language.split("-")[0].lower(), str(MOST_RESULTS)
        host = primary if _TAG.fullmatch(primary) and primary != "und" else "en"
        params = {
            "action": "query", "format": "json", "formatversion": "2", "generator": "search",
            "gsrsearch": query, "gsrlimit": most, "prop": "extracts|info", "inprop": "url",
            "exintro": "1", "explaintext": "1", "exlimit": most,
        }  # fmt: skip
        answered = fetch(self.address.format(language=host), params, stop, {})
        reply = _read(answered, self.name, _WikiReply, {})
        if reply.error:
            raise ModelError(
                f"{self.name} refused the search: {reply.error.get('info', '')!s:.200}"
            )
        try:
            pages = msgspec.convert(reply.query.get("pages", []), list[_Result])
        except msgspec.ValidationError as error:
            raise ModelError(f"{self.name} answered in a form that is not its API's.") from error
        return _shown(sorted(pages, key=lambda page: page.index), self.name)


def loose(query: str) -> str:
    """Any of the words that say something, names and long ones first; empty where none is left."""
    words = dict.fromkeys(match.group() for match in WORD.finditer(query))
    kept = [w for w in words if w.casefold() not in FUNCTION_WORDS and not w[0].isnumeric()]
    kept.sort(key=lambda word: (not word[0].isupper(), -len(word)))
    return " OR ".join(kept[:MOST_WORDS])
