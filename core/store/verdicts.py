"""What the newest finished run over each case of a project says, and by which classifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.events import Event
from core.records import Verdict
from core.store.codec import event_from_json
from core.store.database import Store


@dataclass(frozen=True)
class Judged:
    """A case's newest verdict, and the run that reached it."""

    run_id: str
    finished_at: float | None
    verdict: Verdict


def newest_verdicts(store: Store, project_id: str) -> dict[str, Judged]:
    """By case; cases without a finished run are left out."""
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
