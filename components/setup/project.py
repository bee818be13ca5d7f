"""Project and Library: a project's fields and members, and the table of its files."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from components.app import state
from components.app.frame import ask_name, has_role
from components.check import roster_choice
from components.check.new_check import describe_entry
from components.measure.calibration import draw_error_rate, refit_limit
from components.review.ground_truth import draw_truth_rule
from components.review.review_queue import clean_categories, draw_review_rules
from components.widgets.controls import (
    ask_confirmation,
    draw_button,
    draw_confirmation,
    draw_download,
    show_problem,
    show_problems,
    store_problem,
)
from components.widgets.html import draw_html, render_marked_text
from components.widgets.wording import (
    ROLE_WORDS,
    escape_markdown,
    format_bytes,
    format_protocol,
    format_roster,
    format_time,
)
from core.agents.rosters import list_rosters
from core.documents.library import discard_reading, load_file_bytes, remove_file
from core.review.people import normalize_member_name
from core.runtime.errors import InputError
from core.schema.records import LibraryEntry, Member, PersonRole, Project, new_id
from core.store.projects import GUEST, Projects
from core.store.sqlite import to_json

STATUS_WORDS: dict[str, str] = {
    "ready": "ready",
    "waiting": "waiting to be read",
    "reading": "being read",
    "refused": "refused",
}
PREVIEW_CHARACTERS = 4000
LIBRARY_PROBLEM = "library.problem"


def draw_library() -> None:
    """Draw the table of the project's files; selected ones can be seen, deleted, read again."""
    show_problem(LIBRARY_PROBLEM)
    with state.open_store() as store:
        project = state.get_project(store)
        entries = store.library.all(project.id)
    if not entries:
        st.info("The library is empty. Files that you add here or at a check appear here.")
        return
    table = st.dataframe(
        [_library_row(entry) for entry in entries],
        key=f"library.table.{st.session_state.get('library.version', 0)}",
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        height="content",
    )
    chosen = [entries[i] for i in table["selection"]["rows"] if i < len(entries)]
    if not chosen:
        st.caption("Select rows to view, delete or read files again.")
        return
    with st.container(horizontal=True):
        ids, first = [entry.id for entry in chosen], chosen[0]
        if has_role("annotator"):
            draw_button(
                f"Delete {len(ids)}",
                "library.delete",
                ask_confirmation,
                "library.asked",
                ids,
                icon="delete",
            )
            about = "Reads and indexes the file again, for instance after a limit was changed"
            draw_button(
                "Read again", "library.reindex", _read_again, chosen, icon="refresh", help=about
            )
        if len(chosen) == 1:
            load = partial(load_file_bytes, state.home_folder(), first.id)
            draw_download("Download", load, first.name, "library.download")
    if asked := st.session_state.get("library.asked"):
        asked_entries = [entry for entry in entries if entry.id in asked]
        names = ", ".join(escape_markdown(entry.name) for entry in asked_entries[:5])
        words = (
            f"Delete {names}? Runs keep the passages they used; the files and their pictures go."
        )
        draw_confirmation(
            words, "Delete", "library", _delete_files, asked_entries, asked="library.asked"
        )
    with state.open_store() as store:
        text = store.readings.text(first.id, 0, PREVIEW_CHARACTERS)
    if text:
        with st.expander(f"What was read in {escape_markdown(first.name)}", expanded=True):
            draw_html(render_marked_text(text, []))
            if first.characters > PREVIEW_CHARACTERS:
                st.caption(f"The first {PREVIEW_CHARACTERS:,} of {first.characters:,} characters.")


def _library_row(entry: LibraryEntry) -> dict[str, Any]:
    return {
        "Name": entry.name,
        "State": STATUS_WORDS[entry.status],
        "What was read": entry.problem or describe_entry(entry),
        "Language": "" if entry.language == "und" else entry.language,
        "Size": format_bytes(entry.size),
        "Added": format_time(entry.added_at),
        "By": entry.added_by,
    }


def _delete_files(chosen: list[LibraryEntry]) -> None:
    """Delete the files and clear the selection, which would move on to other rows."""
    ask_confirmation("library.asked", None)
    st.session_state["library.version"] = st.session_state.get("library.version", 0) + 1
    with store_problem(LIBRARY_PROBLEM), state.open_store() as store:
        for entry in chosen:
            with store.writing():
                state.require_role(store, entry.project_id, "annotator", "delete files")
                remove_file(store, state.home_folder(), entry.project_id, entry.id, time.time())


def _read_again(chosen: list[LibraryEntry]) -> None:
    with store_problem(LIBRARY_PROBLEM):
        with state.open_store() as store:
            for entry in chosen:
                with store.writing():
                    state.require_role(store, entry.project_id, "annotator", "read files again")
                    discard_reading(store, entry.id)
        for entry in chosen:
            state.get_background_reader().submit(entry.id, entry.name, anew=True)
        what = "The file is" if len(chosen) == 1 else f"{len(chosen)} files are"
        st.toast(f"{what} being read again.", icon=":material/refresh:")


def _draw_roster_field(project: Project) -> str:
    with state.open_store() as store:
        words = {roster.name: roster.words for roster in list_rosters(store)}
    rosters = list(words)
    if project.roster not in words:
        warning = (
            f"The model set “{project.roster}” is not there any more: choose another and save."
        )
        st.warning(escape_markdown(warning))
    chosen = st.selectbox(
        "Models of new checks",
        rosters,
        index=rosters.index(project.roster) if project.roster in rosters else 0,
        format_func=lambda name: format_roster(name, words.get(name, ""), short=True),
        key=f"project.{project.id}.roster",
        help="\n".join(f"- {escape_markdown(format_roster(*item))}" for item in words.items()),
    )
    return str(chosen or project.roster)


def _draw_protocol_field(project: Project, roster: str) -> str:
    key = f"project.{project.id}.protocol"
    offered = roster_choice.list_offered_protocols([roster], key)
    chosen = st.selectbox(
        "Protocol of new checks",
        offered,
        index=offered.index(project.protocol) if project.protocol in offered else 0,
        format_func=lambda name: format_protocol(name, short=True),
        key=key,
        help="  \n".join(map(format_protocol, offered)),
    )
    protocol = str(chosen or project.protocol)
    st.caption(escape_markdown(roster_choice.describe_protocol(protocol)))
    roster_choice.draw_offer_note(offered)
    return protocol


ROLES: tuple[PersonRole, ...] = tuple(ROLE_WORDS)
NAME_WORDS = "Projects and roles belong to people: give your name once, then create and add them."


def draw_choice() -> None:
    """Draw a field to create another project; the sidebar switches between several."""
    may_create = has_role("admin", "create a project", for_all=True)
    # Under no name, whoever gave one next would administer the new project.
    if ask_name(NAME_WORDS) and may_create:
        with st.popover("New project", icon=":material/add:"):
            st.text_input("Name", key="project.new")
            draw_button("Create", "project.begin", _create_project, type="primary")
    show_problem("project.problem")


def _create_project() -> None:
    now = time.time()
    project = Project(new_id(), str(st.session_state.get("project.new") or "").strip(), now)
    with store_problem("project.problem"):
        with state.open_store() as store, store.writing():
            person = state.get_person(store)
            store.projects.require_for_all(person, "admin", "create a project")
            store.projects.save(project)
            store.projects.set_member(Member(project.id, person, "admin", now))
        state.choose_project(project.id)
        st.session_state["project.new"] = ""


def draw_record() -> None:
    """Draw the project's own fields with a button to save them."""
    with state.open_store() as store:
        project = state.get_project(store)
    if not has_role("admin", "change the project"):
        st.markdown(f"**{escape_markdown(project.name)}** {escape_markdown(project.description)}")
        return
    key = f"project.{project.id}"
    if f"{key}.name" not in st.session_state:  # the fields now start from the stored project
        st.session_state[f"{key}.before"] = to_json(project)
        roster_choice.forget_options(key)
    with st.container(border=True):  # no form: which options there are depends on the protocol
        typed: dict[str, Any] = {
            name: field(words, value=getattr(project, name), key=f"{key}.{name}") or ""
            for name, words, field in (
                ("name", "Name", st.text_input),
                ("description", "What it is about", st.text_area),
                ("role", "Role given to the agents", st.text_input),
                ("instruction", "Instruction given to the agents", st.text_area),
            )
        }
        typed["name"] = typed["name"].strip()
        left, right = st.columns(2)
        with left:
            typed["roster"] = _draw_roster_field(project)
        with right:
            typed["protocol"] = protocol = _draw_protocol_field(project, typed["roster"])
            usual = roster_choice.get_default_options(project, protocol)
            typed["options"] = roster_choice.draw_option_fields(key, protocol, usual)
        with st.expander("How people review", icon=":material/checklist:"):
            typed |= draw_review_rules(project)
            typed["truth_rule"] = draw_truth_rule(project)
            typed["error_rate"] = draw_error_rate(project, f"{key}.error_rate")
        st.caption(f"Begun {format_time(project.created_at)}.")
        if st.button("Save", key=f"{key}.save"):
            with show_problems():  # the rest of the page stays, and what was typed
                typed["categories"] = clean_categories(typed["categories"])
                _save_project(project, replace(project, **typed))


def _save_project(before: Project, changed: Project) -> None:
    """Store the changed project. Raises InputError: someone else changed it meanwhile."""
    with state.open_store() as store, store.writing():
        state.require_role(store, changed.id, "admin", "change the project")
        now = store.projects.get(changed.id)
        if now is None or to_json(now) != st.session_state[f"project.{changed.id}.before"]:
            raise InputError(
                "Someone changed this project while you were typing. Copy what you wrote, reload "
                "the page, and look at their change first."
            )
        store.projects.save(changed)
    st.session_state[f"project.{changed.id}.before"] = to_json(changed)
    if changed.error_rate != before.error_rate:
        with state.open_store() as store:
            refit_limit(store, changed)
    st.toast("Saved.", icon=":material/check:")


def draw_members() -> None:
    """Draw the project's people; an admin may add people and change roles."""
    with state.open_store() as store:
        project = state.get_project(store)
        members = store.projects.members(project.id)
        is_named = state.get_person(store) != GUEST
    if not has_role("admin", "change who is in the project"):
        for member in members:
            st.markdown(f"**{escape_markdown(member.person)}** · {ROLE_WORDS[member.role]}")
        show_problem("project.member.problem")  # of a role that went while the page was open
        return
    for member in members:
        left, middle, right = st.columns([3, 3, 1], vertical_alignment="center")
        left.markdown(
            f"**{escape_markdown(member.person)}** · since {format_time(member.added_at)}"
        )
        middle.selectbox(
            f"Role of {escape_markdown(member.person)}",
            ROLES,
            index=ROLES.index(member.role),
            format_func=lambda role: ROLE_WORDS[role],
            key=f"project.{project.id}.role.{member.person}",
            label_visibility="collapsed",
            on_change=_set_role,
            args=(project.id, member.person),
        )
        right.button(
            "Remove",
            key=f"project.{project.id}.remove.{member.person}",
            help="Removes the role; everything said and done under the name stays.",
            on_click=_remove_member,
            args=(project.id, member.person),
        )
    if is_named:
        _draw_new_member(project.id)
    show_problem("project.member.problem")


def _draw_new_member(project_id: str) -> None:
    name, role, add = st.columns([3, 3, 1], vertical_alignment="bottom")
    name.text_input("Add a person", key="project.member")
    role.selectbox("Role", ROLES, format_func=lambda r: ROLE_WORDS[r], key="project.member.role")
    add.button("Add", key="project.member.add", on_click=_add_member, args=(project_id,))


def _set_role(project_id: str, person: str) -> None:
    key = f"project.{project_id}.role.{person}"
    role: PersonRole = st.session_state[key]
    member = Member(project_id, person, role, time.time())
    if not _change_members(project_id, lambda projects: projects.set_member(member)):
        with state.open_store() as store:
            st.session_state[key] = store.projects.role_of(project_id, person)


def _add_member(project_id: str) -> None:
    person = normalize_member_name(str(st.session_state.get("project.member") or ""))
    role: PersonRole = st.session_state.get("project.member.role") or "annotator"
    member = Member(project_id, person, role, time.time())
    if _change_members(project_id, lambda projects: projects.add_member(member)):
        st.session_state["project.member"] = ""


def _remove_member(project_id: str, person: str) -> None:
    _change_members(project_id, lambda projects: projects.remove_member(project_id, person))


def _change_members(project_id: str, change: Callable[[Projects], object]) -> bool:
    """Change the members in a transaction; return True if it succeeded."""
    with store_problem("project.member.problem"):
        with state.open_store() as store, store.writing():
            state.require_role(store, project_id, "admin", "change who is in the project")
            change(store.projects)
        return True
    return False
