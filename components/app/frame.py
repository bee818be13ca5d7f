"""What surrounds every page: styles, menu, the door, the list of keys, errors in words.

Pages without a sign are not in the menu and are reached by links.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from components.app import login, state
from components.app.login import remember
from components.widgets.controls import ASSETS, component, problem_shown
from components.widgets.wording import escaped
from core.runtime.errors import NotAllowed, ReviewError


def draw_keys(keys: Mapping[str, str], key: str, place: str) -> None:
    """The list of keys behind its button; at another `place` the page is shown from its top."""
    component("keys")(key=key, data={"keys": list(keys.items()), "place": place})


# By section: a page's script, its title, its sign.
MENU: dict[str, list[tuple[str, str, str]]] = json.loads(
    Path(__file__).with_name("menu.json").read_text(encoding="utf-8")
)
FIRST = "pages/check/new.py"


def pages() -> dict[str, list[StreamlitPage]]:
    """All pages, as `st.navigation` takes them; a page without a sign is hidden."""
    return {
        section: [
            st.Page(
                path,
                title=title,
                icon=f":material/{sign}:" if sign else None,
                default=path == FIRST,
                visibility="visible" if sign else "hidden",
            )
            for path, title, sign in entries
        ]
        for section, entries in MENU.items()
    }


def menu() -> Literal["sidebar", "hidden"]:
    """Where the menu stands: nowhere for whoever may see none of its pages."""
    return "sidebar" if state.is_admitted() else "hidden"


@contextlib.contextmanager
def frame() -> Iterator[None]:
    """Draw what surrounds the page; nothing of it for whoever is not logged in or has no role."""
    st.html(ASSETS / "app.css")
    st.logo(ASSETS / "logo.svg", size="large", icon_image=ASSETS / "icon.png")
    if not _came_in():
        st.stop()
    with problem_shown():
        yield


def _came_in() -> bool:
    try:
        if login.is_outside():
            login.draw_door()
            return False
        with state.open_store() as store:
            person = state.person(store)
            project = state.project(store)
    except NotAllowed as error:
        st.title("Counterpoint", anchor=False)
        st.info(escaped(str(error)), icon=":material/group:")
        login.draw_log_out()
        return False
    except ReviewError as error:
        st.title("Counterpoint", anchor=False)
        st.error(escaped(str(error)), icon=":material/error:")
        with contextlib.suppress(ReviewError):  # a provider may have let in whom we cannot name
            login.draw_log_out()
        return False
    with st.sidebar:
        st.caption(escaped(f"{project.name} · {person}"))
        if not login.is_on():
            remember(person)
        login.draw_log_out()
    return True


def page_title(title: str, words: str = "") -> None:
    """The page's heading with a line under it."""
    st.title(title, anchor=False)
    if words:
        st.caption(words)
