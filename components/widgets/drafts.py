"""Drafts: what a person typed and has not saved, stored in the home so that no reload loses it.

Streamlit sends a text only when its field is left. A component of ours also sends what is being
typed, shortly after each pause, and can put the cursor into a field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from components.app import state
from components.widgets.controls import get_component
from core.review.people import load_draft, save_draft

PAUSE_MILLISECONDS = 500
FIELD_WAIT_MILLISECONDS = 10_000
NEW_CHECK, CHECK_TEXTS = "new", ("response", "question")  # a page, and its fields


def load_draft_values(name: str) -> dict[str, Any]:
    """Return the current person's draft of that name; empty if there is none."""
    with state.open_store() as store:
        values = _parse_values(load_draft(store, state.get_person(store), name))
    st.session_state.setdefault(f"{name}.stored", values)
    return values


def save_draft_values(name: str, values: Mapping[str, Any]) -> None:
    """Store plain values as the current person's draft of that name; empty values delete it.

    Only fields that this session changed are written, and a draft to which another window of the
    person has written since is not deleted.
    """
    own: dict[str, Any] = json.loads(json.dumps(values))
    with state.open_store() as store, store.writing():
        person = state.get_person(store)
        stored = _parse_values(load_draft(store, person, name))
        before = st.session_state.get(f"{name}.stored", stored)
        if own or stored == before:
            others = {f: value for f, value in stored.items() if own.get(f) == before.get(f)}
            merged = own | others
            save_draft(store, person, name, json.dumps(merged) if merged else "")
    st.session_state[f"{name}.stored"] = own


def restore_page_draft(page: str) -> dict[str, Any] | None:
    """Return a page's draft in this project when a session first opens the page; else None."""
    with state.open_store() as store:
        name = f"{page}.{state.get_project(store).id}"
    if st.session_state.get(f"{page}.draft") == name:
        return None
    values = load_draft_values(name)
    st.session_state[f"{page}.draft"] = name
    return values


def is_page_open(page: str) -> bool:
    """Return True if this session has opened the page, so that its fields are in force."""
    return f"{page}.draft" in st.session_state


def list_draft_texts(draft: Mapping[str, Any], field: str) -> list[str]:
    """Return the texts that a draft lists in `field`; none if it holds something else."""
    items = draft.get(field)
    return [item for item in items if isinstance(item, str)] if isinstance(items, list) else []


def save_page_draft(page: str, values: dict[str, Any]) -> None:
    """Store what stands on a page whose draft was restored; empty `values` end the draft."""
    name: str = st.session_state[f"{page}.draft"]
    if values != st.session_state[f"{name}.stored"]:
        save_draft_values(name, values)


def list_check_texts() -> dict[str, str]:
    """Return the texts on New check."""
    return {name: str(st.session_state.get(f"{NEW_CHECK}.{name}") or "") for name in CHECK_TEXTS}


def save_check_draft(sources: Sequence[str]) -> None:
    """Store New check as it is; a text that was checked is no longer a draft."""
    texts = list_check_texts()
    is_open = any(texts.values()) or sources
    if not is_open or texts == st.session_state.get(f"{NEW_CHECK}.checked"):
        save_page_draft(NEW_CHECK, {})
    else:
        save_page_draft(NEW_CHECK, texts | {"sources": list(sources)})


def _parse_values(text: str) -> dict[str, Any]:
    values = json.loads(text) if text else {}
    return values if isinstance(values, dict) else {}


@st.fragment
def watch_fields(
    key: str,
    fields: Mapping[str, str],
    on_typed: Callable[[dict[str, str]], None],
    *,
    focus: str = "",
    stamp: float = 0.0,
    shortcuts: str = "",
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Call `on_typed` with what stands in the fields while it is typed.

    Args:
        key: the component's own key.
        fields: maps a name for each field to the key of its widget, drawn or not.
        on_typed: is called with the text of each field by those names.
        focus: the key of the widget that gets the cursor.
        stamp: a time; each later one moves the cursor once.
        shortcuts: keys that, with Alt, open the field to focus; what is typed before it exists
            goes into it.
        is_over: tells that the fields are done with, so that the page must be drawn again.
    """
    if is_over():  # what is typed overtook the run that would have done so
        st.rerun()

    def report_typed() -> None:
        typed = st.session_state[key].get("typed")
        if isinstance(typed, dict):
            on_typed({name: str(typed[name]) for name in fields if name in typed})

    with st.container(key=f"drafts-{key}"):  # app.css takes it out of the flow
        get_component("drafts")(
            key=key,
            data={
                "fields": {name: get_css_class(widget) for name, widget in fields.items()},
                "focus": get_css_class(focus),
                "stamp": stamp,
                "pause": PAUSE_MILLISECONDS,
                "shortcuts": shortcuts,
                "patience": FIELD_WAIT_MILLISECONDS,
            },
            default={"typed": None},
            on_typed_change=report_typed,
        )


def get_css_class(key: str) -> str:
    """Return the key as Streamlit writes it into the CSS class of the widget's element."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in key)
