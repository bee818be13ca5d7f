"""What surrounds every page: styles, menu, login, the list of shortcuts, error messages.

Pages without an icon are not in the menu; links lead to them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Literal
from urllib.parse import unquote, urlencode, urlsplit

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from components.app import login, state
from components.app.login import remember_name
from components.app.sample import draw_sample_bar, follow_link
from components.widgets.controls import ASSETS, draw_link, get_component, show_problems
from components.widgets.wording import clip_text, escape_markdown
from core.runtime.errors import NotAllowed, ReviewError

# By section: each page's script, title and icon name.
MENU: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Check": (
        ("pages/check/new.py", "New check", "add"),
        ("pages/check/history.py", "History", "history"),
        ("pages/check/batch.py", "Batch check", "table_rows"),
        ("pages/check/compare.py", "Compare", "compare"),
        ("pages/check/table.py", "Checked table", ""),
        ("pages/check/run.py", "Run", ""),
        ("pages/check/replay.py", "Replay", ""),
    ),
    "Review": (
        ("pages/review/pending.py", "Review", "checklist"),
        ("pages/review/label.py", "Label", ""),
        ("pages/review/adjudicate.py", "Adjudicate", "gavel"),
        ("pages/review/adjudicate_case.py", "Adjudicate a case", ""),
        ("pages/review/agreement.py", "Agreement", "handshake"),
    ),
    "Learn": (
        ("pages/learn/retrain.py", "Retrain", "model_training"),
        ("pages/learn/calibration.py", "Calibration", "speed"),
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
DEFAULT_PAGE = "pages/check/new.py"
HISTORY_PAGE = "pages/check/history.py"
CLAIM_CHARACTERS = 40  # of a claim, in the heading and the tab of its page
# Addresses that people may have kept; all others are the script's name.
URL_PATHS = {
    "pages/check/batch.py": "many",
    "pages/review/adjudicate.py": "curate",
    "pages/review/adjudicate_case.py": "settle",
    "pages/learn/calibration.py": "confidence",
}


def list_pages() -> dict[str, list[StreamlitPage]]:
    """Return the pages by section for `st.navigation`; those without an icon are hidden.

    An address that is none of theirs gets a page that says so: Streamlit would open the first one.
    """
    pages = {
        section: [
            st.Page(
                path,
                title=title,
                url_path=URL_PATHS.get(path),
                icon=f":material/{icon}:" if icon else None,
                default=path == DEFAULT_PAGE,
                visibility="visible" if icon else "hidden",
            )
            for path, title, icon in entries
        ]
        for section, entries in MENU.items()
    }
    address = _read_page_address()
    if address not in {page.url_path for section in pages.values() for page in section}:
        lost = st.Page(draw_lost, title="Not found", url_path=address, visibility="hidden")
        pages["Not found"] = [lost]
    return pages


def draw_lost() -> None:
    """Say that there is no page at this address, and where to go instead."""
    draw_page_title("Page not found")
    words = f"There is no page at “/{_read_page_address()}”. The menu lists all pages."
    draw_not_found(words, DEFAULT_PAGE)


def _read_page_address() -> str:
    """Return the last part of the address, by which Streamlit knows its pages; empty: the first."""
    return unquote(urlsplit(st.context.url or "").path).rsplit("/", 1)[-1]


def draw_not_found(words: str, page: str) -> None:
    """Say what was not found at an address, with a link to the page that leads on."""
    st.info(escape_markdown(words), icon=":material/search_off:")
    title, icon = next((t, i) for pages in MENU.values() for path, t, i in pages if path == page)
    draw_link(page, title, icon)


def open_linked_run() -> None:
    """Go on to the run that the address of the first page names: `/?run=ID`.

    The browser replaces the address: after `st.switch_page`, Back would lead here and on again.
    """
    if run_id := st.query_params.get("run"):
        address = json.dumps(f"run?{urlencode({'run': run_id})}")
        st.html(f"<script>location.replace({address})</script>", unsafe_allow_javascript=True)
        st.stop()


def menu_position() -> Literal["sidebar", "hidden"]:
    """Return where the menu is drawn; it is hidden from people who may see no page."""
    return "sidebar" if state.has_access() else "hidden"


@contextlib.contextmanager
def draw_frame() -> Iterator[None]:
    """Draw everything around the page; stop for people who are not logged in or have no role."""
    st.html(ASSETS / "app.css")
    st.html(ASSETS / "shortcuts.html", unsafe_allow_javascript=True)
    st.logo(ASSETS / "logo.svg", size="large", icon_image=ASSETS / "icon.png")
    if not _draw_login_or_sidebar():
        st.stop()
    with show_problems():
        draw_sample_bar()
        yield


def _draw_login_or_sidebar() -> bool:
    """Return True if the person may see pages; else draw the login or say why not."""
    try:
        if login.is_logged_out():
            login.draw_login()
            return False
        follow_link()
        with state.open_store() as store:
            person = state.get_person(store)
            project = state.get_project(store)
    except NotAllowed as error:
        st.title("Counterpoint", anchor=False)
        st.info(escape_markdown(str(error)), icon=":material/group:")
        login.draw_logout()
        return False
    except ReviewError as error:
        st.title("Counterpoint", anchor=False)
        st.error(escape_markdown(str(error)), icon=":material/error:")
        with contextlib.suppress(ReviewError):  # a provider may let in a person without a name
            login.draw_logout()
        return False
    with st.sidebar:
        st.caption(escape_markdown(f"{project.name} · {person}"))
        if not login.is_login_required():
            remember_name(person)
        login.draw_logout()
    return True


def draw_shortcut_list(keys: Mapping[str, str], key: str, place: str) -> None:
    """Draw the button that lists keyboard shortcuts; a new `place` scrolls the page to its top."""
    get_component("keys")(key=key, data={"keys": list(keys.items()), "place": place})


def draw_page_title(title: str, words: str = "", claim: str = "") -> None:
    """Draw the page's heading with a line under it, and name the browser's tab alike.

    Both begin with the first words of the page's `claim`, if it has one.
    """
    if claim:
        title = f"{clip_text(claim, CLAIM_CHARACTERS)} · {title}"
    st.set_page_config(page_title=f"{title} · Counterpoint")
    st.title(escape_markdown(title), anchor=False)
    if words:
        st.caption(words)
