"""The desk over the real protocol: what each fault of a provider leaves in the ledger."""

from __future__ import annotations

import sqlite3
import warnings
from pathlib import Path

import pytest

from core.llm.call import Call, Message, ModelRequest, ignore_piece
from core.llm.client import ModelClient
from core.llm.encoder import LlmEmbedder
from core.llm.failures import RetryPolicy
from core.llm.keys import Keys
from core.llm.limits import SpendingCaps
from core.llm.metering import CallAccount, MeteredClient
from core.runtime.concurrency import StopSignal
from core.runtime.errors import KeyMissing, ReviewError
from core.schema.rosters import AgentConfig
from core.store import open_store
from core.store.database import DATABASE_FILE
from core.store.ledger import DAY_SECONDS, LedgerRow
from tests.llm.loopback import Loopback, Reply, loopback

# litellm's own types make pydantic warn when the first of its answers is put together.
pytestmark = pytest.mark.filterwarnings("ignore:.*ReadOnly:UserWarning")
KEY = "sk-of-this-address-93417"
NOON = 20_000 * DAY_SECONDS + DAY_SECONDS / 2
WIDE = SpendingCaps(10**6, 10**6, 10**6, 10**9, 10**9, 10**9)


def desk_at(home: Path, *, key: str = KEY) -> MeteredClient:
    model = ModelClient(Keys({"COUNTERPOINT_API_KEY": key}), RetryPolicy(backoff=0.01))
    return MeteredClient(model, home, CallAccount("run", "Mira", "project"), WIDE, lambda: NOON)


@pytest.fixture(autouse=True, scope="module")
def _litellm_is_loaded() -> None:
    """The first call loads much of litellm, which may take longer than these seats wait."""
    with loopback(Reply("x")) as server, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seat = AgentConfig(model="tiny", api_base=server.base)
        ModelClient(Keys({})).complete(
            Call(seat, (Message("user", "?"),)), ignore_piece, StopSignal()
        )


def asked_at(server: Loopback, text: str = "Is it so?") -> ModelRequest:
    seat = AgentConfig(model="tiny", api_base=server.base, price_in=1.0, price_out=10.0, seconds=2)
    return ModelRequest(
        "judge", "judge", Call(seat, (Message("user", text),)), "en/judge", "0" * 12
    )


def rows(home: Path) -> list[LedgerRow]:
    with open_store(home) as store:
        return store.ledger.of_run("run")


def test_what_was_paid_for_is_asked_for_once(home: Path) -> None:
    with loopback(Reply("Verdict: 1")) as server:
        first = desk_at(home).ask(asked_at(server), StopSignal())
        again = desk_at(home).ask(asked_at(server), StopSignal())
        assert (first.text, again.text) == ("Verdict: 1", "Verdict: 1")
        assert len(server.asked) == 1
    (row,) = rows(home)
    assert (row.tokens_in, row.tokens_out, row.is_counted) == (100, 20, True)
    assert row.cost_nano == row.counts_nano == 100 * 1_000 + 20 * 10_000


@pytest.mark.parametrize(
    ("reply", "is_owed"),
    [
        (Reply(status=429), False),
        (Reply(status=500), False),
        (Reply(status=401), False),
        (Reply(status=404, message="unknown model"), False),
        (Reply("a b c d e f g h i j k l", fault="cut_off", piece=2), True),
        (Reply("a b c d e f g h i j k l", fault="no_finish", piece=2), True),
        (Reply("a b c d e f g h i j k l", fault="malformed", piece=2), True),
        (Reply("a b c d e f g h i j k l", fault="hang_within", piece=2), True),
        (Reply(fault="hang_before"), True),
        (Reply(""), True),
        (Reply("I cannot help with that.", refusal=True), True),
    ],
    ids=lambda value: f"{value.status}{value.fault}" if isinstance(value, Reply) else str(value),
)
def test_a_fault_is_counted_where_something_may_be_owed(
    home: Path, reply: Reply, is_owed: bool
) -> None:
    with loopback(reply) as server:
        desk = desk_at(home)
        with pytest.raises(ReviewError, match=r"^Judge \(tiny\)"):
            desk.ask(asked_at(server), StopSignal())
        assert server.asked
    (row,) = rows(home)
    assert row.status == "failed"
    assert row.problem
    assert (row.counts_nano > 0, row.cost_nano) == ((True, None) if is_owed else (False, 0))
    (call,) = desk.drain()
    assert call.cost == (None if is_owed else 0.0)


def test_a_service_that_is_not_there_is_owed_nothing(home: Path) -> None:
    with loopback(Reply("x")) as server:
        asked = asked_at(server)
    with pytest.raises(ReviewError):
        desk_at(home).ask(asked, StopSignal())
    assert [(row.status, row.counts_nano, row.cost_nano) for row in rows(home)] == [
        ("failed", 0, 0)
    ]


def test_a_missing_key_is_named_and_nothing_is_owed(home: Path) -> None:
    desk = MeteredClient(
        ModelClient(Keys({})), home, CallAccount("run", "Mira", "project"), WIDE, lambda: NOON
    )
    seat = AgentConfig(model="openai/gpt-4o")
    with pytest.raises(KeyMissing) as raised:
        desk.ask(ModelRequest("judge", "judge", Call(seat, (Message("user", "?"),))), StopSignal())
    assert raised.value.names == ("OPENAI_API_KEY",)
    assert str(raised.value).startswith("Judge (openai/gpt-4o) ")
    assert [(row.status, row.cost_nano) for row in rows(home)] == [("failed", 0)]


def test_no_key_and_no_prompt_lie_in_the_database(home: Path) -> None:
    with loopback(Reply("Verdict: 1")) as server:
        desk_at(home).ask(asked_at(server, "words of the document"), StopSignal())
        assert server.asked[0].bearer == KEY
    refusal = Reply(status=401, message=f"Incorrect API key provided: {KEY}")
    with loopback(refusal) as server, pytest.raises(ReviewError) as raised:
        desk_at(home).ask(asked_at(server), StopSignal())
    assert KEY not in str(raised.value)
    with sqlite3.connect(home / DATABASE_FILE) as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert "Verdict: 1" in dump
    assert KEY not in dump
    assert "words of the document" not in dump


def test_passages_are_embedded_at_the_desk(home: Path) -> None:
    with loopback(Reply()) as server:
        seat = AgentConfig(
            model="tiny-embedding", api_base=server.base, price_in=2.0, price_out=0.0
        )
        desk = desk_at(home)
        embedder = LlmEmbedder(seat, Keys({"COUNTERPOINT_API_KEY": KEY}), desk)
        assert embedder.encode(["one text", "another"]).shape == (2, 8)
    (call,) = desk.drain()
    assert (call.role, call.tokens_in, call.cost) == ("retriever", 10, 0.00002)
