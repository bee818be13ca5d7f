"""The name of who works in this browser, kept in a cookie: a reload makes nobody another.

Without login a name is enough, and nothing more is taken from the cookie than a name.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

import streamlit as st

COOKIE = "counterpoint_person"
LONGEST = 80
JS = """
export default function({ data }) {
  const wanted = `${data.cookie}=${data.value}`;
  if (document.cookie.split("; ").includes(wanted)) return;
  document.cookie = `${wanted}; path=/; max-age=31536000; samesite=strict`;
}
"""

_component = st.components.v2.component("counterpoint_remembered", js=JS, isolate_styles=False)


def remembered() -> str:
    """The name that was given in this browser last; "" where none was."""
    name = unquote(str(st.context.cookies.get(COOKIE, ""))).strip()
    return name if len(name) <= LONGEST and name.isprintable() else ""


def remember(name: str) -> None:
    """Keep the name in this browser; draw it where it takes no room."""
    _component(key="remembered", data={"cookie": COOKIE, "value": quote(name, safe="")})
