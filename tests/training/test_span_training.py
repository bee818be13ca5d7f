"""The span reader's training, on rows of our own: what is learnt is what was marked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.baseline.evidence_model import extract_trees
from core.baseline.span_reader import load_span_reader
from core.evaluation.dataset_files import GoldRow, GoldSpan
from core.pipeline.span_stage import VotedRun, VotedSpan, compute_soft_labels
from core.schema.records import Span, WordScore
from training import train_span_reader as span_training
from training.train_panel import (
    PanelRow,
    compare_systems,
    fit_vote,
    list_voter_pairs,
    predict_alone,
    predict_in_folds,
    predict_row,
)
from training.train_span_reader import count_common_terms, iterate_marked_rows, sample_words

pytestmark = pytest.mark.slow

CITIES = "Oslo Lima Cairo Quito Hanoi Delhi Accra Sofia Tunis Dakar Minsk Seoul".split()
LISTS = {"en": {"the": 0.05, "is": 0.03, "of": 0.04}, "sv": {"är": 0.04}}


def rows_of_our_own() -> list[GoldRow]:
    """Half of the answers name another city than the evidence; that name is marked."""
    rows = []
    for n in range(240):
        right, wrong = CITIES[n % 12], CITIES[(n * 5 + 3) % 12]
        said = right if n % 2 else wrong
        number = 100 + n
        response = f"The office number {number} of the company is in {said}, near the river."
        start = response.index(said)
        marked = (GoldSpan(start, start + len(said), 0.75),) if said != right else ()
        rows.append(
            GoldRow(
                id=str(n),
                place=f"line {n}",
                response=response,
                label="hallucinated" if marked else "supported",
                group=f"question {n}",
                language="sv" if n % 3 == 0 else "en",
                question=f"Where is the office number {number} of the company?",
                documents=(
                    f"The office number {number} of the company is in {right} [1]. "
                    "It stands near the river and has 40 rooms.",
                ),
                spans=marked,
                soft=marked,
            )
        )
    return rows


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        span_training,
        "TREE_PARAMETERS",
        {**span_training.TREE_PARAMETERS, "max_iter": 20, "min_samples_leaf": 5},
    )
    monkeypatch.setattr(span_training, "MAX_FEATURES", 12)


def test_related_rows_lie_in_one_fold_and_shares_are_those_of_the_annotators() -> None:
    gold = rows_of_our_own()
    rows = list(iterate_marked_rows(gold, LISTS, lambda _: None))
    assert len({row.fold for row in rows}) == 5
    first = next(row for row in rows if row.row.soft)
    place = first.places.index((first.row.soft[0].start, first.row.soft[0].end))
    assert first.shares[place] == 0.75
    assert first.shares.sum() == 0.75


def test_every_language_weighs_the_same() -> None:
    rows = list(iterate_marked_rows(rows_of_our_own(), LISTS, lambda _: None))
    _, _, weights = sample_words(rows, 0)
    ends = np.cumsum([len(row.places) for row in rows])
    each = [part.sum() for part in np.split(weights, ends[:-1])]
    for language in ("en", "sv"):
        mine = sum(w for w, row in zip(each, rows, strict=True) if row.row.language == language)
        assert mine == pytest.approx(1.0)


def test_common_terms_stand_in_many_rows_of_their_language() -> None:
    lists = count_common_terms(rows_of_our_own())
    assert {"en", "sv"} == set(lists)
    assert "in" in lists["en"]
    assert "101" not in lists["en"]


@pytest.mark.usefixtures("quick")
def test_trees_as_arrays_say_what_the_fitted_model_says() -> None:
    rows = list(iterate_marked_rows(rows_of_our_own(), LISTS, lambda _: None))
    columns = np.arange(len(rows[0].names))
    model = span_training.fit_trees(rows, columns)
    trees = extract_trees(model)
    features = np.concatenate([row.features for row in rows])
    assert np.allclose(trees.predict(features), model.predict(features), atol=1e-9)


@pytest.mark.usefixtures("quick")
def test_the_marked_word_is_learnt_on_rows_unseen_and_what_is_written_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = {"mushroom": rows_of_our_own(), "entailment_wice": rows_of_our_own()[:20]}
    monkeypatch.setattr(span_training, "load_dataset_rows", lambda name, data, task: gold[name])
    card = span_training.train_and_write(tmp_path / "data", tmp_path)
    folds, trivial = card["measured"]["five_folds"], card["measured"]["mark_all"]
    assert folds["iou"] > 0.9 > trivial["iou"] + 0.3
    # Half of the rows have no marks: any other than a constant score counts 0 on them.
    assert folds["correlation"] > 0.4
    assert set(folds["iou_by_language"]) == {"en", "sv"}
    assert json.loads((tmp_path / "card.json").read_text(encoding="utf-8")) == card
    reader = load_span_reader(tmp_path)
    row = gold["mushroom"][2]
    scores = reader.read(row.response, row.question, row.documents, "en")
    worst = max(scores, key=lambda score: score.p)
    assert row.spans
    assert (worst.start, worst.end) == (row.spans[0].start, row.spans[0].end)


TEXT = " ".join(["abcde"] * 10)


def row(number: int) -> PanelRow:
    """People mark as one member says, plus a little where the other votes on its own span."""
    random = np.random.default_rng(number)
    known = np.round(random.uniform(0.1, 0.8, size=10), 3)
    voted = np.zeros(10)
    start = int(random.integers(0, 8))
    voted[start : start + 3] = 0.8
    shares = 0.75 * known + 0.25 * voted
    scores = tuple(WordScore(6 * n, 6 * n + 5, float(p)) for n, p in enumerate(known))
    span = Span(6 * start, 6 * start + 17, TEXT[6 * start : 6 * start + 17], 0.6, "x", "other")
    runs = (VotedRun("knows", (), scores), VotedRun("other", (VotedSpan(span, (("knows", 0.8),)),)))
    soft = tuple(GoldSpan(6 * n, 6 * n + 5, float(p)) for n, p in enumerate(shares))
    hard = tuple(one for one in soft if one.p >= 0.5)
    gold = GoldRow(
        str(number), "", TEXT, "hallucinated", f"q{number}", "sv" if number % 2 else "en",
        spans=hard, soft=soft,
    )  # fmt: skip
    return PanelRow(gold, number % 5, runs)


ROWS = [row(number) for number in range(60)]


def test_known_weights_are_found() -> None:
    found = fit_vote(ROWS, list_voter_pairs(ROWS, is_adjudicated=True))
    weights = {(e, a): w for e, a, w in found.weights}
    assert weights["knows", "knows"] == pytest.approx(0.75, abs=0.05)
    other = weights.get(("other", "knows"), 0.0) * 0.8 + weights.get(("other", "other"), 0.0) * 0.6
    assert other == pytest.approx(0.25 * 0.8, abs=0.05)
    assert all(w > 0 for w in weights.values())


def test_without_adjudication_only_each_ones_own_p_counts() -> None:
    assert list_voter_pairs(ROWS, is_adjudicated=False) == (("knows", "knows"), ("other", "other"))
    found = fit_vote(ROWS, list_voter_pairs(ROWS, is_adjudicated=False))
    assert {(e, a) for e, a, _ in found.weights} <= {("knows", "knows"), ("other", "other")}


def test_no_row_is_measured_by_a_rule_that_saw_its_fold() -> None:
    seen: list[set[int]] = []

    def rule(rows: object) -> object:
        assert isinstance(rows, list)
        seen.append({one.fold for one in rows})
        return fit_vote(rows, list_voter_pairs(ROWS, is_adjudicated=False))

    said, rules = predict_in_folds(ROWS, rule)  # type: ignore[arg-type]
    assert seen == [set(range(5)) - {fold} for fold in range(5)]
    assert len(said) == len(ROWS)
    assert len(rules) == 5
    mine = ROWS[0]
    labels = compute_soft_labels(mine.runs, rules[mine.fold].weights)
    assert said[0] == predict_row(mine, labels, rules[mine.fold].threshold)


def test_the_vote_is_measured_beside_marking_all_and_each_member_alone() -> None:
    found = compare_systems(ROWS)
    systems = found["systems"]
    assert set(systems) == {
        "mark all", "knows alone", "other alone", "most runs, 0.7", "most runs, fitted threshold",
        "weighted, nobody adjudicates", "weighted vote",
    }  # fmt: skip
    vote = systems["weighted vote"]
    assert vote["iou"]["value"] > max(
        systems[name]["iou"]["value"] for name in systems if not name.startswith("weighted")
    )
    assert vote["correlation"]["value"] > 0.9
    gain = next(iter(found["gain"].values()))
    assert gain["iou"]["low"] > 0
    assert set(found["by_language"]["weighted vote"]) == {"en", "sv"}


def test_a_member_that_scores_no_words_stands_by_its_spans() -> None:
    said = predict_alone(ROWS[0], "other")
    assert said.soft == said.spans
    assert len(predict_alone(ROWS[0], "knows").soft) == 10
    assert predict_alone(ROWS[0], "nobody").spans == ()
