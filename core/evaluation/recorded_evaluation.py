"""Measures systems over recorded verdicts: `evaluate --task recorded --system …`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.evaluation.evaluate import Measured, Order, answers, counted_rows, figures_of, sampled
from core.evaluation.gold import PARTS, part_of
from core.evaluation.outcomes import Outcomes, Prediction
from core.evaluation.recorded import (
    LEARNED,
    SYSTEMS,
    WHOLE,
    Fitting,
    RecordedCase,
    Tell,
    classifier,
    consensus,
    decided,
    detectors_of,
    fitted_elsewhere,
    five_folds,
    majority,
    own_answer,
)
from core.evaluation.sets.realmistake import load_cases

# Sets that record what several detectors said of each case.
RECORDED_SETS: dict[str, Callable[[Path], list[RecordedCase]]] = {"realmistake": load_cases}
MARKS = "mark_all"  # a trivial answer to which words are wrong, which is not asked here
OF_ONE = ("own_answer", "classifier")


@dataclass(frozen=True)
class Wanted:
    """Which system, over which detectors; `fit` is the folder to learn from, None for five folds.

    As with an order's folder, it is the one that holds the sets' folders.
    """

    system: str
    detector: str | None = None
    prompt: str | None = None
    fit: Path | None = None


def evaluate_recorded(
    order: Order, wanted: Wanted, tell: Tell, clock: Callable[[], float] = time.time
) -> dict[str, Any]:
    """The object of `python -m core evaluate --system … --json`.

    Raises:
        InputError: the system, the detector or what it is to learn from is not there.
    """
    _require(order, wanted)
    began = clock()
    cases = _cases(order, order.folder)
    if not cases:
        raise InputError(f"Expected cases of {order.dataset} in {order.folder}, found none.")
    fitting = _fitting(order, wanted, cases)
    said = _said(fitting, wanted, cases, tell)
    rows = [case.row for case in cases]
    trivial = {name: always for name, always in answers(rows).items() if name != MARKS}
    measured = Measured(Outcomes(rows, said[WHOLE]), trivial)
    figures = {
        name: figures_of(Outcomes(rows, own), order.seed) for name, own in said.items() if name
    }
    return {
        "dataset": order.dataset,
        "task": order.task,
        "split": order.split,
        "limit": order.limit,
        "seed": order.seed,
        "system": wanted.system,
        "detector": wanted.detector,
        "prompt": wanted.prompt,
        "fit": _how(wanted, fitting),
        **counted_rows(measured),
        "metrics": figures_of(measured.found, order.seed),
        "variants": figures,
        "trivial": {n: figures_of(one, order.seed) for n, one in measured.trivial.items()},
        "trivial_rows": {name: len(one.rows) for name, one in measured.trivial.items()},
        "roster": f"recorded-{wanted.system}",
        "protocol": None,
        "engine": None,
        "seconds": round(clock() - began, 3),
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(clock())),
    }


def _require(order: Order, wanted: Wanted) -> None:
    """Refuse what does not go together, with what would."""
    if order.dataset not in RECORDED_SETS or order.task != "recorded":
        known = " or ".join(f"--dataset {name} --task recorded" for name in RECORDED_SETS)
        raise InputError(f"Expected {known} with --system; found --dataset {order.dataset}.")
    if wanted.system not in SYSTEMS:
        raise InputError(f"Expected a system of {', '.join(SYSTEMS)}; found “{wanted.system}”.")
    if wanted.system in OF_ONE and not (wanted.detector and wanted.prompt):
        raise InputError(f"Expected --detector and --prompt with --system {wanted.system}.")
    if wanted.fit is not None and wanted.system not in LEARNED:
        raise InputError(f"--system {wanted.system} learns nothing: leave --fit out.")


def _cases(order: Order, folder: Path) -> list[RecordedCase]:
    """The set's cases of the split that is wanted, or the seeded sample of them."""
    if not folder.is_dir():
        raise InputError(
            f"Expected a folder that holds the data sets' folders at {folder}, found none."
        )
    parts = PARTS.get(order.split or "")
    if order.split and parts is None:
        raise InputError(f"Expected a split of {', '.join(PARTS)}; found “{order.split}”.")
    there = RECORDED_SETS[order.dataset](folder / order.dataset)
    kept = [case for case in there if parts is None or part_of(case.row.group) in parts]
    chosen = {row.id for row in sampled([case.row for case in kept], order.limit, order.seed)}
    return [case for case in kept if case.row.id in chosen]


def _fitting(order: Order, wanted: Wanted, cases: Sequence[RecordedCase]) -> Fitting | None:
    if wanted.system not in LEARNED:
        return None
    if wanted.fit is None:
        return five_folds(cases, order.seed)
    whole = Order(order.dataset, wanted.fit, order.task, None, None, order.seed)
    return fitted_elsewhere(_cases(whole, wanted.fit), cases, order.seed)


def _said(
    fitting: Fitting | None, wanted: Wanted, cases: Sequence[RecordedCase], tell: Tell
) -> dict[str, list[Prediction]]:
    """By variant, `WHOLE` the system's own, what is said of the cases in their order."""
    known = cases if fitting is None else fitting.cases
    detectors = detectors_of(known, wanted.detector, wanted.prompt)
    if fitting is None:
        if wanted.system == "own_answer":
            return {WHOLE: own_answer(cases, detectors[0])}
        return {WHOLE: majority(cases, detectors)}
    if wanted.system == "classifier":
        system = classifier(fitting, detectors[0])
    else:
        system = consensus(fitting, detectors)
    return decided(fitting, system, tell)


def _how(wanted: Wanted, fitting: Fitting | None) -> str | None:
    """What was learned from, in words."""
    if fitting is None:
        return None
    if wanted.fit is None:
        return f"five folds by group, seed {fitting.seed}"
    return f"{len(fitting.folds[0][0]):,} cases of {wanted.fit}"
