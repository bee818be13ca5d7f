"""New check and Check again: draft, sources, plan, expected cost, prepared cases, start.

A text that was not checked is stored in the home, so that no reload loses it, when its field is
left: storing each word would cost a rerun while a fresh server loads its engine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.check.roster_choice import (
    build_plan,
    describe_expectation,
    describe_plan,
    draw_option_fields,
    draw_protocol_choice,
    draw_roster_choice,
    forget_options,
    get_default_options,
    get_default_protocol,
    load_library_entries,
    load_roster_config,
    read_options,
    save_protocol_choice,
    uses_own_servers_only,
)
from components.widgets import drafts
from components.widgets.controls import draw_button, draw_link, show_problem, store_problem
from components.widgets.wording import (
    clip_text,
    escape_markdown,
    format_bytes,
    format_count,
    format_rows,
    format_time,
)
from core.baseline.examples import PREPARED_CASES, PreparedCase
from core.debate.protocols import has_turns, list_protocols, require_protocol
from core.documents.library import store_file
from core.documents.readers import list_endings
from core.documents.segmentation import describe_language_gap, detect_prose_language
from core.pipeline.run_factory import require_keys
from core.pipeline.sample_project import store_prepared_case
from core.pipeline.single_check import CaseDraft, store_case
from core.runtime.config import Settings
from core.runtime.errors import InputError, ReviewError
from core.schema.events import ProblemMet
from core.schema.records import Case, LibraryEntry, Plan, Project, Run
from core.schema.rosters import BUILT_IN_ROSTER, DEFAULT_OPTIONS

STATUS_ICONS = {
    "waiting": ":material/hourglass_empty:",
    "reading": ":material/hourglass_top:",
    "ready": ":material/check_circle:",
    "refused": ":material/error:",
}
POLL_SECONDS = 0.5
MAX_LANGUAGE_SAMPLE = 4000  # characters
PREPARED_CHARACTERS = 48  # of a prepared case's text, so that all of them are seen at once
MAX_NAMED_SOURCES, NAME_CHARACTERS = 5, 40  # beside the button
PROJECT_FIELDS = ("role", "instruction", "roster", "protocol", "checked")


class UploadResult(NamedTuple):
    """The id of a stored file, or why it was refused."""

    source_id: str = ""
    refusal: str = ""


def draw_source_fields(page: str, label: str) -> list[str]:
    """Draw the uploader, the library choice and each source's state; return all ids."""
    uploaded = draw_uploader(f"{page}.upload", label, choice=f"{page}.library")
    sources = list(dict.fromkeys([*uploaded, *draw_library_choice(f"{page}.library")]))
    draw_sources(sources)
    draw_language_gaps([(0, str(st.session_state.get(f"{page}.response") or ""), sources)], page)
    return sources


def draw_language_gaps(texts: Sequence[tuple[int, str, Sequence[str]]], page: str) -> None:
    """Warn where text and sources differ in language, unless language models will read them.

    A text is given as (row of a table or 0, text, ids of its sources).
    """
    if (st.session_state.get(f"{page}.roster") or get_project_roster()) != BUILT_IN_ROSTER:
        return
    with state.open_store() as store:
        entries = load_library_entries(store, list({i for _, _, ids in texts for i in ids}))
        languages = {
            entry.id: (entry.name, detect_prose_language(sample, entry.language))
            for entry in entries
            if (sample := store.readings.text(entry.id, 0, MAX_LANGUAGE_SAMPLE))
        }
    gaps: dict[str, list[int]] = {}
    for row, text, ids in texts:
        sources = [languages[i] for i in ids if i in languages]
        if sources and (gap := describe_language_gap(detect_prose_language(text), sources)):
            gaps.setdefault(gap, []).append(row)
    for gap, rows in gaps.items():
        lead = f"{format_rows(rows)}: " if any(rows) else ""
        st.warning(escape_markdown(f"{lead}{gap}"), icon=":material/translate:")


def draw_uploader(key: str, label: str, choice: str = "") -> list[str]:
    """Draw the uploader; return ids of its files, each stored and being read already.

    A refused file is named with what to do; the others are used. Streamlit empties the uploader
    when the page is left: its files are then selected in the widget `choice`, drawn after it.
    """
    with state.open_store() as store:
        limit = store.projects.settings().file_megabytes
    uploads = st.file_uploader(
        label,
        key=key,
        accept_multiple_files=True,
        max_upload_size=limit,
        help=f"{', '.join(list_endings())}; up to {limit} MB each. They are kept on this computer; "
        "language models send the passages and images that they use to their provider.",
        on_change=lambda: st.session_state.update({f"{key}.changed": True}),
    )
    ids, refusals = _store_uploads(key)
    for refusal in refusals:
        st.error(escape_markdown(refusal), icon=":material/error:")
    is_by_hand = bool(st.session_state.pop(f"{key}.changed", False))
    previous: list[str] = st.session_state.get(f"{key}.held", [])
    if choice and previous and not uploads and not is_by_hand:
        selected: list[str] = st.session_state.get(choice) or []
        st.session_state[choice] = list(dict.fromkeys([*selected, *previous]))
    st.session_state[f"{key}.held"] = list(dict.fromkeys(ids))
    return list(dict.fromkeys(ids))


def list_held_uploads(key: str) -> list[str]:
    """Return ids of all uploads, for callbacks.

    Raises:
        InputError: a file was refused and the person has not seen why.
    """
    known: dict[str, UploadResult] = st.session_state.get(f"{key}.known", {})
    shown = {result.refusal for result in known.values()}
    ids, refusals = _store_uploads(key)
    if any(refusal not in shown for refusal in refusals):
        raise InputError(
            "A file that you just added was refused, so nothing was started; the reason is below "
            "the files. Start again to continue without it."
        )
    return ids


def list_unread(page: str) -> list[ProblemMet]:
    """Return, for a run's record, the files on this page that could not be read."""
    key = f"{page}.upload"
    ids = [*_store_uploads(key)[0], *(st.session_state.get(f"{page}.library") or [])]
    refused = {e.name: e.problem for e in _load_entries(ids) if e.status == "refused"}
    for upload in st.session_state.get(key) or []:
        result: UploadResult = st.session_state[f"{key}.known"][upload.file_id]
        refused |= {upload.name: result.refusal} if result.refusal else {}
    return [ProblemMet(time.time(), "reading", problem, name) for name, problem in refused.items()]


def _store_uploads(key: str) -> tuple[list[str], list[str]]:
    """Store new uploads; return (ids of the stored files, why the others were refused)."""
    known: dict[str, UploadResult] = st.session_state.setdefault(f"{key}.known", {})
    results: list[UploadResult] = []
    for upload in st.session_state.get(key) or []:
        if upload.file_id not in known:
            known[upload.file_id] = _store_upload(upload.name, upload.getvalue())
        results.append(known[upload.file_id])
    return [r.source_id for r in results if r.source_id], [r.refusal for r in results if r.refusal]


def _store_upload(name: str, data: bytes) -> UploadResult:
    with state.open_store() as store:
        project = state.get_project(store)
        settings = store.projects.settings()
        try:
            person = state.require_role(store, project.id, "annotator", "add files")
            entry = store_file(
                store, state.home_folder(), project.id, name, data, person, time.time(), settings
            )
        except ReviewError as error:
            return UploadResult(refusal=str(error))
    state.get_background_reader().submit(entry.id, entry.name)
    return UploadResult(entry.id)


def draw_sources(ids: Sequence[str]) -> None:
    """Draw the state of each chosen source, polling while any is being read."""
    if not ids:
        return
    entries = _load_entries(ids)
    if _keep_reading(entries):
        _poll_sources(tuple(ids))
    else:
        _draw_entries(entries)


def _load_entries(ids: Sequence[str]) -> list[LibraryEntry]:
    with state.open_store() as store:
        return load_library_entries(store, ids)


@st.fragment(run_every=POLL_SECONDS)
def _poll_sources(ids: tuple[str, ...]) -> None:
    entries = _load_entries(ids)
    _draw_entries(entries)
    if not _keep_reading(entries):
        st.rerun()


def _keep_reading(entries: Sequence[LibraryEntry]) -> bool:
    """Return True while any is being read; resubmit those whose reader is gone."""
    waiting = [entry for entry in entries if entry.status in ("waiting", "reading")]
    for entry in waiting:
        state.get_background_reader().submit(entry.id, entry.name)
    return bool(waiting)


def _draw_entries(entries: Sequence[LibraryEntry]) -> None:
    for entry in entries:
        if entry.status == "refused":
            st.error(escape_markdown(entry.problem), icon=":material/error:")
            continue
        if entry.status == "ready":
            facts = [describe_entry(entry)]
        else:
            note = state.get_background_reader().note(entry.id) or "waiting to be read"
            facts = [format_bytes(entry.size), note]
        words = " · ".join(
            [f"**{escape_markdown(entry.name)}**", *map(escape_markdown, filter(None, facts))]
        )
        st.markdown(f"{STATUS_ICONS[entry.status]} {words}")


def describe_entry(entry: LibraryEntry) -> str:
    """Return pages, OCR and characters of a file that was read."""
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
    """Return (documents, images) of the sources, by default without refused ones."""
    usable = [e for e in _load_entries(ids) if with_refused or e.status != "refused"]
    documents = tuple(e.id for e in usable if e.kind != "image")
    return documents, tuple(e.id for e in usable if e.kind == "image")


def draw_check_again(run: Run, case: Case) -> None:
    """Draw links that compare with other runs of the case, and the form to check again."""
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        children = store.runs.children(run.id, time.time(), lease)
        names = {
            i: store.library.name_of(case.project_id, i) for i in (*case.documents, *case.images)
        }
        available = [i for i in names if store.library.get(case.project_id, i)]
    pairs = [("the previous check", run.parent_id, run.id)] if run.parent_id else []
    pairs += [
        (f"the check of {format_time(child.started_at)}", run.id, child.id) for child in children
    ]
    st.subheader("Check again", anchor=False)
    page = "pages/check/compare.py"
    for words, before, after in pairs:
        draw_link(page, f"Compare with {words}", "compare_arrows", before=before, after=after)
    draw_link(page, "Compare ways to check it", "compare", case=case.id)
    if not has_role("annotator", "check again", project_id=case.project_id):
        return
    key = f"run.{run.id}.again"
    _draw_source_choice(names, available, key)
    draw_button(
        "Check again",
        f"{key}.go",
        _check_again,
        run,
        case,
        key,
        icon="refresh",
        shortcut="Ctrl+Shift+Enter",
    )
    target = st.session_state.pop(f"{key}.started", None)
    show_problem(f"{key}.problem")
    if target:
        st.switch_page("pages/check/run.py", query_params={"run": target})


def _draw_source_choice(names: dict[str, str], available: list[str], key: str) -> None:
    """Draw which sources stay, and new ones; unreadable ones are named, or counted if nameless."""
    with st.expander("Add evidence or leave some out", icon=":material/post_add:"):
        st.multiselect(
            "Sources of this case",
            options=available,
            default=available,
            format_func=names.__getitem__,
            key=f"{key}.kept",
        )
        draw_sources(draw_uploader(f"{key}.upload", "More documents or images"))
    missing = [name for i, name in names.items() if i not in available]
    if missing:
        listed = [name for name in missing if name]
        nameless = len(missing) - len(listed)
        if nameless:
            is_one = nameless == 1
            listed.append(
                "a file that is not here" if is_one else f"{nameless} files that are not here"
            )
        words = f"Not in the library, so left out: {escape_markdown(', '.join(listed))}."
        st.warning(words, icon=":material/folder_off:")


def _check_again(run: Run, case: Case, key: str) -> None:
    """Check the same case, or a new one with other sources; unreadable files are tried again."""
    with store_problem(f"{key}.problem"):
        chosen: list[str] = st.session_state.get(f"{key}.kept") or []
        sources = [*chosen, *list_held_uploads(f"{key}.upload")]
        documents, images = split_sources(list(dict.fromkeys(sources)), with_refused=True)
        with state.open_store() as store, store.writing():
            person = state.require_role(store, case.project_id, "annotator", "check again")
            checked = case
            if set(documents) != set(case.documents) or set(images) != set(case.images):
                project = store.projects.get(case.project_id) or state.get_project(store)
                draft = CaseDraft(
                    case.response, case.question, documents, images, case.role, case.instruction
                )
                checked = store_case(store, project, draft, person, time.time())
            plan = replace(run.plan, classifier="", reader="")
        st.session_state[f"{key}.started"] = state.get_jobs().start(
            checked,
            plan,
            parent_id=run.id,
            unread=list_unread(key),
            by=person,
            typed=state.get_typed_keys(),
        )


def restore_draft() -> None:
    """Restore the draft of the current project; call it before the fields are drawn."""
    draft = drafts.restore_page_draft(drafts.NEW_CHECK)
    if draft is None:
        return
    for name in PROJECT_FIELDS:  # another project's values do not apply here
        st.session_state.pop(f"new.{name}", None)
    forget_options(drafts.NEW_CHECK)
    for name in drafts.CHECK_TEXTS:
        st.session_state[f"new.{name}"] = str(draft.get(name) or "")
    st.session_state["new.library"] = drafts.list_draft_texts(draft, "sources")


def end_draft() -> None:
    """Mark the current texts as checked and delete the draft."""
    st.session_state["new.checked"] = drafts.list_check_texts()
    drafts.save_page_draft(drafts.NEW_CHECK, {})


def draw_library_choice(key: str) -> list[str]:
    """Draw and return the sources chosen from the library; nothing if it is empty."""
    with state.open_store() as store:
        project = state.get_project(store)
        entries = [e for e in store.library.all(project.id) if e.status != "refused"]
    if not entries:
        return []
    names = {entry.id: entry.name for entry in entries}
    if key in st.session_state:  # a file may have been deleted or refused meanwhile
        st.session_state[key] = [i for i in st.session_state[key] or [] if i in names]
    return st.multiselect(
        "From the library",
        options=list(names),
        format_func=names.__getitem__,
        key=key,
        placeholder="Files uploaded earlier",
        persist_state="session",
    )


def draw_way_to_check(default_roster: str) -> tuple[str, str]:
    """Draw models and protocol, folded into one line that says them; return both."""
    roster = str(_field_value("roster", default_roster))
    with state.open_store() as store:
        usual = get_default_protocol(store, state.get_project(store))
    line = describe_plan(str(_field_value("protocol", usual)), roster)
    with st.expander(line, key="new.way"):
        left, right = st.columns(2)
        with right:
            roster = draw_roster_choice("new.roster", default_roster)
        with left:
            protocol = draw_protocol_choice("new.protocol", roster)
        _draw_plan(protocol)
    return roster, protocol


def _draw_plan(protocol: str) -> None:
    """Draw CEDA's Role and Instruction and the protocol's options; `start_check` reads them."""
    with state.open_store() as store:
        settings, project = store.projects.settings(), state.get_project(store)
    left, right = st.columns(2)
    role, instruction = project.role, project.instruction
    left.text_input("Role", value=role, key="new.role", persist_state="session")
    left.text_area(
        "Instruction", value=instruction, key="new.instruction", height=80, persist_state="session"
    )
    with right:
        options = draw_option_fields("new", protocol, get_default_options(project, protocol))
        if has_turns(Plan(protocol, options=options)):
            st.slider(
                "Debate turns at most",
                1,
                12,
                settings.max_turns,
                key="new.turns",
                help="The debate ends early when all agree; 1 is a single reading without debate.",
                persist_state="session",
            )
        st.slider(
            "Passages per statement",
            1,
            30,
            settings.passages,
            key="new.passages",
            persist_state="session",
        )


def get_project_roster() -> str:
    """Return the current project's roster."""
    with state.open_store() as store:
        return state.get_project(store).roster


def describe_expected_cost(roster: str, sources: Sequence[str]) -> str:
    """Return expected time, calls and cost, and the cap that is never passed."""
    with state.open_store() as store:
        project, settings = state.get_project(store), store.projects.settings()
        entries = load_library_entries(store, sources)
        try:
            plan = read_plan(project, settings, get_default_protocol(store, project), roster)
        except ReviewError as error:
            return escape_markdown(str(error))
        texts = drafts.list_check_texts()
        expected = describe_expectation(
            store, entries, [(texts["response"], texts["question"])], plan
        )
        names = [clip_text(e.name, NAME_CHARACTERS) for e in entries if e.status != "refused"]
        more = len(names) - MAX_NAMED_SOURCES
        listed = ", ".join(names[:MAX_NAMED_SOURCES]) + (f" and {more} more" if more > 0 else "")
        sources_words = format_count(len(names), "source") + (f": {listed}" if names else "")
        return f"{escape_markdown(sources_words)} · {expected}"


def start_check() -> None:
    """Check what the fields hold; they are read here as callback arguments would be stale."""
    with store_problem("new.problem"):
        chosen: list[str] = st.session_state.get("new.library") or []
        documents, images = split_sources([*list_held_uploads("new.upload"), *chosen])
        with state.open_store() as store:
            project = state.get_project(store)
            plan = read_plan(
                project, store.projects.settings(), get_default_protocol(store, project)
            )
            draft = CaseDraft(
                str(_field_value("response", "")),
                str(_field_value("question", "")),
                tuple(dict.fromkeys(documents)),
                tuple(dict.fromkeys(images)),
                str(_field_value("role", project.role)),
                str(_field_value("instruction", project.instruction)),
            )
            typed = state.get_typed_keys()
            require_protocol(plan)
            require_keys(plan, state.get_keys())
            with store.writing():
                person = state.require_role(store, project.id, "annotator", "check a claim")
                case = store_case(store, project, draft, person, time.time())
                save_protocol_choice(store, project, person, plan.protocol)
        st.session_state["new.started"] = state.get_jobs().start(
            case, plan, unread=list_unread("new"), by=person, typed=typed
        )
        end_draft()


def read_plan(project: Project, settings: Settings, usual: str, roster: str = "") -> Plan:
    """Return the page's plan; `usual` and `roster` count if their fields are not drawn."""
    protocol = str(_field_value("protocol", usual))
    options = read_options("new", protocol, get_default_options(project, protocol))
    turns = settings.max_turns
    if has_turns(Plan(protocol, options=options)):
        turns = int(_field_value("turns", turns))
    passages = int(_field_value("passages", settings.passages))
    name = roster or str(_field_value("roster", project.roster))
    return build_plan(name, turns, passages, protocol=protocol, options=options)


def _field_value(name: str, otherwise: Any) -> Any:
    value = st.session_state.get(f"new.{name}")
    return otherwise if value is None else value


def draw_prepared_cases() -> None:
    """Draw the prepared cases, one click each."""
    columns = st.columns(len(PREPARED_CASES), gap="small")
    for column, example in zip(columns, PREPARED_CASES, strict=True):
        with column, st.container(border=True, height="stretch", gap="small"):
            st.markdown(f"**{escape_markdown(example.title)}**")
            words = example.note or clip_text(example.response, PREPARED_CHARACTERS)
            st.caption(escape_markdown(words))
            key = f"new.example.{example.name}"
            draw_button("Check it", key, _start_example, example, width="stretch")


def _keyless_roster(project: Project) -> str:
    """Return the chosen roster if it uses own servers only, else the built-in one."""
    name = str(_field_value("roster", project.roster))
    config = load_roster_config(name)
    return name if config and uses_own_servers_only(config) else BUILT_IN_ROSTER


def _start_example(example: PreparedCase) -> None:
    with store_problem("new.problem"):
        with state.open_store() as store:
            project = state.get_project(store)
            person = state.require_role(store, project.id, "annotator", "check a claim")
            settings = store.projects.settings()
            case = store_prepared_case(store, state.home_folder(), project, example, person)
            protocol = get_default_protocol(store, project)
        roster = _keyless_roster(project)
        plan = read_plan(project, settings, protocol, roster)
        if plan.protocol not in list_protocols(plan.sheet):
            plan = replace(plan, protocol=Plan().protocol, options=DEFAULT_OPTIONS)
        st.session_state["new.started"] = state.get_jobs().start(case, plan, by=person)
