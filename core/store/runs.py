"""Runs, their owners and leases, and their append-only events.

A run belongs to the process that holds its lease. It counts as interrupted when that process has
been silent for longer than the lease, not when some other process starts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from core.runtime.errors import ConflictError
from core.schema.events import ENDING_KINDS, TRANSIENT_KINDS, Event, JudgementReached
from core.schema.records import Judgement, Label, Plan, Run, RunStatus
from core.schema.run_state import RESUMABLE_CAUSES
from core.store.ground_truth import UNANSWERED, GroundTruth, GroundTruths
from core.store.sqlite import (
    Repository,
    event_from_json,
    fetch_first_row,
    from_json,
    insert_row,
    load_records,
    to_json,
)

STATUS_BY_ENDING: dict[str, RunStatus] = {
    "run_finished": "finished", "run_failed": "failed", "run_stopped": "stopped",
}  # fmt: skip
VERDICT_COLUMNS = ("label", "cause", "p_hallucinated", "confidence")


@dataclass(frozen=True)
class RunFilter:
    """The filter of History; empty fields do not filter.

    `terms` are search terms of the case, and `search` is part of the run's name: either finds it.
    `document` is a source's id, `person` who submitted the text or corrected the run; the run was
    started at or after `since`, and before `until`. `people_labels` are what people say of cases,
    in place of the machine's `label`.
    """

    terms: tuple[str, ...] = ()
    search: str = ""
    label: str = ""
    status: str = ""
    corrected: bool | None = None
    protocol: str = ""
    document: str = ""
    person: str = ""
    since: float = 0.0
    until: float = 0.0
    people_labels: Mapping[str, Label] = field(default_factory=dict)


# By field of a filter, the condition on runs `r` over cases `c` that a value sets.
SIMPLE_CONDITIONS = {
    "protocol": "json_extract(r.plan, '$.protocol') = ?",
    "document": "? IN (SELECT value FROM json_each(c.payload, '$.documents') "
    "UNION ALL SELECT value FROM json_each(c.payload, '$.images'))",
    "person": "? IN (SELECT c.author UNION ALL SELECT author FROM standing WHERE run_id = r.id)",
    "since": "r.started_at >= ?",
    "until": "r.started_at < ?",
}


def build_run_condition(
    project_id: str, wanted: RunFilter, now: float, lease: float
) -> tuple[str, list[Any]]:
    """Return the SQL condition of a filter, and its values."""
    where: list[str] = ["r.project_id = ?"]
    values: list[Any] = [project_id]
    for name, condition in SIMPLE_CONDITIONS.items():
        if value := getattr(wanted, name):
            where.append(condition)
            values.append(value)
    if wanted.label:
        said = wanted.people_labels
        named = [case_id for case_id, label in said.items() if label == wanted.label]
        case_is_in = "r.case_id {} (SELECT value FROM json_each(?))"
        machines = f"(r.label = ? AND {case_is_in.format('NOT IN')})"
        where.append(f"({case_is_in.format('IN')} OR {machines})")
        values.extend([json.dumps(named), wanted.label, json.dumps(list(said))])
    if wanted.terms:
        found = "c.id IN (SELECT case_id FROM case_terms WHERE case_terms MATCH ?)"
        where.append(f"({found} OR (? != '' AND instr(lower(r.name), lower(?))))")
        terms = " AND ".join('"' + t.replace('"', "") + '"*' for t in wanted.terms)
        values.extend([terms, wanted.search, wanted.search])
    if wanted.status == "interrupted":
        where.append("r.status IN ('queued', 'running') AND r.heartbeat_at <= ?")
        values.append(now - lease)
    elif wanted.status in ("queued", "running"):
        where.append("r.status = ? AND r.heartbeat_at > ?")
        values.extend([wanted.status, now - lease])
    elif wanted.status:
        where.append("r.status = ?")
        values.append(wanted.status)
    if wanted.corrected is not None:
        exists = "EXISTS" if wanted.corrected else "NOT EXISTS"
        where.append(f"{exists} (SELECT 1 FROM standing k WHERE k.run_id = r.id)")
    return " AND ".join(where), values


@dataclass(frozen=True)
class RunRow:
    """A run as History lists it, with what is true for its case; `sources` name all its files."""

    run: Run
    response: str
    question: str
    author: str
    truth: GroundTruth
    corrections: int
    sources: tuple[str, ...]


class Runs(Repository):
    """All runs and their events."""

    def add(self, run: Run, owner: str, now: float) -> None:
        """Store a queued run owned by the process that will carry it out."""
        names = ("id", "case_id", "project_id", "started_at", "origin", "parent_id", "name")
        values = {name: getattr(run, name) for name in names}
        values |= {"plan": to_json(run.plan), "status": "queued"}
        insert_row(self._db, "runs", values | {"owner": owner, "heartbeat_at": now})

    def take(self, run_id: str, owner: str, now: float, lease: float) -> bool:
        """Take over a run to resume it; False if a living process has it or it reached its verdict.

        Call inside `Store.writing()`.
        """
        row = self._select_row(run_id)
        if row is None or (row["status"] == "finished" and row["cause"] not in RESUMABLE_CAUSES):
            return False
        is_alive = (row["heartbeat_at"] or 0) > now - lease
        if row["status"] in ("queued", "running") and is_alive:
            return False
        self._db.execute(
            "UPDATE runs SET status = 'queued', owner = ?, heartbeat_at = ?, finished_at = NULL, "
            "stop_requested_by = NULL, label = NULL, cause = NULL WHERE id = ?",
            [owner, now, run_id],
        )
        return True

    def has_ended(self, run_id: str) -> bool:
        """Return True if the end of a run is stored, even if its worker is still busy."""
        row = self._select_row(run_id)
        return row is not None and row["status"] not in ("queued", "running")

    def begin(self, run_id: str, owner: str, now: float) -> bool:
        """Mark a queued run as running; False if it was stopped or taken over meanwhile."""
        cursor = self._db.execute(
            "UPDATE runs SET status = 'running', heartbeat_at = ? WHERE id = ? AND owner = ? "
            "AND status = 'queued' AND stop_requested_by IS NULL",
            [now, run_id, owner],
        )
        return bool(cursor.rowcount == 1)

    def beat(self, owner: str, run_ids: Sequence[str], now: float) -> dict[str, str]:
        """Renew the owner's leases of these runs; return who asked which of them to stop."""
        marks = ", ".join("?" for _ in run_ids)
        is_ours = f"id IN ({marks}) AND owner = ? AND status IN ('queued', 'running')"
        query = f"UPDATE runs SET heartbeat_at = ? WHERE {is_ours}"
        self._db.execute(query, [now, *run_ids, owner])
        rows = self._db.query(
            f"SELECT id, stop_requested_by FROM runs WHERE {is_ours} "
            "AND stop_requested_by IS NOT NULL",
            [*run_ids, owner],
        )
        return {row["id"]: row["stop_requested_by"] for row in rows}

    def rename(self, run_id: str, name: str) -> None:
        """Store what people call a run; an empty name stands for its claim's first words."""
        self._db.execute("UPDATE runs SET name = ? WHERE id = ?", [name, run_id])

    def people(self, project_id: str) -> list[str]:
        """Return who submitted a text of the project or corrected a run of it, by name."""
        rows = self._db.query(
            "SELECT author FROM cases WHERE project_id = :project UNION SELECT k.author FROM "
            "standing k JOIN runs r ON r.id = k.run_id WHERE r.project_id = :project",
            {"project": project_id},
        )
        return sorted({row["author"] for row in rows if row["author"]}, key=str.casefold)

    def request_stop(self, run_id: str, by: str) -> None:
        """Ask the process that has the run to stop it."""
        self._db.execute(
            "UPDATE runs SET stop_requested_by = ? WHERE id = ? "
            "AND status IN ('queued', 'running')",
            [by, run_id],
        )

    def append(self, run_id: str, owner: str | None, events: Sequence[Event]) -> int:
        """Append durable events in order and return the last seq; call inside `writing()`.

        An ending also updates the run's row. `owner` None is for imports and new scores. Raises
        ConflictError: another process has taken the run over; nothing was written.
        """
        row = self._select_row(run_id)
        if row is None or (owner is not None and row["owner"] != owner):
            raise ConflictError("Another process has taken this run over.")
        seq = self.last_seq(run_id)
        for event in events:
            if event.kind in TRANSIENT_KINDS:
                continue
            seq += 1
            values = {"run_id": run_id, "seq": seq, "kind": event.kind, "at": event.at}
            insert_row(self._db, "events", values | {"payload": to_json(event)})
            if event.kind in ENDING_KINDS:
                verdict = event.verdict if event.kind == "run_finished" else None
                columns = (getattr(verdict, name, None) for name in VERDICT_COLUMNS)
                self._db.execute(
                    "UPDATE runs SET status = ?, finished_at = ?, label = ?, cause = ?, "
                    "p_hallucinated = ?, confidence = ? WHERE id = ?",
                    [STATUS_BY_ENDING[event.kind], event.at, *columns, run_id],
                )
            elif event.kind == "label_predicted":  # replaces the verdict that the run ended with
                score = event.verdict
                self._db.execute(
                    "UPDATE runs SET label = ?, p_hallucinated = ?, confidence = ? "
                    "WHERE id = ? AND status = 'finished'",
                    [score.label, score.p_hallucinated, score.confidence, run_id],
                )
        return seq

    def last_seq(self, run_id: str) -> int:
        """Return the seq of the newest event; 0 if there is none."""
        row = next(self._db.query("SELECT max(seq) AS seq FROM events WHERE run_id = ?", [run_id]))
        return row["seq"] or 0

    def events(self, run_id: str, after: int = 0) -> list[tuple[int, Event]]:
        """Return (seq, event) after that seq, in order."""
        rows = self._db.query(
            "SELECT seq, kind, payload FROM events WHERE run_id = ? AND seq > ? ORDER BY seq",
            [run_id, after],
        )
        return [(row["seq"], event_from_json(row["kind"], row["payload"])) for row in rows]

    def judgement(self, run_id: str) -> Judgement | None:
        """Return the judge's first conclusion; None if the run did not reach one."""
        from_clause = "events WHERE run_id = ? AND kind = 'judgement_reached' ORDER BY seq LIMIT 1"
        events = load_records(self._db, JudgementReached, from_clause, [run_id])
        return events[0].judgement if events else None

    def get(self, run_id: str, now: float, lease: float) -> Run | None:
        """Return the run with its status as of now, or None."""
        row = self._select_row(run_id)
        return _parse_run(row, now, lease) if row else None

    def of_case(self, case_id: str, now: float, lease: float) -> list[Run]:
        """Return all runs over a case, oldest first."""
        rows = self._db.query("SELECT * FROM runs WHERE case_id = ? ORDER BY started_at", [case_id])
        return [_parse_run(row, now, lease) for row in rows]

    def children(self, run_id: str, now: float, lease: float) -> list[Run]:
        """Return the runs started as “check again” from this one, oldest first."""
        query = "SELECT * FROM runs WHERE parent_id = ? ORDER BY started_at"
        rows = self._db.query(query, [run_id])
        return [_parse_run(row, now, lease) for row in rows]

    def page(
        self,
        project_id: str,
        wanted: RunFilter,
        *,
        limit: int,
        offset: int,
        now: float,
        lease: float,
    ) -> tuple[list[RunRow], int]:
        """Return one page of a project's runs, newest first, and how many there are in all."""
        where, values = build_run_condition(project_id, wanted, now, lease)
        source = f"FROM runs r JOIN cases c ON c.id = r.case_id WHERE {where}"
        total = next(self._db.query(f"SELECT count(*) AS n {source}", values))["n"]
        rows = self._db.query(
            "SELECT r.*, c.response, c.question, c.author, "
            "(SELECT count(*) FROM standing k WHERE k.run_id = r.id) AS corrections, "
            "(SELECT json_group_array(l.name) FROM library l WHERE l.project_id = r.project_id AND "
            " l.source_id IN (SELECT value FROM json_each(c.payload, '$.documents') UNION ALL "
            " SELECT value FROM json_each(c.payload, '$.images'))) AS sources, "
            "(SELECT json_group_array(DISTINCT json_extract(e.payload, '$.source')) FROM events e "
            " WHERE e.run_id = r.id AND e.kind = 'problem_met' "
            " AND json_extract(e.payload, '$.source') != '') AS unread "
            f"{source} ORDER BY r.started_at DESC, r.id LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        found = list(rows)
        truths = GroundTruths(self._db).labels(project_id, [row["case_id"] for row in found])
        page_rows = []
        for row in found:
            truth = truths.get(row["case_id"], UNANSWERED)
            texts = {name: row[name] for name in ("response", "question", "author", "corrections")}
            run, unread = _parse_run(row, now, lease), json.loads(row["unread"])
            read = json.loads(row["sources"])
            lost = (f"{name} (not read)" for name in unread if name not in read)
            sources = (*read, *lost)
            page_rows.append(RunRow(run, truth=truth, sources=sources, **texts))
        return page_rows, total

    def finished(
        self, project_id: str, protocol: str, most: int = -1
    ) -> list[tuple[str, str, str]]:
        """Return (run, case, roster) of a project's finished runs by a protocol, newest first."""
        rows = self._db.query(
            "SELECT id, case_id, json_extract(plan, '$.roster') AS roster FROM runs "
            "WHERE project_id = ? AND status = 'finished' "
            "AND json_extract(plan, '$.protocol') = ? ORDER BY started_at DESC, id DESC LIMIT ?",
            [project_id, protocol, most],
        )
        return [(row["id"], row["case_id"], row["roster"]) for row in rows]

    def seconds_of_recent(
        self, roster: str, protocol: str, limit: int = 20
    ) -> list[tuple[float, int]]:
        """Return (seconds, characters of the response) of the newest complete checks by both.

        Seconds count from when the sources were read. Runs that were resumed or reused steps of
        another are left out, as they say nothing about a new run.
        """
        rows = self._db.query(
            "SELECT r.finished_at - max(e.at) AS seconds, length(c.response) AS characters FROM "
            "(SELECT * FROM runs WHERE status = 'finished' AND origin = 'here' "
            " AND json_extract(plan, '$.roster') = ? AND json_extract(plan, '$.protocol') = ? "
            " ORDER BY started_at DESC LIMIT ?) r "
            "JOIN cases c ON c.id = r.case_id JOIN events e ON e.run_id = r.id "
            "WHERE e.kind IN ('run_started', 'document_read', 'image_described') "
            "AND NOT EXISTS (SELECT 1 FROM events x WHERE x.run_id = r.id "
            " AND x.kind IN ('run_resumed', 'steps_reused')) GROUP BY r.id",
            [roster, protocol, limit],
        )
        return [(max(0.0, row["seconds"]), row["characters"]) for row in rows]

    def _select_row(self, run_id: str) -> dict[str, Any] | None:
        return fetch_first_row(self._db, "SELECT * FROM runs WHERE id = ?", [run_id])


def _parse_run(row: dict[str, Any], now: float, lease: float) -> Run:
    names = [field.name for field in fields(Run)]
    run = Run(**{name: row[name] for name in names} | {"plan": from_json(Plan, row["plan"])})
    is_silent = (row["heartbeat_at"] or 0) <= now - lease
    if run.status in ("queued", "running") and is_silent:
        return replace(run, status="interrupted")
    return run
