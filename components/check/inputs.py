"""Files into the library and sources into a case, with what came of each file in plain words."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components.app import state
from components.widgets.wording import escaped, size
from core.documents.library import store_file
from core.documents.readers import endings
from core.errors import InputError, ReviewError
from core.records import LibraryEntry

STATUS_ICONS = {
    "waiting": ":material/hourglass_empty:",
    "reading": ":material/hourglass_top:",
    "ready": ":material/check_circle:",
    "refused": ":material/error:",
}
POLL_SECONDS = 0.5


def draw_uploader(key: str, label: str = "Documents and images", choice: str = "") -> list[str]:
    """The uploader; returns ids of what it holds, each stored and being read already.

    A file that is refused is named with what to do; the others are used. Streamlit empties the
    uploader when the page is left: what it held then is chosen in the widget with the key
    `choice`, which is drawn after it.
    """
    limit = _limit()
    uploads = st.file_uploader(
        label,
        key=key,
        accept_multiple_files=True,
        max_upload_size=limit,
        help=f"{', '.join(endings())}; up to {limit} MB each. They are kept on this computer; a "
        "roster of language models sends the passages and images that it uses to its provider.",
        on_change=_mark_changed,
        args=(key,),
    )
    ids, refusals = _taken(key)
    for words in refusals:
        st.error(escaped(words), icon=":material/error:")
    is_by_hand = bool(st.session_state.pop(f"{key}.changed", False))
    held: list[str] = st.session_state.get(f"{key}.held", [])
    if choice and held and not uploads and not is_by_hand:
        chosen: list[str] = st.session_state.get(choice) or []
        st.session_state[choice] = list(dict.fromkeys([*chosen, *held]))
    st.session_state[f"{key}.held"] = list(dict.fromkeys(ids))
    return list(dict.fromkeys(ids))


def held_uploads(key: str) -> list[str]:
    """For callbacks: ids of what the uploader holds by now, files that came with the click too.

    Raises:
        InputError: one of those was refused, and nobody can have read that yet.
    """
    known = set(st.session_state.get(f"{key}.known", {}).values())
    ids, refusals = _taken(key)
    if any(f"!{words}" not in known for words in refusals):
        raise InputError(
            "A file that was just added was refused, so nothing was started; what is wrong stands "
            "below the files. Start again to go on without it."
        )
    return ids


def _taken(key: str) -> tuple[list[str], list[str]]:
    """(ids of the uploads, why the others were refused); those that are new are stored."""
    known: dict[str, str] = st.session_state.setdefault(f"{key}.known", {})
    found: list[str] = []
    for upload in st.session_state.get(key) or []:
        if upload.file_id not in known:
            known[upload.file_id] = _take(upload.name, upload.getvalue())
        found.append(known[upload.file_id])
    refusals = [words[1:] for words in found if words.startswith("!")]
    return [i for i in found if not i.startswith("!")], refusals


def _mark_changed(key: str) -> None:
    st.session_state[f"{key}.changed"] = True


def _limit() -> int:
    with state.open_store() as store:
        return store.projects.settings().file_megabytes


def _take(name: str, data: bytes) -> str:
    """Store one upload; its id, or "!" and why it was refused."""
    with state.open_store() as store:
        project = state.project(store)
        settings = store.projects.settings()
        try:
            person = state.require(store, project.id, "annotator", "add files")
            entry = store_file(
                store, state.home(), project.id, name, data, person, time.time(), settings
            )
        except ReviewError as error:
            return f"!{error}"
    state.prereading().submit(entry.id, entry.name)
    return entry.id


def draw_sources(ids: Sequence[str]) -> None:
    """What came of each chosen source; redraws itself while any is being read."""
    if not ids:
        return
    entries = _entries(ids)
    if read_on(entries):
        _poll_sources(tuple(ids))
    else:
        _draw_entries(entries)


def draw_refused(ids: Sequence[str]) -> None:
    """What is wrong with those of the sources that cannot be read."""
    _draw_entries([entry for entry in _entries(ids) if entry.status == "refused"])


def _entries(ids: Sequence[str]) -> list[LibraryEntry]:
    """The sources as the library has them; those that it has not are left out."""
    with state.open_store() as store:
        project = state.project(store)
        return [e for e in (store.library.get(project.id, i) for i in ids) if e]


@st.fragment(run_every=POLL_SECONDS)
def _poll_sources(ids: tuple[str, ...]) -> None:
    entries = _entries(ids)
    _draw_entries(entries)
    if not read_on(entries):
        st.rerun()


def read_on(entries: Sequence[LibraryEntry]) -> bool:
    """True while any is being read; those that nobody reads any more are taken up again."""
    waiting = [entry for entry in entries if entry.status in ("waiting", "reading")]
    for entry in waiting:
        state.prereading().submit(entry.id, entry.name)
    return bool(waiting)


def _draw_entries(entries: Sequence[LibraryEntry]) -> None:
    for entry in entries:
        if entry.status == "refused":
            st.error(escaped(entry.problem), icon=":material/error:")
            continue
        st.markdown(f"{STATUS_ICONS[entry.status]} {_entry_words(entry)}")


def _entry_words(entry: LibraryEntry) -> str:
    name = f"**{escaped(entry.name)}**"
    facts = escaped(entry_facts(entry))
    if entry.status != "ready":
        note = state.prereading().note(entry.id) or "waiting to be read"
        return f"{name} · {size(entry.size)} · {escaped(note)}"
    return " · ".join(part for part in (name, facts) if part)


def entry_facts(entry: LibraryEntry) -> str:
    """Pages, OCR and characters of a file that was read."""
    parts: list[str] = []
    if entry.kind == "image":
        parts.append("image, text read" if entry.characters else "image, no text in it")
    elif entry.pages:
        parts.append(f"{entry.pages} page{'s' if entry.pages > 1 else ''}")
    if entry.ocr_pages and entry.kind != "image":
        shown = ", ".join(str(page) for page in entry.ocr_pages[:6])
        more = "…" if len(entry.ocr_pages) > 6 else ""
        parts.append(f"no text on p. {shown}{more}: read by OCR")
    if entry.characters:
        parts.append(f"{entry.characters:,} characters")
    parts += list(entry.notes)
    return " · ".join(parts)


def split_sources(
    ids: Sequence[str], *, with_refused: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(documents, images) of the chosen sources, by default without those that were refused."""
    entries = _entries(ids)
    usable = [entry for entry in entries if with_refused or entry.status != "refused"]
    documents = tuple(e.id for e in usable if e.kind != "image")
    return documents, tuple(e.id for e in usable if e.kind == "image")
