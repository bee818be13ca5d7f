"""The span reader's training, on rows of our own: what is learnt is what was marked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from core.baseline.evidence_model import trees_of
from core.baseline.span_reader import load_span_reader
from core.evaluation.files import GoldRow, GoldSpan
from training import train_span_reader as span_training
from training.train_span_reader import common_terms, marked_rows, sampled

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
        "PARAMETERS",
        {**span_training.PARAMETERS, "max_iter": 20, "min_samples_leaf": 5},
    )
    monkeypatch.setattr(span_training, "FEATURES_KEPT", 12)


def test_related_rows_lie_in_one_fold_and_shares_are_those_of_the_annotators() -> None:
    gold = rows_of_our_own()
    rows = marked_rows(gold, LISTS, lambda _: None)
    assert len({row.fold for row in rows}) == 5
    first = next(row for row in rows if row.row.soft)
    place = first.places.index((first.row.soft[0].start, first.row.soft[0].end))
    assert first.shares[place] == 0.75
    assert first.shares.sum() == 0.75


def test_every_language_weighs_the_same() -> None:
    rows = marked_rows(rows_of_our_own(), LISTS, lambda _: None)
    _, _, weights = sampled(rows, 0)
    ends = np.cumsum([len(row.places) for row in rows])
    each = [part.sum() for part in np.split(weights, ends[:-1])]
    for language in ("en", "sv"):
        mine = sum(w for w, row in zip(each, rows, strict=True) if row.row.language == language)
        assert mine == pytest.approx(1.0)


def test_common_terms_stand_in_many_rows_of_their_language() -> None:
    lists = common_terms(rows_of_our_own())
    assert {"en", "sv"} == set(lists)
    assert "in" in lists["en"]
    assert "101" not in lists["en"]


@pytest.mark.usefixtures("quick")
def test_trees_as_arrays_say_what_the_fitted_model_says() -> None:
    rows = marked_rows(rows_of_our_own(), LISTS, lambda _: None)
    columns = np.arange(len(rows[0].names))
    model = span_training.fitted(rows, columns)
    trees = trees_of(model)
    features = np.concatenate([row.features for row in rows])
    assert np.allclose(trees.predict(features), model.predict(features), atol=1e-9)


@pytest.mark.usefixtures("quick")
def test_the_marked_word_is_learnt_on_rows_unseen_and_what_is_written_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = {"mushroom": rows_of_our_own(), "entailment_wice": rows_of_our_own()[:20]}
    monkeypatch.setattr(span_training, "load", lambda name, data, task: gold[name])
    card = span_training.train(tmp_path / "data", tmp_path)
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
