"""Every model of a roster is asked once; what is wrong with one is said in words."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.agents.roster_files import RoleTest, probe_models
from core.agents.rosters import SHIPPED_ROSTERS, make_single_model_roster
from core.llm.keys import Keys
from core.llm.metering import CallAccount
from core.runtime.concurrency import StopSignal
from core.runtime.errors import Stopped
from core.schema.rosters import AgentConfig, RosterConfig
from core.store import open_store
from tests.llm.loopback import Asked, Loopback, Reply, loopback
from tests.waiting import wait_for

pytestmark = pytest.mark.timing

SECRET = "sk-test-0123456789abcdef"
numbers = itertools.count()


def probed(
    home: Path, sheet: RosterConfig, keys: Keys | None = None, stop: StopSignal | None = None
) -> dict[str, RoleTest]:
    """The results by role."""
    account = CallAccount(f"test{next(numbers)}", "Mira", "project")
    found = probe_models(
        sheet, keys or Keys({}), stop or StopSignal(), home=home, account=account, clock=time.time
    )
    results = list(found)
    assert len({result.role for result in results}) == len(results)
    return {result.role: result for result in results}


def answer(asked: Asked) -> Reply:
    return Reply("Red." if asked.images else "OK")


def sheet_at(server: Loopback, **fields: object) -> RosterConfig:
    sheet = make_single_model_roster("openai/loopback", server.base)
    for role, seat in list(sheet.agents_by_role()):
        if not seat.is_built_in:
            sheet = sheet.with_seat(role, replace(seat, **fields))  # type: ignore[arg-type]
    return sheet


def one_seat(seat: AgentConfig) -> RosterConfig:
    return RosterConfig("one", judge=seat)


def test_each_model_is_asked_once_for_all_the_roles_it_has(home: Path) -> None:
    with loopback(answer) as server:
        found = probed(home, sheet_at(server))
    assert set(found) == {
        "tool picker", "reflector", "image reader", "context writer", "debater Ada", "debater Ben",
        "judge", "span extractor", "span adjudicator",
    }  # fmt: skip
    assert all(result.outcome == "works" for result in found.values()), found
    assert sorted(asked.body["temperature"] for asked in server.asked) == [0.0, 0.0, 0.2, 0.6]
    assert all(0 < asked.body["max_tokens"] <= 64 for asked in server.asked)
    assert [bool(asked.images) for asked in server.asked].count(True) == 1
    assert found["image reader"].words == "“Red.”"
    assert found["judge"].words == "“OK”"
    assert sum(len(result.calls) for result in found.values()) == 4


def test_the_calls_are_in_the_ledger_and_nothing_answers_for_a_model_that_is_away(
    home: Path,
) -> None:
    with loopback(answer) as server:
        sheet = one_seat(AgentConfig("openai/loopback", server.base))
        first = probed(home, sheet)["judge"]
        assert probed(home, sheet)["judge"].outcome == "works"
        assert len(server.asked) == 2, "a test is never answered from the ledger"
    with open_store(home) as store:
        rows = store.ledger.of_run(f"test{next(numbers) - 2}")
    assert [(row.role, row.status, row.person) for row in rows] == [("judge", "done", "Mira")]
    assert (first.calls[0].tokens_in, first.calls[0].tokens_out) == (100, 20)
    assert first.calls[0].cost is None, "another server's price is not known"


def test_a_cap_that_is_used_up_sends_nothing(home: Path) -> None:
    with open_store(home) as store:
        store.projects.save_setting("run_tokens", 1000)
    long = AgentConfig("openai/loopback", max_tokens=20)
    with loopback(answer) as server:
        roles = [f"Model {n}" for n in range(40)]
        sheet = RosterConfig(
            "many",
            debaters=tuple(
                replace(
                    RosterConfig("x").debaters[0],
                    name=name,
                    seat=replace(long, model=f"openai/loopback-{name[6:]}", api_base=server.base),
                )
                for name in roles
            ),
        )
        found = probed(home, sheet)
    refused = [result for result in found.values() if result.outcome == "fails"]
    assert refused
    assert len(server.asked) == len(found) - len(refused)
    assert "token" in refused[0].words


def test_results_come_as_they_arrive_and_all_are_asked_at_once(home: Path) -> None:
    def slow(asked: Asked) -> Reply:
        return Reply("OK", pause=0.1 if asked.body["temperature"] == 0.6 else 0.6)

    with loopback(answer) as server:
        probed(
            home, one_seat(AgentConfig("openai/loopback", server.base))
        )  # litellm is loaded by now
    with loopback(slow) as server:
        began = time.monotonic()
        found = probed(home, sheet_at(server))
        took = time.monotonic() - began
    assert next(iter(found)) == "debater Ben"
    assert took < 1.7, "one after the other they take 1.9 s"
    assert found["judge"].seconds >= 0.6


WRONG: list[tuple[Reply, str]] = [
    (Reply(status=401, message="Incorrect API key"), "refused the key (401)"),
    (Reply(status=404, message="The model `loopback` does not exist"), "does not know that model"),
    (Reply(fault="html"), "Expected a chat-completions stream"),
    (Reply(fault="hang_before"), "was silent for 1 seconds"),
    (Reply(status=500, message="out of memory"), "out of memory"),
    (Reply("I cannot help with that.", refusal=True), "declined to answer"),
]


@pytest.mark.parametrize(("reply", "words"), WRONG)
def test_what_is_wrong_is_said_in_words(home: Path, reply: Reply, words: str) -> None:
    keys = Keys({"COUNTERPOINT_API_KEY": SECRET})
    with loopback(reply) as server:
        found = probed(home, one_seat(AgentConfig("openai/loopback", server.base, seconds=1)), keys)
    result = found["judge"]
    assert result.outcome == "fails"
    assert words in result.words
    assert not result.words.startswith("Judge"), "the table says which role it is"
    assert "\n" not in result.words
    assert SECRET not in result.words


def test_nobody_listens_there(home: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    result = probed(home, one_seat(AgentConfig("openai/x", f"http://127.0.0.1:{port}/v1")))["judge"]
    assert result.outcome == "fails"
    assert str(port) in result.words


def test_a_missing_key_is_named_and_nothing_is_sent(home: Path) -> None:
    found = probed(home, SHIPPED_ROSTERS["ceda"])
    assert set(found) >= {"retriever", "judge", "debater Ada"}
    for result in found.values():
        assert result.outcome == "fails"
        assert "AWS_ACCESS_KEY_ID" in result.words


def test_a_model_that_thinks_first_is_given_the_seats_whole_limit(home: Path) -> None:
    def thinking(asked: Asked) -> Reply:
        return Reply("OK") if asked.body["max_tokens"] > 100 else Reply("", finish="length")

    with loopback(thinking) as server:
        found = probed(home, one_seat(AgentConfig("openai/loopback", server.base, max_tokens=800)))
        assert found["judge"].outcome == "works"
        assert len(found["judge"].calls) == 2
        short = probed(home, one_seat(AgentConfig("openai/loopback", server.base, max_tokens=100)))
    assert short["judge"].outcome == "fails"
    assert "100 tokens went by without a word" in short["judge"].words


def test_a_model_that_does_not_see_is_doubted(home: Path) -> None:
    with loopback(Reply("OK")) as server:
        sheet = RosterConfig("sees", image_reader=AgentConfig("openai/loopback", server.base))
        result = probed(home, sheet)["image reader"]
    assert result.outcome == "answers"
    assert result.words.startswith("“OK”. ")
    assert "make sure that this model takes images" in result.words


def test_a_model_that_says_something_else_answers_all_the_same(home: Path) -> None:
    with loopback(Reply("Sure! I am a helpful\nassistant.")) as server:
        result = probed(home, one_seat(AgentConfig("openai/loopback", server.base)))["judge"]
    assert result.outcome == "answers"
    assert result.words.startswith("“Sure! I am a helpful assistant.” instead of")


def test_the_retriever_gives_numbers(home: Path) -> None:
    with loopback(answer) as server:
        sheet = RosterConfig("embeds", retriever=AgentConfig("openai/loopback", server.base))
        result = probed(home, sheet)["retriever"]
    assert (result.outcome, result.words) == ("works", "8 numbers for a text")
    assert server.asked[0].path.endswith("/embeddings")
    assert len(result.calls) == 1


def test_a_stop_ends_the_test(home: Path) -> None:
    stop = StopSignal()
    with loopback(Reply("OK", pause=20.0)) as server:
        wait_then(lambda: len(server.asked) == 4, stop.set)
        began = time.monotonic()
        with pytest.raises(Stopped):
            probed(home, sheet_at(server), stop=stop)
        assert time.monotonic() - began < 10
        server.wait_closed(0)


def wait_then(is_so: Callable[[], bool], act: Callable[[], None]) -> None:
    """Act on a thread as soon as it is so."""

    def watch() -> None:
        wait_for(is_so)
        act()

    threading.Thread(target=watch, daemon=True).start()


def test_the_built_in_engine_has_nobody_to_ask(home: Path) -> None:
    assert probed(home, SHIPPED_ROSTERS["builtin"]) == {}
