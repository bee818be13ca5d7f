"""What is asked first is measured fairly: same split, same start, no group on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from core.evaluation import active_learning
from core.evaluation.active_learning import (
    RANDOM,
    Material,
    Strategy,
    as_table,
    counts,
    curves,
    interval,
    labels_needed,
    main,
    measured,
    mixes,
)
from core.store.active_learning import Shares

DIVERSE = Strategy(Shares(0.0, 0.0, 1.0))


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(active_learning, "MOST", 40)
    monkeypatch.setattr(active_learning, "ENOUGH", 30)


def material() -> Material:
    """One large topic in which all is supported, and many small ones of one label each."""
    random = np.random.default_rng(3)
    topics = np.where(np.arange(300) < 108, 0, 1 + np.arange(300) % 24)
    vectors = random.normal(0.0, 0.05, (300, 25))
    vectors[np.arange(300), topics] += 1.0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    wrong = (topics > 0) & (topics % 2 == 0)
    return Material("made up", vectors.astype(np.float32), wrong, np.arange(300) // 2)


def test_a_group_is_asked_about_or_measured_on_and_nothing_is_asked_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = material()
    seen: list[list[int]] = []
    asked = active_learning._asked

    def told(material: Material, known: Sequence[int], *rest: object) -> list[int]:
        found = asked(material, known, *rest)  # type: ignore[arg-type]
        seen.append([*known, *found])
        return found

    monkeypatch.setattr(active_learning, "_asked", told)
    mixed = Strategy(Shares(0.4, 0.3, 0.3), 0.2)
    found = curves(rows, {"random": RANDOM, "mixed": mixed}, 0)
    _, test = active_learning._split(rows.groups, np.random.default_rng(0))
    assert counts() == [10, 20, 30, 40]
    assert all(len(curve.auroc) == 4 for curve in found.values())
    assert seen[0][:10] == seen[3][:10], "both begin with the same rows"
    for known in seen:
        assert len(set(known)) == len(known)
        assert not set(rows.groups[known]) & set(rows.groups[test])


def test_small_topics_are_found_sooner_by_what_is_unlike_the_rest() -> None:
    told = measured(material(), {"random": RANDOM, "diverse": DIVERSE}, range(6), len)
    ours, random = told["strategies"]["diverse"]["auroc"], told["strategies"]["random"]["auroc"]
    assert ours["above_random"]["low"] > 0.0
    assert ours["labels_needed"] <= random["labels_needed"] == 30
    assert random["above_random"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert "Learns faster than asking at random (AUROC): diverse." in as_table(told)


def test_where_nothing_is_gained_the_table_says_so() -> None:
    told = measured(material(), {"random": RANDOM, "again": RANDOM}, range(2), len)
    assert "Learns faster than asking at random (AUROC): none." in as_table(told)
    assert "Finds more wrong verdicts than at random: none." in as_table(told)


def test_a_committee_that_the_set_has_is_asked_and_no_other_is_trained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = material()
    apart = np.zeros(300)
    apart[::5] = 1.0
    known = Material("made up", rows.vectors, rows.wrong, rows.groups, None, apart)
    asked = active_learning._asked(
        known, [1, 2], np.arange(10, 100), Strategy(Shares(0.0, 1.0, 0.0)), None,
        np.random.default_rng(0),
    )  # fmt: skip
    assert len(asked) == 10
    assert all(row % 5 == 0 for row in asked)


def test_an_interval_and_the_labels_that_a_quality_takes() -> None:
    found = interval(np.array([0.01, 0.03, 0.02, 0.02]))
    assert found["value"] == pytest.approx(0.02)
    assert 0.01 <= found["low"] < found["value"] < found["high"] <= 0.03
    random = np.array([0.5, 0.6, 0.7, 0.8])
    assert labels_needed(np.array([0.5, 0.7, 0.7, 0.7]), random) == 20
    assert labels_needed(np.array([0.5, 0.6, 0.6, 0.6]), random) is None


def test_the_queues_mixes_are_compared_as_the_queue_gives_them() -> None:
    named = mixes()
    assert named.pop("random").random_share == 1.0
    for strategy in named.values():
        shares = strategy.shares
        assert shares.unsure + shares.apart + shares.unlike == pytest.approx(1.0)
        assert strategy.random_share == active_learning.RANDOM_SHARE


def test_data_that_is_not_there_takes_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--path", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["--path", str(tmp_path), "--seeds", "0"]) == 2
    assert "Expected at least one seed" in capsys.readouterr().err
