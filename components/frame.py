"""What surrounds every page: styles, who is here, the door, and errors in words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import streamlit as st

from components import login, state
from components.remembered import remember
from components.words import escaped
from core.errors import NotAllowed, ReviewError

ASSETS = Path(__file__).parent / "assets"


def menu() -> Literal["sidebar", "hidden"]:
    """Where the menu stands: nowhere for whoever may see none of its pages."""
    return "sidebar" if state.is_admitted() else "hidden"


@contextlib.contextmanager
def frame() -> Iterator[None]:
    """Draw the styles and the sidebar's foot, run the page, show what a person can mend.

    Whoever is not logged in, or has no role, sees neither the page nor any project's name.
    """
    st.html(ASSETS / "app.css")
    st.logo(ASSETS / "logo.svg", size="large", icon_image=ASSETS / "icon.png")
    if not _came_in():
        st.stop()
    try:
        yield
    except ReviewError as error:
        st.error(escaped(str(error)), icon=":material/error:")


def _came_in() -> bool:
    """Draw who is here in the sidebar; else say what is in the way."""
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
