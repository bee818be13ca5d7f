"""A person's judgement on a run: label, exact words, reason, the right answer; appended."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components import drafts, state
from components.correction_asked import Asked, draw_said
from components.correction_draft import (
    TEXTS,
    forget,
    keep,
    keep_typed,
    key_of,
    places_of,
    restore,
    typed_place,
)
from components.correction_marks import (
    accepting_open,
    marked_of,
    rejected_of,
    spans_of,
    with_words,
)
from components.span_editor.marks import Marked
from components.span_fields import draw_span_fields
from components.words import LABEL_WORDS, clipped, escaped
from core.errors import ReviewError
from core.jobs import new_id
from core.progress import Progress
from core.records import Case, Label, Run, Span
from core.reviews import Correction

LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")


def draw_corrections(
    run: Run, case: Case, progress: Progress, corrections: Sequence[Correction]
) -> None:
    """What people said so far, and the form to say something."""
    st.subheader("Your judgement", anchor=False)
    for correction in corrections:
        draw_said(correction)
    draw_judgement(Asked(run, case, progress))


def draw_judgement(asked: Asked) -> None:
    """The form to say something; it opens with a label."""
    run = asked.run
    key = key_of(run.id)
    restore(run.id, asked.case, asked.shown)
    with st.container(horizontal=True):
        for number, label in enumerate(LABELS, start=1):
            st.button(
                ("Agree: " if label == asked.told else "It is ") + LABEL_WORDS[label].lower(),
                key=f"{key}.choose.{label}",
                shortcut=f"Alt+{number}",
                on_click=_choose,
                args=(run.id, label),
            )
    chosen = st.session_state.get(f"{key}.label")
    drafts.watch(
        f"{key}.watch",
        {name: f"{key}.{name}" for name in TEXTS},
        lambda texts: keep_typed(run.id, texts),
        focus=f"{key}.reason" if chosen in LABELS else "",
        stamp=float(st.session_state.get(f"{key}.stamp") or 0.0),
        shortcuts="".join(str(number) for number in range(1, len(LABELS) + 1)),
    )
    if chosen in LABELS:
        _draw_form(asked, chosen)


def _choose(run_id: str, label: Label) -> None:
    """Open the form on that label, with the cursor in its first field."""
    key = key_of(run_id)
    st.session_state[f"{key}.label"] = label
    st.session_state[f"{key}.stamp"] = time.time()
    st.session_state.setdefault(f"{key}.began", time.time())
    keep(run_id)


def _draw_form(asked: Asked, chosen: Label) -> None:
    """The fields; nothing is lost when the page is left or reloaded, until it is saved."""
    run_id = asked.run.id
    key = key_of(run_id)
    overturns = asked.told not in (None, chosen)
    with st.container(border=True):
        st.markdown(f"You say: **{LABEL_WORDS[chosen].lower()}**")
        st.text_area(
            "Reason" + (" (needed to overturn the verdict)" if overturns else " (if you like)"),
            key=f"{key}.reason",
            height=68,
            on_change=keep,
            args=(run_id, "reason"),
            persist_state="session",
        )
        if chosen == "hallucinated":
            draw_span_fields(run_id, asked.case, asked.shown, agrees=asked.told == chosen)
        st.text_input(
            "The right answer, if you know it",
            key=f"{key}.answer",
            on_change=keep,
            args=(run_id, "answer"),
            persist_state="session",
        )
        with st.container(horizontal=True):
            st.button(
                "Save",
                key=f"{key}.save",
                type="primary",
                shortcut="Ctrl+Enter",
                on_click=_save,
                args=(asked, chosen),
            )
            st.button("Discard", key=f"{key}.discard", on_click=forget, args=(run_id,))
        problem = st.session_state.pop(f"{key}.problem", "")
        if problem:
            st.error(escaped(problem))


def _save(asked: Asked, chosen: Label) -> None:
    """Append the correction; on a problem nothing typed is lost."""
    run, case = asked.run, asked.case
    key = key_of(run.id)
    machine = asked.shown.spans
    person = str(st.session_state.get("person", ""))
    spans: list[Span] = []
    rejected: list[Span] = []
    is_unmarked = False
    if chosen == "hallucinated":
        typed = str(st.session_state.get(f"{key}.quote") or "")
        if typed.strip() and not places_of(case.response, typed):
            st.session_state[f"{key}.problem"] = (
                f"“{clipped(typed, 60)}” does not stand in the response like this. Give the words "
                "exactly as they stand, or empty that field."
            )
            return
        marked = _marked(asked, typed)
        spans = spans_of(marked, case, machine, person)
        rejected, is_unmarked = rejected_of(marked, machine), marked.none
    now = time.time()
    correction = Correction(
        id=new_id(),
        run_id=run.id,
        case_id=case.id,
        author=person,
        at=now,
        label=chosen,
        spans=tuple(dict.fromkeys(spans)),
        reason=str(st.session_state.get(f"{key}.reason") or "").strip(),
        corrected_answer=str(st.session_state.get(f"{key}.answer") or "").strip(),
        seconds=round(now - st.session_state.get(f"{key}.began", now), 1),
        machine_label=asked.machine,
        rejected=tuple(rejected),
        is_blind=asked.is_blind,
        is_unmarked=is_unmarked,
    )
    try:
        with state.open_store() as store, store.writing():
            store.projects.require(run.project_id, person, "annotator", "correct a verdict")
            store.corrections.add(correction, case.response)
            asked.after(store, correction)
    except ReviewError as error:
        st.session_state[f"{key}.problem"] = str(error)
        return
    forget(run.id)
    st.toast(f"Saved. {_use_of(correction, asked.progress)}", icon=":material/check:")


def _use_of(correction: Correction, progress: Progress) -> str:
    """What the classifier can make of it; `training_set` counts corrections the same way."""
    judgement = progress.judgement
    if correction.label == "unclear":
        return "Nothing is learned from a case that is unclear to people too."
    if judgement is None or judgement.label == "unclear" or not judgement.text:
        return "The judge reached no verdict here, so there is no text to learn from."
    return "It will count at the next retraining."


def _marked(asked: Asked, typed: str) -> Marked:
    """What stands in the editor, words still in the field too; who agrees accepts what is open."""
    marked = marked_of(key_of(asked.run.id), asked.shown)
    if typed.strip():
        marked = with_words(marked, *typed_place(asked.run.id, asked.case))
    return accepting_open(marked) if asked.told == "hallucinated" else marked
