"""The comments that people leave on a case, oldest first, and the field for another one."""

from __future__ import annotations

import time

import streamlit as st

from components.app import state
from components.widgets import drafts
from components.widgets.controls import draw_button, show_problem, store_problem
from components.widgets.wording import escape_markdown, format_time
from core.review.adjudication import list_visible_comments
from core.review.people import can_see_answers
from core.schema.records import Case
from core.schema.reviews import QueueEvent

MAX_COMMENT_CHARS = 1000


def draw_comments(case: Case, *, is_settling: bool = False) -> None:
    """Draw the comments that the person may see; what they are typing is kept as a draft."""
    key = f"comment.{case.id}"
    with state.open_store() as store:
        person = state.get_person(store)
        comments = list_visible_comments(store, case, person, is_settling=is_settling)
        is_open = can_see_answers(store, case.project_id, person, is_settling=is_settling)
    if key not in st.session_state:
        st.session_state[key] = drafts.load_draft_values(key).get("words", "")
    is_typing = bool(st.session_state[key])
    title = f"Comments ({len(comments)})" if comments else "Comments"
    with st.expander(title, expanded=bool(comments) or is_typing, icon=":material/comment:"):
        for each in comments:
            who = f":gray[{format_time(each.at)}] **{escape_markdown(each.person)}**"
            st.markdown(f"{who}: {escape_markdown(each.words)}")
        show_problem(f"{key}.problem")
        st.text_area(
            "Comment for everybody who works on this case",
            key=key,
            max_chars=MAX_COMMENT_CHARS,
            height=68,
            on_change=_save_draft,
            args=(key,),
            persist_state="session",
            help=None if is_open else "Others see it once they have answered, leads at once.",
        )
        drafts.watch_fields(f"{key}.watch", {"words": key}, lambda texts: _save_typed(key, texts))
        draw_button("Add comment", f"{key}.add", _add_comment, case, key, icon="send")


def _save_draft(key: str) -> None:
    words = str(st.session_state.get(key) or "")
    drafts.save_draft_values(key, {"words": words} if words else {})


def _save_typed(key: str, texts: dict[str, str]) -> None:
    """Keep a comment that is being typed, unless a button has just added it."""
    if (words := texts.get("words", "")) != st.session_state.get(f"{key}.added"):
        drafts.save_draft_values(key, {"words": words} if words else {})


def send_typed_comment(case: Case) -> None:
    """Add the comment that was typed and not sent, if there is one."""
    _add_comment(case, f"comment.{case.id}")


def _add_comment(case: Case, key: str) -> None:
    words = str(st.session_state.get(key) or "").strip()
    if not words:
        return
    with store_problem(f"{key}.problem"):
        with state.open_store() as store, store.writing():
            person = state.get_person(store)
            store.projects.require(case.project_id, person, "annotator", "comment on a case")
            store.queue_events.add(QueueEvent(case.id, person, time.time(), "commented", words))
        st.session_state[f"{key}.added"], st.session_state[key] = st.session_state[key], ""
        _save_draft(key)
