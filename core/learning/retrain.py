"""Starts, follows and cancels retraining; activates versions; scores old runs again.

A home has one training at a time: it holds a lease, and removes what a killed one left. A new score
is an event after a run's end; the first one stays.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.learning.metrics import compare_versions, describe_difference, is_figure_lower
from core.learning.options import TrainingOptions, parse_options
from core.learning.track_record import fit_all_limits
from core.learning.training_set import grow_holdout
from core.llm.encoder import Embedder
from core.review.queue_ranking import enqueue_run
from core.runtime.concurrency import repeat_meanwhile
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import ConflictError, InputError
from core.schema.events import LabelPredicted
from core.schema.records import new_id
from core.store import Store, open_store
from core.store.queries import find_scorable_runs, load_present_classifiers
from core.store.versions import SEED_VERSION, LearnedArtefact, TrainingJob
from core.verdict.classifier import find_own_encoder, get_version_folder, load_classifier, load_head

RETRAIN_LEASE_SECONDS = 30.0
RENEWAL_SECONDS = 5.0
VERSION_FOLDER_PATTERN = re.compile(r"(v\d{8}-\d{6}-[0-9a-f]{1,6})(\.part)?")
RESCORING_KIND = "rescoring"  # the kind of record that says who scored what again
RUNS_PER_TRANSACTION = 50  # runs in a transaction, so that others can write in between
TRAINING_LEASE_SECONDS = RETRAIN_LEASE_SECONDS
DEFAULT_TRAINING_OPTIONS = TrainingOptions()
COMPARISON_KIND = "comparison"  # the kind of record that holds a later comparison


# A training takes as long as reading so many samples of texts: for each step, and for all else
# (checking the seed texts, loading SetFit, export). Over 28 corrections and 49 seed texts a sample
# took 0.54 s and 48 steps 175 s on two busy cores.
SAMPLE_TEXTS = ("The source says 412 m, the response says 512 m, so a value is wrong. " * 8,) * 16
SAMPLES_PER_STEP, OTHER_SAMPLES = 5, 80


def measure_sample_seconds(encoder: Embedder) -> float:
    """Return how long this machine takes to read a sample: the quickest of three readings."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        encoder.encode(SAMPLE_TEXTS)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def estimate_training_seconds(
    options: TrainingOptions, texts: int, sample_seconds: float, last: TrainingJob | None
) -> float:
    """Return how long a training over so many texts takes here.

    By the last one with the same encoder if there is one, else by a sample.
    """

    def count_samples(chosen: TrainingOptions) -> int:
        return SAMPLES_PER_STEP * chosen.steps_for(texts) + OTHER_SAMPLES

    if last is not None and last.finished_at is not None:
        took = last.finished_at - last.started_at
        sample_seconds = took / count_samples(parse_options(last.options))
    return sample_seconds * count_samples(options)


def renew_lease(home: Path, training_id: str) -> AbstractContextManager[None]:
    """Renew the training's lease while imports and exports report nothing."""

    def beat() -> None:
        with open_store(home) as store:
            store.versions.beat_training(training_id, time.time())

    return repeat_meanwhile(beat, RENEWAL_SECONDS)


def remove_leftovers(store: Store, home: Path) -> None:
    """Remove what killed trainings left; call it only while holding the lease."""
    models = home / "models"
    known = {version.id for version in store.versions.all()}
    for folder in models.iterdir() if models.is_dir() else ():
        match = VERSION_FOLDER_PATTERN.fullmatch(folder.name)
        if match and folder.is_dir() and (match[2] or match[1] not in known):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class RescoringResult:
    """The result: the runs that got a score, and how many of them another label."""

    version: str
    runs: int
    changed: int


def list_waiting_runs(store: Store, version: str) -> list[str]:
    """Return the runs whose present verdict is by another version, oldest first."""
    runs = find_scorable_runs(store)
    waiting: list[str] = []
    for start in range(0, len(runs), RUNS_PER_TRANSACTION):
        batch = runs[start : start + RUNS_PER_TRANSACTION]
        present = load_present_classifiers(store, batch)
        waiting += [run_id for run_id in batch if present.get(run_id) not in (version, None)]
    return waiting


def rescore_runs(
    store: Store,
    home: Path,
    version: str,
    *,
    by: str,
    done: Callable[[int, int], None] = lambda *_: None,
) -> RescoringResult:
    """Give every finished run the version's label and p, 10 ms a run; resumes if it was stopped.

    `done` is called with (runs scored, all). Raises InputError: there is no such version.
    """
    store.projects.require_for_all(by, "lead", "score old runs again")
    if version != SEED_VERSION and store.versions.get(version) is None:
        raise InputError(f"There is no version {version}.")
    classifier = load_classifier(home, version)
    waiting, changed, scored = list_waiting_runs(store, version), 0, 0
    for start in range(0, len(waiting), RUNS_PER_TRANSACTION):
        events = []
        for run_id in waiting[start : start + RUNS_PER_TRANSACTION]:
            judgement = store.runs.judgement(run_id)
            if judgement is not None and judgement.label != "unclear":
                verdict = classifier.verdict(judgement)
                events.append((run_id, LabelPredicted(time.time(), verdict, by)))
        with store.writing():
            # Another process may score them too; whoever comes second leaves them as they are.
            present = load_present_classifiers(store, [run_id for run_id, _ in events])
            events = [one for one in events if present.get(one[0]) != version]
            for run_id, event in events:
                run = store.runs.get(run_id, event.at, 0.0)
                if run is None or run.status != "finished":
                    continue
                changed += run.label != event.verdict.label
                store.runs.append(run_id, None, [event])
                item = store.queue.get(run.case_id)
                if item is not None and item.run_id == run_id:
                    enqueue_run(store, run_id, event.at)  # its priority depends on p
                scored += 1
            if events:  # in each transaction, so that no cached figures stay valid
                body = {"version": version, "runs": len(events)}
                store.learned.add(LearnedArtefact(RESCORING_KIND, "", time.time(), by, body))
        done(min(start + RUNS_PER_TRANSACTION, len(waiting)), len(waiting))
    if scored:
        fit_all_limits(store, by, time.time())  # limits depend on the new verdicts
    return RescoringResult(version, scored, changed)


def begin_training(
    store: Store, home: Path, author: str, options: Mapping[str, Any] | TrainingOptions
) -> str:
    """Take the lease for a training and return its id.

    Raises:
        InputError: an option is unknown or out of bounds.
        NotAllowed: the author is no lead of the first project, whose leads train for all.
        NotEnoughLabels: a label has too few corrections.
        ConflictError: a training is under way already.
    """
    values = options.as_dict() if isinstance(options, TrainingOptions) else options
    chosen, now = parse_options(values).as_dict(), time.time()
    training = TrainingJob(new_id(), author, now, "running", {}, None, "", None, options=chosen)
    with store.writing():  # the hold-out is permanent, so it grows only if the training starts
        store.projects.require_for_all(author, "lead", "retrain")
        if not store.versions.start_training(training, now, TRAINING_LEASE_SECONDS):
            raise ConflictError("A training is under way already; wait for it or cancel it.")
        grow_holdout(store, now).require_enough()
    remove_leftovers(store, home)
    return training.id


def start_training(
    store: Store,
    home: Path,
    author: str,
    options: Mapping[str, Any] | TrainingOptions = DEFAULT_TRAINING_OPTIONS,
) -> str:
    """Start a training in a new process and return its id; raises as `begin_training`."""
    training_id = begin_training(store, home, author, options)
    command = [sys.executable, "-m", "core.learning.train", "--home", str(home), training_id]
    folder = home / "models"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "training.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=PROJECT_ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        words = f"The training could not be started: {error}."
        store.versions.end_training(training_id, "failed", time.time(), message=words)
        raise ConflictError(words) from error
    threading.Thread(target=process.wait, daemon=True, name="training").start()
    return training_id


def cancel_training(store: Store, training_id: str, by: str) -> None:
    """Ask a training to end; its process notices at its next report."""
    with store.writing():
        store.projects.require_for_all(by, "lead", "cancel a training")
        words, now = f"Cancelled by {by}.", time.time()
        store.versions.end_training(training_id, "cancelled", now, message=words)


def find_comparison(store: Store, version: str) -> dict[str, Any] | None:
    """Return the version's comparison with the active one, of its card or later; or None."""
    stored, active = store.versions.get(version), store.versions.active()
    if stored is None:
        return None
    if stored.card.get("compared_with", active) == active:
        return dict(stored.card.get("holdout", {}))
    for comparison in store.learned.intact(COMPARISON_KIND, ""):  # damaged ones are measured again
        if comparison.body.get("versions") == [active, version]:
            return comparison.body
    return None


def is_worse_version(store: Store, version: str) -> bool:
    """Return True if the version is known to do worse than the active one and never was active."""
    return not _was_active(store, version) and is_figure_lower(
        find_comparison(store, version) or {}
    )


def _was_active(store: Store, version: str) -> bool:
    return version == SEED_VERSION or any(
        known.version_id == version for known in store.versions.activations()
    )


def activate_version(store: Store, home: Path, version: str, *, by: str, reason: str) -> None:
    """Make a version active; one that does worse on the held-out cases takes a reason.

    Raises InputError (no version, no reason), ConflictError (another was activated meanwhile) or
    ConfigError (it is damaged).
    """
    if version != SEED_VERSION and store.versions.get(version) is None:
        raise InputError(f"There is no version {version}.")
    store.projects.require_for_all(by, "lead", "activate a version")
    active = store.versions.active()
    if not _was_active(store, version) and not reason.strip():
        _require_no_worse(store, home, active, version, by)
    folder = get_version_folder(home, version)
    load_head(folder)
    find_own_encoder(folder)  # checks every file, even if the version is loaded already
    load_classifier(home, version)
    with store.writing():
        store.projects.require_for_all(by, "lead", "activate a version")
        if store.versions.active() != active:
            raise ConflictError(
                "Someone has activated another version meanwhile; look at the versions again."
            )
        store.versions.activate(version, time.time(), by, reason.strip())
    fit_all_limits(store, by, time.time())  # limits depend on the active version


def _require_no_worse(store: Store, home: Path, active: str, version: str, by: str) -> None:
    held = find_comparison(store, version)
    if held is None:
        held = compare_versions(store, home, active, version)
        short = {key: value for key, value in held.items() if key != "rows"}
        with store.writing():
            store.learned.add(LearnedArtefact(COMPARISON_KIND, "", time.time(), by, short))
    if is_figure_lower(held):
        raise InputError(
            f"This version did worse on the held-out cases than {active} ("
            f"{describe_difference(held)}); activating it takes a reason."
        )
