"""Import / export: a file is recognised, shown, then brought in; cases go out in each format.

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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from components.app import state
from components.widgets.controls import (
    draw_button,
    draw_download,
    draw_link,
    draw_table,
    show_problem,
    store_problem,
)
from components.widgets.wording import LABEL_WORDS, clip_text, escape_markdown
from core.documents.segmentation import extract_terms
from core.exchange.annotation_tools import build_labeling_config
from core.exchange.archive import import_archive, write_archive
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
    """One file on its way in; the page reads it, its thread writes it."""

    done: int = 0
    total: int = 0
    is_over: bool = False
    outcome: ImportOutcome | None = None
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
        told = f"{last.outcome.words}." if last.outcome is not None else "Choose it on Project."
        st.success(escape_markdown(f"{last.words} {told}"), icon=":material/check_circle:")
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
            make, icon = partial(_file_of, asker, name, which), "download"
            if name == "archive":
                icon = name
            draw_download(words, make, f"counterpoint-{file_name}", f"exchange.out.{name}", icon)
    st.caption(ABOUT_EXPORT)
    with st.expander("What each format leaves out"):
        for name in WRITABLE_FORMATS:
            st.markdown(f"- **{FORMATS[name].words}**: {FORMATS[name].leaves_out}")
    with st.expander("The labelling configuration for Label Studio"):
        st.code(build_labeling_config(categories), language="xml")


def _file_of(asker: Exporter, name: str, which: str) -> bytes:
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
MOST_PROBLEMS = 50
WHAT: dict[LabelUse, str] = {
    "gold": "gold answers",
    "suggestions": "suggestions of an agent",
    "cases": "cases without labels",
}
PROBLEM = "exchange.problem"
ZIP = b"PK\x03\x04"


def draw_import() -> None:
    """The upload, what is in it, and the button."""
    st.subheader("In", anchor=False)
    upload = st.file_uploader(
        IMPORT_FORMATS,
        key="exchange.file",
        max_upload_size=MAX_FILE_MEGABYTES,
        help=ABOUT_IMPORT,
    )
    last: Import | None = st.session_state.get(RUNNING)
    is_over = last is not None and last.is_over
    if upload is None:
        _draw_last(last, is_over)
        return
    with state.open_store() as store:
        project, person = state.get_project(store), state.get_person(store)
        store.projects.require(project.id, person, "lead", "import cases")
    if upload.getvalue().startswith(ZIP):
        _draw_archive(upload, person)
    else:
        _draw_rows(upload, project, (id(last), is_over))
    _draw_last(last, is_over)


def _draw_archive(upload: UploadedFile, person: str) -> None:
    st.markdown("An archive: it brings a project of its own, with files, checks and answers.")
    try:
        with state.open_store() as store:
            store.projects.require_for_all(person, "admin", "create a project")
    except ReviewError as error:
        st.info(escape_markdown(str(error)), icon=":material/lock:")
        return
    draw_button(
        "Import the project", "exchange.import.archive", _begin_archive, upload.getvalue(), person,
        icon="archive", type="primary",
    )  # fmt: skip


def _draw_rows(upload: UploadedFile, project: Project, last: tuple[int, bool]) -> None:
    names = list(FORMATS)
    try:
        found = _recognised(upload.file_id, upload.name, upload)
        chosen = st.selectbox(
            "Read as",
            names,
            index=names.index(found),
            format_func=lambda name: FORMATS[name].words,
            key=f"exchange.format.{upload.file_id}",
        )
        read = _read(upload.file_id, chosen, upload.name, upload)
        if chosen == "ragtruth":
            sources = st.file_uploader(
                "Its sources (source_info.jsonl), if you have them",
                key="exchange.sources",
                max_upload_size=MAX_FILE_MEGABYTES,
            )
            read = join_sources(read, sources.getvalue(), chosen) if sources else read
    except InputError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")
        return
    problems = _draw_counts(read, project, (upload.file_id, chosen, *last))
    if read.rows:
        draw_table([_cells(row) for row in read.rows[:PREVIEWED]])
    if len(read.rows) > PREVIEWED:
        st.caption(f"The first {PREVIEWED} of them.")
    _draw_problems([*read.problems, *problems], read.unit)
    what = st.segmented_control(
        "Import as", list(WHAT), default="gold", format_func=WHAT.__getitem__, key="exchange.as"
    )
    agent = ""
    if what == "suggestions":
        agent = st.text_input("Whose suggestions", key="exchange.agent", max_chars=80)
    draw_button(
        "Import", "exchange.import", _begin_rows,
        read, project, upload.name, what or "gold", agent.strip(),
        icon="input", type="primary", disabled=not read.rows or what is None,
    )  # fmt: skip
    show_problem(PROBLEM)


@st.cache_resource(max_entries=4, show_spinner=False)
def _recognised(file_id: str, name: str, _upload: UploadedFile) -> str:
    return detect_format(name, _upload.getvalue())


@st.cache_resource(max_entries=4, show_spinner="Reading the file…")
def _read(file_id: str, chosen: str, name: str, _upload: UploadedFile) -> ParsedFile:
    """What the file holds, read once and not at each rerun."""
    return FORMATS[chosen].read(name, _upload.getvalue())


def _draw_counts(read: ParsedFile, project: Project, seen: tuple[object, ...]) -> list[RowProblem]:
    """What would come in, looked up again when that may change; rows that name another case."""
    key = (*seen, len(read.rows), project.id)
    kept = st.session_state.get("exchange.foreseen")
    if kept is None or kept[0] != key:
        with state.open_store() as store:
            kept = (key, preview_import(store, read, project))
        st.session_state["exchange.foreseen"] = kept
    new, known, problems = kept[1]
    bad = len(read.problems) + len(problems)
    left = f", {bad} cannot be read" if bad else ""
    st.markdown(f"**{len(read.rows) + len(read.problems)} rows**: {new} new, {known} known{left}.")
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


def _draw_problems(problems: list[RowProblem], unit: str) -> None:
    if not problems:
        return
    with st.expander(f"{len(problems)} left out, with the reasons", expanded=True):
        first = sorted(problems, key=lambda one: one.place)[:MOST_PROBLEMS]
        draw_table([{unit.capitalize(): one.place, "Why": one.reason} for one in first])
        if len(problems) > MOST_PROBLEMS:
            st.caption(f"The first {MOST_PROBLEMS} of them.")


def _begin_rows(read: ParsedFile, project: Project, name: str, what: LabelUse, agent: str) -> None:
    """Bring the rows in; their documents are read afterwards."""
    home, prereading = state.home_folder(), state.get_background_reader()

    def work(one: Import) -> None:
        one.total = len(read.rows)

        def progress(done: int, total: int) -> None:
            one.done, one.total = done, total

        with open_store_in(home) as store:
            one.outcome = import_rows(store, home, read, order, progress)
            into = store.projects.get(project.id)
            one.words = f"Imported into “{into.name}”." if into else "Imported."
        for source, its_name in one.outcome.sources.items():
            prereading.submit(source, its_name)

    with store_problem(PROBLEM):
        with state.open_store() as store:
            person = state.require_role(store, project.id, "lead", "import cases")
        order = ImportRequest(project, person, time.time(), name, what, agent)
        _start(work)


def _begin_archive(data: bytes, by: str) -> None:
    home = state.home_folder()

    def work(one: Import) -> None:
        with open_store_in(home) as store:
            one.words = import_archive(store, home, io.BytesIO(data), by, time.time()).words

    _start(work)
