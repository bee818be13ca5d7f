"""Learns how much each agent counts, from the home's answers.

`python -m core.learning.weigh [--policy | --adapt] [--use REASON]`. Compares weightings of what
debaters answered on the same folds and keeps them; `--policy` trains one by PPO too (SC-MAKS 3.5),
`--adapt` has the newest policy go on with what was answered since, `--use` takes what was kept into
use.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from core.learning.agent_answers import load_decided_runs
from core.learning.learned_consensus import activate_weights, adapt_policy, learn_weights
from core.review.people import ensure_project, find_operator
from core.runtime.config import resolve_home
from core.runtime.errors import ReviewError
from core.store import open_store

PRINTED_FIGURES = ("log_loss", "auroc", "balanced_accuracy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, print how the weightings compare and return 0, or 2 if nothing could be learned."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m core.learning.weigh")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--policy", action="store_true", help="train a policy by PPO too")
    which.add_argument("--adapt", action="store_true", help="go on with the newest policy")
    parser.add_argument("--use", metavar="REASON", help="take it into use, for this reason")
    parser.add_argument("--by", metavar="NAME", help="who asks for it (default: the first admin)")
    parser.add_argument("--home", help="folder for database, documents and models")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    try:
        result = _learn_weights(options)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(
        (json.dumps(result) if options.json else format_weighting_report(result)) + "\n"
    )
    return 0


def _learn_weights(options: argparse.Namespace) -> dict[str, Any]:
    with open_store(resolve_home(os.environ, options.home)) as store:
        person = find_operator(store) if options.by is None else options.by.strip()
        project_id = ensure_project(store, person, time.time()).id
        rows = load_decided_runs(store, project_id, {})
        if options.adapt:
            number = adapt_policy(store, project_id, rows, person, time.time())
        else:
            number = learn_weights(
                store, project_id, rows, person, time.time(), with_policy=options.policy
            )
        if options.use is not None:
            activate_weights(
                store, project_id, number, by=person, reason=options.use, now=time.time()
            )
        learned = store.learned.get(number)
    answers: dict[str, Any] = learned.body["answers"] if learned else {}
    return answers | {"number": number, "in_use": options.use is not None}


def format_weighting_report(found: dict[str, Any]) -> str:
    """Format the figures for a terminal."""
    closing = f"Kept as weights {found['number']}{', in use' if found['in_use'] else ''}."
    if found["lacking"]:
        return f"{closing} Debaters count alike: {found['lacking']}."
    compared = found["compared"]
    lines = [
        f"{compared['n']:,} debates over {compared['groups']:,} cases, "
        f"{compared['hallucinated']:,} hallucinated",
        f"{'':10s} {'log loss':>24s} {'AUROC':>24s} {'balanced accuracy':>24s}",
    ]
    for method, figures in compared["figures"].items():
        cells = " ".join(f"{_format_figure(figures[name]):>24s}" for name in PRINTED_FIGURES)
        lines.append(f"{method:10s} {cells}")
    for method, gain in compared["gains"].items():
        chance = "" if gain["p"] is None else f", Wilcoxon's p {gain['p']:.3f}"
        value = _format_figure([gain["value"], gain["low"], gain["high"]])
        lines.append(f"{method}: log loss below all alike by {value}{chance}")
    if "adapted" in found:
        adapted = found["adapted"]
        value = _format_figure([adapted["gain"][name] for name in ("value", "low", "high")])
        use = "used" if adapted["is_used"] else "not used"
        lines.append(f"went on with {adapted['groups']} cases: log loss lower by {value}; {use}")
    return "\n".join([*lines, f"Used: {compared['used']}.", closing])


def _format_figure(figure: Sequence[float]) -> str:
    value, low, high = figure
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    sys.exit(main())
