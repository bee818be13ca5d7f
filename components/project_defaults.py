"""How new checks of a project begin: roster, protocol, and what is chosen of the protocol."""

from __future__ import annotations

from typing import Any

import streamlit as st

from components import state
from components.protocol_choice import happens, usual_options
from components.protocol_options import draw_option_fields
from components.words import escaped, protocol_words, roster_words
from core.agents.rosters import sheets_of
from core.checking import PROTOCOLS
from core.records import Project


def draw_defaults(project: Project) -> dict[str, Any]:
    """The fields; their values by the names that `Project` gives them."""
    left, right = st.columns(2)
    with left:
        roster = _draw_roster(project)
    with right:
        protocol = _draw_protocol(project)
        usual = usual_options(project, protocol)
        options = draw_option_fields(f"project.{project.id}", protocol, usual)
    return {"roster": roster, "protocol": protocol, "options": options}


def _draw_roster(project: Project) -> str:
    with state.open_store() as store:
        words = {sheet.name: sheet.words for sheet in sheets_of(store)}
    rosters = list(words)
    if project.roster not in words:
        gone = f"The roster “{project.roster}” is not there any more: choose another and save."
        st.warning(escaped(gone))
    chosen = st.selectbox(
        "Roster of new checks",
        rosters,
        index=rosters.index(project.roster) if project.roster in rosters else 0,
        format_func=lambda name: roster_words(name, words.get(name, ""), short=True),
        key=f"project.{project.id}.roster",
        help="\n".join(f"- {escaped(roster_words(*item))}" for item in words.items()),
    )
    return str(chosen or project.roster)


def _draw_protocol(project: Project) -> str:
    chosen = st.selectbox(
        "Protocol of new checks",
        PROTOCOLS,
        index=PROTOCOLS.index(project.protocol) if project.protocol in PROTOCOLS else 0,
        format_func=lambda name: protocol_words(name, short=True),
        key=f"project.{project.id}.protocol",
        help="  \n".join(map(protocol_words, PROTOCOLS)),
    )
    protocol = str(chosen or project.protocol)
    st.caption(escaped(happens(protocol)))
    return protocol
