"""Compares protocols on the same rows, each beside a single judge: does debate help?

`python -m core.evaluation.protocols --path DATA --dataset NAME` prints Markdown tables. What is
done is kept in the home, row by row, so that a command that was stopped goes on. `--protocols
colmad,colmad:rounds=1` compares options, `--against sc_maks --protocols sc_maks:without=adversary`
a protocol with itself less a part (SC-MAKS 4.10). Calls are those that language models would be
asked for at most; built-in agents make none. A difference is paired: a draw of groups weighs both
engines' rows alike, so what makes a row hard for both cancels out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from core.agents.rosters import SHIPPED
from core.debate.protocols import PROTOCOLS
from core.evaluation.datasets import rule_of
from core.evaluation.engine_runs import (
    Engine,
    Tell,
    add_weights,
    engine_of,
    opened_runs,
    require_weighed,
)
from core.evaluation.evaluate import (
    EvaluationOrder,
    MeasuredWay,
    figures_of,
    labelled_rows,
    sampled,
    ways_of,
)
from core.evaluation.files import GoldRow
from core.evaluation.metrics import Figure, figures, measures
from core.evaluation.outcomes import Outcomes, always
from core.learning.metrics import Measure
from core.llm.keys import Keys, keys_here
from core.pipeline.streaming_input import Request, planned
from core.runtime.config import PROJECT_ROOT, home_from
from core.runtime.errors import InputError, ModelError, ReviewError
from core.schema.records import Plan
from core.schema.rosters import BUILT_IN, FOR_READERS

COMPARED = ("balanced_accuracy", "auroc")
BESIDE = ("f1", "fcr", "hr")  # what ablations are expected to move (SC-MAKS table 4)
DECIDES = "balanced_accuracy"


@dataclass(frozen=True)
class Paired:
    """One engine's figures less the other's, each with its 95 % interval.

    `righted` rows are right here and wrong there, `wronged` the other way round. `words` say what
    the interval of the balanced accuracy shows; where a set has one label only, of nothing.
    """

    figures: dict[str, Figure]
    righted: int
    wronged: int
    is_same: bool = False

    @property
    def words(self) -> str:
        """What the comparison shows, in words for people."""
        figure = self.figures.get(DECIDES)
        if self.is_same:
            return "the same answer on every row"
        if figure is None or figure["low"] <= 0 <= figure["high"]:
            return "no difference shown"
        return "better" if figure["low"] > 0 else "worse"


def against(found: Outcomes, other: Outcomes, seed: int) -> Paired:
    """`found` beside `other`.

    Raises ValueError: they do not hold the same rows in the same order.
    """
    if [row.id for row in found.rows] != [row.id for row in other.rows]:
        raise ValueError("paired figures need the same rows")
    here, there = measures(found), measures(other)
    named = {
        name: _difference(here[name], there[name])
        for name in (*COMPARED, *BESIDE)
        if name in here and name in there
    }
    right, right_there = found.right, other.right
    return Paired(
        figures(named, found.groups, seed),
        int((right & ~right_there).sum()),
        int((~right & right_there).sum()),
        found.told == other.told,
    )


def _difference(one: Measure, other: Measure) -> Measure:
    return lambda weights: one(weights) - other(weights)


NOT_THERE = "–"
TITLES = {"single": "a single judge"}


def as_table(result: Mapping[str, Any]) -> str:
    """The result as Markdown: what was measured, and a row for each protocol in two tables."""
    what = " ".join(str(result[key]) for key in ("dataset", "task", "split") if result[key])
    baseline = str(result["baseline"])
    weighed = [one for one in result["protocols"] if one["weights"]]
    lines = [
        f"{what}: {result['rows']:,} rows in {result['groups']:,} groups, seed {result['seed']}; "
        f"roster {result['roster']}, {result['debaters']} debaters",
        "",
        *_verdicts(result, TITLES.get(baseline, baseline)),
        "",
        *_agents(result, TITLES.get(baseline, baseline)),
        *([""] if weighed else []),
        *(f"{one['protocol']}: weights of answers: {one['weights']}" for one in weighed),
    ]
    return "\n".join(lines) + "\n"


def _verdicts(result: Mapping[str, Any], baseline: str) -> list[str]:
    head = (
        "Protocol", "Balanced accuracy", "AUROC", "Answered", "Turns taken", "Calls at most",
        "Seconds", f"Against {baseline}", "Righted / wronged",
    )  # fmt: skip
    nothing = [_figure(result["always_hallucinated"].get(name)) for name in COMPARED]
    return [
        *_head(head),
        _line(["always hallucinated", *nothing, *[NOT_THERE] * 6]),
        *(_line(_cells(one)) for one in result["protocols"]),
    ]


def _agents(result: Mapping[str, Any], baseline: str) -> list[str]:
    """CAAR, FCR and HR (SC-MAKS 4.7), and by how much they differ from the baseline's (4.10)."""
    head = (
        "Protocol", "CAAR", "by chance", "all agree", "F1", "FCR", "HR",
        *(f"{name} less that of {baseline}" for name in ("F1", "FCR", "HR")),
    )  # fmt: skip
    golds, rows = result["golds"], result["rows"]
    shares = [f"{golds[label] / rows:.3f}" for label in ("supported", "hallucinated")]
    nothing = [_figure(result["always_hallucinated"].get(name)) for name in BESIDE]
    return [
        *_head(head),
        _line(["the set's labels", *[NOT_THERE] * 4, *shares, *[NOT_THERE] * 3]),
        _line(["always hallucinated", *[NOT_THERE] * 3, *nothing, *[NOT_THERE] * 3]),
        *(_line(_agent_cells(one)) for one in result["protocols"]),
    ]


def _cells(one: Mapping[str, Any]) -> list[str]:
    beside, calls = one["against"], one["calls"]
    shown = ["the baseline", NOT_THERE]
    if beside:
        figure = beside.get(COMPARED[0])
        by = f": {_figure(figure, signed=True)}" if figure else ""
        shown = [f"{beside['words']}{by}", f"{beside['righted']} / {beside['wronged']}"]
    return [
        str(one["protocol"]),
        *(_figure(one.get(name)) for name in COMPARED),
        f"{one['coverage']['value']:.0%}",
        f"{one['turns']:.1f}",
        f"{calls['total']} ({calls['chain']} in a row)",
        f"{one['seconds']:.2f}",
        *shown,
    ]


def _agent_cells(one: Mapping[str, Any]) -> list[str]:
    beside = one["against"] or {}
    return [
        str(one["protocol"]),
        *(_figure(one.get(name)) for name in ("caar", "caar_chance", "caar_all", *BESIDE)),
        *(_figure(beside.get(name), signed=True) for name in BESIDE),
    ]


def _figure(figure: Mapping[str, float] | None, *, signed: bool = False) -> str:
    if figure is None:
        return NOT_THERE
    form = "{:+.3f}" if signed else "{:.3f}"
    value, low, high = (form.format(figure[key]) for key in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def _head(titles: Sequence[str]) -> list[str]:
    return [_line(titles), _line(["---"] * len(titles))]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


SINGLE = MeasuredWay("single", "single")
OF_AGENTS = ("caar", "caar_chance", "caar_all", *BESIDE)
BAD_INPUT = 2
LABELS = ("supported", "hallucinated", "unclear")


@dataclass(frozen=True)
class ProtocolComparison:
    """Which rows, which ways to argue, and who plays: a roster, or one model in every seat.

    Every way is laid beside the `baseline`. `is_learned`: answers count by the weights in use.
    """

    order: EvaluationOrder
    ways: tuple[MeasuredWay, ...]
    roster: str = BUILT_IN
    model: str = ""
    api_base: str = ""
    token_cap: int = 0
    baseline: MeasuredWay = SINGLE
    is_learned: bool = False

    def request(self, way: MeasuredWay) -> Request:
        """The request that `check` would be given."""
        own = {name: getattr(self, name) for name in ("roster", "model", "api_base", "token_cap")}
        return Request("", protocol=way.protocol, options=way.options, **own)


def compare(wanted: ProtocolComparison, home: Path, keys: Keys, tell: Tell) -> dict[str, Any]:
    """All protocols on the same rows; the baseline is the first, also where it is not among them.

    Raises InputError: a set, roster or protocol is not known, or there are no labelled rows. Raises
    ModelError: a budget is spent or a service fails; what is done is kept.
    """
    order = wanted.order
    if rule_of(order.dataset, order.task).is_recorded:
        raise InputError(f"Expected rows that can be checked, found recorded ones: {order.task}.")
    rows = sampled(labelled_rows(order), order.limit, order.seed)
    first = wanted.baseline
    ways = [first, *(way for way in wanted.ways if way.name != first.name)]
    plans = {way.name: planned(home, wanted.request(way), keys)[0] for way in ways}
    require_weighed(wanted.is_learned, list(plans.values()))
    engines = {
        name: engine_of(home, plan, keys, is_learned=wanted.is_learned)
        for name, plan in plans.items()
    }
    found = {name: _checked(engine, rows, order, tell, name) for name, engine in engines.items()}
    plan = engines[first.name].plan
    nothing = figures_of(always("hallucinated", rows), order.seed)
    return {
        **{key: getattr(order, key) for key in ("dataset", "task", "split", "limit", "seed")},
        "rows": len(rows),
        "groups": int(found[first.name][0].groups.max()) + 1,
        "golds": {label: sum(row.label == label for row in rows) for label in LABELS},
        "roster": plan.roster,
        "debaters": debaters_of(plan),
        "baseline": first.name,
        "engine": engines[first.name].id,
        "always_hallucinated": {
            name: nothing[name] for name in (*COMPARED, *BESIDE) if name in nothing
        },
        "protocols": [
            _measured(way.name, found, first.name, engines[way.name].plan, order.seed)
            for way in ways
        ],
    }  # fmt: skip


def debaters_of(plan: Plan) -> int:
    """How many debaters the plan's roster seats."""
    return len((plan.sheet or SHIPPED[BUILT_IN]).debaters)


_Checked = tuple[Outcomes, str | None]  # what a way says of the rows, by which weights, if by any


def _checked(
    engine: Engine, rows: Sequence[GoldRow], order: EvaluationOrder, tell: Tell, name: str
) -> _Checked:
    task = rule_of(order.dataset, order.task).task
    with opened_runs(engine, f"{order.dataset}-{task or 'all'}", tell) as runs:
        weights = runs.weights()
        return Outcomes(rows, runs.predictions(rows, name)), weights


def _measured(
    name: str, checked: Mapping[str, _Checked], baseline: str, plan: Plan, seed: int
) -> dict[str, Any]:
    """One protocol's figures; `turns` is a mean over the rows, `seconds` a median."""
    own, weights = checked[name]
    named = figures_of(own, seed)
    calls = PROTOCOLS[plan.protocol].calls(debaters_of(plan), plan)
    beside = None if name == baseline else against(own, checked[baseline][0], seed)
    count = len(own.rows)
    return {
        "protocol": name,
        **{figure: named.get(figure) for figure in (*COMPARED, "coverage", *OF_AGENTS)},
        "weights": weights,
        "failed": sum(said.is_failure for said in own.said),
        "turns": round(sum(said.turns for said in own.said) / count, 2),
        "seconds": round(median(said.seconds for said in own.said), 3),
        "calls": asdict(calls) | {"total": calls.total},
        "against": beside
        and beside.figures
        | {name: getattr(beside, name) for name in ("righted", "wronged", "words")},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a service failed or it was stopped, 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="python -m core.evaluation.protocols",
        description=(__doc__ or "").partition("\n\n")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for name, words in (
        ("--path", "the folder that holds the sets' folders"), ("--dataset", "the set's name"),
    ):  # fmt: skip
        parser.add_argument(name, required=True, help=words)
    parser.add_argument("--task", help="which task of the set (default: its first)")
    parser.add_argument("--split", help="as `evaluate` takes it")
    parser.add_argument("--limit", type=int, help="a seeded sample, each label with its share")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--protocols",
        default="",
        help="default: all that the roster can do; an option as in colmad:rounds=1 or copmad:swap",
    )
    parser.add_argument(
        "--against", default=SINGLE.name, metavar="WAY", help="the way that all are laid beside"
    )
    add_weights(parser)
    parser.add_argument("--roster", default=BUILT_IN)
    parser.add_argument("--model", default="", help="a model for every speaking role")
    parser.add_argument("--api-base", default="")
    parser.add_argument("--token-cap", type=int, default=0)
    parser.add_argument("--home", help="where what is done is kept")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        wanted = _wanted(given)
        home = home_from(os.environ, given.home)
        needs_keys = wanted.model or wanted.roster != BUILT_IN
        keys = keys_here(os.environ, PROJECT_ROOT) if needs_keys else Keys({})
        result = compare(wanted, home, keys, _say)
    except ModelError as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        _say("Stopped. What is done is kept; the same command goes on from there.")
        return 1
    except ReviewError as error:
        _say(str(error))
        return BAD_INPUT
    sys.stdout.write(json.dumps(result) + "\n" if given.json else as_table(result))
    return 0


def _wanted(given: argparse.Namespace) -> ProtocolComparison:
    """The comparison that the arguments ask for."""
    is_built_in = not given.model and given.roster == BUILT_IN
    names = ",".join(FOR_READERS if is_built_in else PROTOCOLS)
    ways, (baseline, *others) = ways_of(given.protocols or names), ways_of(given.against)
    if others:
        raise InputError(
            f"Expected one way in --against, found {1 + len(others)}; leave the rest out."
        )
    for option, least in (("limit", 1), ("seed", 0), ("token_cap", 0)):
        if (number := getattr(given, option)) is not None and number < least:
            name = option.replace("_", "-")
            raise InputError(f"Expected --{name} from {least} on, found {number}.")
    order = EvaluationOrder(
        given.dataset, Path(given.path), given.task, given.split, given.limit, given.seed
    )  # fmt: skip
    who = (given.roster, given.model, given.api_base, given.token_cap)
    return ProtocolComparison(order, ways, *who, baseline, given.weights == "learned")


def _say(words: str) -> None:
    sys.stderr.write(" ".join(words.split()) + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
