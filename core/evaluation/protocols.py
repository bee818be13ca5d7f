"""Compares protocols on the same rows, each beside a single judge: does debate help?

`evaluate --protocols colmad,colmad:rounds=1` compares ways to argue; `--against sc_maks --protocols
sc_maks:without=adversary` compares a protocol with itself less a part (SC-MAKS 4.10). Calls are the
most that language models would get; built-in agents make none. Comparisons are paired: what makes a
row hard for both cancels out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from core.agents.rosters import SHIPPED_ROSTERS
from core.debate.protocols import PROTOCOLS
from core.evaluation.datasets import get_task_rule
from core.evaluation.engine_runs import ProgressWriter, build_engine, require_weighed_protocol
from core.evaluation.evaluate import EvaluationRequest, MeasuredWay, evaluate_engine
from core.evaluation.outcomes import Outcomes
from core.evaluation.system_comparison import compare_systems, list_comparison_cells
from core.evaluation.table import MISSING_CELL, format_line, start_table
from core.llm.keys import Keys
from core.llm.rate_limit import require_used_rates
from core.pipeline.single_check import CheckRequest, plan_check
from core.runtime.errors import InputError
from core.schema.records import Plan
from core.schema.rosters import BUILT_IN_ROSTER

# What is compared; of FCR and HR ablations are expected to change more than F1 (SC-MAKS table 4).
COMPARED_FIGURES = ("balanced_accuracy", "auroc", "f1", "fcr", "hr")
SHOWN_FIGURES = {
    "balanced_accuracy": "Balanced accuracy",
    "auroc": "AUROC",
    "coverage": "Answered",
    "caar": "CAAR",
    "caar_chance": "by chance",
    "caar_all": "all agree",
    "f1": "F1",
    "fcr": "FCR",
    "hr": "HR",
}
TAKEN = {"turns": "Turns taken", "calls": "Calls at most", "seconds": "Seconds"}
SINGLE_JUDGE_WAY = MeasuredWay("single", "single")


def format_comparison(result: Mapping[str, Any]) -> str:
    """Return the result as Markdown: a summary, the protocols' figures and their comparisons."""
    source = " ".join(str(result[key]) for key in ("dataset", "task", "split") if result[key])
    golds = {"fcr": "supported", "hr": "hallucinated"}
    shares = {
        name: {"value": result["golds"].get(label, 0) / result["rows"]}
        for name, label in golds.items()
    }
    comparisons = [list_comparison_cells(one) for one in result["comparisons"]]
    lines = [
        f"{source}: {result['rows']:,} rows in {result['groups']:,} groups, seed {result['seed']}; "
        f"roster {result['roster']}, {result['debaters']} debaters",
        "",
        *start_table(["Protocol", *SHOWN_FIGURES.values(), *TAKEN.values()]),
        _format_protocol({"protocol": "the set's labels", **shares}),
        _format_protocol({"protocol": "always hallucinated", **result["always_hallucinated"]}),
        *map(_format_protocol, result["protocols"]),
        *(["", *start_table(list(comparisons[0]))] if comparisons else []),
        *(format_line(cells.values()) for cells in comparisons),
    ]
    lines += [
        f"\n{one['protocol']}: weights of answers: {one['weights']}"
        for one in result["protocols"]
        if one["weights"]
    ]
    return "\n".join(lines) + "\n"


def _format_protocol(protocol: Mapping[str, Any]) -> str:
    taken = [MISSING_CELL] * len(TAKEN)
    if calls := protocol.get("calls"):
        taken = [f"{protocol['turns']:.1f}", f"{calls['total']} ({calls['chain']} in a row)"]
        taken.append(f"{protocol['seconds']:.2f}")
    figures = (_format_figure(protocol.get(name)) for name in SHOWN_FIGURES)
    return format_line([protocol["protocol"], *figures, *taken])


def _format_figure(figure: Mapping[str, float] | None) -> str:
    if figure is None:
        return MISSING_CELL
    value, *bounds = (f"{number:.3f}" for number in figure.values())
    return f"{value} ({' to '.join(bounds)})" if bounds else value


def compare_protocols(
    order: EvaluationRequest,
    ways: Sequence[MeasuredWay],
    request: CheckRequest,
    tell: ProgressWriter,
    *,
    home: Path,
    keys: Keys,
    baseline: MeasuredWay = SINGLE_JUDGE_WAY,
    is_learned: bool = False,
) -> dict[str, Any]:
    """Measure all ways on the same rows; the baseline comes first, even if it is not listed.

    `request` names roster or model. If it `is_learned`, the weights in use apply. Raises InputError
    if a set, roster or protocol is unknown, or there are no labelled rows, and ModelError if a
    budget is spent or a service fails; finished rows are kept.
    """
    if get_task_rule(order.dataset, order.task).is_recorded:
        raise InputError(f"Expected rows that can be checked, found recorded ones: {order.task}.")
    plans = {
        way.name: plan_check(
            home, replace(request, protocol=way.protocol, options=way.options), keys
        )[0]
        for way in (baseline, *ways)
    }
    require_used_rates(plans[baseline.name].sheet)
    require_weighed_protocol(is_learned, list(plans.values()))
    engines = {
        name: build_engine(home, plan, keys, is_learned=is_learned) for name, plan in plans.items()
    }
    order = replace(order, trivial_limit=0)  # evidence is neither removed nor exchanged
    outcomes: dict[str, Outcomes] = {}
    results: dict[str, dict[str, Any]] = {}
    for name, engine in engines.items():
        tell(f"{name}, {len(results) + 1} of {len(engines)}")
        keep = partial(outcomes.__setitem__, name)
        results[name] = evaluate_engine(order, engine, tell, keep=keep)
    first, plan = results[baseline.name], plans[baseline.name]
    shared = ("dataset", "task", "split", "limit", "seed", "rows", "groups", "golds", "engine")
    return {
        **{key: first[key] for key in shared},
        "roster": plan.roster,
        "debaters": count_debaters(plan),
        "baseline": baseline.name,
        "always_hallucinated": first["trivial"]["always_hallucinated"],
        "protocols": [
            _summarize_protocol(name, result, outcomes[name], engines[name].plan)
            for name, result in results.items()
        ],
        "comparisons": [
            one
            for figure in COMPARED_FIGURES
            if figure in first["metrics"]
            for one in compare_systems(outcomes, figure, baseline=baseline.name, seed=order.seed)
        ],
    }


def count_debaters(plan: Plan) -> int:
    """Return the number of debaters in the plan's roster."""
    return len((plan.sheet or SHIPPED_ROSTERS[BUILT_IN_ROSTER]).debaters)


def _summarize_protocol(
    name: str, result: Mapping[str, Any], outcomes: Outcomes, plan: Plan
) -> dict[str, Any]:
    """Return one protocol's figures; `turns` is the mean over the rows, `seconds` the median."""
    calls = PROTOCOLS[plan.protocol].calls(count_debaters(plan), plan)
    return {
        "protocol": name,
        **{figure: result["metrics"].get(figure) for figure in SHOWN_FIGURES},
        "weights": result["weights"],
        "failed": result["failed"],
        "turns": round(sum(said.turns for said in outcomes.said) / len(outcomes.said), 2),
        "seconds": round(median(said.seconds for said in outcomes.said), 3),
        "calls": asdict(calls) | {"total": calls.total},
    }
