"""Vectors of the exported encoder and of a provider's model."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.llm import encoder as encoders
from core.llm.client import Embeddings, ModelClient
from core.llm.encoder import TEXTS_PER_CALL, Embedder, LlmEmbedder, OnnxEncoder, load_encoder
from core.llm.failures import RetryPolicy
from core.llm.keys import Keys
from core.runtime.concurrency import StopSignal, choose_product_precision
from core.runtime.config import ENCODER_DIR
from core.runtime.errors import ConfigError, ModelError, ModelTimeout, Stopped
from core.schema.rosters import AgentConfig
from tests.llm.loopback import Asked, Loopback, Reply, loopback
from tests.waiting import wait_for

REST = 0.04  # seconds
TEXTS = ["The tower of the old town is 412 m tall and was opened in the year 1931."] * 4


def test_nothing_is_computed_once_the_texts_are_read() -> None:
    """Threads that spin take a core from the calls that go out next; the quietest time counts."""
    encoder, spent = load_encoder(ENCODER_DIR), []
    for _ in range(5):
        encoder.encode(TEXTS)
        before = time.process_time()
        time.sleep(REST)
        spent.append(time.process_time() - before)
    assert min(spent) < REST / 8


KEY = "sk-embedding-778899"
KEYS = Keys({"COUNTERPOINT_API_KEY": KEY})


def seat_at(server: Loopback, **more: Any) -> AgentConfig:
    return AgentConfig(model="embed-small", api_base=server.base, seconds=5, **more)


class Counting:
    """Passes on to the boundary and keeps what was booked."""

    def __init__(self) -> None:
        self.booked: list[Embeddings] = []

    def embed(self, seat: AgentConfig, texts: Sequence[str], stop: StopSignal) -> Embeddings:
        found = ModelClient(KEYS, RetryPolicy(backoff=0.01)).embed(seat, texts, stop)
        self.booked.append(found)
        return found


def test_vectors_come_in_order_at_unit_length_with_their_tokens_booked() -> None:
    counting = Counting()
    texts = [f"passage {number} of the book" for number in range(TEXTS_PER_CALL + 5)]
    with loopback(Reply()) as server:
        embedder: Embedder = LlmEmbedder(seat_at(server, price_in=1.0), KEYS, counting)
        embedder = LlmEmbedder(seat_at(server, price_in=1.0, price_out=0.0), KEYS, counting)
        rows = embedder.encode(texts)
        again = embedder.encode([texts[3], texts[-1]])
    assert rows.shape == (len(texts), 8)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    assert np.allclose(rows[[3, -1]], again)
    assert not np.allclose(rows[3], rows[4])
    assert embedder.width == 8
    assert not embedder.muted(texts).any()
    assert [len(asked.body["input"]) for asked in server.asked] == [TEXTS_PER_CALL, 5, 2]
    assert [found.tokens for found in counting.booked] == [TEXTS_PER_CALL * 5, 25, 10]
    assert all(found.is_counted for found in counting.booked)
    assert counting.booked[1].cost == pytest.approx(25e-6)
    assert all(asked.bearer == KEY for asked in server.asked)


def test_a_blank_text_is_not_sent_and_nothing_asks_nothing() -> None:
    with loopback(Reply()) as server:
        embedder = LlmEmbedder(seat_at(server), KEYS)
        rows = embedder.encode(["a passage", " ", "", "b passage"])
        assert server.asked[0].body["input"] == ["a passage", "b passage"]
        assert not rows[1:3].any()
        assert rows[[0, 3]].any(axis=1).all()
        assert embedder.encode([]).shape == (0, 8)
        assert len(server.asked) == 1


def test_the_width_is_asked_for_once() -> None:
    with loopback(Reply()) as server:
        embedder = LlmEmbedder(seat_at(server), KEYS)
        assert (embedder.width, embedder.width) == (8, 8)
        assert len(server.asked) == 1


def test_the_id_tells_models_and_addresses_apart() -> None:
    seats = [
        AgentConfig(model="a", api_base="http://x/v1"),
        AgentConfig(model="b", api_base="http://x/v1"),
        AgentConfig(model="a", api_base="http://y/v1"),
    ]
    assert len({LlmEmbedder(seat, KEYS).id for seat in seats}) == 3


def test_faults_are_those_of_every_call() -> None:
    def failing(asked: Asked) -> Reply:
        return Reply(status=500) if len(server.asked) < 3 else Reply()

    with loopback(failing) as server:
        assert LlmEmbedder(seat_at(server), KEYS, Counting()).encode(["x"]).shape == (1, 8)
        assert len(server.asked) == 3
    for reply, kind in [(Reply(status=401), ConfigError), (Reply(status=422), ModelError)]:
        with loopback(reply) as server, pytest.raises(kind) as caught:
            LlmEmbedder(seat_at(server), KEYS).encode(["x"])
        assert KEY not in str(caught.value)
    with loopback(Reply(fault="hang_before")) as server, pytest.raises(ModelTimeout):
        seat = AgentConfig(model="embed-small", api_base=server.base, seconds=1)
        LlmEmbedder(seat, KEYS).encode(["x"])


def test_too_few_vectors_are_an_error() -> None:
    class Short:
        def embed(self, seat: AgentConfig, texts: Sequence[str], stop: StopSignal) -> Embeddings:
            return Embeddings(((0.0, 0.0),) * len(texts), 1, True, None, 0.1)

    with pytest.raises(ModelError, match="embedding model"):
        LlmEmbedder(AgentConfig(model="x"), KEYS, Short()).encode(["x"])


def test_stop_closes_the_connection() -> None:
    stop = StopSignal()
    with loopback(Reply()) as server:  # the first call of a process loads parts of the client
        LlmEmbedder(seat_at(server), KEYS).encode(["x"], StopSignal())
    with loopback(Reply(fault="hang_before")) as server:
        embedder = LlmEmbedder(seat_at(server), KEYS)

        def press() -> None:
            wait_for(lambda: server.asked, "the request")
            stop.set()

        thread = threading.Thread(target=press)
        thread.start()
        with pytest.raises(Stopped):
            embedder.encode(["x"], stop)
        server.wait_closed()
        thread.join()


@pytest.mark.parametrize(
    ("flags", "precision"),
    [("fma avx2 avx_vnni", "0"), ("avx512f avx512_vnni", "0"), ("fma avx2", "1"), (None, "1")],
)
def test_exact_products_are_slow_only_without_vnni(
    tmp_path: Path, flags: str | None, precision: str
) -> None:
    if flags is not None:
        (tmp_path / "cpuinfo").write_text(f"processor: 0\nflags: {flags}\n")
    assert choose_product_precision(tmp_path / "cpuinfo") == precision


def test_vectors_are_the_same_with_slow_exact_products(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["The tower is 412 m tall.", "Pumps: 1,250; price: €7.40"]
    fast = OnnxEncoder(ENCODER_DIR).encode(texts)
    monkeypatch.setattr(encoders, "choose_product_precision", lambda: "1")
    assert np.array_equal(fast, OnnxEncoder(ENCODER_DIR).encode(texts))
