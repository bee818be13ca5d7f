"""What stands on New check and was not checked yet: kept in the home, so no reload loses it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components import drafts

DRAFT = "new"
TEXTS = ("response", "question")


def restore_draft() -> None:
    """Bring back what was left, once a session; call it before the fields are drawn."""
    if st.session_state.get("new.looked"):
        return
    st.session_state["new.looked"] = True
    draft = drafts.kept(DRAFT)
    for name in TEXTS:
        if isinstance(draft.get(name), str):
            st.session_state.setdefault(f"new.{name}", draft[name])
    sources = draft.get("sources")
    if isinstance(sources, list):
        st.session_state.setdefault("new.library", [i for i in sources if isinstance(i, str)])


def keep_draft(sources: Sequence[str]) -> None:
    """Keep the page as it is; a text that was checked is no draft any more."""
    texts = _texts()
    if texts != st.session_state.get("new.base"):  # a field has told its text itself
        st.session_state["new.base"] = texts
        st.session_state.pop("new.typed", None)
    typed: dict[str, str] = st.session_state.get("new.typed", {})
    st.session_state["new.sources"] = list(sources)
    holds_something = any(texts.values()) or bool(sources)
    is_open = typed or (holds_something and texts != st.session_state.get("new.checked"))
    drafts.keep(DRAFT, texts | typed | {"sources": list(sources)} if is_open else {})


def watch_draft() -> None:
    """Keep the texts while they are typed; call it after the fields are drawn."""
    drafts.watch("new.watch", {name: f"new.{name}" for name in TEXTS}, _keep_typed)


def end_draft() -> None:
    """What stands there now was checked."""
    st.session_state["new.checked"] = _texts()
    st.session_state.pop("new.typed", None)
    drafts.keep(DRAFT, {})


def _keep_typed(texts: dict[str, str]) -> None:
    st.session_state["new.typed"] = texts
    keep_draft(st.session_state.get("new.sources", []))


def _texts() -> dict[str, str]:
    return {name: str(st.session_state.get(f"new.{name}") or "") for name in TEXTS}
