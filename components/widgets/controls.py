"""Buttons, links, downloads and tables of all screens, and problems where they belong."""

from __future__ import annotations

import contextlib
import mimetypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

from components.widgets.wording import escaped
from core.runtime.errors import ReviewError

ASSETS = Path(__file__).parent.parent / "assets"


@cache
def component(name: str) -> Callable[..., Any]:
    """A component of the assets of that name; registered once, or Streamlit warns."""
    names = ("editor", name) if name.endswith("_editor") else (name,)
    files = {kind: [ASSETS / f"{n}.{kind}" for n in names] for kind in ("html", "css", "js")}
    texts = {
        kind: "".join(file.read_text(encoding="utf-8") for file in own if file.exists())
        for kind, own in files.items()
    }
    parts = {kind: text for kind, text in texts.items() if text}
    made: Callable[..., Any] = st.components.v2.component(
        f"counterpoint_{name}", isolate_styles=False, **parts
    )
    return made


def button(
    label: str, key: str, act: Callable[..., None], *args: object, icon: str = "", **options: Any
) -> bool:
    """A button that calls `act(*args)` when it is pressed; `icon` is a Material symbol's name."""
    sign = f":material/{icon}:" if icon else None
    return st.button(label, key=key, on_click=act, args=args, icon=sign, **options)


def link(page: str, label: str, icon: str, **parameters: str) -> None:
    """A link to a page of ours, with the parameters of its address."""
    st.page_link(page, label=label, icon=f":material/{icon}:", query_params=parameters)


def download(
    label: str,
    data: str | bytes | Callable[[], str | bytes],
    file_name: str,
    key: str,
    icon: str = "download",
    **options: Any,
) -> None:
    """A button that saves a file, made when it is asked for; the page is not drawn anew."""
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


def table(rows: Sequence[Mapping[str, Any]], key: str | None = None, **options: Any) -> None:
    """A table to read, as high as its rows."""
    st.dataframe(rows, key=key, hide_index=True, **{"height": "content"} | options)


def choice_table(rows: Sequence[Mapping[str, Any]], key: str, **options: Any) -> int | None:
    """A table whose rows can be opened by their box or a click on any cell; the one that was."""
    picked = st.dataframe(
        rows,
        key=key,
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        hide_index=True,
        **{"height": "content"} | options,
    )
    selection = picked["selection"]
    chosen = [*selection["rows"], *(row for row, _ in selection["cells"])]
    return chosen[0] if chosen and chosen[0] < len(rows) else None


def ask(key: str, about: object) -> None:
    """Ask before something is done; `about` nothing takes the question back."""
    st.session_state[key] = about


def draw_question(
    words: str, label: str, key: str, act: Callable[..., None], *args: object, asked: str
) -> None:
    """The question that was asked under `asked`: the button that does it, and one that does not."""
    with st.container(border=True):
        st.markdown(words)
        with st.container(horizontal=True):
            button(label, f"{key}.sure", act, *args, type="primary")
            button("Keep", f"{key}.keep", ask, asked, None)


@contextlib.contextmanager
def problem_kept(key: str) -> Iterator[None]:
    """Keep what a person can mend under `key`, for `show_problem` to show later."""
    try:
        yield
    except ReviewError as error:
        st.session_state[key] = str(error)


def show_problem(key: str) -> None:
    """Show what was kept under `key`, once."""
    if problem := st.session_state.pop(key, ""):
        st.error(escaped(problem), icon=":material/error:")


@contextlib.contextmanager
def problem_shown() -> Iterator[None]:
    """Show at once what a person can mend."""
    try:
        yield
    except ReviewError as error:
        st.error(escaped(str(error)), icon=":material/error:")


def open_run(run_id: str) -> None:
    """Go to a run's page; the browser's Back leads to this page as it stands.

    Streamlit puts the new parameters into this page's address first, and that is where Back leads:
    what this page needs must be among them.
    """
    st.switch_page("pages/check/run.py", query_params={**st.query_params, "run": run_id})
