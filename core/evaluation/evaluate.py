"""Measures an engine on a labelled set: figures with intervals, beside those of trivial answers.

`claim_only` is the same engine with the evidence taken away; `other_evidence` the same over
documents of another row, which shows what wording alone gives away. Both are run on a seeded
sample. Rows of one group are drawn together for the intervals (`core/evaluation/bootstrap.py`);
what each figure counts is said in `core/evaluation/metrics.py`. A task whose rows are recorded
verdicts of other detectors is measured on these: no engine is run.
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
from core.evaluation.engine_runs import Engine, Tell, opened_runs
from core.evaluation.gold import GoldRow
from core.evaluation.metrics import measures, risk_coverage
from core.evaluation.outcomes import Outcomes, Prediction, always, mark_all, recorded
from core.evaluation.sample import sampled, with_other_evidence, without_evidence

TRIVIAL_ROWS = 200
RECORDED = "recorded"  # the roster where verdicts that a set holds are measured
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

    `seconds` is the time that the rows took when they were checked, now or in an earlier call;
    `failed` counts the rows that broke off, `trivial_failed` those without or with other evidence.

    Raises:
        InputError: the set is unknown, missing, broken or without labels.
        ModelError: a budget is spent or a service fails; what is done is kept.
    """
    rule = rule_of(order.dataset, order.task)
    there = labelled_rows(order)
    rows = sampled(there, order.limit, order.seed)
    if rule.is_recorded:
        tell(f"{order.dataset} {rule.task}: recorded verdicts are measured, no engine is run")
        measured = Measured(recorded(rows), answers(rows))
    else:
        measured = _checked(rows, there, order, engine, tell)
    return {
        "dataset": order.dataset,
        "task": rule.task or None,
        "split": order.split,
        "limit": order.limit,
        "seed": order.seed,
        **counted_rows(measured),
        "metrics": figures_of(measured.found, order.seed),
        "risk_coverage": risk_coverage(measured.found),
        "trivial": {n: figures_of(one, order.seed) for n, one in measured.trivial.items()},
        "trivial_rows": {name: len(one.rows) for name, one in measured.trivial.items()},
        "roster": RECORDED if rule.is_recorded else engine.plan.roster,
        "protocol": None if rule.is_recorded else engine.plan.protocol,
        "options": {} if rule.is_recorded else engine.plan.options.chosen,
        "weights": measured.weights,
        "engine": None if rule.is_recorded else engine.id,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clock())),
    }


@dataclass(frozen=True)
class Measured:
    """What was found on the rows and what trivial answers come to, with the rows that broke off.

    `weights` says by which debaters' answers counted, None where nobody weighed any.
    """

    found: Outcomes
    trivial: Mapping[str, Outcomes]
    failed: int = 0
    trivial_failed: int = 0
    weights: str | None = None


def counted_rows(measured: Measured) -> dict[str, Any]:
    """How many rows there are, of which kinds, and how long they took."""
    found = measured.found
    rows, seconds = len(found.rows), sum(one.seconds for one in found.said)
    answered = int(found.answered.sum())
    return {
        "rows": rows,
        "groups": int(found.groups.max()) + 1,
        "golds": dict(sorted(Counter(str(row.label) for row in found.rows).items())),
        "answered": answered,
        "unclear": rows - answered,
        "causes": _causes(found.said),
        "failed": measured.failed,
        "trivial_failed": measured.trivial_failed,
        "seconds": round(seconds, 3),
        "rows_per_second": round(rows / seconds, 3) if seconds else None,
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


def _checked(
    rows: Sequence[GoldRow], there: Sequence[GoldRow], order: Order, engine: Engine, tell: Tell
) -> Measured:
    """The engine on the rows, and on a sample of them with their evidence taken or exchanged."""
    trivial = answers(rows)
    few = sampled(rows, order.trivial_limit, order.seed)
    again: Mapping[str, Sequence[GoldRow]] = {
        "claim_only": without_evidence(few),
        "other_evidence": with_other_evidence(few, there, order.seed),
    }
    task = rule_of(order.dataset, order.task).task
    with opened_runs(engine, f"{order.dataset}-{task or 'all'}", tell) as runs:
        weights = runs.weights()
        if weights is not None:
            tell(f"{order.dataset}: weights of answers: {weights}")
        found = Outcomes(rows, runs.predictions(rows, order.dataset))
        failed = runs.failed
        for name, changed in again.items():
            if changed:
                said = runs.predictions(changed, name.replace("_", " "))
                trivial[name] = Outcomes(changed, said)
        return Measured(found, trivial, failed, runs.failed - failed, weights)


def answers(rows: Sequence[GoldRow]) -> dict[str, Outcomes]:
    """The answers that need nothing read."""
    return {
        "always_hallucinated": always("hallucinated", rows),
        "always_supported": always("supported", rows),
        "mark_all": mark_all(rows),
    }


def _causes(said: Sequence[Prediction]) -> dict[str, int]:
    """Why rows were left unclear, the most frequent first."""
    causes = Counter(one.cause.split(":")[0] for one in said if one.label == "unclear")
    return dict(causes.most_common())
