"""The menu: every page with its title and sign, by section; hidden ones are reached by links."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import StreamlitPage

MENU: dict[str, tuple[tuple[str, str, str], ...]] = {
    "Check": (
        ("pages/check/new.py", "New check", "add"),
        ("pages/check/history.py", "History", "history"),
        ("pages/check/many.py", "Check many", "table_rows"),
        ("pages/check/compare.py", "Compare", "compare"),
        ("pages/check/table.py", "Checked table", ""),
        ("pages/check/run.py", "Run", ""),
        ("pages/check/replay.py", "Replay", ""),
    ),
    "Review": (
        ("pages/review/pending.py", "Review", "checklist"),
        ("pages/review/label.py", "Label", ""),
        ("pages/review/curate.py", "Settle", "gavel"),
        ("pages/review/settle.py", "Settle a case", ""),
        ("pages/review/agreement.py", "Agreement", "handshake"),
    ),
    "Learn": (
        ("pages/learn/retrain.py", "Retrain", "model_training"),
        ("pages/learn/confidence.py", "Confidence", "speed"),
        ("pages/learn/spans.py", "Spans", "border_color"),
        ("pages/learn/reliability.py", "Reliability", "balance"),
        ("pages/learn/theory.py", "Theory", "function"),
    ),
    "Set up": (
        ("pages/setup/project.py", "Project", "group"),
        ("pages/setup/library.py", "Library", "folder"),
        ("pages/setup/exchange.py", "In and out", "swap_vert"),
        ("pages/setup/settings.py", "Settings", "settings"),
    ),
}
FIRST = "pages/check/new.py"


def pages() -> dict[str, list[StreamlitPage]]:
    """All pages, as `st.navigation` takes them; a page without a sign is hidden."""
    return {
        section: [
            st.Page(
                path,
                title=title,
                icon=f":material/{sign}:" if sign else None,
                default=path == FIRST,
                visibility="visible" if sign else "hidden",
            )
            for path, title, sign in entries
        ]
        for section, entries in MENU.items()
    }
