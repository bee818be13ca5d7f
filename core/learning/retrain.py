"""Starts, follows and cancels retraining; activates and rolls back versions."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from core.config import PROJECT_ROOT
from core.errors import ConflictError, InputError
from core.jobs import new_id
from core.learning.training_set import grow_holdout
from core.store import Store
from core.store.versions import SEED_VERSION, Training
from core.verdict.classifier import load_classifier, load_head, version_folder

TRAINING_LEASE_SECONDS = 30.0


def start_training(store: Store, home: Path, author: str) -> str:
    """Start a training in a process of its own and return its id.

    Raises:
        NotAllowed: the author is no lead of the first project: one classifier serves them all.
        NotEnoughLabels: a label has too few corrections.
        ConflictError: a training is under way already.
    """
    now = time.time()
    training = Training(new_id(), author, now, "running", {}, None, "", None)
    with store.writing():  # the hold-out is for good: it grows only when the training starts
        store.projects.require_for_all(author, "lead", "retrain")
        if not store.versions.start_training(training, now, TRAINING_LEASE_SECONDS):
            raise ConflictError("A training is under way already; wait for it or cancel it.")
        grow_holdout(store, now).require_enough()
    command = [sys.executable, "-m", "core.learning.train", "--home", str(home), training.id]
    log = home / "models"
    log.mkdir(parents=True, exist_ok=True)
    with (log / "training.log").open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=PROJECT_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    threading.Thread(target=process.wait, daemon=True, name="training").start()
    return training.id


def cancel_training(store: Store, training_id: str, by: str) -> None:
    """Ask a training to end; its process sees it at its next report.

    Raises:
        NotAllowed: the person is no lead of the first project.
    """
    words = f"Cancelled by {by}."
    with store.writing():
        store.projects.require_for_all(by, "lead", "cancel a training")
        store.versions.end_training(training_id, "cancelled", time.time(), message=words)


def is_worse(store: Store, version: str) -> bool:
    """True when the version did worse than the one it was compared with, on the same hold-out."""
    known = store.versions.get(version)
    held = known.card.get("holdout", {}) if known else {}
    before, after = held.get("before", {}), held.get("after", {})
    key = "balanced_accuracy"
    if before.get(key) is None or after.get(key) is None:
        key = "accuracy"
    if before.get(key) is None or after.get(key) is None:
        return False
    return bool(after[key] < before[key])


def activate(store: Store, home: Path, version: str, *, by: str, reason: str) -> None:
    """Make a version the active one, or roll back to an earlier one.

    Raises:
        NotAllowed: the person is no lead of the first project.
        InputError: it did worse on the hold-out and no reason was given, or it is not there.
        ConfigError: its files are missing or were changed.
    """
    if version != SEED_VERSION and store.versions.get(version) is None:
        raise InputError(f"There is no version {version}.")
    if is_worse(store, version) and not reason.strip():
        raise InputError(
            "This version did worse on the held-out cases than the one before; "
            "activating it takes a reason."
        )
    load_head(version_folder(home, version))
    load_classifier(home, version)
    with store.writing():
        store.projects.require_for_all(by, "lead", "activate a version")
        store.versions.activate(version, time.time(), by, reason.strip())
