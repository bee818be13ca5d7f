"""A store with corrections in which a training needs no models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.learning import train as training
from core.learning.training_set import LabelledText
from core.schema.records import Member, Project
from core.store import Store, open_store
from tests.fakes import FakeEmbedder
from tests.learning.test_training_set import LABELS, add_corrected

SEEDS = [LabelledText(f"Seed {n}.", LABELS[n % 2], None, f"seed {n}") for n in range(8)]


@pytest.fixture(autouse=True)
def _without_weights(without_weights: None) -> None:
    """What people teach does not depend on what the shipped reader has learned."""


@pytest.fixture
def ready(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store with corrections; training it needs no models."""

    def fine_tuned(_rows: Any, _options: Any, _source: Path, folder: Path, *_: Any) -> None:
        folder.mkdir(parents=True)
        (folder / "encoder.onnx").write_text("weights")

    monkeypatch.setattr(training, "fine_tune_encoder", fine_tuned)
    monkeypatch.setattr(training, "load_seed_rows", lambda *_: SEEDS)
    monkeypatch.setattr(training, "OnnxEncoder", lambda _folder: FakeEmbedder())
    monkeypatch.setattr(training, "load_encoder", lambda _folder: FakeEmbedder())
    with open_store(home) as store:
        store.projects.save(Project("project", "Ours", 1.0))
        store.projects.set_member(Member("project", "Nora", "admin", 1.0))
        for number in range(24):
            add_corrected(store, number, LABELS[number % 2])
        yield store
