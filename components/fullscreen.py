"""A button that puts the page on the whole screen, for showing a debate to a room."""

from __future__ import annotations

import streamlit as st

HTML = '<button class="cp-full" type="button">Full screen</button>'
CSS = """
.cp-full {
  font: inherit; font-size: 0.875rem;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
  padding: 0.3rem 0.75rem; min-height: 2.5rem; cursor: pointer;
}
.cp-full:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
"""
JS = """
export default function({ parentElement }) {
  const button = parentElement.querySelector(".cp-full");
  const page = document.documentElement;
  const label = () => {
    button.textContent = document.fullscreenElement ? "Leave full screen" : "Full screen";
    page.toggleAttribute("data-presenting", Boolean(document.fullscreenElement));
  };
  button.onclick = async () => {
    if (document.fullscreenElement) await document.exitFullscreen();
    else await page.requestFullscreen();
    label();
  };
  document.addEventListener("fullscreenchange", label);
  label();
  return () => {
    document.removeEventListener("fullscreenchange", label);
    page.removeAttribute("data-presenting");
  };
}
"""

_component = st.components.v2.component(
    "counterpoint_fullscreen", html=HTML, css=CSS, js=JS, isolate_styles=False
)


def fullscreen_button(key: str) -> None:
    """Draw the button; in full screen the sidebar and header are hidden by app.css."""
    _component(key=key)
