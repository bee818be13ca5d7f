"""The commands `import` and `export`, which move files into and out of a home."""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.baseline.wording import format_count
from core.documents.library import ensure_read
from core.exchange.annotation_tools import build_labeling_config
from core.exchange.archive import (
    MAX_ARCHIVE_BYTES,
    format_archive_counts,
    import_archive,
    write_archive,
)
from core.exchange.exporter import export_trajectories, load_project_rows
from core.exchange.file_decoding import MAX_FILE_MEGABYTES
from core.exchange.importer import ImportOutcome, ImportRequest, import_rows
from core.exchange.registry import FORMATS, READ_ONLY_FORMATS, WRITABLE_FORMATS, join_sources
from core.pipeline.single_check import read_file_bytes
from core.review.people import ensure_project, find_operator
from core.runtime.concurrency import StopSignal
from core.runtime.config import MEGABYTE, replace_invalid_bytes
from core.runtime.errors import InputError
from core.schema.records import Project
from core.store import Store, open_store
from core.store.ground_truth import describe_truth_rule

ARCHIVE = "archive"
TRAJECTORIES = "trajectories"
CASE_SELECTIONS = ("all", "reviewed")
IMPORT_DESCRIPTION = """\
Bring cases with their labels into a project: gold answers, suggestions of an agent, or cases alone.

A row keeps its id; the same id with the same texts is the same case, so importing a file again
changes nothing. Rows that cannot be read are listed with line and reason, the others come in. Files
may be gzipped. What several annotators said becomes their own answers, named “NAME (imported)”."""
IMPORT_EXAMPLES = """\
examples:
  python -m core import --format jsonl cases.jsonl
  python -m core import --format mu-shroom mushroom.en-val.v2.jsonl.gz --project Answers
  python -m core import --format ragtruth response.jsonl --sources source_info.jsonl
  python -m core import --format csv predictions.csv --as suggestions --agent my-detector --json
  python -m core import --format archive project.zip

exit code: 0 something came in or was there already; 1 the result could not be written; 2 nothing
could be read, with the reason."""
EXPORT_DESCRIPTION = """\
Write a project's cases with the ground truth where it is decided: a settled answer, else a gold
that was imported, else what people agree on by the project's rule. An archive holds the whole
project with documents, runs and history. Trajectories are finished audits, step by step, to train
an agent on: those that people found right, and beside them, in FILE.failed.jsonl, the others with
what speaks against each."""
EXPORT_EXAMPLES = """\
examples:
  python -m core export --format jsonl --out cases.jsonl
  python -m core export --format label-studio --out tasks.json --only reviewed
  python -m core export --format csv --out - > cases.csv
  python -m core export --format archive --out project.zip
  python -m core export --format trajectories --out trajectories.jsonl --balanced

exit code: 0 written; 1 the file could not be written; 2 bad input, with one line that says so."""
MAX_PROBLEMS_SHOWN = 50
FAILED_SUFFIX = ".failed.jsonl"
MessageWriter = Callable[[str], None]
OutputWriter = Callable[[str | bytes], None]


def add_commands(commands: Any, add_home: Any) -> None:
    """Add both commands to the parser's commands; `add_home` adds `--home` to each."""
    import_parser = commands.add_parser(
        "import",
        help="bring cases, gold answers or suggestions in from a file",
        description=IMPORT_DESCRIPTION,
        epilog=IMPORT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    import_parser.add_argument("file", metavar="FILE", help="the file, or - for standard input")
    import_parser.add_argument(
        "--format", required=True, choices=(*WRITABLE_FORMATS, *READ_ONLY_FORMATS, ARCHIVE)
    )
    import_parser.add_argument(
        "--as",
        dest="labels",
        choices=("gold", "suggestions", "cases"),
        default="gold",
        help="what the labels are: right answers (default), an agent's suggestions, or left out",
    )
    import_parser.add_argument(
        "--agent", default="", help="whose suggestions they are (default: FILE)"
    )
    import_parser.add_argument(
        "--sources", metavar="FILE", help="RAGTruth's source_info.jsonl, beside its responses"
    )
    export_parser = commands.add_parser(
        "export",
        help="write cases and their answers, or a whole project",
        description=EXPORT_DESCRIPTION,
        epilog=EXPORT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    export_parser.add_argument(
        "--format", required=True, choices=(*WRITABLE_FORMATS, ARCHIVE, TRAJECTORIES)
    )
    export_parser.add_argument(
        "--out", required=True, metavar="FILE", help="the file, or - for stdout"
    )
    export_parser.add_argument(
        "--only",
        choices=CASE_SELECTIONS,
        default="all",
        help="all cases (default), or those with an answer",
    )
    export_parser.add_argument(
        "--balanced",
        action="store_true",
        help="of trajectories: as many of each label in each language; the rest goes to the other "
        "file",
    )
    for parser in (import_parser, export_parser):
        parser.add_argument("--project", metavar="NAME", help="which project (default: the first)")
        parser.add_argument(
            "--by", metavar="NAME", help="who does it (default: the project's first admin)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        add_home(parser)


def run_import(given: argparse.Namespace, home: Path, say: MessageWriter, out: OutputWriter) -> int:
    """Import a file; return 0 if any row was imported or known already, else 2.

    Raises InputError if the file cannot be read at all, or there is no such project.
    """
    name = replace_invalid_bytes(Path(given.file).name if given.file != "-" else "standard input")
    if given.format == ARCHIVE:
        return _import_archive(given, home, say, out)
    data = _read_bytes(given.file)
    with open_store(home) as store:
        person, project = find_person_and_project(store, given)
        file_format = FORMATS[given.format]
        read = file_format.read(name, data)
        if given.sources is not None:
            read = join_sources(read, _read_bytes(given.sources), given.format)
        order = ImportRequest(
            project, person, time.time(), name, given.labels, given.agent.strip()[:80]
        )
        outcome = import_rows(store, home, read, order)
        _read_sources(store, home, outcome, say)
    for problem in outcome.problems[:MAX_PROBLEMS_SHOWN]:
        say(f"{outcome.unit} {problem.place}: {' '.join(problem.reason.split())}")
    more = len(outcome.problems) - MAX_PROBLEMS_SHOWN
    if more > 0:
        say(f"… and {more} more.")
    say(f"{format_count(outcome.rows, 'row')} into “{project.name}”: {outcome.words}.")
    if given.json:
        summary = {"format": given.format, "file": name, "project": project.name}
        out(json.dumps(summary | outcome.as_dict(), ensure_ascii=False) + "\n")
    return 0 if outcome.new + outcome.known else 2


def _read_sources(store: Store, home: Path, outcome: ImportOutcome, say: MessageWriter) -> None:
    """Read the documents that came in, as the app does in the background; say which are refused."""
    settings = store.projects.settings()
    for source_id, name in outcome.sources.items():
        try:
            ensure_read(
                store, home, source_id, name, settings, StopSignal(), lambda *_: None, time.time
            )
        except InputError as error:
            say(str(error))


def run_export(given: argparse.Namespace, home: Path, say: MessageWriter, out: OutputWriter) -> int:
    """Write a project's cases and return 0.

    Raises InputError if there is no such project, the file cannot be written, or --balanced is
    given without trajectories.
    """
    if given.balanced and given.format != TRAJECTORIES:
        raise InputError("Expected --balanced only with --format trajectories; leave it out.")
    with open_store(home) as store:
        _, project = find_person_and_project(store, given)
        if given.format == ARCHIVE:
            stream = io.BytesIO()
            counts = write_archive(store, home, project, stream)
            _write_output(given.out, stream.getvalue(), out)
            say(f"Wrote “{project.name}” with {format_archive_counts(counts)}.")
            _report_summary({"format": ARCHIVE, "project": project.name, **counts}, given, say, out)
            return 0
        if given.format == TRAJECTORIES:
            return _export_trajectories(store, project, given, say, out)
        rows = load_project_rows(store, home, project, given.only)
    write = FORMATS[given.format].write
    _write_output(given.out, write(rows) if write else b"", out)
    decided = sum(row.truth.is_decided for row in rows)
    disputed = sum(row.truth.state == "disputed" for row in rows)
    if given.format == "label-studio":
        config = build_labeling_config(project.categories)
        say(f"The labelling configuration that fits these tasks:\n{config}")
    say(
        f"Wrote {format_count(len(rows), 'case')} of “{project.name}”, {decided} with a ground "
        f"truth, {disputed} in dispute. True is {describe_truth_rule(project)}."
    )
    summary = {"format": given.format, "rows": len(rows), "decided": decided, "disputed": disputed}
    _report_summary(summary | {"project": project.name}, given, say, out)
    return 0


def _report_summary(
    summary: Mapping[str, object],
    options: argparse.Namespace,
    say: MessageWriter,
    out: OutputWriter,
) -> None:
    line = json.dumps(summary, ensure_ascii=False)
    if options.json and options.out == "-":
        say(line)
    elif options.json:
        out(line + "\n")


def _write_output(path: str, data: bytes, out: OutputWriter) -> None:
    if path == "-":
        out(data)
    else:
        write_file_atomically(Path(path), data)


def _export_trajectories(
    store: Store,
    project: Project,
    options: argparse.Namespace,
    say: MessageWriter,
    out: OutputWriter,
) -> int:
    trajectories = export_trajectories(store, project, options.only, balance=options.balanced)
    _write_output(options.out, trajectories.kept_file, out)
    if options.out != "-":
        write_file_atomically(Path(f"{options.out}{FAILED_SUFFIX}"), trajectories.failed_file)
    say(f"Trajectories of “{project.name}”: {trajectories.words}.")
    counts = {"kept": len(trajectories.kept), "failed": len(trajectories.failed)}
    summary = {"format": TRAJECTORIES, "project": project.name, **counts}
    _report_summary(summary | {"reasons": trajectories.reasons}, options, say, out)
    return 0


def _import_archive(
    options: argparse.Namespace, home: Path, say: MessageWriter, out: OutputWriter
) -> int:
    if options.project is not None or options.labels != "gold":
        raise InputError("An archive brings its own project; leave --project and --as out.")
    data = (
        read_file_bytes(Path(options.file), MAX_ARCHIVE_BYTES // MEGABYTE)
        if options.file != "-"
        else b""
    )
    stream = io.BytesIO(data or sys.stdin.buffer.read(MAX_ARCHIVE_BYTES + 1))
    with open_store(home) as store:
        person = find_operator(store) if options.by is None else options.by.strip()
        imported = import_archive(store, home, stream, person, time.time())
    say(imported.words)
    if options.json:
        summary = {"format": ARCHIVE, "project": imported.project.name} | imported.counts
        out(json.dumps(summary) + "\n")
    return 0


def find_person_and_project(store: Store, given: argparse.Namespace) -> tuple[str, Project]:
    """Return who does it, and the project of that name or the first, which an empty home gets.

    Raises InputError if no project has that name.
    """
    projects = store.projects.all()
    named = [project for project in projects if given.project in (None, project.name)]
    if given.project is not None and not named:
        known = ", ".join(f"“{project.name}”" for project in projects) or "none"
        raise InputError(f"Expected the name of a project ({known}), found “{given.project[:80]}”.")
    person = find_operator(store, *named[:1]) if given.by is None else given.by.strip()
    return person, named[0] if named else ensure_project(store, person, time.time())


def write_file_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically: it appears complete or not at all.

    Raises InputError if it cannot be written there.
    """
    temporary: Path | None = None
    try:
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_bytes(data)
            return
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as stream:
            temporary = Path(stream.name)
            stream.write(data)
        temporary.chmod(0o644)
        temporary.replace(path)
    except (OSError, ValueError) as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise InputError(
            f"Expected a file that can be written at {replace_invalid_bytes(str(path))}, found: "
            f"{error}."
        ) from error


def _read_bytes(file: str) -> bytes:
    if file != "-":
        return read_file_bytes(Path(file), MAX_FILE_MEGABYTES)
    if sys.stdin is None:
        raise InputError("Expected the rows on standard input, found it closed.")
    return sys.stdin.buffer.read(MAX_FILE_MEGABYTES * MEGABYTE + 1)
