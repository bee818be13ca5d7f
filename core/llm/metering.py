"""Reserve, send and settle model calls within the caps of run, day and person.

A reservation is the worst case; it is settled at what was used, or at nothing where nothing is
owed. One of a process that died counts in full for a day, or until the run asks the same again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from core.llm.call import Call, Completion, Model, ModelRequest, Speak, ignore_piece
from core.llm.limits import (
    NANO,
    SpendingCaps,
    WorstCase,
    estimate_tokens,
    to_nano_dollars,
    worst_case,
    worst_case_of_texts,
)
from core.runtime.concurrency import StopSignal
from core.runtime.config import replace_invalid_bytes
from core.runtime.errors import (
    ConfigError,
    KeyMissing,
    ModelError,
    ReplyError,
    ReviewError,
    Stopped,
)
from core.schema.records import ModelCall
from core.schema.rosters import AgentConfig
from core.store import Store, open_store
from core.store.ledger import LedgerRow

if TYPE_CHECKING:
    from core.llm.client import Embeddings

    Embed = Callable[[AgentConfig, Sequence[str], StopSignal], Embeddings]

Origin = Literal["called", "resumed", "reused"]


def with_token_counts(found: Completion, worst: WorstCase) -> Completion:
    """Return the completion with counts within what was sent, allowed and received.

    Our estimates take the place of missing counts.
    """
    most_out = max(worst.reply_tokens, len(found.text.encode(errors="surrogatepass")))
    tokens_in = min(max(found.tokens_in, 0), worst.most_prompt_tokens)
    tokens_out = min(max(found.tokens_out, 0), most_out)
    is_sound = (tokens_in, tokens_out) == (found.tokens_in, found.tokens_out)
    is_counted = found.is_counted and is_sound and tokens_in + tokens_out > 0
    cost = found.cost if is_sound else None
    if tokens_in + tokens_out == 0:
        tokens_in, tokens_out, cost = worst.prompt_tokens, estimate_tokens(found.text), None
    if cost is not None and not 0 <= cost < math.inf:
        cost = None
    if cost is None and worst.price is not None:
        cost = (worst.nano(tokens_in, tokens_out) or 0) / NANO
    return replace(
        found, tokens_in=tokens_in, tokens_out=tokens_out, is_counted=is_counted, cost=cost
    )


def row_of_answer(row: LedgerRow, completion: Completion, worst: WorstCase) -> LedgerRow:
    """Return the ledger row of an answered call: it counts with what it used."""
    cost = None if completion.cost is None else to_nano_dollars(completion.cost)
    nano, tokens = worst.counts(completion.tokens_in, completion.tokens_out)
    if worst.price is not None and cost is not None:
        nano = cost
    return replace(
        row,
        status="done",
        counts_nano=nano,
        counts_tokens=tokens,
        tokens_in=completion.tokens_in,
        tokens_out=completion.tokens_out,
        is_counted=completion.is_counted,
        cost_nano=cost,
        seconds=completion.seconds,
        reply=replace_invalid_bytes(completion.text),
        finish=completion.finish,
    )


def row_of_failure(
    error: BaseException, row: LedgerRow, worst: WorstCase, received: str, now: float
) -> LedgerRow:
    """Return the row of a failed call: released, or kept at what may be owed for it."""
    problem = replace_invalid_bytes(str(error) or type(error).__name__)
    seconds = max(0.0, now - row.at)
    if not received and _is_unbilled(error):
        return replace(row_of_release(row, problem), seconds=seconds)
    reply = error.reply if isinstance(error, ReplyError) else ""
    tokens_out = min(estimate_tokens(max(received, reply, key=len)), worst.reply_tokens)
    return replace(
        row_of_loss(row, worst, problem, tokens_out),
        seconds=seconds,
        reply=replace_invalid_bytes(reply),
    )


def row_of_release(row: LedgerRow, problem: str) -> LedgerRow:
    """Return the row of a call for which nothing is owed."""
    return replace(
        row, status="failed", counts_nano=0, counts_tokens=0, cost_nano=0, problem=problem
    )


def _is_unbilled(error: BaseException) -> bool:
    """Return True if the service surely charges nothing: not reached, or the key declined."""
    return isinstance(error, ConfigError) or getattr(error, "is_unbilled", False)


def row_of_loss(row: LedgerRow, worst: WorstCase, problem: str, tokens_out: int) -> LedgerRow:
    """Return the row of a call without a usable answer: prompt and partial text count."""
    nano, tokens = worst.counts(worst.prompt_tokens, tokens_out)
    return replace(
        row,
        status="failed",
        counts_nano=nano,
        counts_tokens=tokens,
        tokens_in=worst.prompt_tokens,
        tokens_out=tokens_out,
        cost_nano=0 if worst.price is not None and nano == 0 else None,
        problem=problem,
    )


def row_of_reuse(row: LedgerRow, other: LedgerRow) -> LedgerRow:
    """Return another run's answer as this run's own, at no cost."""
    counts = ("reserved_nano", "reserved_tokens", "counts_nano", "counts_tokens", "cost_nano")
    names = ("tokens_in", "tokens_out", "is_counted", "reply", "finish")
    changed: dict[str, Any] = dict.fromkeys(counts, 0) | {n: getattr(other, n) for n in names}
    return replace(row, status="done", reused_from=other.id, **changed)


def completion_of(row: LedgerRow) -> Completion:
    """Return the answer that the ledger kept."""
    return Completion(
        row.reply,
        "length" if row.finish == "length" else "stop",
        row.tokens_in,
        row.tokens_out,
        row.is_counted,
        _dollars(row),
        row.seconds,
    )


def model_call(row: LedgerRow, origin: Origin) -> ModelCall:
    """Return the row as a trace shows it."""
    names = "id role slot model prompt prompt_hash tokens_in tokens_out seconds cut problem"
    columns = {name: getattr(row, name) for name in names.split()}
    return ModelCall(**columns, cost=_dollars(row), origin=origin)


def _dollars(row: LedgerRow) -> float | None:
    return None if row.cost_nano is None else row.cost_nano / NANO


T = TypeVar("T")
Act = Callable[[Store], T]


@dataclass
class _Entry(Generic[T]):
    """One thread's pending write, and its result once it `is_done`."""

    act: Act[T]
    is_note: bool
    is_done: bool = False
    result: T | None = None
    error: BaseException | None = None


class LedgerWriter:
    """Writes a home's ledger for the threads of one run."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._waiting: list[_Entry[Any]] = []
        self._keepers = 0
        self._kept: Store | None = None

    @contextlib.contextmanager
    def kept_open(self) -> Iterator[None]:
        """Share one connection among several writes, from whichever threads."""
        with self._lock:
            self._keepers += 1
        try:
            yield
        finally:
            with self._lock:
                self._keepers -= 1
                is_last = not self._keepers
            if is_last:
                with self._turn:
                    self._let_go()

    def write(self, act: Act[T], *, is_note: bool = False) -> T:
        """Return what `act` returns once its writes are on disk; it may run in another thread.

        It is all written or none of it. What it raises is raised here and is no other act's loss,
        but for errors of the database, which every act of the transaction gets to hear. A note
        does not wait for the disk (`Store.noting`).
        """
        entry = _Entry(act, is_note)
        with self._lock:
            self._waiting.append(entry)
        with self._turn:  # whoever comes first writes for all that wait by then
            if not entry.is_done:
                self._write_waiting()
        if entry.error is not None:
            raise entry.error
        return entry.result  # type: ignore[return-value]  # done, so it is what the act returned

    def _write_waiting(self) -> None:
        with self._lock:
            entries, self._waiting = self._waiting, []
        is_broken = False
        try:
            store = self._kept = self._kept or open_store(self._home, is_shared=True)
            with store.noting() if all(entry.is_note for entry in entries) else store.writing():
                for entry in entries:
                    _carry_out(entry, store)
        except BaseException as error:  # noqa: BLE001 - handed to those whose writes are lost
            is_broken = True
            for entry in entries:
                entry.error = error
        try:
            self._let_go(is_broken=is_broken)
        finally:  # also where a connection cannot even be closed: others wait for theirs
            for entry in entries:
                entry.is_done = True

    def _let_go(self, *, is_broken: bool = False) -> None:
        """Close the connection unless others still use it."""
        with self._lock:
            if self._kept is None or (self._keepers and not is_broken):
                return
            store, self._kept = self._kept, None
        store.close()


def _carry_out(entry: _Entry[T], store: Store) -> None:
    try:
        with store.part():
            entry.result = entry.act(store)
    except sqlite3.Error:
        raise  # the whole transaction may be gone, and with it what was written before
    except BaseException as error:  # noqa: BLE001 - carried over to the thread that asked
        entry.error = error


LOST = "The program ended before the reply came; whether it was billed is not known."
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CallAccount:
    """The run, person and project that a call is booked to."""

    run_id: str
    person: str
    project_id: str


class MeteredClient:
    """Makes the calls of one run; used from several threads at once.

    `reuses` allows replies of the project's other runs to equal calls at any temperature, not only
    at 0; where it `is_fresh`, none are taken.
    """

    def __init__(
        self,
        model: Model,
        home: Path,
        account: CallAccount,
        caps: SpendingCaps,
        clock: Callable[[], float],
        *,
        reuses: bool = False,
        is_fresh: bool = False,
    ) -> None:
        self._model = model
        self._home = home
        self._books = LedgerWriter(home)
        self._account = account
        self._caps = caps
        self._clock = clock
        self._reuses = reuses
        self._is_fresh = is_fresh
        self._lock = threading.Lock()
        self._made: list[ModelCall] = []
        self._under_way: set[str] = set()
        self._unwritten: list[LedgerRow] = []

    def ask(self, asked: ModelRequest, stop: StopSignal, speak: Speak = ignore_piece) -> Completion:
        """Return the answer from the ledger, or from the model within the caps.

        Raises:
            BudgetReached: a cap leaves no room; nothing was sent.
            ModelError: the ledger cannot be written; nothing was sent.
            ReviewError: whatever the model raises, with the role and the model in front.
        """
        stop.check()
        with self._books.kept_open():
            return self._answered(asked, stop, speak)

    def _answered(self, asked: ModelRequest, stop: StopSignal, speak: Speak) -> Completion:
        worst = worst_case(asked.call)
        self._write_again()
        new = self._reservation(asked, asked.call.digest, worst)
        row, origin, lost = self._booked(asked, lambda store: self._found(store, new, worst, asked))
        for dead in lost:
            self._tell(dead, "called")
        if origin != "called":
            self._tell(row, origin)
            speak(row.reply)
            return completion_of(row)
        with self._under_way_as(row, asked, worst, stop) as pieces:

            def receive(piece: str) -> None:
                pieces.append(piece)
                speak(piece)

            found = self._model.complete(asked.call, receive, stop)
        completion = with_token_counts(found, worst)
        self._settle(row_of_answer(row, completion, worst))
        return completion

    def embed(self, agent: AgentConfig, texts: Sequence[str], stop: StopSignal) -> Embeddings:
        """Return a vector for each text within the caps, recorded as any other call.

        The ledger keeps no vectors: those of passages are stored with their source.

        Raises:
            ReviewError: as `ask` does.
            ConfigError: its model embeds nothing.
        """
        stop.check()
        embed: Embed | None = getattr(self._model, "embed", None)
        if embed is None:
            raise ConfigError(f"{agent.model}: expected a model that embeds texts, found none.")
        digest = embedding_digest(agent, texts)
        asked = ModelRequest("retriever", f"embedding {digest[:8]}", Call(agent, ()))
        worst = worst_case_of_texts(agent, texts)
        self._write_again()
        row = self._reservation(asked, digest, worst)
        self._booked(asked, lambda store: self._reserve(store, row, worst, asked))
        with self._under_way_as(row, asked, worst, stop):
            found = embed(agent, texts, stop)
        used = Completion("", "stop", found.tokens, 0, found.is_counted, found.cost, found.seconds)
        self._settle(row_of_answer(row, with_token_counts(used, worst), worst))
        return found

    def drain(self) -> tuple[ModelCall, ...]:
        """Return the calls since the last drain, failed ones too."""
        self._write_again()
        with self._lock:
            made, self._made = tuple(self._made), []
        return made

    def _found(
        self, store: Store, row: LedgerRow, worst: WorstCase, asked: ModelRequest
    ) -> tuple[LedgerRow, Origin, list[LedgerRow]]:
        """Return the row to reuse, its origin, and the calls that died before it.

        A reservation for what is asked again belongs to a process that died with it.
        """
        key = row.run_id, row.slot, row.digest
        if own := store.ledger.finished(*key):
            return own, "resumed", []
        may_reuse = not self._is_fresh and (self._reuses or asked.call.agent.temperature == 0)
        if may_reuse and (other := store.ledger.reusable(*key, row.project_id)):
            row = row_of_reuse(row, other)
            store.ledger.put(row)
            return row, "reused", []
        with self._lock:
            under_way = set(self._under_way)
        lost = [dead for dead in store.ledger.lost(*key) if dead.id not in under_way]
        settled = [row_of_loss(dead, worst, LOST, 0) for dead in lost]
        for dead in settled:
            store.ledger.put(dead)
        self._reserve(store, row, worst, asked)
        return row, "called", settled

    def _booked(self, asked: ModelRequest, act: Callable[[Store], T]) -> T:
        try:
            return self._books.write(act)
        except sqlite3.Error as error:
            raise ModelError(
                f"{role_and_model(asked)}: not asked, nothing was sent. Expected to write the "
                f"ledger in "
                f"{self._home}, found: {error}. Free the disk or the database, then resume the run."
            ) from error

    def _reserve(self, store: Store, row: LedgerRow, worst: WorstCase, asked: ModelRequest) -> None:
        spent = store.ledger.spent(self._account.run_id, self._account.person, row.at)
        self._caps.check(worst, spent, role_and_model(asked))
        store.ledger.put(row)
        with self._lock:
            self._under_way.add(row.id)

    def _reservation(self, asked: ModelRequest, digest: str, worst: WorstCase) -> LedgerRow:
        nano, tokens = worst.counts(worst.prompt_tokens, worst.reply_tokens)
        return LedgerRow(
            id=secrets.token_hex(8),
            run_id=self._account.run_id,
            slot=asked.slot,
            digest=digest,
            project_id=self._account.project_id,
            person=self._account.person,
            role=asked.role,
            model=asked.call.agent.model,
            prompt=asked.prompt,
            prompt_hash=asked.prompt_hash,
            cut=asked.cut,
            at=self._clock(),
            reserved_nano=worst.nano(worst.prompt_tokens, worst.reply_tokens),
            reserved_tokens=worst.tokens,
            counts_nano=nano,
            counts_tokens=tokens,
        )

    @contextlib.contextmanager
    def _under_way_as(
        self, row: LedgerRow, asked: ModelRequest, worst: WorstCase, stop: StopSignal
    ) -> Iterator[list[str]]:
        """Settle the reservation on a failure, by what had arrived until then."""
        if stop.is_set:  # while the ledger was waited for
            self._settle(row_of_release(row, "Stopped before it was sent."))
            stop.check()
        pieces: list[str] = []
        try:
            yield pieces
        except BaseException as error:
            self._settle(row_of_failure(error, row, worst, "".join(pieces), self._clock()))
            if isinstance(error, ReviewError) and not isinstance(error, Stopped):
                raise _named(error, asked) from error
            raise

    def _settle(self, row: LedgerRow) -> None:
        """Record the outcome of a call; a paid reply survives a ledger that fails.

        It need not outlive a power cut: then the reservation stands, which counts for more.
        """
        self._write(row)
        with self._lock:
            self._under_way.discard(row.id)
        self._tell(row, "called")

    def _write(self, row: LedgerRow) -> None:
        try:
            self._books.write(lambda store: store.ledger.put(row), is_note=True)
        except (sqlite3.Error, ReviewError, OSError) as error:
            log.warning("call %s could not be written to the ledger: %s", row.id, error)
            with self._lock:
                self._unwritten.append(row)

    def _write_again(self) -> None:
        """Retry a failed write; until it succeeds its reservation counts."""
        with self._lock:
            waiting, self._unwritten = self._unwritten, []
        for row in waiting:
            self._write(row)

    def _tell(self, row: LedgerRow, origin: Origin) -> None:
        with self._lock:
            self._made.append(model_call(row, origin))


def role_and_model(asked: ModelRequest) -> str:
    """Return role and model as messages name them: “Judge (openai/x)”."""
    return f"{asked.role[:1].upper()}{asked.role[1:]} ({asked.call.agent.model})"


def embedding_digest(agent: AgentConfig, texts: Sequence[str]) -> str:
    """Digest of what is embedded by which model; distinct from any chat call's."""
    body = ["embedding", agent.model, agent.api_base, *texts]
    return hashlib.sha256(json.dumps(body).encode()).hexdigest()


def _named(error: ReviewError, asked: ModelRequest) -> ReviewError:
    model = asked.call.agent.model
    rest = str(error).removeprefix(model).removeprefix(" ")
    message = (
        f"{role_and_model(asked)} {rest}"
        if rest != str(error)
        else f"{role_and_model(asked)}: {error}"
    )
    if isinstance(error, ReplyError):
        return type(error)(message, reply=error.reply)
    if isinstance(error, KeyMissing):
        return type(error)(message, names=error.names)
    named = type(error)(message)
    if isinstance(error, ModelError) and isinstance(named, ModelError):
        named.is_unbilled = error.is_unbilled
    return named
