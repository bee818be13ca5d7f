"""`python -m core evaluate`: an engine, a system over recorded verdicts, or a tool, on a set."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.checking import Request, planned
from core.errors import InputError, ModelError
from core.evaluation.engine_runs import engine_of
from core.evaluation.engine_weights import require_weighed
from core.evaluation.evaluate import Order, evaluate
from core.evaluation.figures_shown import plainly, result_folder, write_result
from core.evaluation.recorded_evaluation import Wanted, evaluate_recorded
from core.evaluation.tool_evaluation import evaluate_tool
from core.models.keys import Keys

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
