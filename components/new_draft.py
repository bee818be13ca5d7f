"""What stands on New check and was not checked yet: kept in the home, so no reload loses it.

A text counts from when its field is left: watching each word, as the correction's form does, would
cost this page a rerun just while a fresh server loads its engine.
"""

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
    is_open = (any(texts.values()) or sources) and texts != st.session_state.get("new.checked")
    drafts.keep(DRAFT, texts | {"sources": list(sources)} if is_open else {})


def end_draft() -> None:
    """What stands there now was checked."""
    st.session_state["new.checked"] = _texts()
    drafts.keep(DRAFT, {})


def _texts() -> dict[str, str]:
    return {name: str(st.session_state.get(f"new.{name}") or "") for name in TEXTS}
