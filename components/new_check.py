"""The parts of New check: library, plan, expected time, earlier checks, the start."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import streamlit as st

from components import state
from components.inputs import held_uploads, split_sources
from components.new_draft import end_draft
from components.protocol_choice import keep_protocol, usual_options, usual_protocol
from components.protocol_options import chosen_options, draw_option_fields
from components.roster_choice import expectation, planned
from components.words import counted, escaped
from core.checking import Draft, store_case
from core.config import Settings
from core.debate.protocols import has_turns
from core.errors import ReviewError
from core.records import Plan, Project
from core.staffing import require_keys


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
    try:
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
            require_keys(plan, state.keys())
            with store.writing():
                person = state.require(store, project.id, "annotator", "check a claim")
                case = store_case(store, project, draft, person, time.time())
                keep_protocol(store, project, person, plan.protocol)
        st.session_state["new.started"] = state.jobs().start(case, plan, by=person, typed=typed)
        end_draft()
    except ReviewError as error:
        st.session_state["new.problem"] = str(error)


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
