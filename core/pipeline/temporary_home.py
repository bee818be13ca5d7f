"""A temporary home in which cases are checked one after the other, as the app would.

Each case is checked as if it were the first of its home: the weight of a search term depends on all
that is indexed, so sources that only earlier cases used are removed before the next check.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

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
from core.schema.records import Case, Plan, Project
from core.schema.roles import Roster
from core.schema.run_state import RunState, fold_events
from core.store import Store, open_store
from core.verdict.classifier import Classifier, ClassifierHead

TEMPORARY_AUTHOR = "bench"
TEMPORARY_PREFIX = "counterpoint-bench-"
MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - a private folder is created in it


@dataclass(frozen=True)
class CheckMaterial:
    """A response with what it is checked against."""

    response: str
    question: str = ""
    texts: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    """Documents and images on disk, of any type that can be read."""
    role: str = ""
    instruction: str = ""


@dataclass
class TemporaryHome:
    """The home with its store and project; `sources` are the ids of the last case's sources."""

    home: Path
    store: Store
    project: Project
    settings: Settings
    sources: set[str] = field(default_factory=set)

    def check(
        self, material: CheckMaterial, agents: RunAgents, plan: Plan, stop: StopSignal
    ) -> RunState:
        """Run a check and return its end state. Raises InputError: the response is unusable."""
        return check_case(self.store_case(material), agents, plan, stop)

    def build_agents(self, roster: Roster, encoder: Embedder) -> RunAgents:
        """Return the agents of a roster, with a classifier that has learned nothing."""
        silent = Classifier("none", ClassifierHead((0.0,) * encoder.width, 0.0), encoder, {})
        retriever = load_multilingual_encoder()
        resources = ReviewResources(self.home, self.settings, retriever, silent, lambda: 0.0)
        return RunAgents(roster, resources)

    def store_case(self, material: CheckMaterial) -> Case:
        """Store the case, which replaces the last one. Raises InputError: it is unusable."""
        named = [(f"source-{n}.txt", text.encode()) for n, text in enumerate(material.texts, 1)]
        limit, kinds = self.settings.file_megabytes, dict[str, str]()
        for name, data in (*named, *((f.name, read_file_bytes(f, limit)) for f in material.files)):
            if not data.strip():
                continue
            with contextlib.suppress(InputError):  # as in the app, the other sources are still used
                entry = store_file(
                    self.store, self.home, self.project.id, name, data, TEMPORARY_AUTHOR, 0.0,
                    self.settings,
                )  # fmt: skip
                kinds[entry.id] = entry.kind
        documents = tuple(source_id for source_id, kind in kinds.items() if kind != "image")
        images = tuple(source_id for source_id, kind in kinds.items() if kind == "image")
        draft = CaseDraft(
            material.response, material.question, documents, images,
            material.role, material.instruction,
        )  # fmt: skip
        case = store_case(self.store, self.project, draft, TEMPORARY_AUTHOR, 0.0)
        wanted = {*case.documents, *case.images}
        for source_id in self.sources - wanted:
            remove_file(self.store, self.home, self.project.id, source_id, 0.0)
        self.sources = wanted
        return case


def check_case(case: Case, agents: RunAgents, plan: Plan, stop: StopSignal) -> RunState:
    """Run a check of the case and return its end state."""
    events = agents.review(case, plan, stop, past=(), earlier=None)
    return fold_events(chain.from_iterable(events))


@contextlib.contextmanager
def open_temporary_home(settings: Settings) -> Iterator[TemporaryHome]:
    """Open a home in a temporary folder, in memory if the system has such a folder."""
    where = MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else Path(tempfile.gettempdir())
    with make_private_folder(where) as home, open_store(home) as store:
        yield TemporaryHome(home, store, ensure_project(store, TEMPORARY_AUTHOR, 0.0), settings)


@contextlib.contextmanager
def make_private_folder(where: Path) -> Iterator[Path]:
    """Make a folder for this process, and remove those of processes that were killed."""
    for leftover in where.glob(f"{TEMPORARY_PREFIX}*-*"):
        number = leftover.name.removeprefix(TEMPORARY_PREFIX).split("-")[0]
        if number.isascii() and number.isdigit() and not _is_alive(int(number)):
            shutil.rmtree(leftover, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix=f"{TEMPORARY_PREFIX}{os.getpid()}-", dir=where
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
