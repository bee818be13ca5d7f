"""A person's judgement on a run: label, exact words, reason, the right answer; appended."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components import state
from components.span_fields import draw_span_fields, places_of, typed_span
from components.words import LABEL_WORDS, clipped, escaped, when
from core.errors import ReviewError
from core.jobs import new_id
from core.progress import Progress
from core.records import Case, Correction, Label, Run

LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")


def draw_corrections(
    run: Run, case: Case, progress: Progress, corrections: Sequence[Correction]
) -> None:
    """What people said so far, and the form to say something."""
    st.subheader("Your judgement", anchor=False)
    for correction in corrections:
        _draw_said(correction)
    machine = _machine_label(progress)
    key = f"run.{run.id}.correct"
    with st.container(horizontal=True):
        for number, label in enumerate(LABELS, start=1):
            st.button(
                ("Agree: " if label == machine else "It is ") + LABEL_WORDS[label].lower(),
                key=f"{key}.choose.{label}",
                shortcut=f"Alt+{number}",
                on_click=_choose,
                args=(key, label),
            )
    chosen = st.session_state.get(f"{key}.label")
    if chosen in LABELS:
        _draw_form(run, case, progress, key, chosen)


def _machine_label(progress: Progress) -> Label:
    """What the verdict on screen says, also when the run was stopped after it."""
    return progress.verdict.label if progress.verdict else "unclear"


def _choose(key: str, label: Label) -> None:
    st.session_state[f"{key}.label"] = label
    st.session_state.setdefault(f"{key}.began", time.time())


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


def _draw_form(run: Run, case: Case, progress: Progress, key: str, chosen: Label) -> None:
    """The fields; nothing is lost when the page is left, until it is saved."""
    overturns = chosen != _machine_label(progress)
    with st.container(border=True):
        st.markdown(f"You say: **{LABEL_WORDS[chosen].lower()}**")
        st.text_area(
            "Reason" + (" (needed to overturn the verdict)" if overturns else " (if you like)"),
            key=f"{key}.reason",
            height=68,
            persist_state="session",
        )
        if chosen == "hallucinated":
            draw_span_fields(case, progress, key)
        st.text_input(
            "The right answer, if you know it", key=f"{key}.answer", persist_state="session"
        )
        left, right = st.columns([1, 4])
        with left:
            st.button(
                "Save",
                key=f"{key}.save",
                type="primary",
                shortcut="Ctrl+Enter",
                on_click=_save,
                args=(run, case, progress, key, chosen),
            )
        with right:
            problem = st.session_state.pop(f"{key}.problem", "")
            if problem:
                st.error(escaped(problem))


def _save(run: Run, case: Case, progress: Progress, key: str, chosen: Label) -> None:
    """Append the correction; on a problem nothing typed is lost."""
    kept = st.session_state.get(f"{key}.kept")
    machine = list(progress.spans)
    spans = [machine[i] for i in kept] if kept is not None else machine
    spans += st.session_state.get(f"{key}.added", [])
    typed = str(st.session_state.get(f"{key}.quote") or "")
    if chosen == "hallucinated" and typed.strip():
        if not places_of(case.response, typed):
            st.session_state[f"{key}.problem"] = (
                f"“{clipped(typed, 60)}” does not stand in the response like this. Give the words "
                "exactly as they stand, or empty that field."
            )
            return
        spans.append(typed_span(case, key, typed))
    now = time.time()
    correction = Correction(
        id=new_id(),
        run_id=run.id,
        case_id=case.id,
        author=str(st.session_state.get("person", "")),
        at=now,
        label=chosen,
        spans=tuple(dict.fromkeys(spans)) if chosen == "hallucinated" else (),
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
    for name in ("label", "began", "added", "reason", "answer", "quote", "kept"):
        st.session_state.pop(f"{key}.{name}", None)
    st.toast("Saved. It will count at the next retraining.", icon=":material/check:")
