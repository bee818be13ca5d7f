"""Questions over runs, answers and calls together, for what is learned from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.schema.events import Event
from core.schema.records import Label, Verdict
from core.schema.reviews import Gold
from core.store.database import Store
from core.store.sqlite import event_from_json, first_row, records


@dataclass(frozen=True)
class Decision:
    """What counts for a case: what somebody settled last, else the newest correction.

    `id` is the gold's or correction's; `group` is the same for cases of the same question and
    response.
    """

    case_id: str
    group: str
    id: str
    label: Label
    is_settled: bool = False


@dataclass(frozen=True)
class RunDone:
    """A finished run over a case; `group` is that of its case.

    `last_seq` is that of its newest event: a run that is scored again gets one more.
    """

    id: str
    case_id: str
    group: str
    started_at: float
    last_seq: int


@dataclass(frozen=True)
class Used:
    """What a role's calls to language models came to in a run; `nano` None where not all known."""

    calls: int
    tokens: int
    nano: int | None
    seconds: float


def decision_of(store: Store, run: RunDone) -> Decision | None:
    """What people decided on the run's case; a right answer that came with a file is none."""
    gold = first_row(
        store.db,
        "SELECT id, label FROM golds WHERE case_id = ? "
        "AND json_extract(payload, '$.origin') != 'imported' ORDER BY rowid DESC LIMIT 1",
        [run.case_id],
    )
    newest = "SELECT id, label FROM standing WHERE case_id = ? ORDER BY at DESC, place DESC LIMIT 1"
    counting = gold or first_row(store.db, newest, [run.case_id])
    if counting is None:
        return None
    is_settled = gold is not None
    return Decision(run.case_id, run.group, counting["id"], counting["label"], is_settled)


def categories_of(store: Store, decision: Decision) -> tuple[str, ...]:
    """The categories of the words that the decision marks, in order."""
    if decision.is_settled:
        golds = records(store.db, Gold, "golds WHERE id = ?", [decision.id])
        spans = [span for gold in golds for span in gold.spans]
    else:
        correction = store.corrections.get(decision.id)
        spans = list(correction.spans) if correction else []
    return tuple(sorted({span.category for span in spans}))


def graded_by(store: Store, decision: Decision) -> float | None:
    """How well people rated the response when they decided: mean of what they gave, from 0 to 1."""
    correction = None if decision.is_settled else store.corrections.get(decision.id)
    if correction is None:
        return None
    given = [own for own in vars(correction.ratings).values() if own is not None]
    return (sum(given) / len(given) - 1.0) / 4.0 if given else None


def answered_runs(store: Store, project_id: str) -> Iterator[RunDone]:
    """A project's finished runs over cases that somebody answered or settled, newest first."""
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
    return (RunDone(**row) for row in rows)


def used_by(store: Store, run_id: str) -> dict[str, Used]:
    """By role, what the run's calls came to as the ledger has them; failed ones too."""
    rows = store.db.query(
        "SELECT role, count(*) AS calls, sum(tokens_in + tokens_out) AS tokens, "
        "iif(count(cost_nano) = count(*), sum(cost_nano), NULL) AS nano, sum(seconds) AS seconds "
        "FROM calls WHERE run_id = ? AND status != 'reserved' GROUP BY role",
        [run_id],
    )
    return {row.pop("role"): Used(**row) for row in rows}


@dataclass(frozen=True)
class Judged:
    """A case's newest verdict, and the run that reached it."""

    run_id: str
    finished_at: float | None
    verdict: Verdict


def newest_verdicts(store: Store, project_id: str) -> dict[str, Judged]:
    """The newest verdicts by case; cases without a finished run are left out."""
    rows = store.db.query(
        "SELECT r.id, r.case_id, r.finished_at, e.kind, e.payload FROM runs r JOIN events e "
        "ON e.run_id = r.id AND (e.kind = 'run_finished' OR "
        " (e.kind = 'label_predicted' AND e.at > r.finished_at)) WHERE r.project_id = ? "
        "AND r.status = 'finished' ORDER BY r.started_at, r.id, e.seq",
        [project_id],
    )
    found: dict[str, Judged] = {}
    for row in rows:
        event = event_from_json(row["kind"], row["payload"])
        if event.kind == "run_finished" or event.kind == "label_predicted":
            found[row["case_id"]] = Judged(row["id"], row["finished_at"], event.verdict)
    return found


def newest_finished(store: Store, project_id: str) -> dict[str, str]:
    """The newest finished run's id by case."""
    rows = store.db.query(
        "SELECT id, case_id FROM runs WHERE project_id = ? AND status = 'finished' "
        "ORDER BY started_at, id",
        [project_id],
    )
    return {row["case_id"]: row["id"] for row in rows}


def events_of(store: Store, run_id: str, kinds: Sequence[str]) -> list[Event]:
    """The run's events of these kinds only, in order: the others are most of what a run is."""
    marks = ", ".join("?" for _ in kinds)
    rows = store.db.query(
        f"SELECT kind, payload FROM events WHERE run_id = ? AND kind IN ({marks}) ORDER BY seq",
        [run_id, *kinds],
    )
    return [event_from_json(row["kind"], row["payload"]) for row in rows]


def present_classifiers(store: Store, run_ids: Sequence[str]) -> dict[str, str]:
    """Run id to the classifier of its present verdict; runs without a verdict are left out."""
    marks = ", ".join("?" for _ in run_ids)
    rows = store.db.query(
        "SELECT r.id, (SELECT json_extract(e.payload, '$.verdict.classifier') FROM events e "
        " WHERE e.run_id = r.id AND e.kind IN ('label_predicted', 'run_finished') "
        f" ORDER BY e.seq DESC LIMIT 1) AS classifier FROM runs r WHERE r.id IN ({marks})",
        list(run_ids),
    )
    return {row["id"]: row["classifier"] for row in rows if row["classifier"]}


def scorable(store: Store) -> list[str]:
    """Every finished run whose judge came to a label, oldest first; a classifier may disagree."""
    rows = store.db.query(
        "SELECT id FROM runs WHERE status = 'finished' "
        "AND (label IN ('hallucinated', 'supported') OR EXISTS (SELECT 1 FROM events e "
        " WHERE e.run_id = runs.id AND e.kind = 'label_predicted' "
        " AND json_extract(e.payload, '$.verdict.cause') = 'classifier_disagrees')) "
        "ORDER BY started_at, id"
    )
    return [row["id"] for row in rows]
