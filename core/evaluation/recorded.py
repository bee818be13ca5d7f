"""What can be decided from verdicts that a set records: `evaluate --task recorded --system …`.

`own_answer` is one detector's verdict, `majority` that of most; both learn nothing. `classifier`
reads one detector's reasoning and the answer that it was about (CEDA 3.4), `consensus` all
verdicts, all reasonings and the answer (SC-MAKS 3.5). Both stack cross-fitted scores
(`core/learning/answer_weights.py`) and call hallucinated what is likelier wrong than the cases they
learned from. Variants are parts of a system on the same folds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from core.evaluation.evaluate import (
    EvaluationOrder,
    Measurement,
    answers,
    figures_of,
    result_of,
    sampled,
)
from core.evaluation.files import PARTS, part_of
from core.evaluation.outcomes import Outcomes, Prediction
from core.evaluation.sets.marked_texts import Detector, RecordedCase, load_cases
from core.learning.consensus import Votes, Weighting
from core.learning.consensus import fit as fit_weights
from core.learning.head_fit import (
    CaseTexts,
    CountedWords,
    Scorer,
    counted,
    cross_fitted,
    fit_stack,
    fit_words,
)
from core.learning.metrics import Flags, Numbers, Places, grouped_folds, numbered
from core.runtime.errors import InputError


def detectors_of(
    cases: Sequence[RecordedCase], name: str | None = None, prompt: str | None = None
) -> list[Detector]:
    """Who spoke of every case, in order; only those of that name and prompt where they are given.

    Raises InputError: there is no such detector.
    """
    there = set.intersection(*(set(case.said) for case in cases)) if cases else set()
    found = sorted(d for d in there if name in (None, d.name) and prompt in (None, d.prompt))
    if not found:
        names = ", ".join(sorted({d.name for d in there})) or "none that spoke of every row"
        prompts = ", ".join(sorted({d.prompt for d in there})) or "none"
        asked = " ".join(part for part in (name, prompt and f"prompt {prompt}") if part)
        raise InputError(
            f"Expected a detector of {names} with a prompt of {prompts}; found “{asked}”."
        )
    return found


SYSTEMS = ("own_answer", "classifier", "majority", "consensus")
LEARNED = ("classifier", "consensus")
WHOLE = ""  # the variant that is the system itself
VERDICTS = {"hallucinated": 1.0, "supported": -1.0, "unclear": 0.0}
FEWEST_OF_LABEL = 10
VOTE_REGULARISATION = 0.03  # scikit-learn's C: dozens of verdicts that are much alike
Predictions = dict[str, list[Prediction]]
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Fitting:
    """Cases with the places that are learned from and those that are decided, fold by fold."""

    cases: Sequence[RecordedCase]
    folds: Sequence[tuple[Places, Places]]
    seed: int

    @property
    def is_wrong(self) -> Flags:
        """(cases,) the labels that people gave."""
        return np.array([case.row.label == "hallucinated" for case in self.cases], dtype=bool)

    @property
    def groups(self) -> Places:
        """(cases,) numbers of the groups that lie on one side."""
        return numbered([case.row.group for case in self.cases], is_sorted=False)


@dataclass(frozen=True)
class System:
    """Scorers by name, and which of them each variant stacks; `WHOLE` is the system's own."""

    scorers: Mapping[str, Scorer]
    variants: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def five_folds(cases: Sequence[RecordedCase], seed: int) -> Fitting:
    """Every case is decided by what was learned from the other four fifths."""
    whole = Fitting(cases, (), seed)
    _require_labels(whole)
    return Fitting(cases, tuple(grouped_folds(whole.is_wrong, whole.groups, seed)), seed)


def fitted_elsewhere(
    learned: Sequence[RecordedCase], cases: Sequence[RecordedCase], seed: int
) -> Fitting:
    """The cases are decided by what was learned from others; those of the same group are left out.

    `cases` come last in the fitting's cases.
    """
    groups = {case.row.group for case in cases}
    kept = [case for case in learned if case.row.group not in groups]
    _require_labels(Fitting(kept, (), seed))
    places = np.arange(len(kept)), np.arange(len(kept), len(kept) + len(cases))
    return Fitting([*kept, *cases], (places,), seed)


def _require_labels(fitting: Fitting) -> None:
    """Scores are cross-fitted in five folds, within each of the five again: all need both labels.

    With ten of a label at least eight are learned from; with groups it may be some fewer.
    """
    labels, many = {case.row.label for case in fitting.cases}, len(fitting.cases)
    if not {"supported", "hallucinated"} <= labels:
        raise InputError(
            f"Expected supported and hallucinated cases to learn from, found {many} cases of "
            f"{len(labels)} labels."
        )
    wrong = int(fitting.is_wrong.sum())
    if min(wrong, many - wrong) < FEWEST_OF_LABEL:
        raise InputError(
            f"Expected at least {FEWEST_OF_LABEL} supported and {FEWEST_OF_LABEL} hallucinated "
            f"cases to learn from, found {many - wrong} and {wrong}; take more."
        )


def own_answer(cases: Sequence[RecordedCase], detector: Detector) -> list[Prediction]:
    """What one detector said; it gives no probability, so each verdict is sure."""
    said = [case.said[detector].label for case in cases]
    return [_sure(label, (1.0 + VERDICTS[label]) / 2.0) for label in said]


def majority(cases: Sequence[RecordedCase], detectors: Sequence[Detector]) -> list[Prediction]:
    """The label that most say; p is the share that says hallucinated. A draw is unclear."""
    found = []
    for case in cases:
        said = [case.said[detector].label for detector in detectors]
        wrong, right = said.count("hallucinated"), said.count("supported")
        p = wrong / (wrong + right) if wrong + right else 0.5
        label = "unclear" if wrong == right else "hallucinated" if wrong > right else "supported"
        found.append(_sure(label, p))
    return found


def _sure(label: str, p: float) -> Prediction:
    if label == "unclear":
        return Prediction("unclear", p if p != 0.5 else None, cause="undecided")
    return Prediction("hallucinated" if label == "hallucinated" else "supported", p)


def classifier(fitting: Fitting, detector: Detector) -> System:
    """Reads one detector's reasoning, and the answer that it was about."""
    views = (((c.said[detector].reasoning,), (c.row.response,)) for c in fitting.cases)
    words = counted([CaseTexts(v, c.kind) for v, c in zip(views, fitting.cases, strict=True)])
    wrong = fitting.is_wrong
    scorers = {
        "reasoning": _reader(words.of_views([0]), wrong),
        "answer": _reader(words.of_views([1]), wrong),
        "both": _reader(words, wrong),
    }
    variants = {WHOLE: ("both",), "reasoning alone": ("reasoning",), "answer alone": ("answer",)}
    return System(scorers, variants)


def consensus(fitting: Fitting, detectors: Sequence[Detector]) -> System:
    """Weighs all verdicts, each detector's reasonings, and the answer."""
    names = sorted({detector.name for detector in detectors})
    words = counted([_all_words(case, names, detectors) for case in fitting.cases])
    wrong = fitting.is_wrong
    scorers: dict[str, Scorer] = {"verdicts": _voter(fitting, detectors)}
    for place, name in enumerate(names):
        scorers[f"reasonings of {name}"] = _reader(words.of_views([place]), wrong)
    reasonings = tuple(name for name in scorers if name != "verdicts")
    scorers["answer"] = _reader(words.of_views([len(names)]), wrong)
    learned = tuple(scorers)
    votes = _votes(fitting, detectors)
    scorers |= {"all alike": _weighing(votes, "uniform"), "by record": _weighing(votes, "history")}
    variants = {
        WHOLE: learned,
        "verdicts alone": ("verdicts",),
        "verdicts, all alike": ("all alike",),
        "verdicts, by record": ("by record",),
        "verdicts and reasonings": ("verdicts", *reasonings),
        "verdicts and answer": ("verdicts", "answer"),
    }
    return System(scorers, variants)


def decided(fitting: Fitting, system: System, tell: Tell) -> Predictions:
    """What each variant says of the cases that are decided, in the fitting's order of cases."""
    wrong, groups = fitting.is_wrong, fitting.groups
    scorers = list(system.scorers.values())
    names = list(system.scorers)
    found: dict[str, dict[int, Prediction]] = {variant: {} for variant in system.variants}
    for number, (fit, test) in enumerate(fitting.folds, 1):
        tell(f"Learning from {len(fit):,} cases ({number} of {len(fitting.folds)})")
        inner = cross_fitted(scorers, fit, wrong[fit], groups[fit], fitting.seed)
        outer = np.stack([scorer(fit, test) for scorer in scorers], axis=1)
        for variant, parts in system.variants.items():
            columns = [names.index(part) for part in parts]
            p = fit_stack(inner[:, columns], wrong[fit]).p(outer[:, columns])
            said = (_likelier(float(value), float(wrong[fit].mean())) for value in p)
            found[variant].update(zip(test.tolist(), said, strict=True))
    return {variant: [own[case] for case in sorted(own)] for variant, own in found.items()}


def _likelier(p: float, share: float) -> Prediction:
    """Hallucinated where that is likelier than among the cases that were learned from."""
    return Prediction("hallucinated" if p >= share else "supported", p)


def _reader(words: CountedWords, is_wrong: Flags) -> Scorer:
    return lambda fit, test: fit_words(words, fit, is_wrong[fit]).scores(words, test)


def _all_words(
    case: RecordedCase, names: Sequence[str], detectors: Sequence[Detector]
) -> CaseTexts:
    """A view for each detector's reasonings under all its prompts, and one for the answer."""
    views = [tuple(case.said[d].reasoning for d in detectors if d.name == name) for name in names]
    return CaseTexts((*views, (case.row.response,)), case.kind)


def _votes(fitting: Fitting, detectors: Sequence[Detector]) -> Votes:
    cases = fitting.cases
    said = [[(1.0 + VERDICTS[case.said[d].label]) / 2.0 for d in detectors] for case in cases]
    return Votes(
        tuple(f"{d.name} {d.prompt}" for d in detectors),
        np.array(said),
        tuple(case.kind for case in cases),
        tuple(case.row.group for case in cases),
        fitting.is_wrong.astype(np.float64),
    )


def _weighing(votes: Votes, weighting: Weighting) -> Scorer:
    """Log odds by weights of agents, fitted as for a project's own (core/learning/consensus.py)."""

    def score(fit: Places, test: Places) -> Numbers:
        asked = votes.rows(test)
        p = fit_weights(votes.rows(fit), weighting).p(asked.said, asked.kinds)
        return np.asarray(np.log(p / (1.0 - p)))

    return score


def _voter(fitting: Fitting, detectors: Sequence[Detector]) -> Scorer:
    """A logistic regression over the verdicts, with weights of its own for each kind of case."""
    kinds = sorted({case.kind for case in fitting.cases})
    own = np.array([[case.kind == kind for kind in kinds] for case in fitting.cases], dtype=float)
    votes = np.array([[VERDICTS[case.said[d].label] for d in detectors] for case in fitting.cases])
    table = np.hstack([votes, own, *(votes * own[:, [kind]] for kind in range(len(kinds)))])
    wrong = fitting.is_wrong

    def score(fit: Places, test: Places) -> Numbers:
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=VOTE_REGULARISATION, class_weight="balanced", max_iter=3000)
        return np.asarray(model.fit(table[fit], wrong[fit]).decision_function(table[test]))

    return score


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
    order: EvaluationOrder, wanted: Wanted, tell: Tell, clock: Callable[[], float] = time.time
) -> dict[str, Any]:
    """The object of `python -m core evaluate --system … --json`.

    Raises InputError: the set holds no cases, or the system, the detector or what it learns from is
    not there.
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
    measured = Measurement(Outcomes(rows, said[WHOLE]), trivial)
    figures = {
        name: figures_of(Outcomes(rows, own), order.seed) for name, own in said.items() if name
    }
    by: dict[str, Any] = {"roster": f"recorded-{wanted.system}", "protocol": None, "engine": None}
    asked = {name: getattr(wanted, name) for name in ("system", "detector", "prompt")}
    asked["fit"] = None
    if fitting is not None:
        asked["fit"] = f"five folds by group, seed {fitting.seed}"
        if wanted.fit is not None:
            asked["fit"] = f"{len(fitting.folds[0][0]):,} cases of {wanted.fit}"
    by |= {"seconds": round(clock() - began, 3)}
    beside = {"variants": figures}
    return result_of(order, measured, asked=asked, beside=beside, by=by, now=clock())


def _require(order: EvaluationOrder, wanted: Wanted) -> None:
    if order.dataset not in RECORDED_SETS or order.task != "recorded":
        known = " or ".join(f"--dataset {name} --task recorded" for name in RECORDED_SETS)
        raise InputError(f"Expected {known} with --system; found --dataset {order.dataset}.")
    if wanted.system not in SYSTEMS:
        raise InputError(f"Expected a system of {', '.join(SYSTEMS)}; found “{wanted.system}”.")
    if wanted.system in OF_ONE and not (wanted.detector and wanted.prompt):
        raise InputError(f"Expected --detector and --prompt with --system {wanted.system}.")
    if wanted.fit is not None and wanted.system not in LEARNED:
        raise InputError(f"--system {wanted.system} learns nothing: leave --fit out.")


def _cases(order: EvaluationOrder, folder: Path) -> list[RecordedCase]:
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


def _fitting(
    order: EvaluationOrder, wanted: Wanted, cases: Sequence[RecordedCase]
) -> Fitting | None:
    if wanted.system not in LEARNED:
        return None
    if wanted.fit is None:
        return five_folds(cases, order.seed)
    whole = EvaluationOrder(order.dataset, wanted.fit, order.task, None, None, order.seed)
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
