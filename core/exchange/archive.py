"""A project as one zip: settings, prompts, files, cases, runs with traces, tables, all answers.

Its manifest names every member with the sha256 of its bytes. What comes in is not trusted: nothing
is unpacked to disk by name, sizes are limited before anything is read, and it is stored whole or
not at all.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
import sqlite3
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from core.config import MEGABYTE
from core.documents.library import file_bytes
from core.errors import InputError
from core.exchange.restoring import Content, restore
from core.formats.packed import json_lines
from core.formats.row import Problem
from core.records import Case, LibraryEntry, Member, Project, Run
from core.reviews import Assignment, Correction, Gold, Handling, Item, Suggestion
from core.store import Store
from core.store.batches import Batch, BatchRow
from core.store.codec import from_plain, to_plain
from core.store.prompt_edits import PromptEdit
from core.store.queue_filter import EVERYTHING
from core.store.traces import export_trace

FORMAT = "counterpoint-archive"
VERSION = 2  # of the first there are archives without prompts and tables
MANIFEST = "manifest.json"
MOST_ARCHIVE = 1024 * MEGABYTE  # bytes, packed as well as unpacked
MOST_MEMBERS = 100_000
LISTS: dict[str, type[Any]] = {
    "members": Member, "library": LibraryEntry, "cases": Case, "runs": Run,
    "corrections": Correction, "golds": Gold, "suggestions": Suggestion, "handlings": Handling,
    "items": Item, "assignments": Assignment, "prompts": PromptEdit, "batches": Batch,
    "batch_rows": BatchRow,
}  # fmt: skip
SINCE_2 = ("prompts", "batches", "batch_rows")
MEMBER = re.compile(
    rf"project\.json|(?:{'|'.join(LISTS)})\.jsonl|documents/[0-9a-f]{{64}}|traces/[\w-]{{1,64}}\.json"
)
WRITTEN_AT = (1980, 1, 1, 0, 0, 0)  # the same project gives the same bytes
T = TypeVar("T")
# What zipfile lets through of a file that was changed or was never a zip.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError,
    NotImplementedError, RuntimeError,
)  # fmt: skip


def give(store: Store, home: Path, project: Project, stream: BinaryIO) -> dict[str, int]:
    """Write the project to the stream; how many of what are in it."""
    with store.reading():
        lists = _lists(store, project)
        traces = [(run.id, _trace(store, run)) for run in lists["runs"]]
    sums: dict[str, str] = {}
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:

        def add(name: str, data: bytes) -> None:
            sums[name] = hashlib.sha256(data).hexdigest()
            info = zipfile.ZipInfo(name, WRITTEN_AT)
            info.compress_type = zipfile.ZIP_DEFLATED
            packed.writestr(info, data)

        add("project.json", _json(to_plain(project)))
        for name, records in lists.items():
            add(f"{name}.jsonl", b"".join(_json(to_plain(one)) + b"\n" for one in records))
        for run_id, trace in traces:
            if trace:
                add(f"traces/{run_id}.json", trace)
        for entry in lists["library"]:
            add(f"documents/{entry.id}", file_bytes(home, entry.id))
        manifest = {"format": FORMAT, "version": VERSION, "project": project.name, "files": sums}
        packed.writestr(zipfile.ZipInfo(MANIFEST, WRITTEN_AT), _json(manifest))
    return _counts(lists)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _lists(store: Store, project: Project) -> dict[str, list[Any]]:
    cases = store.cases.all(project.id)
    now, lease = 0.0, 0.0
    ids = [case.id for case in cases]
    items, _ = store.queue.page(
        project.id, EVERYTHING, ("open", "flagged", "adjudicated"), limit=-1, offset=0, now=now
    )
    batches = store.batches.all(project.id)[::-1]
    runs = [run for one in ids for run in store.runs.of_case(one, now, lease)]
    return {
        "members": store.projects.members(project.id),
        "library": store.library.all(project.id)[::-1],
        "cases": cases,
        "runs": sorted(runs, key=lambda run: (run.started_at, run.id)),
        "corrections": [c for one in ids for c in store.corrections.history(one)],
        "golds": [gold for one in ids for gold in store.golds.of_case(one)],
        "suggestions": [s for one in ids for s in store.golds.suggested(one)],
        "handlings": [h for one in ids for h in store.handlings.of_case(one)],
        "items": sorted(items, key=lambda item: item.case_id),
        "assignments": [a for one in ids for a in store.queue.people_of(one)],
        "prompts": store.prompt_edits.all(project.id),
        "batches": batches,
        "batch_rows": [row for batch in batches for row in store.batches.rows(batch.id)],
    }


def _trace(store: Store, run: Run) -> bytes:
    """The run's trace; empty where it has not begun."""
    try:
        return export_trace(store, run.id, 0.0, 0.0)
    except InputError:
        return b""


def _counts(lists: dict[str, list[Any]]) -> dict[str, int]:
    names = ("cases", "library", "runs", "corrections", "golds", "suggestions", *SINCE_2[:2])
    words = {"library": "files", "golds": "gold answers", "prompts": "prompt edits",
             "batches": "tables"}  # fmt: skip
    return {words.get(name, name): len(lists[name]) for name in names}


def counted_words(counts: dict[str, int]) -> str:
    """The counts in words, as `give` returns them."""
    return ", ".join(
        f"{count} {name.removesuffix('s') if count == 1 else name}"
        for name, count in counts.items()
    )


@dataclass(frozen=True)
class Taken:
    """What came of an archive: its project, and how many of what were stored."""

    project: Project
    counts: dict[str, int]
    is_new: bool

    @property
    def words(self) -> str:
        """The outcome for a person, in one sentence."""
        name = f"“{self.project.name}”"
        if not self.is_new:
            return f"{name} was here before, so nothing was stored."
        return f"{name} is here with {counted_words(self.counts)}."


def take(store: Store, home: Path, stream: BinaryIO, by: str, now: float) -> Taken:
    """Store an archive's project, by the person who is its admin then.

    A project that is here already, case by case, is left as it is.

    Raises:
        NotAllowed: `by` may not begin a project here.
        InputError: the file is no archive, damaged, changed, too large, or newer than this code.
        ConflictError: some of its cases are here under another project.
    """
    content, lists = _read(stream)
    try:
        project, is_new = restore(store, home, content, by, now)
    except sqlite3.IntegrityError as error:
        raise InputError(
            f"Expected records with ids of their own in the archive, found one twice ({error}); "
            "nothing was stored. Export it again."
        ) from error
    counts = _counts(lists)
    return Taken(project, counts if is_new else dict.fromkeys(counts, 0), is_new)


def _read(stream: BinaryIO) -> tuple[Content, dict[str, list[Any]]]:
    try:
        with zipfile.ZipFile(stream) as packed:
            _require_bounds(packed)
            version, sums = _manifest(packed)
            files = {name: _member(packed, name, digest) for name, digest in sums.items()}
    except DAMAGE as error:
        raise InputError(
            f"Expected a whole archive of Counterpoint (zip), found: {error}; copy it again."
        ) from error
    if version == 1:
        files |= {f"{name}.jsonl": b"" for name in SINCE_2}
    missing = [n for n in ("project.json", *(f"{n}.jsonl" for n in LISTS)) if n not in files]
    if missing:
        raise InputError(f"Expected {missing[0]} in the archive, found none; export it again.")
    lists = {name: _records(f"{name}.jsonl", files, kind) for name, kind in LISTS.items()}
    project = _record("project.json", _value(files["project.json"]), Project)
    documents = {n[10:]: d for n, d in files.items() if n.startswith("documents/")}
    for source, data in documents.items():
        if hashlib.sha256(data).hexdigest() != source:
            raise InputError(
                f"Expected the file {source[:12]}… under its sha256, found other bytes."
            )
    traces = {n[7:-5]: d for n, d in files.items() if n.startswith("traces/")}
    return Content(project, documents=documents, traces=traces, **lists), lists


def _require_bounds(packed: zipfile.ZipFile) -> None:
    """Refuse what is too large or oddly named before anything of it is unpacked."""
    infos = packed.infolist()
    if len(infos) > MOST_MEMBERS or sum(info.file_size for info in infos) > MOST_ARCHIVE:
        raise InputError(
            f"Expected an archive of at most {MOST_ARCHIVE // MEGABYTE} MB and {MOST_MEMBERS:,} "
            "files when unpacked, found more; it was left unread."
        )
    names = [info.filename for info in infos]
    odd = next((name for name in names if name != MANIFEST and not MEMBER.fullmatch(name)), None)
    if odd is not None or len(set(names)) < len(names):
        what = f"“{odd[:60]}”" if odd is not None else "a name twice"
        raise InputError(
            f"Expected the files that Counterpoint puts into an archive, found {what}."
        )
    if MANIFEST not in names:
        raise InputError("Expected an archive that Counterpoint exported, found another zip file.")


def _manifest(packed: zipfile.ZipFile) -> tuple[int, dict[str, str]]:
    """(the archive's version, the sha256 of each member's bytes)."""
    manifest = _value(packed.read(MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError("Expected an archive that Counterpoint exported, found another zip file.")
    version = manifest.get("version")
    if version not in (1, VERSION):
        raise InputError(
            f"Expected an archive of version 1 or {VERSION}, found {str(version)[:20]}; "
            "open it with the Counterpoint that wrote it."
        )
    sums = manifest.get("files")
    there = {name for name in packed.namelist() if name != MANIFEST}
    if not isinstance(sums, dict) or set(sums) != there:
        raise InputError("Expected the files that the manifest lists, found others; export again.")
    return version, sums


def _member(packed: zipfile.ZipFile, name: str, digest: object) -> bytes:
    size = packed.getinfo(name).file_size
    with packed.open(name) as stream:
        data = stream.read(size + 1)
    if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
        raise InputError(
            f"Expected {name} as it was exported, found other bytes; the archive was changed or "
            "damaged, so nothing was stored."
        )
    return data


def _value(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"Expected JSON in the archive, found: {error}.") from error


def _records(name: str, files: dict[str, bytes], kind: type[T]) -> list[T]:
    try:
        text = files[name].decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"Expected UTF-8 text in {name}, found: {error}.") from error
    return [_checked(name, item, kind) for item in json_lines(text)]


def _checked(name: str, item: tuple[int, object] | Problem, kind: type[T]) -> T:
    if isinstance(item, Problem):
        raise InputError(f"Expected records in {name}, line {item.place}: {item.reason}")
    return _record(f"{name}, line {item[0]}", item[1], kind)


def _record(place: str, value: object, kind: type[T]) -> T:
    try:
        return from_plain(kind, value)
    except InputError as error:
        raise InputError(f"In the archive’s {place}: {error}") from error
