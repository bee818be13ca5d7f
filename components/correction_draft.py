"""The draft of a correction: its fields, how they are kept at each change, brought back, let go."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from components import drafts
from components.correction_marks import from_draft, to_draft
from components.words import LABEL_WORDS
from core.progress import Progress
from core.records import CATEGORY_WORDS, Case

TEXTS = ("reason", "answer", "quote")
FIELDS = ("label", "which", "category", *TEXTS)


def key_of(run_id: str) -> str:
    """What the keys of all the form's widgets begin with."""
    return f"run.{run_id}.correct"


def keep(run_id: str, left: str = "") -> None:
    """Keep the fields as they are now; `left` is a text field that has just told its text."""
    key = key_of(run_id)
    typed: dict[str, str] = st.session_state.setdefault(f"{key}.typed", {})
    typed.pop(left, None)
    values: dict[str, Any] = {name: st.session_state.get(f"{key}.{name}") for name in FIELDS}
    values["marked"] = to_draft(st.session_state.get(f"{key}.marked"))
    drafts.keep(key, {name: v for name, v in (values | typed).items() if v is not None})


def keep_typed(run_id: str, texts: dict[str, str]) -> None:
    """Keep texts that are still being typed."""
    st.session_state[f"{key_of(run_id)}.typed"] = texts
    keep(run_id)


def restore(run_id: str, case: Case, progress: Progress) -> None:
    """Bring back what was kept, once a session; what does not fit the run any more is left out."""
    key = key_of(run_id)
    if st.session_state.get(f"{key}.looked"):
        return
    st.session_state[f"{key}.looked"] = True
    draft = drafts.kept(key)
    if draft.get("label") not in LABEL_WORDS:
        return
    found: dict[str, Any] = {"label": draft["label"], "began": time.time()}
    found |= {name: draft[name] for name in TEXTS if isinstance(draft.get(name), str)}
    if draft.get("category") in CATEGORY_WORDS:
        found["category"] = draft["category"]
    places = places_of(case.response, found.get("quote", ""))
    if draft.get("which") in range(len(places)):
        found["which"] = draft["which"]
    found["marked"] = from_draft(draft, case, progress)
    for name, value in found.items():
        st.session_state[f"{key}.{name}"] = value


def forget(run_id: str) -> None:
    """Empty the form and drop what was kept of it."""
    key = key_of(run_id)
    for name in (*FIELDS, "marked", "began", "typed", "stamp"):
        st.session_state.pop(f"{key}.{name}", None)
    drafts.keep(key, {})


def places_of(text: str, quote: str) -> list[int]:
    """Where the exact words begin, overlapping places too."""
    found: list[int] = []
    start = text.find(quote) if quote else -1
    while start >= 0:
        found.append(start)
        start = text.find(quote, start + 1)
    return found


def typed_place(run_id: str, case: Case) -> tuple[int, int, str]:
    """Where the words in the field stand in the response, and their category."""
    key = key_of(run_id)
    quote = str(st.session_state.get(f"{key}.quote") or "")
    places = places_of(case.response, quote)
    start = places[min(int(st.session_state.get(f"{key}.which") or 0), len(places) - 1)]
    return start, start + len(quote), str(st.session_state.get(f"{key}.category") or "contradicted")
