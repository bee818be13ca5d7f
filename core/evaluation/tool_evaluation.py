"""Measures one tool alone on a labelled set: `evaluate --tool NAME`.

Each row's whole response is given to what the tool reads by itself, with the row's question. Where
it reads nothing, or says nothing, the row is unclear, and `causes` counts why.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from core.concurrency import Stop
from core.errors import InputError
from core.evaluation.datasets import rule_of
from core.evaluation.engine_runs import Tell, engine_digest
from core.evaluation.evaluate import Measured, Order, answers, counted_rows, figures_of
from core.evaluation.evaluate import labelled_rows as rows_of
from core.evaluation.gold import GoldRow, GoldSpan
from core.evaluation.outcomes import FAILED, Outcomes, Prediction
from core.evaluation.sample import sampled
from core.records import Case
from core.tools.registry import Bench, Tool, tool_named, use

UNREAD, SAID_NOTHING = "the tool reads nothing here", "the tool says nothing"


def evaluate_tool(
    order: Order, name: str, tell: Tell, clock: Callable[[], float] = time.time
) -> dict[str, Any]:
    """The object of `python -m core evaluate --tool … --json`.

    Raises:
        InputError: there is no such tool or set, the tool is off here or reads nothing by itself.
    """
    tool, bench = tool_named(name), Bench(Stop())
    if why := tool.why_off(bench):
        raise InputError(why)
    if tool.reads is None:
        raise InputError(f"Expected a tool that reads statements by itself, found {name}.")
    rule = rule_of(order.dataset, order.task)
    rows = sampled(rows_of(order), order.limit, order.seed)
    tell(f"{order.dataset} {rule.task}: the tool {name} alone is measured, no engine is run")
    found = Outcomes(rows, [predicted(tool, row, bench) for row in rows])
    trivial = answers(rows)
    measured = Measured(found, trivial, sum(one.is_failure for one in found.said))
    return {
        "dataset": order.dataset,
        "task": rule.task or None,
        "split": order.split,
        "limit": order.limit,
        "seed": order.seed,
        "tool": name,
        **counted_rows(measured),
        "metrics": figures_of(found, order.seed),
        "trivial": {n: figures_of(one, order.seed) for n, one in trivial.items()},
        "trivial_rows": {n: len(one.rows) for n, one in trivial.items()},
        "roster": f"tool-{name}",
        "protocol": None,
        "engine": engine_digest()[:12],
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clock())),
    }


def predicted(tool: Tool[Any], row: GoldRow, bench: Bench) -> Prediction:
    """What the tool says of one row; offsets in its response where the tool was given all of it."""
    began = time.monotonic()
    case = Case(row.id, "", row.response, row.question, language=row.language)
    given = tool.reads(None, case) if tool.reads else None
    if given is None:
        return Prediction("unclear", cause=UNREAD, seconds=time.monotonic() - began)
    told = use(tool, given, bench)
    seconds = round(time.monotonic() - began, 4)
    if told.outcome == "failed":
        return Prediction("unclear", cause=FAILED, seconds=seconds)
    spans: tuple[GoldSpan, ...] = ()
    if told.label == "hallucinated" and told.start is not None and told.end is not None:
        spans = (GoldSpan(told.start, told.end, told.p or 1.0),)
    cause = SAID_NOTHING if told.label == "unclear" else ""
    return Prediction(told.label, told.p, spans, spans, cause, seconds, spans)
