"""Check many: a new table, what it rests on, the start."""

from __future__ import annotations

import streamlit as st

from components import drafts, state
from components.inputs import draw_sources, draw_uploader
from components.new_check import library_choice, project_roster
from components.protocol_choice import draw_protocol_choice, usual_options
from components.protocol_options import draw_protocol_options
from components.roster_choice import (
    draw_roster_choice,
    draw_roster_keys,
    expected_of_table,
    planned,
)
from components.words import escaped
from core.baseline.wording import counted
from core.claim_table import ClaimRow, read_claims, start_batch
from core.config import Settings
from core.errors import InputError
from core.records import Plan

PAGE = "many"
PREVIEWED = 10


def draw_new_table() -> None:
    """Upload or paste a table, say what it rests on, see what was understood, start."""
    with state.open_store() as store:
        settings = store.projects.settings()
    _restore_draft()
    left, right = st.columns([3, 2], gap="large")
    with left:
        name, data = _given_table(settings)
    with right:
        sources = _sources()
    if not data.strip():
        return
    try:
        rows = read_claims(name, data, settings.table_claims)
    except InputError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    st.markdown(f"**{len(rows)} claims** in {escaped(name)}")
    st.dataframe(
        [
            {"Claim": r.claim, "Question": r.question, "Sources": "; ".join(r.sources)}
            for r in rows[:PREVIEWED]
        ],
        hide_index=True,
    )
    if len(rows) > PREVIEWED:
        st.caption(f"The first {PREVIEWED} of them.")
    if sources:
        st.caption(f"Every row also rests on the {counted(len(sources), 'file')} chosen beside it.")
    elif not any(row.sources for row in rows):
        st.warning(
            "No file is chosen and no row names one: without evidence every verdict is unclear.",
            icon=":material/warning:",
        )
    _draw_start(name, rows, sources, settings)


def _draw_start(name: str, rows: list[ClaimRow], sources: list[str], settings: Settings) -> None:
    """Who checks, what that will take, and the button."""
    roster = draw_roster_choice("many.roster", project_roster())
    draw_roster_keys(roster, "many")
    protocol = draw_protocol_choice("many.protocol")
    with state.open_store() as store:
        usual = usual_options(state.project(store), protocol)
    options = draw_protocol_options("many", protocol, usual)
    try:
        turns, passages = settings.max_turns, settings.passages
        plan = planned(roster, turns, passages, protocol=protocol, options=options)
        asked = [(row.claim, row.question) for row in rows]
        st.caption(expected_of_table(asked, sources, plan))
    except InputError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    if st.button("Check them", key="many.start", type="primary", icon=":material/gavel:"):
        _start(name, rows, sources, plan)


def _restore_draft() -> None:
    """Bring back the table that was pasted and not checked, with what it rests on."""
    draft = drafts.restored(PAGE)
    if draft is None:
        return
    st.session_state["many.pasted"] = str(draft.get("pasted") or "")
    sources = draft.get("sources")
    known = sources if isinstance(sources, list) else []
    st.session_state["many.library"] = [i for i in known if isinstance(i, str)]


def _keep_draft(sources: list[str]) -> None:
    pasted = str(st.session_state.get("many.pasted") or "")
    drafts.follow(PAGE, {"pasted": pasted, "sources": sources} if pasted.strip() else {})


def _given_table(settings: Settings) -> tuple[str, bytes]:
    """(name, content) of the table; empty content when none was given."""
    upload = st.file_uploader(
        f"Table (CSV or TSV with a header, at most {settings.table_claims:,} claims)",
        key="many.table",
        max_upload_size=settings.file_megabytes,
    )
    pasted = st.text_area(
        "Or paste it",
        key="many.pasted",
        height=100,
        placeholder="claim,document\nThe bridge is 512 m long.,halden-bridge.pdf",
        persist_state="session",
    )
    if upload is not None:
        return upload.name, upload.getvalue()
    return "pasted table", (pasted or "").encode()


def _sources() -> list[str]:
    """Ids of what every row rests on, beside what it names itself."""
    added = draw_uploader("many.upload", "What they should rest on", choice="many.library")
    chosen = library_choice("many.library")
    draw_sources(added)
    all_rows = st.toggle(
        "Use these files for every row",
        value=True,
        key="many.common",
        help="If not, each row rests on the library files that it names.",
        persist_state="session",
    )
    sources = list(dict.fromkeys([*added, *chosen]))
    _keep_draft(sources)
    return sources if all_rows else []


def _start(name: str, rows: list[ClaimRow], common: list[str], plan: Plan) -> None:
    with state.open_store() as store:
        project, person = state.project(store), state.person(store)
        batch = start_batch(
            store,
            state.jobs(),
            project,
            rows,
            author=person,
            name=name,
            plan=plan,
            common=common,
            typed=state.typed_keys(),
        )
    st.session_state.pop("many.pasted", None)
    drafts.follow(PAGE, {})
    st.switch_page("pages/check/table.py", query_params={"batch": batch})
