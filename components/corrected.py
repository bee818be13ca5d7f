"""The response as it should read, beside what it says: to take into one's answer, or to leave."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components import drafts
from components.correction import choose
from components.correction_asked import Asked
from components.correction_draft import keep, key_of
from components.difference_within import change_words, contested_still, is_unchanged, within_html
from components.show import show
from components.words import counted, escaped
from core.baseline.text_edits import edits_of_spans, with_edits
from core.progress import Progress
from core.records import Case, Run, Span

LONGEST_TOLD = 80  # characters of a line that is read at a glance
BY_MARKS = "the values beside the marked words"


def proposed(case: Case, progress: Progress) -> tuple[str, str]:
    """(the text, who wrote it); empty where nothing is to be put right, or nobody could."""
    if progress.verdict is None or progress.verdict.label != "hallucinated":
        return "", ""
    if progress.revised is not None:
        text, by = progress.revised.text, progress.revised.agent
    else:
        text = with_edits(case.response, edits_of_spans(progress.spans, case.response))
        by = BY_MARKS
    return (text, by) if text != case.response else ("", "")


def by_words(by: str) -> str:
    """Who proposes it."""
    return f"Proposed by {by}."


def draw_corrected(run: Run, case: Case, progress: Progress) -> None:
    """What would change, folded under a line that says it; within, two buttons."""
    text, by = proposed(case, progress)
    if not text:
        return
    key = f"run.{run.id}.corrected"
    kept = drafts.kept(key)
    if kept.get("is_left"):
        st.button(
            "Show the corrected text", key=f"{key}.show", on_click=drafts.keep, args=(key, {})
        )
        return
    words = f"As it should read: {in_short(case.response, text, progress.spans)}"
    with st.expander(escaped(words), key=key):
        st.caption(f"{escaped(by_words(by))} Nothing is changed until you take it and save.")
        show(within_html(case.response, text))
        if left := contested_still(case.response, text, progress.spans):
            st.caption(escaped(left))
        _draw_buttons(Asked(run, case, progress), text, str(kept.get("before", "")))


def in_short(before: str, after: str, spans: Sequence[Span] = ()) -> str:
    """The changes where they are few and short, else how many; and how many marks it leaves."""
    told = change_words(before, after)
    words = ", ".join(told)
    short = words if len(words) <= LONGEST_TOLD else counted(len(told), "change")
    left = sum(is_unchanged(before, after, span.start, span.end) for span in spans)
    return f"{short} · {left} of {counted(len(spans), 'mark')} left as it was" if left else short


def _draw_buttons(asked: Asked, text: str, before: str) -> None:
    """To take it or not; `before` is what stood in the answer when it was taken."""
    key = f"run.{asked.id}.corrected"
    with st.container(horizontal=True):
        st.button(
            "Take the corrected text",
            key=f"{key}.take",
            icon=":material/check:",
            on_click=_take,
            args=(asked, text),
            help="It becomes the right answer in your judgement below",
        )
        st.button(
            "Leave the corrected text",
            key=f"{key}.leave",
            icon=":material/close:",
            on_click=_leave,
            args=(key,),
            help="It is put away; your judgement stays as it is",
        )
        if before:
            st.button(
                "Put back what I had typed",
                key=f"{key}.back",
                on_click=_put_back,
                args=(asked, before),
            )


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
