"""The results of a benchmark: each system's figures, comparisons, kinds of rows, the whole record.

Systems are measured on the rows that all have answered, beside answers that need no reading.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from core.evaluation.benchmarks import (
    BenchmarkCell,
    count_versions,
    load_outcomes,
    match_outcomes,
    read_spec,
    require_benchmark,
)
from core.evaluation.dataset_files import GoldRow
from core.evaluation.evaluate import Figures, build_trivial_outcomes, compute_figures
from core.evaluation.metrics import estimate_design_effect
from core.evaluation.outcomes import Outcomes, Prediction
from core.evaluation.runner import get_failure
from core.evaluation.system_comparison import SystemComparison, compare_systems
from core.learning.metrics import BOOTSTRAP_RESAMPLES
from core.learning.track_record import WilsonShare
from core.store import Store
from core.store.benchmarks import Benchmark, CellTotals

FIGURE_SEED = 0
NOTHING_USED = CellTotals()
ALL_MARKED = "mark_all"
EARLIER = "the other result"
AnswerKind = Literal["wrong", "unclear", "failed", "refused", "right"]
DIMENSIONS: Mapping[str, Callable[[GoldRow], str]] = {
    "Language": lambda row: row.language,
    "Category": lambda row: row.category,
    "Right answer": lambda row: row.label or "",
    "Sources": lambda row: "images" if row.images else "text" if row.documents else "none",
}


@dataclass(frozen=True)
class MeasuredSystem:
    """A system's answers with their figures, and what its cell took; a trivial one has no cell."""

    name: str
    outcomes: Outcomes
    figures: Figures
    cell: BenchmarkCell | None = None
    totals: CellTotals = NOTHING_USED


@dataclass(frozen=True)
class MeasuredBenchmark:
    """The systems that were measured, and the trivial ones, all on the same rows."""

    systems: tuple[MeasuredSystem, ...]
    trivial: tuple[MeasuredSystem, ...]

    @property
    def rows(self) -> Sequence[GoldRow]:
        """The rows that all systems have answered."""
        return self.systems[0].outcomes.rows

    @property
    def main_figure(self) -> str:
        """The figure that systems are compared by."""
        return choose_main_figure(self.systems[0].outcomes)

    @cached_property
    def comparisons(self) -> list[SystemComparison]:
        """Each pair of measured systems."""
        outcomes = {system.name: system.outcomes for system in self.systems}
        return compare_systems(outcomes, self.main_figure, seed=FIGURE_SEED)

    @property
    def best(self) -> MeasuredSystem | None:
        """The system that is better than all others by more than chance, if there is one."""
        wins = [one.winner for one in self.comparisons]
        others = len(self.systems) - 1
        return next((s for s in self.systems if others and wins.count(s.name) == others), None)


def choose_main_figure(outcomes: Outcomes) -> str:
    """Return the figure that systems are compared by: it takes rows of both labels."""
    return "balanced_accuracy" if outcomes.has_both else "accuracy"


def measure_benchmark(
    store: Store,
    benchmark_id: str,
    name_cell: Callable[[BenchmarkCell], str],
    draws: int = BOOTSTRAP_RESAMPLES,
    wanted: Collection[str] | None = None,
) -> MeasuredBenchmark | None:
    """Return the figures so far; None if no row was answered by all systems.

    `draws` and `wanted` are those of `compute_figures`.
    """
    cells = read_spec(require_benchmark(store, benchmark_id)).cells
    totals = store.benchmarks.totals(benchmark_id)
    outcomes = load_outcomes(store, benchmark_id)
    rows = outcomes[0].rows
    if not rows:
        return None

    def measure(name: str, own: Outcomes, *of_cell: Any) -> MeasuredSystem:
        figures = compute_figures(own, FIGURE_SEED, draws, wanted)
        return MeasuredSystem(name, own, figures, *of_cell)

    systems = [
        measure(name_cell(cell), own, cell, totals[number])
        for number, (cell, own) in enumerate(zip(cells, outcomes, strict=True))
    ]
    trivial = [
        measure(name.replace("_", " ").capitalize(), own)
        for name, own in build_trivial_outcomes(rows).items()
        if name != ALL_MARKED or any(row.spans for row in rows)
    ]
    return MeasuredBenchmark(tuple(systems), tuple(trivial))


def compare_benchmarks(now: MeasuredBenchmark, then: MeasuredBenchmark) -> list[SystemComparison]:
    """Return each system that both have measured against itself, on the rows that both have.

    What is right is what the rows say now.
    """
    earlier = {system.name: system.outcomes for system in then.systems}
    compared: list[SystemComparison] = []
    for system in now.systems:
        if system.name in earlier:
            own, other = match_outcomes(system.outcomes, earlier[system.name])
            pair = {system.name: own, EARLIER: Outcomes(own.rows, other.said)}
            if own.rows:
                compared += compare_systems(pair, choose_main_figure(own), seed=FIGURE_SEED)
    return compared


class KindOfRows(NamedTuple):
    """Rows that are alike in one way, and how often each system is right on them."""

    dimension: str
    kind: str
    right: dict[str, WilsonShare]


def break_down(measured: MeasuredBenchmark) -> Iterator[KindOfRows]:
    """Yield the kinds of each dimension in which rows differ, the most frequent first."""
    right = {system.name: system.outcomes.right for system in measured.systems}
    groups = measured.systems[0].outcomes.groups
    for name, read in DIMENSIONS.items():
        values = np.array([read(row) for row in measured.rows])
        kinds, counts = np.unique(values, return_counts=True)
        for place in np.argsort(-counts, kind="stable") if len(kinds) > 1 else ():
            inside = values == kinds[place]
            shares = {
                system: WilsonShare(
                    int(own[inside].sum()),
                    int(counts[place]),
                    estimate_design_effect(own[inside], groups[inside]),
                )
                for system, own in right.items()
            }
            yield KindOfRows(name, str(kinds[place]), shares)


def sort_answers(outcomes: Outcomes) -> dict[AnswerKind, list[int]]:
    """Return the places of the answers of each kind; refused rows would be refused again."""
    kinds: dict[AnswerKind, list[int]] = {kind: [] for kind in get_args(AnswerKind)}
    for place, (said, is_right) in enumerate(zip(outcomes.said, outcomes.right, strict=True)):
        kind: AnswerKind = "unclear" if said.label == "unclear" else "wrong"
        if said.is_failure:
            kind = "failed" if get_failure(said) else "refused"
        kinds["right" if is_right else kind].append(place)
    return kinds


def list_marked_words(row: GoldRow, said: Prediction) -> str:
    """Return the words that a person would see marked in the response."""
    return "; ".join(f"“{row.response[span.start : span.end]}”" for span in said.shown)


def list_answers(measured: MeasuredBenchmark) -> Iterator[dict[str, Any]]:
    """Yield a line for each row and system, as files hold it."""
    for system in measured.systems:
        for row, said in zip(system.outcomes.rows, system.outcomes.said, strict=True):
            yield {
                "System": system.name, "Row": row.id, "Place": row.place, "Response": row.response,
                "Right answer": row.label, "It says": said.label, "p hallucinated": said.p,
                "Marked": list_marked_words(row, said), "Why": said.reason, "Cause": said.cause,
                "Seconds": said.seconds, "Calls": said.calls, "Tokens": said.tokens,
                "US$": said.cost, "Language": row.language, "Category": row.category,
            }  # fmt: skip


def describe_results(benchmark: Benchmark, measured: MeasuredBenchmark) -> dict[str, Any]:
    """Return the benchmark as a record: conditions, all figures, every statistic, every answer."""
    return {
        "name": benchmark.name,
        "created_at": benchmark.created_at,
        "repeats": benchmark.repeats,
        "spec": json.loads(benchmark.spec),
        "card": benchmark.card,
        "versions": count_versions(benchmark),
        "systems": [
            {
                "system": one.name,
                "rows": len(measured.rows),
                "figures": one.figures,
                **asdict(one.totals),
            }
            for one in (*measured.systems, *measured.trivial)
        ],
        "comparisons": [asdict(one) for one in measured.comparisons],
        "answers": list(list_answers(measured)),
    }
