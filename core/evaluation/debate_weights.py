"""Measures w(Q; θ) on debates of the built-in readers over a labelled set (SC-MAKS 3.5, 4.10).

`python -m core.evaluation.debate_weights --path DATA --dataset NAME`: the readers argue about every
row in the way that is named, alone if none is (ensemble), and their last answers are weighed on the
same five folds: all alike (4.10's uniform vote), by record, logistic (its consensus without PPO),
and by the policy where stable-baselines3 is installed, beside always saying hallucinated. Rows that
are open by their label take no part, nor do those about which nobody argued.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.config import home_from
from core.errors import InputError, ReviewError
from core.evaluation.datasets import rule_of
from core.evaluation.engine_runs import Tell, engine_of, opened_runs
from core.evaluation.evaluate import Order, Way, labelled_rows, sampled, ways_of
from core.evaluation.gold import GoldRow
from core.evaluation.kept import digest_of
from core.evaluation.recorded import answers_given
from core.evaluation.recorded_weights import methods_here, plainly
from core.learning.answer_figures import compare_answers
from core.learning.answers import Answers
from core.llm.keys import Keys
from core.pipeline.checking import Request, planned
from core.records import Turn
from core.verdict.weigher import answerers

TOLD_EVERY = 20  # rows


def measured(order: Order, way: Way, home: Path, tell: Tell) -> dict[str, Any]:
    """How the weightings compare, as `ComparedAnswers`.

    Raises:
        InputError: the set or the way is not there, nobody argues in it, or there are too few rows.
    """
    answers = argued(order, way, home, tell)
    found = compare_answers(answers, methods_here(), seed=order.seed, tell=tell)
    return asdict(found) | {"answerers": len(answers.agents), "way": way.name}


def argued(order: Order, way: Way, home: Path, tell: Tell) -> Answers:
    """The built-in readers' answers in debates over the rows.

    Raises:
        InputError: the set or the way is not there, or nobody argues in it.
    """
    there = [row for row in labelled_rows(order) if row.label != "unclear"]
    rows = sampled(there, order.limit, order.seed)
    keys = Keys({})
    plan, _ = planned(home, Request("", protocol=way.protocol, options=way.options), keys)
    debates: list[Sequence[Turn]] = []
    heard: list[GoldRow] = []
    task = rule_of(order.dataset, order.task).task
    with opened_runs(engine_of(home, plan, keys), f"{order.dataset}-{task or 'all'}", tell) as runs:
        for done, row in enumerate(rows, start=1):
            turns = runs.checked(digest_of(row), row).turns
            if turns:
                debates.append(turns)
                heard.append(row)
            if done % TOLD_EVERY == 0:
                tell(f"{done} of {len(rows)} rows")
        seats = answerers(runs.seated("weights").roster, None)
    if not debates:
        raise InputError(f"Expected a debate about some row, found none by {way.name}.")
    return answers_given(debates, seats, heard)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0, 1 where it was stopped, or 2 for bad input."""
    parser = argparse.ArgumentParser(description=__doc__, prog="core.evaluation.debate_weights")
    parser.add_argument("--path", type=Path, required=True, help="folder with the sets' folders")
    parser.add_argument("--dataset", required=True, help="the set's name")
    parser.add_argument("--task", help="which task of the set (default: its first)")
    parser.add_argument("--split", help="as `evaluate` takes it")
    parser.add_argument("--limit", type=int, help="a seeded sample, each label with its share")
    parser.add_argument("--seed", type=int, default=0, help="of sample, folds and intervals")
    parser.add_argument("--way", default="ensemble", help="how they argue (default: alone)")
    parser.add_argument("--home", help="whose settings are used")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        found = _found(given)
    except KeyboardInterrupt:
        _say("Stopped.")
        return 1
    except ReviewError as error:
        _say(str(error))
        return 2
    sys.stdout.write((json.dumps(found) if given.json else plainly(found)) + "\n")
    return 0


def _found(given: argparse.Namespace) -> dict[str, Any]:
    """What the arguments ask for.

    Raises:
        InputError: a number is out of range, or something is not there.
    """
    way, *others = ways_of(given.way)
    if others:
        raise InputError(f"Expected one way, found {1 + len(others)}; leave the others out.")
    if given.limit is not None and given.limit < 1:
        raise InputError(f"Expected --limit from 1 on, found {given.limit}.")
    if given.seed < 0:
        raise InputError(f"Expected --seed from 0 on, found {given.seed}.")
    order = Order(given.dataset, given.path, given.task, given.split, given.limit, given.seed)
    return measured(order, way, home_from(os.environ, given.home), _say)


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


if __name__ == "__main__":
    sys.exit(main())
