"""Fields for keys that are needed and not at hand; what is typed lives only in this session.

A key leaves its field at once: neither a field nor anything else on a page ever holds it again.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components import state
from components.words import escaped
from core.agents.sheet_rules import NAME_OF_KEY
from core.models.keys import key_names
from core.records import Plan
from core.seats import RosterSheet


def draw_plan_keys(plan: Plan, page: str) -> None:
    """A field for each key that the plan's roster needs and nobody has given."""
    if plan.sheet is not None:
        draw_sheet_keys(plan.sheet, page)


def draw_sheet_keys(sheet: RosterSheet, page: str) -> None:
    """The same for a roster; `page` sets the fields' names apart."""
    draw_keys_of([sheet], page)


def draw_keys_of(sheets: Sequence[RosterSheet], page: str) -> None:
    """The same for several rosters, each key once."""
    keys = state.keys()
    missing: dict[str, None] = {}
    typed: dict[str, None] = {}
    for _, seat in (own for sheet in sheets for own in sheet.seats()):
        if not seat.is_built_in:
            missing |= dict.fromkeys(keys.missing_for(seat))
            names = key_names(seat)
            typed |= dict.fromkeys(n for n in names if keys.where(n) == "typed")
    if missing:
        st.info(
            escaped(
                f"{'This roster needs' if len(sheets) == 1 else 'These rosters need'} "
                f"{', '.join(missing)}. Type it for this session (it is never "
                "stored, logged or shown), or set it in the environment or in "
                ".streamlit/secrets.toml and start again."
            ),
            icon=":material/key:",
        )
    for name in missing:
        draw_key_field(name, page)
    for name in typed:
        draw_forget(name, page)


def draw_forget(name: str, page: str) -> None:
    """A button that lets go of a typed key, so that another can be typed in its place."""
    st.button(
        escaped(f"Forget {name}"),
        key=f"{page}.forget.{name}",
        icon=":material/delete:",
        help="Typed in this session. Forget it to type another.",
        on_click=_forget,
        args=(name,),
    )


def _forget(name: str) -> None:
    st.session_state.pop(f"{state.KEY_FIELD}{name}", None)


def draw_key_field(name: str, page: str) -> None:
    """A password field that is empty again as soon as something was typed."""
    st.text_input(
        _label(name),
        type="password",
        key=f"{page}.key.{name}",
        on_change=_take,
        args=(name, page),
        placeholder="for this session only",
        autocomplete="off",
    )


def _label(name: str) -> str:
    """The name itself where Markdown has nothing to say to it: screen readers read it so."""
    return name if NAME_OF_KEY.fullmatch(name.strip("_")) else escaped(name)


def _take(name: str, page: str) -> None:
    """Move what was typed out of its field."""
    field = f"{page}.key.{name}"
    typed = str(st.session_state.get(field) or "").strip()
    st.session_state[field] = ""
    if typed:
        st.session_state[f"{state.KEY_FIELD}{name}"] = typed
        st.toast(f"{escaped(name)} is at hand for this session.", icon=":material/key:")
