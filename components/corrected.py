"""The response as it should read, beside what it says: to take into one's answer, or to leave."""

from __future__ import annotations

import streamlit as st

from components import drafts
from components.correction import choose
from components.correction_asked import Asked
from components.correction_draft import keep, key_of
from components.difference_within import is_unchanged, within_html
from components.show import show
from components.words import escaped
from core.builtin.mended import mended, mendings_of_spans
from core.builtin.speech import listed
from core.progress import Progress
from core.records import Case, Run

BY_MARKS = "the values beside the marked words"


def proposed(case: Case, progress: Progress) -> tuple[str, str]:
    """(the text, who wrote it); empty where nothing is to be put right, or nobody could."""
    if progress.verdict is None or progress.verdict.label != "hallucinated":
        return "", ""
    if progress.revised is not None:
        return progress.revised.text, progress.revised.agent
    text = mended(case.response, mendings_of_spans(progress.spans, case.response))
    return (text, BY_MARKS) if text != case.response else ("", "")


def draw_corrected(run: Run, case: Case, progress: Progress) -> None:
    """What would change, what stays contested, and two buttons."""
    text, by = proposed(case, progress)
    if not text or text == case.response:
        return
    key = f"run.{run.id}.corrected"
    kept = drafts.kept(key)
    if kept.get("is_left"):
        st.button(
            "Show the corrected text", key=f"{key}.show", on_click=drafts.keep, args=(key, {})
        )
        return
    st.subheader("As it should read", anchor=False)
    st.caption(f"Proposed by {escaped(by)}. Nothing is changed until you take it and save.")
    show(within_html(case.response, text))
    left = [s.text for s in progress.spans if is_unchanged(case.response, text, s.start, s.end)]
    if left:
        st.caption(f"Still as it was, though contested: {escaped(listed(left))}.")
    asked = Asked(run, case, progress)
    with st.container(horizontal=True):
        st.button(
            "Take",
            key=f"{key}.take",
            icon=":material/check:",
            on_click=_take,
            args=(asked, text),
            help="It becomes the right answer in your judgement below",
        )
        st.button(
            "Leave", key=f"{key}.leave", icon=":material/close:", on_click=_leave, args=(key,)
        )
        if "before" in kept:
            st.button("Put back what I had typed", key=f"{key}.back", on_click=_put_back,
                      args=(asked, str(kept["before"])))  # fmt: skip


def _take(asked: Asked, text: str) -> None:
    """It becomes the form's right answer; what was typed there can be put back."""
    key = key_of(asked.id)
    typed = st.session_state.get(f"{key}.typed") or {}
    before = str(typed.get("answer") or st.session_state.get(f"{key}.answer") or "")
    if before.strip() and before != text:
        drafts.keep(f"run.{asked.id}.corrected", {"before": before})
    if not st.session_state.get(f"{key}.label"):
        choose(asked, "hallucinated")
    _answer(asked, text)


def _put_back(asked: Asked, before: str) -> None:
    drafts.keep(f"run.{asked.id}.corrected", {})
    _answer(asked, before)


def _answer(asked: Asked, text: str) -> None:
    st.session_state[f"{key_of(asked.id)}.answer"] = text
    keep(asked.id, "answer")


def _leave(key: str) -> None:
    drafts.keep(key, {"is_left": True})
