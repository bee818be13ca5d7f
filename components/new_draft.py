"""What stands on New check and was not checked yet: kept in the home, so no reload loses it.

A text counts from when its field is left: watching each word, as the correction's form does, would
cost this page a rerun just while a fresh server loads its engine.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components import drafts
from components.protocol_options import forget_options

PAGE = "new"
TEXTS = ("response", "question")
OF_PROJECT = ("role", "instruction", "roster", "protocol", "checked")


def restore_draft() -> None:
    """Bring back what was left in the project at hand; call it before the fields are drawn."""
    draft = drafts.restored(PAGE)
    if draft is None:
        return
    for name in OF_PROJECT:  # another project's do not hold here
        st.session_state.pop(f"new.{name}", None)
    forget_options(PAGE)
    for name in TEXTS:
        st.session_state[f"new.{name}"] = str(draft.get(name) or "")
    sources = draft.get("sources")
    known = sources if isinstance(sources, list) else []
    st.session_state["new.library"] = [i for i in known if isinstance(i, str)]


def keep_draft(sources: Sequence[str]) -> None:
    """Keep the page as it is; a text that was checked is no draft any more."""
    texts = _texts()
    is_open = (any(texts.values()) or sources) and texts != st.session_state.get("new.checked")
    drafts.follow(PAGE, texts | {"sources": list(sources)} if is_open else {})


def end_draft() -> None:
    """What stands there now was checked."""
    st.session_state["new.checked"] = _texts()
    drafts.follow(PAGE, {})


def _texts() -> dict[str, str]:
    return {name: str(st.session_state.get(f"new.{name}") or "") for name in TEXTS}
