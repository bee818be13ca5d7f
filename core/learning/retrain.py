"""Starts, follows and cancels retraining; activates and rolls back versions."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.config import PROJECT_ROOT
from core.errors import ConflictError, InputError
from core.jobs import new_id
from core.learning.comparison import compare, difference_words, is_lower
from core.learning.options import Options, options_of
from core.learning.selective import fit_all
from core.learning.training_lease import LEASE_SECONDS, clear_away
from core.learning.training_set import grow_holdout
from core.store import Store
from core.store.versions import SEED_VERSION, Learned, Training
from core.verdict.classifier import encoder_in, load_classifier, load_head, version_folder

TRAINING_LEASE_SECONDS = LEASE_SECONDS
USUAL = Options()
COMPARISON = "comparison"  # the kind under which a comparison made since is kept


def begin_training(
    store: Store, home: Path, author: str, options: Mapping[str, Any] | Options
) -> str:
    """Take the one place for a training, with the sides of all cases settled; its id.

    Raises:
        InputError: an option is unknown or out of bounds.
        NotAllowed: the author is no lead of the first project: one classifier serves them all.
        NotEnoughLabels: a label has too few corrections.
        ConflictError: a training is under way already.
    """
    chosen = options if isinstance(options, Options) else options_of(options)
    chosen = options_of(chosen.as_dict())
    now = time.time()
    training = Training(
        new_id(), author, now, "running", {}, None, "", None, options=chosen.as_dict()
    )
    with store.writing():  # the hold-out is for good: it grows only when the training starts
        store.projects.require_for_all(author, "lead", "retrain")
        if not store.versions.start_training(training, now, TRAINING_LEASE_SECONDS):
            raise ConflictError("A training is under way already; wait for it or cancel it.")
        grow_holdout(store, now).require_enough()
    clear_away(store, home)
    return training.id


def start_training(
    store: Store, home: Path, author: str, options: Mapping[str, Any] | Options = USUAL
) -> str:
    """Start a training in a process of its own and return its id; raises as `begin_training`."""
    training_id = begin_training(store, home, author, options)
    command = [sys.executable, "-m", "core.learning.train", "--home", str(home), training_id]
    log = home / "models"
    try:
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
    except OSError as error:
        words = f"The training could not be started: {error}."
        store.versions.end_training(training_id, "failed", time.time(), message=words)
        raise ConflictError(words) from error
    threading.Thread(target=process.wait, daemon=True, name="training").start()
    return training_id


def cancel_training(store: Store, training_id: str, by: str) -> None:
    """Ask a training to end; its process sees it at its next report.

    Raises:
        NotAllowed: the person is no lead of the first project.
    """
    words = f"Cancelled by {by}."
    with store.writing():
        store.projects.require_for_all(by, "lead", "cancel a training")
        store.versions.end_training(training_id, "cancelled", time.time(), message=words)


def known_comparison(store: Store, version: str) -> dict[str, Any] | None:
    """The version beside the active one as far as it was measured; None where it was not.

    A version's card compares it with the one that was active when it was trained. What was
    measured since is kept beside.
    """
    known, active = store.versions.get(version), store.versions.active()
    if known is None:
        return None
    if known.card.get("compared_with", active) == active:
        return dict(known.card.get("holdout", {}))
    for kept in store.learned.intact(COMPARISON, ""):  # any other is measured anew
        if kept.body.get("versions") == [active, version]:
            return kept.body
    return None


def is_worse(store: Store, version: str) -> bool:
    """True when the version is known to do worse than the active one on the same hold-out.

    Going back to what was active before is never called worse: it must always be quick.
    """
    if _was_active(store, version):
        return False
    return is_lower(known_comparison(store, version) or {})


def _was_active(store: Store, version: str) -> bool:
    return version == SEED_VERSION or any(
        known.version_id == version for known in store.versions.activations()
    )


def activate(store: Store, home: Path, version: str, *, by: str, reason: str) -> None:
    """Make a version the active one, or roll back to an earlier one.

    Balanced accuracy on the same held-out cases decides, with no tolerance. Where another version
    has become active since it was measured, it is measured anew against that one.

    Raises:
        NotAllowed: the person is no lead of the first project.
        InputError: it did worse on the hold-out and no reason was given, or it is not there.
        ConfigError: its files are missing or were changed.
        ConflictError: somebody activated another version meanwhile.
    """
    if version != SEED_VERSION and store.versions.get(version) is None:
        raise InputError(f"There is no version {version}.")
    store.projects.require_for_all(by, "lead", "activate a version")
    active = store.versions.active()
    if not _was_active(store, version) and not reason.strip():
        _require_no_worse(store, home, active, version, by)
    folder = version_folder(home, version)
    load_head(folder)
    encoder_in(folder)  # every file is looked at, also where the version is loaded already
    load_classifier(home, version)
    with store.writing():
        store.projects.require_for_all(by, "lead", "activate a version")
        if store.versions.active() != active:
            raise ConflictError(
                "Somebody has activated another version meanwhile; look at the versions again."
            )
        store.versions.activate(version, time.time(), by, reason.strip())
    fit_all(store, by, time.time())  # what a project answers by itself goes by the active version


def _require_no_worse(store: Store, home: Path, active: str, version: str, by: str) -> None:
    held = known_comparison(store, version)
    if held is None:
        held = compare(store, home, active, version)
        short = {key: value for key, value in held.items() if key != "rows"}
        with store.writing():
            store.learned.add(Learned(COMPARISON, "", time.time(), by, short))
    if is_lower(held):
        raise InputError(
            f"This version did worse on the held-out cases than {active} ("
            f"{difference_words(held)}); activating it takes a reason."
        )
