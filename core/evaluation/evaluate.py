"""Measures an engine on a labelled set: figures with intervals, beside those of trivial answers.

`claim_only` is the same engine with the evidence taken away; `other_evidence` the same over
documents of another row, which shows what wording alone gives away. Both are run on a seeded
sample. Rows of one group are drawn together for the intervals (`core/evaluation/bootstrap.py`);
what each figure counts is said in `core/evaluation/metrics.py`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.evaluation.bootstrap import Figure, calibrated_null, figures
from core.evaluation.datasets import load, rule_of
from core.evaluation.engine_runs import Engine, EngineRuns, Tell, opened_runs
from core.evaluation.gold import GoldRow
from core.evaluation.metrics import measures
from core.evaluation.outcomes import Outcomes, Prediction, always, mark_all
from core.evaluation.sample import sampled, with_other_evidence, without_evidence

TRIVIAL_ROWS = 200
Figures = dict[str, Figure]


@dataclass(frozen=True)
class Order:
    """What is to be measured; `trivial_limit` bounds the rows run again without their evidence."""

    dataset: str
    folder: Path
    task: str | None = None
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    trivial_limit: int = TRIVIAL_ROWS


def evaluate(
    order: Order, engine: Engine, tell: Tell, clock: Callable[[], float] = time.time
) -> dict[str, Any]:
    """The object of `python -m core evaluate --json`.

    `seconds` is the time that the rows took when they were checked, now or in an earlier call.

    Raises:
        InputError: the set is unknown, missing, broken or without labels.
        ModelError: a budget is spent or a service fails; what is done is kept.
    """
    task = rule_of(order.dataset, order.task).task
    there = labelled_rows(order)
    rows = sampled(there, order.limit, order.seed)
    with opened_runs(engine, f"{order.dataset}-{task or 'all'}", tell) as runs:
        said = runs.predictions(rows, order.dataset)
        failed = runs.failed
        trivial, counts = _trivial(rows, there, order, runs)
    found = Outcomes(rows, said)
    seconds = sum(one.seconds for one in said)
    answered = int(found.answered.sum())
    return {
        "dataset": order.dataset,
        "task": task or None,
        "split": order.split,
        "limit": order.limit,
        "seed": order.seed,
        "rows": len(rows),
        "groups": int(found.groups.max()) + 1,
        "golds": dict(sorted(Counter(str(row.label) for row in rows).items())),
        "answered": answered,
        "unclear": len(rows) - answered,
        "causes": _causes(said),
        "failed": failed,
        "metrics": figures_of(found, order.seed),
        "trivial": trivial,
        "trivial_rows": counts,
        "seconds": round(seconds, 3),
        "rows_per_second": round(len(rows) / seconds, 3) if seconds else None,
        "roster": engine.plan.roster,
        "protocol": engine.plan.protocol,
        "engine": engine.id,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clock())),
    }


def labelled_rows(order: Order) -> list[GoldRow]:
    """The set's rows that people labelled.

    Raises:
        InputError: there is no row, or none has a label.
    """
    rows = list(load(order.dataset, order.folder, task=order.task, split=order.split))
    where = f"{order.dataset} in {order.folder}"
    if not rows:
        raise InputError(f"Expected rows of {where}, found none; try another --split or --task.")
    found = [row for row in rows if row.label is not None]
    if not found:
        raise InputError(
            f"Expected labels in {where}, found {len(rows):,} rows without any: the set says "
            "nothing of right and wrong, so nothing can be measured on it."
        )
    return found


def figures_of(found: Outcomes, seed: int) -> Figures:
    """All figures of the outcomes, `ece_null` (a calibrated model's) beside `ece`."""
    named = figures(measures(found), found.groups, seed)
    null = calibrated_null(found, seed)
    if null is not None:
        named["ece_null"] = null
    return {name: named[name] for name in sorted(named)}


def _trivial(
    rows: Sequence[GoldRow], there: Sequence[GoldRow], order: Order, runs: EngineRuns
) -> tuple[dict[str, Figures], dict[str, int]]:
    """(figures of each trivial answer, on how many rows)."""
    found = {
        "always_hallucinated": always("hallucinated", rows),
        "always_supported": always("supported", rows),
        "mark_all": mark_all(rows),
    }
    few = sampled(rows, order.trivial_limit, order.seed)
    again: Mapping[str, Sequence[GoldRow]] = {
        "claim_only": without_evidence(few),
        "other_evidence": with_other_evidence(few, there, order.seed),
    }
    for name, changed in again.items():
        if changed:
            said = runs.predictions(changed, name.replace("_", " "))
            found[name] = Outcomes(changed, said)
    return (
        {name: figures_of(outcomes, order.seed) for name, outcomes in found.items()},
        {name: len(outcomes.rows) for name, outcomes in found.items()},
    )


def _causes(said: Sequence[Prediction]) -> dict[str, int]:
    """Why rows were left unclear, the most frequent first."""
    causes = Counter(one.cause.split(":")[0] for one in said if one.label == "unclear")
    return dict(causes.most_common())
