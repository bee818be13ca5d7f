"""A chat-completions server on 127.0.0.1 that speaks the real stream, with every fault on demand.

A test gives it a function from what was asked to a `Reply`; it keeps every request as it came and
when the client's end of each connection was seen to close.
"""

from __future__ import annotations

import json
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Fault = Literal[
    "",
    "hang_up",
    "hang_before",
    "hang_within",
    "hang_after",
    "cut_off",
    "no_finish",
    "malformed",
    "html",
    "empty_body",
    "not_streamed",
    "error_before",
    "error_within",
]
RAW_BODIES = {
    "html": ("text/html", b"<html><body>It works!</body></html>"),
    "empty_body": ("text/event-stream", b""),
}
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@dataclass(frozen=True)
class Reply:
    """One answer: streamed text in pieces, or a status, or a fault.

    `finish` is the stream's finish_reason; `pause` seconds lie before the first piece, `gap`
    between pieces. `refusal` streams the text as the API's own refusal field. `body` is sent as it
    is, with that media type.
    """

    text: str = ""
    status: int = 200
    finish: str = "stop"
    fault: Fault = ""
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "the server says so"
    code: str = ""
    pause: float = 0.0
    gap: float = 0.0
    piece: int = 12
    usage: dict[str, int] | None = field(default_factory=lambda: dict(USAGE))
    refusal: bool = False
    body: bytes = b""
    media_type: str = "text/event-stream"


@dataclass
class Asked:
    """One request as it came; `closed_at` is when the client was seen to have gone.

    `sent_at` holds when each piece of the answer was sent.
    """

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float
    closed_at: float | None = None
    sent_at: list[float] = field(default_factory=list)

    @property
    def bearer(self) -> str:
        """The key that came with it, empty when none did."""
        sent = {name.lower(): value for name, value in self.headers.items()}
        return sent.get("authorization", "").removeprefix("Bearer ")

    @property
    def everything(self) -> str:
        """All that was sent, as one text: to be searched for what must not be in it."""
        return json.dumps([self.path, self.headers, self.body])

    @property
    def prompt(self) -> str:
        """All text of the messages, roles left out."""
        parts: list[str] = []
        for message in self.body.get("messages", []):
            content = message["content"]
            if isinstance(content, str):
                parts.append(content)
            else:
                parts += [part["text"] for part in content if part["type"] == "text"]
        return "\n".join(parts)

    @property
    def images(self) -> list[str]:
        """The image URLs of the messages."""
        return [
            part["image_url"]["url"]
            for message in self.body.get("messages", [])
            if isinstance(message["content"], list)
            for part in message["content"]
            if part["type"] == "image_url"
        ]


Answer = Callable[[Asked], Reply]


@dataclass
class Loopback:
    """A running server: its address and what it was asked."""

    base: str
    asked: list[Asked] = field(default_factory=list)

    def wait_closed(self, number: int = -1, seconds: float = 5.0) -> float:
        """When the client of that request went away; fails when it does not in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            closed = self.asked[number].closed_at if self.asked else None
            if closed is not None:
                return closed
            time.sleep(0.005)
        raise AssertionError("the client still holds the connection")


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One event of the stream as OpenAI's API documents it."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "loopback",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as real servers do: else every call waits 40 ms
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Quiet."""

    def do_GET(self) -> None:
        self._json(200, {"object": "list", "data": [{"id": "loopback", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = Asked(self.path, dict(self.headers), body, time.monotonic())
        with self.server.lock:
            self.server.loopback.asked.append(asked)
        reply = self.server.answer(asked)
        try:
            self._answer(asked, reply)
        except OSError:
            asked.closed_at = time.monotonic()
            self.close_connection = True

    def _answer(self, asked: Asked, reply: Reply) -> None:
        if reply.fault == "hang_up":
            self.close_connection = True
        elif reply.fault == "hang_before":
            self._hang(asked)
        elif reply.body:
            self._raw(200, reply.media_type, reply.body)
        elif self.path.endswith("/embeddings"):
            self._embeddings(asked, reply)
        elif reply.fault in RAW_BODIES:
            self._raw(200, *RAW_BODIES[reply.fault])
        elif reply.status != 200:
            error = {"message": reply.message, "type": "error", "code": reply.code or None}
            self._json(reply.status, {"error": error}, reply.headers)
        elif self.path.endswith("/api/chat"):
            self._ollama(asked, reply)
        elif ":streamGenerateContent" in self.path:
            self._gemini(asked, reply)
        elif asked.body.get("stream") and reply.fault != "not_streamed":
            self._stream(asked, reply)
        else:
            self._whole(reply)

    def _whole(self, reply: Reply) -> None:
        message = {"role": "assistant", "content": reply.text}
        choice = {"index": 0, "message": message, "finish_reason": reply.finish}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "loopback"}
        time.sleep(reply.pause)
        self._json(200, {**body, "choices": [choice], "usage": reply.usage})

    def _embeddings(self, asked: Asked, reply: Reply) -> None:
        texts = asked.body["input"]
        texts = [texts] if isinstance(texts, str) else texts
        if reply.status != 200:
            self._json(reply.status, {"error": {"message": reply.message}}, reply.headers)
            return
        rows = [
            {"object": "embedding", "index": n, "embedding": self.server.vector(text)}
            for n, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 5 * len(texts), "total_tokens": 5 * len(texts)}
        self._json(200, {"object": "list", "data": rows, "model": "e", "usage": usage})

    def _stream(self, asked: Asked, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()
        self._pause(asked, reply.pause)
        if reply.fault == "error_before":
            self._event({"error": {"message": reply.message, "code": reply.code or None}})
            self._end()
            return
        self._event(chunk({"role": "assistant", "content": ""}))
        name = "refusal" if reply.refusal else "content"
        pieces = [
            reply.text[start : start + reply.piece]
            for start in range(0, len(reply.text), reply.piece)
        ]
        for number, piece in enumerate(pieces):
            if reply.fault not in ("", "hang_after") and number == max(1, len(pieces) // 2):
                break
            self._event(chunk({name: piece}))
            asked.sent_at.append(time.monotonic())
            self._pause(asked, reply.gap)
        self._end_stream(asked, reply)

    def _end_stream(self, asked: Asked, reply: Reply) -> None:
        match reply.fault:
            case "hang_within":
                self._hang(asked)
                return
            case "cut_off":
                self.close_connection = True
                self.connection.close()
                return
            case "malformed":
                self._data(b"data: {not json at all\n\n")
            case "error_within":
                self._event({"error": {"message": reply.message, "code": reply.code or None}})
            case "no_finish":
                self._end()
                return
        self._event(chunk({}, reply.finish))
        if reply.fault == "hang_after":
            self._hang(asked)
            return
        if reply.usage and (asked.body.get("stream_options") or {}).get("include_usage"):
            self._event({**chunk({}), "choices": [], "usage": reply.usage})
        self._data(b"data: [DONE]\n\n")
        self._end()

    def _ollama(self, asked: Asked, reply: Reply) -> None:
        """The stream of Ollama's own API: a JSON object a line."""
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for start in range(0, len(reply.text), reply.piece):
            text = reply.text[start : start + reply.piece]
            self._line({"message": {"role": "assistant", "content": text}, "done": False})
            self._pause(asked, reply.gap)
        if reply.fault != "no_finish":
            counts = {"prompt_eval_count": 100, "eval_count": 20}
            message = {"role": "assistant", "content": ""}
            self._line({"message": message, "done": True, "done_reason": reply.finish, **counts})
        self._end()

    def _gemini(self, asked: Asked, reply: Reply) -> None:
        """The stream of Gemini's own API; `finish` is a word of its own, such as STOP."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        counts = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
        starts = range(0, len(reply.text), reply.piece)
        for start in starts:
            text = reply.text[start : start + reply.piece]
            told: dict[str, Any] = {"content": {"parts": [{"text": text}], "role": "model"}}
            if start == starts[-1] and reply.fault != "no_finish":
                told["finishReason"] = reply.finish
            self._event({"candidates": [{**told, "index": 0}], "usageMetadata": counts})
            self._pause(asked, reply.gap)
        self._end()

    def _line(self, event: dict[str, Any]) -> None:
        whole = {"model": "loopback", "created_at": "2026-01-01T00:00:00Z", **event}
        self._data(json.dumps(whole).encode() + b"\n")

    def _event(self, event: dict[str, Any]) -> None:
        self._data(b"data: " + json.dumps(event).encode() + b"\n\n")

    def _data(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _end(self) -> None:
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def _hang(self, asked: Asked) -> None:
        self._pause(asked, self.server.patience)
        self.close_connection = True

    def _pause(self, asked: Asked, seconds: float) -> None:
        """Sleep, and raise as soon as the client has gone."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([self.connection], [], [], min(0.02, left))
            if ready and not self.connection.recv(1):
                asked.closed_at = time.monotonic()
                raise ConnectionResetError

    def _json(
        self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        self._raw(status, "application/json", json.dumps(body).encode(), headers)

    def _raw(
        self, status: int, kind: str, data: bytes, headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    patience = 30.0

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.lock = threading.Lock()
        self.loopback = Loopback(f"http://127.0.0.1:{self.server_address[1]}/v1")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is what many tests are about."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def vector(self, text: str) -> list[float]:
        """Eight numbers of the text: the same words give the same vector."""
        counts = [0.01] * 8
        for word in text.casefold().split():
            counts[sum(word.encode()) % 8] += 1.0
        return counts


@contextmanager
def loopback(answer: Answer | Reply) -> Iterator[Loopback]:
    """A server that answers so; it is gone when the block ends."""
    server = _Server(answer if callable(answer) else lambda _: answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.loopback
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
