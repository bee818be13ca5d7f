"""The training process without its minutes: how a version comes to be listed, or does not."""

from __future__ import annotations

import contextlib
import errno
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.learning import retrain
from core.learning import train as training
from core.learning.head_fit import encode_rows, fit_head
from core.learning.options import TrainingOptions
from core.learning.retrain import (
    RETRAIN_LEASE_SECONDS,
    begin_training,
    cancel_training,
    renew_lease,
)
from core.learning.train import TrainingReporter
from core.learning.training_set import LabelledText
from core.llm.encoder import load_encoder
from core.runtime.config import ENCODER_DIR, PROJECT_ROOT
from core.runtime.errors import ConfigError, ConflictError, Stopped
from core.schema.records import Member, Project
from core.store import Store, open_store
from core.store.versions import SEED_VERSION, ClassifierVersions
from core.verdict.classifier import get_version_folder, load_classifier, load_head
from tests.learning.test_training_set import LABELS, add_corrected
from tests.waiting import wait_for


def test_a_head_trusts_the_judges_p_and_still_reads_texts_that_come_without() -> None:
    texts = {"hallucinated": "Verdict: INCORRECT.", "supported": "Verdict: CORRECT."}
    rows = [
        LabelledText(f"{texts[said]} {number}", label, 0.9 if said == "hallucinated" else 0.1)
        for number in range(60)
        for label in LABELS
        for said in [label if number % 10 else LABELS[label == "hallucinated"]]
    ]
    encoder = load_encoder(ENCODER_DIR)
    head = fit_head(encode_rows(rows, encoder), TrainingOptions(regularisation=0.5))

    def p(said: str, own: float | None) -> float:
        return head.probability(encoder.encode([f"{texts[said]} 7"]), [own])[0]

    assert head.judge_weight > 0.5
    assert p("hallucinated", 0.9) > 0.8 > p("hallucinated", 0.5) > 0.2 > p("supported", 0.1)
    assert p("hallucinated", None) > 0.5 > p("supported", None)


def begun(store: Store, home: Path) -> str:
    return begin_training(store, home, "Nora", TrainingOptions())


def ended(store: Store) -> tuple[str, str | None, str]:
    found = store.versions.trainings(1.0, 1e9)[0]
    return found.status, found.version_id, found.message


def folders(home: Path) -> list[str]:
    models = home / "models"
    return [path.name for path in models.iterdir() if path.is_dir()] if models.is_dir() else []


def test_a_version_is_listed_with_its_files_and_its_training_finished(
    ready: Store, home: Path
) -> None:
    training_id = begun(ready, home)
    version = training.run_training(ready, home, training_id)
    assert [known.id for known in ready.versions.all()] == [version]
    assert ended(ready)[:2] == ("finished", version)
    assert folders(home) == [version]
    folder = get_version_folder(home, version)
    head, card = load_head(folder)
    assert card == ready.versions.all()[0].card
    assert head.calibrator.kind == card["calibration"]["kind"]
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == {
        "head.json", "head.safetensors", "card.json", "README.md", "encoder/encoder.onnx"
    }  # fmt: skip
    assert "no case is in two of them" in (folder / "README.md").read_text()


def test_a_card_says_all_that_a_version_comes_from(ready: Store, home: Path) -> None:
    training.run_training(ready, home, begun(ready, home))
    card = ready.versions.all()[0].card
    trained, curve, held = card["trained_on"], card["calibration"], card["holdout"]
    assert (card["author"], card["compared_with"]) == ("Nora", SEED_VERSION)
    assert card["options"] == TrainingOptions().as_dict()
    assert card["splits"] == {"train": 18, "calibration": 0, "holdout": 6}
    assert len(trained["corrections"]) == 18
    assert trained["labels"] == {"hallucinated": 9, "supported": 9}, "of these, not of all"
    assert (trained["seed_texts"], trained["authors"], trained["languages"]) == (
        8, {"Mira": 18}, {"en": 18}
    )  # fmt: skip
    assert (curve["cross_fitted"], curve["n"]) == (True, 18)
    assert any("too few cases" in words for words in card["limits"])
    assert held["before"]["n"] == held["after"]["n"] == len(held["rows"]) == 6
    assert {row["case_id"] for row in held["rows"]} <= {f"c{n}" for n in range(24)}
    assert set(held["after"]) >= {"auroc", "log_loss", "ece", "ece_null", "balanced_accuracy"}
    assert set(held["difference"]) == {"value", "low", "high"}
    assert [band["n"] for band in held["reliability"]["after"]]
    assert card["memory_mb"] > 10
    assert json.loads(json.dumps(card)) == card


def test_a_cancel_at_the_last_moment_leaves_no_version(
    ready: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training_id = begun(ready, home)
    writing = ready.writing

    @contextlib.contextmanager
    def cancelled_first() -> Iterator[None]:
        ready.versions.end_training(training_id, "cancelled", 2.0, message="Cancelled by Karl.")
        with writing():
            yield

    monkeypatch.setattr(ready, "writing", cancelled_first)
    with pytest.raises(Stopped, match="was cancelled"):
        training.train_version(
            ready, home, TrainingReporter(ready, training_id, time.time()), TrainingOptions()
        )
    assert ready.versions.all() == []
    assert ended(ready) == ("cancelled", None, "Cancelled by Karl.")
    assert folders(home) == []


def test_a_cancel_on_the_way_is_seen_at_the_next_report(
    ready: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training_id = begun(ready, home)
    tuned: Any = vars(training)["fine_tune_encoder"]

    def cancelled(*given: Any) -> None:
        tuned(*given)
        cancel_training(ready, training_id, "Nora")

    monkeypatch.setattr(training, "fine_tune_encoder", cancelled)
    assert training.run_training(ready, home, training_id) == ""
    assert ended(ready) == ("cancelled", None, "Cancelled by Nora.")
    assert folders(home) == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "The disk is full: free some space"),
        (OSError(errno.EDQUOT, "Quota"), "The disk is full: free some space"),
        (RuntimeError("safetensors: I/O error: No space left on device"), "The disk is full"),
        (PermissionError(13, "Permission denied"), "The version could not be written"),
        (ValueError("shapes"), "Training failed (ValueError)"),
        (ConfigError("The encoder is odd."), "The encoder is odd."),
    ],
)
@pytest.mark.parametrize("where", ["fine_tune_encoder", "save_head", "rename"])
def test_whatever_fails_is_said_and_leaves_no_version(
    ready: Store, home: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, message: str,
    where: str,
) -> None:  # fmt: skip
    def failing(*_: Any) -> None:
        raise fault

    monkeypatch.setattr(Path if where == "rename" else training, where, failing)
    assert training.run_training(ready, home, begun(ready, home)) == ""
    status, version, words = ended(ready)
    assert (status, version) == ("failed", None)
    assert message in words
    assert (ready.versions.all(), ready.versions.active()) == ([], SEED_VERSION)
    assert folders(home) == []
    begun(ready, home)  # the place is free again


def test_a_disk_without_room_is_found_out_before_the_work(
    ready: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(PROJECT_ROOT)._replace(free=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    monkeypatch.setattr(training, "fine_tune_encoder", lambda *_: pytest.fail("it began"))
    assert training.run_training(ready, home, begun(ready, home)) == ""
    assert "MB of free disk" in ended(ready)[2]


def test_one_training_at_a_time_whoever_starts_it(ready: Store, home: Path) -> None:
    first = begun(ready, home)
    with pytest.raises(ConflictError, match="under way already"):
        begun(ready, home)
    assert training.run_training(ready, home, first)
    begun(ready, home)


def test_a_training_that_woke_up_too_late_stops_and_what_it_left_is_cleared(
    ready: Store, home: Path
) -> None:
    """Its machine slept; another training has begun meanwhile."""
    first = begun(ready, home)
    left = home / "models" / "v20260101-000000-abcdef.part"
    orphan = home / "models" / "v20260101-000000-abcdee"
    for folder in (left, orphan, home / "models" / "mine"):
        folder.mkdir(parents=True)
    ready.db.execute("UPDATE trainings SET heartbeat_at = 1.0")
    begun(ready, home)
    assert folders(home) == ["mine"], "nothing else is touched"
    assert training.run_training(ready, home, first) == ""
    assert ready.versions.all() == []
    statuses = [t.status for t in ready.versions.trainings(time.time(), RETRAIN_LEASE_SECONDS)]
    assert sorted(statuses) == ["interrupted", "running"]


def renew(
    ready: Store, home: Path, training_id: str, monkeypatch: pytest.MonkeyPatch
) -> contextlib.AbstractContextManager[None]:
    """Renew a training's lease without pauses, from a heartbeat at 1 s on."""
    ready.db.execute("UPDATE trainings SET heartbeat_at = 1.0")
    monkeypatch.setattr(retrain, "RENEWAL_SECONDS", 0.0)
    return renew_lease(home, training_id)


@pytest.mark.timing
def test_lease_is_renewed_after_a_failed_beat(
    ready: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training_id = begun(ready, home)
    failures = iter([sqlite3.OperationalError("database is locked")])
    real = ClassifierVersions.beat_training

    def beat(versions: ClassifierVersions, *values: Any) -> None:
        if error := next(failures, None):
            raise error
        real(versions, *values)

    monkeypatch.setattr(ClassifierVersions, "beat_training", beat)
    with renew(ready, home, training_id, monkeypatch):
        wait_for(
            lambda: (
                ready.versions.trainings(time.time(), RETRAIN_LEASE_SECONDS)[0].status == "running"
            ),
            "the second beat",
        )


def test_lost_lease_cannot_be_renewed(ready: Store, home: Path) -> None:
    first = begun(ready, home)
    ready.db.execute("UPDATE trainings SET heartbeat_at = 1.0")
    begun(ready, home)
    with pytest.raises(ConflictError):
        ready.versions.beat_training(first, time.time())


def test_a_training_that_is_killed_leaves_no_version_and_the_next_one_can_start(
    home: Path, tmp_path: Path
) -> None:
    with open_store(home) as store:
        store.projects.save(Project("project", "Ours", 1.0))
        store.projects.set_member(Member("project", "Nora", "admin", 1.0))
        for number in range(24):
            add_corrected(store, number, LABELS[number % 2])
        training_id = begun(store, home)
        command = [sys.executable, "-m", "core.learning.train", "--home", str(home), training_id]
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(command, cwd=PROJECT_ROOT, stderr=log)
        wait_for(
            lambda: store.versions.trainings(time.time(), RETRAIN_LEASE_SECONDS)[0].progress,
            "the training's first report",
        )
        (home / "models").mkdir(exist_ok=True)
        (home / "models" / f"v20260101-000000-{training_id[:6]}.part").mkdir()
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        with pytest.raises(ConflictError):
            begun(store, home)
        later = time.time() + RETRAIN_LEASE_SECONDS + 5
        assert store.versions.trainings(later, RETRAIN_LEASE_SECONDS)[0].status == "interrupted"
        store.db.execute("UPDATE trainings SET heartbeat_at = heartbeat_at - 60")
        begun(store, home)
        assert folders(home) == []
        assert store.versions.all() == []
        assert store.versions.active() == SEED_VERSION
        assert load_classifier(home, SEED_VERSION).probability("Verdict: INCORRECT.") > 0.0


def test_the_loss_curve_is_kept_and_stays_short(ready: Store, home: Path) -> None:
    told: list[dict[str, Any]] = []
    report = TrainingReporter(ready, begun(ready, home), time.time() - 10, told.append)
    for step in range(1, 2001):
        report("Fine-tuning", step, 2000, 1 / step)
    progress = ready.versions.trainings(time.time(), 60.0)[0].progress
    steps = [step for step, _ in progress["losses"]]
    assert steps == sorted(steps)
    assert steps[-1] == progress["step"] == 2000
    assert 100 < len(steps) <= 400
    assert [progress[name] for name in ("stage_number", "stages", "eta")] == [5, 9, 0.0]
    assert len(told) < 20, "written about twice a second, not at each step"
    report("Exporting the encoder")
    assert told[-1]["stage"] == "Exporting the encoder"
    assert told[-1]["losses"], "the curve stays to be seen"
