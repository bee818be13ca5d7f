"""A sample project: documents, checks of them by the built-in engine, and two people's answers.

It lies in a home of its own inside a person's home, because versions, holdout and training are
common to all projects of a home: nothing done in the sample reaches their data, and removing its
folder removes all of it. Its checks are real runs, made when it is built; its texts and answers
were written for this project.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from core.baseline.examples import EXAMPLES_DIR, PREPARED_CASES, PreparedCase
from core.documents.library import store_file
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.adjudication import record_correction
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.runtime.config import SAMPLE_MARK, has_sample
from core.runtime.errors import UNEXPECTED_ERROR_MESSAGE, ReviewError
from core.schema.records import Case, Label, Member, Plan, Project, Run, Span, new_id
from core.schema.reviews import Correction
from core.store import Store, open_store

LOGGER = logging.getLogger(__name__)
SAMPLE_NAME = "Sample project"
SAMPLE_ADMIN = "Counterpoint (sample)"
REVIEWERS = ("Ida (sample)", "Jon (sample)")
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class SampleClaim:
    """A statement with the words that are wrong in it, each with what the source says.

    `also` is the label that the second reviewer gave, if any. An `open` claim was answered
    by nobody.
    """

    text: str
    wrong: dict[str, str] = field(default_factory=dict)
    category: str = ""
    also: Label | None = None
    also_reason: str = ""
    open: bool = False

    @property
    def label(self) -> Label:
        """The right label."""
        return "hallucinated" if self.wrong else "supported"


@dataclass(frozen=True)
class SampleDocument:
    """A source and the claims about it."""

    name: str
    text: str
    claims: tuple[SampleClaim, ...]


SAMPLE_DOCUMENTS = msgspec.json.decode(
    (EXAMPLES_DIR / "sample.json").read_bytes(), type=tuple[SampleDocument, ...]
)
TOUR_CASE = PREPARED_CASES[0]
ANSWERED_CLAIMS = sum(not claim.open for document in SAMPLE_DOCUMENTS for claim in document.claims)


class SampleBuilder:
    """Builds the sample in a folder in the background; what is there already is kept."""

    def __init__(self, jobs: JobRunner) -> None:
        """Nothing is written before `start`."""
        self.folder = jobs.home
        self.answered = 0
        self.problem = ""
        self._jobs = jobs
        self._stop = StopSignal()
        self._thread: threading.Thread | None = None

    @property
    def is_building(self) -> bool:
        """True while checks are made."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, person: str) -> tuple[Case, str]:
        """Let the person in, build what is missing; return the tour's case and the id of its run.

        Raises ReviewError: it cannot be stored.
        """
        if not has_sample(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)
        with open_store(self.folder) as store:
            (self.folder / SAMPLE_MARK).touch()
            project = _ensure_sample_project(store, person)
            case = store_prepared_case(store, self.folder, project, TOUR_CASE, SAMPLE_ADMIN)
            run_id = self._find_or_start_run(store, case)
        if not self.is_building:
            self.answered, self.problem, self._stop = 0, "", StopSignal()
            self._thread = threading.Thread(
                target=self._build, args=(project,), daemon=True, name="sample"
            )
            self._thread.start()
        return case, run_id

    def remove(self) -> None:
        """Stop building and remove the folder with all that is in it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _build(self, project: Project) -> None:
        try:
            with open_store(self.folder) as store:
                for claim, case in _store_claims(store, self.folder, project):
                    run = self._check(store, case)
                    if self._stop.is_set:
                        return
                    if run is not None and not claim.open:
                        _record_answers(store, claim, case, run, self.answered)
                        self.answered += 1
        except ReviewError as error:
            self.problem = str(error)
        except Exception:
            LOGGER.exception("the sample project could not be built")
            self.problem = UNEXPECTED_ERROR_MESSAGE

    def _check(self, store: Store, case: Case) -> Run | None:
        """Return the case's run once it has finished; None if it did not."""
        run_id = self._find_or_start_run(store, case)
        while not self._jobs.wait(run_id, POLL_SECONDS):
            if self._stop.is_set:
                self._jobs.stop(run_id, SAMPLE_ADMIN)
        run = store.runs.get(run_id, time.time(), 0.0)
        return run if run and run.status == "finished" else None

    def _find_or_start_run(self, store: Store, case: Case) -> str:
        runs = store.runs.of_case(case.id, time.time(), 0.0)
        usable = (
            run.id
            for run in reversed(runs)
            if run.status == "finished" or self._jobs.live(run.id) is not None
        )
        return next(usable, "") or self._jobs.start(case, Plan(), by=SAMPLE_ADMIN)


def store_prepared_case(
    store: Store, home: Path, project: Project, example: PreparedCase, person: str
) -> Case:
    """Store a prepared case with its files, each only once."""
    settings, now = store.projects.settings(), time.time()
    entries = [
        store_file(store, home, project.id, *file, person, now, settings)
        for file in example.files()
    ]
    documents = tuple(entry.id for entry in entries if entry.kind != "image")
    images = tuple(entry.id for entry in entries if entry.kind == "image")
    draft = CaseDraft(example.response, example.question, documents, images)
    return store_case(store, project, draft, person, now)


def _ensure_sample_project(store: Store, person: str) -> Project:
    """Return the sample's project with the person as its lead.

    Its admin is nobody real: who looks at a sample raises no limits and adds no servers.
    """
    now = time.time()
    project = replace(ensure_project(store, SAMPLE_ADMIN, now), name=SAMPLE_NAME)
    with store.writing():
        store.projects.save(project)
        store.projects.set_member(Member(project.id, person, "lead", now))
        for reviewer in REVIEWERS:
            store.projects.set_member(Member(project.id, reviewer, "annotator", now))
    return project


def _store_claims(store: Store, home: Path, project: Project) -> Iterator[tuple[SampleClaim, Case]]:
    """Yield each claim with its case, stored when its turn comes."""
    settings = store.projects.settings()
    for document in SAMPLE_DOCUMENTS:
        file = (document.name, document.text.encode())
        entry = store_file(store, home, project.id, *file, SAMPLE_ADMIN, time.time(), settings)
        for claim in document.claims:
            draft = CaseDraft(claim.text, documents=(entry.id,))
            yield claim, store_case(store, project, draft, SAMPLE_ADMIN, time.time())


def _record_answers(store: Store, claim: SampleClaim, case: Case, run: Run, number: int) -> None:
    """Record the first reviewer's answer, and the second's where there is one, each once."""
    first, second = REVIEWERS[number % 2], REVIEWERS[1 - number % 2]
    answers = [_build_answer(claim, case, run, first, claim.label)]
    if claim.also:
        answers.append(_build_answer(claim, case, run, second, claim.also))
    known = {correction.author for correction in store.corrections.of_case(case.id)}
    with store.writing():
        for answer in answers:
            if answer.author not in known:
                record_correction(store, answer, case)
                store.queue.end(case.id, answer.author, "submitted", answer.at)


def _build_answer(
    claim: SampleClaim, case: Case, run: Run, author: str, label: Label
) -> Correction:
    says = " and ".join(claim.wrong.values()) or "so"
    is_right = label == claim.label
    spans = (
        Span(start, start + len(words), words, 1.0, claim.category, author, instead)
        for words, instead in claim.wrong.items()
        for start in [case.response.index(words)]
    )
    return Correction(
        new_id(),
        run.id,
        case.id,
        author,
        time.time(),
        label,
        spans=tuple(spans) if label == "hallucinated" else (),
        reason=f"The source says {says}." if is_right else claim.also_reason,
        machine_label=run.label,
    )
