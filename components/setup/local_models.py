"""Language models on this computer, put in use by a click, and how well models judge.

A model whose replies decide verdicts is tested as a judge; one that fails counts only if a lead
says so.
"""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.widgets.controls import draw_button, show_problem, store_problem
from components.widgets.wording import escape_markdown, format_time
from core.agents.qualification import (
    MIN_RIGHT_ANSWERS,
    ModelStanding,
    list_deciding_models,
    load_standing,
    save_waiver,
)
from core.agents.rosters import SHIPPED_ROSTERS, served_roster
from core.llm.local_server import PROVIDER
from core.llm.prompting import PromptBook
from core.llm.servers import FoundServer, ServedModel, find_servers
from core.schema.rosters import RosterConfig

PROBLEM = "local_models.problem"
NONE_FOUND = (
    "None found: Ollama, llama.cpp, LM Studio and vLLM were looked for at their usual ports. "
    "`make local-model` installs a very small one."
)

USE_LABEL = "Use and test"
ABOUT_USE = (
    "“Use and test” gives new checks of this project that model and tests it at once: each role "
    "says one word, and the judge decides twelve fixed claims. Nothing leaves this computer; a "
    "small model takes some minutes without a graphics card, and the test can be stopped."
)


@st.cache_data(ttl=10, show_spinner=False)
def _servers() -> tuple[FoundServer, ...]:
    return find_servers()


def draw_local_models() -> str:
    """Draw the servers on this computer; return the roster just put in use, else an empty name."""
    st.subheader("Language models on this computer", anchor=False)
    servers = _servers()
    if not servers and PROVIDER not in SHIPPED_ROSTERS:
        st.caption(NONE_FOUND)
    else:
        st.caption(ABOUT_USE)
    if not has_role("admin", "choose the models of new checks"):
        return ""
    used = ""
    for number, server in enumerate(servers):
        used = _draw_server(number, server) or used
    if PROVIDER in SHIPPED_ROSTERS:
        left, right = st.columns([4, 1], vertical_alignment="center")
        left.markdown(
            "**SmolLM2-135M** · runs without a server: a real language model, but very small"
        )
        if right.button(USE_LABEL, key="local_models.use.box", width="stretch"):
            used = _put_in_use(SHIPPED_ROSTERS[PROVIDER]) or used
    show_problem(PROBLEM)
    return used


def _draw_server(number: int, server: FoundServer) -> str:
    left, middle, right = st.columns([2, 3, 1], vertical_alignment="center")
    address = server.address.removeprefix("http://").removesuffix("/v1")
    left.markdown(f"**{escape_markdown(server.name)}** · {escape_markdown(address)}")
    models = {model.name: model for model in server.models}
    chosen = middle.selectbox(
        f"Model of {server.name}",
        list(models),
        format_func=lambda name: _describe_model(models[name]),
        key=f"local_models.model.{number}",
        label_visibility="collapsed",
    )
    if right.button(USE_LABEL, key=f"local_models.use.{number}", width="stretch"):
        return _put_in_use(served_roster(server, models[str(chosen)]))
    return ""


def _describe_model(model: ServedModel) -> str:
    return f"{model.name} · {model.window:,} tokens" if model.window else model.name


def _put_in_use(roster: RosterConfig) -> str:
    """Save the roster for the project's new checks; return its name, empty after a problem."""
    with store_problem(PROBLEM):
        with state.open_store() as store, store.writing():
            project = state.get_project(store)
            person = state.require_role(
                store, project.id, "admin", "choose the models of new checks"
            )
            newest = store.rosters.newest(roster.name)
            if roster.name not in SHIPPED_ROSTERS and (newest is None or newest.sheet != roster):
                store.rosters.save(roster, person, time.time())
            store.projects.save(replace(project, roster=roster.name))
        st.session_state.pop("new.roster", None)  # New check begins with the project's
        return roster.name
    return ""


def draw_standings(roster_config: RosterConfig) -> None:
    """Draw how the deciding models did in the judge test, and whether a lead lets them count."""
    with state.open_store() as store:
        project = state.get_project(store)
        book = PromptBook(store.prompt_edits.of_project(project.id))
        models = list_deciding_models(roster_config)
        standings = [load_standing(store, project.id, agent, book) for agent in models]
    for standing in standings:
        _draw_standing(standing)


def _draw_standing(standing: ModelStanding) -> None:
    name = escape_markdown(standing.agent.model.split("/", 1)[-1])
    if standing.result is None:
        st.caption(
            f":material/help: {name} has not taken the judge test yet: “Test every role” asks it "
            "about twelve fixed claims."
        )
        return
    told = f"{escape_markdown(standing.words)}, {format_time(standing.result.at)}"
    if standing.has_passed:
        st.caption(f":material/check_circle: {name} passed the judge test: {told}.")
        return
    if not standing.has_failed:
        st.caption(
            f":material/help: {name} has not taken the judge test with this prompt: {told}. “Test "
            "every role” asks it anew."
        )
        return
    words = f"{name} failed the judge test: {told}; {MIN_RIGHT_ANSWERS} are needed."
    left, right = st.columns([4, 2], vertical_alignment="center")
    counts = bool(standing.waiver)
    rest = (
        escape_markdown(standing.waiver) or "It may speak, but its verdicts are shown as Unclear."
    )
    left.warning(f"{words} {rest}")
    if not has_role("lead"):
        return
    with right:
        draw_button(
            "Do not count its verdicts" if counts else "Count its verdicts here",
            f"judge_test.{'enforce' if counts else 'waive'}.{standing.key}",
            _waive, standing, not counts,
        )  # fmt: skip


def _waive(standing: ModelStanding, counts: bool) -> None:
    with store_problem(PROBLEM), state.open_store() as store, store.writing():
        project = state.get_project(store)
        person = state.require_role(store, project.id, "lead", "decide whose verdicts count")
        words = f"{person} lets its verdicts count in this project." if counts else ""
        save_waiver(store, project.id, standing, words)
