"""A response of several statements beside its sources: read, agreed with, or corrected in place.

The browser moves through the statements and gives each a label by one key. The labels are saved
together as one correction (`Correction.statements`), whose own label follows from them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import streamlit as st

from components.app import state
from components.review.correction import (
    append_answer,
    build_run_target,
    draw_conflict,
    find_own_answer,
    get_newest_entry,
)
from components.review.correction_draft import CorrectionTarget
from components.run.audit import (
    StatementRow,
    build_statement_rows,
    is_judge_unfit,
)
from components.run.evidence import (
    SourcePlace,
    describe_origin,
    describe_span,
    draw_agent_marks,
    is_quoted,
    load_source_view,
)
from components.run.verdict import JUDGE_WEIGHS, format_views
from components.widgets import drafts
from components.widgets.annotation_editors import serve_picture
from components.widgets.controls import get_component, show_problem, store_problem
from components.widgets.html import MIN_SHOWN_P, draw_question
from components.widgets.wording import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clip_text,
    format_label,
    format_label_probability,
    format_percent,
    format_source,
)
from core.runtime.errors import InputError
from core.schema.events import SoftLabel
from core.schema.records import Case, Label, Quote, Run, Span, WordScore, new_id
from core.schema.reviews import (
    LABELS_BY_GRAVITY,
    Correction,
    StatementLabel,
    combine_statement_labels,
    format_category,
)
from core.schema.run_state import RunState
from core.store import Store
from core.store.sqlite import from_plain, to_plain

MAX_PLACES = 6  # places in sources for each statement
MAX_LINE_CHARS = 400
UNKNOWN_KIND = ""


@dataclass(frozen=True)
class StatementChoice:
    """A statement by its index, with the person's label, "" while there is none."""

    id: str
    label: Label | Literal[""] = ""


@dataclass(frozen=True)
class ReaderState:
    """What the browser sends: labels, the statement and place shown, how often it asked to save."""

    revision: int = 0
    statements: tuple[StatementChoice, ...] = ()
    shown: str = ""
    place: int = 0
    saves: int = 0
    did: str = ""

    @property
    def labels(self) -> dict[str, Label]:
        """The labels that the person gave, by statement."""
        return {one.id: one.label for one in self.statements if one.label}


# msgspec may crash if two threads are the first to convert the same dataclass.
from_plain(ReaderState, {})


@dataclass(frozen=True)
class ReaderMark:
    """Words `[start, end)` of the response that may be wrong; `is_weak`: nobody kept them."""

    start: int
    end: int
    p: float
    kind: str
    title: str
    is_weak: bool
    quote: Quote | None = None


@dataclass(frozen=True)
class ReaderRow:
    """A statement with the machine's label, the places to show for it, and its marks by number."""

    row: StatementRow
    machine: Label | None
    places: tuple[tuple[SourcePlace, str], ...]
    marks: tuple[int, ...]
    lines: tuple[str, ...]

    @property
    def id(self) -> str:
        """The statement's index, as the browser knows it."""
        return str(self.row.statement.index)

    @property
    def is_checkable(self) -> bool:
        """False for statements with nothing to check."""
        return self.row.memory is None or self.row.memory.is_checkable

    @property
    def gravity(self) -> tuple[int, int]:
        """Sort key: wrong statements first, those with nothing to check last."""
        known = self.machine is not None and self.is_checkable
        rank = LABELS_BY_GRAVITY.index(self.machine) if known and self.machine else 3
        return rank, self.row.number

    def overlaps(self, span: Span) -> bool:
        """Return True if words of the span stand in the statement."""
        return span.start < self.row.statement.end and self.row.statement.start < span.end


def list_reader_marks(progress: RunState) -> list[ReaderMark]:
    """Return the kept spans, then all that was dropped or is merely suspected as weak marks."""
    marks = [
        ReaderMark(s.start, s.end, s.p, s.category, describe_span(s), False, s.quote)
        for s in progress.spans
    ]
    kept = [(mark.start, mark.end) for mark in marks]
    dropped = [span for span in progress.proposed if (span.start, span.end) not in kept]
    marks += [
        ReaderMark(s.start, s.end, s.p, s.category, describe_span(s), True, s.quote)
        for s in dropped
    ]
    scored: list[SoftLabel | WordScore] = [*(progress.soft.labels if progress.soft else ())]
    scored += progress.words.scores if progress.words else ()
    return marks + [
        ReaderMark(s.start, s.end, s.p, UNKNOWN_KIND, format_percent(s.p), True)
        for s in scored
        if s.p >= MIN_SHOWN_P and not any(start <= s.start and s.end <= end for start, end in kept)
    ]


def build_reader_rows(progress: RunState, marks: Sequence[ReaderMark]) -> list[ReaderRow]:
    """Return a row for each statement, in the order of the response."""
    judgement = progress.judgement
    labels = dict(enumerate(judgement.statement_labels if judgement else ()))
    is_unfit = is_judge_unfit(progress)
    rows = []
    for row in build_statement_rows(progress):
        index, statement = row.statement.index, row.statement
        inside = [
            (number, mark)
            for number, mark in enumerate(marks)
            if mark.start < statement.end and statement.start < mark.end
        ]
        views = [
            view for view in (judgement.readers if judgement else ()) if view.statement == index
        ]
        is_alone = (
            judgement is not None
            and row.memory is None
            and bool(views)
            and not judgement.by_tool
            and all(view.stance != labels.get(index) for view in views)
        )
        rewrite = statement.rewrite if statement.rewrite != statement.text else ""
        lines = (
            row.memory.evidence if row.memory else "",
            f"Read as: {rewrite}" if rewrite else "",
            *(f"Reflection changed it: {change.reason}" for change in row.changes),
            format_views(views) if views else "",
            f"No reader by itself says so: {JUDGE_WEIGHS}." if is_alone else "",
        )
        rows.append(
            ReaderRow(
                row,
                None if is_unfit else row.memory.label if row.memory else labels.get(index),
                _list_places(progress, row, [mark for _, mark in inside]),
                tuple(number for number, _ in inside),
                tuple(clip_text(line, MAX_LINE_CHARS) for line in lines if line),
            )
        )
    return rows


def _list_places(
    progress: RunState, row: StatementRow, marks: Sequence[ReaderMark]
) -> tuple[tuple[SourcePlace, str], ...]:
    """Return (place, how it was found), those that say what is wrong first."""
    places: dict[tuple[str, int], tuple[SourcePlace, str]] = {}
    for mark in marks:
        if mark.quote is not None and mark.quote.start is not None:
            words = progress.case.response[mark.start : mark.end] if progress.case else ""
            found = (mark.quote, f"about “{clip_text(words, 60)}”")
            places.setdefault((mark.quote.source_id, mark.quote.start), found)
    evidence = row.memory.evidence if row.memory else ""
    read = row.memory.passages if row.memory else ()
    quotes = [quote for turn in progress.turns for quote in turn.quotes]
    passages = sorted(
        progress.passages.get(row.statement.index, ()),
        key=lambda p: (p.text not in evidence, not is_quoted(p, quotes), p.id not in read),
    )
    for passage in passages:
        how = describe_origin(passage, is_quoted(passage, quotes))
        places.setdefault((passage.source_id, passage.start), (passage, how))
    return tuple(places.values())[:MAX_PLACES]


def cut_pieces(row: ReaderRow, marks: Sequence[ReaderMark]) -> list[tuple[str, list[int]]]:
    """Return the statement's words in pieces, each with the numbers of the marks over it."""
    start = row.row.statement.start
    end = start + len(row.row.words)
    ends = {max(start, min(end, at)) for n in row.marks for at in (marks[n].start, marks[n].end)}
    return [
        (
            row.row.words[left - start : right - start],
            [n for n in row.marks if marks[n].start < right and left < marks[n].end],
        )
        for left, right in pairwise(sorted({start, end} | ends))
    ]


def _find_mark_place(mark: ReaderMark, rows: Sequence[ReaderRow], number: int) -> int | None:
    """Return which place of its statement a mark's quote is."""
    for row in rows:
        if number in row.marks and mark.quote is not None:
            for place, (found, _) in enumerate(row.places):
                if (found.source_id, found.start) == (mark.quote.source_id, mark.quote.start):
                    return place
    return None


def _dump_row(row: ReaderRow, before: str, gravity: int, marks: Sequence[ReaderMark]) -> Any:
    memory = row.row.memory
    verdict = format_label(row.machine) if row.machine else "No label by the machine"
    notes = [format_label_probability(memory.label, memory.p) if memory else ""]
    notes += ["contested"] if memory and memory.is_contested else []
    if not row.is_checkable:
        verdict, notes = "Nothing to check", []
    return {
        "id": row.id,
        "number": row.row.number,
        "machine": row.machine or "",
        "isCheckable": row.is_checkable,
        "verdict": verdict,
        "note": " · ".join(filter(None, notes)),
        "lines": row.lines,
        "marks": row.marks,
        "pieces": cut_pieces(row, marks),
        "places": [(format_source(place), how, place.text) for place, how in row.places],
        "before": before,
        "gravity": gravity,
    }


def _list_gaps(rows: Sequence[ReaderRow], response: str) -> Iterator[str]:
    """Yield what stands before each statement, and after the last one."""
    end = 0
    for row in rows:
        statement = row.row.statement
        yield response[end : statement.start] if statement.start >= end else " "
        end = max(end, statement.end)
    yield response[end:]


@st.cache_resource(max_entries=32, show_spinner=False)
def _load_text(
    run_id: str, mark: tuple[float, int], _progress: RunState
) -> tuple[list[ReaderRow], dict[str, Any]]:
    """Return a run's rows, and what the browser needs of them; cached as long as it stands."""
    marks = list_reader_marks(_progress)
    rows = build_reader_rows(_progress, marks)
    *gaps, after = _list_gaps(rows, _progress.case.response if _progress.case else "")
    gravest = [row.id for row in sorted(rows, key=lambda row: row.gravity)]
    response = _progress.case.response if _progress.case else ""
    return rows, {
        "rows": [
            _dump_row(row, gap, gravest.index(row.id), marks)
            for row, gap in zip(rows, gaps, strict=True)
        ],
        "after": after,
        "marks": [
            {
                "p": mark.p,
                "kind": mark.kind,
                "title": mark.title,
                "words": clip_text(response[mark.start : mark.end], 60),
                "isWeak": mark.is_weak,
                "place": _find_mark_place(mark, rows, number),
            }
            for number, mark in enumerate(marks)
        ],
        "kinds": [
            {"id": kind, "words": format_category(kind)}
            for kind in dict.fromkeys(mark.kind for mark in marks if mark.kind)
        ],
        "words": LABEL_WORDS,
        "signs": LABEL_SIGNS,
    }


@st.fragment
def draw_reader(
    run: Run, case: Case, progress: RunState, shown: RunState, *, is_over: bool
) -> None:
    """Draw the response beside its sources; labels can be saved once there is a verdict.

    `shown` is the run with the marks to draw, which may be a person's.
    """
    key = f"run.{run.id}.reader"
    if st.session_state.pop(f"{key}.done", False):
        st.rerun()  # the saved answer is shown further down the page
    st.subheader("The response", anchor=False)
    draw_question(case.question)
    rows, text = _load_text(run.id, (shown.last_at, hash(shown.spans)), shown)
    with state.open_store() as store:
        person, project = state.get_person(store), store.projects.get(case.project_id)
        own = find_own_answer(store, case.id, person)
        is_standing = own in store.corrections.of_run(run.id)
    target = build_run_target(run, case, progress, project)
    # A new check of the same text begins with the labels that the person gave it before.
    reader = _load_state(key, rows, own)
    saved = own.statements if own is not None and is_standing else ()
    is_saved = bool(saved) and saved == place_statement_labels(rows, reader.labels)
    get_component("statement_editor")(
        key=f"{key}.editor",
        data=text
        | to_plain(reader)
        | {
            "key": key,
            "source": _load_source(rows, reader, key),
            "problem": st.session_state.get(f"{key}.problem", ""),
            "saved": "saved" if is_saved else "not saved yet" if reader.labels else "",
            "categories": [],
            "locked": not is_over,
        },
        default={"edit": None},
        on_edit_change=partial(_take_edit, target, key, rows, saved),
    )
    show_problem(f"{key}.problem")
    draw_conflict(
        case.id, key, partial(_save_after, target, key, rows), partial(_discard_labels, key)
    )
    draw_agent_marks(case, shown, f"run.{run.id}")


def _load_state(key: str, rows: Sequence[ReaderRow], own: Correction | None) -> ReaderState:
    """Return the reader's state: as it is, from the draft, or from the person's own answer."""
    current: ReaderState | None = st.session_state.get(f"{key}.state")
    if current is not None:
        return current
    draft = drafts.load_draft_values(key)
    labels = draft.get("labels")
    if isinstance(labels, dict):
        for name in ("newest_seen", "began"):
            if name in draft:
                st.session_state.setdefault(f"{key}.{name}", draft[name])
    else:
        given = {(one.start, one.end): one.label for one in own.statements} if own else {}
        places = {row.id: (row.row.statement.start, row.row.statement.end) for row in rows}
        labels = {name: given[place] for name, place in places.items() if place in given}
    choices = tuple(
        StatementChoice(row.id, labels[row.id] if labels.get(row.id) in LABEL_WORDS else "")
        for row in rows
    )
    gravest = min(rows, key=lambda row: row.gravity)
    revision = st.session_state.pop(f"{key}.revision", 0)
    loaded = ReaderState(revision, choices, gravest.id)
    st.session_state[f"{key}.state"] = loaded
    return loaded


def _load_source(rows: Sequence[ReaderRow], reader: ReaderState, key: str) -> dict[str, Any]:
    """Return the place that is shown, with the address of its page's picture."""
    row = next((row for row in rows if row.id == reader.shown), rows[0])
    shown = {"statement": reader.shown, "place": reader.place}
    if reader.place >= len(row.places):
        return shown | {"words": "No passage was found for this.", "text": ""}
    place, how = row.places[reader.place]
    view = load_source_view(place)
    top = min((box.top for box in view.boxes), default=0.0)
    left = min((box.left for box in view.boxes), default=0.0)
    right = max((box.right for box in view.boxes), default=0.0)
    picture = serve_picture(view.picture, view.media_type, key) if view.picture else ""
    return shown | {
        "words": view.words,
        "how": " · ".join(filter(None, (how, view.note))),
        "picture": picture,
        "top": top,
        "left": left,
        "right": right,
        "before": view.before,
        "text": view.text,
        "after": view.after,
    }


def _take_edit(
    target: CorrectionTarget,
    key: str,
    rows: Sequence[ReaderRow],
    saved: tuple[StatementLabel, ...],
) -> None:
    """Keep what the browser sent; save the labels if it asked for that and they are new."""
    value = st.session_state[f"{key}.editor"].get("edit")
    if value is None:
        return
    with store_problem(f"{key}.problem"):
        reader = parse_reader(value, rows)
        before: ReaderState | None = st.session_state.get(f"{key}.state")
        st.session_state[f"{key}.state"] = reader
        if before is None or reader.statements != before.statements:
            _save_draft(target, key, reader)
        if reader.saves > st.session_state.get(f"{key}.saves", 0):
            st.session_state[f"{key}.saves"] = reader.saves
            if place_statement_labels(rows, reader.labels) != saved:
                _save_labels(target, key, rows)


def parse_reader(value: object, rows: Sequence[ReaderRow]) -> ReaderState:
    """Parse what the browser sent. Raises InputError: it does not fit the statements."""
    reader = from_plain(ReaderState, value)
    known = [row.id for row in rows]
    if [one.id for one in reader.statements] != known or reader.shown not in known:
        raise InputError(f"Expected labels of the {len(known)} statements; reload the page.")
    if reader.place < 0:
        raise InputError(f"Expected the number of a passage, found {reader.place}.")
    return reader


def _save_draft(target: CorrectionTarget, key: str, reader: ReaderState) -> None:
    if f"{key}.newest_seen" not in st.session_state:
        with state.open_store() as store:
            st.session_state[f"{key}.newest_seen"] = get_newest_entry(store, target)
    st.session_state.setdefault(f"{key}.began", time.time())
    kept = {name: st.session_state[f"{key}.{name}"] for name in ("newest_seen", "began")}
    drafts.save_draft_values(key, {"labels": reader.labels, **kept})


def _save_labels(target: CorrectionTarget, key: str, rows: Sequence[ReaderRow]) -> None:
    """Append the labels as a correction; on a problem or conflict they are kept in the draft."""
    reader: ReaderState = st.session_state[f"{key}.state"]

    def build(store: Store, person: str) -> Correction:
        own = find_own_answer(store, target.case.id, person)
        correction = build_statement_correction(target, rows, reader.labels, person, own)
        seconds = max(0.0, correction.at - float(st.session_state.get(f"{key}.began", time.time())))
        return replace(correction, seconds=round(seconds, 1))

    if append_answer(target, key, build) is not None:
        _forget_draft(key)
        st.session_state[f"{key}.done"] = True


def _save_after(target: CorrectionTarget, key: str, rows: Sequence[ReaderRow], newest: str) -> None:
    """Save after a conflict that the person has seen; a newer entry is a conflict again."""
    st.session_state[f"{key}.newest_seen"] = newest
    st.session_state.pop(f"{key}.conflict", None)
    with store_problem(f"{key}.problem"):
        _save_labels(target, key, rows)


def _forget_draft(key: str) -> None:
    for name in ("newest_seen", "began", "conflict"):
        st.session_state.pop(f"{key}.{name}", None)
    drafts.save_draft_values(key, {})


def _discard_labels(key: str) -> None:
    """Go back to the labels that were saved last."""
    current: ReaderState = st.session_state.pop(f"{key}.state")
    _forget_draft(key)
    # The browser takes over only what is newer than its own.
    st.session_state[f"{key}.revision"] = current.revision + 1


def place_statement_labels(
    rows: Sequence[ReaderRow], labels: Mapping[str, Label]
) -> tuple[StatementLabel, ...]:
    """Return the labels with the places of their statements."""
    return tuple(
        StatementLabel(row.row.statement.start, row.row.statement.end, labels[row.id])
        for row in rows
        if row.id in labels
    )


def build_statement_correction(
    target: CorrectionTarget,
    rows: Sequence[ReaderRow],
    labels: Mapping[str, Label],
    person: str,
    own: Correction | None,
) -> Correction:
    """Return a correction with these labels, and with the other fields of the person's `own` one.

    The person's own marks, and those that they rejected, stay so. Else the machine's marks in
    statements that the person agrees are wrong become the person's, once no statement is open; in
    those that the machine called right, its marks are accepted only if no wrong statement lacks
    one. What lacks marks is not learned from (`Correction.lacks_marks`).
    Raises InputError: the label of the response does not follow from those of some statements.
    """
    label = combine_statement_labels(labels.values())
    missing = [row for row in rows if row.is_checkable and row.id not in labels]
    if missing and label != "hallucinated":
        raise InputError(
            f"Expected labels of all statements, or one that is hallucinated; found "
            f"{len(missing)} without a label."
        )
    wrong = [row for row in rows if labels.get(row.id) == "hallucinated"]
    right = [row for row in rows if labels.get(row.id) == "supported"]
    offered = target.suggested_spans
    base = own or Correction("", None, target.case.id, "", 0, label)
    refused = () if base.statements else base.rejected  # with labels, these follow from them
    open_spans = () if base.is_unmarked else [s for s in offered if s not in refused]
    spans = [s for s in base.spans or open_spans if any(row.overlaps(s) for row in wrong)]
    if not base.spans and not all(any(row.overlaps(s) for s in spans) for row in wrong):
        agreed = [row for row in wrong if row.machine == "hallucinated"]
        spans = [s for s in spans if any(row.overlaps(s) for row in agreed)]
    if not base.spans and missing:
        spans = []  # what nobody labelled may be wrong too
    rejected = [
        span
        for span in offered
        if any(row.overlaps(span) for row in right) > any(row.overlaps(span) for row in wrong)
        or span in refused
    ]
    before = {
        row.id: one.label
        for row in rows
        for one in base.statements
        if (one.start, one.end) == (row.row.statement.start, row.row.statement.end)
    }
    is_own_reason = bool(base.reason) and base.reason != describe_corrected_statements(rows, before)
    return replace(
        base,
        id=new_id(),
        run_id=target.run.id if target.run else None,
        author=person,
        at=time.time(),
        label=label,
        spans=tuple(spans),
        rejected=tuple(rejected),
        reason=base.reason if is_own_reason else describe_corrected_statements(rows, labels),
        machine_label=target.machine_label,
        is_blind=False,
        is_unmarked=base.is_unmarked and label == "hallucinated" and not spans,
        accepted_all=bool(offered) and all(span in spans for span in offered),
        statements=place_statement_labels(rows, labels),
    )


def describe_corrected_statements(rows: Sequence[ReaderRow], labels: Mapping[str, Label]) -> str:
    """Say which statements got another label: “Changed: statements 4, 9: supported”."""
    parts = []
    for label in LABELS_BY_GRAVITY:
        changed = [r for r in rows if labels.get(r.id) == label and label != r.machine]
        if changed:
            numbers = ", ".join(str(row.row.number) for row in changed)
            parts.append(f"{'statements' if len(changed) > 1 else 'statement'} {numbers}: {label}")
    words = "; ".join(parts)
    return f"Changed: {words}" if words else "Every statement keeps the label it had"
