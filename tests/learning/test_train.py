"""The training process without its hours: how a version comes to be listed, or does not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.config import ENCODER_DIR
from core.errors import Stopped
from core.learning import train as training
from core.learning.fine_tune import Recipe
from core.learning.training_set import grow_holdout
from core.learning.verdict_texts import Lesson
from core.models.encoder import load_encoder
from core.records import Project
from core.store import Store, open_store
from core.store.versions import Training
from core.verdict.classifier import Head, version_folder
from tests.fakes import FakeEmbedder
from tests.learning.test_training_set import LABELS, add_corrected


@pytest.fixture
def ready(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store with the training `t`, which needs no models."""

    def fine_tuned(_rows: Any, _recipe: Any, folder: Path, *_: Any) -> None:
        folder.mkdir(parents=True)
        (folder / "encoder.onnx").write_text("weights")

    monkeypatch.setattr(training, "fine_tuned", fine_tuned)
    monkeypatch.setattr(training, "seed_rows", lambda _encoder: [])
    monkeypatch.setattr(training, "OnnxEncoder", lambda _folder: FakeEmbedder())
    monkeypatch.setattr(training, "fit_head", lambda *_: Head((0.0,) * FakeEmbedder.width, 0.0))
    with open_store(home) as store:
        store.projects.save(Project("project", "Ours", 1.0))
        for number in range(16):
            add_corrected(store, number, LABELS[number % 2])
        grow_holdout(store, 1.0)
        with store.writing():
            store.versions.start_training(
                Training("t", "Mira", 1.0, "running", {}, None, "", None), 1.0, 60.0
            )
        yield store


def test_a_head_trusts_the_judges_p_and_still_reads_texts_that_come_without() -> None:
    texts = {"hallucinated": "Verdict: INCORRECT.", "supported": "Verdict: CORRECT."}
    rows = [
        Lesson(f"{texts[said]} {number}", label, 0.9 if said == "hallucinated" else 0.1)
        for number in range(60)
        for label in LABELS
        for said in [label if number % 10 else LABELS[label == "hallucinated"]]
    ]
    encoder = load_encoder(ENCODER_DIR)
    head = training.fit_head(rows, encoder, Recipe(regularisation=0.5))

    def p(said: str, own: float | None) -> float:
        return head.probability(encoder.encode([f"{texts[said]} 7"]), [own])[0]

    assert head.judge_weight > 0.5
    assert p("hallucinated", 0.9) > 0.8 > p("hallucinated", 0.5) > 0.2 > p("supported", 0.1)
    assert p("hallucinated", None) > 0.5 > p("supported", None)


def ended(store: Store) -> tuple[str, str | None]:
    found = store.versions.trainings(1.0, 1e9)[0]
    return found.status, found.version_id


def folders(home: Path) -> list[str]:
    return [path.name for path in (home / "models").iterdir()]


def test_a_version_is_listed_with_its_files_and_its_training_finished(
    ready: Store, home: Path
) -> None:
    version = training.train(ready, home, "t", Recipe())
    assert [known.id for known in ready.versions.all()] == [version]
    assert ended(ready) == ("finished", version)
    assert (version_folder(home, version) / "encoder" / "encoder.onnx").exists()
    assert folders(home) == [version]


def test_a_cancel_at_the_last_moment_leaves_no_version(
    ready: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = ready.writing

    @contextlib.contextmanager
    def cancelled_first() -> Iterator[None]:
        ready.versions.end_training("t", "cancelled", 2.0, message="Cancelled by Karl.")
        with writing():
            yield

    monkeypatch.setattr(ready, "writing", cancelled_first)
    with pytest.raises(Stopped, match="was cancelled"):
        training.train(ready, home, "t", Recipe())
    assert ready.versions.all() == []
    assert ended(ready) == ("cancelled", None)
    assert folders(home) == []


def test_files_that_cannot_be_moved_leave_no_version(
    ready: Store, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: Path, _target: Path) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="No space"):
        training.train(ready, home, "t", Recipe())
    assert ready.versions.all() == []
    assert ended(ready) == ("running", None)
    assert folders(home) == []
