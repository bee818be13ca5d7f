"""What a person typed and has not saved: kept in the home, so that no reload loses it.

Streamlit tells the server of a text only when its field is left. A component of our own therefore
also tells it what is being typed, shortly after each pause, and can put the cursor into a field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from components.app import state
from components.widgets.controls import component
from core.review.people import draft_of, keep_draft

PAUSE_MILLISECONDS = 500
PATIENCE_MILLISECONDS = 10_000


def kept(name: str) -> dict[str, Any]:
    """What the person who is here left under that name; empty when there is nothing."""
    with state.open_store() as store:
        return _values(draft_of(store, state.person(store), name))


def keep(name: str, values: Mapping[str, Any]) -> None:
    """Keep plain values under a name, for the person who is here; empty values let go of them."""
    with state.open_store() as store:
        keep_draft(store, state.person(store), name, json.dumps(values) if values else "")


def restored(page: str) -> dict[str, Any] | None:
    """What was left on a page in this project, when a session first comes to it; else None."""
    with state.open_store() as store:
        name = f"{page}.{state.project(store).id}"
    if st.session_state.get(f"{page}.draft") == name:
        return None
    found = kept(name)
    st.session_state[f"{page}.draft"] = name
    st.session_state[f"{page}.left"] = found
    return found


def names_in(draft: Mapping[str, Any], field: str) -> list[str]:
    """The texts that a draft lists there; none where it holds something else."""
    found = draft.get(field)
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def follow(page: str, values: dict[str, Any]) -> None:
    """Keep what stands on a page whose draft was restored; `values` are empty when it has ended.

    Only what this session has changed is written: another tab may have typed something since, and
    a page that was empty all along says nothing about it.
    """
    name: str = st.session_state[f"{page}.draft"]
    left: dict[str, Any] = st.session_state[f"{page}.left"]
    if values == left:
        return
    with state.open_store() as store, store.writing():
        person = state.person(store)
        if values or _values(draft_of(store, person, name)) == left:
            keep_draft(store, person, name, json.dumps(values) if values else "")
    st.session_state[f"{page}.left"] = values


def _values(text: str) -> dict[str, Any]:
    values = json.loads(text) if text else {}
    return values if isinstance(values, dict) else {}


@st.fragment
def watch(
    key: str,
    fields: Mapping[str, str],
    on_typed: Callable[[dict[str, str]], None],
    *,
    focus: str = "",
    stamp: float = 0.0,
    shortcuts: str = "",
) -> None:
    """Tell `on_typed` what stands in the fields while it is typed.

    Args:
        key: the component's own key.
        fields: a name for each field to the key of its widget, drawn or not.
        on_typed: is called with a text for each of those names.
        focus: the key of the widget that gets the cursor.
        stamp: a moment; each later one moves the cursor once.
        shortcuts: keys that, with Alt, open the field to focus; what is typed until it is there
            goes into it.
    """

    def told() -> None:
        typed = st.session_state[key].get("typed")
        if isinstance(typed, dict):
            on_typed({name: str(typed[name]) for name in fields if name in typed})

    with st.container(key="drafts"):  # app.css takes it out of the flow
        component("drafts")(
            key=key,
            data={
                "fields": {name: _css(widget) for name, widget in fields.items()},
                "focus": _css(focus),
                "stamp": stamp,
                "pause": PAUSE_MILLISECONDS,
                "shortcuts": shortcuts,
                "patience": PATIENCE_MILLISECONDS,
            },
            default={"typed": None},
            on_typed_change=told,
        )


def _css(key: str) -> str:
    """The key as Streamlit writes it into the class of the widget's element."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in key)
