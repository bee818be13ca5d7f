"""Quality over time: what each roster and protocol did week by week, by what people decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from core.learning.metrics import MetricEstimate
from core.learning.track_record import WilsonShare
from core.store import Store

WEEK_SECONDS = 7 * 86400
MONDAY = 4 * 86400  # 1970-01-05, the first Monday after the epoch
RUNS_SQL = """
SELECT r.case_id, r.label, r.finished_at AS at, r.finished_at - r.started_at AS seconds,
json_extract(r.plan, '$.roster') AS roster, json_extract(r.plan, '$.protocol') AS protocol,
(SELECT sum(cost_nano) FROM calls k WHERE k.run_id = r.id) / 1e9 AS cost,
EXISTS (SELECT 1 FROM calls k WHERE k.run_id = r.id AND k.cost_nano IS NULL
AND k.status != 'reserved') AS is_unpriced
FROM runs r WHERE r.project_id = ? AND r.status = 'finished' AND r.origin = 'here'
AND r.label IS NOT NULL ORDER BY roster, protocol, at
"""


@dataclass(frozen=True)
class WeekOfRuns:
    """What one roster with one protocol did in a week; `drift` is None in its first week."""

    roster: str
    protocol: str
    week: str
    runs: int
    overturned: WilsonShare
    hallucinated: WilsonShare
    drift: MetricEstimate | None
    cost: MetricEstimate | None
    seconds: MetricEstimate


def count_weeks(store: Store, project_id: str) -> list[WeekOfRuns]:
    """Return each week with runs, by roster and protocol, the oldest first."""
    truths = store.truths.labels(project_id)
    decided = {case_id: truth.label for case_id, truth in truths.items() if truth.is_decided}
    weeks: list[WeekOfRuns] = []
    runs = store.db.query(RUNS_SQL, [project_id])
    for (roster, protocol), group in groupby(runs, lambda run: (run["roster"], run["protocol"])):
        by_week: dict[int, list[dict[str, Any]]] = defaultdict(list)
        for run in group:
            by_week[int((run["at"] - MONDAY) // WEEK_SECONDS)].append(run)
        before = WilsonShare(0, 0)
        for number, own in sorted(by_week.items()):
            hallucinated = WilsonShare(sum(run["label"] == "hallucinated" for run in own), len(own))
            looked = [run["label"] != decided[c] for run in own if (c := run["case_id"]) in decided]
            is_known = not any(run["is_unpriced"] for run in own)
            day = np.datetime64(number * WEEK_SECONDS + MONDAY, "s").astype("datetime64[D]")
            weeks.append(
                WeekOfRuns(
                    roster,
                    protocol,
                    str(day),
                    len(own),
                    WilsonShare(sum(looked), len(looked)),
                    hallucinated,
                    _estimate_drift(hallucinated, before) if before.n else None,
                    _estimate_mean([run["cost"] or 0.0 for run in own]) if is_known else None,
                    _estimate_mean([run["seconds"] for run in own]),
                )
            )
            before = WilsonShare(before.right + hallucinated.right, before.n + hallucinated.n)
    return weeks


def _estimate_mean(values: Sequence[float]) -> MetricEstimate:
    """Return the mean with its 95 % interval by Student's t, not below 0; itself if it is alone."""
    from scipy.stats import t

    n, mean = len(values), float(np.mean(values))
    half = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    return MetricEstimate(mean, max(0.0, mean - half), mean + half)


def _estimate_drift(now: WilsonShare, before: WilsonShare) -> MetricEstimate:
    """Return how far the share moved, with Newcombe's 95 % interval (his method 10)."""
    (low, high), (low_before, high_before) = now.interval, before.interval
    change = now.value - before.value
    return MetricEstimate(
        change,
        change - float(np.hypot(now.value - low, high_before - before.value)),
        change + float(np.hypot(high - now.value, before.value - low_before)),
    )
