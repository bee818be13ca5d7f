"""The draft of a correction: its fields, how they are kept at each change, brought back, let go."""

from __future__ import annotations

import time
from typing import Any

import streamlit as st

from components import drafts, state
from components.box_fields import boxes_again, boxes_from, boxes_kept, boxes_to
from components.correction_asked import Asked
from components.correction_marks import from_correction, from_draft, to_draft
from components.evidence_marks import evidence_from, evidence_kept, evidence_to
from components.words import LABEL_WORDS
from core.reviews import Correction

TEXTS = ("reason", "answer", "quote", "comment")
RATINGS = ("accuracy", "coherence", "consistency")
SURE_WORDS = {0.5: "a guess", 0.75: "fairly sure", 1.0: "certain"}
FIELDS = ("label", "which", "category", "seen", "all", "sure", *RATINGS, *TEXTS)


def key_of(asked_id: str) -> str:
    """What the keys of all the form's widgets begin with."""
    return f"run.{asked_id}.correct"


def keep(asked_id: str, left: str = "") -> None:
    """Keep the fields as they are now; `left` is a text field that has just told its text."""
    key = key_of(asked_id)
    typed: dict[str, str] = st.session_state.setdefault(f"{key}.typed", {})
    typed.pop(left, None)
    values: dict[str, Any] = {name: st.session_state.get(f"{key}.{name}") for name in FIELDS}
    values["marked"] = to_draft(st.session_state.get(f"{key}.marked"))
    values["evidence"] = evidence_to(evidence_kept(key)) or None
    values["boxes"] = boxes_to(boxes_kept(key)) or None
    drafts.keep(key, {name: v for name, v in (values | typed).items() if v is not None})


def keep_typed(asked_id: str, texts: dict[str, str]) -> None:
    """Keep texts that are still being typed."""
    st.session_state[f"{key_of(asked_id)}.typed"] = texts
    keep(asked_id)


def restore(asked: Asked) -> None:
    """Bring back what was kept, once a session; what does not fit the run any more is left out."""
    key = key_of(asked.id)
    if st.session_state.get(f"{key}.looked"):
        return
    st.session_state[f"{key}.looked"] = True
    draft = drafts.kept(key)
    if taken_back := str(draft.get("from") or ""):
        with state.open_store() as store:
            correction = store.corrections.get(taken_back)
        if correction is not None:
            refill(asked, correction, str(draft.get("seen") or ""))
        return
    if draft.get("label") not in LABEL_WORDS:
        return
    found: dict[str, Any] = {"label": draft["label"], "began": time.time()}
    found |= {name: draft[name] for name in (*TEXTS, "seen") if isinstance(draft.get(name), str)}
    found |= {name: draft[name] for name in RATINGS if draft.get(name) in range(1, 6)}
    if draft.get("sure") in SURE_WORDS:
        found["sure"] = draft["sure"]
    if draft.get("category") in asked.words:  # the field offers no others
        found["category"] = draft["category"]
    places = places_of(asked.case.response, found.get("quote", ""))
    if draft.get("which") in range(len(places)):
        found["which"] = draft["which"]
    found["all"] = draft.get("all") is True
    found["marked"] = from_draft(draft, asked.case, asked.offered)
    found["evidence"] = evidence_from(draft.get("evidence"))
    found["boxes"] = boxes_from(draft.get("boxes"))
    _fill(key, found)


def refill(asked: Asked, correction: Correction, seen: str) -> None:
    """Open the form as it was when this was saved; `seen` is the newest entry by now."""
    rated = correction.ratings
    found = {
        "label": correction.label,
        "began": time.time(),
        "seen": seen,
        "reason": correction.reason,
        "answer": correction.corrected_answer,
        "comment": correction.comment,
        "sure": correction.sure,
        "all": correction.accepted_all,
        "accuracy": rated.accuracy,
        "coherence": rated.coherence,
        "consistency": rated.consistency,
        "marked": from_correction(correction, asked.offered),
        "evidence": {"": correction.evidence} if correction.evidence else {},
        "boxes": boxes_again(correction.boxes),
    }
    _fill(key_of(asked.id), found)
    keep(asked.id)


def _fill(key: str, values: dict[str, Any]) -> None:
    _drop_parts(key)
    for name, value in values.items():
        st.session_state[f"{key}.{name}"] = value


def _drop_parts(key: str) -> None:
    """Let go of what stands in the editors over sources."""
    for name in [str(name) for name in st.session_state]:
        if name.startswith(f"{key}.evidence."):
            st.session_state.pop(name, None)


def forget(asked_id: str) -> None:
    """Empty the form and drop what was kept of it."""
    key = key_of(asked_id)
    for name in (
        *FIELDS,
        "marked",
        "evidence",
        "boxes",
        "began",
        "typed",
        "stamp",
        "conflict",
        "more",
    ):
        st.session_state.pop(f"{key}.{name}", None)
    _drop_parts(key)
    drafts.keep(key, {})


def places_of(text: str, quote: str) -> list[int]:
    """Where the exact words begin, overlapping places too."""
    found: list[int] = []
    start = text.find(quote) if quote else -1
    while start >= 0:
        found.append(start)
        start = text.find(quote, start + 1)
    return found


def typed_place(asked: Asked) -> tuple[int, int, str]:
    """Where the words in the field stand in the response, and their category."""
    key = key_of(asked.id)
    quote = str(st.session_state.get(f"{key}.quote") or "")
    places = places_of(asked.case.response, quote)
    start = places[min(int(st.session_state.get(f"{key}.which") or 0), len(places) - 1)]
    category = str(st.session_state.get(f"{key}.category") or next(iter(asked.words)))
    return start, start + len(quote), category
