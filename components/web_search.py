"""Web search in Settings: which provider, what it needs, who is told what, and a test."""

from __future__ import annotations

import streamlit as st

from components import state
from components.key_fields import draw_forget, draw_key_field
from components.key_table import WHERE
from components.words import escaped
from core.concurrency import Stop
from core.errors import ReviewError
from core.models.keys import SEARCH_KEY
from core.tools.web_search import (
    PROVIDERS,
    WHO_IS_TOLD,
    WebChoice,
    save_web_choice,
    web_choice,
)

FIELD = "settings.web"
PROBLEM, TRIED = f"{FIELD}.problem", f"{FIELD}.tried"
ABOUT = (
    "An audit's search looks through a project's own documents. Where these hardly speak of a "
    "statement it can ask the web too, through one provider, for all projects. It reads the "
    "provider's snippets, or how Wikipedia's articles begin; the pages that are found are never "
    "fetched. How many searches a run may send, and how long results are kept, stands under Limits."
)
SENT = "Each search sends a statement's words, which may come from your documents, to {who}."
INSIDE = (
    "This one address may lie on this computer or in your own network; nothing else inside is ever "
    "asked. Its settings.yml must list json under search.formats."
)


def draw_web_search() -> None:
    """The choice as it stands, fields for another, and a button that tries it."""
    st.subheader("Web search", anchor=False)
    st.caption(ABOUT)
    stored = _stored()
    names = list(PROVIDERS)
    provider = st.selectbox(
        "Provider",
        names,
        index=names.index(stored.provider),
        format_func=lambda name: PROVIDERS[name],
        key=f"{FIELD}.provider",
    )
    if provider == "google":
        _draw_google(stored)
    if provider == "searxng":
        st.text_input(
            "The server's address",
            value=stored.address,
            key=f"{FIELD}.address",
            placeholder="https://search.example.org",
            help=INSIDE,
        )
    if provider:
        who = WHO_IS_TOLD[provider]
        st.info(escaped(SENT.format(who=who)), icon=":material/outgoing_mail:")
    with st.container(horizontal=True):
        st.button("Save", key=f"{FIELD}.save", icon=":material/save:", on_click=_save)
        if stored.provider:
            st.button(
                "Test",
                key=f"{FIELD}.test",
                icon=":material/network_check:",
                help="One search for “Wikipedia” at the provider that is saved.",
                on_click=_try,
            )
    _draw_outcome()


def _draw_google(stored: WebChoice) -> None:
    """The engine's cx, and a field for the key where nobody has set it."""
    st.text_input(
        "The engine's cx",
        value=stored.cx,
        key=f"{FIELD}.cx",
        help="From the engine's control panel at programmablesearchengine.google.com.",
    )
    place = state.keys().where(SEARCH_KEY)
    if place is None:
        draw_key_field(SEARCH_KEY, FIELD)
        return
    st.caption(escaped(f"{SEARCH_KEY}: {WHERE[place]}"))
    if place == "typed":
        draw_forget(SEARCH_KEY, FIELD)


def _stored() -> WebChoice:
    try:
        with state.open_store() as store:
            return web_choice(store)
    except ReviewError as error:
        st.error(escaped(str(error)))
        return WebChoice()


def _draw_outcome() -> None:
    """What came of the last click."""
    if problem := st.session_state.pop(PROBLEM, ""):
        st.error(escaped(problem))
    tried_words = st.session_state.pop(TRIED, None)
    if tried_words is None:
        return
    works, words = tried_words
    show = st.success if works else st.error
    show(escaped(words))


def _save() -> None:
    typed = {
        name: str(st.session_state.get(f"{FIELD}.{name}") or "")
        for name in ("provider", "address", "cx")
    }
    try:
        with state.open_store() as store, store.writing():
            store.projects.require_for_all(state.person(store), "admin", "choose a web search")
            save_web_choice(store, WebChoice(**typed))
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)
        return
    st.toast("Saved.", icon=":material/check:")


def _try() -> None:
    """By a click alone: a rerun asks nobody."""
    from core.tools.web_search import tried

    try:
        with state.open_store() as store:
            store.projects.require_for_all(state.person(store), "admin", "test the web search")
            choice = web_choice(store)
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)
        return
    st.session_state[TRIED] = tried(choice, state.keys(), Stop())
