"""Compares protocols on the same rows, each beside a single judge: does debate help?

`evaluate --protocols colmad,colmad:rounds=1` compares ways to argue; `--against sc_maks --protocols
sc_maks:without=adversary` compares a protocol with itself less a part (SC-MAKS 4.10). Calls are the
most that language models would get; built-in agents make none. Differences are paired: each
resample of groups weighs the rows of both engines equally, so what makes a row hard for both
cancels out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from core.agents.rosters import SHIPPED_ROSTERS
from core.debate.protocols import PROTOCOLS
from core.evaluation.dataset_files import GoldRow
from core.evaluation.datasets import get_task_rule
from core.evaluation.engine_runs import (
    Engine,
    ProgressWriter,
    build_engine,
    describe_engine_weights,
    require_weighed_protocol,
)
from core.evaluation.evaluate import (
    EvaluationRequest,
    MeasuredWay,
    compute_figures,
    load_labelled_rows,
    sample_rows,
)
from core.evaluation.metrics import Figure, build_measures, estimate_figures
from core.evaluation.outcomes import Outcomes, predict_constant
from core.evaluation.runner import open_row_runner
from core.evaluation.table import MISSING_CELL, format_line, start_table
from core.learning.metrics import Measure
from core.llm.keys import Keys
from core.llm.rate_limit import require_used_rates
from core.pipeline.single_check import CheckRequest, plan_check
from core.runtime.errors import InputError
from core.schema.records import Plan
from core.schema.rosters import BUILT_IN_ROSTER

COMPARED_FIGURES = ("balanced_accuracy", "auroc")
ABLATION_FIGURES = ("f1", "fcr", "hr")  # what ablations are expected to change (SC-MAKS table 4)
DECIDING_FIGURE = "balanced_accuracy"
BASELINE_TITLES = {"single": "a single judge"}
SINGLE_JUDGE_WAY = MeasuredWay("single", "single")
AGENT_FIGURES = ("caar", "caar_chance", "caar_all", *ABLATION_FIGURES)
GOLD_LABELS = ("supported", "hallucinated", "unclear")
_Measured = tuple[Outcomes, str | None]  # outcomes of a way, and its weights, if any


@dataclass(frozen=True)
class PairedComparison:
    """The differences of one engine's figures from another's, with 95 % intervals.

    `righted` rows are right here and wrong there, `wronged` the reverse. `words` interpret the
    interval of the balanced accuracy, if the set has both labels.
    """

    figures: dict[str, Figure]
    righted: int
    wronged: int
    is_same: bool = False

    @property
    def words(self) -> str:
        """The result of the comparison in words."""
        figure = self.figures.get(DECIDING_FIGURE)
        if self.is_same:
            return "the same answer on every row"
        if not figure or "low" not in figure or figure["low"] <= 0 <= figure["high"]:
            return "no difference shown"
        return "better" if figure["low"] > 0 else "worse"


def compare_outcomes(found: Outcomes, other: Outcomes, seed: int) -> PairedComparison:
    """Return the comparison of `found` with `other`.

    Raises ValueError if they do not hold the same rows in the same order.
    """
    if [row.id for row in found.rows] != [row.id for row in other.rows]:
        raise ValueError("paired figures need the same rows")
    found_measures, other_measures = build_measures(found), build_measures(other)
    differences = {
        name: _subtract_measures(found_measures[name], other_measures[name])
        for name in (*COMPARED_FIGURES, *ABLATION_FIGURES)
        if name in found_measures and name in other_measures
    }
    right, other_right = found.right, other.right
    return PairedComparison(
        estimate_figures(differences, found.groups, seed),
        int((right & ~other_right).sum()),
        int((~right & other_right).sum()),
        found.told == other.told,
    )


def _subtract_measures(one: Measure, other: Measure) -> Measure:
    return lambda weights: one(weights) - other(weights)


def format_comparison(result: Mapping[str, Any]) -> str:
    """Return the result as Markdown: a summary, and a row for each protocol in two tables."""
    source = " ".join(str(result[key]) for key in ("dataset", "task", "split") if result[key])
    baseline = str(result["baseline"])
    weighted = [one for one in result["protocols"] if one["weights"]]
    lines = [
        f"{source}: {result['rows']:,} rows in {result['groups']:,} groups, seed {result['seed']}; "
        f"roster {result['roster']}, {result['debaters']} debaters",
        "",
        *_format_verdict_table(result, BASELINE_TITLES.get(baseline, baseline)),
        "",
        *_format_agent_table(result, BASELINE_TITLES.get(baseline, baseline)),
        *([""] if weighted else []),
        *(f"{one['protocol']}: weights of answers: {one['weights']}" for one in weighted),
    ]
    return "\n".join(lines) + "\n"


def _format_verdict_table(result: Mapping[str, Any], baseline: str) -> list[str]:
    titles = (
        "Protocol", "Balanced accuracy", "AUROC", "Answered", "Turns taken", "Calls at most",
        "Seconds", f"Against {baseline}", "Righted / wronged",
    )  # fmt: skip
    constant = [
        _format_figure(result["always_hallucinated"].get(name)) for name in COMPARED_FIGURES
    ]
    return [
        *start_table(titles),
        format_line(["always hallucinated", *constant, *[MISSING_CELL] * 6]),
        *(format_line(_build_verdict_cells(protocol)) for protocol in result["protocols"]),
    ]


def _format_agent_table(result: Mapping[str, Any], baseline: str) -> list[str]:
    """Return the table of CAAR, FCR, HR (SC-MAKS 4.7), with differences to the baseline (4.10)."""
    titles = (
        "Protocol", "CAAR", "by chance", "all agree", "F1", "FCR", "HR",
        *(f"{name} less that of {baseline}" for name in ("F1", "FCR", "HR")),
    )  # fmt: skip
    golds, rows = result["golds"], result["rows"]
    shares = [f"{golds[label] / rows:.3f}" for label in ("supported", "hallucinated")]
    constant = [
        _format_figure(result["always_hallucinated"].get(name)) for name in ABLATION_FIGURES
    ]
    return [
        *start_table(titles),
        format_line(["the set's labels", *[MISSING_CELL] * 4, *shares, *[MISSING_CELL] * 3]),
        format_line(["always hallucinated", *[MISSING_CELL] * 3, *constant, *[MISSING_CELL] * 3]),
        *(format_line(_build_agent_cells(protocol)) for protocol in result["protocols"]),
    ]


def _build_verdict_cells(protocol: Mapping[str, Any]) -> list[str]:
    paired, calls = protocol["against"], protocol["calls"]
    shown = ["the baseline", MISSING_CELL]
    if paired:
        figure = paired.get(COMPARED_FIGURES[0])
        amount = f": {_format_figure(figure, signed=True)}" if figure else ""
        shown = [f"{paired['words']}{amount}", f"{paired['righted']} / {paired['wronged']}"]
    return [
        str(protocol["protocol"]),
        *(_format_figure(protocol.get(name)) for name in COMPARED_FIGURES),
        f"{protocol['coverage']['value']:.0%}",
        f"{protocol['turns']:.1f}",
        f"{calls['total']} ({calls['chain']} in a row)",
        f"{protocol['seconds']:.2f}",
        *shown,
    ]


def _build_agent_cells(protocol: Mapping[str, Any]) -> list[str]:
    difference = protocol["against"] or {}
    return [
        str(protocol["protocol"]),
        *(_format_figure(protocol.get(name)) for name in AGENT_FIGURES),
        *(_format_figure(difference.get(name), signed=True) for name in ABLATION_FIGURES),
    ]


def _format_figure(figure: Mapping[str, float] | None, *, signed: bool = False) -> str:
    if figure is None:
        return MISSING_CELL
    form = "{:+.3f}" if signed else "{:.3f}"
    value, *bounds = (form.format(number) for number in figure.values())
    return f"{value} ({' to '.join(bounds)})" if bounds else value


@dataclass(frozen=True)
class ProtocolComparison:
    """What to compare: the rows, the ways, and the request that names roster or model.

    Every way is compared with the `baseline`. If `is_learned`, the weights in use apply.
    """

    order: EvaluationRequest
    ways: tuple[MeasuredWay, ...]
    request: CheckRequest
    baseline: MeasuredWay = SINGLE_JUDGE_WAY
    is_learned: bool = False


def compare_protocols(
    wanted: ProtocolComparison, home: Path, keys: Keys, tell: ProgressWriter
) -> dict[str, Any]:
    """Measure all protocols on the same rows; the baseline comes first, even if it is not listed.

    Raises InputError if a set, roster or protocol is unknown, or there are no labelled rows, and
    ModelError if a budget is spent or a service fails; finished rows are kept.
    """
    order = wanted.order
    if get_task_rule(order.dataset, order.task).is_recorded:
        raise InputError(f"Expected rows that can be checked, found recorded ones: {order.task}.")
    rows = sample_rows(load_labelled_rows(order), order.limit, order.seed)
    baseline = wanted.baseline
    ways = [baseline, *(way for way in wanted.ways if way.name != baseline.name)]
    plans = {way.name: plan_check(home, _make_request(wanted, way), keys)[0] for way in ways}
    require_used_rates(plans[baseline.name].sheet)
    require_weighed_protocol(wanted.is_learned, list(plans.values()))
    engines = {
        name: build_engine(home, plan, keys, is_learned=wanted.is_learned)
        for name, plan in plans.items()
    }
    measured = {
        name: _run_engine(engine, rows, order, tell, name) for name, engine in engines.items()
    }
    plan = engines[baseline.name].plan
    constant = compute_figures(predict_constant("hallucinated", rows), order.seed)
    return {
        **{key: getattr(order, key) for key in ("dataset", "task", "split", "limit", "seed")},
        "rows": len(rows),
        "groups": int(measured[baseline.name][0].groups.max()) + 1,
        "golds": {label: sum(row.label == label for row in rows) for label in GOLD_LABELS},
        "roster": plan.roster,
        "debaters": count_debaters(plan),
        "baseline": baseline.name,
        "engine": engines[baseline.name].id,
        "always_hallucinated": {
            name: constant[name]
            for name in (*COMPARED_FIGURES, *ABLATION_FIGURES)
            if name in constant
        },
        "protocols": [
            _summarize_protocol(name, measured, baseline.name, engine.plan, order.seed)
            for name, engine in engines.items()
        ],
    }


def _make_request(wanted: ProtocolComparison, way: MeasuredWay) -> CheckRequest:
    return replace(wanted.request, protocol=way.protocol, options=way.options)


def count_debaters(plan: Plan) -> int:
    """Return the number of debaters in the plan's roster."""
    return len((plan.sheet or SHIPPED_ROSTERS[BUILT_IN_ROSTER]).debaters)


def _run_engine(
    engine: Engine,
    rows: Sequence[GoldRow],
    order: EvaluationRequest,
    tell: ProgressWriter,
    name: str,
) -> _Measured:
    task = get_task_rule(order.dataset, order.task).task
    weights, set_name = describe_engine_weights(engine), f"{order.dataset}-{task or 'all'}"
    with open_row_runner(engine, set_name, tell, order.runner) as runs:
        return Outcomes(rows, runs.predictions(rows, name)), weights


def _summarize_protocol(
    name: str, checked: Mapping[str, _Measured], baseline: str, plan: Plan, seed: int
) -> dict[str, Any]:
    """Return one protocol's figures; `turns` is the mean over the rows, `seconds` the median."""
    outcomes, weights = checked[name]
    by_name = compute_figures(outcomes, seed)
    calls = PROTOCOLS[plan.protocol].calls(count_debaters(plan), plan)
    difference = (
        None if name == baseline else compare_outcomes(outcomes, checked[baseline][0], seed)
    )
    count = len(outcomes.rows)
    return {
        "protocol": name,
        **{
            figure: by_name.get(figure)
            for figure in (*COMPARED_FIGURES, "coverage", *AGENT_FIGURES)
        },
        "weights": weights,
        "failed": sum(prediction.is_failure for prediction in outcomes.said),
        "turns": round(sum(prediction.turns for prediction in outcomes.said) / count, 2),
        "seconds": round(median(prediction.seconds for prediction in outcomes.said), 3),
        "calls": asdict(calls) | {"total": calls.total},
        "against": difference
        and difference.figures
        | {name: getattr(difference, name) for name in ("righted", "wronged", "words")},
    }
