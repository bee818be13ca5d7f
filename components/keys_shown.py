"""The keys of a page: a button, and `?` wherever nobody is typing, show and hide their list."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

HTML = """
<button class="cp-keys" type="button" aria-expanded="false">Keys ( ? )</button>
<dl class="cp-keys-list" hidden></dl>
"""
CSS = """
.cp-keys {
  font: inherit; font-size: 0.8125rem; color: var(--st-text-color); background: none;
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
  padding: 0.15rem 0.6rem; cursor: pointer;
}
.cp-keys:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
.cp-keys-list {
  display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1rem;
  margin: 0.5rem 0 0; font-family: var(--st-font); font-size: 0.875rem;
  color: var(--st-text-color);
}
.cp-keys-list[hidden] { display: none; }
.cp-keys-list dt { font-weight: 600; white-space: nowrap; }
.cp-keys-list dd { margin: 0; }
"""
JS = """
export default function({ data, parentElement }) {
  const button = parentElement.querySelector(".cp-keys");
  const list = parentElement.querySelector(".cp-keys-list");
  list.replaceChildren(...data.keys.flatMap(([keys, words]) => {
    const term = document.createElement("dt"), told = document.createElement("dd");
    term.textContent = keys;
    told.textContent = words;
    return [term, told];
  }));
  const main = document.querySelector('[data-testid="stMain"]');
  if (parentElement.__place !== undefined && parentElement.__place !== data.place) {
    main?.scrollTo(0, 0);  // another item begins at its top
    list.hidden = true;
  }
  parentElement.__place = data.place;
  const toggle = () => {
    list.hidden = !list.hidden;
    button.setAttribute("aria-expanded", String(!list.hidden));
    if (!list.hidden) button.scrollIntoView({ block: "nearest" });
  };
  const pressed = (event) => {
    const fields = "input, textarea, select, [contenteditable], .cp-se, .cp-be";
    if (event.key === "Escape" && !list.hidden) toggle();
    if (event.key !== "?" || event.defaultPrevented || event.target.closest?.(fields)) return;
    event.preventDefault();
    toggle();
  };
  button.onclick = toggle;
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
"""
_component = st.components.v2.component(
    "counterpoint_keys", html=HTML, css=CSS, js=JS, isolate_styles=False
)


def draw_keys(keys: Mapping[str, str], key: str, place: str) -> None:
    """The button and the list behind it; `keys` are keys to what they do.

    When `place` changes, the page is another thing and is shown from its top.
    """
    _component(key=key, data={"keys": list(keys.items()), "place": place})
