"""Language models that run on this computer already: looked for at their servers' usual ports.

Only loopback is asked, and only for lists of models; nothing that is checked is sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx

# Documented defaults of Ollama, llama.cpp, LM Studio and vLLM.
USUAL_PORTS = {"Ollama": 11434, "llama.cpp": 8080, "LM Studio": 1234, "vLLM": 8000}
SECONDS = 0.5
MOST_BYTES = 1_000_000
# Where servers tell a model's window, in tokens: vLLM, LM Studio, llama.cpp (loaded, trained).
WINDOWS = (("max_model_len",), ("loaded_context_length",), ("max_context_length",),
           ("meta", "n_ctx"), ("meta", "n_ctx_train"))  # fmt: skip


@dataclass(frozen=True)
class ServedModel:
    """A model of a server: its name there, and its window in tokens, 0 where nobody tells it."""

    name: str
    window: int = 0


@dataclass(frozen=True)
class FoundServer:
    """A server that answers; `address` is OpenAI-compatible and ends in /v1."""

    name: str
    address: str
    models: tuple[ServedModel, ...]


def find_servers(ports: Mapping[str, int] = USUAL_PORTS) -> tuple[FoundServer, ...]:
    """The servers that answer with a list of models, in the order of `ports`; it takes a second."""
    with ThreadPoolExecutor(len(ports)) as pool:
        found = pool.map(lambda item: _asked(*item), ports.items())
        return tuple(server for server in found if server is not None)


def _asked(name: str, port: int) -> FoundServer | None:
    address = f"http://127.0.0.1:{port}/v1"
    try:
        with httpx.Client(timeout=SECONDS, trust_env=False) as client:
            listed = _json(client, f"{address}/models")
    except (httpx.HTTPError, ValueError):
        return None
    models = tuple(_models(listed))
    return FoundServer(name, address, models) if models else None


def _json(client: httpx.Client, url: str) -> Any:
    """The reply, read up to a bound: whoever listens there need not be a model's server."""
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
    return row if isinstance(row, int) and 0 < row <= 100_000_000 else 0
