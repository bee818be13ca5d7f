"""What History shows: the filters, kept in the address so that a view can be shared."""

from __future__ import annotations

import re
from collections.abc import Mapping

import streamlit as st

from components.words import LABEL_WORDS, STATUS_WORDS, protocol_words
from core.checking import PROTOCOLS
from core.documents.language import language_of
from core.documents.terms import query_terms
from core.store.run_filter import RunFilter

CORRECTED = {"": None, "corrected": True, "not corrected": False}
SEARCH = "search"
PAGE_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
ANY = {"": "any"}
CHOICES: Mapping[str, Mapping[str, str]] = {  # the words of each value
    "label": ANY | dict(LABEL_WORDS),
    "status": ANY | dict(STATUS_WORDS),
    "protocol": ANY | {name: protocol_words(name, short=True) for name in PROTOCOLS},
    "people": {value: value or "any" for value in CORRECTED},
}


def draw_filters() -> RunFilter:
    """The filters; Back leads to them too.

    Not by `bind="query-params"`: `open_run` must hand the address on, and Streamlit refuses to set
    parameters that are bound.
    """
    _take_from_address()
    first, *columns = st.columns([3, 2, 2, 3, 2])
    search = first.text_input("Search", key="history.search", placeholder="Words of the claim")
    chosen = {
        name: column.selectbox(
            name.capitalize(), list(words), format_func=words.__getitem__, key=f"history.{name}"
        )
        or ""
        for column, (name, words) in zip(columns, CHOICES.items(), strict=True)
    }
    _keep_in_address()
    wanted = query_terms(search, language_of(search)) if search else []
    if search.strip() and not wanted:
        st.caption("The search holds no word that can be looked for; all runs are shown.")
    return RunFilter(
        terms=tuple(wanted),
        label=chosen["label"],
        status=chosen["status"],
        corrected=CORRECTED[chosen["people"]],
        protocol=chosen["protocol"],
    )


def _take_from_address() -> None:
    """What the address says, for a page that is opened; what is no choice is left out."""
    for name in (*CHOICES, SEARCH):
        value = st.query_params.get(name, "")
        if f"history.{name}" not in st.session_state and value in CHOICES.get(name, [value]):
            st.session_state[f"history.{name}"] = value
    page = st.query_params.get("page", "")
    if "history.page" not in st.session_state and PAGE_NUMBER.fullmatch(page):
        st.session_state["history.page"] = int(page)


def _keep_in_address() -> None:
    for name in (*CHOICES, SEARCH, "page"):
        value = str(st.session_state.get(f"history.{name}") or "")
        value = "" if (name, value) == ("page", "1") else value
        if value and st.query_params.get(name) != value:
            st.query_params[name] = value
        elif not value and name in st.query_params:
            del st.query_params[name]
