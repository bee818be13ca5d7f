"""Weights of votes fitted in folds: found where they are known, and measured on rows unseen."""

from __future__ import annotations

import numpy as np
import pytest

from core.evaluation.files import GoldRow, GoldSpan
from core.pipeline.span_stage import VotedRun, VotedSpan, soft_labels
from core.schema.records import Span, WordScore
from training.train_panel import PanelRow, alone, fit, in_folds, pairs_of, report, said_by

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
    runs = (
        VotedRun("knows", (), scores),
        VotedRun("other", (VotedSpan(span, (("knows", 0.8),)),)),
    )
    soft = tuple(GoldSpan(6 * n, 6 * n + 5, float(p)) for n, p in enumerate(shares))
    hard = tuple(one for one in soft if one.p >= 0.5)
    gold = GoldRow(
        str(number), "", TEXT, "hallucinated", f"q{number}", "sv" if number % 2 else "en",
        spans=hard, soft=soft,
    )  # fmt: skip
    return PanelRow(gold, number % 5, runs)


ROWS = [row(number) for number in range(60)]


def test_known_weights_are_found() -> None:
    found = fit(ROWS, pairs_of(ROWS, is_adjudicated=True))
    weights = {(e, a): w for e, a, w in found.weights}
    assert weights["knows", "knows"] == pytest.approx(0.75, abs=0.05)
    other = weights.get(("other", "knows"), 0.0) * 0.8 + weights.get(("other", "other"), 0.0) * 0.6
    assert other == pytest.approx(0.25 * 0.8, abs=0.05)
    assert all(w > 0 for w in weights.values())


def test_without_adjudication_only_each_ones_own_p_counts() -> None:
    assert pairs_of(ROWS, is_adjudicated=False) == (("knows", "knows"), ("other", "other"))
    found = fit(ROWS, pairs_of(ROWS, is_adjudicated=False))
    assert {(e, a) for e, a, _ in found.weights} <= {("knows", "knows"), ("other", "other")}


def test_no_row_is_measured_by_a_rule_that_saw_its_fold() -> None:
    seen: list[set[int]] = []

    def rule(rows: object) -> object:
        assert isinstance(rows, list)
        seen.append({one.fold for one in rows})
        return fit(rows, pairs_of(ROWS, is_adjudicated=False))

    said, rules = in_folds(ROWS, rule)  # type: ignore[arg-type]
    assert seen == [set(range(5)) - {fold} for fold in range(5)]
    assert len(said) == len(ROWS)
    assert len(rules) == 5
    mine = ROWS[0]
    labels = soft_labels(mine.runs, rules[mine.fold].weights)
    assert said[0] == said_by(mine, labels, rules[mine.fold].threshold)


def test_the_vote_is_measured_beside_marking_all_and_each_member_alone() -> None:
    found = report(ROWS)
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
    said = alone(ROWS[0], "other")
    assert said.soft == said.spans
    assert len(alone(ROWS[0], "knows").soft) == 10
    assert alone(ROWS[0], "nobody").spans == ()
