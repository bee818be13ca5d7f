"""A new comparison: which case, which ways to check it, one budget, and what all will take."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import streamlit as st

from components import state
from components.compare_budget import draw_budget, draw_expected
from components.inputs import draw_sources, draw_uploader, split_sources
from components.new_check import library_choice, project_roster
from components.protocol_choice import usual_options, usual_protocol
from components.protocol_options import can_choose, chosen_options, draw_option_fields
from components.roster_choice import draw_keys_of_rosters, expected_of, planned
from components.words import escaped, protocol_words, roster_words
from core.agents.rosters import sheets_of
from core.checking import PROTOCOLS, Draft, store_case
from core.comparing import MOST_WAYS, Way, shared_out, start_comparison, without_keys
from core.config import Settings
from core.errors import InputError, ReviewError
from core.estimate import expected_seconds
from core.records import Case, LibraryEntry
from core.seats import BUILT_IN
from core.store import Store

SINGLE = "single"
PAGE = "compare"


def draw_new_comparison(case: Case | None) -> None:
    """Choose and start; over `case`, or over what is typed here."""
    response, question, sources = (
        (case.response, case.question, [*case.documents, *case.images]) if case else _typed_case()
    )
    with state.open_store() as store:
        settings = store.projects.settings()
    chosen = _chosen_ways()
    budget = draw_budget(settings, [roster for _, roster in chosen])
    if len(chosen) > MOST_WAYS:
        st.error(
            f"Expected at most {MOST_WAYS} ways to check, found {len(chosen)}; choose fewer.",
            icon=":material/error:",
        )
        return
    draw_keys_of_rosters([roster for _, roster in chosen], "compare")
    if not chosen or not response.strip():
        st.caption("Choose at least one protocol and one roster, and give a text to check.")
        return
    try:
        with state.open_store() as store:
            entries = _entries(store, sources)
            ways = _ways(store, entries, (response, question), chosen, settings)
            ways = shared_out(without_keys(ways, state.keys()), budget, settings)
            paces = [
                expected_seconds(store, entries, len(response), protocol=way.plan.protocol)
                for way in ways
            ]
    except InputError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    if not sources:
        st.warning(
            "No file is chosen: without evidence every verdict is unclear.",
            icon=":material/warning:",
        )
    draw_expected(ways, paces)
    begin = st.button(
        "Compare",
        key="compare.start",
        type="primary",
        icon=":material/compare:",
        disabled=all(way.problem for way in ways),
    )
    if begin:
        _start(case, response, question, sources, ways)


def _typed_case() -> tuple[str, str, list[str]]:
    """(response, question, ids of sources) as they stand in the fields."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        response = st.text_area(
            "What should be checked", key="compare.response", height=120, persist_state="session"
        )
        question = st.text_input(
            "The question it answers, if there was one",
            key="compare.question",
            persist_state="session",
        )
    with right:
        uploaded = draw_uploader(
            "compare.upload", "What it should rest on", choice="compare.library"
        )
        chosen = library_choice("compare.library")
        sources = list(dict.fromkeys([*uploaded, *chosen]))
        draw_sources(sources)
    return response or "", question or "", sources


def _chosen_ways() -> list[tuple[str, str]]:
    """(protocol, roster) of every way that is chosen, protocols of a roster together."""
    with state.open_store() as store:
        usual = usual_protocol(store, state.project(store))
        words = {sheet.name: roster_words(sheet.name, sheet.words) for sheet in sheets_of(store)}
    left, right = st.columns(2)
    protocols = left.multiselect(
        "Protocols",
        PROTOCOLS,
        default=list(dict.fromkeys([usual, SINGLE])),
        format_func=lambda name: protocol_words(name, short=True),
        key="compare.protocols",
        persist_state="session",
    )
    usual_roster = project_roster()
    rosters = right.multiselect(
        "Rosters",
        list(words),
        default=[usual_roster if usual_roster in words else BUILT_IN],
        format_func=lambda name: words[name],
        key="compare.rosters",
        persist_state="session",
    )
    _draw_options(protocols)
    return [(protocol, roster) for roster, protocol in itertools.product(rosters, protocols)]


def _draw_options(protocols: Sequence[str]) -> None:
    """What can be chosen of each protocol, folded away; `_ways` reads it."""
    with state.open_store() as store:
        project = state.project(store)
    if not any(can_choose(protocol) for protocol in protocols):
        return
    with st.expander("Options of the protocols", icon=":material/instant_mix:"):
        for protocol in filter(can_choose, protocols):
            st.markdown(f"**{escaped(protocol_words(protocol, short=True))}**")
            draw_option_fields(PAGE, protocol, usual_options(project, protocol))


def _entries(store: Store, sources: Sequence[str]) -> list[LibraryEntry]:
    project = state.project(store)
    return [e for e in (store.library.get(project.id, i) for i in sources) if e]


def _ways(
    store: Store,
    entries: Sequence[LibraryEntry],
    asked: tuple[str, str],
    chosen: Sequence[tuple[str, str]],
    settings: Settings,
) -> list[Way]:
    project = state.project(store)
    plans = [
        planned(
            roster,
            settings.max_turns,
            settings.passages,
            protocol=protocol,
            options=chosen_options(PAGE, protocol, usual_options(project, protocol)),
        )
        for protocol, roster in chosen
    ]
    return [Way(plan, expected_of(store, entries, [asked], plan)) for plan in plans]


def _start(
    case: Case | None, response: str, question: str, sources: list[str], ways: Sequence[Way]
) -> None:
    """Store the case where it is new, start all that fits, go to the comparison."""
    try:
        documents, images = split_sources(sources)
        with state.open_store() as store, store.writing():
            project = state.project(store)
            person = state.require(store, project.id, "annotator", "compare ways to check")
            if case is None:
                draft = Draft(response, question, tuple(documents), tuple(images))
                case = store_case(store, project, draft, person, time.time())
        with state.open_store() as store:
            start_comparison(store, state.jobs(), case, ways, by=person, typed=state.typed_keys())
    except ReviewError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    for name in ("response", "question", "library"):
        st.session_state.pop(f"compare.{name}", None)
    st.switch_page("pages/check/compare.py", query_params={"case": case.id})
