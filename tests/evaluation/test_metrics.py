"""The figures of an evaluation against scikit-learn's, Mu-SHROOM's rules and cases by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as oracle

from core.evaluation.dataset_files import GoldRow, GoldSpan
from core.evaluation.evaluate import compute_figures
from core.evaluation.metrics import (
    build_measures,
    estimate_calibrated_ece,
    estimate_figures,
)
from core.evaluation.outcomes import Outcomes, Prediction, predict_all_marked, predict_constant
from core.schema.records import Label

LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")
TWO = LABELS[:2]
RESPONSE = "Twelve wolves sang there."
WORDS = {"f1": "hallucinated", "f1_supported": "supported"}


def row(label: Label, group: str = "", **more: object) -> GoldRow:
    return GoldRow("1", "a file, line 1", RESPONSE, label, group, **more)  # type: ignore[arg-type]


def values(golds: Sequence[Label], said: Sequence[Prediction]) -> dict[str, float]:
    return valued(Outcomes([row(gold) for gold in golds], said))


def valued(found: Outcomes) -> dict[str, float]:
    drawn = estimate_figures(build_measures(found), found.groups, seed=1, draws=1)
    return {name: figure["value"] for name, figure in drawn.items()}


P = st.floats(0, 1)
SAID = st.builds(Prediction, label=st.sampled_from(LABELS), p=st.one_of(st.none(), P))
PAIRS = st.lists(st.tuples(st.sampled_from(TWO), SAID), min_size=2, max_size=40)


@given(PAIRS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_labels_count_as_scikit_learn_counts_the_words(
    pairs: list[tuple[Label, Prediction]],
) -> None:
    pairs = [*pairs, ("supported", Prediction("unclear")), ("hallucinated", Prediction("unclear"))]
    golds, said = [gold for gold, _ in pairs], [prediction for _, prediction in pairs]
    told = [prediction.label for prediction in said]
    p = [0.5 if s.p is None else s.p for s in said]
    found = values(golds, said)
    wrong = [gold == "hallucinated" for gold in golds]
    positive = {"labels": ["hallucinated"], "average": "macro", "zero_division": 0}
    expected = {
        "accuracy": oracle.accuracy_score(golds, told),
        "balanced_accuracy": oracle.recall_score(
            golds, told, labels=list(TWO), average="macro", zero_division=0
        ),
        "precision": oracle.precision_score(golds, told, **positive),
        "recall": oracle.recall_score(golds, told, **positive),
        "f1": oracle.f1_score(golds, told, **positive),
        "f2": oracle.fbeta_score(golds, told, beta=2, **positive),
        "f1_supported": oracle.f1_score(golds, told, **(positive | {"labels": ["supported"]})),
        "mcc": oracle.matthews_corrcoef(golds, told),
        "auroc": oracle.roc_auc_score(wrong, p),
        "brier": oracle.brier_score_loss(wrong, p),
        "coverage": np.mean([label != "unclear" for label in told]),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-4)
    assert "accuracy3" not in found
    assert "iou" not in found


def test_weights_are_as_good_as_rows_drawn_twice() -> None:
    golds: list[Label] = ["supported", "hallucinated", "hallucinated", "supported", "supported"]
    labels: list[Label] = ["supported", "supported", "hallucinated", "hallucinated", "unclear"]
    said = [
        Prediction(label, p) for label, p in zip(labels, (0.2, 0.4, 0.9, 0.4, 0.7), strict=True)
    ]
    times = np.array([[2, 1, 0, 3, 1]])
    drawn = [i for i, n in enumerate(times[0]) for _ in range(n)]
    expected = values([golds[i] for i in drawn], [said[i] for i in drawn])
    weighted = build_measures(Outcomes([row(gold) for gold in golds], said))
    assert {n: float(m(times.astype(float))[0]) for n, m in weighted.items()} == pytest.approx(
        expected, abs=1e-4
    )


def test_where_evidence_may_be_silent_supported_stands_against_not_supported() -> None:
    golds: list[Label] = ["unclear", "unclear", "unclear", "hallucinated", "hallucinated"]
    golds += ["supported", "supported", "supported"]
    labels: list[Label] = ["unclear", "hallucinated", "supported", "hallucinated", "unclear"]
    labels += ["supported", "unclear", "hallucinated"]
    found = values(golds, [Prediction(label, 0.6) for label in labels])
    assert found["accuracy"] == 4 / 8  # both of silence, one wrong, one right
    assert found["balanced_accuracy"] == pytest.approx((3 / 5 + 1 / 3) / 2, abs=1e-4)
    assert found["recall"] == 3 / 5
    assert found["precision"] == 3 / 4
    assert found["accuracy3"] == 3 / 8
    assert found["coverage"] == 5 / 8


@pytest.mark.parametrize("cause", ["failed", "refused: the claim is empty"])
def test_a_row_without_an_answer_is_right_nowhere(cause: str) -> None:
    golds: list[Label] = ["unclear", "unclear", "hallucinated", "supported"]
    broken, fine = Prediction("unclear", cause=cause), Prediction("unclear", cause="not_addressed")
    found = values(golds, [broken] * 4)
    named = ("accuracy", "balanced_accuracy", "f1", "recall", "accuracy3", "coverage")
    assert {name: found[name] for name in named} == dict.fromkeys(named, 0.0)
    found = values(golds, [broken, fine, broken, broken])
    assert (found["accuracy"], found["accuracy3"]) == (1 / 4, 1 / 4)
    assert found["recall"] == pytest.approx(1 / 3, abs=1e-4)


def test_one_label_alone_has_nothing_to_tell_apart() -> None:
    found = values(["supported"] * 3, [Prediction(label, 0.2) for label in LABELS])
    assert set(found) == {"accuracy", "brier", "ece", "coverage", "selective_accuracy"}
    found = values(["hallucinated"] * 3, [Prediction(label, 0.2) for label in LABELS])
    assert set(found) == {"accuracy", "recall", "brier", "ece", "coverage", "selective_accuracy"}


def test_calibration_counts_answered_rows_by_bins() -> None:
    golds: list[Label] = ["hallucinated", "supported", "hallucinated", "supported", "supported"]
    ps = (0.75, 0.75, 1.0, 0.0, 0.31)
    labels: list[Label] = ["hallucinated", "hallucinated", "hallucinated", "supported", "unclear"]
    found = values(golds, [Prediction(lab, p) for lab, p in zip(labels, ps, strict=True)])
    assert found["ece"] == pytest.approx((2 * 0.25 + 0 + 0) / 4)
    nothing = values(["supported", "hallucinated"], [Prediction("unclear")] * 2)
    assert "ece" not in nothing
    assert nothing["coverage"] == 0


def selective(pairs: Sequence[tuple[Label, float | None]]) -> Outcomes:
    """Rows with evidence, each with its gold label and p."""
    rows = [row(gold, str(n), documents=("d",)) for n, (gold, _) in enumerate(pairs)]
    return Outcomes(rows, [Prediction("unclear", p) for _, p in pairs])


TIED = st.sampled_from([None, 0.0, 0.3, 0.5, 0.7, 1.0])


@given(
    st.lists(st.tuples(st.sampled_from(TWO), TIED), min_size=1, max_size=7),
    st.lists(st.integers(0, 2), min_size=7, max_size=7),
)
def test_the_area_under_risk_and_coverage_is_the_mean_over_all_orders_of_ties(
    pairs: list[tuple[Label, float | None]], times: list[int]
) -> None:
    times[0] = max(times[0], 1)
    found = selective(pairs)
    expected_risks = []
    drawn = [pair for pair, n in zip(pairs, times, strict=False) for _ in range(n)]
    by_confidence: dict[float, list[bool]] = {}
    for gold, p in drawn:
        is_wrong = p is None or (p >= 0.5) != (gold == "hallucinated")
        confidence = abs((0.5 if p is None else p) - 0.5)
        by_confidence.setdefault(round(confidence, 9), []).append(is_wrong)
    done, wrong = 0, 0.0
    for _, tied in sorted(by_confidence.items(), reverse=True):
        for place in range(1, len(tied) + 1):
            expected_risks.append((wrong + place * sum(tied) / len(tied)) / (done + place))
        done, wrong = done + len(tied), wrong + sum(tied)
    weights = np.array([times[: len(pairs)]], dtype=float)
    measured = build_measures(found)["aurc"](weights)[0]
    assert measured == pytest.approx(sum(expected_risks) / len(expected_risks))


def test_risk_does_not_depend_on_the_order_of_rows_that_are_equally_sure() -> None:
    pairs: list[tuple[Label, float | None]] = [(gold, 1.0) for gold in TWO for _ in range(2)]
    for found in (selective(pairs), selective(pairs[::-1])):
        assert build_measures(found)["aurc"](np.ones((1, 4)))[0] == pytest.approx(0.5)


def test_the_calibrated_null_is_that_of_a_model_without_fault() -> None:
    random = np.random.default_rng(3)
    by_size = {}
    for n in (53, 232):
        said = [Prediction("hallucinated", float(p)) for p in random.random(n)]
        null = estimate_calibrated_ece(Outcomes([row("supported")] * n, said), seed=1)
        assert null is not None
        assert null["low"] < null["value"] < null["high"]
        by_size[n] = null["value"]
    assert by_size == pytest.approx({53: 0.131, 232: 0.064}, abs=0.015)
    assert (
        estimate_calibrated_ece(Outcomes([row("supported")], [Prediction("unclear")]), seed=1)
        is None
    )


def spans(*places: tuple[int, int], p: float = 1.0) -> tuple[GoldSpan, ...]:
    return tuple(GoldSpan(start, end, p) for start, end in places)


def test_words_are_scored_by_characters_and_languages_count_alike() -> None:
    half = row("hallucinated", spans=spans((0, 6)), soft=spans((0, 6), p=0.6), language="en")
    none = row("supported", spans=(), soft=(), language="sv")
    rows = [half, half, none]
    said = [
        Prediction("hallucinated", 0.9, spans((0, 3)), spans((0, 6), p=0.4)),
        Prediction("hallucinated", 0.9, spans((0, 6)), spans((0, 6), p=0.4)),
        Prediction("supported", 0.1),
    ]
    found = valued(Outcomes(rows, said))
    assert found["iou"] == (0.75 + 1.0) / 2
    assert found["correlation"] == 1.0
    assert found["char_f1"] == pytest.approx(2 * 9 / (9 + 12), abs=1e-4)


@pytest.mark.parametrize(
    ("gold", "ours", "expected"),
    [
        ((), (), 1.0),
        (spans((0, len(RESPONSE)), p=0.5), (), 1.0),  # both constant: official, though generous
        (spans((0, 5)), (), 0.0),
        (spans((0, 5)), spans((0, len(RESPONSE))), 0.0),
        (spans((0, 5)), spans((5, len(RESPONSE))), -1.0),
    ],
)
def test_a_constant_side_correlates_as_the_official_scorer_has_it(
    gold: tuple[GoldSpan, ...], ours: tuple[GoldSpan, ...], expected: float
) -> None:
    rows = [row("hallucinated", spans=gold, soft=gold), row("hallucinated", spans=spans((0, 1)))]
    said = [Prediction("hallucinated", 0.9, soft=ours), Prediction("hallucinated", 0.9)]
    rows[1] = row("hallucinated", spans=spans((0, 1)), soft=spans((0, 1)))
    said[1] = Prediction("hallucinated", 0.9, soft=spans((0, 1)))
    assert valued(Outcomes(rows, said))["correlation"] == pytest.approx((expected + 1.0) / 2)


def test_rows_whose_words_nobody_marked_take_no_part_in_span_scores() -> None:
    rows = [row("hallucinated", spans=spans((0, 6))), row("hallucinated"), row("supported")]
    found = valued(Outcomes(rows, [Prediction("hallucinated", 0.9, spans((0, 6)))] * 3))
    assert (found["iou"], found["char_f1"]) == (1.0, 1.0)
    assert "correlation" not in found


def test_trivial_answers_have_the_figures_that_they_must() -> None:
    rows = [row("hallucinated", spans=spans((0, 6)))] * 3 + [row("supported", spans=())]
    wrong, right = (
        valued(predict_constant("hallucinated", rows)),
        valued(predict_constant("supported", rows)),
    )
    assert (wrong["accuracy"], right["accuracy"]) == (0.75, 0.25)
    assert wrong["balanced_accuracy"] == right["balanced_accuracy"] == 0.5
    assert wrong["auroc"] == right["auroc"] == 0.5
    assert (wrong["mcc"], right["f1"], right["precision"]) == (0, 0, 0)
    assert (wrong["iou"], right["iou"]) == (0.25, 0.25)
    whole = valued(predict_all_marked(rows))
    assert whole["iou"] == pytest.approx(3 * 6 / len(RESPONSE) / 4, abs=1e-4)
    assert whole["accuracy"] == 0.75


def test_intervals_are_seeded_and_hold_the_value() -> None:
    rows = [row(TWO[i % 2], str(i)) for i in range(200)]
    said = [Prediction(TWO[(i % 2) ^ (i % 5 == 0)], 0.5 + 0.4 * (i % 2)) for i in range(200)]
    found = Outcomes(rows, said)
    first, again, other = (
        estimate_figures(build_measures(found), found.groups, seed) for seed in (1, 1, 2)
    )
    assert first == again != other
    accuracy = first["accuracy"]
    assert accuracy["value"] == 0.8
    spread = 1.96 * (0.8 * 0.2 / 200) ** 0.5
    assert accuracy["low"] == pytest.approx(0.8 - spread, abs=0.02)
    assert accuracy["high"] == pytest.approx(0.8 + spread, abs=0.02)


def test_rows_of_a_group_are_drawn_together() -> None:
    said = [Prediction("hallucinated" if i < 100 else "supported", 0.5) for i in range(200)]
    width = {}
    for name, groups in {"alone": range(200), "tens": (i // 10 for i in range(200))}.items():
        found = Outcomes([row("hallucinated", str(g)) for g in groups], said)
        accuracy = estimate_figures(build_measures(found), found.groups, seed=1)["accuracy"]
        width[name] = accuracy["high"] - accuracy["low"]
    assert width["tens"] > 2.5 * width["alone"]


def test_groups_are_those_that_splits_keep_together() -> None:
    rows = [row("supported", name) for name in ("Who wrote X?", "who wrote x", "Who wrote Y?")]
    assert Outcomes(rows, []).groups.tolist() == [0, 0, 1]


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_few_groups_give_no_interval(groups: int) -> None:
    rows = [row(TWO[i % 2], str(i % groups)) for i in range(20)]
    found = Outcomes(rows, [Prediction(TWO[(i % 2) ^ (i < 9)], 0.9) for i in range(20)])
    figures = compute_figures(found, seed=1)
    assert {tuple(own) for name, own in figures.items() if name != "ece_null"} == {("value",)}
    assert figures["accuracy"]["value"] == 0.55


def test_shares_on_which_all_groups_agree_have_wilsons_interval_over_groups() -> None:
    golds = [TWO[i >= 5] for i in range(20)]
    right = Outcomes(
        [row(gold, str(i)) for i, gold in enumerate(golds)],
        [Prediction(gold, float(gold == "hallucinated")) for gold in golds],
    )
    figures = compute_figures(right, seed=1)
    assert figures["accuracy"] == {"value": 1.0, "low": 0.8389, "high": 1.0}
    assert figures["coverage"] == figures["accuracy"]
    few = figures["balanced_accuracy"]["low"]
    assert few == pytest.approx(5 / (5 + 1.96**2), abs=1e-3), "the five of the rarer label"
    tens = replace(
        right, rows=[replace(one, group=str(i // 2)) for i, one in enumerate(right.rows)]
    )
    assert compute_figures(tens, seed=1)["accuracy"]["low"] == 0.7225, "ten groups"
    none = Outcomes(right.rows, [Prediction("supported", 0.0)] * 20)
    assert compute_figures(none, seed=1)["precision"] == {"value": 0.0, "low": 0.0, "high": 1.0}
