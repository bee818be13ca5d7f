"""A person's judgement on a run: label, exact words, reason, the right answer; appended."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components import drafts, state
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
from components.words import LABEL_WORDS, clipped, escaped, when
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
        _draw_said(correction)
    machine = _machine_label(progress)
    key = key_of(run.id)
    restore(run.id, case, progress)
    with st.container(horizontal=True):
        for number, label in enumerate(LABELS, start=1):
            st.button(
                ("Agree: " if label == machine else "It is ") + LABEL_WORDS[label].lower(),
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
        _draw_form(run, case, progress, chosen)


def _machine_label(progress: Progress) -> Label:
    """What the verdict on screen says, also when the run was stopped after it."""
    return progress.verdict.label if progress.verdict else "unclear"


def _choose(run_id: str, label: Label) -> None:
    """Open the form on that label, with the cursor in its first field."""
    key = key_of(run_id)
    st.session_state[f"{key}.label"] = label
    st.session_state[f"{key}.stamp"] = time.time()
    st.session_state.setdefault(f"{key}.began", time.time())
    keep(run_id)


def _draw_said(correction: Correction) -> None:
    words = f"**{escaped(correction.author)}** said {LABEL_WORDS[correction.label].lower()}"
    if correction.machine_label and correction.machine_label != correction.label:
        words += f" (the machine: {LABEL_WORDS[correction.machine_label].lower()})"
    if correction.reason:
        words += f": {escaped(correction.reason)}"
    if correction.spans:
        marked = ", ".join(f"“{escaped(clipped(s.text, 40))}”" for s in correction.spans)
        words += f". Wrong words: {marked}"
    if correction.corrected_answer:
        words += f". Right: {escaped(correction.corrected_answer)}"
    st.markdown(f"{words}  \n:gray[{when(correction.at)}]")


def _draw_form(run: Run, case: Case, progress: Progress, chosen: Label) -> None:
    """The fields; nothing is lost when the page is left or reloaded, until it is saved."""
    key = key_of(run.id)
    overturns = chosen != _machine_label(progress)
    with st.container(border=True):
        st.markdown(f"You say: **{LABEL_WORDS[chosen].lower()}**")
        st.text_area(
            "Reason" + (" (needed to overturn the verdict)" if overturns else " (if you like)"),
            key=f"{key}.reason",
            height=68,
            on_change=keep,
            args=(run.id, "reason"),
            persist_state="session",
        )
        if chosen == "hallucinated":
            draw_span_fields(run.id, case, progress, agrees=not overturns)
        st.text_input(
            "The right answer, if you know it",
            key=f"{key}.answer",
            on_change=keep,
            args=(run.id, "answer"),
            persist_state="session",
        )
        with st.container(horizontal=True):
            st.button(
                "Save",
                key=f"{key}.save",
                type="primary",
                shortcut="Ctrl+Enter",
                on_click=_save,
                args=(run, case, progress, chosen),
            )
            st.button("Discard", key=f"{key}.discard", on_click=forget, args=(run.id,))
        problem = st.session_state.pop(f"{key}.problem", "")
        if problem:
            st.error(escaped(problem))


def _save(run: Run, case: Case, progress: Progress, chosen: Label) -> None:
    """Append the correction; on a problem nothing typed is lost."""
    key = key_of(run.id)
    spans: list[Span] = []
    rejected: list[Span] = []
    if chosen == "hallucinated":
        typed = str(st.session_state.get(f"{key}.quote") or "")
        if typed.strip() and not places_of(case.response, typed):
            st.session_state[f"{key}.problem"] = (
                f"“{clipped(typed, 60)}” does not stand in the response like this. Give the words "
                "exactly as they stand, or empty that field."
            )
            return
        marked = _marked(run, case, progress, typed)
        spans = spans_of(marked, case, progress.spans, str(st.session_state.get("person", "")))
        rejected = rejected_of(marked, progress.spans)
    now = time.time()
    correction = Correction(
        id=new_id(),
        run_id=run.id,
        case_id=case.id,
        author=str(st.session_state.get("person", "")),
        at=now,
        label=chosen,
        spans=tuple(dict.fromkeys(spans)),
        rejected=tuple(rejected),
        reason=str(st.session_state.get(f"{key}.reason") or "").strip(),
        corrected_answer=str(st.session_state.get(f"{key}.answer") or "").strip(),
        seconds=round(now - st.session_state.get(f"{key}.began", now), 1),
        machine_label=_machine_label(progress),
    )
    try:
        with state.open_store() as store, store.writing():
            store.projects.require(
                run.project_id, correction.author, "annotator", "correct a verdict"
            )
            store.corrections.add(correction, case.response)
    except ReviewError as error:
        st.session_state[f"{key}.problem"] = str(error)
        return
    forget(run.id)
    st.toast(f"Saved. {_use_of(correction, progress)}", icon=":material/check:")


def _use_of(correction: Correction, progress: Progress) -> str:
    """What the classifier can make of it; `training_set` counts corrections the same way."""
    judgement = progress.judgement
    if correction.label == "unclear":
        return "Nothing is learned from a case that is unclear to people too."
    if judgement is None or judgement.label == "unclear" or not judgement.text:
        return "The judge reached no verdict here, so there is no text to learn from."
    return "It will count at the next retraining."


def _marked(run: Run, case: Case, progress: Progress, typed: str) -> Marked:
    """What stands in the editor, words still in the field too; who agrees accepts what is open."""
    marked = marked_of(key_of(run.id), progress)
    if typed.strip():
        marked = with_words(marked, *typed_place(run.id, case))
    return accepting_open(marked) if _machine_label(progress) == "hallucinated" else marked
