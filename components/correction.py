"""A person's judgement on a run: label, exact words, reason, the right answer; appended."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components import state
from components.words import LABEL_WORDS, clipped, escaped, when
from core.errors import ReviewError
from core.jobs import new_id
from core.progress import Progress
from core.records import CATEGORY_WORDS, Case, Category, Correction, Label, Run, Span

LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")
CATEGORIES: tuple[Category, ...] = tuple(CATEGORY_WORDS)


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
            _draw_span_fields(case, progress, key)
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


def _draw_span_fields(case: Case, progress: Progress, key: str) -> None:
    """The machine's spans to keep or drop, and exact words to add."""
    machine = list(progress.spans)
    if machine:
        st.pills(
            "Marked by the machine: keep those that are wrong indeed",
            options=range(len(machine)),
            default=list(range(len(machine))),
            format_func=lambda i: f"{i + 1}. {escaped(clipped(machine[i].text, 40))}",
            selection_mode="multi",
            key=f"{key}.kept",
            persist_state="session",
        )
    added: list[Span] = st.session_state.setdefault(f"{key}.added", [])
    for number, span in enumerate(added):
        st.button(
            f"“{escaped(clipped(span.text, 50))}” · {CATEGORY_WORDS[span.category]}",
            key=f"{key}.drop.{number}",
            icon=":material/close:",
            help="Take this mark away",
            on_click=added.remove,
            args=(span,),
        )
    words, which, category, add = st.columns([4, 1, 2, 1], vertical_alignment="bottom")
    with words:
        quote = st.text_input(
            "Other wrong words, exactly as they stand",
            key=f"{key}.quote",
            persist_state="session",
        )
    places = _places(case.response, quote or "")
    with which:
        st.selectbox(
            "Which one",
            options=range(max(1, len(places))),
            format_func=lambda i: f"{i + 1} of {max(1, len(places))}",
            key=f"{key}.which",
            persist_state="session",
            disabled=len(places) < 2,
        )
    with category:
        st.selectbox(
            "What is wrong",
            options=CATEGORIES,
            format_func=lambda c: CATEGORY_WORDS[c],
            key=f"{key}.category",
            persist_state="session",
        )
    with add:
        st.button("Mark", key=f"{key}.mark", on_click=_add_span, args=(case, key))
    if quote and not places:
        st.caption("These words do not stand in the response like this.")


def _places(text: str, quote: str) -> list[int]:
    """Where the exact words begin, overlapping places too."""
    found: list[int] = []
    start = text.find(quote) if quote else -1
    while start >= 0:
        found.append(start)
        start = text.find(quote, start + 1)
    return found


def _add_span(case: Case, key: str) -> None:
    quote = str(st.session_state.get(f"{key}.quote") or "")
    places = _places(case.response, quote)
    if not places:
        return
    which = min(int(st.session_state.get(f"{key}.which") or 0), len(places) - 1)
    category: Category = st.session_state.get(f"{key}.category") or "contradicted"
    start = places[which]
    person = str(st.session_state.get("person", ""))
    span = Span(start, start + len(quote), quote, 1.0, category, person)
    added: list[Span] = st.session_state.setdefault(f"{key}.added", [])
    if span not in added:
        added.append(span)
    st.session_state[f"{key}.quote"] = ""


def _save(run: Run, case: Case, progress: Progress, key: str, chosen: Label) -> None:
    """Append the correction; on a problem nothing typed is lost."""
    kept = st.session_state.get(f"{key}.kept")
    machine = list(progress.spans)
    spans = [machine[i] for i in kept] if kept is not None else machine
    spans += st.session_state.get(f"{key}.added", [])
    now = time.time()
    correction = Correction(
        id=new_id(),
        run_id=run.id,
        case_id=case.id,
        author=str(st.session_state.get("person", "")),
        at=now,
        label=chosen,
        spans=tuple(spans) if chosen == "hallucinated" else (),
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
