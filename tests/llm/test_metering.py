"""The desk: what is in the ledger is not paid for twice, and no call may pass a cap."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.llm.call import Call, Completion, Message, ModelRequest, Speak
from core.llm.client import Embeddings
from core.llm.limits import SpendingCaps
from core.llm.metering import CallAccount, MeteredClient
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.runtime.errors import (
    BudgetReached,
    ConfigError,
    KeyMissing,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ReplyError,
    ReviewError,
    Stopped,
)
from core.schema.rosters import AgentConfig
from core.store import open_store
from core.store.database import DATABASE_FILE
from core.store.ledger import DAY_SECONDS, LedgerRow
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.timing

NOON = 20_000 * DAY_SECONDS + DAY_SECONDS / 2
PRICED = AgentConfig(model="openai/priced", price_in=1.0, price_out=100.0, max_tokens=100)
UNPRICED = AgentConfig(model="openai/never-listed-anywhere", api_base="http://127.0.0.1:1/v1")
WIDE = SpendingCaps(10**6, 10**6, 10**6, 10**9, 10**9, 10**9)


class OneModel:
    """Answers what the test says; `paid` are the calls that reached it."""

    def __init__(self, answer: Callable[[Call], Completion | BaseException] | None = None) -> None:
        self.paid: list[Call] = []
        self._answer = answer or (lambda call: said(call))
        self._lock = threading.Lock()

    def complete(self, call: Call, speak: Speak, stop: StopSignal) -> Completion:
        with self._lock:
            self.paid.append(call)
        found = self._answer(call)
        if isinstance(found, BaseException):
            raise found
        speak(found.text)
        return found


def said(call: Call, text: str = "Verdict: 1", **changes: object) -> Completion:
    completion = Completion(text, "stop", 10, 5, True, cost_of(call.agent, 10, 5), 0.5)
    return replace(completion, **changes)  # type: ignore[arg-type]


def cost_of(seat: AgentConfig, tokens_in: int, tokens_out: int) -> float | None:
    if seat.price_in is None or seat.price_out is None:
        return None
    return (tokens_in * seat.price_in + tokens_out * seat.price_out) / 1e6


def asked(
    slot: str = "turn 1", text: str = "Is it so?", seat: AgentConfig = PRICED
) -> ModelRequest:
    call = Call(seat, (Message("user", text),))
    return ModelRequest("judge", slot, call, "judge", "abc123", "")


def desk_of(
    home: Path,
    model: OneModel,
    *,
    run: str = "run",
    person: str = "Mira",
    caps: SpendingCaps = WIDE,
    now: Callable[[], float] = lambda: NOON,
    reuses: bool = False,
    project: str = "project",
) -> MeteredClient:
    return MeteredClient(model, home, CallAccount(run, person, project), caps, now, reuses=reuses)


def rows(home: Path, run: str = "run") -> list[LedgerRow]:
    with open_store(home) as store:
        return store.ledger.of_run(run)


def worst_nano(home: Path) -> int:
    """What one call of the priced seat reserves."""
    desk_of(home, OneModel(), run="measured", person="nobody").ask(asked(), StopSignal())
    reserved = rows(home, "measured")[0].reserved_nano
    assert reserved is not None
    assert reserved > 100 * 100_000
    return reserved


def test_a_call_is_paid_once_and_told_once(home: Path) -> None:
    model, heard = OneModel(), list[str]()
    desk = desk_of(home, model)
    assert desk.ask(asked(), StopSignal(), heard.append).text == "Verdict: 1"
    (call,) = desk.drain()
    assert desk.drain() == ()
    assert (call.origin, call.role, call.slot, call.model) == (
        "called",
        "judge",
        "turn 1",
        "openai/priced",
    )
    assert (call.tokens_in, call.tokens_out) == (10, 5)
    assert call.cost == pytest.approx(510e-6)
    (row,) = rows(home)
    assert (row.status, row.counts_nano, row.cost_nano) == ("done", 510_000, 510_000)
    assert (row.prompt, row.prompt_hash, row.person) == ("judge", "abc123", "Mira")

    again = desk_of(home, OneModel(lambda _: AssertionError("paid twice")))
    heard.clear()
    assert again.ask(asked(), StopSignal(), heard.append).text == "Verdict: 1"
    assert heard == ["Verdict: 1"]
    (resumed,) = again.drain()
    assert (resumed.id, resumed.origin, resumed.cost) == (call.id, "resumed", call.cost)


def test_the_ledger_holds_no_prompt(home: Path) -> None:
    desk_of(home, OneModel()).ask(asked(text="the words of the document"), StopSignal())
    with sqlite3.connect(home / DATABASE_FILE) as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert "Verdict: 1" in dump
    assert "the words of the document" not in dump


def test_slots_of_one_prompt_are_as_many_calls(home: Path) -> None:
    model = OneModel()
    desk = desk_of(home, model)
    for number in range(3):
        desk.ask(asked(f"vote {number}"), StopSignal())
    assert len(model.paid) == 3
    assert len({call.id for call in desk.drain()}) == 3


def test_other_words_in_a_slot_are_another_call(home: Path) -> None:
    model = OneModel()
    desk_of(home, model).ask(asked(text="one"), StopSignal())
    desk_of(home, model).ask(asked(text="two"), StopSignal())
    assert len(model.paid) == 2


@pytest.mark.parametrize(
    ("temperature", "reuses", "paid"), [(0.0, False, 1), (0.2, False, 2), (0.2, True, 1)]
)
def test_another_runs_reply(home: Path, temperature: float, reuses: bool, paid: int) -> None:
    seat = replace(PRICED, temperature=temperature)
    model, heard = OneModel(), list[str]()
    first = desk_of(home, model, run="first")
    first.ask(asked(seat=seat), StopSignal())
    second = desk_of(home, model, run="second", reuses=reuses)
    assert second.ask(asked(seat=seat), StopSignal(), heard.append).text == "Verdict: 1"
    assert len(model.paid) == paid
    assert heard == ["Verdict: 1"]
    (call,) = second.drain()
    assert call.id != first.drain()[0].id
    if paid == 1:
        assert (call.origin, call.cost) == ("reused", 0.0)
        assert rows(home, "second")[0].counts_nano == 0
        resumed = desk_of(home, model, run="second")
        resumed.ask(asked(seat=seat), StopSignal())
        assert [(c.id, c.origin) for c in resumed.drain()] == [(call.id, "resumed")]
        assert len(model.paid) == 1


@pytest.mark.parametrize("reuses", [False, True])
def test_replies_are_not_reused_in_another_project(home: Path, reuses: bool) -> None:
    model = OneModel()
    for project in ("ours", "theirs"):
        desk = desk_of(home, model, run=f"run of {project}", project=project, reuses=reuses)
        desk.ask(asked(), StopSignal())
        assert [call.origin for call in desk.drain()] == ["called"]
    assert len(model.paid) == 2


def test_a_reply_that_was_cut_or_failed_serves_no_other_run(home: Path) -> None:
    cut = OneModel(lambda call: said(call, finish="length"))
    desk_of(home, cut, run="first").ask(asked(), StopSignal())
    failing = OneModel(lambda _: ReplyError("unreadable.", reply="??"))
    with pytest.raises(ReplyError):
        desk_of(home, failing, run="second").ask(asked(), StopSignal())
    model = OneModel()
    desk_of(home, model, run="third").ask(asked(), StopSignal())
    assert len(model.paid) == 1
    desk_of(home, cut, run="first").ask(asked(), StopSignal())
    assert len(cut.paid) == 1, "the run itself resumes with a reply that was cut"


def test_samples_of_another_run_stay_different_answers(home: Path) -> None:
    numbers = iter(range(9))
    model = OneModel(lambda call: said(call, f"answer {next(numbers)}"))
    seat = replace(PRICED, temperature=0.6)
    first = desk_of(home, model, run="first")
    said_first = [first.ask(asked(f"vote {n}", seat=seat), StopSignal()).text for n in (1, 2)]
    second = desk_of(home, model, run="second", reuses=True)
    slots = ("vote 2", "vote 1", "vote 3")
    said_second = [second.ask(asked(slot, seat=seat), StopSignal()).text for slot in slots]
    assert said_second == [said_first[1], said_first[0], "answer 2"]


def test_a_cap_that_leaves_room_for_three_lets_three_of_twenty_through(home: Path) -> None:
    one = worst_nano(home)
    caps = replace(WIDE, run_cents=-(-3 * one // 10**7))
    assert 3 * one <= caps.run_cents * 10**7 < 4 * one
    together, answering = threading.Barrier(20), threading.Event()

    def answer(call: Call) -> Completion:
        assert answering.wait(PATIENCE_SECONDS), (
            "seventeen were to be refused while three were under way"
        )
        return said(call)

    model = OneModel(answer)
    desk = desk_of(home, model, caps=caps)
    refused = threading.Semaphore(0)

    def attempt(number: int) -> bool:
        together.wait()
        try:
            desk.ask(asked(f"slot {number}", f"{number:02d}? Is it"), StopSignal())
        except BudgetReached:
            refused.release()
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        through = [pool.submit(attempt, number) for number in range(20)]
        were_refused = [refused.acquire(timeout=PATIENCE_SECONDS) for _ in range(17)]
        answering.set()
    assert all(were_refused)
    assert sum(done.result() for done in through) == 3
    assert len(model.paid) == 3
    assert [row.status for row in rows(home)] == ["done"] * 3


@pytest.mark.parametrize(
    ("cap", "words"),
    [
        ("run_cents", "Most money per run"),
        ("day_cents", "Most money per day"),
        ("person_day_cents", "Highest cost per person and day"),
    ],
)
def test_a_reached_cap_is_named_with_what_to_do(home: Path, cap: str, words: str) -> None:
    model = OneModel()
    desk = desk_of(home, model, caps=replace(WIDE, **{cap: 1}))
    with pytest.raises(BudgetReached) as raised:
        desk.ask(asked(), StopSignal())
    message = str(raised.value)
    assert message.startswith("Judge (openai/priced): not asked, nothing was sent.")
    assert f"“{words}” is US$0.01" in message
    assert "could cost up to US$0.0100" in message
    assert "Raise the cap in Settings" in message
    assert model.paid == []
    assert rows(home) == []
    assert desk.drain() == ()


def test_the_day_ends_at_midnight_and_each_person_has_their_own(home: Path) -> None:
    clock = [NOON]
    model = OneModel(lambda call: said(call, tokens_out=100, cost=0.012))
    caps = replace(WIDE, person_day_cents=2, day_cents=4)

    def attempt(run: str, person: str) -> None:
        desk_of(home, model, run=run, person=person, caps=caps, now=lambda: clock[0]).ask(
            asked(text=run), StopSignal()
        )

    attempt("a", "Mira")
    with pytest.raises(BudgetReached, match="per person and day"):
        attempt("b", "Mira")
    attempt("b", "Tom")
    with pytest.raises(BudgetReached, match=r"“Most money per day”.*used so far: US\$0\.0240"):
        desk_of(
            home, model, run="c", person="Ida", caps=replace(caps, day_cents=3), now=lambda: NOON
        ).ask(asked(text="c"), StopSignal())
    clock[0] = 20_001 * DAY_SECONDS
    attempt("b2", "Mira")
    assert len(model.paid) == 3


def test_a_model_of_no_known_price_runs_under_the_token_caps(home: Path) -> None:
    seat = replace(UNPRICED, max_tokens=50)
    model = OneModel(lambda call: said(call, tokens_in=100, tokens_out=20))
    caps = replace(WIDE, run_cents=0, day_cents=0, person_day_cents=0, run_tokens=190)
    desk = desk_of(home, model, caps=caps)
    assert desk.ask(asked(seat=seat), StopSignal()).cost is None
    (call,) = desk.drain()
    assert call.cost is None
    (row,) = rows(home)
    assert (row.reserved_nano, row.cost_nano, row.counts_nano) == (None, None, 0)
    assert row.counts_tokens == 120
    with pytest.raises(BudgetReached) as raised:
        desk.ask(asked("turn 2", "x" * 100, seat=seat), StopSignal())
    message = str(raised.value)
    assert "price is not known" in message
    assert "“Most tokens per run” is 190 tokens" in message
    assert "used so far: 120 tokens" in message
    assert "--token-cap" in message


def test_each_kind_of_price_has_its_own_caps(home: Path) -> None:
    caps = replace(WIDE, run_tokens=0, day_tokens=0, person_day_tokens=0)
    desk_of(home, OneModel(), caps=caps).ask(asked(), StopSignal())
    with pytest.raises(BudgetReached, match="Most tokens per run"):
        desk_of(home, OneModel(), caps=caps).ask(asked(seat=UNPRICED), StopSignal())


def test_a_price_that_is_no_amount_opens_no_cap(home: Path) -> None:
    for price in (-1.0, float("nan"), float("inf")):
        seat = replace(PRICED, price_in=price)
        with pytest.raises(BudgetReached, match="price is not known"):
            desk_of(home, OneModel(), caps=replace(WIDE, run_tokens=0)).ask(
                asked(seat=seat), StopSignal()
            )


def test_a_service_that_counts_nothing_is_not_free(home: Path) -> None:
    model = OneModel(lambda call: said(call, "word " * 20, tokens_in=0, tokens_out=0, cost=0.0))
    desk = desk_of(home, model)
    found = desk.ask(asked(), StopSignal())
    assert found.tokens_in > 0
    assert found.tokens_out >= 20
    assert not found.is_counted
    assert (found.cost or 0) > 20 * 100e-6


@pytest.mark.parametrize("tokens", [10**30, -5])
@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0])
@pytest.mark.parametrize("seat", [PRICED, UNPRICED])
def test_figures_that_make_no_sense_lose_no_reply_and_open_no_cap(
    home: Path, seat: AgentConfig, tokens: int, cost: float
) -> None:
    model = OneModel(lambda call: said(call, tokens_in=tokens, tokens_out=tokens, cost=cost))
    desk = desk_of(home, model)
    found = desk.ask(asked(seat=seat), StopSignal())
    assert found.text == "Verdict: 1"
    assert found.tokens_in > 0
    (row,) = rows(home)
    assert row.status == "done"
    assert row.counts_nano + row.counts_tokens > 0
    assert desk.drain()[0].cost is None or row.counts_nano > 0


@pytest.mark.parametrize("seat", [PRICED, UNPRICED])
def test_exaggerated_usage_does_not_exhaust_a_day(home: Path, seat: AgentConfig) -> None:
    cost = cost_of(seat, 10**12, 10**12)
    model = OneModel(lambda call: said(call, tokens_in=10**12, tokens_out=10**12, cost=cost))
    desk = desk_of(home, model, caps=SpendingCaps(100, 100, 100, 10_000, 10_000, 10_000))
    for turn in range(3):
        found = desk.ask(asked(f"turn {turn}", seat=seat), StopSignal())
        assert found.tokens_in == 1_000 + len("Is it so?")
        assert (found.tokens_out, found.is_counted) == (seat.max_tokens, False)
        assert found.cost == cost_of(seat, found.tokens_in, found.tokens_out)


def test_usage_is_bounded_by_what_a_service_sends_beyond_its_limit(home: Path) -> None:
    model = OneModel(lambda call: said(call, "word " * 100, tokens_out=400))
    found = desk_of(home, model).ask(asked(), StopSignal())
    assert (found.tokens_out, found.is_counted) == (400, True)


def test_a_seat_without_a_token_limit_is_refused(home: Path) -> None:
    with pytest.raises(ConfigError, match="at least 1 token"):
        desk_of(home, OneModel()).ask(asked(seat=replace(PRICED, max_tokens=0)), StopSignal())


def test_sums_of_many_small_amounts_are_exact(home: Path) -> None:
    """A thousand calls of a tenth of a cent fill a dollar, and no call more."""
    seat = AgentConfig(model="openai/small", price_in=0.0, price_out=100.0, max_tokens=10)
    model = OneModel(lambda call: said(call, tokens_in=0, tokens_out=10, cost=0.1 / 100))
    desk = desk_of(home, model, caps=replace(WIDE, run_cents=10))
    for number in range(100):
        desk.ask(asked(f"slot {number}", seat=seat), StopSignal())
    assert len(model.paid) == 100
    with pytest.raises(BudgetReached, match=r"used so far: US\$0.10;"):
        desk.ask(asked("one more", seat=seat), StopSignal())


@pytest.mark.parametrize(
    "error",
    [
        KeyMissing("A key is missing.", names=["OPENAI_API_KEY"]),
        ConfigError("The key was refused."),
    ],
)
def test_what_was_never_billed_is_released(home: Path, error: ReviewError) -> None:
    desk = desk_of(home, OneModel(lambda _: error))
    with pytest.raises(type(error), match=r"^Judge \(openai/priced\): ") as raised:
        desk.ask(asked(), StopSignal())
    if isinstance(raised.value, KeyMissing):
        assert raised.value.names == ("OPENAI_API_KEY",)
    (row,) = rows(home)
    assert (row.status, row.counts_nano, row.cost_nano) == ("failed", 0, 0)
    (call,) = desk.drain()
    assert call.cost == 0.0
    assert call.problem == str(error)


def test_a_service_that_was_not_reached_is_released(home: Path) -> None:
    error = ModelError("The connection was refused.")
    error.is_unbilled = True
    desk = desk_of(home, OneModel(lambda _: error))
    with pytest.raises(ModelError):
        desk.ask(asked(), StopSignal())
    assert [(row.counts_nano, row.cost_nano) for row in rows(home)] == [(0, 0)]


@pytest.mark.parametrize(
    "error",
    [
        ModelTimeout("It was silent for 60 seconds."),
        ModelError("The stream broke off."),
        ReplyError("The reply is empty.", reply="?"),
        ModelRefused("It declined.", reply="I cannot help with that."),
        Stopped("The run was stopped."),
        ZeroDivisionError("a bug"),
    ],
)
def test_what_may_have_been_billed_stays_counted(home: Path, error: Exception) -> None:
    desk = desk_of(home, OneModel(lambda _: error))
    with pytest.raises(type(error)) as raised:
        desk.ask(asked(), StopSignal())
    if isinstance(raised.value, ReplyError):
        assert isinstance(error, ReplyError)
        assert raised.value.reply == error.reply
    is_named = isinstance(error, ReviewError) and not isinstance(error, Stopped)
    assert str(raised.value) == ("Judge (openai/priced): " if is_named else "") + str(error)
    (row,) = rows(home)
    assert row.status == "failed"
    assert row.cost_nano is None
    assert row.reserved_nano is not None
    assert 0 < row.counts_nano < row.reserved_nano
    (call,) = desk.drain()
    assert call.cost is None
    assert call.problem == str(error)
    answering = OneModel()
    desk_of(home, answering).ask(asked(), StopSignal())
    assert len(answering.paid) == 1, "a failed call is asked again"


def test_what_was_heard_before_a_stream_broke_counts(home: Path) -> None:
    class Breaking(OneModel):
        def complete(self, call: Call, speak: Speak, stop: StopSignal) -> Completion:
            speak("word " * 20)
            raise ModelError("The stream broke off.")

    heard: list[str] = []
    with pytest.raises(ModelError):
        desk_of(home, Breaking()).ask(asked(), StopSignal(), heard.append)
    assert heard == ["word " * 20]
    assert rows(home)[0].counts_nano > 20 * 100_000
    assert rows(home)[0].reply == ""


def test_a_stop_before_the_call_sends_nothing(home: Path) -> None:
    stop, model = StopSignal(), OneModel()
    stop.set()
    with pytest.raises(Stopped):
        desk_of(home, model).ask(asked(), stop)
    assert model.paid == []


def test_a_stop_while_the_ledger_is_written_sends_and_owes_nothing(home: Path) -> None:
    stop, model = StopSignal(), OneModel()

    def clock() -> float:  # read once, for the reservation
        stop.set()
        return NOON

    desk = desk_of(home, model, now=clock)
    with pytest.raises(Stopped):
        desk.ask(asked(), stop)
    assert model.paid == []
    assert [(row.status, row.counts_nano, row.cost_nano) for row in rows(home)] == [
        ("failed", 0, 0)
    ]


KILLED = """
import sys, time
from pathlib import Path
from core.runtime.concurrency import StopSignal
from tests.llm.test_metering import OneModel, asked, desk_of

class Hanging(OneModel):
    def complete(self, call, speak, stop):
        print("sent", flush=True)
        time.sleep(60)

desk_of(Path(sys.argv[1]), Hanging()).ask(asked(), StopSignal())
"""


def test_a_killed_process_leaves_its_reservation_and_resume_settles_it(home: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(home)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "sent\n"
    process.kill()
    process.wait()
    process.stdout.close()
    (row,) = rows(home)
    assert row.status == "reserved"
    assert row.counts_nano == row.reserved_nano

    tight = replace(WIDE, run_cents=2)
    with pytest.raises(BudgetReached, match="are held for calls under way"):
        desk_of(home, OneModel(), caps=tight).ask(asked("another slot"), StopSignal())
    model = OneModel()
    desk = desk_of(home, model, caps=tight)
    assert desk.ask(asked(), StopSignal()).text == "Verdict: 1"
    lost, done = rows(home)
    assert (lost.id, lost.status, lost.cost_nano) == (row.id, "failed", None)
    assert 0 < lost.counts_nano < row.counts_nano
    assert "program ended" in lost.problem
    assert done.status == "done"
    assert [call.id for call in desk.drain()] == [lost.id, done.id]


def test_a_reservation_of_the_dead_counts_for_a_day(home: Path) -> None:
    with open_store(home) as store:
        desk_of(home, OneModel()).ask(asked(), StopSignal())
        (row,) = store.ledger.of_run("run")
        store.ledger.put(replace(row, status="reserved", counts_nano=10**9))
        assert store.ledger.spent("run", "Mira", NOON + DAY_SECONDS - 1).run.held_nano == 10**9
        assert store.ledger.spent("run", "Mira", NOON + DAY_SECONDS).run.nano == 0


def test_a_paid_reply_is_not_lost_when_the_ledger_cannot_be_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = OneModel()
    desk = desk_of(home, model)

    def broken(call: Call) -> Completion:
        monkeypatch.setattr(
            "core.store.ledger.Ledger.put",
            lambda *_: (_ for _ in ()).throw(sqlite3.OperationalError("disk is full")),
        )
        return said(call)

    model._answer = broken
    assert desk.ask(asked(), StopSignal()).text == "Verdict: 1"
    assert [row.status for row in rows(home)] == ["reserved"]
    with pytest.raises(ModelError, match=r"nothing was sent.*disk is full"):
        desk.ask(asked("turn 2"), StopSignal())
    assert len(model.paid) == 1
    monkeypatch.undo()
    assert [call.problem for call in desk.drain()] == [""]
    assert [row.status for row in rows(home)] == ["done"]


def test_a_reply_that_utf8_cannot_hold_is_kept_as_far_as_it_can(home: Path) -> None:
    desk = desk_of(home, OneModel(lambda call: said(call, "half a \ud83d pair")))
    assert desk.ask(asked(), StopSignal()).text == "half a \ud83d pair"
    assert [(row.status, row.reply) for row in rows(home)] == [("done", "half a ? pair")]


def test_the_caps_come_from_settings_and_the_command_line() -> None:
    caps = SpendingCaps.of(Settings())
    assert (caps.run_cents, caps.run_tokens) == (100, 200_000)
    assert SpendingCaps.of(Settings(run_tokens=5), token_cap=0).run_tokens == 5
    assert SpendingCaps.of(Settings(run_tokens=5), token_cap=7).run_tokens == 7


class Embedding(OneModel):
    """Gives every text a vector, for money, and reports so many tokens."""

    def __init__(self, tokens: int = 30) -> None:
        super().__init__()
        self._tokens = tokens

    def embed(self, seat: AgentConfig, texts: Sequence[str], stop: StopSignal) -> Embeddings:
        self.paid.append(Call(seat, ()))
        cost = cost_of(seat, self._tokens, 0)
        return Embeddings(tuple((1.0, 0.0) for _ in texts), self._tokens, True, cost, 0.2)


EMBEDDER = AgentConfig(model="openai/embedding", price_in=100.0, price_out=0.0)


def test_embedding_counts_against_the_caps_and_is_told(home: Path) -> None:
    model = Embedding()
    desk = desk_of(home, model, caps=replace(WIDE, run_cents=1))
    found = desk.embed(EMBEDDER, ["one text", "another"], StopSignal())
    assert len(found.vectors) == 2
    (call,) = desk.drain()
    assert (call.role, call.model, call.tokens_in) == ("retriever", "openai/embedding", 30)
    assert call.cost == pytest.approx(0.003)
    (row,) = rows(home)
    assert (row.status, row.counts_nano, row.reply) == ("done", 3_000_000, "")
    with pytest.raises(BudgetReached, match=r"^Retriever \(openai/embedding\): not asked"):
        desk.embed(EMBEDDER, ["long " * 100], StopSignal())
    assert len(model.paid) == 1


def test_exaggerated_usage_of_embeddings_is_bounded(home: Path) -> None:
    desk_of(home, Embedding(tokens=10**12)).embed(EMBEDDER, ["one"], StopSignal())
    assert rows(home)[0].tokens_in == 1_003


def test_embedding_that_fails_is_named_and_counted(home: Path) -> None:
    class Failing(Embedding):
        def embed(self, seat: AgentConfig, texts: Sequence[str], stop: StopSignal) -> Embeddings:
            raise ModelTimeout("It was silent.")

    desk = desk_of(home, Failing())
    with pytest.raises(ModelTimeout, match=r"^Retriever \(openai/embedding\): It was silent"):
        desk.embed(EMBEDDER, ["one"], StopSignal())
    (row,) = rows(home)
    assert (row.status, row.cost_nano) == ("failed", None)
    assert row.counts_nano > 0


def test_a_model_that_embeds_nothing_says_so(home: Path) -> None:
    with pytest.raises(ConfigError, match="a model that embeds texts"):
        desk_of(home, OneModel()).embed(EMBEDDER, ["one"], StopSignal())


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),
        st.sampled_from(["Mira", "Tom"]),
        st.booleans(),
        st.integers(1, 100),
        st.sampled_from(["answer", "timeout", "key"]),
    ),
    min_size=4,
    max_size=14,
)


@settings(max_examples=25)
@given(steps=STEPS, seconds=st.sampled_from([0.0, 0.002]))
def test_what_is_spent_and_held_never_passes_a_cap(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, str, bool, int, str]],
    seconds: float,
) -> None:
    home = tmp_path_factory.mktemp("home") / "home"
    open_store(home).close()
    caps = SpendingCaps(4, 6, 5, 400, 600, 500)

    def answer(call: Call) -> Completion | BaseException:
        threading.Event().wait(seconds)
        used, outcome = call.messages[0].text.split()
        if outcome == "timeout":
            return ModelTimeout("silent.")
        if outcome == "key":
            return ConfigError("no key.")
        return said(call, tokens_in=1, tokens_out=int(used), cost=cost_of(call.agent, 1, int(used)))

    model = OneModel(answer)
    seen: list[tuple[int, int, int, int, int, int]] = []

    def within() -> None:
        with open_store(home) as store:
            for run in "ab":
                for person in ("Mira", "Tom"):
                    spent = store.ledger.spent(run, person, NOON)
                    amounts = (spent.run, spent.day, spent.person_day)
                    nano, day, person_day = (amount.nano for amount in amounts)
                    tokens = tuple(amount.tokens for amount in amounts)
                    seen.append((nano, day, person_day, *tokens))  # type: ignore[arg-type]

    def act(item: tuple[int, tuple[str, str, bool, int, str]]) -> None:
        number, (run, person, is_priced, used, outcome) = item
        seat = PRICED if is_priced else replace(UNPRICED, max_tokens=100)
        desk = desk_of(home, model, run=run, person=person, caps=caps)
        with contextlib.suppress(ReviewError):
            desk.ask(asked(f"slot {number}", f"{used} {outcome}", seat), StopSignal())
        within()

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(act, enumerate(steps)))
    for amounts in seen:
        limits = (4 * 10**7, 6 * 10**7, 5 * 10**7, 400, 600, 500)
        assert all(amount <= limit for amount, limit in zip(amounts, limits, strict=True))
