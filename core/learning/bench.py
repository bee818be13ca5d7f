"""A home that goes away, in which cases are checked one after the other as the app would.

Every case is checked as if it were the first of its home: the weight of a search term depends on
all that is indexed, so what only earlier cases used is taken out before the next one begins.
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

from core.agents.rosters import roster_named
from core.baseline.export import load_multilingual_encoder
from core.documents.library import remove_file, store_file
from core.llm.encoder import Embedder
from core.pipeline.review import Resources
from core.pipeline.run_factory import Staff
from core.pipeline.streaming_input import CaseDraft, read_whole, store_case
from core.review.people import first_project
from core.runtime.concurrency import Stop
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.progress import Progress, folded
from core.schema.records import Case, Judgement, Label, Plan, Project
from core.store import Store, open_store
from core.verdict.classifier import Classifier, Head

BY = "bench"
PREFIX = "counterpoint-bench-"
IN_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it


@dataclass(frozen=True)
class BenchMaterial:
    """A response with what it is checked against."""

    response: str
    question: str = ""
    texts: tuple[str, ...] = ()
    images: tuple[Path, ...] = ()
    files: tuple[Path, ...] = ()
    """Documents and images as they lie, of any type that can be read."""


@dataclass
class BenchHome:
    """The home, its store and project, and the sources of the last case by id."""

    home: Path
    store: Store
    project: Project
    settings: Settings
    sources: set[str] = field(default_factory=set)

    def check(self, material: BenchMaterial, staff: Staff, plan: Plan, stop: Stop) -> Progress:
        """What a run comes to. Raises InputError where the response cannot be stored."""
        case = self._case(material)
        events = staff.review(case, plan, stop, past=(), earlier=None)
        return folded(chain.from_iterable(events))

    def _case(self, material: BenchMaterial) -> Case:
        texts = [
            self._stored(f"source-{n}.txt", t.encode()) for n, t in enumerate(material.texts, 1)
        ]
        images: list[str | None] = []
        for path in (*material.images, *material.files):
            stored = self._stored(path.name, read_whole(path, self.settings.file_megabytes))
            (images if path in material.images or is_picture(path) else texts).append(stored)
        documents, pictures = (tuple(dict.fromkeys(filter(None, s))) for s in (texts, images))
        draft = CaseDraft(material.response, material.question, documents, pictures)
        case = store_case(self.store, self.project, draft, BY, 0.0)
        wanted = {*case.documents, *case.images}
        for source_id in self.sources - wanted:
            remove_file(self.store, self.home, self.project.id, source_id, 0.0)
        self.sources = wanted
        return case

    def _stored(self, name: str, data: bytes) -> str | None:
        """The id of a source; None where there is nothing in it, which no library takes."""
        if not data.strip():
            return None
        with contextlib.suppress(InputError):  # as a person would: the others are used
            own = (self.store, self.home, self.project.id)
            return store_file(*own, name, data, BY, 0.0, self.settings).id
        return None


@contextlib.contextmanager
def opened_bench(settings: Settings) -> Iterator[BenchHome]:
    """A bench in a folder in memory where the system has one: nothing of it outlives the work."""
    where = IN_MEMORY if IN_MEMORY.is_dir() else Path(tempfile.gettempdir())
    for left in where.glob(f"{PREFIX}*-*"):  # by processes that were killed
        number = left.name.removeprefix(PREFIX).split("-")[0]
        if number.isascii() and number.isdigit() and not _is_alive(int(number)):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", dir=where) as folder:
        home = Path(folder)
        with open_store(home) as store:
            yield BenchHome(home, store, first_project(store, BY, 0.0), settings)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True  # somebody else's
    return True


def is_picture(path: Path) -> bool:
    """True for the image types that a case may have."""
    return path.suffix.lower() in (".png", ".jpg", ".jpeg", ".webp")


@dataclass(frozen=True)
class LabelledClaim:
    """A claim over texts, with the label people gave it; `group` holds related rows together."""

    claim: str
    texts: tuple[str, ...]
    label: Label
    group: str
    question: str = ""


@dataclass(frozen=True)
class JudgedClaim:
    """What the built-in judge made of a labelled claim, and the debate that it heard."""

    row: LabelledClaim
    judgement: Judgement
    progress: Progress


def judged(rows: Iterable[LabelledClaim], encoder: Embedder) -> Iterator[JudgedClaim]:
    """Each row with its judgement, in order, in a folder that goes away (CEDA 4.2)."""
    roster = roster_named("builtin")
    silent = Classifier("none", Head((0.0,) * encoder.width, 0.0), encoder, {})
    settings = Settings()
    with opened_bench(settings) as bench:
        retriever = load_multilingual_encoder()
        staff = Staff(roster, Resources(bench.home, settings, retriever, silent, lambda: 0.0))
        for row in rows:
            material = BenchMaterial(row.claim, row.question, row.texts)
            progress = bench.check(material, staff, Plan(), Stop())
            if progress.judgement is not None:
                yield JudgedClaim(row, progress.judgement, progress)
