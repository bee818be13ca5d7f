"""A temporary home in which cases are checked one after the other, as the app would.

Each case is checked as if it were the first of its home: the weight of a search term depends on all
that is indexed, so sources that only earlier cases used are removed before the next check.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from core.agents.rosters import make_built_in_roster
from core.baseline.encoder import load_multilingual_encoder
from core.documents.library import remove_file, store_file
from core.llm.encoder import Embedder
from core.pipeline.review import ReviewResources
from core.pipeline.run_factory import RunAgents
from core.pipeline.single_check import CaseDraft, read_file_bytes, store_case
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.records import Case, Judgement, Label, Plan, Project
from core.schema.run_state import RunState, fold_events
from core.store import Store, open_store
from core.verdict.classifier import Classifier, ClassifierHead

BENCH_AUTHOR = "bench"
BENCH_FOLDER_PREFIX = "counterpoint-bench-"
MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - a private folder is created in it


@dataclass(frozen=True)
class BenchMaterial:
    """A response with what it is checked against."""

    response: str
    question: str = ""
    texts: tuple[str, ...] = ()
    images: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    """Documents and images on disk, of any type that can be read."""
    role: str = ""
    instruction: str = ""


@dataclass
class BenchHome:
    """The home with its store and project; `sources` are the ids of the last case's sources."""

    home: Path
    store: Store
    project: Project
    settings: Settings
    sources: set[str] = field(default_factory=set)

    def check(
        self, material: BenchMaterial, staff: RunAgents, plan: Plan, stop: StopSignal
    ) -> RunState:
        """Run a check and return its end state. Raises InputError: the response is unusable."""
        return check_case(self.store_case(material), staff, plan, stop)

    def store_case(self, material: BenchMaterial) -> Case:
        """Store the case, which replaces the last one. Raises InputError: it is unusable."""
        texts = [
            self._store_source(f"source-{n}.txt", t.encode())
            for n, t in enumerate(material.texts, 1)
        ]
        images: list[str | None] = []
        for path in (*material.images, *material.files):
            stored = self._store_source(
                path.name, read_file_bytes(path, self.settings.file_megabytes)
            )
            is_image = path in material.images or is_case_image(path)
            (images if is_image else texts).append(stored)
        documents, pictures = (tuple(dict.fromkeys(filter(None, s))) for s in (texts, images))
        draft = CaseDraft(
            material.response, material.question, documents, pictures,
            material.role, material.instruction,
        )  # fmt: skip
        case = store_case(self.store, self.project, draft, BENCH_AUTHOR, 0.0)
        wanted = {*case.documents, *case.images}
        for source_id in self.sources - wanted:
            remove_file(self.store, self.home, self.project.id, source_id, 0.0)
        self.sources = wanted
        return case

    def _store_source(self, name: str, data: bytes) -> str | None:
        """Return the id of the stored source, or None if it is empty or cannot be stored."""
        if not data.strip():
            return None
        project_id = self.project.id
        with contextlib.suppress(InputError):  # as in the app, the other sources are still used
            return store_file(
                self.store, self.home, project_id, name, data, BENCH_AUTHOR, 0.0, self.settings
            ).id
        return None


def check_case(case: Case, staff: RunAgents, plan: Plan, stop: StopSignal) -> RunState:
    """Run a check of the case and return its end state."""
    events = staff.review(case, plan, stop, past=(), earlier=None)
    return fold_events(chain.from_iterable(events))


@contextlib.contextmanager
def open_bench(settings: Settings) -> Iterator[BenchHome]:
    """Open a bench in a temporary folder, in memory if the system has such a folder."""
    where = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else Path(tempfile.gettempdir())
    with make_private_folder(where) as home, open_store(home) as store:
        yield BenchHome(home, store, ensure_project(store, BENCH_AUTHOR, 0.0), settings)


@contextlib.contextmanager
def make_private_folder(where: Path) -> Iterator[Path]:
    """Make a folder for this process, and remove those of processes that were killed."""
    for leftover in where.glob(f"{BENCH_FOLDER_PREFIX}*-*"):
        number = leftover.name.removeprefix(BENCH_FOLDER_PREFIX).split("-")[0]
        if number.isascii() and number.isdigit() and not _is_alive(int(number)):
            shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix=f"{BENCH_FOLDER_PREFIX}{os.getpid()}-", dir=where
    ) as folder:
        yield Path(folder)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # it belongs to another user
    return True


def is_case_image(path: Path) -> bool:
    """Return True for the image types that a case may have."""
    return path.suffix.lower() in (".png", ".jpg", ".jpeg", ".webp")


@dataclass(frozen=True)
class LabelledClaim:
    """A claim over texts, with the label people gave it; `group` keeps related rows together."""

    claim: str
    texts: tuple[str, ...]
    label: Label
    group: str
    question: str = ""


@dataclass(frozen=True)
class JudgedClaim:
    """A labelled claim with the built-in judge's judgement and the debate before it."""

    row: LabelledClaim
    judgement: Judgement
    progress: RunState


def judge_claims(rows: Iterable[LabelledClaim], encoder: Embedder) -> Iterator[JudgedClaim]:
    """Yield each row with its judgement, in order, judged on a temporary bench (CEDA 4.2)."""
    roster = make_built_in_roster("builtin")
    silent = Classifier("none", ClassifierHead((0.0,) * encoder.width, 0.0), encoder, {})
    settings = Settings()
    with open_bench(settings) as bench:
        retriever = load_multilingual_encoder()
        staff = RunAgents(
            roster, ReviewResources(bench.home, settings, retriever, silent, lambda: 0.0)
        )
        for row in rows:
            material = BenchMaterial(row.claim, row.question, row.texts)
            progress = bench.check(material, staff, Plan(), StopSignal())
            if progress.judgement is not None:
                yield JudgedClaim(row, progress.judgement, progress)
