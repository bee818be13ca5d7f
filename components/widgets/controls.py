"""Buttons, links, downloads, tables, confirmations and error messages shared by all pages."""

from __future__ import annotations

import contextlib
import mimetypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from components.widgets.wording import escape_markdown
from core.runtime.errors import ReviewError

SAVED_WORDS = "saved.words"  # of what was saved last, until the page has said so
LINK_PARAMETERS = "link.parameters"  # of every link, as the page's frame has set them
ASSETS = Path(__file__).parent.parent / "assets"


@cache
def get_component(name: str) -> Callable[..., Any]:
    """Register the component with files of that name; once, or Streamlit warns."""
    names = ("editor", name) if name.endswith(("_editor", "_reader")) else (name,)
    parts: dict[str, str] = {}
    for kind in ("html", "css", "js"):
        files = [file for stem in names if (file := ASSETS / f"{stem}.{kind}").exists()]
        if text := "".join(file.read_text(encoding="utf-8") for file in files):
            parts[kind] = text
    mount: Callable[..., Any] = st.components.v2.component(
        f"counterpoint_{name}", isolate_styles=False, **parts
    )
    return mount


def draw_button(
    label: str, key: str, act: Callable[..., None], *args: object, icon: str = "", **options: Any
) -> bool:
    """Draw a button that calls `act(*args)` when pressed; `icon` is a Material symbol's name."""
    symbol = f":material/{icon}:" if icon else None
    return st.button(label, key=key, on_click=act, args=args, icon=symbol, **options)


def draw_link(page: str, label: str, icon: str = "", **parameters: str) -> None:
    """Draw a link to one of our pages, with these query parameters and the project's."""
    symbol = f":material/{icon}:" if icon else None
    query = st.session_state.get(LINK_PARAMETERS, {}) | parameters
    st.page_link(page, label=label, icon=symbol, query_params=query)


def draw_download(
    label: str,
    data: str | bytes | Callable[[], str | bytes],
    file_name: str,
    key: str,
    icon: str = "download",
    **options: Any,
) -> None:
    """Draw a button that saves a file, built when it is pressed; the page does not rerun."""
    st.download_button(
        label,
        data=data,
        file_name=file_name,
        mime=mimetypes.guess_type(file_name)[0],
        key=key,
        icon=f":material/{icon}:",
        on_click="ignore",
        **options,
    )


def draw_table(rows: Sequence[Mapping[str, Any]], key: str | None = None, **options: Any) -> None:
    """Draw a table to read, as high as its rows."""
    st.dataframe(rows, key=key, hide_index=True, **{"height": "content"} | options)


def draw_choice_table(rows: Sequence[Mapping[str, Any]], key: str, **options: Any) -> int | None:
    """Draw a table whose rows open by a checkbox or a click on a cell; return the chosen row."""
    event = st.dataframe(
        rows,
        key=key,
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        hide_index=True,
        **{"height": "content"} | options,
    )
    selection = event["selection"]
    chosen = [*selection["rows"], *(row for row, _ in selection["cells"])]
    return chosen[0] if chosen and chosen[0] < len(rows) else None


def ask_confirmation(key: str, about: object) -> None:
    """Ask for confirmation under `key`; `about` None withdraws the question."""
    st.session_state[key] = about


def draw_confirmation(
    words: str, label: str, key: str, act: Callable[..., None], *args: object, asked: str
) -> None:
    """Draw the confirmation asked for under `asked`: one button acts, the other cancels."""
    with st.container(border=True):
        st.markdown(words)
        with st.container(horizontal=True):
            draw_button(label, f"{key}.sure", act, *args, type="primary")
            draw_button("Keep", f"{key}.keep", ask_confirmation, asked, None)


@contextlib.contextmanager
def store_problem(key: str) -> Iterator[None]:
    """Store the message of a ReviewError under `key`, for `show_problem` to show later."""
    try:
        yield
    except ReviewError as error:
        st.session_state[key] = str(error)


def show_saved() -> None:
    """Show once that what was sent is saved, on the page that is open now."""
    if words := st.session_state.pop(SAVED_WORDS, ""):
        st.toast(words, icon=":material/check:")


def show_problem(key: str) -> None:
    """Show the message stored under `key`, once."""
    if problem := st.session_state.pop(key, ""):
        st.error(escape_markdown(problem), icon=":material/error:")


@contextlib.contextmanager
def show_problems() -> Iterator[None]:
    """Show the message of a ReviewError at once."""
    try:
        yield
    except ReviewError as error:
        st.error(escape_markdown(str(error)), icon=":material/error:")


def open_run(run_id: str) -> None:
    """Go to a run's page; the browser's Back leads to this page as it stands.

    Streamlit first writes the new parameters into this page's address, and Back leads there: what
    this page needs must be among them.
    """
    st.switch_page("pages/check/run.py", query_params={**st.query_params, "run": run_id})
