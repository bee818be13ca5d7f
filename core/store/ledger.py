"""The ledger: calls to language models and web searches, with reserved and actual costs.

Money is in billionths of a US dollar (nano): whole numbers, so that sums over many calls are exact.
A call is entered as `reserved` at its worst case before it is sent, in the transaction that checked
the sums, so that concurrent calls cannot exceed a cap together. A call that was never settled,
because its process died, counts in full until it is a day old or is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from core.store.sqlite import Repository, fetch_first_row, insert_row, to_json

RETRY_SLOT_SUFFIX = (
    " again"  # suffix of the slot of a call that shows a model what was wrong with its reply
)
DAY_SECONDS = 86_400  # seconds
MAX_MEASURED_CALLS = 200  # the newest calls, which say how fast a model is
MAX_SEARCH_AGE_DAYS = 30  # days that web searches are kept at most, whatever the setting


@dataclass(frozen=True)
class WebQuery:
    """A web query: a service with its address, a language tag, and the search words."""

    service: str
    language: str
    words: str


@dataclass(frozen=True)
class StoredSearch:
    """The results of a search, and its time in seconds since 1970."""

    results: str
    at: float


class WebSearches(Repository):
    """All searches that were sent."""

    def begin(self, run_id: str, query: WebQuery, now: float) -> int:
        """Enter a search that is about to be sent and return its number.

        Searches too old to be used are deleted at the same time.
        """
        self._db.execute(
            "DELETE FROM web_searches WHERE at < ?", [now - MAX_SEARCH_AGE_DAYS * DAY_SECONDS]
        )
        values = {"run_id": run_id, "service": query.service, "language": query.language}
        return insert_row(self._db, "web_searches", {**values, "query": query.words, "at": now})

    def finish(self, number: int, results: str) -> None:
        """Store the results of the search of that number."""
        self._db.execute("UPDATE web_searches SET results = ? WHERE number = ?", [results, number])

    def sent(self, run_id: str) -> int:
        """Return how many searches were sent for a run, including failed ones."""
        sql = "SELECT count(*) FROM web_searches WHERE run_id = ?"
        return int(self._db.execute(sql, [run_id]).fetchone()[0])

    def kept(self, query: WebQuery, since: float, run_id: str) -> StoredSearch | None:
        """Return the newest results of the same query since that time, or None.

        They are of the run's project: others must not learn what a project has searched for.
        """
        project = "coalesce((SELECT project_id FROM runs WHERE id = {}), '')"
        row = fetch_first_row(
            self._db,
            "SELECT results, at FROM web_searches WHERE service = ? AND language = ? "
            "AND query = ? AND at >= ? AND results IS NOT NULL "
            f"AND {project.format('web_searches.run_id')} = {project.format('?')} "
            "ORDER BY number DESC LIMIT 1",
            [query.service, query.language, query.words, since, run_id],
        )
        return StoredSearch(**row) if row else None


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """One call. `reserved_nano` and `cost_nano` are None where the price is not known.

    `counts_nano` and `counts_tokens` are what it counts against the caps: money where the price is
    known, else tokens. Only a digest of the prompt is kept; the reply is kept whole, for Resume and
    for equal calls of the project's other runs (`reused_from` names the call that was paid for).
    """

    id: str
    run_id: str
    slot: str
    digest: str
    project_id: str
    person: str
    role: str
    model: str
    prompt: str
    prompt_hash: str
    cut: str
    at: float
    reserved_nano: int | None
    reserved_tokens: int
    counts_nano: int
    counts_tokens: int
    status: Literal["reserved", "done", "failed"] = "reserved"
    tokens_in: int = 0
    tokens_out: int = 0
    is_counted: bool = False
    cost_nano: int | None = None
    seconds: float = 0.0
    reply: str = ""
    finish: str = ""
    problem: str = ""
    reused_from: str = ""


@dataclass(frozen=True)
class SpendAmount:
    """Money and tokens that count against caps; `held_…` is the part of unfinished calls."""

    nano: int = 0
    tokens: int = 0
    held_nano: int = 0
    held_tokens: int = 0


@dataclass(frozen=True)
class SpendTotals:
    """Amounts used and held: by a run, by everybody today (UTC), by one person today."""

    run: SpendAmount
    day: SpendAmount
    person_day: SpendAmount


CALL_COLUMNS = tuple(item.name for item in fields(LedgerRow))
_PUT = (
    f"INSERT INTO calls ({', '.join(CALL_COLUMNS)}) VALUES "
    f"({', '.join(f':{n}' for n in CALL_COLUMNS)}) "
    f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{n} = excluded.{n}' for n in CALL_COLUMNS[1:])}"
)
_SELECT = f"SELECT {', '.join(CALL_COLUMNS)} FROM calls WHERE "
_COUNT = "(status != 'reserved' OR at > :since) AND "


def _build_sums(condition: str) -> str:
    is_held = f"{condition} AND status = 'reserved'"
    return ", ".join(
        f"COALESCE(SUM({column}) FILTER (WHERE {rows}), 0)"
        for rows in (condition, is_held)
        for column in ("counts_nano", "counts_tokens")
    )


_OF_RUN = f"SELECT {_build_sums('1')} FROM calls WHERE {_COUNT} run_id = :run"
_OF_DAY = (
    f"SELECT {_build_sums('1')}, {_build_sums('person = :person')} FROM calls "
    f"WHERE {_COUNT} at >= :midnight"
)


class Ledger(Repository):
    """Calls to language models.

    Every call reads here before it is sent, while others wait: so it queries the connection itself,
    where sqlite-utils would set up a savepoint around each query.
    """

    def put(self, row: LedgerRow) -> None:
        """Insert a call, or update it with its result."""
        # Not `asdict`, which would deep-copy every value, twice a call.
        self._db.execute(_PUT, {name: getattr(row, name) for name in CALL_COLUMNS})

    def finished(self, run_id: str, slot: str, digest: str) -> LedgerRow | None:
        """Return the run's own answer in that slot to exactly that call, or None."""
        return self._first(
            "run_id = ? AND slot = ? AND digest = ? AND status = 'done' ORDER BY at, id",
            [run_id, slot, digest],
        )

    def reusable(self, run_id: str, slot: str, digest: str, project_id: str) -> LedgerRow | None:
        """Return another run's complete answer to an equal call, preferably from the same slot.

        The run is of the same project: others must not learn what a project has checked.
        An answer goes to one slot of a run: several samples of a prompt stay several answers. If a
        call was repeated with a correction, the first answer was unusable, and the second may have
        been too: neither is reused, or checking again would fail in the same way for ever.
        """
        values = {"digest": digest, "project": project_id, "run": run_id, "slot": slot}
        return self._first(
            "digest = :digest AND status = 'done' AND project_id = :project AND run_id != :run "
            "AND finish = 'stop' AND reused_from = '' "
            "AND id NOT IN (SELECT reused_from FROM calls WHERE run_id = :run) "
            "AND substr(slot, -length(:retry)) != :retry AND NOT EXISTS (SELECT 1 FROM calls later "
            "WHERE later.run_id = calls.run_id AND later.slot = calls.slot || :retry) "
            "ORDER BY slot = :slot DESC, at, id",
            values | {"retry": RETRY_SLOT_SUFFIX},
        )

    def lost(self, run_id: str, slot: str, digest: str) -> list[LedgerRow]:
        """Return the calls of that slot that were sent and never settled."""
        condition = "run_id = ? AND slot = ? AND digest = ? AND status = 'reserved' ORDER BY at, id"
        rows = self._db.conn.execute(_SELECT + condition, [run_id, slot, digest])
        return list(map(_parse_row, rows))

    def spent(self, run_id: str, person: str, now: float) -> SpendTotals:
        """Return what counts against the caps. A call belongs to the day on which it was sent."""
        values = {
            "run": run_id,
            "person": person,
            "midnight": now // DAY_SECONDS * DAY_SECONDS,
            "since": now - DAY_SECONDS,
        }
        (run,) = self._db.conn.execute(_OF_RUN, values)
        (day,) = self._db.conn.execute(_OF_DAY, values)
        return SpendTotals(SpendAmount(*run), SpendAmount(*day[:4]), SpendAmount(*day[4:]))

    def tokens_per_second(self, model: str, api_base: str) -> float | None:
        """Return the tokens that a model at an address reads and writes a second, by newest calls.

        None if it has none in a run here. A call's address is that of its run's plan.
        """
        agent = f'"model":{to_json(model)},"api_base":{to_json(api_base)}'
        ((pace,),) = self._db.conn.execute(
            "SELECT sum(tokens_in + tokens_out) / nullif(sum(seconds), 0) FROM "
            "(SELECT * FROM calls ORDER BY at DESC LIMIT ?) WHERE model = ? AND status = 'done' "
            "AND reused_from = '' AND EXISTS "
            "(SELECT * FROM runs WHERE runs.id = run_id AND instr(plan, ?))",
            [MAX_MEASURED_CALLS, model, agent],
        )
        return None if pace is None else float(pace)

    def of_run(self, run_id: str) -> list[LedgerRow]:
        """Return the run's calls in the order in which they were sent."""
        condition = "run_id = ? ORDER BY at, rowid"
        return list(map(_parse_row, self._db.conn.execute(_SELECT + condition, [run_id])))

    def _first(self, condition: str, values: list[str] | dict[str, str]) -> LedgerRow | None:
        row = self._db.conn.execute(f"{_SELECT} {condition} LIMIT 1", values).fetchone()
        return _parse_row(row) if row else None


def _parse_row(values: Sequence[Any]) -> LedgerRow:
    named = dict(zip(CALL_COLUMNS, values, strict=True))
    return LedgerRow(**{**named, "is_counted": bool(named["is_counted"])})
