"""A person's judgement on a case: label, exact words, reason, the right answer; appended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from components import drafts, state
from components.correction_asked import Asked, draw_said, draw_settled
from components.correction_draft import TEXTS, forget, keep, keep_typed, key_of, restore
from components.correction_more import draw_more
from components.correction_saved import draw_conflict, newest_seen, save
from components.seen_before import draw_decided_before
from components.span_fields import draw_span_fields
from components.taking_back import take_back
from components.words import LABEL_WORDS, escaped
from core.progress import Progress
from core.records import Case, Label, Run
from core.reviews import Correction
from core.store import Store

LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")


def draw_corrections(
    run: Run, case: Case, progress: Progress, corrections: Sequence[Correction]
) -> None:
    """What people said so far, and the form to say something."""
    st.subheader("Your judgement", anchor=False)
    with state.open_store() as store:
        person, project = state.person(store), store.projects.get(case.project_id)
        suggestions = tuple(store.golds.suggestions(case.id))
        golds = store.golds.of_case(case.id)
    draw_settled(golds)
    draw_answers(corrections, person, run.id)
    asked = Asked(run, case, progress, suggestions=suggestions)
    if project is not None:
        # What was said in sight of the verdict is no blind answer: there they are still asked.
        after = asked.after if project.is_blind else _given
        asked = replace(asked, categories=project.categories, after=after)
    draw_judgement(asked)


def _given(store: Store, correction: Correction) -> None:
    """Who answers outside the queue is not asked the same there again."""
    if store.queue.get(correction.case_id) is not None:
        store.queue.end(correction.case_id, correction.author, "submitted", correction.at)


def draw_answers(corrections: Sequence[Correction], person: str, asked_id: str) -> None:
    """What was said; one's own newest answer can be taken back."""
    own = [c.id for c in corrections if c.author == person]
    for correction in corrections:
        if correction.id not in own[-1:]:
            draw_said(correction)
            continue
        left, right = st.columns([6, 1], vertical_alignment="center")
        with left:
            draw_said(correction)
        right.button(
            "Take back",
            key=f"said.{correction.id}.back",
            icon=":material/undo:",
            on_click=take_back,
            args=(correction, asked_id),
        )


def draw_judgement(asked: Asked) -> None:
    """The form to say something; it opens with a label."""
    key = key_of(asked.id)
    restore(asked)
    if not asked.is_blind:
        draw_decided_before(asked.case)
    with st.container(horizontal=True):
        for number, label in enumerate(LABELS, start=1):
            st.button(
                ("Agree: " if label == asked.told else "It is ") + LABEL_WORDS[label].lower(),
                key=f"{key}.choose.{label}",
                shortcut=f"Alt+{number}",
                on_click=choose,
                args=(asked, label),
            )
    chosen = st.session_state.get(f"{key}.label")
    drafts.watch(
        f"{key}.watch",
        {name: f"{key}.{name}" for name in TEXTS},
        lambda texts: keep_typed(asked.id, texts),
        focus=f"{key}.reason" if chosen in LABELS else "",
        stamp=float(st.session_state.get(f"{key}.stamp") or 0.0),
        shortcuts="".join(str(number) for number in range(1, len(LABELS) + 1)),
    )
    if chosen in LABELS:
        _draw_form(asked, chosen)
    elif problem := st.session_state.pop(f"{key}.problem", ""):
        st.error(escaped(problem))


def choose(asked: Asked, label: Label) -> None:
    """Open the form on that label, with the cursor in its first field."""
    key = key_of(asked.id)
    if f"{key}.seen" not in st.session_state:
        with state.open_store() as store:
            st.session_state[f"{key}.seen"] = newest_seen(store, asked)
    st.session_state[f"{key}.label"] = label
    st.session_state[f"{key}.stamp"] = time.time()
    st.session_state.setdefault(f"{key}.began", time.time())
    keep(asked.id)


def _draw_form(asked: Asked, chosen: Label) -> None:
    """The fields; nothing is lost when the page is left or reloaded, until it is saved."""
    key = key_of(asked.id)
    needed = "overturn the verdict" if asked.told not in (None, chosen) else ""
    needed = "correct the right answer so far" if asked.corrects else needed
    with st.container(border=True):
        said = "The right answer is" if asked.settles else "You say"
        st.markdown(f"{said}: **{LABEL_WORDS[chosen].lower()}**")
        if problem := st.session_state.pop(f"{key}.problem", ""):
            st.error(escaped(problem))
        st.text_area(
            f"Reason ({f'needed to {needed}' if needed else 'if you like'})",
            key=f"{key}.reason",
            height=68,
            on_change=keep,
            args=(asked.id, "reason"),
            persist_state="session",
        )
        if chosen == "hallucinated":
            draw_span_fields(asked, agrees=asked.told == chosen)
        st.text_area(
            "The right answer, if you know it",
            key=f"{key}.answer",
            height=68,
            on_change=keep,
            args=(asked.id, "answer"),
            persist_state="session",
        )
        if not asked.settles:
            draw_more(asked)
        draw_conflict(asked)
        with st.container(horizontal=True):
            st.button(
                "Save",
                key=f"{key}.save",
                type="primary",
                shortcut="Ctrl+Enter",
                on_click=save,
                args=(asked, chosen),
            )
            st.button("Discard", key=f"{key}.discard", on_click=forget, args=(asked.id,))
