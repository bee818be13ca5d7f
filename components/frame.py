"""What surrounds every page: styles, who is here, and errors in words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import streamlit as st

from components import state
from components.words import escaped
from core.errors import ReviewError

ASSETS = Path(__file__).parent / "assets"


@contextlib.contextmanager
def frame() -> Iterator[None]:
    """Draw the styles and the sidebar's foot, run the page, show what a person can mend."""
    st.html(ASSETS / "app.css")
    st.logo(ASSETS / "logo.svg", size="large", icon_image=ASSETS / "icon.png")
    try:
        with state.open_store() as store:
            project, person = state.project(store), state.person(store)
        with st.sidebar:
            st.caption(escaped(f"{project.name} · {person}"))
        yield
    except ReviewError as error:
        st.error(escaped(str(error)), icon=":material/error:")


def page_title(title: str, words: str = "") -> None:
    """The page's heading with a line under it."""
    st.title(title, anchor=False)
    if words:
        st.caption(words)
