"""`python -m core evaluate`: an engine, a system over recorded verdicts, or a tool, on a set.

An evaluation's result for people, and as a file beside others.

Measures one tool alone on a labelled set: `evaluate --tool NAME`. Each row's whole response is
given to what the tool reads by itself, with the row's question. Where it reads nothing, or says
nothing, the row is unclear, and `causes` counts why.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.concurrency import Stop
from core.errors import ConfigError, InputError, ModelError
from core.evaluation.datasets import rule_of
from core.evaluation.engine_runs import WEIGHTS, Tell, engine_digest, engine_of
from core.evaluation.engine_weights import require_weighed
from core.evaluation.evaluate import (
    Measured,
    Order,
    answers,
    counted_rows,
    evaluate,
    figures_of,
    sampled,
)
from core.evaluation.evaluate import labelled_rows as rows_of
from core.evaluation.gold import GoldRow, GoldSpan
from core.evaluation.outcomes import FAILED, Outcomes, Prediction
from core.evaluation.recorded_evaluation import Wanted, evaluate_recorded
from core.llm.keys import Keys
from core.pipeline.checking import Request, planned
from core.records import Case, Plan
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


OF_VARIANTS = ("auroc", "balanced_accuracy", "ece", "ece_null")
NAME = re.compile(r"[^\w.-]+")


def plainly(result: Mapping[str, Any]) -> str:
    """The figures in a few lines, for a person at a terminal."""
    what = " ".join(str(result[key]) for key in ("dataset", "task", "split") if result[key])
    lines = [
        f"{what}: {result['rows']:,} rows in {result['groups']:,} groups, "
        f"{result['answered']:,} answered, {result['unclear']:,} unclear",
        *_figures(result["metrics"]),
    ]
    if result.get("weights"):
        lines.insert(1, f"  weights of answers: {result['weights']}")
    for name, figures in result.get("variants", {}).items():
        lines += [name, *_figures({f: figures[f] for f in OF_VARIANTS if f in figures})]
    for name, figures in result["trivial"].items():
        count = result["trivial_rows"][name]
        lines += [f"{name.replace('_', ' ')} ({count:,} rows)", *_figures(figures)]
    if result["rows_per_second"]:
        lines.append(f"{result['rows_per_second']:.1f} rows a second")
    return "\n".join(lines) + "\n"


def _figures(figures: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [
        f"  {name:18} {figure['value']:.3f}  ({figure['low']:.3f} to {figure['high']:.3f})"
        for name, figure in figures.items()
    ]


def result_name(result: Mapping[str, Any]) -> str:
    """The file's name: one for each set, task and split, each engine and way to argue but ours."""
    parts = [result["dataset"], result["task"], result["split"]]
    if result["roster"] != "builtin":
        parts.append(result["roster"])
    if result.get("protocol") not in (None, Plan().protocol):
        parts.append(result["protocol"])
    chosen = result.get("options") or {}
    parts += [f"{name}={own}" for name, own in chosen.items() if name != "seed"]  # of the rows too
    if result.get("weights") not in (None, WEIGHTS[0]):
        parts.append(result["weights"].split(";")[0])
    return NAME.sub("_", "-".join(str(part) for part in parts if part)) + ".json"


def result_folder(folder: Path) -> Path:
    """The folder, made where it is not there; asked for before anything is measured.

    Raises:
        ConfigError: there can be no such folder, or nothing can be written in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise _unwritable(folder, error) from error


def write_result(folder: Path, result: Mapping[str, Any]) -> Path:
    """Write the result to its file in the folder, over an earlier one, and say where.

    Raises:
        ConfigError: the folder cannot be written.
    """
    path = folder / result_name(result)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritable(folder, error) from error
    return path


def _unwritable(folder: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"Expected a folder that can be written at {folder}, found: {error.strerror}. "
        "Choose another with --keep."
    )


Say = Callable[[str], None]
Out = Callable[[str | bytes], None]
KeysOf = Callable[[Request], Keys]


def run_evaluate(
    given: argparse.Namespace, home: Path, request: Request, keys_of: KeysOf, say: Say, out: Out
) -> int:
    """Measure and print the figures; 0, or 1 where it failed or was stopped.

    Raises:
        ReviewError: the set, the engine or the tool is not there.
    """
    keep = None if given.keep is None else result_folder(Path(given.keep))
    try:
        result = _measured(given, home, request, keys_of, say)
    except ModelError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say("Stopped. What is done is kept; the same command goes on from there.")
        return 1
    if keep is not None:
        write_result(keep, result)
    out(json.dumps(result, ensure_ascii=False) + "\n" if given.json else plainly(result))
    return 0


def _measured(
    given: argparse.Namespace, home: Path, request: Request, keys_of: KeysOf, say: Say
) -> dict[str, Any]:
    order = Order(
        given.dataset,
        Path(given.path),
        given.task,
        given.split,
        given.limit,
        given.seed,
        given.trivial_limit,
    )
    is_learned = given.weights == "learned"
    if is_learned and (given.tool is not None or given.system is not None):
        raise InputError(
            "Expected --weights learned with an engine, found it beside --tool or --system; leave "
            "one out."
        )
    if given.tool is not None:
        if given.system is not None:
            raise InputError("Expected --tool or --system, found both; leave one out.")
        return evaluate_tool(order, given.tool, say)
    if given.system is not None:
        return evaluate_recorded(order, _wanted(given), say)
    keys = keys_of(request)
    plan, notices = planned(home, request, keys)
    for notice in notices:
        say(notice)
    require_weighed(is_learned, [plan])
    return evaluate(order, engine_of(home, plan, keys, is_learned=is_learned), say)


def _wanted(given: argparse.Namespace) -> Wanted:
    """The system over recorded verdicts that is asked for."""
    fit = None if given.fit is None else Path(given.fit)
    return Wanted(given.system, given.detector, given.prompt, fit)
