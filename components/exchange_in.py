"""In: a file is recognised, shown before anything is stored, and brought in."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from components import state
from components.import_outcome import RUNNING, current, draw_last
from components.importing import start_archive, start_rows
from components.words import LABEL_WORDS, clipped, escaped
from core.errors import InputError, ReviewError
from core.exchange.incoming import foreseen
from core.exchange.order import As, Order
from core.formats.packed import MOST_MEGABYTES
from core.formats.registry import FORMATS, joined_sources, recognised
from core.formats.row import ExchangeRow, Problem, Read
from core.records import Project

PREVIEWED = 5
MOST_PROBLEMS = 50
WHAT: dict[As, str] = {
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
        "JSONL, CSV, Label Studio, Argilla, Mu-SHROOM, RAGTruth, FaithBench, HaluQuestQA, XSum, "
        "recorded debates (MAD), or an archive",
        key="exchange.file",
        max_upload_size=MOST_MEGABYTES,
        help="Plain or gzipped. Nothing is stored before you say so; the same file again changes "
        "nothing.",
    )
    if upload is None:
        draw_last()
        return
    with state.open_store() as store:
        project, person = state.project(store), state.person(store)
        store.projects.require(project.id, person, "lead", "import cases")
    if upload.getvalue().startswith(ZIP):
        _draw_archive(upload, person)
    else:
        _draw_rows(upload, project)
    draw_last()


def _draw_archive(upload: UploadedFile, person: str) -> None:
    st.markdown("An archive: it brings a project of its own, with files, checks and answers.")
    try:
        with state.open_store() as store:
            store.projects.require_for_all(person, "admin", "begin a project")
    except ReviewError as error:
        st.info(escaped(str(error)), icon=":material/lock:")
        return
    st.button(
        "Import the project",
        key="exchange.import.archive",
        type="primary",
        icon=":material/archive:",
        on_click=_begin_archive,
        args=(upload.getvalue(), person),
    )


def _draw_rows(upload: UploadedFile, project: Project) -> None:
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
        read = _with_second_file(read, chosen)
    except InputError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    problems = _draw_counts(read, project, f"{upload.file_id} {chosen}")
    _draw_preview(read)
    _draw_problems([*read.problems, *problems], read.unit)
    what = st.segmented_control(
        "Import as",
        list(WHAT),
        default="gold",
        format_func=lambda name: WHAT[name],
        key="exchange.as",
    )
    agent = ""
    if what == "suggestions":
        agent = st.text_input("Whose suggestions", key="exchange.agent", max_chars=80)
    st.button(
        "Import",
        key="exchange.import",
        type="primary",
        icon=":material/input:",
        disabled=not read.rows or what is None,
        on_click=_begin_rows,
        args=(read, project, upload.name, what or "gold", agent.strip()),
    )
    if problem := st.session_state.pop(PROBLEM, ""):
        st.error(escaped(problem), icon=":material/error:")


@st.cache_resource(max_entries=4, show_spinner=False)
def _recognised(file_id: str, name: str, _upload: UploadedFile) -> str:
    return recognised(name, _upload.getvalue())


@st.cache_resource(max_entries=4, show_spinner="Reading the file…")
def _read(file_id: str, chosen: str, name: str, _upload: UploadedFile) -> Read:
    """What the file holds, read once and not at each rerun."""
    return FORMATS[chosen].read(name, _upload.getvalue())


def _with_second_file(read: Read, chosen: str) -> Read:
    if chosen != "ragtruth":
        return read
    sources = st.file_uploader(
        "Its sources (source_info.jsonl), if you have them",
        key="exchange.sources",
        max_upload_size=MOST_MEGABYTES,
    )
    return read if sources is None else joined_sources(read, sources.getvalue(), chosen)


def _draw_counts(read: Read, project: Project, file: str) -> list[Problem]:
    """What would come in; rows that name another case are given back.

    Looked up again only when another file, or an import that ended, can have changed it.
    """
    last = current()
    key = (file, len(read.rows), project.id, id(last), last is not None and last.is_over)
    kept = st.session_state.get("exchange.foreseen")
    if kept is None or kept[0] != key:
        with state.open_store() as store:
            kept = (key, foreseen(store, read, project))
        st.session_state["exchange.foreseen"] = kept
    new, known, problems = kept[1]
    bad = len(read.problems) + len(problems)
    left = f", {bad} cannot be read" if bad else ""
    st.markdown(f"**{len(read.rows) + len(read.problems)} rows**: {new} new, {known} known{left}.")
    return list(problems)


def _draw_preview(read: Read) -> None:
    if not read.rows:
        return
    st.dataframe([_cells(row) for row in read.rows[:PREVIEWED]], hide_index=True)
    if len(read.rows) > PREVIEWED:
        st.caption(f"The first {PREVIEWED} of them.")


def _cells(row: ExchangeRow) -> dict[str, Any]:
    answer = row.answer
    return {
        "Id": clipped(row.id, 40),
        "Response": clipped(row.response, 200),
        "Question": clipped(row.question, 100),
        "Label": LABEL_WORDS[answer.label] if answer else "–",
        "Marked": "; ".join(clipped(span.text, 60) for span in answer.spans) if answer else "",
        "Answers of people": len(row.people),
        "Documents": len(row.documents),
    }


def _draw_problems(problems: list[Problem], unit: str) -> None:
    if not problems:
        return
    with st.expander(f"{len(problems)} left out, with the reasons", expanded=True):
        st.dataframe(
            [
                {unit.capitalize(): one.place, "Why": one.reason}
                for one in sorted(problems, key=lambda one: one.place)[:MOST_PROBLEMS]
            ],
            hide_index=True,
        )
        if len(problems) > MOST_PROBLEMS:
            st.caption(f"The first {MOST_PROBLEMS} of them.")


def _begin_rows(read: Read, project: Project, name: str, what: As, agent: str) -> None:
    try:
        with state.open_store() as store:
            person = state.require(store, project.id, "lead", "import cases")
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)
        return
    order = Order(project, person, time.time(), name, what, agent)
    st.session_state[RUNNING] = start_rows(read, order)


def _begin_archive(data: bytes, by: str) -> None:
    st.session_state[RUNNING] = start_archive(data, by)
