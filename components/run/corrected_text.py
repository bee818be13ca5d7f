"""The corrected text of a run: each change taken or left, to copy or to give as one's answer."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from rapidfuzz import fuzz

from components.review.correction import choose_label
from components.review.correction_draft import CorrectionTarget, make_form_key, save_draft
from components.run.verdict import PersonVerdict, apply_person_marks
from components.widgets import drafts
from components.widgets.controls import draw_button, get_component
from components.widgets.html import (
    describe_changes,
    describe_unchanged_spans,
    draw_html,
    is_unchanged,
    iter_changes,
    render_inline_diff,
)
from components.widgets.wording import clip_text, escape_markdown, format_count
from core.baseline.wording import TextEdit, apply_edits, find_span_edits
from core.schema.records import Case, Run, Span
from core.schema.reviews import StatementLabel
from core.schema.run_state import RunState

MAX_CHANGE_CHARS = 120
MIN_TEXT_SIMILARITY = 50  # from which a right answer is the whole text anew, no phrase about it
MAX_SUMMARY_CHARS = 80  # characters of a line that is read at a glance
MARKED_VALUES_AUTHOR = "the values beside the marked words"


def propose_correction(case: Case, progress: RunState) -> tuple[str, str]:
    """Return (corrected text, its author); empty if nothing is wrong or nobody proposed one."""
    if progress.verdict is None or progress.verdict.label != "hallucinated":
        return "", ""
    if progress.revised is not None:
        text, by = progress.revised.text, progress.revised.agent
    else:
        text = apply_edits(case.response, find_span_edits(progress.spans, case.response))
        by = MARKED_VALUES_AUTHOR
    return (text, by) if text != case.response else ("", "")


def summarize_changes(before: str, after: str, spans: Sequence[Span] = ()) -> str:
    """Return the changes if they are short, else their number; and what is left unchanged."""
    changes = describe_changes(before, after)
    words = ", ".join(changes)
    short = words if len(words) <= MAX_SUMMARY_CHARS else format_count(len(changes), "change")
    unchanged = sum(is_unchanged(before, after, span.start, span.end) for span in spans)
    return (
        f"{short} · {unchanged} of {format_count(len(spans), 'contested place')} left unchanged"
        if unchanged
        else short
    )


def list_changes(
    case: Case, progress: RunState, person: PersonVerdict | None = None
) -> tuple[list[TextEdit], str]:
    """Return (the changes proposed, by whom): people's if they agreed, else the machine's.

    Who labelled statements and marked no words leaves the machine's in those that are not right.
    """
    right: list[StatementLabel] = []
    if person is not None and person.label is not None:
        if person.label != "hallucinated":
            return [], ""
        answer = person.truth.corrected_answer.strip()
        if fuzz.ratio(answer, case.response) >= MIN_TEXT_SIMILARITY:
            return find_text_edits(case.response, answer), person.names
        if person.spans or not person.statements:
            edits = {
                (span.start, span.end): TextEdit(span.start, span.end, span.instead, span.p)
                for span in reversed(person.spans)  # of two mistakes in one place, the first
                if span.instead and case.response[span.start : span.end] == span.text
            }
            return [edits[place] for place in sorted(edits)], person.names
        right = [one for one in person.statements if one.label == "supported"]
    text, by = propose_correction(case, progress)
    if not text:
        return [], ""
    if progress.revised is not None:
        changes = find_text_edits(case.response, text)
    else:
        changes = find_span_edits(progress.spans, case.response)
    return [e for e in changes if not any(o.start < e.end and e.start < o.end for o in right)], by


def list_contested(case: Case, progress: RunState, person: PersonVerdict | None) -> list[Span]:
    """Return the marks, and the statements that were labelled wrong and have none."""
    spans = list(apply_person_marks(progress, person).spans)
    return spans + [
        Span(one.start, one.end, case.response[one.start : one.end], 1.0, "", "")
        for one in (person.statements if person else ())
        if one.label == "hallucinated"
        and not any(s.start < one.end and one.start < s.end for s in spans)
    ]


def find_text_edits(before: str, after: str) -> list[TextEdit]:
    """Return the edits that make `after` of `before`; those with only a space between are one."""
    edits: list[TextEdit] = []
    place = 0
    for removed, added in iter_changes(before, after):
        start, place = place, place + len(removed)
        if removed == added:
            continue
        last = edits[-1] if edits else None
        if last is not None and not (gap := before[last.end : start]).strip():
            edits[-1] = TextEdit(last.start, place, last.instead + gap + added, 1.0)
        else:
            edits.append(TextEdit(start, place, added, 1.0))
    return edits


@st.fragment
def draw_corrected_text(
    run: Run, case: Case, progress: RunState, person: PersonVerdict | None
) -> None:
    """Draw the changes to take or leave, the text that they make, and what to do with it."""
    edits, by = list_changes(case, progress, person)
    if not edits:
        return
    key, before = f"run.{run.id}.corrected", case.response
    spans = list_contested(case, progress, person)
    whole = summarize_changes(before, apply_edits(before, edits), spans)
    words = escape_markdown(f"Corrected text: {whole}")
    with st.expander(words, key=key, expanded=person is not None):
        st.caption(escape_markdown(f"Proposed by {by}. Take or leave each change."))
        taken = _draw_choices(before, edits, key)
        text = apply_edits(before, taken)
        draw_html(render_inline_diff(before, text))
        if unchanged := describe_unchanged_spans(before, text, spans):
            st.caption(escape_markdown(unchanged))
        get_component("copy")(
            key=f"{key}.copy", data={"label": "Apply corrections and copy", "text": text}
        )
        _draw_buttons(key, CorrectionTarget(run, case, progress), text)


def _draw_choices(before: str, edits: Sequence[TextEdit], key: str) -> list[TextEdit]:
    taken = []
    for edit in edits:
        old, new = (
            f"“{clip_text(words, MAX_CHANGE_CHARS)}”" if words.strip() else "nothing"
            for words in (before[edit.start : edit.end], edit.instead)
        )
        words = escape_markdown(f"{old} → {new}")
        if st.checkbox(words, value=True, key=f"{key}.take.{edit.start}.{edit.end}"):
            taken.append(edit)
    return taken


def _draw_buttons(key: str, target: CorrectionTarget, text: str) -> None:
    with st.container(horizontal=True):
        is_pressed = draw_button(
            "Use it as my right answer",
            f"{key}.take",
            _use_corrected,
            target,
            text,
            icon="check",
            help="It becomes the right answer in your judgement below, which you then save",
        )
        if typed := str(drafts.load_draft_values(key).get("before", "")):
            words = "Restore what I typed"
            is_pressed |= draw_button(words, f"{key}.back", _restore_answer, target, typed)
    if is_pressed:  # the form is outside this fragment
        st.rerun()


def _use_corrected(target: CorrectionTarget, text: str) -> None:
    key = make_form_key(target.id)
    typed = st.session_state.get(f"{key}.typed") or {}
    before = str(typed.get("answer") or st.session_state.get(f"{key}.answer") or "")
    if before.strip() and before != text:
        drafts.save_draft_values(f"run.{target.id}.corrected", {"before": before})
    if not st.session_state.get(f"{key}.label"):
        choose_label(target, "hallucinated")
    _set_answer(target, text)


def _restore_answer(target: CorrectionTarget, before: str) -> None:
    drafts.save_draft_values(f"run.{target.id}.corrected", {})
    _set_answer(target, before)


def _set_answer(target: CorrectionTarget, text: str) -> None:
    st.session_state[f"{make_form_key(target.id)}.answer"] = text
    save_draft(target.id, "answer")
