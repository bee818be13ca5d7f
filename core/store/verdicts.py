"""What the newest finished run over each case of a project said."""

from __future__ import annotations

from dataclasses import dataclass

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
        "SELECT r.id, r.case_id, r.finished_at, e.payload FROM runs r JOIN events e "
        "ON e.run_id = r.id AND e.kind = 'run_finished' WHERE r.project_id = ? "
        "AND r.status = 'finished' ORDER BY r.started_at, r.id, e.seq",
        [project_id],
    )
    found: dict[str, Judged] = {}
    for row in rows:
        event = event_from_json("run_finished", row["payload"])
        if event.kind == "run_finished":
            found[row["case_id"]] = Judged(row["id"], row["finished_at"], event.verdict)
    return found
