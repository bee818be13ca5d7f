"""Gets one answer from a provider's API: past the gate, in time, no larger than allowed.

No redirect is followed, no proxy of the environment used, nothing unpacked, no cookie kept. The
transport is used without httpx's client, which would log the address with the words searched for.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

from core.concurrency import Stop
from core.errors import ModelError, ModelTimeout
from core.tools.web.gate import Gate

if TYPE_CHECKING:
    import httpx

Value = TypeVar("Value")
MOST_BYTES = 1_000_000
SECONDS = 12.0
CONNECT_SECONDS = 4.0
LOOK_SECONDS = 0.05
MOST_ADDRESSES = 3
HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",  # what is not packed cannot unpack to more than its size
    "User-Agent": "Counterpoint/0.1 (reviews what language models say; one search per statement)",
}


@dataclass(frozen=True)
class Answered:
    """An answer's status and its whole body."""

    status: int
    body: bytes


class Fetch(Protocol):
    """Gets the answer to a GET request."""

    def __call__(
        self, url: str, params: Mapping[str, str], stop: Stop, headers: Mapping[str, str]
    ) -> Answered:
        """The answer, whatever its status.

        Raises:
            ConfigError: the address is one that nothing is fetched from.
            ModelError: no answer came, or one that is too large.
            Stopped: the person stopped the check.
        """
        ...


@dataclass(frozen=True)
class GuardedFetch:
    """The `Fetch` of all providers."""

    gate: Gate
    seconds: float = SECONDS
    most_bytes: int = MOST_BYTES

    def __call__(
        self, url: str, params: Mapping[str, str], stop: Stop, headers: Mapping[str, str]
    ) -> Answered:
        """The answer; the time allowed holds for all of it, looking up the name included."""
        given_up = threading.Event()
        return _in_time(
            lambda: self._get(url, params, headers, given_up), stop, self.seconds, given_up
        )

    def _get(
        self,
        url: str,
        params: Mapping[str, str],
        headers: Mapping[str, str],
        given_up: threading.Event,
    ) -> Answered:
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

    def _answer(self, response: httpx.Response, given_up: threading.Event) -> Answered:
        try:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ModelError("It answered in packed form, which was not asked for.")
            body = b"".join(self._pieces(response, given_up))
        finally:
            response.close()
        return Answered(response.status_code, body)

    def _pieces(self, response: httpx.Response, given_up: threading.Event) -> Iterator[bytes]:
        size = 0
        for piece in response.iter_raw():
            size += len(piece)
            if size > self.most_bytes:
                raise ModelError(
                    f"Its answer is larger than {self.most_bytes:,} bytes and was not read."
                )
            if given_up.is_set():
                return
            yield piece


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
    """What went wrong, without the address's parameters."""
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
