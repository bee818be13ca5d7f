"""Fields for keys that a roster needs and that are not at hand; they live only in this session."""

from __future__ import annotations

import streamlit as st

from components import state
from components.words import escaped
from core.models.keys import key_names
from core.records import Plan
from core.seats import RosterSheet


def draw_key_fields(plan: Plan) -> None:
    """A password field for each key that the plan's roster needs and nobody has given."""
    if plan.sheet is not None:
        draw_sheet_keys(plan.sheet)


def draw_sheet_keys(sheet: RosterSheet) -> None:
    """The same for a roster that is only being looked at."""
    keys = state.keys()
    names = dict.fromkeys(
        name for _, seat in sheet.seats() if not seat.is_built_in for name in key_names(seat)
    )
    for name in names:
        if keys.where(name) in (None, "typed"):
            st.text_input(
                escaped(name),
                type="password",
                key=f"{state.KEY_FIELD}{name}",
                help="Kept in this browser session's memory only; never stored, logged or shown. "
                "Set it in the environment or in .streamlit/secrets.toml to keep it.",
                persist_state="session",
                autocomplete="off",
            )
