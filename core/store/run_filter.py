"""Which runs History shows, as a condition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RunFilter:
    """What History shows; empty fields do not filter. `terms` are search terms of the case."""

    terms: tuple[str, ...] = ()
    label: str = ""
    status: str = ""
    corrected: bool | None = None
    protocol: str = ""


def condition_of(
    project_id: str, wanted: RunFilter, now: float, lease: float
) -> tuple[str, list[Any]]:
    """The condition of a filter and its values."""
    where: list[str] = ["r.project_id = ?"]
    values: list[Any] = [project_id]
    if wanted.terms:
        where.append("c.id IN (SELECT case_id FROM case_terms WHERE case_terms MATCH ?)")
        values.append(" AND ".join('"' + t.replace('"', "") + '"*' for t in wanted.terms))
    if wanted.label:
        where.append("r.label = ?")
        values.append(wanted.label)
    if wanted.status == "interrupted":
        where.append("r.status IN ('queued', 'running') AND r.heartbeat_at <= ?")
        values.append(now - lease)
    elif wanted.status in ("queued", "running"):
        where.append("r.status = ? AND r.heartbeat_at > ?")
        values.extend([wanted.status, now - lease])
    elif wanted.status:
        where.append("r.status = ?")
        values.append(wanted.status)
    if wanted.protocol:
        where.append("json_extract(r.plan, '$.protocol') = ?")
        values.append(wanted.protocol)
    if wanted.corrected is not None:
        known = "EXISTS" if wanted.corrected else "NOT EXISTS"
        where.append(f"{known} (SELECT 1 FROM standing k WHERE k.run_id = r.id)")
    return " AND ".join(where), values
