"""Queries over runs, answers and model calls together, for learning and evaluation."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from core.schema.events import Event
from core.schema.records import Label, Verdict
from core.store.database import Store
from core.store.ground_truth import STANDING_GOLD_SQL
from core.store.sqlite import event_from_json


@dataclass(frozen=True)
class CaseDecision:
    """What counts as true for a case.

    `id` names the gold or the corrections that it rests on; `group` is the same for cases with the
    same question and response.
    """

    case_id: str
    group: str
    id: str
    label: Label


@dataclass(frozen=True)
class FinishedRun:
    """A finished run over a case; `group` is that of its case.

    `last_seq` is the seq of its newest event: a run that is scored again gets one more.
    """

    id: str
    case_id: str
    group: str
    started_at: float
    last_seq: int


@dataclass(frozen=True)
class RoleUsage:
    """The total of a role's model calls in a run; `nano` is None unless every cost is known."""

    calls: int
    tokens: int
    nano: int | None
    seconds: float


def find_answered_runs(store: Store, project_id: str) -> Iterator[FinishedRun]:
    """Yield a project's finished runs over cases with a correction or gold, newest first."""
    rows = store.db.query(
        "SELECT r.id, r.case_id, c.fingerprint AS 'group', r.started_at, "
        "(SELECT coalesce(max(seq), 0) FROM events e WHERE e.run_id = r.id) AS last_seq "
        "FROM runs r JOIN cases c ON c.id = r.case_id "
        "WHERE r.project_id = ? AND r.status = 'finished' "
        "AND (EXISTS (SELECT 1 FROM corrections k WHERE k.case_id = r.case_id) "
        "OR EXISTS (SELECT 1 FROM golds g WHERE g.case_id = r.case_id)) "
        "ORDER BY r.started_at DESC",
        [project_id],
    )
    return (FinishedRun(**row) for row in rows)


@dataclass(frozen=True)
class AnswerCounts:
    """What people said in a project, and on how many cases; pages count different parts of it.

    `answers` counts each person's newest answer to a case, `golds` the cases with a right answer
    that was settled or imported. Of the `cases` with either, `checked` have a finished run and
    `scored` one with a probability.
    """

    answers: int
    golds: int
    cases: int
    checked: int
    scored: int


def count_answers_and_cases(store: Store, project_id: str) -> AnswerCounts:
    """Return the counts of a project."""
    rows = store.db.query(
        "WITH own AS (SELECT id FROM cases WHERE project_id = ?), "
        "golden AS (SELECT DISTINCT case_id FROM golds g WHERE case_id IN own "
        f"AND {STANDING_GOLD_SQL}), "
        "answers AS (SELECT DISTINCT case_id, author FROM standing WHERE case_id IN own), "
        "said AS (SELECT case_id FROM answers UNION SELECT case_id FROM golden), "
        "checked AS (SELECT case_id, max(p_hallucinated) AS p FROM runs "
        "WHERE status = 'finished' AND case_id IN said GROUP BY case_id) "
        "SELECT (SELECT count(*) FROM answers) AS answers, (SELECT count(*) FROM golden) AS golds, "
        "(SELECT count(*) FROM said) AS cases, count(*) AS checked, count(p) AS scored "
        "FROM checked",
        [project_id],
    )
    return AnswerCounts(**next(iter(rows)))


def load_usage_by_role(store: Store, run_id: str) -> dict[str, RoleUsage]:
    """Return by role the totals of the run's calls in the ledger, including failed ones."""
    rows = store.db.query(
        "SELECT role, count(*) AS calls, sum(tokens_in + tokens_out) AS tokens, "
        "iif(count(cost_nano) = count(*), sum(cost_nano), NULL) AS nano, sum(seconds) AS seconds "
        "FROM calls WHERE run_id = ? AND status != 'reserved' GROUP BY role",
        [run_id],
    )
    return {row.pop("role"): RoleUsage(**row) for row in rows}


@dataclass(frozen=True)
class LatestVerdict:
    """A case's newest verdict, and the run that reached it."""

    run_id: str
    finished_at: float | None
    verdict: Verdict


def load_newest_verdicts(store: Store, project_id: str) -> dict[str, LatestVerdict]:
    """Return the newest verdict by case; cases without a finished run are left out."""
    rows = store.db.query(
        "SELECT r.id, r.case_id, r.finished_at, e.kind, e.payload FROM runs r JOIN events e "
        "ON e.run_id = r.id AND (e.kind = 'run_finished' OR "
        " (e.kind = 'label_predicted' AND e.at > r.finished_at)) WHERE r.project_id = ? "
        "AND r.status = 'finished' ORDER BY r.started_at, r.id, e.seq",
        [project_id],
    )
    newest: dict[str, LatestVerdict] = {}
    for row in rows:
        event = event_from_json(row["kind"], row["payload"])
        if event.kind == "run_finished" or event.kind == "label_predicted":
            newest[row["case_id"]] = LatestVerdict(row["id"], row["finished_at"], event.verdict)
    return newest


def find_newest_finished_runs(store: Store, project_id: str) -> dict[str, str]:
    """Return the newest finished run's id by case."""
    rows = store.db.query(
        "SELECT id, case_id FROM runs WHERE project_id = ? AND status = 'finished' "
        "ORDER BY started_at, id",
        [project_id],
    )
    return {row["case_id"]: row["id"] for row in rows}


def find_runs_judged(store: Store, label: Label) -> set[str]:
    """Return the runs of all projects whose judge reached this label, whatever was scored since."""
    rows = store.db.conn.execute(
        "SELECT run_id FROM events WHERE kind = 'judgement_reached' "
        "AND json_extract(payload, '$.judgement.label') = ?",
        [label],
    )
    return {run_id for (run_id,) in rows}


def load_events(store: Store, run_id: str, kinds: Sequence[str]) -> list[Event]:
    """Return the run's events of these kinds, in order, without loading its other events."""
    return next((events for _, events in load_events_by_run(store, [run_id], kinds)), [])


def load_events_by_run(
    store: Store, run_ids: Sequence[str], kinds: Sequence[str]
) -> Iterator[tuple[str, list[Event]]]:
    """Yield each run that has events of these kinds, with these in order, by one query."""
    rows = store.db.conn.execute(
        "SELECT run_id, kind, payload FROM events WHERE run_id IN (SELECT value FROM json_each(?)) "
        "AND kind IN (SELECT value FROM json_each(?)) ORDER BY run_id, seq",
        [json.dumps(run_ids), json.dumps(kinds)],
    )
    for run_id, own in itertools.groupby(rows, itemgetter(0)):
        yield run_id, [event_from_json(kind, payload) for _, kind, payload in own]


def load_present_classifiers(store: Store, run_ids: Sequence[str]) -> dict[str, str]:
    """Return by run id the classifier of its present verdict, where it has one."""
    marks = ", ".join("?" for _ in run_ids)
    rows = store.db.query(
        "SELECT r.id, (SELECT json_extract(e.payload, '$.verdict.classifier') FROM events e "
        " WHERE e.run_id = r.id AND e.kind IN ('label_predicted', 'run_finished') "
        f" ORDER BY e.seq DESC LIMIT 1) AS classifier FROM runs r WHERE r.id IN ({marks})",
        list(run_ids),
    )
    return {row["id"]: row["classifier"] for row in rows if row["classifier"]}


def find_scorable_runs(store: Store) -> list[str]:
    """Return the finished runs whose judge reached a label, oldest first."""
    rows = store.db.query(
        "SELECT id FROM runs WHERE status = 'finished' "
        "AND (label IN ('hallucinated', 'supported') OR EXISTS (SELECT 1 FROM events e "
        " WHERE e.run_id = runs.id AND e.kind = 'label_predicted' "
        " AND json_extract(e.payload, '$.verdict.cause') = 'classifier_disagrees')) "
        "ORDER BY started_at, id"
    )
    return [row["id"] for row in rows]


def find_taught_runs(store: Store) -> dict[str, list[str]]:
    """Return by case the runs that people answered, in order, else the run that it is queued with.

    What counts for the case is learned as the label of these runs.
    """
    answered = store.db.query(
        "SELECT case_id, run_id FROM standing WHERE run_id IS NOT NULL "
        "GROUP BY run_id ORDER BY max(at), max(place)"
    )
    runs: dict[str, list[str]] = {}
    for row in answered:
        runs.setdefault(row["case_id"], []).append(row["run_id"])
    queued = store.db.query("SELECT case_id, run_id FROM items WHERE run_id IS NOT NULL")
    for row in queued:
        runs.setdefault(row["case_id"], [row["run_id"]])
    return runs
