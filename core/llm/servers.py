"""Servers that people run themselves: which there are on this computer, and how many calls at once.

Only for lists of models and for slots are they asked; nothing that is checked is sent.
"""

from __future__ import annotations

import functools
import math
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from core.runtime.concurrency import StopSignal
from core.runtime.errors import ModelError
from core.schema.rosters import MAX_CONCURRENCY

# Documented defaults of Ollama, llama.cpp, LM Studio and vLLM.
USUAL_PORTS = {"Ollama": 11434, "llama.cpp": 8080, "LM Studio": 1234, "vLLM": 8000}
SECONDS = 0.5  # for each usual port, where most often nobody listens
BUSY_SECONDS = 2.0  # for a server that is about to be called
LEAST_WINDOW = 256  # tokens; a server that tells fewer is mistaken
MOST_BYTES = 1_000_000
# Where servers tell a model's window, in tokens: vLLM, LM Studio, llama.cpp (loaded, trained).
WINDOWS = (("max_model_len",), ("loaded_context_length",), ("max_context_length",),
           ("meta", "n_ctx"), ("meta", "n_ctx_train"))  # fmt: skip


@dataclass(frozen=True)
class ServedModel:
    """A model of a server: its name, and its window in tokens, 0 if not told."""

    name: str
    window: int = 0


@dataclass(frozen=True)
class FoundServer:
    """A server that answers; `address` is OpenAI-compatible and ends in /v1."""

    name: str
    address: str
    models: tuple[ServedModel, ...]


def find_servers(ports: Mapping[str, int] = USUAL_PORTS) -> tuple[FoundServer, ...]:
    """Return the servers that list models, in the order of `ports`; takes up to a second."""
    with ThreadPoolExecutor(len(ports)) as pool:
        found = pool.map(lambda item: _find_server(*item), ports.items())
        return tuple(server for server in found if server is not None)


def _find_server(name: str, port: int) -> FoundServer | None:
    address = f"http://127.0.0.1:{port}/v1"
    try:
        with _open_client(SECONDS) as client:
            listed = _json(client, f"{address}/models")
    except (httpx.HTTPError, ValueError, RecursionError):
        return None
    models = tuple(_models(listed))
    return FoundServer(name, address, models) if models else None


@functools.cache
def _load_certificates() -> ssl.SSLContext:
    """Load the trusted certificates once: it takes 30 ms, and each page asks for servers."""
    return httpx.create_ssl_context(trust_env=False)


def _open_client(seconds: float) -> httpx.Client:
    return httpx.Client(timeout=seconds, trust_env=False, verify=_load_certificates())


def _json(client: httpx.Client, url: str) -> Any:
    """Read a bounded JSON reply: whoever listens there need not be a model's server."""
    body = b""
    with client.stream("GET", url) as reply:
        reply.raise_for_status()
        for chunk in reply.iter_bytes():
            body += chunk
            if len(body) > MOST_BYTES:
                raise ValueError("a list of models is shorter")
    return httpx.Response(200, content=body).json()


def _models(listed: Any) -> Iterator[ServedModel]:
    rows = listed.get("data") if isinstance(listed, dict) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and isinstance(name := row.get("id"), str) and name.isprintable():
            yield ServedModel(name, next(filter(None, (_window(row, path) for path in WINDOWS)), 0))


def _window(row: Any, path: tuple[str, ...]) -> int:
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row if isinstance(row, int) and LEAST_WINDOW <= row <= 100_000_000 else 0


OLLAMA_SLOTS = 1  # prompts that Ollama answers at once unless OLLAMA_NUM_PARALLEL is set
SLOTS_KEPT = 300.0  # seconds; a server that was restarted may have others
_slots_by_address: dict[str, _ServerSlots] = {}


def find_slots(address: str) -> int:
    """Return how many prompts the server at an address answers at once; 0 if not told.

    llama.cpp's server tells, and Ollama tells what it is; what comes beyond the slots waits there
    in silence.
    """
    root = address.rstrip("/").removesuffix("/v1")
    with _open_client(BUSY_SECONDS) as client:
        for path, name in (("props", "total_slots"), ("api/version", "version")):
            try:
                reply = _json(client, f"{root}/{path}")
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
                continue
            found = reply.get(name) if isinstance(reply, dict) else None
            if type(found) is int and 0 < found <= MAX_CONCURRENCY:
                return found
            if path == "api/version" and isinstance(found, str):
                return OLLAMA_SLOTS
    return 0


def find_window(address: str, model: str) -> int:
    """Return the window, in tokens, that a server tells of a model; 0 if not told."""
    try:
        with _open_client(BUSY_SECONDS) as client:
            models = list(_models(_json(client, f"{address.rstrip('/')}/models")))
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return 0
    return next((one.window for one in models if one.name == model.removeprefix("openai/")), 0)


@dataclass
class _ServerSlots:
    """A server's slots as it last reported them, and the calls under way there."""

    count: int = 0
    asked_at: float = -math.inf  # monotonic
    calls: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)


@contextmanager
def turn_at(
    address: str, stop: StopSignal, usual: int = MAX_CONCURRENCY, stated: int = 0
) -> Iterator[None]:
    """Hold one of the server's slots, so that no call queues there and seems stuck.

    `usual` is how many it has where it does not tell; `stated`, unless 0, is what a person says.
    Both may change while slots are held: all calls to an address are counted together.
    Raises Stopped: `stop` was set while all were taken.
    """
    slots = _slots_by_address.setdefault(address, _ServerSlots())
    if not stated and time.monotonic() - slots.asked_at >= SLOTS_KEPT:
        slots.count = find_slots(address) or slots.count or usual  # a busy server may not answer
        slots.asked_at = time.monotonic()
    with slots.changed:
        while slots.calls >= (stated or slots.count):
            slots.changed.wait(0.1)
            stop.check()
        slots.calls += 1
    try:
        yield
    except ModelError:  # it may be another server that answers the next call
        slots.asked_at = -math.inf
        raise
    finally:
        with slots.changed:
            slots.calls -= 1
            slots.changed.notify_all()
