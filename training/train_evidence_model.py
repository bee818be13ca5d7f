"""Train the shipped evidence model: `python -m training.train_evidence_model --shared DATA ...`.

It is the mean of boosted trees and a linear model over mostly monotonic features, fitted on rows
that no reader was trained on. Figures, calibration and limits come from predictions for groups
left out (five folds); `measure_left_out_sets` in the card comes from leaving out whole sets.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.baseline.assessment import Assessor
from core.baseline.entailment import load_reader
from core.baseline.evidence_model import (
    CARD_FILE,
    EVIDENCE_MODEL_DIR,
    FEATURE_FAMILIES,
    FEATURES,
    TREES_FILE,
    BoostedTrees,
    average_scores,
    classify_material,
    extract_trees,
    parse_logistic,
    to_feature_rows,
)
from core.evaluation.dataset_files import assign_fold, assign_part
from core.evaluation.datasets import load_dataset_rows
from core.learning.evidence_calibration import (
    MAX_HALLUCINATED_ERROR,
    MAX_SUPPORTED_ERROR,
    MIN_ROWS_OF_MATERIAL,
    EvidenceRow,
    MeasuredRow,
    ScoredStatements,
    choose_limits,
    compute_evidence_figures,
    compute_figures_by_material,
    compute_reliability_by_material,
    cross_calibrate,
    fit_calibrations,
    fit_logistic_card,
    measure_coverage,
    measure_rows,
    select_single_statements,
)
from core.learning.metrics import BoolArray, FloatArray, compute_auroc, select_rows
from core.schema.records import MaterialKind
from core.verdict.classifier import sigmoid
from training.pair_maker import PairMaker
from training.pairs import (
    MAX_EVIDENCE_CHARS,
    SUPPORTED,
    LabelledPair,
    load_collected_pairs,
    load_measured_claims,
    load_shared_pairs,
)
from training.reader_pairs import load_paragraphs

SEED = 11
FOLD_COUNT = 5
ROWS_PER_SHARED_SET, ROWS_PER_COLLECTED_SET, ROWS_PER_EXTRA_SET = 240, 200, 160
DOCUMENT_ROWS, CONSTRUCTED_ROWS = 600, 3000
TABLE_ROWS = 400
TWIN_SHARE = 0.5
EXTRA_SETS = (
    ("entailment_wice", "pages"), ("entailment_climate_fever", "claims"), ("pubmedqa", None),
    ("entailment_begin", None), ("factcheck_gpt", "subtask4"),
)  # fmt: skip
# The collected sets used here; those of captions and puzzles are for the reader alone.
COLLECTED_SETS = frozenset("ctkfacts infotabs rte3 summaries summedits".split())
# Statements checked against sources and labelled by people; probabilities and limits are fitted on
# them. The others (constructed pairs, puzzles of logic or common knowledge) train the trees alone;
# constructed pairs are easier than what people write, and would make the limits too bold.
LABELLED_SETS = frozenset(
    "ctkfacts entailment_begin entailment_climate_fever entailment_covidfact entailment_dialfact "
    "entailment_fm2 entailment_healthver entailment_q2 entailment_wice factcheck_gpt "
    "fever_symmetric infotabs pubmedqa rte3 summedits".split()
)
# More support never makes a statement more doubtful, and more contradiction never less. The longest
# run of its words in the evidence may do either: what is copied is right, what is copied except for
# one word is not. The share of tables may too, since rows are read differently from sentences. The
# other numbers only serve explanations: trees learned the habits of constructed pairs from them,
# and ranked unseen sets worse.
RISING_FEATURES = (
    "contradiction_best", "contradiction_second", "contradiction_joined", "contradiction_share",
    "rare_terms_missing", "names_missing", "values_different", "values_unmatched",
    "dates_different", "digits_missing", "denials_differ",
)  # fmt: skip
FALLING_FEATURES = (
    "support_best", "support_second", "support_joined", "terms_found", "values_same",
    "values_derived",
)  # fmt: skip
UNCONSTRAINED_FEATURES = ("longest_run", "table_share")
MODEL_FEATURES = tuple(
    name for name in FEATURES if name in RISING_FEATURES + FALLING_FEATURES + UNCONSTRAINED_FEATURES
)
TREE_PARAMETERS: dict[str, Any] = {
    "max_iter": 160, "learning_rate": 0.06, "max_leaf_nodes": 10, "min_samples_leaf": 40,
    "l2_regularization": 5.0, "max_features": 0.5, "early_stopping": False,
}  # fmt: skip


def sample_rows(pairs: Iterable[LabelledPair], most: int, seed: int) -> list[EvidenceRow]:
    """Draw at most `most` rows of each set and language, balanced by label if there are enough."""
    rng = random.Random(seed)
    by_set: dict[tuple[str, str, bool], list[LabelledPair]] = defaultdict(list)
    for pair in pairs:
        by_set[pair.name, pair.language, pair.allowed == SUPPORTED].append(pair)
    rows = []
    for group in by_set.values():
        for p in rng.sample(group, min(most // 2, len(group))):
            # a constructed claim may have lost the question before it
            question = p.question if p.claim.startswith(p.question) else ""
            response = p.claim[len(question) :].strip()
            if response:
                documents, wrong = (p.evidence,), p.allowed != SUPPORTED
                row = EvidenceRow(p.name, p.group, p.language, response, question, documents, wrong)
                rows.append(row)
    return rows


def place_in_documents(rows: Sequence[EvidenceRow], count: int, seed: int) -> list[EvidenceRow]:
    """Return `count` rows whose evidence is placed in a document of other evidence."""
    rng, by_language = random.Random(seed), _group_by_language(rows)
    placed = []
    for row in rng.sample(list(rows), min(count, len(rows))):
        others = by_language[row.language]
        parts = [rng.choice(others) for _ in range(rng.randint(8, 30))]
        texts = [" ".join(p.documents) for p in parts if p.group != row.group]
        texts.insert(rng.randint(0, len(texts)), " ".join(row.documents))
        document = "\n\n".join(dict.fromkeys(texts))
        placed.append(replace(row, name=f"{row.name} in a document", documents=(document,)))
    return placed


def _group_by_language(rows: Sequence[EvidenceRow]) -> dict[str, list[EvidenceRow]]:
    groups: dict[str, list[EvidenceRow]] = defaultdict(list)
    for row in rows:
        groups[row.language].append(row)
    return groups


@dataclass(frozen=True)
class StatementTable:
    """Single statements as arrays, one row each."""

    rows: npt.NDArray[np.float32]
    wrong: BoolArray
    weights: FloatArray
    folds: npt.NDArray[np.int64]
    names: Sequence[str]
    materials: Sequence[MaterialKind]

    def taken(self, which: BoolArray) -> StatementTable:
        """Return the rows that `which` selects."""
        names = ("rows", "wrong", "weights", "folds", "names", "materials")
        return select_rows(self, which, *names)


def build_table(measured: Sequence[MeasuredRow]) -> StatementTable:
    """Return the selected single statements, weighted so that all sets count alike."""
    statements = select_single_statements(measured)
    names = [row.name for _, row in statements]
    wrong = np.array([row.wrong for _, row in statements])
    kinds = list(zip(names, wrong.tolist(), strict=True))
    sizes = Counter(kinds)
    weights = np.array([1.0 / (40 + sizes[kind]) for kind in kinds])
    folds = np.array([assign_fold(row.group, FOLD_COUNT) for _, row in statements])
    materials = [
        classify_material(dict(zip(FEATURES, values, strict=True))) for values, _ in statements
    ]
    rows = to_feature_rows([list(statement) for statement, _ in statements])
    return StatementTable(rows, wrong, weights / weights.mean(), folds, names, materials)


@dataclass(frozen=True)
class FittedModel:
    """Trees and linear model over the named features."""

    trees: BoostedTrees
    linear: dict[str, Any]
    features: tuple[str, ...]

    def scores(self, rows: npt.NDArray[np.float32]) -> FloatArray:
        """Return the log odds, (n,), for rows of all `FEATURES`."""
        columns = [FEATURES.index(name) for name in self.features]
        return average_scores(
            self.trees, parse_logistic(self.linear), self.features, rows[:, columns]
        )


def fit_model(table: StatementTable, features: Sequence[str] = MODEL_FEATURES) -> FittedModel:
    """Fit both models; the linear one drops monotonic features with a weight of the wrong sign."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    columns = [FEATURES.index(name) for name in features]
    signs = [1 if n in RISING_FEATURES else -1 if n in FALLING_FEATURES else 0 for n in features]
    model = HistGradientBoostingClassifier(
        **TREE_PARAMETERS, monotonic_cst=signs, random_state=SEED
    )
    model.fit(table.rows[:, columns], table.wrong, sample_weight=table.weights)
    return FittedModel(extract_trees(model), fit_monotonic_linear(table, features), tuple(features))


def fit_monotonic_linear(table: StatementTable, features: Sequence[str]) -> dict[str, Any]:
    """Fit a linear model without monotonic features whose weight has the wrong sign."""
    kept = list(features)
    while True:
        columns = table.rows[:, [FEATURES.index(name) for name in kept]].astype(np.float64)
        linear = fit_logistic_card(columns, table.wrong, table.weights, kept)
        weights = linear["weights"]
        violating = [
            name
            for name in kept
            if (name in RISING_FEATURES and weights[name] < 0)
            or (name in FALLING_FEATURES and weights[name] > 0)
        ]
        if not violating:
            return linear
        kept.remove(max(violating, key=lambda name: abs(weights[name])))


def predict_out_of_fold(
    table: StatementTable, features: Sequence[str] = MODEL_FEATURES
) -> FloatArray:
    """Return each row's log odds by models that were not fitted on its fold."""
    scores = np.zeros(len(table.wrong))
    for fold in range(FOLD_COUNT):
        inside = table.folds == fold
        scores[inside] = fit_model(table.taken(~inside), features).scores(table.rows[inside])
    return scores


def measure_left_out_sets(table: StatementTable) -> dict[str, dict[str, float]]:
    """Return each set's AUROC by models fitted without it, also without it inside documents."""
    bases = np.array([n.removesuffix(" in a document").split(" ")[0] for n in table.names])
    figures_by_set = {}
    for name in sorted(set(bases.tolist())):
        inside = bases == name
        wrong = table.wrong[inside]
        if inside.sum() < 40 or wrong.all() or not wrong.any():
            continue
        scores = fit_model(table.taken(~inside)).scores(table.rows[inside])
        figures_by_set[name] = {
            "n": len(wrong),
            "auroc": round(compute_auroc(wrong, scores) or 0.0, 3),
        }
    return figures_by_set


def fit_addressed_model(every: StatementTable) -> tuple[dict[str, Any], float]:
    """Fit if evidence concerns a statement; 98 of 100 with their own evidence pass the limit."""
    # constructed statements beside the point have evidence that hardly concerns them
    table = every.taken(~np.array([n.startswith("constructed beside") for n in every.names]))
    names = ("similarity_best", "terms_found", "terms_found_best", "neutral_least", "names_missing")
    columns = [FEATURES.index(name) for name in names]
    own = table.rows[:, columns].astype(np.float64)
    is_other = np.array([name == "beside the point" for name in table.names])
    body = fit_logistic_card(own, ~is_other, np.where(is_other, 3.0, 1.0), names)
    slopes = np.array([body["weights"][name] for name in names])
    p = sigmoid(own @ slopes + body["intercept"])
    return body, float(np.quantile(p[~is_other], 0.02).round(3))


def load_extra_rows(folder: Path) -> Iterator[EvidenceRow]:
    """Yield rows of sets with whole or several documents, of their calibration part only."""
    for name, task in EXTRA_SETS:
        taken: dict[bool, int] = defaultdict(int)
        title = f"{name} {task or ''}".strip()
        for row in load_dataset_rows(name, folder, task=task):
            wrong = row.label != "supported"
            if row.label is None or not row.documents or assign_part(row.group) != "calibration":
                continue
            taken[wrong] += 1
            if taken[wrong] <= ROWS_PER_EXTRA_SET // 2:
                yield EvidenceRow(
                    name=title,
                    group=row.group,
                    language=row.language,
                    response=row.response,
                    question=row.question,
                    documents=row.documents,
                    wrong=wrong,
                )


def make_unrelated_rows(rows: Sequence[EvidenceRow], count: int) -> list[EvidenceRow]:
    """Return statements with unrelated evidence: of another set of the same language."""
    rng, by_language = random.Random(SEED), _group_by_language(rows)
    unrelated = []
    for row in rng.sample(list(rows), min(count, len(rows))):
        others = [other for other in by_language[row.language] if other.name != row.name]
        if others:
            documents = rng.choice(others).documents
            unrelated.append(replace(row, name="beside the point", documents=documents, wrong=True))
    return unrelated


def load_all_rows(shared: Path, collected: Path | None) -> list[EvidenceRow]:
    """Load all rows that the model is fitted on; no reader was trained on them."""
    calibration = list(load_shared_pairs(shared, ["calibration"]))
    pairs: list[LabelledPair] = []
    readings = []
    if collected:
        measured = load_measured_claims(shared)
        loaded = load_collected_pairs(collected / "data", ["dev"], measured, is_whole=True)
        pairs = [pair for pair in loaded if pair.name.split(" ")[0] in COLLECTED_SETS]
        readings = load_paragraphs(collected / "qa", ["dev"])
    rows = sample_rows(calibration, ROWS_PER_SHARED_SET, SEED) + sample_rows(
        pairs, ROWS_PER_COLLECTED_SET, SEED
    )
    short = [pair for pair in calibration + pairs if len(pair.evidence) <= MAX_EVIDENCE_CHARS]
    maker = PairMaker(short, readings, SEED, twins=TWIN_SHARE)
    constructed = sample_rows(maker.make(CONSTRUCTED_ROWS), CONSTRUCTED_ROWS, SEED)
    tables = (maker.of_table("en") for _ in range(TABLE_ROWS))
    named = (replace(pair, name="constructed table") for pair in tables if pair)
    constructed_tables = sample_rows(named, TABLE_ROWS, SEED)
    return [
        *rows,
        *constructed,
        *constructed_tables,
        *load_extra_rows(shared),
        *place_in_documents([*rows, *constructed], DOCUMENT_ROWS, SEED),
        *make_unrelated_rows(rows, 300),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all rows, fit the model, and write its card and trees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--collected", type=Path)
    parser.add_argument("--cache", type=Path, required=True, help="keeps what was measured")
    parser.add_argument("--out", type=Path, default=EVIDENCE_MODEL_DIR)
    parser.add_argument("--ablate", action="store_true", help="leave out each family in turn")
    options = parser.parse_args(arguments)
    rows, measured = load_all_rows(options.shared, options.collected), []
    for index, row in enumerate(measure_rows(rows, Assessor(load_reader()), options.cache)):
        measured.append(row)
        if index % 500 == 0:
            sys.stderr.write(f"{index} of {len(rows)} rows measured\n")
    table = build_table(measured)
    scores = predict_out_of_fold(table)
    if options.ablate:
        return _print_ablation(table, scores)
    # the collected sets with licences and checksums
    paths = sorted(options.collected.glob("sources.d/*.json")) if options.collected else []
    sources = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    card = _fit_and_write(table, scores, options.out, sources)
    json.dump(card["measured"], sys.stdout, indent=1)
    return 0


def is_labelled_set(name: str) -> bool:
    """Return True for sets labelled by people; limits and most probabilities rest on them."""
    return name.split(" ")[0] in LABELLED_SETS


def _fit_and_write(
    table: StatementTable, scores: FloatArray, out: Path, collected: object
) -> dict[str, Any]:
    checked = np.array([is_labelled_set(name) for name in table.names])
    different = table.rows[:, FEATURES.index("values_different")] > 0
    statements = ScoredStatements(
        scores, different, table.wrong, table.weights, table.folds, table.materials
    )
    scored = statements.taken(checked)
    # constructed rows fill in for materials with few labelled rows, except for the limits
    rare = {m for m, n in Counter(scored.materials).items() if n < MIN_ROWS_OF_MATERIAL}
    is_constructed = np.array([name.startswith("constructed") for name in table.names])
    calibrating = statements.taken(
        checked | is_constructed & np.array([m in rare for m in table.materials])
    )
    calibration = fit_calibrations(calibrating)
    p = cross_calibrate(scored, calibrating)
    low, high = choose_limits(scored.wrong, p)
    model = fit_model(table)
    out.mkdir(parents=True, exist_ok=True)
    digest = model.trees.save(out / TREES_FILE)
    # the features of each built-in debater
    debaters = {
        "values": (
            *FEATURE_FAMILIES["values"],
            *FEATURE_FAMILIES["negation"],
            "names_missing",
            "terms_found",
        ),
        "coverage": (*FEATURE_FAMILIES["coverage"], "similarity_best", "similarity_third"),
        "reading": FEATURE_FAMILIES["reading"],
    }
    addressed, addressed_from = fit_addressed_model(table)
    card = {
        "name": "evidence-model",
        "sha256": digest,
        "reader": load_reader().id,
        "features": list(MODEL_FEATURES),
        "linear": model.linear,
        "parameters": {
            **TREE_PARAMETERS,
            "rising": RISING_FEATURES,
            "falling": FALLING_FEATURES,
            "seed": SEED,
        },
        "limits": {
            "supported_below": low,
            "hallucinated_from": high,
            "supported_error": MAX_SUPPORTED_ERROR,
            "hallucinated_error": MAX_HALLUCINATED_ERROR,
            "addressed_from": addressed_from,
        },
        "calibration": calibration,
        "parts": {
            name: fit_monotonic_linear(table, features) for name, features in debaters.items()
        },
        "addressed": addressed,
        "collected": collected,
        "rows": dict(sorted(Counter(table.names).items())),
        "measured": {
            "all": compute_evidence_figures(scored.wrong, p),
            "by_material": compute_figures_by_material(scored, p),
            "reliability": compute_reliability_by_material(scored, p, low, high),
            "answered": measure_coverage(scored, p),
            "left_out": measure_left_out_sets(table),
        },
    }
    text = json.dumps(card, indent=1, ensure_ascii=False) + "\n"
    (out / CARD_FILE).write_text(text, encoding="utf-8")
    return card


def _print_ablation(table: StatementTable, scores: FloatArray) -> int:
    """Print the gain of each family of features, by paired bootstrap over sets."""
    without = {
        family: predict_out_of_fold(
            table, [name for name in MODEL_FEATURES if name not in FEATURE_FAMILIES[family]]
        )
        for family in FEATURE_FAMILIES
        if any(name in MODEL_FEATURES for name in FEATURE_FAMILIES[family])
    }
    support = table.rows[:, FEATURES.index("support_best")]
    without["all but the reader's support"] = -support.astype(np.float64)
    set_names = sorted(set(table.names))
    labelled = [name for name in set_names if is_labelled_set(name)]
    for title, sets in (("all sets", set_names), ("sets that people labelled", labelled)):
        rng = np.random.default_rng(SEED)
        whole = _auroc_by_set(table, scores, sets)
        sys.stdout.write(f"{title}: AUROC {np.nanmean(whole):.4f}\n")
        for family, ablated in without.items():
            loss = whole - _auroc_by_set(table, ablated, sets)
            draws = np.nanmean(loss[rng.integers(0, len(sets), (2000, len(sets)))], axis=1)
            low, high = np.quantile(draws, (0.025, 0.975))
            interval = f"{np.nanmean(loss):+.4f} ({low:+.4f} to {high:+.4f})"
            sys.stdout.write(f"  {family}: {interval} by having it\n")
    return 0


def _auroc_by_set(table: StatementTable, scores: FloatArray, sets: Sequence[str]) -> FloatArray:
    values = []
    for name in sets:
        inside = np.array([n == name for n in table.names])
        value = compute_auroc(table.wrong[inside], scores[inside])
        values.append(np.nan if value is None or inside.sum() < 40 else value)
    return np.array(values)


if __name__ == "__main__":
    sys.exit(main())
