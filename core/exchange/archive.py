"""Export and import a project as one zip of settings, prompts, files, cases, runs and answers.

The manifest names every member with the sha256 of its bytes. Imported archives are untrusted:
nothing is unpacked to disk by name, sizes are limited before anything is read, and the project is
stored in one transaction under its own ids, or not at all.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from core.debate.protocols import require_options
from core.documents.library import load_file_bytes, store_file
from core.documents.segmentation import extract_terms
from core.exchange.fields import MAX_ID_CHARS
from core.exchange.file_decoding import iter_json_lines
from core.exchange.rows import RowProblem
from core.review.people import list_first_admins
from core.review.queue_ranking import check_error_rate
from core.runtime.config import MEGABYTE
from core.runtime.errors import ConflictError, InputError
from core.schema.records import Case, LibraryEntry, Member, Plan, Project, Run
from core.schema.reviews import (
    Assignment,
    Correction,
    GoldAnswer,
    QueueEvent,
    QueueItem,
    Suggestion,
)
from core.store import Store
from core.store.cases import Batch, BatchRow
from core.store.projects import Guideline, PromptEdit
from core.store.review_queue import NO_ITEM_FILTER
from core.store.sqlite import from_plain, to_plain
from core.store.traces import export_trace, restore_trace

ARCHIVE_FORMAT = "counterpoint-archive"
ARCHIVE_VERSION = 3  # those of version 1 hold no prompts and tables, of version 2 no guidelines
MANIFEST_NAME = "manifest.json"
MAX_ARCHIVE_BYTES = 1024 * MEGABYTE  # bytes, packed as well as unpacked
MAX_ARCHIVE_FILES = 100_000
RECORD_TYPES: dict[str, type[Any]] = {
    "members": Member, "library": LibraryEntry, "cases": Case, "runs": Run,
    "corrections": Correction, "golds": GoldAnswer, "suggestions": Suggestion,
    "handlings": QueueEvent, "items": QueueItem, "assignments": Assignment,
    "prompts": PromptEdit, "batches": Batch, "batch_rows": BatchRow, "guidelines": Guideline,
}  # fmt: skip
LISTS_SINCE_VERSION = {2: ("prompts", "batches", "batch_rows"), 3: ("guidelines",)}
MEMBER_PATTERN = re.compile(
    rf"project\.json|(?:{'|'.join(RECORD_TYPES)})\.jsonl|documents/[0-9a-f]{{64}}|traces/[\w-]{{1,64}}\.json"
)
ZIP_TIMESTAMP = (1980, 1, 1, 0, 0, 0)  # the same project gives the same bytes
T = TypeVar("T")
# The errors that zipfile raises for a file that was changed or was never a zip.
ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, ValueError,
    NotImplementedError, RuntimeError,
)  # fmt: skip


@dataclass(frozen=True)
class ArchiveContent:
    """The contents of an archive, validated by type; documents and traces by their ids."""

    project: Project
    members: Sequence[Member]
    library: Sequence[LibraryEntry]
    cases: Sequence[Case]
    runs: Sequence[Run]
    corrections: Sequence[Correction]
    golds: Sequence[GoldAnswer]
    suggestions: Sequence[Suggestion]
    handlings: Sequence[QueueEvent]
    items: Sequence[QueueItem]
    assignments: Sequence[Assignment]
    prompts: Sequence[PromptEdit]
    batches: Sequence[Batch]
    batch_rows: Sequence[BatchRow]
    guidelines: Sequence[Guideline]
    documents: Mapping[str, bytes]
    traces: Mapping[str, bytes]


def restore_project(
    store: Store, home: Path, content: ArchiveContent, by: str, now: float
) -> tuple[Project, bool]:
    """Store the content; return its project and whether it is new.

    A project that exists already is left unchanged. Raises InputError if the parts do not belong
    together, NotAllowed if `by` may not create a project here (in an empty home everybody may), and
    ConflictError if some of its cases exist here, but not as this project.
    """
    _require_consistent(content)
    with store.writing():
        admins = {by}
        if store.projects.first() is None:
            admins = list_first_admins(by)
        else:
            store.projects.require_for_all(by, "admin", "create a project")
        existing_ids = [case.id for case in content.cases if store.cases.get(case.id) is not None]
        existing = store.projects.get(content.project.id)
        if existing is not None and len(existing_ids) == len(content.cases):
            return existing, False
        if existing_ids or existing is not None:
            raise ConflictError(
                f"Some of “{content.project.name}” is here already ({len(existing_ids)} of "
                f"{len(content.cases)} cases), so nothing was stored; import it into another home."
            )
        project = _assign_free_name(store, content.project)
        _store_people_and_files(store, home, project, content, admins, now)
        _store_cases(store, project, content)
        for edit in content.prompts:  # checked for its fields when it is used
            store.prompt_edits.save(edit)
        for version in content.guidelines:
            store.guidelines.save(version)
        for batch in content.batches:
            rows = [row for row in content.batch_rows if row.batch_id == batch.id]
            store.batches.add(batch, rows)
    return project, True


def _require_consistent(content: ArchiveContent) -> None:
    """Raise InputError unless every record belongs to a case and a run of the archive itself."""
    project = content.project.id
    if content.project.error_rate is not None:
        check_error_rate(content.project.error_rate)
    require_options(Plan(content.project.protocol, options=content.project.options))
    for case in content.cases:
        if not 0 < len(case.id) <= MAX_ID_CHARS or not case.id.isprintable():
            raise InputError(
                f"Expected ids of 1 to {MAX_ID_CHARS} characters that can be shown, found one of "
                f"{len(case.id):,}; nothing was stored."
            )
    cases = {case.id for case in content.cases}
    runs = {run.id: run.case_id for run in content.runs}
    project_records: list[Any] = [
        *content.members, *content.library, *content.cases, *content.runs, *content.items,
        *content.prompts, *content.batches, *content.guidelines,
    ]  # fmt: skip
    case_records: list[Any] = [
        *content.runs, *content.corrections, *content.golds, *content.suggestions,
        *content.handlings, *content.items, *content.assignments,
    ]  # fmt: skip
    run_records: list[Any] = [*content.corrections, *content.items]
    run_cases = [(one.run_id, one.case_id) for one in run_records if one.run_id]
    rows = content.batch_rows
    is_whole = (
        all(one.project_id == project for one in project_records)
        and all(one.case_id in cases for one in case_records)
        and all(runs.get(run or "") == case for run, case in run_cases)
        and {item.case_id for item in content.items} >= {a.case_id for a in content.assignments}
        and {row.batch_id for row in rows} <= {batch.id for batch in content.batches}
        and all(row.case_id is None or row.case_id in cases for row in rows)
        and all(runs.get(row.run_id) == row.case_id for row in rows if row.run_id)
        and set(content.traces) <= set(runs)
        and {entry.id for entry in content.library} == set(content.documents)
        and len(cases) == len(content.cases)
    )
    if not is_whole:
        raise InputError(
            "Expected an archive whose parts belong to one project, found others; export it again."
        )


def _assign_free_name(store: Store, project: Project) -> Project:
    names_in_use = {one.name for one in store.projects.all()}
    names = (project.name, *(f"{project.name} ({n})" for n in range(2, len(names_in_use) + 3)))
    return replace(project, name=next(one for one in names if one not in names_in_use))


def _store_people_and_files(
    store: Store,
    home: Path,
    project: Project,
    content: ArchiveContent,
    admins: set[str],
    now: float,
) -> None:
    store.projects.save(project)
    for member in content.members:
        store.projects.set_member(member)
    for admin in admins:
        store.projects.set_member(Member(project.id, admin, "admin", now))
    settings = store.projects.settings()
    for entry in content.library:
        data = content.documents[entry.id]
        stored = store_file(
            store, home, project.id, entry.name, data, entry.added_by, entry.added_at, settings
        )
        if stored.kind != entry.kind:
            raise InputError(
                f"Expected {entry.name[:60]} as {entry.kind}, found {stored.kind}; export it again."
            )


def _store_cases(store: Store, project: Project, content: ArchiveContent) -> None:
    responses = {case.id: case for case in content.cases}
    for case in content.cases:
        words = extract_terms(f"{case.question} {case.response}", case.language)
        store.cases.add(replace(case, project_id=project.id), list(words))
    for run in content.runs:
        if run.id in content.traces:
            restore_trace(store, content.traces[run.id], run, responses[run.case_id])
        else:
            store.runs.add(replace(run, origin="imported"), "", 0.0)
    for gold in content.golds:
        store.golds.add(gold, responses[gold.case_id].response)
    for correction in content.corrections:
        response = responses[correction.case_id].response
        store.corrections.add(correction, response, is_read_elsewhere=True)
    for suggestion in content.suggestions:
        store.golds.suggest(suggestion, responses[suggestion.case_id])
    for handling in content.handlings:
        store.queue_events.add(handling)
    people: dict[str, list[Assignment]] = {}
    for assignment in content.assignments:
        people.setdefault(assignment.case_id, []).append(assignment)
    for item in content.items:
        store.queue.restore(item, people.get(item.case_id, ()))


def write_archive(store: Store, home: Path, project: Project, stream: BinaryIO) -> dict[str, int]:
    """Write the project to the stream and return the number of records of each kind."""
    with store.reading():
        lists = _collect_records(store, project)
        traces = [(run.id, _export_trace(store, run)) for run in lists["runs"]]
    digests: dict[str, str] = {}
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, data: bytes) -> None:
            digests[name] = hashlib.sha256(data).hexdigest()
            info = zipfile.ZipInfo(name, ZIP_TIMESTAMP)
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)

        add("project.json", _encode_json(to_plain(project)))
        for name, records in lists.items():
            add(f"{name}.jsonl", b"".join(_encode_json(to_plain(one)) + b"\n" for one in records))
        for run_id, trace in traces:
            if trace:
                add(f"traces/{run_id}.json", trace)
        for entry in lists["library"]:
            add(f"documents/{entry.id}", load_file_bytes(home, entry.id))
        manifest = {
            "format": ARCHIVE_FORMAT,
            "version": ARCHIVE_VERSION,
            "project": project.name,
            "files": digests,
        }
        archive.writestr(zipfile.ZipInfo(MANIFEST_NAME, ZIP_TIMESTAMP), _encode_json(manifest))
    return _count_records(lists)


def _encode_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _collect_records(store: Store, project: Project) -> dict[str, list[Any]]:
    cases = store.cases.all(project.id)
    now, lease = 0.0, 0.0
    ids = [case.id for case in cases]
    items, _ = store.queue.page(
        project.id, NO_ITEM_FILTER, ("open", "flagged", "adjudicated"), limit=-1, offset=0, now=now
    )
    batches = store.batches.all(project.id)[::-1]
    runs = [run for case_id in ids for run in store.runs.of_case(case_id, now, lease)]
    return {
        "members": store.projects.members(project.id),
        "library": store.library.all(project.id)[::-1],
        "cases": cases,
        "runs": sorted(runs, key=lambda run: (run.started_at, run.id)),
        "corrections": [c for case_id in ids for c in store.corrections.history(case_id)],
        "golds": [gold for case_id in ids for gold in store.golds.of_case(case_id)],
        "suggestions": [s for case_id in ids for s in store.golds.suggested(case_id)],
        "handlings": [h for case_id in ids for h in store.queue_events.of_case(case_id)],
        "items": sorted(items, key=lambda item: item.case_id),
        "assignments": [a for case_id in ids for a in store.queue.people_of(case_id)],
        "prompts": store.prompt_edits.all(project.id),
        "batches": batches,
        "batch_rows": [row for batch in batches for row in store.batches.rows(batch.id)],
        "guidelines": store.guidelines.history(project.id)[::-1],
    }


def _export_trace(store: Store, run: Run) -> bytes:
    try:
        return export_trace(store, run.id, 0.0, 0.0)
    except InputError:
        return b""


def _count_records(lists: dict[str, list[Any]]) -> dict[str, int]:
    names = (
        "cases",
        "library",
        "runs",
        "corrections",
        "golds",
        "suggestions",
        "prompts",
        "batches",
    )
    titles = {"library": "files", "golds": "gold answers", "prompts": "prompt edits",
             "batches": "tables"}  # fmt: skip
    return {titles.get(name, name): len(lists[name]) for name in names}


def format_archive_counts(counts: dict[str, int]) -> str:
    """Return the counts from `give` in words."""
    return ", ".join(
        f"{count} {name.removesuffix('s') if count == 1 else name}"
        for name, count in counts.items()
    )


@dataclass(frozen=True)
class ImportedArchive:
    """An imported archive: its project, and how many records of each kind were stored."""

    project: Project
    counts: dict[str, int]
    is_new: bool

    @property
    def words(self) -> str:
        """The outcome for a person, in one sentence."""
        title = f"“{self.project.name}”"
        if not self.is_new:
            return f"{title} was here before, so nothing was stored."
        return f"{title} is here with {format_archive_counts(self.counts)}."


def import_archive(
    store: Store, home: Path, stream: BinaryIO, by: str, now: float
) -> ImportedArchive:
    """Store an archive's project; `by` becomes its admin.

    A project that exists here with all its cases is left unchanged. Raises NotAllowed if `by` may
    not create a project here, InputError if the file is not an archive, damaged, changed, too large
    or newer than this code, and ConflictError if some of its cases are in another project here.
    """
    content, lists = _read_archive(stream)
    try:
        project, is_new = restore_project(store, home, content, by, now)
    except sqlite3.IntegrityError as error:
        raise InputError(
            f"Expected records with ids of their own in the archive, found one twice ({error}); "
            "nothing was stored. Export it again."
        ) from error
    counts = _count_records(lists)
    return ImportedArchive(project, counts if is_new else dict.fromkeys(counts, 0), is_new)


def _read_archive(stream: BinaryIO) -> tuple[ArchiveContent, dict[str, list[Any]]]:
    try:
        with zipfile.ZipFile(stream) as archive:
            _require_bounds(archive)
            version, digests = _read_manifest(archive)
            files = {name: _read_member(archive, name, digest) for name, digest in digests.items()}
    except ZIP_ERRORS as error:
        raise InputError(
            f"Expected a whole archive of Counterpoint (zip), found: {error}; copy it again."
        ) from error
    for since, names in LISTS_SINCE_VERSION.items():
        if version < since:
            files |= {f"{name}.jsonl": b"" for name in names}
    missing = [n for n in ("project.json", *(f"{n}.jsonl" for n in RECORD_TYPES)) if n not in files]
    if missing:
        raise InputError(f"Expected {missing[0]} in the archive, found none; export it again.")
    lists = {
        name: _parse_records(f"{name}.jsonl", files, kind) for name, kind in RECORD_TYPES.items()
    }
    project = _parse_record("project.json", _decode_json(files["project.json"]), Project)
    documents = {n[10:]: d for n, d in files.items() if n.startswith("documents/")}
    for source, data in documents.items():
        if hashlib.sha256(data).hexdigest() != source:
            raise InputError(
                f"Expected the file {source[:12]}… under its sha256, found other bytes."
            )
    traces = {n[7:-5]: d for n, d in files.items() if n.startswith("traces/")}
    return ArchiveContent(project, documents=documents, traces=traces, **lists), lists


def _require_bounds(archive: zipfile.ZipFile) -> None:
    infos = archive.infolist()
    if len(infos) > MAX_ARCHIVE_FILES or sum(info.file_size for info in infos) > MAX_ARCHIVE_BYTES:
        raise InputError(
            f"Expected an archive of at most {MAX_ARCHIVE_BYTES // MEGABYTE} MB and "
            f"{MAX_ARCHIVE_FILES:,} "
            "files when unpacked, found more; it was left unread."
        )
    names = [info.filename for info in infos]
    unexpected = next(
        (name for name in names if name != MANIFEST_NAME and not MEMBER_PATTERN.fullmatch(name)),
        None,
    )
    if unexpected is not None or len(set(names)) < len(names):
        finding = f"“{unexpected[:60]}”" if unexpected is not None else "a name twice"
        raise InputError(
            f"Expected the files that Counterpoint puts into an archive, found {finding}."
        )
    if MANIFEST_NAME not in names:
        raise InputError("Expected an archive that Counterpoint exported, found another zip file.")


def _read_manifest(archive: zipfile.ZipFile) -> tuple[int, dict[str, str]]:
    manifest = _decode_json(archive.read(MANIFEST_NAME))
    if not isinstance(manifest, dict) or manifest.get("format") != ARCHIVE_FORMAT:
        raise InputError("Expected an archive that Counterpoint exported, found another zip file.")
    version = manifest.get("version")
    if not isinstance(version, int) or version not in range(1, ARCHIVE_VERSION + 1):
        raise InputError(
            f"Expected an archive of version 1 to {ARCHIVE_VERSION}, found {str(version)[:20]}; "
            "open it with the Counterpoint that wrote it."
        )
    digests = manifest.get("files")
    members = {name for name in archive.namelist() if name != MANIFEST_NAME}
    if not isinstance(digests, dict) or set(digests) != members:
        raise InputError("Expected the files that the manifest lists, found others; export again.")
    return version, digests


def _read_member(archive: zipfile.ZipFile, name: str, digest: object) -> bytes:
    size = archive.getinfo(name).file_size
    with archive.open(name) as stream:
        data = stream.read(size + 1)
    if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
        raise InputError(
            f"Expected {name} as it was exported, found other bytes; the archive was changed or "
            "damaged, so nothing was stored."
        )
    return data


def _decode_json(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"Expected JSON in the archive, found: {error}.") from error


def _parse_records(name: str, files: dict[str, bytes], kind: type[T]) -> list[T]:
    try:
        text = files[name].decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"Expected UTF-8 text in {name}, found: {error}.") from error
    return [_parse_item(name, item, kind) for item in iter_json_lines(text)]


def _parse_item(name: str, item: tuple[int, object] | RowProblem, kind: type[T]) -> T:
    if isinstance(item, RowProblem):
        raise InputError(f"Expected records in {name}, line {item.place}: {item.reason}")
    return _parse_record(f"{name}, line {item[0]}", item[1], kind)


def _parse_record(place: str, value: object, kind: type[T]) -> T:
    try:
        return from_plain(kind, value)
    except InputError as error:
        raise InputError(f"In the archive’s {place}: {error}") from error
