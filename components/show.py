"""Puts markup on the page: only what our builder made, never a plain string."""

from __future__ import annotations

import streamlit as st

from components.markup import Html


def show(markup: Html) -> None:
    """Draw the markup; nothing for none."""
    if not isinstance(markup, Html):
        raise TypeError("only markup from components.markup may be drawn")
    if markup:
        st.html(markup)
