"""Scores old runs again under a version: a new event after each run's end; the first one stays."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.errors import InputError
from core.events import LabelPredicted
from core.learning.selective import fit_all
from core.queueing import enqueue
from core.store import Store
from core.store.verdicts import present_classifiers, scorable
from core.store.versions import SEED_VERSION, Learned
from core.verdict.classifier import load_classifier

RESCORING = "rescoring"  # the kind under which it is kept who had what scored again
AT_ONCE = 50  # runs a transaction: others write in between


@dataclass(frozen=True)
class Rescored:
    """What came of it: runs that got a score, how many of them another label."""

    version: str
    runs: int
    changed: int


def waiting_runs(store: Store, version: str) -> list[str]:
    """The runs whose present verdict is by another version, oldest first."""
    runs = scorable(store)
    found: list[str] = []
    for start in range(0, len(runs), AT_ONCE):
        part = runs[start : start + AT_ONCE]
        present = present_classifiers(store, part)
        found += [run_id for run_id in part if present.get(run_id) not in (version, None)]
    return found


def rescore(
    store: Store,
    home: Path,
    version: str,
    *,
    by: str,
    done: Callable[[int, int], None] = lambda *_: None,
) -> Rescored:
    """Give every finished run the version's label and probability; 10 ms a run.

    Stopped in the middle it goes on from there when it is asked for again.

    Raises:
        NotAllowed: the person is no lead of the first project.
        InputError: there is no such version.
        ConfigError: its files are missing or were changed.
    """
    store.projects.require_for_all(by, "lead", "score old runs again")
    if version != SEED_VERSION and store.versions.get(version) is None:
        raise InputError(f"There is no version {version}.")
    classifier = load_classifier(home, version)
    waiting, changed, scored = waiting_runs(store, version), 0, 0
    for start in range(0, len(waiting), AT_ONCE):
        events = []
        for run_id in waiting[start : start + AT_ONCE]:
            judgement = store.runs.judgement(run_id)
            if judgement is not None and judgement.label != "unclear":
                verdict = classifier.verdict(judgement)
                events.append((run_id, LabelPredicted(time.time(), verdict, by)))
        with store.writing():
            # somebody else may score them, too: whoever comes second leaves them as they are
            present = present_classifiers(store, [run_id for run_id, _ in events])
            events = [one for one in events if present.get(one[0]) != version]
            for run_id, event in events:
                run = store.runs.get(run_id, event.at, 0.0)
                if run is None or run.status != "finished":
                    continue
                changed += run.label != event.verdict.label
                store.runs.append(run_id, None, [event])
                item = store.queue.get(run.case_id)
                if item is not None and item.run_id == run_id:
                    enqueue(store, run_id, event.at)  # what people should look at goes by the new p
                scored += 1
            if events:  # with each part, so that nobody shows what was kept before
                body = {"version": version, "runs": len(events)}
                store.learned.add(Learned(RESCORING, "", time.time(), by, body))
        done(min(start + AT_ONCE, len(waiting)), len(waiting))
    if scored:
        fit_all(store, by, time.time())  # limits go by the verdicts as they are now
    return Rescored(version, scored, changed)
