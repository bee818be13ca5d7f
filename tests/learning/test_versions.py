"""Versions beside each other: promotion against the active one, rolling back, old runs anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.learning import metrics, retrain, track_record
from core.learning.metrics import compare_versions
from core.learning.retrain import (
    activate_version,
    is_worse_version,
    list_waiting_runs,
    rescore_runs,
)
from core.learning.track_record import fit_limits
from core.learning.training_set import grow_holdout
from core.review.queue_ranking import enqueue_run
from core.runtime.errors import ConfigError, ConflictError, InputError, NotAllowed
from core.schema.events import Event, LabelPredicted, RunFinished
from core.schema.records import Member, Project, Verdict
from core.schema.run_state import fold_events
from core.store import Store, open_store
from core.store.queries import load_newest_verdicts, load_present_classifiers
from core.store.queue_order import PRIORITY_BONUS
from core.store.traces import export_trace, import_trace
from core.store.versions import SEED_VERSION, ClassifierVersion
from core.verdict.classifier import Classifier, ClassifierHead, get_version_folder, save_head
from tests.fakes import FakeEmbedder
from tests.learning.test_training_set import LABELS, add_corrected

pytestmark = pytest.mark.timing

# By what each version multiplies the judge's log odds: right, wrong, always hallucinated.
WEIGHTS = {SEED_VERSION: 0.5, "right": 1.0, "wrong": -1.0, "same": 1.0}


def scripted(_home: Path, version: str) -> Classifier:
    if version not in WEIGHTS:
        raise ConfigError(f"no {version}")
    head = ClassifierHead((0.0,) * FakeEmbedder.width, 0.0, WEIGHTS[version])
    return Classifier(version, head, FakeEmbedder(), {})


@pytest.fixture
def filled(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Forty corrected runs whose judge was right; versions that believe it, or the contrary."""
    for room in (metrics, retrain):
        monkeypatch.setattr(room, "load_classifier", scripted)
    with open_store(home) as store:
        store.projects.save(Project("project", "Ours", 1.0))
        store.projects.set_member(Member("project", "Nora", "admin", 1.0))
        for number in range(40):
            add_corrected(store, number, LABELS[number % 2])
            finish(store, f"r{number}", 0.8 if number % 2 == 0 else 0.3)
        grow_holdout(store, 1.0)
        for place, name in enumerate(("right", "wrong", "same")):
            save_head(get_version_folder(home, name), ClassifierHead((0.0,), 0.0), {})
            store.versions.add(
                ClassifierVersion(name, float(place), "Nora", {"compared_with": "old"})
            )
        yield store


def finish(store: Store, run_id: str, p: float) -> None:
    """The run's end by the seed; the judge's p is set to what its verdict was."""
    label = LABELS[0] if p >= 0.5 else LABELS[1]
    verdict = Verdict(label, p, max(p, 1 - p), "Why.", classifier=SEED_VERSION)
    with store.writing():
        store.db.execute(
            "UPDATE events SET payload = json_set(payload, '$.judgement.p', ?) "
            "WHERE run_id = ? AND kind = 'judgement_reached'",
            [p, run_id],
        )
        events: list[Event] = [LabelPredicted(3.0, verdict), RunFinished(4.0, verdict, 3.0)]
        store.runs.append(run_id, "me", events)


def test_any_two_versions_are_compared_on_todays_hold_out(filled: Store, home: Path) -> None:
    found = compare_versions(filled, home, "wrong", "right")
    assert found["versions"] == ["wrong", "right"]
    assert found["before"]["n"] == found["after"]["n"] == len(found["rows"]) == 10
    assert found["before"]["balanced_accuracy"] == 0.0
    assert found["after"]["balanced_accuracy"] == 1.0
    assert found["difference"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert found["after"]["always_hallucinated"] == 0.5
    assert {row["run_id"] for row in found["rows"]} <= {f"r{n}" for n in range(40)}
    # The judge says hallucinated throughout; a classifier that disagrees makes it unclear.
    verdicts = {row["label"]: row["verdicts"] for row in found["rows"]}
    assert verdicts["hallucinated"] == ["unclear", "hallucinated"]
    assert verdicts["supported"] == ["hallucinated", "unclear"]


def test_a_version_that_was_compared_with_another_is_measured_anew_before_it_is_promoted(
    filled: Store, home: Path
) -> None:
    assert not is_worse_version(filled, "wrong"), "nothing is known yet"
    with pytest.raises(InputError, match=r"worse .* than seed .* 0\.000 against 1\.000 on 10 .*"):
        activate_version(filled, home, "wrong", by="Nora", reason="")
    assert is_worse_version(filled, "wrong"), "what was measured is kept, and the page can ask why"
    assert filled.versions.active() == SEED_VERSION
    activate_version(filled, home, "wrong", by="Nora", reason="It knows our terms.")
    assert filled.versions.active() == "wrong"
    assert filled.versions.activations()[0].reason == "It knows our terms."


def test_a_kept_comparison_that_was_changed_in_the_file_is_made_anew(
    filled: Store, home: Path
) -> None:
    for _ in range(2):
        with pytest.raises(InputError, match=r"0\.000 against 1\.000"):
            activate_version(filled, home, "wrong", by="Nora", reason="")
        assert is_worse_version(filled, "wrong")
        filled.db.execute("UPDATE learned SET body = replace(body, '1.0', '0.0')")
        assert not is_worse_version(filled, "wrong"), (
            "nothing is known any more, and the page is drawn"
        )


def test_equal_is_not_worse_and_going_back_never_takes_a_reason(filled: Store, home: Path) -> None:
    for name, reason in (("wrong", "To see."), ("right", ""), ("same", ""), ("wrong", ""),
                         (SEED_VERSION, "")):  # fmt: skip
        activate_version(filled, home, name, by="Nora", reason=reason)
    assert [a.version_id for a in filled.versions.activations()] == [
        "seed", "wrong", "same", "right", "wrong"
    ]  # fmt: skip


def test_what_somebody_else_promoted_meanwhile_is_not_overruled(
    filled: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(home: Path, version: str) -> Classifier:
        filled.versions.activate("same", 5.0, "Karl", "")
        return scripted(home, version)

    monkeypatch.setattr(retrain, "load_classifier", meanwhile)
    with pytest.raises(ConflictError, match="meanwhile"):
        activate_version(filled, home, "right", by="Nora", reason="")
    assert filled.versions.active() == "same"


def test_a_damaged_version_is_not_promoted_whatever_the_reason(filled: Store, home: Path) -> None:
    (get_version_folder(home, "right") / "head.safetensors").write_bytes(b"x")
    with pytest.raises(ConfigError, match="bytes instead of"):
        activate_version(filled, home, "right", by="Nora", reason="I insist.")
    assert filled.versions.active() == SEED_VERSION


def labels(store: Store, *runs: str) -> list[str | None]:
    found = (store.runs.get(run, 9.0, 1e9) for run in runs)
    return [run.label if run else None for run in found]


def wanting(store: Store, rate: float) -> Project:
    """The project with that target error rate."""
    project = store.projects.get("project")
    assert project is not None
    wanted = replace(project, error_rate=rate)
    with store.writing():
        store.projects.save(wanted)
    return wanted


def test_old_runs_get_another_score_and_keep_their_first_verdict(filled: Store, home: Path) -> None:
    mark = filled.changes.of_runs()
    told: list[tuple[int, int]] = []
    found = rescore_runs(filled, home, "wrong", by="Nora", done=lambda n, of: told.append((n, of)))
    assert (found.version, found.runs, found.changed) == ("wrong", 40, 40)
    assert told[-1] == (40, 40)
    assert labels(filled, "r0", "r1") == ["unclear", "hallucinated"], "the judge says otherwise"
    assert filled.changes.of_runs() != mark, "kept figures must be made anew"
    events = [event for _, event in filled.runs.events("r0")]
    assert [event.kind for event in events][-3:] == [
        "label_predicted", "run_finished", "label_predicted"
    ]  # fmt: skip
    progress = fold_events(events)
    assert progress.first_verdict == events[-2].verdict  # type: ignore[union-attr]
    assert progress.verdict == events[-1].verdict  # type: ignore[union-attr]
    assert progress.verdict is not None
    assert (progress.classifier, progress.verdict.classifier) == ("wrong", "wrong")
    assert progress.seconds() == 3.0, "a new score is no work of the run"
    assert load_newest_verdicts(filled, "project")["c0"].verdict == progress.verdict
    assert load_present_classifiers(filled, ["r0", "none"]) == {"r0": "wrong"}
    run = filled.runs.get("r0", 9.0, 1e9)
    assert run is not None
    assert (run.status, run.finished_at) == ("finished", 4.0)
    assert run.p_hallucinated is None


def test_runs_are_scored_once_and_can_be_scored_back(filled: Store, home: Path) -> None:
    rescore_runs(filled, home, "wrong", by="Nora")
    assert list_waiting_runs(filled, "wrong") == []
    assert rescore_runs(filled, home, "wrong", by="Nora").runs == 0
    assert rescore_runs(filled, home, SEED_VERSION, by="Nora").changed == 40
    assert labels(filled, "r0", "r1") == ["hallucinated", "unclear"]
    assert fold_events(e for _, e in filled.runs.events("r0")).verdict is not None


def test_a_trace_that_was_scored_again_travels_as_it_is(filled: Store, home: Path) -> None:
    rescore_runs(filled, home, "wrong", by="Nora")
    data = export_trace(filled, "r0", 9.0, 1e9)
    run_id = import_trace(filled, data, "project", lambda *_: [])
    assert labels(filled, run_id) == ["unclear"]
    events = [event for _, event in filled.runs.events(run_id)]
    assert events == [event for _, event in filled.runs.events("r0")]


def test_runs_that_somebody_else_scores_meanwhile_get_one_score(
    filled: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = retrain.list_waiting_runs

    def raced(store: Store, version: str) -> list[str]:
        found = waiting(store, version)
        monkeypatch.setattr(retrain, "list_waiting_runs", waiting)
        assert rescore_runs(store, home, version, by="Nora").runs == 40
        return found

    monkeypatch.setattr(retrain, "list_waiting_runs", raced)
    assert rescore_runs(filled, home, "wrong", by="Nora").runs == 0
    scores = "SELECT count(*) AS n FROM events WHERE kind = 'label_predicted' GROUP BY run_id"
    assert {row["n"] for row in filled.db.query(scores)} == {2}, "its own, and one more"


def test_scoring_again_takes_a_lead_and_a_version(filled: Store, home: Path) -> None:
    with pytest.raises(NotAllowed, match="takes the role lead; Karl has none"):
        rescore_runs(filled, home, "wrong", by="Karl")
    with pytest.raises(InputError, match="no version v9"):
        rescore_runs(filled, home, "v9", by="Nora")
    assert list_waiting_runs(filled, SEED_VERSION) == []


def test_the_queue_goes_by_the_new_score(filled: Store, home: Path) -> None:
    assert enqueue_run(filled, "r0", 5.0)
    before = filled.queue.get("c0")
    rescore_runs(filled, home, "wrong", by="Nora")
    after = filled.queue.get("c0")
    assert before is not None
    assert after is not None
    run = filled.runs.get("r0", 9.0, 0.0)
    assert run is not None
    assert after.p == run.p_hallucinated != before.p
    assert filled.queue.get("c1") is None, "what was not in the queue does not come in"


@pytest.mark.parametrize("is_broken", [False, True])
def test_limits_are_fitted_anew_for_the_version_that_becomes_active(
    filled: Store, home: Path, monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    """One that cannot be fitted does not take an activation back."""

    def broken(*_: object) -> None:
        raise ConfigError("no")

    wanting(filled, 0.1)
    if is_broken:
        monkeypatch.setattr(track_record, "fit_limits", broken)
    activate_version(filled, home, "right", by="Nora", reason="")
    assert filled.versions.active() == "right"
    assert (filled.learned.in_use("selective", "project") is None) is is_broken


def test_what_is_for_people_goes_by_the_version_of_the_new_score(filled: Store, home: Path) -> None:
    project = wanting(filled, 0.2)
    for number in range(40):
        enqueue_run(filled, f"r{number}", 5.0)
    rescore_runs(filled, home, "right", by="Nora")
    policy = fit_limits(filled, project, "Nora", 6.0)
    assert policy is not None
    assert [limit.version for limit in policy.limits if limit.threshold] == ["right"]
    run = filled.runs.get("r0", 9.0, 0.0)
    assert run is not None
    assert not policy.is_for_people(run, "right")
    assert policy.is_for_people(run, SEED_VERSION)
    for again in range(2):  # as the limit was fitted, and queued anew
        items = [filled.queue.get(f"c{number}") for number in range(40)]
        assert [item for item in items if item is None or item.teaches >= PRIORITY_BONUS] == [], (
            again
        )
        enqueue_run(filled, "r0", 7.0)
