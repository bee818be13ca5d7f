"""New check and Check again: draft, sources, plan, expected cost, prepared cases, the start.

What was not checked is kept in the home, so that no reload loses it. A text counts from when its
field is left: watching each word would cost a rerun while a fresh server loads its engine.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from components.app import state
from components.check.roster_choice import (
    chosen_options,
    draw_option_fields,
    entries_of,
    expectation,
    forget_options,
    keep_protocol,
    planned,
    usual_options,
    usual_protocol,
)
from components.widgets import drafts
from components.widgets.controls import button, link, problem_kept, show_problem
from components.widgets.wording import clipped, counted, escaped, size, when
from core.baseline.examples import EXAMPLES, PreparedCase
from core.debate.protocols import has_turns, offered_to, require_protocol
from core.documents.library import store_file
from core.documents.readers import endings
from core.pipeline.run_factory import require_keys
from core.pipeline.streaming_input import CaseDraft, store_case
from core.runtime.config import Settings
from core.runtime.errors import InputError, ReviewError
from core.schema.records import Case, LibraryEntry, Plan, Project, Run
from core.schema.rosters import AS_IS, BUILT_IN

STATUS_ICONS = {
    "waiting": ":material/hourglass_empty:",
    "reading": ":material/hourglass_top:",
    "ready": ":material/check_circle:",
    "refused": ":material/error:",
}
POLL_SECONDS = 0.5


def draw_source_fields(page: str, label: str) -> list[str]:
    """Files to upload, files of the library, and what came of each; the ids of all of them."""
    uploaded = draw_uploader(f"{page}.upload", label, choice=f"{page}.library")
    sources = list(dict.fromkeys([*uploaded, *library_choice(f"{page}.library")]))
    draw_sources(sources)
    return sources


def draw_uploader(key: str, label: str, choice: str = "") -> list[str]:
    """The uploader; returns ids of what it holds, each stored and being read already.

    A file that is refused is named with what to do; the others are used. Streamlit empties the
    uploader when the page is left: what it held then is chosen in the widget with the key
    `choice`, which is drawn after it.
    """
    with state.open_store() as store:
        limit = store.projects.settings().file_megabytes
    uploads = st.file_uploader(
        label,
        key=key,
        accept_multiple_files=True,
        max_upload_size=limit,
        help=f"{', '.join(endings())}; up to {limit} MB each. They are kept on this computer; "
        "language models send the passages and images that they use to their provider.",
        on_change=lambda: st.session_state.update({f"{key}.changed": True}),
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
    """For callbacks: ids of all uploads by now.

    Raises InputError: nobody has read a refusal yet.
    """
    known = set(st.session_state.get(f"{key}.known", {}).values())
    ids, refusals = _taken(key)
    if any(f"!{words}" not in known for words in refusals):
        raise InputError(
            "A file that you just added was refused, so nothing was started; the reason is below "
            "the files. Start again to continue without it."
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
    if _read_on(entries):
        _poll_sources(tuple(ids))
    else:
        _draw_entries(entries)


def _entries(ids: Sequence[str]) -> list[LibraryEntry]:
    with state.open_store() as store:
        return entries_of(store, ids)


@st.fragment(run_every=POLL_SECONDS)
def _poll_sources(ids: tuple[str, ...]) -> None:
    entries = _entries(ids)
    _draw_entries(entries)
    if not _read_on(entries):
        st.rerun()


def _read_on(entries: Sequence[LibraryEntry]) -> bool:
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
        facts = [entry_facts(entry)]
        if entry.status != "ready":
            note = state.prereading().note(entry.id) or "waiting to be read"
            facts = [size(entry.size), note]
        words = " · ".join([f"**{escaped(entry.name)}**", *map(escaped, filter(None, facts))])
        st.markdown(f"{STATUS_ICONS[entry.status]} {words}")


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
    usable = [e for e in _entries(ids) if with_refused or e.status != "refused"]
    documents = tuple(e.id for e in usable if e.kind != "image")
    return documents, tuple(e.id for e in usable if e.kind == "image")


def draw_again(run: Run, case: Case) -> None:
    """Links to the other runs of the case, and what to check again."""
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        children = store.runs.children(run.id, time.time(), lease)
        names = {
            i: store.library.name_of(case.project_id, i) for i in (*case.documents, *case.images)
        }
        kept = [i for i in names if store.library.get(case.project_id, i)]
    pairs = [("the previous check", run.parent_id, run.id)] if run.parent_id else []
    pairs += [(f"the check of {when(child.started_at)}", run.id, child.id) for child in children]
    st.subheader("Check again", anchor=False)
    page = "pages/check/compare.py"
    for words, before, after in pairs:
        link(page, f"Compare with {words}", "compare_arrows", before=before, after=after)
    link(page, "Compare ways to check it", "compare", case=case.id)
    key = f"run.{run.id}.again"
    _draw_choice(names, kept, key)
    options = {"icon": "refresh", "shortcut": "Ctrl+Shift+Enter"}
    button("Check again", f"{key}.go", _check_again, run, case, key, **options)
    target = st.session_state.pop(f"{key}.started", None)
    show_problem(f"{key}.problem")
    if target:
        st.switch_page("pages/check/run.py", query_params={"run": target})


def _draw_choice(names: dict[str, str], kept: list[str], key: str) -> None:
    """Which sources stay, and new ones; what cannot be read is named, or counted without a name."""
    with st.expander("Add evidence or leave some out", icon=":material/post_add:"):
        chosen = st.multiselect(
            "Sources of this case",
            options=kept,
            default=kept,
            format_func=names.__getitem__,
            key=f"{key}.kept",
        )
        draw_sources(draw_uploader(f"{key}.upload", "More documents or images"))
    gone = [name for i, name in names.items() if i not in kept]
    if gone:
        unknown = gone.count("")
        counts = [f"{unknown} files that are not here"] if unknown > 1 else []
        listed = [*filter(None, gone), *(["a file that is not here"] if unknown == 1 else counts)]
        words = f"Not in the library, so left out: {escaped(', '.join(listed))}."
        st.warning(words, icon=":material/folder_off:")
    _draw_entries([entry for entry in _entries(chosen) if entry.status == "refused"])


def _check_again(run: Run, case: Case, key: str) -> None:
    """The same case, or a new one of other sources; an unreadable file is tried again."""
    with problem_kept(f"{key}.problem"):
        chosen: list[str] = st.session_state.get(f"{key}.kept") or []
        sources = [*chosen, *held_uploads(f"{key}.upload")]
        documents, images = split_sources(list(dict.fromkeys(sources)), with_refused=True)
        with state.open_store() as store, store.writing():
            person = state.require(store, case.project_id, "annotator", "check again")
            again = case
            if set(documents) != set(case.documents) or set(images) != set(case.images):
                project = store.projects.get(case.project_id) or state.project(store)
                texts = case.response, case.question
                draft = CaseDraft(*texts, documents, images, case.role, case.instruction)
                again = store_case(store, project, draft, person, time.time())
            plan = replace(run.plan, classifier="", reader="")
        st.session_state[f"{key}.started"] = state.jobs().start(
            again, plan, parent_id=run.id, by=person, typed=state.typed_keys()
        )


PAGE = "new"
TEXTS = ("response", "question")
OF_PROJECT = ("role", "instruction", "roster", "protocol", "checked")


def restore_draft() -> None:
    """Bring back what was left in the project at hand; call it before the fields are drawn."""
    draft = drafts.restored(PAGE)
    if draft is None:
        return
    for name in OF_PROJECT:  # another project's do not hold here
        st.session_state.pop(f"new.{name}", None)
    forget_options(PAGE)
    for name in TEXTS:
        st.session_state[f"new.{name}"] = str(draft.get(name) or "")
    st.session_state["new.library"] = drafts.names_in(draft, "sources")


def keep_draft(sources: Sequence[str]) -> None:
    """Keep the page as it is; a text that was checked is no draft any more."""
    texts = _texts()
    is_open = (any(texts.values()) or sources) and texts != st.session_state.get("new.checked")
    drafts.follow(PAGE, texts | {"sources": list(sources)} if is_open else {})


def end_draft() -> None:
    """What stands there now was checked."""
    st.session_state["new.checked"] = _texts()
    drafts.follow(PAGE, {})


def _texts() -> dict[str, str]:
    return {name: str(st.session_state.get(f"new.{name}") or "") for name in TEXTS}


def library_choice(key: str) -> list[str]:
    """Sources taken from the library; nothing is shown while it is empty."""
    with state.open_store() as store:
        project = state.project(store)
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


def draw_plan(protocol: str) -> None:
    """CEDA's Role and Instruction, and the protocol's options; `start_check` reads them."""
    with state.open_store() as store:
        settings, project = store.projects.settings(), state.project(store)
    left, right = st.columns(2)
    role, words = project.role, project.instruction
    left.text_input("Role", value=role, key="new.role", persist_state="session")
    left.text_area(
        "Instruction", value=words, key="new.instruction", height=80, persist_state="session"
    )
    with right:
        options = draw_option_fields("new", protocol, usual_options(project, protocol))
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
        usual = settings.passages
        st.slider(
            "Passages per statement", 1, 30, usual, key="new.passages", persist_state="session"
        )


def project_roster() -> str:
    """The roster that the project at hand checks with."""
    with state.open_store() as store:
        return state.project(store).roster


def expected_words(roster: str, sources: Sequence[str]) -> str:
    """Time, calls and cost to expect, and the cap that is never passed."""
    with state.open_store() as store:
        project, settings = state.project(store), store.projects.settings()
        entries = entries_of(store, sources)
        try:
            plan = plan_now(project, settings, usual_protocol(store, project), roster)
        except ReviewError as error:
            return escaped(str(error))
        texts = _texts()
        expected = expectation(store, entries, [(texts["response"], texts["question"])], plan)
        return f"{counted(len(entries), 'source')} · {expected}"


def start_check() -> None:
    """Check what stands in the fields now; a callback's arguments are those of the last drawing."""
    with problem_kept("new.problem"):
        chosen: list[str] = st.session_state.get("new.library") or []
        documents, images = split_sources([*held_uploads("new.upload"), *chosen])
        with state.open_store() as store:
            project = state.project(store)
            plan = plan_now(project, store.projects.settings(), usual_protocol(store, project))
            draft = CaseDraft(
                str(_typed("response", "")),
                str(_typed("question", "")),
                tuple(dict.fromkeys(documents)),
                tuple(dict.fromkeys(images)),
                str(_typed("role", project.role)),
                str(_typed("instruction", project.instruction)),
            )
            typed = state.typed_keys()
            require_protocol(plan)
            require_keys(plan, state.keys())
            with store.writing():
                person = state.require(store, project.id, "annotator", "check a claim")
                case = store_case(store, project, draft, person, time.time())
                keep_protocol(store, project, person, plan.protocol)
        st.session_state["new.started"] = state.jobs().start(case, plan, by=person, typed=typed)
        end_draft()


def plan_now(project: Project, settings: Settings, usual: str, roster: str = "") -> Plan:
    """The plan on the page now; `usual` and `roster` count where their fields are not drawn."""
    protocol = str(_typed("protocol", usual))
    options = chosen_options("new", protocol, usual_options(project, protocol))
    turns = settings.max_turns
    if has_turns(Plan(protocol, options=options)):
        turns = int(_typed("turns", turns))
    passages = int(_typed("passages", settings.passages))
    name = roster or str(_typed("roster", project.roster))
    return planned(name, turns, passages, protocol=protocol, options=options)


def _typed(name: str, otherwise: Any) -> Any:
    value = st.session_state.get(f"new.{name}")
    return otherwise if value is None else value


def draw_prepared() -> None:
    """Five cases to try, one click each."""
    st.subheader("Or try a prepared case", anchor=False)
    columns = st.columns(len(EXAMPLES))
    for column, example in zip(columns, EXAMPLES, strict=True):
        with column, st.container(border=True, height="stretch"):
            st.markdown(f"**{escaped(example.title)}**")
            st.caption(escaped(clipped(example.response, 110)))
            key = f"new.example.{example.name}"
            button("Check it", key, _start_example, example, width="stretch")


def _start_example(example: PreparedCase) -> None:
    with problem_kept("new.problem"):
        with state.open_store() as store:
            project = state.project(store)
            person = state.require(store, project.id, "annotator", "check a claim")
            settings = store.projects.settings()
            entries = [
                store_file(store, state.home(), project.id, *file, person, time.time(), settings)
                for file in example.files()
            ]
            images = tuple(e.id for e in entries if e.kind == "image")
            documents = tuple(e.id for e in entries if e.kind != "image")
            draft = CaseDraft(example.response, example.question, documents, images)
            case = store_case(store, project, draft, person, time.time())
            usual = usual_protocol(store, project)
        # Built in whatever the roster: it is here to be tried without a key, and costs nothing.
        plan = plan_now(project, settings, usual, BUILT_IN)
        if plan.protocol not in offered_to(None):
            plan = replace(plan, protocol=Plan().protocol, options=AS_IS)
        st.session_state["new.started"] = state.jobs().start(case, plan, by=person)
