"""New check and Check again: draft, sources, plan, expected cost, prepared cases, the start.

What was not checked is kept in the home, so that no reload loses it. A text counts from when its
field is left: watching each word would cost a rerun while a fresh server loads its engine. Also
brings files into the library and sources into a case, and says what came of each file.
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
from core.baseline.examples import EXAMPLES, Example
from core.debate.protocols import has_turns, offered_to, require_protocol
from core.documents.library import store_file
from core.documents.readers import endings
from core.pipeline.run_factory import require_keys
from core.pipeline.streaming_input import Draft, store_case
from core.runtime.config import Settings
from core.runtime.errors import InputError, ReviewError
from core.schema.records import Case, LibraryEntry, Plan, Project, Run
from core.schema.rosters import AS_IS, BUILT_IN
from core.store import Store

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


def draw_again(run: Run, case: Case) -> None:
    """Links to the other runs of the case, and what to check again."""
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        now = time.time()
        children = store.runs.children(run.id, now, lease)
        names = {
            i: store.library.name_of(case.project_id, i) for i in (*case.documents, *case.images)
        }
        kept = [i for i in names if store.library.get(case.project_id, i)]
    times = {child.id: child.started_at for child in children}
    others = [*([run.parent_id] if run.parent_id else []), *(child.id for child in children)]
    st.subheader("Check again", anchor=False)
    for other in others:
        first, second = (other, run.id) if other == run.parent_id else (run.id, other)
        link(
            "pages/check/compare.py",
            "Side by side with the check before"
            if other == run.parent_id
            else f"Side by side with the check of {when(times[other])}",
            "compare_arrows",
            before=first,
            after=second,
        )
    link("pages/check/compare.py", "Compare ways to check it", "compare", case=case.id)
    _draw_choice(names, kept, f"run.{run.id}.again")
    _draw_start(run, case)


def _draw_choice(names: dict[str, str], kept: list[str], key: str) -> None:
    """Which sources of the case stay, and new ones; those that cannot be read are named."""
    with st.expander("Add evidence or leave some out", icon=":material/post_add:"):
        chosen = st.multiselect(
            "Sources of this case",
            options=kept,
            default=kept,
            format_func=lambda i: names[i],
            key=f"{key}.kept",
        )
        added = draw_uploader(f"{key}.upload", "More documents or images")
        draw_sources(added)
    gone = [name for i, name in names.items() if i not in kept]
    if gone:
        st.warning(
            f"Not in the library, so left out: {escaped(_listed(gone))}.",
            icon=":material/folder_off:",
        )
    draw_refused(chosen)


def _listed(names: list[str]) -> str:
    """The names; of an imported run's files none is known here, and they are counted."""
    unknown = names.count("")
    counted = "a file that is not here" if unknown == 1 else f"{unknown} files that are not here"
    return ", ".join([*filter(None, names), *([counted] if unknown else [])])


def _draw_start(run: Run, case: Case) -> None:
    key = f"run.{run.id}.again"
    button(
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


def _check_again(run: Run, case: Case, key: str) -> None:
    """The same case again, or a new one when its sources changed; with today's classifier.

    A file that could not be read stays in the case: the run tries it again, and says so again.
    """
    with problem_kept(f"{key}.problem"):
        chosen: list[str] = st.session_state.get(f"{key}.kept") or []
        sources = [*chosen, *held_uploads(f"{key}.upload")]
        documents, images = split_sources(list(dict.fromkeys(sources)), with_refused=True)
        with state.open_store() as store, store.writing():
            person = state.require(store, case.project_id, "annotator", "check again")
            again = case
            if set(documents) != set(case.documents) or set(images) != set(case.images):
                again = _with_sources(store, case, documents, images)
            plan = replace(run.plan, classifier="", reader="")
        started = state.jobs().start(
            again, plan, parent_id=run.id, by=person, typed=state.typed_keys()
        )
        st.session_state[f"{key}.started"] = started


def _with_sources(
    store: Store, case: Case, documents: tuple[str, ...], images: tuple[str, ...]
) -> Case:
    project = store.projects.get(case.project_id) or state.project(store)
    draft = Draft(case.response, case.question, documents, images, case.role, case.instruction)
    return store_case(store, project, draft, state.person(store), time.time())


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
    sources = draft.get("sources")
    known = sources if isinstance(sources, list) else []
    st.session_state["new.library"] = [i for i in known if isinstance(i, str)]


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
        format_func=lambda i: names[i],
        key=key,
        placeholder="Files that were uploaded before",
        persist_state="session",
    )


def draw_plan(protocol: str) -> None:
    """CEDA's Role and Instruction, and the protocol's options; `start_check` reads them."""
    with state.open_store() as store:
        settings, project = store.projects.settings(), state.project(store)
    left, right = st.columns(2)
    with left:
        st.text_input("Role", value=project.role, key="new.role", persist_state="session")
        st.text_area(
            "Instruction",
            value=project.instruction,
            key="new.instruction",
            height=80,
            persist_state="session",
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
                help="All agreeing ends it earlier; 1 is a single reading without debate.",
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


def project_roster() -> str:
    """The roster that the project at hand checks with."""
    with state.open_store() as store:
        return state.project(store).roster


def expected_words(roster: str, sources: Sequence[str]) -> str:
    """Time, calls and cost to expect, and the cap that is never passed."""
    with state.open_store() as store:
        project, settings = state.project(store), store.projects.settings()
        entries = [e for e in (store.library.get(project.id, i) for i in sources) if e]
        try:
            plan = plan_now(project, settings, usual_protocol(store, project), roster)
        except ReviewError as error:
            return escaped(str(error))
        response, question = (
            str(st.session_state.get(f"new.{name}") or "") for name in ("response", "question")
        )
        expected = expectation(store, entries, [(response, question)], plan)
        return f"{counted(len(entries), 'source')} · {expected}"


def start_check() -> None:
    """Store the case and start its run; on a problem everything typed stays where it is.

    A callback's arguments are those of the page as it was last drawn: what was edited just before
    the click stands in the fields only.
    """
    with problem_kept("new.problem"):
        chosen: list[str] = st.session_state.get("new.library") or []
        documents, images = split_sources([*held_uploads("new.upload"), *chosen])
        with state.open_store() as store:
            project = state.project(store)
            usual = usual_protocol(store, project)
            plan = plan_now(project, store.projects.settings(), usual)
            draft = Draft(
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
    """The plan that stands on the page now; `roster` where its field is not drawn yet.

    `usual` is the protocol where nobody has chosen one.
    """
    protocol = str(_typed("protocol", usual))
    options = chosen_options("new", protocol, usual_options(project, protocol))
    is_bounded = has_turns(Plan(protocol, options=options))
    return planned(
        roster or str(_typed("roster", project.roster)),
        int(_typed("turns", settings.max_turns)) if is_bounded else settings.max_turns,
        int(_typed("passages", settings.passages)),
        protocol=protocol,
        options=options,
    )


def _typed(name: str, otherwise: Any) -> Any:
    """What stands in a field of New check now."""
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
            button(
                "Check it", f"new.example.{example.name}", _start_example, example, width="stretch"
            )


def _start_example(example: Example) -> None:
    """Put the example's files into the library and check it like any other case."""
    with problem_kept("new.problem"):
        with state.open_store() as store:
            project = state.project(store)
            person = state.require(store, project.id, "annotator", "check a claim")
            ids = [_add(store, project.id, person, name, data) for name, data in example.files()]
            draft = Draft(
                example.response,
                example.question,
                tuple(i for i, is_image in ids if not is_image),
                tuple(i for i, is_image in ids if is_image),
            )
            case = store_case(store, project, draft, person, time.time())
            settings = store.projects.settings()
            usual = usual_protocol(store, project)
        # Built in whatever the roster: it is here to be tried without a key, and costs nothing.
        plan = plan_now(project, settings, usual, BUILT_IN)
        if plan.protocol not in offered_to(None):
            plan = replace(plan, protocol=Plan().protocol, options=AS_IS)
        st.session_state["new.started"] = state.jobs().start(case, plan, by=person)


def _add(store: Store, project_id: str, person: str, name: str, data: bytes) -> tuple[str, bool]:
    settings = store.projects.settings()
    entry = store_file(store, state.home(), project_id, name, data, person, time.time(), settings)
    return entry.id, entry.kind == "image"
