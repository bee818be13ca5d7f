"""Import / export: files are recognised, shown, then brought in; cases go out in each format.

An import runs in a thread of its own, so that a click or a reload stops nothing. Streamlit makes a
file in a thread that knows nothing of the session, so who asks and for which project is settled
while the button is drawn, and their role is asked again when they click.
"""

from __future__ import annotations

import io
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from components.app import state
from components.app.frame import has_role
from components.setup.column_choice import ColumnChoice
from components.widgets.controls import (
    draw_button,
    draw_download,
    draw_link,
    draw_table,
    show_problem,
    store_problem,
)
from components.widgets.wording import LABEL_WORDS, clip_text, escape_markdown, format_count
from core.documents.segmentation import extract_terms
from core.exchange.annotation_tools import build_labeling_config
from core.exchange.archive import import_archive, write_archive
from core.exchange.column_mapping import (
    ColumnMapping,
    FileTable,
    attribute_labels,
    map_rows,
    read_file_table,
)
from core.exchange.exporter import export_trajectories, load_project_rows, zip_trajectories
from core.exchange.file_decoding import MAX_FILE_MEGABYTES
from core.exchange.importer import (
    ImportOutcome,
    ImportRequest,
    LabelUse,
    import_rows,
    preview_import,
)
from core.exchange.registry import FORMATS, WRITABLE_FORMATS, detect_format, join_sources
from core.exchange.rows import ExchangeRow, ParsedFile, RowProblem
from core.runtime.config import MEGABYTE
from core.runtime.errors import InputError, ReviewError
from core.schema.records import Project
from core.store import Store
from core.store import open_store as open_store_in
from core.store.traces import MAX_TRACE_BYTES, import_trace

ABOUT_EXPORT = (
    "The ground truth is written only where it is decided; of a disputed case what people said. "
    "Mu-SHROOM and RAGTruth have a place for the ground truth alone, the others for everybody's "
    "answers too. An archive holds documents, checks and the whole history. "
    "Trajectories are audits step by step, to train an agent on: those that people found "
    "right in one file, the others with the reason in a second."
)
IMPORT_FORMATS = (
    "JSONL, CSV, Label Studio, Argilla, Mu-SHROOM, RAGTruth, FaithBench, HaluQuestQA, XSum, "
    "recorded debates (MAD), or an archive"
)
ABOUT_IMPORT = (
    "Plain or gzipped. Nothing is stored until you confirm; the same file again changes nothing."
)


def draw_trace_import() -> None:
    """Open a trace file that was exported here or elsewhere."""
    if not has_role("annotator", "open a trace file"):
        return
    with st.expander("Open a trace file", icon=":material/movie:"):
        upload = st.file_uploader(
            "A run that was exported as a trace",
            key="history.trace",
            max_upload_size=MAX_TRACE_BYTES // MEGABYTE,
        )
        if upload is None:
            return
        try:
            with state.open_store() as store:
                project = state.get_project(store)
                state.require_role(store, project.id, "annotator", "open a trace file")
                run_id = import_trace(
                    store, upload.getvalue(), project.id, lambda *text: list(extract_terms(*text))
                )
        except ReviewError as error:
            st.error(escape_markdown(f"{upload.name}: {error}"), icon=":material/error:")
            return
        draw_link("pages/check/run.py", "Open the run", "open_in_new", run=run_id)
        draw_link("pages/check/replay.py", "Play it", "play_circle", run=run_id)


LOGGER = logging.getLogger(__name__)
UNEXPECTED = "The import broke off: an unexpected error, of which the server’s log has the details."


@dataclass
class Import:
    """Files on their way in; the page reads it, its thread writes it."""

    done: int = 0
    total: int = 0
    is_over: bool = False
    outcomes: dict[str, ImportOutcome] = field(default_factory=dict)
    words: str = ""
    problem: str = ""


RUNNING = "exchange.running"  # the import that this session has started last
POLL_SECONDS = 0.5


def _start(work: Callable[[Import], None]) -> None:
    one = st.session_state[RUNNING] = Import()

    def carry_out() -> None:
        try:
            work(one)
        except ReviewError as error:
            one.problem = str(error)
        except Exception:
            LOGGER.exception("an import broke off")
            one.problem = UNEXPECTED
        one.is_over = True

    threading.Thread(target=carry_out, daemon=True, name="import").start()


@st.fragment(run_every=POLL_SECONDS)
def _poll() -> None:
    one: Import | None = st.session_state.get(RUNNING)
    if one is None or one.is_over:
        st.rerun()
    else:
        share = one.done / one.total if one.total else 0.0
        st.progress(share, text=f"{one.done:,} of {one.total:,} rows are in")


def _draw_last(last: Import | None, is_over: bool) -> None:
    """The import started last, as it was when the page began: its counts come with the next."""
    if last is None:
        return
    if not is_over:
        _poll()
    elif last.problem:
        st.error(escape_markdown(last.problem), icon=":material/error:")
    else:
        told = [f"{name}: {one.words}." for name, one in last.outcomes.items()]
        if len(told) == 1:
            told = [f"{one.words}." for one in last.outcomes.values()]
        lines = [last.words, *told] if told else [last.words, "Choose it on Project."]
        separator = "  \n" if len(told) > 1 else " "
        st.success(separator.join(map(escape_markdown, lines)), icon=":material/check_circle:")
        draw_link("pages/review/pending.py", "Review them", "checklist")


WHICH = {"all": "all cases", "reviewed": "those with an answer"}


@dataclass(frozen=True)
class Exporter:
    """Who takes a project's answers away, and from which home."""

    home: Path
    project_id: str
    person: str

    def project(self, store: Store) -> Project:
        """The project as it is now, for a lead."""
        store.projects.require(self.project_id, self.person, "lead", "export the answers of all")
        project = store.projects.get(self.project_id)
        if project is None:
            raise InputError("Expected a project that is there, found none; reload the page.")
        return project


def draw_export() -> None:
    """A button for each format; files are made when they are asked for."""
    st.subheader("Out", anchor=False)
    if not has_role("lead", "export the answers of all"):
        return
    with state.open_store() as store:
        asker = Exporter(state.home_folder(), state.get_project(store).id, state.get_person(store))
        categories = asker.project(store).categories
    which = st.segmented_control(
        "Which cases", list(WHICH), default="all", format_func=WHICH.__getitem__,
        key="exchange.which",
    ) or "all"  # fmt: skip
    files = [
        (name, FORMATS[name].words, f"{name}.{FORMATS[name].ending}") for name in WRITABLE_FORMATS
    ]
    files.append(("trajectories", "Trajectories (ReAct)", "trajectories.zip"))
    files.append(("archive", "Whole project (archive)", "project.zip"))
    with st.container(horizontal=True):
        for name, words, file_name in files:
            make, icon = partial(build_export, asker, name, which), "download"
            if name == "archive":
                icon = name
            draw_download(words, make, f"counterpoint-{file_name}", f"exchange.out.{name}", icon)
    st.caption(ABOUT_EXPORT)
    with st.expander("What each format leaves out"):
        for name in WRITABLE_FORMATS:
            st.markdown(f"- **{FORMATS[name].words}**: {FORMATS[name].leaves_out}")
    with st.expander("The labelling configuration for Label Studio"):
        st.code(build_labeling_config(categories), language="xml")


def build_export(asker: Exporter, name: str, which: str) -> bytes:
    """Return the file of that format. Raises NotAllowed: the asker is not, or no longer, a lead."""
    with open_store_in(asker.home) as store:
        project = asker.project(store)
        if name == "trajectories":
            return zip_trajectories(export_trajectories(store, project, which, balance=False))
        if name == "archive":
            write_archive(store, asker.home, project, stream := io.BytesIO())
            return stream.getvalue()
        rows = load_project_rows(store, asker.home, project, which)
    write = FORMATS[name].write
    return write(rows) if write else b""


PREVIEWED = 5
MOST_NAMED = 8
MOST_CACHED = 12  # files
MOST_PROBLEMS = 50
ImportUse = LabelUse | Literal["answers"]
WHAT: dict[ImportUse, str] = {
    "gold": "gold answers",
    "answers": "answers of a person",
    "suggestions": "suggestions of an agent",
    "cases": "cases without labels",
}
PROBLEM = "exchange.problem"
ZIP = b"PK\x03\x04"


def draw_import() -> None:
    """The uploads, what is in them, and the button."""
    st.subheader("In", anchor=False)
    if not has_role("lead", "import cases"):
        return
    uploads = st.file_uploader(
        IMPORT_FORMATS,
        key="exchange.file",
        accept_multiple_files=True,
        max_upload_size=MAX_FILE_MEGABYTES,
        help=ABOUT_IMPORT,
    )
    last: Import | None = st.session_state.get(RUNNING)
    is_over = last is not None and last.is_over
    if not uploads:
        _draw_last(last, is_over)
        return
    with state.open_store() as store:
        project, person = state.get_project(store), state.get_person(store)
        store.projects.require(project.id, person, "lead", "import cases")
    archives = [upload for upload in uploads if upload.getvalue().startswith(ZIP)]
    for number, archive in enumerate(archives):
        _draw_archive(archive, person, f"exchange.import.archive{number or ''}")
    files = [upload for upload in uploads if upload not in archives]
    if files:
        _draw_files(files, project, (id(last), is_over))
    _draw_last(last, is_over)


def _draw_archive(upload: UploadedFile, person: str, key: str) -> None:
    words = "an archive, which brings a project of its own, with files, checks and answers."
    st.markdown(f"{escape_markdown(upload.name)}: {words}")
    if not has_role("admin", "create a project", for_all=True):
        return
    draw_button(
        "Import the project", key, _begin_archive, upload.getvalue(), person,
        icon="archive", type="primary",
    )  # fmt: skip


def _draw_files(uploads: list[UploadedFile], project: Project, last: tuple[int, bool]) -> None:
    """Draw what is in each file, what its labels are, and the button that imports what is read."""
    columns = ColumnChoice()
    reads: list[tuple[str, ParsedFile]] = []
    waiting: list[str] = []
    broken: list[str] = []
    for upload in uploads:
        with st.container(border=len(uploads) > 1):
            if len(uploads) > 1:
                st.markdown(f"**{escape_markdown(upload.name)}**")
            try:
                read = _draw_file(upload, columns)
            except InputError as error:
                st.error(escape_markdown(str(error)), icon=":material/error:")
                broken.append(upload.name)
                continue
            if read is None:
                waiting.append(upload.name)
            else:
                _draw_rows(read, project, (upload.file_id, *last))
                reads.append((upload.name, read))
    what = st.segmented_control(
        "Import as", list(WHAT), default="gold", format_func=WHAT.__getitem__, key="exchange.as"
    )
    name = ""
    if what in ("answers", "suggestions"):
        words = "Whose answers" if what == "answers" else "Whose suggestions"
        key = f"exchange.{'person' if what == 'answers' else 'agent'}"
        name = st.text_input(words, key=key, max_chars=80).strip()
    is_ready = not waiting and any(read.rows for _, read in reads)
    draw_button(
        "Import", "exchange.import", _begin_rows, reads, project, what or "gold", name,
        icon="input", type="primary", disabled=not is_ready or what is None,
    )  # fmt: skip
    if waiting:
        st.caption(escape_markdown(f"Waits until the columns of {', '.join(waiting)} are chosen."))
    if broken and is_ready:
        st.caption(escape_markdown(f"Without {', '.join(broken)}, which cannot be read."))
    show_problem(PROBLEM)


MAPPABLE_FORMATS = ("jsonl", "csv")


def _draw_file(upload: UploadedFile, columns: ColumnChoice) -> ParsedFile | None:
    """Draw how a file is read; return its rows, or None while its columns are to be chosen.

    Raises InputError: it cannot be read.
    """
    names, file_id = list(FORMATS), upload.file_id
    chosen = st.selectbox(
        "Read as",
        names,
        index=names.index(_recognised(file_id, upload.name, upload)),
        format_func=lambda name: FORMATS[name].words,
        key=f"exchange.format.{file_id}",
    )
    try:
        read = _read(file_id, chosen, upload.name, upload)
    except InputError as error:
        if chosen not in MAPPABLE_FORMATS:
            raise
        read = ParsedFile((), (RowProblem(1, str(error)),))
    if chosen in MAPPABLE_FORMATS:
        is_mapped = st.toggle(
            "Choose its columns",
            value=len(read.problems) >= len(read.rows),
            key=f"exchange.mapped.{file_id}",
            help="For columns with other names, and for labels such as 0 and 1",
        )
        if is_mapped:
            table = _read_table(file_id, upload.name, upload)
            if read.problems:
                first = read.problems[0]
                st.caption(escape_markdown(f"As it is, {read.unit} {first.place}: {first.reason}"))
            mapping = columns.draw(table)
            return _map(file_id, repr(mapping), table, mapping) if mapping else None
        return _read(file_id, chosen, upload.name, upload)
    if chosen == "ragtruth":
        sources = st.file_uploader(
            "Its sources (source_info.jsonl), if you have them",
            key=f"exchange.sources.{file_id}",
            max_upload_size=MAX_FILE_MEGABYTES,
        )
        read = join_sources(read, sources.getvalue(), chosen) if sources else read
    return read


def _draw_rows(read: ParsedFile, project: Project, seen: tuple[object, ...]) -> None:
    problems = _draw_counts(read, project, seen)
    if read.rows:
        draw_table([_cells(row) for row in read.rows[:PREVIEWED]])
    if len(read.rows) > PREVIEWED:
        st.caption(f"The first {PREVIEWED} of them.")
    people = dict.fromkeys(one.author for row in read.rows for one in row.people)
    if people:
        more = f" and {len(people) - MOST_NAMED} more" if len(people) > MOST_NAMED else ""
        words = f"Answers of {', '.join(list(people)[:MOST_NAMED])}{more}"
        st.caption(escape_markdown(f"{words}: each keeps the name, with “(imported)” after it."))
    noticed = [RowProblem(row.place, notice) for row in read.rows for notice in row.notices]
    _draw_problems(noticed, read.unit, "read with a change or doubt")
    _draw_problems([*read.problems, *problems], read.unit, "left out, with the reasons")


@st.cache_resource(max_entries=MOST_CACHED, show_spinner=False)
def _recognised(file_id: str, name: str, _upload: UploadedFile) -> str:
    return detect_format(name, _upload.getvalue())


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the file…")
def _read(file_id: str, chosen: str, name: str, _upload: UploadedFile) -> ParsedFile:
    """What the file holds, read once and not at each rerun."""
    return FORMATS[chosen].read(name, _upload.getvalue())


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the file…")
def _read_table(file_id: str, name: str, _upload: UploadedFile) -> FileTable:
    return read_file_table(name, _upload.getvalue())


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the file…")
def _map(file_id: str, key: str, _table: FileTable, _mapping: ColumnMapping) -> ParsedFile:
    """The rows as the mapping reads them, read once for each mapping (`key`)."""
    return map_rows(_table, _mapping)


def _draw_counts(read: ParsedFile, project: Project, seen: tuple[object, ...]) -> list[RowProblem]:
    """What would come in, looked up again when that may change; rows that name another case."""
    key = (*seen, id(read), len(read.rows), project.id)
    foreseen = st.session_state.setdefault("exchange.foreseen", {})
    kept = foreseen.get(seen[0])
    if kept is None or kept[0] != key:
        with state.open_store() as store:
            kept = foreseen[seen[0]] = (key, preview_import(store, read, project))
    new, known, problems = kept[1]
    bad = len(read.problems) + len(problems)
    left = f", {bad} cannot be read" if bad else ""
    rows = format_count(len(read.rows) + len(read.problems), "row")
    st.markdown(f"**{rows}**: {new} new, {known} known{left}.")
    return list(problems)


def _cells(row: ExchangeRow) -> dict[str, Any]:
    truth = row.truth
    return {
        "Id": clip_text(row.id, 40),
        "Response": clip_text(row.response, 200),
        "Question": clip_text(row.question, 100),
        "Label": LABEL_WORDS[truth.label] if truth.label else "–",
        "Marked": "; ".join(clip_text(span.text, 60) for span in truth.spans),
        "Answers of people": len(row.people),
        "Documents": len(row.documents),
    }


def _draw_problems(problems: list[RowProblem], unit: str, title: str) -> None:
    if not problems:
        return
    with st.expander(f"{len(problems)} {title}", expanded=True):
        first = sorted(problems, key=lambda one: one.place)[:MOST_PROBLEMS]
        draw_table([{unit.capitalize(): one.place, "Why": one.reason} for one in first])
        if len(problems) > MOST_PROBLEMS:
            st.caption(f"The first {MOST_PROBLEMS} of them.")


def _begin_rows(
    reads: list[tuple[str, ParsedFile]], project: Project, what: ImportUse, name: str
) -> None:
    """Bring the rows in, file by file; their documents are read afterwards."""
    home, prereading = state.home_folder(), state.get_background_reader()

    def work(one: Import) -> None:
        one.total = sum(len(read.rows) for _, read in files)
        with open_store_in(home) as store:
            for file_name, read in files:
                before = one.done

                def progress(done: int, total: int, before: int = before) -> None:
                    one.done = before + done

                order = ImportRequest(project, person, time.time(), file_name, labels, agent)
                outcome = import_rows(store, home, read, order, progress)
                while file_name in one.outcomes:
                    file_name += " (again)"
                one.outcomes[file_name] = outcome
            into = store.projects.get(project.id)
            one.words = f"Imported into “{into.name}”." if into else "Imported."
        for outcome in one.outcomes.values():
            for source, its_name in outcome.sources.items():
                prereading.submit(source, its_name)

    with store_problem(PROBLEM):
        with state.open_store() as store:
            person = state.require_role(store, project.id, "lead", "import cases")
        labels: LabelUse = "gold" if what == "answers" else what
        agent, files = name, reads
        if what == "answers":
            agent = ""
            files = [(file, attribute_labels(read, name)) for file, read in reads]
        _start(work)


def _begin_archive(data: bytes, by: str) -> None:
    home = state.home_folder()

    def work(one: Import) -> None:
        with open_store_in(home) as store:
            one.words = import_archive(store, home, io.BytesIO(data), by, time.time()).words

    _start(work)
