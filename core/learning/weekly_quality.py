"""Quality over time: what each roster and protocol did week by week, by what people decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from core.learning.metrics import MIN_GROUPS, MetricEstimate
from core.learning.track_record import WilsonShare
from core.store import Store

WEEK_SECONDS = 7 * 86400
MONDAY = 4 * 86400  # 1970-01-05, the first Monday after the epoch
# Seconds are those of work: from the start to the end, without the pauses before it was resumed.
RUNS_SQL = """
SELECT r.case_id, c.fingerprint AS 'group', r.label, r.finished_at AS at,
(SELECT sum(gap) FROM
 (SELECT kind, at, at - lag(at) OVER (ORDER BY seq) AS gap FROM events WHERE run_id = r.id)
 WHERE kind NOT IN ('run_started', 'run_resumed') AND at <= r.finished_at) AS seconds,
json_extract(r.plan, '$.roster') AS roster, json_extract(r.plan, '$.protocol') AS protocol,
(SELECT sum(cost_nano) FROM calls k WHERE k.run_id = r.id) / 1e9 AS cost,
EXISTS (SELECT 1 FROM calls k WHERE k.run_id = r.id AND k.cost_nano IS NULL
AND k.status != 'reserved') AS is_unpriced
FROM runs r JOIN cases c ON c.id = r.case_id
WHERE r.project_id = ? AND r.status = 'finished' AND r.origin = 'here'
AND r.label IS NOT NULL ORDER BY roster, protocol, at
"""


class MeanEstimate(NamedTuple):
    """A mean, with its 95 % interval unless there are too few values."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class WeekOfRuns:
    """What one roster with one protocol did in a week; a case counts once, by its newest run.

    `before` is the share called hallucinated in all earlier weeks.
    """

    roster: str
    protocol: str
    week: str
    cases: int
    overturned: WilsonShare
    hallucinated: WilsonShare
    before: WilsonShare
    cost: MeanEstimate | None
    seconds: MeanEstimate
    has_drifted: bool = False

    @property
    def drift(self) -> MetricEstimate | None:
        """How far the share called hallucinated moved; None in the first week."""
        return _estimate_drift(self.hallucinated, self.before) if self.before.n else None


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
        for number, made in sorted(by_week.items()):
            own = list({run["group"]: run for run in made}.values())
            hallucinated = WilsonShare(sum(run["label"] == "hallucinated" for run in own), len(own))
            looked = {run["group"]: run["label"] != decided[c] for run in made
                      if (c := run["case_id"]) in decided}  # fmt: skip
            is_known = not any(run["is_unpriced"] for run in own)
            day = np.datetime64(number * WEEK_SECONDS + MONDAY, "s").astype("datetime64[D]")
            weeks.append(
                WeekOfRuns(
                    roster,
                    protocol,
                    str(day),
                    len(own),
                    WilsonShare(sum(looked.values()), len(looked)),
                    hallucinated,
                    before,
                    _estimate_mean([run["cost"] or 0.0 for run in own]) if is_known else None,
                    _estimate_mean([run["seconds"] for run in own]),
                )
            )
            before = WilsonShare(before.right + hallucinated.right, before.n + hallucinated.n)
    drifted = find_drifted([(week.hallucinated, week.before) for week in weeks])
    return [replace(week, has_drifted=own) for week, own in zip(weeks, drifted, strict=True)]


def find_drifted(pairs: Sequence[tuple[WilsonShare, WilsonShare]]) -> list[bool]:
    """Return which shares differ from those before them by more than chance; thin ones never do.

    By Fisher's exact test, adjusted by Holm's method: without a change, the chance that any of them
    is called so is at most 5 %, however many weeks and systems there are.
    """
    from scipy.stats import fisher_exact
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

    tested = [n for n, pair in enumerate(pairs) if not any(share.is_thin for share in pair)]
    tables = [[(share.right, share.n - share.right) for share in pairs[n]] for n in tested]
    found = [fisher_exact(table).pvalue for table in tables]
    drifted = multipletests(found, method="holm")[0].tolist() if found else []
    return [dict(zip(tested, drifted, strict=True)).get(n, False) for n in range(len(pairs))]


def _estimate_mean(values: Sequence[float]) -> MeanEstimate:
    """Return the mean with its 95 % interval by Student's t, not below 0."""
    from scipy.stats import t

    n, mean = len(values), float(np.mean(values))
    if n < MIN_GROUPS:
        return MeanEstimate(mean, None, None)
    half = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return MeanEstimate(mean, max(0.0, mean - half), mean + half)


def _estimate_drift(now: WilsonShare, before: WilsonShare) -> MetricEstimate:
    """Return how far the share moved, with Newcombe's 95 % interval (his method 10)."""
    (low, high), (low_before, high_before) = now.interval, before.interval
    change = now.value - before.value
    return MetricEstimate(
        change,
        change - float(np.hypot(now.value - low, high_before - before.value)),
        change + float(np.hypot(high - now.value, before.value - low_before)),
    )
