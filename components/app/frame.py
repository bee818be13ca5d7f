"""What surrounds every page: styles, menu, login, the list of shortcuts, error messages.

Pages without an icon are not in the menu; links lead to them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Literal

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from components.app import login, state
from components.app.login import remember
from components.widgets.controls import ASSETS, component, problem_shown
from components.widgets.wording import escaped
from core.runtime.errors import NotAllowed, ReviewError

# By section: each page's script, title and icon name.
MENU: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Check": (
        ("pages/check/new.py", "New check", "add"),
        ("pages/check/history.py", "History", "history"),
        ("pages/check/many.py", "Batch check", "table_rows"),
        ("pages/check/compare.py", "Compare", "compare"),
        ("pages/check/table.py", "Checked table", ""),
        ("pages/check/run.py", "Run", ""),
        ("pages/check/replay.py", "Replay", ""),
    ),
    "Review": (
        ("pages/review/pending.py", "Review", "checklist"),
        ("pages/review/label.py", "Label", ""),
        ("pages/review/curate.py", "Adjudicate", "gavel"),
        ("pages/review/settle.py", "Adjudicate a case", ""),
        ("pages/review/agreement.py", "Agreement", "handshake"),
    ),
    "Learn": (
        ("pages/learn/retrain.py", "Retrain", "model_training"),
        ("pages/learn/confidence.py", "Calibration", "speed"),
        ("pages/learn/spans.py", "Span tuning", "border_color"),
        ("pages/learn/reliability.py", "Reliability", "balance"),
    ),
    "Set up": (
        ("pages/setup/project.py", "Project", "group"),
        ("pages/setup/library.py", "Library", "folder"),
        ("pages/setup/exchange.py", "Import / export", "swap_vert"),
        ("pages/setup/settings.py", "Settings", "settings"),
    ),
}
FIRST = "pages/check/new.py"


def pages() -> dict[str, list[StreamlitPage]]:
    """Return the pages by section for `st.navigation`; those without an icon are hidden."""
    return {
        section: [
            st.Page(
                path,
                title=title,
                icon=f":material/{icon}:" if icon else None,
                default=path == FIRST,
                visibility="visible" if icon else "hidden",
            )
            for path, title, icon in entries
        ]
        for section, entries in MENU.items()
    }


def menu() -> Literal["sidebar", "hidden"]:
    """Return where the menu is drawn; it is hidden from people who may see no page."""
    return "sidebar" if state.is_admitted() else "hidden"


@contextlib.contextmanager
def frame() -> Iterator[None]:
    """Draw everything around the page; stop for people who are not logged in or have no role."""
    st.html(ASSETS / "app.css")
    st.logo(ASSETS / "logo.svg", size="large", icon_image=ASSETS / "icon.png")
    if not _draw_login_or_sidebar():
        st.stop()
    with problem_shown():
        yield


def _draw_login_or_sidebar() -> bool:
    """Return True if the person may see pages; else draw the login or say why not."""
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
        with contextlib.suppress(ReviewError):  # a provider may let in a person without a name
            login.draw_log_out()
        return False
    with st.sidebar:
        st.caption(escaped(f"{project.name} · {person}"))
        if not login.is_on():
            remember(person)
        login.draw_log_out()
    return True


def draw_keys(keys: Mapping[str, str], key: str, place: str) -> None:
    """Draw the button that lists keyboard shortcuts; a new `place` scrolls the page to its top."""
    component("keys")(key=key, data={"keys": list(keys.items()), "place": place})


def page_title(title: str, words: str = "") -> None:
    """Draw the page's heading with a line under it."""
    st.title(title, anchor=False)
    if words:
        st.caption(words)
