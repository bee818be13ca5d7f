"""Adjudicate a case: all versions of its answer side by side, and the form for the right one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from components.app import state
from components.app.frame import draw_keys
from components.review.correction import draw_judgement, newest_seen
from components.review.correction_draft import Asked, id_of, key_of, refill, restore
from components.review.review_item import draw_history, history_of
from components.review.review_queue import SETTLE_PAGE, VIEWS
from components.run.evidence import draw_evidence
from components.run.run_view import load_run
from components.widgets.controls import button, link, problem_kept, show_problem
from components.widgets.html import Mark, marked_text, rationale_words, show
from components.widgets.span_editor import Mark as EditorMark
from components.widgets.span_editor import Marked
from components.widgets.wording import LABEL_SIGNS, LABEL_WORDS, clipped, escaped, when
from core.progress import Progress
from core.records import Case, Project, Span, new_id
from core.review.adjudication import Version, merged, most_said, open_again, settle, version_of
from core.reviews import Correction, Gold, GoldOrigin, category_words
from core.store import Store

A_ROW = 4
FIRST_KEY, LAST_KEY = 4, 9  # Alt+1 to Alt+3 choose the label


def versions_of(store: Store, case: Case, progress: Progress) -> list[Version]:
    """People's newest answers, then the machine's, outside agents', and the right answer so far."""
    found = [version_of(c) for c in store.corrections.newest_of_case(case.id)]
    if progress.verdict is not None:
        why = rationale_words(progress.verdict.rationale)
        found.append(Version("the machine", progress.verdict.label, progress.spans, why))
    for suggestion in store.golds.suggestions(case.id):
        found.append(Version(suggestion.agent, suggestion.label, suggestion.spans))
    if (last := store.golds.that_counts(case.id)) is not None:
        who = f"right answer so far ({last.origin}, {last.author})"
        found.append(
            Version(who, last.label, last.spans, last.reason, last.corrected_answer, is_right=True)
        )
    return found


def draw_versions(asked: Asked, versions: Sequence[Version]) -> None:
    """A card for each version, with what it marks, and the button that takes it."""
    for first in range(0, len(versions), A_ROW):
        row = versions[first : first + A_ROW]
        columns = st.columns(A_ROW if first else len(row))
        for place, (column, version) in enumerate(zip(columns, row, strict=False), start=first):
            with column, st.container(border=True):
                _draw_version(asked, version, place)


def _draw_version(asked: Asked, version: Version, place: int) -> None:
    label = version.label
    said = f"{LABEL_SIGNS[label]} {LABEL_WORDS[label]}" if label else "marks words only"
    st.markdown(f"**{escaped(version.who)}**: {said}")
    marks = [Mark(s.start, s.end, title=category_words(s.category)) for s in version.spans]
    show(marked_text(asked.case.response, marks))
    if version.reason:
        st.caption(escaped(version.reason))
    if version.corrected_answer:
        st.caption(f"Right: {escaped(version.corrected_answer)}")
    number = FIRST_KEY + place
    button(
        "Take this",
        f"settle.take.{place}",
        _take,
        asked,
        version,
        shortcut=f"Alt+{number}" if number <= LAST_KEY else None,
    )


def _take(asked: Asked, version: Version) -> None:
    """Put a version's label, spans and right answer into the form; other spans wait as offered.

    The reason is the lead's own: what they typed stays.
    """
    key = key_of(asked.id)
    reason, answer = (
        str(st.session_state.get(f"{key}.{name}") or "") for name in ("reason", "answer")
    )
    with state.open_store() as store:
        seen = str(st.session_state.get(f"{key}.seen") or newest_seen(store, asked))
    refill(
        asked,
        Correction(
            "", None, asked.case.id, version.who, time.time(), version.label or "hallucinated",
            version.spans, reason, version.corrected_answer or answer,
        ),
        seen,
    )  # fmt: skip


KEYS = {
    "Alt+4 to Alt+9": "take the first to the sixth version",
    "Alt+1, Alt+2, Alt+3": "say that it is supported, hallucinated, unclear",
    "Ctrl+Enter": "save the right answer and go on to the next case",
    "Ctrl+Space": "leave this case, go on to the next",
    "Alt+Z": "back to the case that was settled last",
    "? in the words": "the keys that mark words",
}
LOOKED_AT = 500  # cases that wait
LIST_PAGE = "pages/review/curate.py"


def draw_settlement(case_id: str) -> None:
    """Everything that is needed to settle one case."""
    if after := st.session_state.pop("settle.go", ""):
        _go_on(after)
    link(LIST_PAGE, "All cases to settle", "arrow_back")
    _draw_last()
    with state.open_store() as store:
        project, item = state.project(store), store.queue.get(case_id)
        case = store.cases.get(case_id)
    if item is None or case is None or case.project_id != project.id:
        st.info("There is no case at this link in the queue of this project.")
        return
    loaded = load_run(item.run_id) if item.run_id else None
    progress = loaded[2] if loaded else Progress()
    with state.open_store() as store:
        versions = versions_of(store, case, progress)
        entries = history_of(store, case_id)
        flags = [one for one in store.handlings.of_case(case_id) if one.did == "flagged"]
    if case.question:
        st.caption(f"Question: {escaped(case.question)}")
    asked = _asked(case, progress, versions, project)
    _begin(asked, versions)
    if item.state == "flagged" and flags:
        st.info(f"Flagged by **{escaped(flags[-1].person)}** on {when(flags[-1].at)}.")
    draw_versions(asked, versions)
    draw_keys(KEYS, "settle.keys", case.id)
    with st.container(horizontal=True):
        button("Next case", "settle.next", _pass, case_id, icon="skip_next", shortcut="Ctrl+Space")
        if item.state != "open":
            button("Give it back to the queue", "settle.open", _open_again, case_id, icon="undo")
    show_problem("settle.problem")
    with st.expander("Evidence"):
        draw_evidence(progress, f"settle.{case_id}.evidence")
    draw_judgement(asked)
    draw_history(entries)


def _asked(case: Case, progress: Progress, versions: Sequence[Version], project: Project) -> Asked:
    whole = merged(versions)

    def record(store: Store, said: Correction, case: Case) -> None:
        """The form's answer becomes the case's right one."""
        spans = tuple(replace(span, p=1.0) for span in said.spans)
        origin: GoldOrigin = "corrected" if store.golds.of_case(case.id) else "adjudicated"
        took = tuple(version.correction_id for version in versions if version.is_persons)
        gold = Gold(
            new_id(), case.id, said.author, said.at, origin, said.label, spans,
            corrected_answer=said.corrected_answer, reason=said.reason, took=took,
        )  # fmt: skip
        settle(store, gold, case)
        st.session_state["settle.go"] = st.session_state["settle.last"] = case.id

    return Asked(
        None,
        case,
        progress,
        settles=True,
        corrects=any(version.is_right for version in versions),
        record=record,
        categories=project.categories,
        marked_by=(*whole.agreed, *whole.open),
    )


def _begin(asked: Asked, versions: Sequence[Version]) -> None:
    """Open the form with what people agree on; a draft of before comes first."""
    key = key_of(asked.id)
    restore(asked)
    if f"{key}.marked" in st.session_state:
        return
    whole = merged(versions)
    marks = _marks(asked.offered, len(whole.agreed))
    st.session_state[f"{key}.marked"] = Marked(marks=marks)
    label = whole.label or most_said(versions)
    if label and f"{key}.label" not in st.session_state:
        st.session_state[f"{key}.label"] = label
        with state.open_store() as store:
            st.session_state[f"{key}.seen"] = newest_seen(store, asked)


def _marks(spans: Sequence[Span], agreed: int) -> tuple[EditorMark, ...]:
    return tuple(
        EditorMark(
            id_of(s), s.start, s.end, s.category, s.source, s.p,
            "marked" if n < agreed else "suggested",
        )
        for n, s in enumerate(spans)
    )  # fmt: skip


def _write(work: Callable[[Store, str], None]) -> None:
    """What only a lead may do, in one transaction; a refusal is shown."""
    with problem_kept("settle.problem"), state.open_store() as store, store.writing():
        person = state.person(store)
        store.projects.require(state.project(store).id, person, "lead", "settle a case")
        work(store, person)


def _open_again(case_id: str) -> None:
    _write(lambda store, person: open_again(store, case_id, person, time.time()))


def _pass(case_id: str) -> None:
    """Leave a case for later: it does not come again by itself in this session."""
    st.session_state["settle.go"] = case_id
    st.session_state["settle.passed"] = [*st.session_state.get("settle.passed", []), case_id]


def _draw_last() -> None:
    """The way back to what was settled last: settling it again is another entry."""
    with state.open_store() as store:
        last = store.cases.get(str(st.session_state.get("settle.last", "")))
    if last is None:
        return
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.caption(f"Settled: “{escaped(clipped(last.response, 80))}”")
    if right.button("Back to it", key="settle.back", icon=":material/undo:", shortcut="Alt+Z"):
        st.session_state.pop("settle.last", None)
        st.switch_page(SETTLE_PAGE, query_params={"case": last.id})


def _go_on(after: str) -> None:
    """To another case where people differ or that was flagged, else to the list."""
    waiting: list[str] = []
    with state.open_store() as store:
        project = state.project(store)
        for name in ("people differ", "flagged"):
            wanted, states = VIEWS[name]
            items, _ = store.queue.page(
                project.id, wanted, states, limit=LOOKED_AT, offset=0, now=time.time()
            )
            waiting += [item.case_id for item in items]
    passed = {after, *st.session_state.get("settle.passed", [])}
    if left := [case_id for case_id in waiting if case_id not in passed]:
        st.switch_page(SETTLE_PAGE, query_params={"case": left[0]})
    st.switch_page(LIST_PAGE)
