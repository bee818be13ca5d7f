"""Versions, activations, trainings and the frozen hold-out."""

from __future__ import annotations

from core.store import Store
from core.store.versions import SEED_VERSION, ClassifierVersion, TrainingJob

LEASE = 20.0


def training(number: int) -> TrainingJob:
    return TrainingJob(f"t{number}", "Mira", float(number), "running", {}, None, "", None)


def test_the_seed_is_active_until_another_is_and_rolling_back_is_one_more_entry(
    store: Store,
) -> None:
    assert store.versions.active() == SEED_VERSION
    store.versions.add(ClassifierVersion("v1", 1.0, "Mira", {"n": 16}))
    store.versions.activate("v1", 2.0, "Mira", "better")
    assert store.versions.active() == "v1"
    store.versions.activate(SEED_VERSION, 3.0, "Mira", "worse after all")
    assert store.versions.active() == SEED_VERSION
    assert [a.version_id for a in store.versions.activations()] == [SEED_VERSION, "v1"]
    assert store.versions.get("v1") == ClassifierVersion("v1", 1.0, "Mira", {"n": 16})


def test_only_one_training_at_a_time_until_it_falls_silent(store: Store) -> None:
    assert store.versions.start_training(training(1), 100.0, LEASE)
    assert not store.versions.start_training(training(2), 110.0, LEASE)
    assert store.versions.start_training(training(2), 121.0, LEASE)
    assert [t.status for t in store.versions.trainings(121.0, LEASE)] == ["running", "interrupted"]


def test_a_cancelled_training_hears_it_and_stays_cancelled(store: Store) -> None:
    store.versions.start_training(training(1), 100.0, LEASE)
    assert store.versions.report_training("t1", {"step": 1}, 101.0, pid=7) == "running"
    store.versions.end_training("t1", "cancelled", 102.0)
    assert store.versions.report_training("t1", {"step": 2}, 103.0, pid=7) == "cancelled"
    store.versions.end_training("t1", "finished", 104.0, version_id="v1")
    ended = store.versions.trainings(105.0, LEASE)[0]
    assert (ended.status, ended.version_id, ended.progress) == ("cancelled", None, {"step": 1})


def test_a_case_never_changes_its_side(store: Store) -> None:
    store.versions.assign_sides({"a": "holdout", "b": "train", "d": "calibration"}, 1.0)
    store.versions.assign_sides({"a": "train", "b": "calibration", "c": "holdout"}, 2.0)
    assert store.versions.sides() == {
        "a": "holdout", "b": "train", "c": "holdout", "d": "calibration"
    }  # fmt: skip
    assert store.versions.holdout() == {"a": True, "b": False, "c": True, "d": False}
