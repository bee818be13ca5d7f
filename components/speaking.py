"""A box to speak into a debate under way; whoever speaks next hears what was said."""

from __future__ import annotations

import streamlit as st

from components import drafts, state
from components.words import escaped
from core.argued import LONGEST_REMARK
from core.errors import ReviewError
from core.records import Run
from core.underway import is_debated

HEIGHT = 68


def draw_speaking(run: Run) -> None:
    """The box, where the run is this server's and somebody debates in it."""
    if not is_debated(run.plan) or state.jobs().live(run.id) is None:
        return
    key = _key(run.id)
    if key not in st.session_state:
        st.session_state[key] = str(drafts.kept(key).get("text") or "")
    st.text_area(
        "Say something to the debaters",
        key=key,
        height=HEIGHT,
        max_chars=LONGEST_REMARK,
        placeholder="Point to a passage, a value, a mistake. Whoever speaks next hears it.",
        on_change=_keep,
        args=(run.id,),
        persist_state="session",
    )
    drafts.watch(f"{key}.watch", {"text": key}, lambda texts: drafts.keep(key, texts))
    st.button(
        "Say it",
        key=f"{key}.send",
        icon=":material/record_voice_over:",
        shortcut="Ctrl+Enter",
        on_click=_say,
        args=(run.id, run.project_id),
    )
    if problem := st.session_state.pop(f"{key}.problem", ""):
        st.error(escaped(problem))


def draw_unsaid(run: Run) -> None:
    """What was typed when the debate ended before it was said; it stays until it is let go of."""
    key = _key(run.id)
    text = str(drafts.kept(key).get("text") or "").strip()
    if not text:
        return
    st.info(f"The debate was over before you said this: {escaped(text)}")
    st.button("Let go of it", key=f"{key}.drop", on_click=_forget, args=(run.id,))


def _key(run_id: str) -> str:
    return f"run.{run_id}.say"


def _keep(run_id: str) -> None:
    key = _key(run_id)
    text = str(st.session_state.get(key) or "")
    drafts.keep(key, {"text": text} if text else {})


def _say(run_id: str, project_id: str) -> None:
    """Say what stands in the box, if whoever is here may; else it stays there."""
    key = _key(run_id)
    try:
        with state.open_store() as store:
            by = state.require(store, project_id, "annotator", "speak in a debate")
        state.jobs().say(run_id, by, str(st.session_state.get(key) or ""))
    except ReviewError as error:
        st.session_state[f"{key}.problem"] = str(error)
        return
    st.session_state[key] = ""
    _forget(run_id)


def _forget(run_id: str) -> None:
    drafts.keep(_key(run_id), {})
