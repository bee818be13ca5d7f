"""Keys in Settings: which the rosters use, where each comes from, a field for what is missing.

A key that is typed leaves its field at once: it lives in the session's memory alone, and neither a
field nor anything else on the page ever holds it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import streamlit as st

from components import state
from components.key_fields import draw_forget, draw_key_field
from components.roster_table import table
from components.show import show
from core.agents.rosters import sheets_of
from core.models.keys import ADDRESS_KEY, Keys, key_names
from core.seats import RosterSheet

IN_A_ROW = 3
WHERE = {
    "typed": "✓ typed in this session",
    "secrets": "✓ .streamlit/secrets.toml",
    "environment": "✓ environment",
}
ALIAS = "✓ environment or secrets, under another usual name"
MISSING = "– missing"
ONLY_IF_ASKED = "– none; needed only where the address asks for one"
KEPT = (
    "A key typed here stays in this browser session's memory: it is never stored, logged or shown. "
    "To keep one, set it in the environment or in .streamlit/secrets.toml and start again."
)


@dataclass(frozen=True)
class KeyUse:
    """One key's name, the rosters that use it, and what to say of where it is."""

    name: str
    rosters: tuple[str, ...]
    words: str
    is_missing: bool


def draw_keys() -> None:
    """Every key by name, never by value, and a field for each that nobody has set."""
    st.subheader("Keys", anchor=False)
    with state.open_store() as store:
        uses = key_uses(sheets_of(store), state.keys())
    if not uses:
        st.caption("No roster needs a key.")
        return
    rows = [(use.name, use.words, ", ".join(use.rosters)) for use in uses]
    show(table(("Name", "Where it is", "Rosters that use it"), rows))
    missing = [use.name for use in uses if use.is_missing]
    for start in range(0, len(missing), IN_A_ROW):  # row by row, so that a phone keeps the order
        for name, column in zip(missing[start:], st.columns(IN_A_ROW), strict=False):
            with column:
                draw_key_field(name, "settings")
    with st.container(horizontal=True):
        for name in state.typed_keys():
            draw_forget(name, "settings")
    st.caption(KEPT)


def key_uses(sheets: Iterable[RosterSheet], keys: Keys) -> list[KeyUse]:
    """The keys that these rosters use, by name."""
    rosters: dict[str, list[str]] = {}
    missing: set[str] = set()
    optional: set[str] = set()
    for sheet in sheets:
        for _, seat in sheet.seats():
            names = key_names(seat)
            missing.update(keys.missing_for(seat))
            if seat.api_base and not names:
                names = (ADDRESS_KEY,)
                optional.add(ADDRESS_KEY)
            for name in names:
                if sheet.name not in rosters.setdefault(name, []):
                    rosters[name].append(sheet.name)
    uses: list[KeyUse] = []
    for name in sorted(rosters):
        place = keys.where(name)
        is_optional = name in optional and name not in missing
        absent = ONLY_IF_ASKED if is_optional else MISSING if name in missing else ALIAS
        words = WHERE[place] if place else absent
        uses.append(KeyUse(name, tuple(rosters[name]), words, place is None and absent != ALIAS))
    return uses
