"""Language models on this computer, each one click away from the next check, and how they judge."""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from components.app import state
from components.widgets.controls import draw_button, show_problem, store_problem
from components.widgets.wording import escape_markdown, format_time
from core.agents.qualification import (
    MIN_RIGHT_ANSWERS,
    Qualification,
    list_deciding_models,
    load_qualification,
    trust_model,
    trusted_by,
)
from core.agents.rosters import SHIPPED_ROSTERS, served_roster
from core.llm.local_server import PROVIDER
from core.llm.prompting import PromptBook
from core.llm.servers import FoundServer, ServedModel, find_servers
from core.schema.rosters import AgentConfig, RosterConfig

PROBLEM = "local_models.problem"
NONE_FOUND = (
    "None found: Ollama, llama.cpp, LM Studio and vLLM were looked for at their usual ports. "
    "`make local-model` installs a very small one."
)


@st.cache_data(ttl=10, show_spinner=False)
def _servers() -> tuple[FoundServer, ...]:
    return find_servers()


def draw_local_models() -> str:
    """List what runs here with a button for each server; the roster just put in use, else empty."""
    st.subheader("Language models on this computer", anchor=False)
    servers = _servers()
    if not servers and PROVIDER not in SHIPPED_ROSTERS:
        st.caption(NONE_FOUND)
    used = ""
    for number, server in enumerate(servers):
        used = _draw_server(number, server) or used
    if PROVIDER in SHIPPED_ROSTERS:
        words, right = st.columns([4, 1], vertical_alignment="center")
        words.markdown("**SmolLM2-135M** · in the box: a real language model, but very small")
        if right.button("Use it", key="local_models.use.box", width="stretch"):
            used = _put_in_use(SHIPPED_ROSTERS[PROVIDER]) or used
    show_problem(PROBLEM)
    return used


def _draw_server(number: int, server: FoundServer) -> str:
    name, choice, right = st.columns([2, 3, 1], vertical_alignment="center")
    address = server.address.removeprefix("http://").removesuffix("/v1")
    name.markdown(f"**{escape_markdown(server.name)}** · {escape_markdown(address)}")
    models = {model.name: model for model in server.models}
    key = f"local_models.model.{number}"
    chosen = choice.selectbox(
        f"Model of {server.name}",
        list(models),
        format_func=lambda name: _model_words(models[name]),
        key=key,
        label_visibility="collapsed",
    )
    if right.button("Use it", key=f"local_models.use.{number}", width="stretch"):
        return _put_in_use(served_roster(server, models[str(chosen)]))
    return ""


def _model_words(model: ServedModel) -> str:
    return f"{model.name} · {model.window:,} tokens" if model.window else model.name


def _put_in_use(roster_config: RosterConfig) -> str:
    """Keep the roster, and have new checks of the project use it; its name, or empty."""
    with store_problem(PROBLEM):
        with state.open_store() as store, store.writing():
            project = state.get_project(store)
            person = state.require_role(
                store, project.id, "admin", "choose the models of new checks"
            )
            newest = store.rosters.newest(roster_config.name)
            if roster_config.name not in SHIPPED_ROSTERS and (
                newest is None or newest.sheet != roster_config
            ):
                store.rosters.save(roster_config, person, time.time())
            store.projects.save(replace(project, roster=roster_config.name))
        st.session_state.pop("new.roster", None)  # New check begins with the project's
        return roster_config.name
    return ""


def draw_qualifications(roster_config: RosterConfig) -> None:
    """Draw how the deciding models did in the judge test, and whether a lead lets them count."""
    with state.open_store() as store:
        project = state.get_project(store)
        book = PromptBook(store.prompt_edits.of_project(project.id))
        models = list_deciding_models(roster_config, book)
        found = {key: load_qualification(store, key) for key in models}
        trusted = {key: trusted_by(store, project.id, key) for key in models}
    for key, agent in models.items():
        _draw_qualification(key, agent, found[key], trusted[key])


def _draw_qualification(
    key: str, agent: AgentConfig, result: Qualification | None, trusted: str
) -> None:
    name = escape_markdown(agent.model.split("/", 1)[-1])
    if result is None:
        st.caption(
            f":material/help: {name} was not tested as a judge yet: “Test every role” asks it "
            "about twelve fixed claims."
        )
        return
    words = f"{name} as a judge: {escape_markdown(result.words)} ({format_time(result.at)})"
    if result.has_passed:
        st.caption(f":material/check_circle: {words}.")
        return
    left, right = st.columns([4, 2], vertical_alignment="center")
    if trusted:
        left.warning(f"{words}; {MIN_RIGHT_ANSWERS} are needed. {escape_markdown(trusted)}")
        with right:
            draw_button("Do not count its verdicts", f"judge.distrust.{key}", _trust, key, False)
    else:
        left.warning(
            f"{words}; {MIN_RIGHT_ANSWERS} are needed. It may speak, but its verdicts are unclear."
        )
        with right:
            draw_button("Count its verdicts here", f"judge.trust.{key}", _trust, key, True)


def _trust(key: str, counts: bool) -> None:
    with store_problem(PROBLEM), state.open_store() as store, store.writing():
        project = state.get_project(store)
        person = state.require_role(store, project.id, "lead", "decide whose verdicts count")
        words = f"{person} lets its verdicts count in this project." if counts else ""
        trust_model(store, project.id, key, words)
