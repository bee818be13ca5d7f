"""Measure systems that decide from recorded verdicts: `evaluate --task recorded --system …`.

`own_answer` is one detector's verdict, `majority` the most frequent one; both learn nothing.
`classifier` reads one detector's reasoning and the answer it is about (CEDA 3.4), `consensus` reads
all verdicts, all reasonings and the answer (SC-MAKS 3.5). Both stack cross-fitted scores
(`core/learning/answer_weights.py`) and predict hallucinated if that is likelier than among the
training cases. Variants are parts of a system on the same folds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.evaluation.dataset_files import PARTS_BY_SPLIT, assign_part
from core.evaluation.evaluate import (
    EvaluationRequest,
    Measurement,
    build_result,
    build_trivial_outcomes,
    compute_figures,
    sample_rows,
)
from core.evaluation.outcomes import Outcomes, Prediction
from core.evaluation.sets.marked_texts import Detector, RecordedCase, load_recorded_cases
from core.learning.consensus import VoteMatrix, Weighting
from core.learning.consensus import fit_weighting as fit_weights
from core.learning.head_fit import (
    CaseScorer,
    CaseTexts,
    NgramCounts,
    count_ngrams,
    cross_fit_scores,
    fit_ngram_model,
    fit_stack,
)
from core.learning.metrics import (
    BoolArray,
    FloatArray,
    IndexArray,
    iter_grouped_folds,
    number_names,
)
from core.runtime.errors import InputError
from core.schema.records import Label

SYSTEMS = ("own_answer", "classifier", "majority", "consensus")
LEARNED_SYSTEMS = ("classifier", "consensus")
WHOLE_SYSTEM = ""  # the variant that is the whole system
VERDICT_VALUES = {"hallucinated": 1.0, "supported": -1.0, "unclear": 0.0}
MIN_CASES_PER_LABEL = 10
VOTE_REGULARISATION = 0.03  # scikit-learn's C, strong because dozens of verdicts are similar
ProgressWriter = Callable[[str], None]
RECORDED_SET = "realmistake"  # which records several detectors' verdicts on each case
MARK_ALL_NAME = "mark_all"  # a trivial answer about words, which does not apply here
SINGLE_DETECTOR_SYSTEMS = ("own_answer", "classifier")


def find_detectors(
    cases: Sequence[RecordedCase], name: str | None = None, prompt: str | None = None
) -> list[Detector]:
    """Return the sorted detectors with a verdict on every case, optionally by name and prompt.

    Raises InputError if there is no such detector.
    """
    common = set.intersection(*(set(case.said) for case in cases)) if cases else set()
    matching = sorted(d for d in common if name in (None, d.name) and prompt in (None, d.prompt))
    if not matching:
        names = ", ".join(sorted({d.name for d in common})) or "none that spoke of every row"
        prompts = ", ".join(sorted({d.prompt for d in common})) or "none"
        wanted = " ".join(part for part in (name, prompt and f"prompt {prompt}") if part)
        raise InputError(
            f"Expected a detector of {names} with a prompt of {prompts}; found “{wanted}”."
        )
    return matching


@dataclass(frozen=True)
class FittingPlan:
    """Cases with the positions to train on and those to decide, by fold."""

    cases: Sequence[RecordedCase]
    folds: Sequence[tuple[IndexArray, IndexArray]]
    seed: int

    @property
    def is_wrong(self) -> BoolArray:
        """(cases,) True where people's label is hallucinated."""
        return np.array([case.row.label == "hallucinated" for case in self.cases], dtype=bool)

    @property
    def groups(self) -> IndexArray:
        """(cases,) group numbers; a group is on one side of a fold."""
        return number_names([case.row.group for case in self.cases], is_sorted=False)


@dataclass(frozen=True)
class StackedSystem:
    """Scorers by name, and the names each variant stacks; `WHOLE_SYSTEM` is the system."""

    scorers: Mapping[str, CaseScorer]
    variants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def plan_five_folds(cases: Sequence[RecordedCase], seed: int) -> FittingPlan:
    """Plan five folds: each fifth is decided by a model of the other four."""
    unsplit = FittingPlan(cases, (), seed)
    _require_labels(unsplit)
    return FittingPlan(
        cases, tuple(iter_grouped_folds(unsplit.is_wrong, unsplit.groups, seed)), seed
    )


def plan_external_fit(
    learned: Sequence[RecordedCase], cases: Sequence[RecordedCase], seed: int
) -> FittingPlan:
    """Plan to decide `cases` by a model of the `learned` cases that share no group with them.

    `cases` come last in the plan's cases.
    """
    groups = {case.row.group for case in cases}
    training = [case for case in learned if case.row.group not in groups]
    _require_labels(FittingPlan(training, (), seed))
    fold = np.arange(len(training)), np.arange(len(training), len(training) + len(cases))
    return FittingPlan([*training, *cases], (fold,), seed)


def _require_labels(fitting: FittingPlan) -> None:
    """Raise InputError unless both labels have enough cases for nested five-fold cross-fitting.

    Of ten cases of a label at least eight are trained on; with groups it may be somewhat fewer.
    """
    labels, total = {case.row.label for case in fitting.cases}, len(fitting.cases)
    if not {"supported", "hallucinated"} <= labels:
        raise InputError(
            f"Expected supported and hallucinated cases to learn from, found {total} cases of "
            f"{len(labels)} labels."
        )
    wrong = int(fitting.is_wrong.sum())
    if min(wrong, total - wrong) < MIN_CASES_PER_LABEL:
        raise InputError(
            f"Expected at least {MIN_CASES_PER_LABEL} supported and {MIN_CASES_PER_LABEL} "
            f"hallucinated "
            f"cases to learn from, found {total - wrong} and {wrong}; take more."
        )


def predict_majority(
    cases: Sequence[RecordedCase], detectors: Sequence[Detector]
) -> list[Prediction]:
    """Return the most frequent label, unclear on a draw; p is the share of hallucinated.

    Of one detector it is the verdict itself, which counts as sure.
    """
    predictions = []
    for case in cases:
        labels = [case.said[detector].label for detector in detectors]
        wrong, right = labels.count("hallucinated"), labels.count("supported")
        if wrong == right:
            predictions.append(Prediction("unclear", cause="undecided"))
        else:
            label: Label = "hallucinated" if wrong > right else "supported"
            predictions.append(Prediction(label, wrong / (wrong + right)))
    return predictions


def build_classifier(fitting: FittingPlan, detector: Detector) -> StackedSystem:
    """Return the system that reads one detector's reasoning and the answer it is about."""
    views = (((c.said[detector].reasoning,), (c.row.response,)) for c in fitting.cases)
    words = count_ngrams([CaseTexts(v, c.kind) for v, c in zip(views, fitting.cases, strict=True)])
    wrong = fitting.is_wrong
    scorers = {
        "reasoning": _make_word_scorer(words.of_views([0]), wrong),
        "answer": _make_word_scorer(words.of_views([1]), wrong),
        "both": _make_word_scorer(words, wrong),
    }
    variants = {
        WHOLE_SYSTEM: ("both",),
        "reasoning alone": ("reasoning",),
        "answer alone": ("answer",),
    }
    return StackedSystem(scorers, variants)


def build_consensus(fitting: FittingPlan, detectors: Sequence[Detector]) -> StackedSystem:
    """Return the system that weighs all verdicts, each detector's reasonings and the answer."""
    names = sorted({detector.name for detector in detectors})
    words = count_ngrams([_collect_words(case, names, detectors) for case in fitting.cases])
    wrong = fitting.is_wrong
    scorers: dict[str, CaseScorer] = {"verdicts": _make_verdict_scorer(fitting, detectors)}
    for place, name in enumerate(names):
        scorers[f"reasonings of {name}"] = _make_word_scorer(words.of_views([place]), wrong)
    reasonings = tuple(name for name in scorers if name != "verdicts")
    scorers["answer"] = _make_word_scorer(words.of_views([len(names)]), wrong)
    learned = tuple(scorers)
    votes = _build_votes(fitting, detectors)
    scorers |= {
        "all alike": _make_weighted_scorer(votes, "uniform"),
        "by record": _make_weighted_scorer(votes, "history"),
    }
    variants = {
        WHOLE_SYSTEM: learned,
        "verdicts alone": ("verdicts",),
        "verdicts, all alike": ("all alike",),
        "verdicts, by record": ("by record",),
        "verdicts and reasonings": ("verdicts", *reasonings),
        "verdicts and answer": ("verdicts", "answer"),
    }
    return StackedSystem(scorers, variants)


def decide_cases(
    fitting: FittingPlan, system: StackedSystem, tell: ProgressWriter
) -> dict[str, list[Prediction]]:
    """Return each variant's predictions on the decided cases, in the order of the cases."""
    wrong, groups = fitting.is_wrong, fitting.groups
    scorers = list(system.scorers.values())
    names = list(system.scorers)
    predictions: dict[str, dict[int, Prediction]] = {variant: {} for variant in system.variants}
    for number, (fit, test) in enumerate(fitting.folds, 1):
        tell(f"Learning from {len(fit):,} cases ({number} of {len(fitting.folds)})")
        inner = cross_fit_scores(scorers, fit, wrong[fit], groups[fit], fitting.seed)
        outer = np.stack([scorer(fit, test) for scorer in scorers], axis=1)
        for variant, scorer_names in system.variants.items():
            columns = [names.index(part) for part in scorer_names]
            p = fit_stack(inner[:, columns], wrong[fit]).p(outer[:, columns])
            for case, value in zip(test.tolist(), p.tolist(), strict=True):
                label: Label = "hallucinated" if value >= wrong[fit].mean() else "supported"
                predictions[variant][case] = Prediction(label, value)
    return {
        name: [by_case[case] for case in sorted(by_case)] for name, by_case in predictions.items()
    }


def _make_word_scorer(words: NgramCounts, is_wrong: BoolArray) -> CaseScorer:
    return lambda fit, test: fit_ngram_model(words, fit, is_wrong[fit]).scores(words, test)


def _collect_words(
    case: RecordedCase, names: Sequence[str], detectors: Sequence[Detector]
) -> CaseTexts:
    """Return a view of each detector's reasonings under all its prompts, and one of the answer."""
    views = [tuple(case.said[d].reasoning for d in detectors if d.name == name) for name in names]
    return CaseTexts((*views, (case.row.response,)), case.kind)


def _build_votes(fitting: FittingPlan, detectors: Sequence[Detector]) -> VoteMatrix:
    cases = fitting.cases
    values = [
        [(1.0 + VERDICT_VALUES[case.said[d].label]) / 2.0 for d in detectors] for case in cases
    ]
    return VoteMatrix(
        tuple(f"{d.name} {d.prompt}" for d in detectors),
        np.array(values),
        tuple(case.kind for case in cases),
        tuple(case.row.group for case in cases),
        fitting.is_wrong.astype(np.float64),
    )


def _make_weighted_scorer(votes: VoteMatrix, weighting: Weighting) -> CaseScorer:
    """Score by log odds from agents' weights, fitted as in core/learning/consensus.py."""

    def score(fit: IndexArray, test: IndexArray) -> FloatArray:
        test_votes = votes.rows(test)
        p = fit_weights(votes.rows(fit), weighting).p(test_votes.said, test_votes.kinds)
        return np.asarray(np.log(p / (1.0 - p)))

    return score


def _make_verdict_scorer(fitting: FittingPlan, detectors: Sequence[Detector]) -> CaseScorer:
    """Score by a logistic regression over the verdicts, with separate weights by kind of case."""
    kinds = sorted({case.kind for case in fitting.cases})
    kind_columns = np.array(
        [[case.kind == kind for kind in kinds] for case in fitting.cases], dtype=float
    )
    votes = np.array(
        [[VERDICT_VALUES[case.said[d].label] for d in detectors] for case in fitting.cases]
    )
    table = np.hstack(
        [votes, kind_columns, *(votes * kind_columns[:, [kind]] for kind in range(len(kinds)))]
    )
    wrong = fitting.is_wrong

    def score(fit: IndexArray, test: IndexArray) -> FloatArray:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=VOTE_REGULARISATION, class_weight="balanced", max_iter=3000)
        return np.asarray(model.fit(table[fit], wrong[fit]).decision_function(table[test]))

    return score


@dataclass(frozen=True)
class RecordedSystemRequest:
    """The system and its detectors; `fit` is the folder to learn from, None for five folds.

    Like an order's folder, it is the one that holds the sets' folders.
    """

    system: str
    detector: str | None = None
    prompt: str | None = None
    fit: Path | None = None


def evaluate_recorded(
    order: EvaluationRequest, wanted: RecordedSystemRequest, tell: ProgressWriter
) -> dict[str, Any]:
    """Return the object that `python -m core evaluate --system … --json` prints.

    Raises InputError if the set holds no cases, or the system, the detector or the training cases
    are missing.
    """
    _require_valid(order, wanted)
    started = time.monotonic()
    cases = _load_cases(order, order.folder)
    if not cases:
        raise InputError(f"Expected cases of {order.dataset} in {order.folder}, found none.")
    fitting = _plan_fitting(order, wanted, cases)
    predictions = _predict_cases(fitting, wanted, cases, tell)
    rows = [case.row for case in cases]
    trivial = {
        name: outcomes
        for name, outcomes in build_trivial_outcomes(rows).items()
        if name != MARK_ALL_NAME
    }
    measured = Measurement(Outcomes(rows, predictions[WHOLE_SYSTEM]), trivial)
    figures = {
        name: compute_figures(Outcomes(rows, own), order.seed)
        for name, own in predictions.items()
        if name
    }
    fit = None
    if fitting is not None:
        fit = f"five folds by group, seed {fitting.seed}"
        if wanted.fit is not None:
            fit = f"{len(fitting.folds[0][0]):,} cases of {wanted.fit}"
    by = {
        **{name: getattr(wanted, name) for name in ("system", "detector", "prompt")},
        "fit": fit,
        "roster": f"recorded-{wanted.system}",
        "protocol": None,
        "engine": None,
        "variants": figures,
        "seconds": round(time.monotonic() - started, 3),
    }
    return build_result(order, measured, by)


def _require_valid(order: EvaluationRequest, wanted: RecordedSystemRequest) -> None:
    if (order.dataset, order.task) != (RECORDED_SET, "recorded"):
        raise InputError(
            f"Expected --dataset {RECORDED_SET} --task recorded with --system; found --dataset "
            f"{order.dataset}."
        )
    if wanted.system not in SYSTEMS:
        raise InputError(f"Expected a system of {', '.join(SYSTEMS)}; found “{wanted.system}”.")
    if wanted.system in SINGLE_DETECTOR_SYSTEMS and not (wanted.detector and wanted.prompt):
        raise InputError(f"Expected --detector and --prompt with --system {wanted.system}.")
    if wanted.fit is not None and wanted.system not in LEARNED_SYSTEMS:
        raise InputError(f"--system {wanted.system} learns nothing: leave --fit out.")


def _load_cases(order: EvaluationRequest, folder: Path) -> list[RecordedCase]:
    if not folder.is_dir():
        raise InputError(
            f"Expected a folder that holds the data sets' folders at {folder}, found none."
        )
    parts = PARTS_BY_SPLIT.get(order.split or "")
    if order.split and parts is None:
        raise InputError(f"Expected a split of {', '.join(PARTS_BY_SPLIT)}; found “{order.split}”.")
    all_cases = load_recorded_cases(folder / order.dataset)
    in_split = [case for case in all_cases if parts is None or assign_part(case.row.group) in parts]
    chosen = {
        row.id for row in sample_rows([case.row for case in in_split], order.limit, order.seed)
    }
    return [case for case in in_split if case.row.id in chosen]


def _plan_fitting(
    order: EvaluationRequest, wanted: RecordedSystemRequest, cases: Sequence[RecordedCase]
) -> FittingPlan | None:
    if wanted.system not in LEARNED_SYSTEMS:
        return None
    if wanted.fit is None:
        return plan_five_folds(cases, order.seed)
    fit_order = EvaluationRequest(order.dataset, wanted.fit, order.task, None, None, order.seed)
    return plan_external_fit(_load_cases(fit_order, wanted.fit), cases, order.seed)


def _predict_cases(
    fitting: FittingPlan | None,
    wanted: RecordedSystemRequest,
    cases: Sequence[RecordedCase],
    tell: ProgressWriter,
) -> dict[str, list[Prediction]]:
    """Return each variant's predictions on the cases; `WHOLE_SYSTEM` is the system itself."""
    known = cases if fitting is None else fitting.cases
    detectors = find_detectors(known, wanted.detector, wanted.prompt)
    if fitting is None:
        return {WHOLE_SYSTEM: predict_majority(cases, detectors)}
    if wanted.system == "classifier":
        system = build_classifier(fitting, detectors[0])
    else:
        system = build_consensus(fitting, detectors)
    return decide_cases(fitting, system, tell)
