"""Puts things on the page: only markup of our builder, and long lists a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import streamlit as st

from components.markup import Html

Item = TypeVar("Item")
A_PAGE = 20


def show(markup: Html) -> None:
    """Draw the markup; nothing for none."""
    if not isinstance(markup, Html):
        raise TypeError("only markup from components.markup may be drawn")
    if markup:
        st.html(markup)


def paged(items: Sequence[Item], key: str) -> Sequence[Item]:
    """The page of a list that is open; a switch appears above it when there are several."""
    pages = -(-len(items) // A_PAGE)
    if pages < 2:
        return items
    chosen = int(st.pagination(pages, key=f"{key}.page") or 1)
    st.caption(f"{len(items)} in all, {A_PAGE} a page")
    return items[(chosen - 1) * A_PAGE : chosen * A_PAGE]


def open_run(run_id: str) -> None:
    """Go to a run's page; the browser's Back leads to this page as it stands.

    Streamlit puts the new parameters into this page's address first, and that is where Back leads:
    what this page needs must be among them.
    """
    st.switch_page("pages/check/run.py", query_params={**st.query_params, "run": run_id})


def rows_chosen(picked: Mapping[str, Any]) -> list[int]:
    """Rows of a table that were chosen by their box or by a click on any of their cells."""
    selection = picked["selection"]
    return [*selection["rows"], *(row for row, _ in selection["cells"])]
