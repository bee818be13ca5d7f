"""Measure an engine on a labelled set, beside trivial answers, with intervals.

`claim_only` is the same engine without the evidence; `other_evidence` is the same engine with the
documents of another row, which shows how much the wording alone reveals. Both run on a seeded
sample. Intervals resample groups of rows; `core/evaluation/metrics.py` defines each figure. A task
whose rows are recorded verdicts of other detectors is measured on these verdicts.

A `MeasuredWay` is a protocol with options as named on the command line: `colmad:rounds=1` is ColMAD
with one round, `copmad:swap` CopMAD judged with sides swapped too, `sc_maks:without=adversary`
SC-MAKS without its attacks. Options that are not named keep the protocol's defaults.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.debate.protocols import PROTOCOLS
from core.evaluation.dataset_files import GoldRow, normalize_key
from core.evaluation.datasets import get_task_rule, load_dataset_rows
from core.evaluation.engine_runs import (
    Engine,
    ProgressWriter,
    describe_engine_weights,
    describe_machine,
)
from core.evaluation.metrics import (
    Figure,
    build_measures,
    estimate_calibrated_ece,
    estimate_figures,
    list_share_rows,
)
from core.evaluation.outcomes import (
    Outcomes,
    build_recorded_outcomes,
    compute_dataset_digest,
    predict_all_marked,
    predict_constant,
)
from core.evaluation.runner import DEFAULT_RUNNER, RunnerOptions, get_failure, open_row_runner
from core.learning.metrics import BOOTSTRAP_RESAMPLES
from core.runtime.errors import InputError
from core.schema.events import AUDIT
from core.schema.rosters import (
    ABLATION_PARTS,
    DEBATE_PROTOCOL_NAMES,
    DEFAULT_OPTIONS,
    JUDGE_STYLES,
    MAX_ROUNDS,
    DebateOptions,
)

NUMBER_OPTIONS = ("rounds", "samples", "seed")
WORD_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "style": JUDGE_STYLES, "then": DEBATE_PROTOCOL_NAMES, "without": ABLATION_PARTS,
}  # fmt: skip
MAX_DIGITS = len(str(MAX_ROUNDS))
TRIVIAL_ROWS = 200
RECORDED_ROSTER = "recorded"  # the roster of results on verdicts that a set records
Figures = dict[str, Figure]


@dataclass(frozen=True)
class MeasuredWay:
    """A protocol with options to measure; `name` is the text that asked for it."""

    name: str
    protocol: str
    options: DebateOptions = DEFAULT_OPTIONS


def parse_ways(text: str) -> tuple[MeasuredWay, ...]:
    """Parse a comma-separated list of ways; repeated ones are dropped.

    Raises InputError if a protocol, an option or its value is unknown.
    """
    named = dict.fromkeys(part.strip() for part in text.split(","))
    return tuple(_parse_way(name) for name in named)


def get_way(name: str) -> MeasuredWay:
    """Return the way of that name, the audit included. Raises what `parse_ways` does."""
    return MeasuredWay(AUDIT, AUDIT) if name == AUDIT else _parse_way(name)


def _parse_way(name: str) -> MeasuredWay:
    protocol, *option_texts = name.split(":")
    if protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise InputError(f"Expected protocols of {known}; found “{protocol[:80]}”.")
    options = DEFAULT_OPTIONS
    for option_text in option_texts:
        key, _, value = option_text.partition("=")
        options = replace(options, **_parse_option(key, value))
    return MeasuredWay(name, protocol, options)


def _parse_option(key: str, value: str) -> dict[str, Any]:
    if key == "swap" and not value:
        return {"is_swapped": True}
    is_number = value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS
    if key in NUMBER_OPTIONS and is_number and 1 <= int(value) <= MAX_ROUNDS:
        return {key: int(value)}
    if key in WORD_OPTIONS and value in WORD_OPTIONS[key]:
        return {key: value}
    raise InputError(
        "Expected an option such as rounds=1, samples=5 (at most "
        f"{MAX_ROUNDS}), style=thought, then=ceda, without=adversary or swap, found "
        f"“{key[:40]}={value[:40]}”."
    )


def sample_rows(rows: Sequence[GoldRow], limit: int | None, seed: int) -> list[GoldRow]:
    """Return at most `limit` rows, stratified by label, in the set's order.

    Shares are rounded so that they add up. Each label present gets at least one row, at the cost of
    the label with most rows, unless there are more labels than rows to choose. The same rows and
    seed always give the same sample.
    """
    if limit is None or limit >= len(rows):
        return list(rows)
    positions: dict[str, list[int]] = {}
    for position, row in enumerate(rows):
        positions.setdefault(row.label or "", []).append(position)
    chosen: list[int] = []
    sizes = {label: len(places) for label, places in positions.items()}
    for label, count in _allot_rows(sizes, limit):
        chosen += random.Random(f"{seed} {label}").sample(positions[label], count)
    return [rows[position] for position in sorted(chosen)]


def _allot_rows(sizes: dict[str, int], limit: int) -> list[tuple[str, int]]:
    total = sum(sizes.values())
    shares = {name: n * limit / total for name, n in sorted(sizes.items())}
    counts = {name: int(share) for name, share in shares.items()}
    by_remainder = sorted(
        shares, key=lambda name: (counts[name] > 0, counts[name] - shares[name], name)
    )
    for name in by_remainder[: limit - sum(counts.values())]:
        counts[name] += 1
    for name in [label for label, count in counts.items() if not count]:
        largest = max(counts, key=lambda label: counts[label])
        if counts[largest] > 1:
            counts[largest], counts[name] = counts[largest] - 1, 1
    return list(counts.items())


def remove_evidence(rows: Sequence[GoldRow]) -> list[GoldRow]:
    """Return the same rows without documents and images."""
    return [replace(row, documents=(), images=()) for row in rows]


def exchange_evidence(
    rows: Sequence[GoldRow], donors: Sequence[GoldRow], seed: int
) -> list[GoldRow]:
    """Return the same rows, each with the documents of a row of another group.

    A donor in the row's language is preferred. What is still right then was read from the wording
    alone. Rows without a donor are left out.
    """
    pool = [(normalize_key(row.group), row) for row in donors if row.documents or row.images]
    exchanged = []
    for row in rows:
        group = normalize_key(row.group)
        others = [d for own, d in pool if own != group and d.documents != row.documents]
        candidates = [d for d in others if d.language == row.language] or others
        if candidates and (row.documents or row.images):
            donor = random.Random(f"{seed} {row.id}").choice(candidates)
            exchanged.append(replace(row, documents=donor.documents, images=donor.images))
    return exchanged


@dataclass(frozen=True)
class EvaluationRequest:
    """What to measure; `trivial_limit` bounds the rows checked again with changed evidence."""

    dataset: str
    folder: Path
    task: str | None = None
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    trivial_limit: int = TRIVIAL_ROWS
    runner: RunnerOptions = DEFAULT_RUNNER


def evaluate_engine(
    order: EvaluationRequest,
    engine: Engine,
    tell: ProgressWriter,
    keep: Callable[[Outcomes], None] = lambda outcomes: None,
) -> dict[str, Any]:
    """Return the object that `python -m core evaluate --json` prints.

    `keep` is handed the outcomes, to be compared with those of others. `seconds` is the time that
    checking the rows took, now or in an earlier call; `failed` counts failed rows, `trivial_failed`
    those without or with other evidence. Raises InputError if the set is unknown, missing, invalid
    or without labels, and ModelError if a budget is spent or a service fails; finished rows are
    kept.
    """
    rule = get_task_rule(order.dataset, order.task)
    all_rows = load_labelled_rows(order)
    rows = sample_rows(all_rows, order.limit, order.seed)
    by: dict[str, Any]
    if rule.is_recorded:
        tell(f"{order.dataset} {rule.task}: recorded verdicts are measured, no engine is run")
        measured = Measurement(build_recorded_outcomes(rows), build_trivial_outcomes(rows))
        by = {"roster": RECORDED_ROSTER, "protocol": None, "options": {}, "engine": None}
    else:
        measured = _run_engine(rows, all_rows, order, engine, tell)
        plan = engine.plan
        by = {"roster": plan.roster, "protocol": plan.protocol, "options": plan.options.chosen}
        by["engine"] = engine.id
    keep(measured.found)
    return build_result(order, measured, by | {"weights": measured.weights})


@dataclass(frozen=True)
class Measurement:
    """The outcomes on the rows and of trivial answers.

    `weights` describes the weights of debaters' answers; None if none were weighed.
    """

    found: Outcomes
    trivial: Mapping[str, Outcomes]
    weights: str | None = None


def _count_rows(measured: Measurement) -> dict[str, Any]:
    outcomes = measured.found
    rows, seconds = len(outcomes.rows), sum(prediction.seconds for prediction in outcomes.said)
    answered = int(outcomes.answered.sum())
    unclear = [prediction for prediction in outcomes.said if prediction.label == "unclear"]
    causes = Counter(prediction.cause.split(":")[0] for prediction in unclear)
    return {
        "rows": rows,
        "groups": int(outcomes.groups.max()) + 1,
        "golds": dict(sorted(Counter(str(row.label) for row in outcomes.rows).items())),
        "answered": answered,
        "unclear": rows - answered,
        "causes": dict(causes.most_common()),
        "failed": _count_failed(outcomes),
        "trivial_failed": sum(map(_count_failed, measured.trivial.values())),
        "seconds": round(seconds, 3),
        "rows_per_second": round(rows / seconds, 3) if seconds else None,
    }


def _count_failed(outcomes: Outcomes) -> int:
    return sum(bool(get_failure(said)) for said in outcomes.said)


def build_result(
    order: EvaluationRequest, measured: Measurement, by: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the object that `evaluate --json` prints; `by` says what was measured."""
    return {
        "dataset": order.dataset,
        "task": get_task_rule(order.dataset, order.task).task or None,
        **{name: getattr(order, name) for name in ("split", "limit", "seed")},
        "dataset_sha256": compute_dataset_digest(measured.found.rows),
        **_count_rows(measured),
        "metrics": compute_figures(measured.found, order.seed),
        "trivial": {n: compute_figures(one, order.seed) for n, one in measured.trivial.items()},
        "trivial_rows": {name: len(one.rows) for name, one in measured.trivial.items()},
        **by,
        "machine": describe_machine(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def load_labelled_rows(order: EvaluationRequest) -> list[GoldRow]:
    """Return the set's rows that people labelled.

    Raises InputError if there is no row, or none has a label.
    """
    rows = list(load_dataset_rows(order.dataset, order.folder, task=order.task, split=order.split))
    source = f"{order.dataset} in {order.folder}"
    if not rows:
        raise InputError(f"Expected rows of {source}, found none; try another --split or --task.")
    labelled = [row for row in rows if row.label is not None]
    if not labelled:
        raise InputError(
            f"Expected labels in {source}, found {len(rows):,} rows without any: the set says "
            "nothing of right and wrong, so nothing can be measured on it."
        )
    return labelled


def compute_figures(
    found: Outcomes,
    seed: int,
    draws: int = BOOTSTRAP_RESAMPLES,
    wanted: Collection[str] | None = None,
) -> Figures:
    """Return all figures of the outcomes, with `ece_null` (a calibrated model's ECE) by `ece`.

    With `wanted` only those are computed: all of 10,000 rows take seconds.
    """
    measures = build_measures(found)
    if wanted is not None:
        measures = {name: measure for name, measure in measures.items() if name in wanted}
    by_name = estimate_figures(measures, found.groups, seed, draws, list_share_rows(found))
    calibrated = estimate_calibrated_ece(found, seed) if "ece" in by_name else None
    if calibrated is not None:
        by_name["ece_null"] = calibrated
    return {name: by_name[name] for name in sorted(by_name)}


def _run_engine(
    rows: Sequence[GoldRow],
    all_rows: Sequence[GoldRow],
    order: EvaluationRequest,
    engine: Engine,
    tell: ProgressWriter,
) -> Measurement:
    """Run the engine on the rows, and on a sample with evidence removed or exchanged."""
    trivial = build_trivial_outcomes(rows)
    sample = sample_rows(rows, order.trivial_limit, order.seed)
    changed_rows: Mapping[str, Sequence[GoldRow]] = {
        "claim_only": remove_evidence(sample),
        "other_evidence": exchange_evidence(sample, all_rows, order.seed),
    }
    task = get_task_rule(order.dataset, order.task).task
    weights = describe_engine_weights(engine)
    if weights is not None:
        tell(f"{order.dataset}: weights of answers: {weights}")
    with open_row_runner(engine, f"{order.dataset}-{task or 'all'}", tell, order.runner) as runs:
        outcomes = Outcomes(rows, runs.predictions(rows, order.dataset))
        for name, changed in changed_rows.items():
            if changed:
                predictions = runs.predictions(changed, name.replace("_", " "))
                trivial[name] = Outcomes(changed, predictions)
    return Measurement(outcomes, trivial, weights)


def build_trivial_outcomes(rows: Sequence[GoldRow]) -> dict[str, Outcomes]:
    """Return the outcomes of answers that need no reading."""
    return {
        "always_hallucinated": predict_constant("hallucinated", rows),
        "always_supported": predict_constant("supported", rows),
        "mark_all": predict_all_marked(rows),
    }
