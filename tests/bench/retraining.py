"""How long a retraining over 1,000 verdict texts takes, what memory, and what AUROC it reaches.

The texts are made up, or a detector's reasonings in ReaLMistake where its folder is given: these
are kept in memory only, as their authors ask. Beside ours stands SetFit's usual recipe (20 pairs
a text, no cap of steps), which is stopped after a while: then it is told how far it came.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.evaluation.dataset_files import (
    find_data_files,
    list_zip_members,
    parse_json_lines,
    read_zip_member,
)
from core.evaluation.sets.marked_texts import LABEL_BY_ERROR_WORD, ZIP_PASSWORD
from core.learning.retrain import RETRAIN_LEASE_SECONDS, cancel_training, start_training
from core.pipeline.temporary_home import MEMORY_FOLDER
from core.runtime.config import PROJECT_ROOT
from core.schema.events import JudgementReached, RunStarted
from core.schema.records import Judgement, Label, Member, Plan, Project, Run
from core.schema.reviews import Correction
from core.store import Store, open_store
from tests.bench.rerun import Session
from tests.browser.serving import Server
from tests.fakes import make_case

TEXTS = 1_000
HELD_OUT = TEXTS // 3  # a quarter of all
PEOPLE = "Mira"
SET, PROMPT = "realmistake", "baseline_errordetection_prompt_2"
DETECTOR = "gpt-4-0125-preview"
# For every task, and both models whose answers were checked.
PLACE = re.compile(rf"simple_prompt_baseline/[^/]+/[^/]+/{DETECTOR}/{PROMPT}\.jsonl$")
USUAL = ("--pairs", "20", "--steps", "100000")  # SetFit's num_iterations=20
MOST_SECONDS = 300
PAGES = ("", "retrain", "history")


@dataclass(frozen=True)
class Told:
    """What a verdict text says, what is right, and which case it is of."""

    text: str
    label: Label
    group: str


def made_up(count: int) -> list[Told]:
    """Verdict texts in the built-in judge's manner, one in ten of them misled."""
    chance = random.Random(11)
    found = []
    for number in range(count):
        label: Label = "hallucinated" if number % 2 else "supported"
        is_misled = chance.random() < 0.1
        is_wrong = (label == "hallucinated") != is_misled
        one, other = chance.randrange(900), chance.randrange(900)
        found.append(
            Told(
                "Both debaters agree that the statement is "
                + (f"wrong. The evidence says “{one} m”, not “{other} m”, in a passage that " * 4)
                + ("Verdict: INCORRECT." if is_wrong else "carries all of it. Verdict: CORRECT."),
                label,
                f"case {number}",
            )
        )
    return found


def reasonings(path: Path) -> list[Told]:
    """One detector's reasonings over all answers of the set, which a case's question groups."""
    found = []
    for archive in find_data_files(path / SET, ("error_detection_outputs.zip",)):
        for member in list_zip_members(archive):
            if not PLACE.search(member):
                continue
            for row in parse_json_lines(read_zip_member(archive, member, ZIP_PASSWORD), member):
                group = str(row.inner("metadata").text("id"))
                found.append(
                    Told(row.text("response"), row.chosen(LABEL_BY_ERROR_WORD, "label"), group)
                )
    return found


@contextlib.contextmanager
def home_of(told: Sequence[Told]) -> Iterator[Path]:
    """A home in memory in which every text was corrected."""
    where = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else Path(tempfile.gettempdir())
    home = Path(tempfile.mkdtemp(prefix="counterpoint-retraining-", dir=where))
    try:
        with open_store(home) as store:
            store.projects.save(Project("project", "Bench", 1.0))
            store.projects.set_member(Member("project", PEOPLE, "admin", 1.0))
            with store.writing():
                for number, one in enumerate(told):
                    _add(store, number, one)
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _add(store: Store, number: int, told: Told) -> None:
    claim = hashlib.sha256(told.group.encode()).hexdigest()
    case = make_case(claim, id=f"c{number}")
    store.cases.add(case, [])
    store.runs.add(Run(f"r{number}", case.id, "project", Plan(), "queued", 1.0), "me", 1.0)
    said = Judgement("Judge", "hallucinated", told.text)
    store.runs.append(
        f"r{number}", "me", [RunStarted(1.0, case, Plan(), ()), JudgementReached(2.0, said, 0.1)]
    )
    correction = Correction(
        f"k{number}", f"r{number}", case.id, PEOPLE, float(number), told.label, reason="x"
    )
    store.corrections.add(correction, claim)


def retrained(home: Path, options: Sequence[str], most_seconds: float | None = None) -> Any:
    """What `python -m core retrain --json` prints; how far it came where the time was up."""
    command = [sys.executable, "-m", "core", "retrain", "--home", str(home), "--by", PEOPLE]
    command += ["--json", *options]
    try:
        done = subprocess.run(
            command, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=most_seconds
        )
    except subprocess.TimeoutExpired:
        with open_store(home) as store:
            return store.versions.trainings(time.time(), RETRAIN_LEASE_SECONDS)[0].progress
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout)


def report(path: Path | None, *, is_whole: bool = False) -> None:
    """Print seconds, memory and AUROC of ours and of the usual recipe, and what pages take then.

    `is_whole` lets the usual recipe run to its end, which takes an hour or more.
    """
    sets = [("made up", made_up(TEXTS + HELD_OUT))]
    if path is not None:
        sets.append((f"{SET}, {DETECTOR}, prompt 2", reasonings(path)))
    for name, told in sets:
        with home_of(told) as home:
            retrained(home, ("--steps", "1"))  # the seed texts are kept from here on
            _say(name, "ours", retrained(home, ()))
            most = None if is_whole else MOST_SECONDS
            _say(name, "20 pairs a text", retrained(home, USUAL, most))
    report_pages()


def report_pages() -> None:
    """Print how long pages take to be drawn again while a training runs, and before it."""
    with home_of(made_up(TEXTS + HELD_OUT)) as home:
        server = Server(home, module=("components.app.launch", "--port"))
        server.start()
        try:
            with Session(server.port) as session:
                for page in PAGES:
                    session.rerun(page)
                time.sleep(8)  # the engine loads in the background meanwhile
                before = _drawn(session, 10)
                with open_store(home) as store:
                    training = start_training(store, home, PEOPLE)
                time.sleep(20)  # it loads its libraries first
                during = _drawn(session, 30)
                with open_store(home) as store:
                    cancel_training(store, training, PEOPLE)
        finally:
            server.kill()
    for words, taken in (("before a training", before), ("while one runs", during)):
        median, most = statistics.median(taken), max(taken)
        sys.stdout.write(
            f"pages drawn again {words}: median {median:.0f} ms, most {most:.0f} ms (goal 100), "
            f"n={len(taken)}\n"
        )


def _drawn(session: Session, times: int) -> list[float]:
    """Milliseconds for each of the pages, one after the other."""
    return [1000 * session.rerun(page) for _ in range(times) for page in PAGES]


def _say(name: str, recipe: str, found: dict[str, Any]) -> None:
    if "after" not in found:
        words = f"stopped after {MOST_SECONDS} s at “{found['stage']}”"
        if found.get("step"):
            words += f", step {found['step']} of {found['steps']}, {found['eta']:.0f} s left"
    else:
        after = found["after"]
        words = (
            f"{found['seconds']:.0f} s (goal 90), {found['cpu_seconds']:.0f} s of processor time, "
            f"{found['memory_mb']} MB (goal 2000), AUROC "
            f"{after['auroc']:.3f}, balanced accuracy {after['balanced_accuracy']:.3f}, ECE "
            f"{after['ece']:.3f} (by chance {after['ece_null']['mean']:.3f}) on n={after['n']}; "
            f"before: AUROC {found['before']['auroc']:.3f}"
        )
    sys.stdout.write(f"retraining, {name}, {recipe}: {words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    report(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
