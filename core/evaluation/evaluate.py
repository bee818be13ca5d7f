"""Measure an engine on a labelled set: figures with intervals, beside those of trivial answers.

`claim_only` is the same engine with the evidence taken away; `other_evidence` the same over
documents of another row, which shows what wording alone gives away. Both run on a seeded sample.
Rows of one group are drawn together for the intervals; `core/evaluation/metrics.py` says what each
figure counts. A task whose rows are recorded verdicts of other detectors is measured on these.

A `MeasuredWay` is a protocol as it is named to be measured, perhaps with options: `colmad:rounds=1`
is ColMAD with one round, `copmad:swap` CopMAD judged both ways round, `sc_maks:without=adversary`
SC-MAKS without its attacks. What is not said is the protocol's own.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from core.debate.protocols import PROTOCOLS
from core.evaluation.datasets import load, rule_of
from core.evaluation.engine_runs import Engine, Tell, opened_runs
from core.evaluation.files import GoldRow, normalised
from core.evaluation.metrics import Figure, calibrated_null, figures, measures, risk_coverage
from core.evaluation.outcomes import Outcomes, always, mark_all, recorded
from core.runtime.errors import InputError
from core.schema.rosters import AS_IS, DEBATE_NAMES, MOST_ROUNDS, PARTS, STYLES, DebateOptions

NUMBERS = ("rounds", "samples", "seed")
WORDS: Mapping[str, tuple[str, ...]] = {
    "style": STYLES, "then": DEBATE_NAMES, "without": PARTS,
}  # fmt: skip
DIGITS = len(str(MOST_ROUNDS))


@dataclass(frozen=True)
class MeasuredWay:
    """One way that is measured; `name` is what it was asked for by."""

    name: str
    protocol: str
    options: DebateOptions = AS_IS


def ways_of(text: str) -> tuple[MeasuredWay, ...]:
    """The ways that a list names, each once, in its order.

    Raises InputError: a protocol, an option or its value is not known.
    """
    named = dict.fromkeys(part.strip() for part in text.split(","))
    return tuple(_way(name) for name in named)


def _way(name: str) -> MeasuredWay:
    protocol, *chosen = name.split(":")
    if protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise InputError(f"Expected protocols of {known}; found “{protocol[:80]}”.")
    options = AS_IS
    for one in chosen:
        key, _, value = one.partition("=")
        options = replace(options, **_option(key, value))
    return MeasuredWay(name, protocol, options)


def _option(key: str, value: str) -> dict[str, Any]:
    if key == "swap" and not value:
        return {"is_swapped": True}
    is_number = value.isascii() and value.isdigit() and len(value) <= DIGITS
    if key in NUMBERS and is_number and 1 <= int(value) <= MOST_ROUNDS:
        return {key: int(value)}
    if key in WORDS and value in WORDS[key]:
        return {key: value}
    raise InputError(
        "Expected an option such as rounds=1, samples=5 (at most "
        f"{MOST_ROUNDS}), style=thought, then=ceda, without=adversary or swap, found "
        f"“{key[:40]}={value[:40]}”."
    )


def sampled(rows: Sequence[GoldRow], limit: int | None, seed: int) -> list[GoldRow]:
    """At most `limit` rows, each label with its share of the set, in the set's order.

    Shares are rounded so that they add up. A label that is there gets one row at least, at the cost
    of the label with most rows, unless there are more labels than rows to choose. The same rows and
    seed always give the same sample.
    """
    if limit is None or limit >= len(rows):
        return list(rows)
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row.label or "", []).append(place)
    chosen: list[int] = []
    for label, count in _counts({name: len(found) for name, found in places.items()}, limit):
        chosen += random.Random(f"{seed} {label}").sample(places[label], count)
    return [rows[place] for place in sorted(chosen)]


def _counts(there: dict[str, int], limit: int) -> list[tuple[str, int]]:
    whole = sum(there.values())
    shares = {name: n * limit / whole for name, n in sorted(there.items())}
    counts = {name: int(share) for name, share in shares.items()}
    by_need = sorted(shares, key=lambda name: (counts[name] > 0, counts[name] - shares[name], name))
    for name in by_need[: limit - sum(counts.values())]:
        counts[name] += 1
    for name in [one for one, count in counts.items() if not count]:
        most = max(counts, key=lambda one: counts[one])
        if counts[most] > 1:
            counts[most], counts[name] = counts[most] - 1, 1
    return list(counts.items())


def without_evidence(rows: Sequence[GoldRow]) -> list[GoldRow]:
    """The same rows with nothing to check them against."""
    return [replace(row, documents=(), images=()) for row in rows]


def with_other_evidence(
    rows: Sequence[GoldRow], donors: Sequence[GoldRow], seed: int
) -> list[GoldRow]:
    """The same rows, each over the documents of a row of another group, in its language if any.

    What is still right then was read off the wording. Rows for which there is none are left out.
    """
    pool = [(normalised(row.group), row) for row in donors if row.documents or row.images]
    exchanged = []
    for row in rows:
        group = normalised(row.group)
        others = [d for own, d in pool if own != group and d.documents != row.documents]
        near = [d for d in others if d.language == row.language] or others
        if near and (row.documents or row.images):
            donor = random.Random(f"{seed} {row.id}").choice(near)
            exchanged.append(replace(row, documents=donor.documents, images=donor.images))
    return exchanged


TRIVIAL_ROWS = 200
RECORDED = "recorded"  # the roster where verdicts that a set holds are measured
Figures = dict[str, Figure]


@dataclass(frozen=True)
class EvaluationOrder:
    """What is to be measured; `trivial_limit` bounds the rows run again without their evidence."""

    dataset: str
    folder: Path
    task: str | None = None
    split: str | None = None
    limit: int | None = None
    seed: int = 0
    trivial_limit: int = TRIVIAL_ROWS


def evaluate(
    order: EvaluationOrder, engine: Engine, tell: Tell, clock: Callable[[], float] = time.time
) -> dict[str, Any]:
    """The object of `python -m core evaluate --json`.

    `seconds` is the time that the rows took when they were checked, now or in an earlier call;
    `failed` counts the rows that broke off, `trivial_failed` those without or with other evidence.
    Raises InputError: the set is unknown, missing, broken or without labels. Raises ModelError: a
    budget is spent or a service fails; what is done is kept.
    """
    rule = rule_of(order.dataset, order.task)
    there = labelled_rows(order)
    rows = sampled(there, order.limit, order.seed)
    if rule.is_recorded:
        tell(f"{order.dataset} {rule.task}: recorded verdicts are measured, no engine is run")
        measured = Measurement(recorded(rows), answers(rows))
    else:
        measured = _checked(rows, there, order, engine, tell)
    by: dict[str, Any] = {"roster": RECORDED, "protocol": None, "options": {}, "weights": None}
    if not rule.is_recorded:
        plan = engine.plan
        by = {"roster": plan.roster, "protocol": plan.protocol, "options": plan.options.chosen}
        by["weights"] = measured.weights
    by["engine"] = None if rule.is_recorded else engine.id
    beside = {"risk_coverage": risk_coverage(measured.found)}
    return result_of(order, measured, beside=beside, by=by, now=clock())


@dataclass(frozen=True)
class Measurement:
    """What was found on the rows and what trivial answers come to, with the rows that broke off.

    `weights` says by which debaters' answers counted, None where nobody weighed any.
    """

    found: Outcomes
    trivial: Mapping[str, Outcomes]
    failed: int = 0
    trivial_failed: int = 0
    weights: str | None = None


def _counted_rows(measured: Measurement) -> dict[str, Any]:
    found = measured.found
    rows, seconds = len(found.rows), sum(one.seconds for one in found.said)
    answered = int(found.answered.sum())
    causes = Counter(one.cause.split(":")[0] for one in found.said if one.label == "unclear")
    return {
        "rows": rows,
        "groups": int(found.groups.max()) + 1,
        "golds": dict(sorted(Counter(str(row.label) for row in found.rows).items())),
        "answered": answered,
        "unclear": rows - answered,
        "causes": dict(causes.most_common()),
        "failed": measured.failed,
        "trivial_failed": measured.trivial_failed,
        "seconds": round(seconds, 3),
        "rows_per_second": round(rows / seconds, 3) if seconds else None,
    }


def result_of(
    order: EvaluationOrder,
    measured: Measurement,
    *,
    by: Mapping[str, Any],
    now: float,
    asked: Mapping[str, Any] = MappingProxyType({}),
    beside: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The object that `evaluate --json` prints.

    `asked` stands beside the order, `beside` with the figures; `by` says who was measured.
    """
    return {
        "dataset": order.dataset,
        "task": rule_of(order.dataset, order.task).task or None,
        **{name: getattr(order, name) for name in ("split", "limit", "seed")},
        **asked,
        **_counted_rows(measured),
        "metrics": figures_of(measured.found, order.seed),
        **beside,
        "trivial": {n: figures_of(one, order.seed) for n, one in measured.trivial.items()},
        "trivial_rows": {name: len(one.rows) for name, one in measured.trivial.items()},
        **by,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
    }


def labelled_rows(order: EvaluationOrder) -> list[GoldRow]:
    """The set's rows that people labelled.

    Raises InputError: there is no row, or none has a label.
    """
    rows = list(load(order.dataset, order.folder, task=order.task, split=order.split))
    where = f"{order.dataset} in {order.folder}"
    if not rows:
        raise InputError(f"Expected rows of {where}, found none; try another --split or --task.")
    found = [row for row in rows if row.label is not None]
    if not found:
        raise InputError(
            f"Expected labels in {where}, found {len(rows):,} rows without any: the set says "
            "nothing of right and wrong, so nothing can be measured on it."
        )
    return found


def figures_of(found: Outcomes, seed: int) -> Figures:
    """All figures of the outcomes, `ece_null` (a calibrated model's) beside `ece`."""
    named = figures(measures(found), found.groups, seed)
    null = calibrated_null(found, seed)
    if null is not None:
        named["ece_null"] = null
    return {name: named[name] for name in sorted(named)}


def _checked(
    rows: Sequence[GoldRow],
    there: Sequence[GoldRow],
    order: EvaluationOrder,
    engine: Engine,
    tell: Tell,
) -> Measurement:
    """The engine on the rows, and on a sample of them with their evidence taken or exchanged."""
    trivial = answers(rows)
    few = sampled(rows, order.trivial_limit, order.seed)
    again: Mapping[str, Sequence[GoldRow]] = {
        "claim_only": without_evidence(few),
        "other_evidence": with_other_evidence(few, there, order.seed),
    }
    task = rule_of(order.dataset, order.task).task
    with opened_runs(engine, f"{order.dataset}-{task or 'all'}", tell) as runs:
        weights = runs.weights()
        if weights is not None:
            tell(f"{order.dataset}: weights of answers: {weights}")
        found = Outcomes(rows, runs.predictions(rows, order.dataset))
        failed = runs.failed
        for name, changed in again.items():
            if changed:
                said = runs.predictions(changed, name.replace("_", " "))
                trivial[name] = Outcomes(changed, said)
        return Measurement(found, trivial, failed, runs.failed - failed, weights)


def answers(rows: Sequence[GoldRow]) -> dict[str, Outcomes]:
    """The answers that need nothing read."""
    return {
        "always_hallucinated": always("hallucinated", rows),
        "always_supported": always("supported", rows),
        "mark_all": mark_all(rows),
    }
