"""The draft of a correction: its fields, kept at each change and restored later.

Suggestions and edits become spans. Evidence is marked in one part of a source at a time
(SC-MAKS 4.5): stored offsets count in the source's text, the editor's own offsets in the part that
it shows.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import streamlit as st

from components.app import state
from components.widgets import drafts
from components.widgets.annotation_editors import (
    SpanEditorState,
    SpanMark,
    decode_boxes,
    draw_span_editor,
    encode_boxes,
    get_box_editors,
    group_boxes_by_image,
    parse_span_editor,
)
from components.widgets.wording import LABEL_WORDS, clip_text, escape_markdown, format_time
from core.documents.quotes import relocate_words
from core.review.adjudication import record_correction
from core.runtime.errors import InputError
from core.schema.records import CATEGORY_WORDS, Case, Label, Run, Source, Span, new_id
from core.schema.reviews import Correction, EvidenceMark, GoldAnswer, Suggestion, format_category
from core.schema.run_state import RunState
from core.store import Store
from core.store.sqlite import from_plain, to_plain

EVIDENCE_STANCE_WORDS = {"contradicts": "contradicts it", "supports": "supports it"}
MAX_PART_CHARS = 20_000  # characters; the editor draws so many without a noticeable delay
EvidenceByPart = dict[str, tuple[EvidenceMark, ...]]
MACHINE_MARK_PREFIX = "machine."  # prefix of the ids of machine marks
TEXT_FIELDS = ("reason", "answer", "quote", "comment")
RATING_FIELDS = ("accuracy", "coherence", "consistency")
SURE_WORDS = {0.5: "a guess", 0.75: "fairly sure", 1.0: "certain"}
DRAFT_FIELDS = (
    "label", "occurrence", "category", "newest_seen", "accepted_all", "sure", "seconds",
    *RATING_FIELDS, *TEXT_FIELDS,
)  # fmt: skip
"""The fields of a form that its draft keeps. `occurrence`: which of the places where the pasted
words stand; `newest_seen`: the newest answer known when the draft was begun, as a later one is a
conflict; `accepted_all`: the suggestions were accepted in one go; `seconds`: for how long it was on
screen."""
WATCH = "watch"  # the key's end of what is on the page for as long as a form is
CLOCK = "review.clock"  # the form that was drawn last, and when
OLD_DRAFT_FIELDS = {
    "which": "occurrence", "seen": "newest_seen", "all": "accepted_all", "from": "withdrawn",
}  # fmt: skip


@dataclass(frozen=True)
class CorrectionTarget:
    """What a person answers about; `after` is called in the transaction that saves the answer.

    `run` is None if nobody has checked the case here; `suggestions` are those of outside agents.
    `is_blind`: the form shows neither label nor words that machines found. `is_alone`: answers that
    others save meanwhile are no conflict. `settles`: the answer becomes the case's right answer,
    stored by `record`; then `version_spans` holds the spans of all versions, and `corrects` says
    that there is a right answer already.
    """

    run: Run | None
    case: Case
    progress: RunState
    is_blind: bool = False
    is_alone: bool = False
    after: Callable[[Store, Correction], object] = lambda store, correction: None
    suggestions: tuple[Suggestion, ...] = ()
    categories: tuple[str, ...] = tuple(CATEGORY_WORDS)
    settles: bool = False
    corrects: bool = False
    record: Callable[[Store, Correction, Case], None] = record_correction
    version_spans: tuple[Span, ...] | None = None

    @property
    def id(self) -> str:
        """The id that the form's fields are kept under."""
        if self.settles:
            return f"{self.case.id}.settle"
        # By case in the queue, as the case may be checked again while somebody writes.
        return self.case.id if self.is_alone or self.run is None else self.run.id

    @property
    def machine_label(self) -> Label | None:
        """The verdict's label, even if the run was stopped after it; None without a run."""
        if self.run is None:
            return None
        return self.progress.verdict.label if self.progress.verdict else "unclear"

    @property
    def shown_label(self) -> Label | None:
        """The label shown to the person; None on Adjudicate, where it is one version of several."""
        return None if self.is_blind or self.settles else self.machine_label

    @property
    def is_page(self) -> bool:
        """True where the form is what the page is for: the words stand open and take the keys."""
        return self.is_alone or self.settles

    @property
    def suggested_spans(self) -> tuple[Span, ...]:
        """The machines' spans that the person is shown."""
        if self.version_spans is not None:
            return self.version_spans
        if self.is_blind:
            return ()
        outside = (
            replace(span, source=suggestion.agent)
            for suggestion in self.suggestions
            for span in suggestion.spans
        )
        return (*self.progress.spans, *outside)

    @property
    def category_words(self) -> dict[str, str]:
        """The names of the project's categories and of those of suggested spans, by id."""
        used = [*self.categories, *(span.category for span in self.suggested_spans)]
        return {name: format_category(name) for name in used}


def draw_right_answer(gold: GoldAnswer | None) -> None:
    """Draw the right answer that counts, if a lead decided on it."""
    if gold is None or gold.origin == "imported":
        return
    right = f" Right: {escape_markdown(gold.corrected_answer)}." if gold.corrected_answer else ""
    reason = f": {escape_markdown(gold.reason)}" if gold.reason else ""
    st.info(
        f"Settled by **{escape_markdown(gold.author)}** on {format_time(gold.at)} as "
        f"{LABEL_WORDS[gold.label].lower()}{reason}.{right} What you say is kept beside it.",
        icon=":material/gavel:",
    )


def format_correction_markdown(correction: Correction) -> str:
    """Return what the correction says, as Markdown without the author."""
    return escape_markdown(f"said {format_correction(correction)}")


def format_correction(correction: Correction, clip: int = 60) -> str:
    """Return what the correction says as one line of text; quotes are cut to `clip` characters."""
    words = LABEL_WORDS[correction.label].lower()
    if correction.machine_label and correction.machine_label != correction.label:
        words += f" (the machine: {LABEL_WORDS[correction.machine_label].lower()})"
    parts = [f"{words}: {correction.reason}" if correction.reason else words]
    if correction.spans:
        marked = ", ".join(_format_span(span, clip) for span in correction.spans)
        parts.append(f"Wrong words: {marked}")
    if correction.is_unmarked:
        parts.append("No single word is wrong")
    if counts := Counter(one.label for one in correction.statements):
        parts.append(f"Statements: {', '.join(f'{n} {name}' for name, n in counts.items())}")
    if correction.corrected_answer:
        parts.append(f"Right: {correction.corrected_answer}")
    for mark in correction.evidence:
        parts.append(f"“{clip_text(mark.text, clip)}” {EVIDENCE_STANCE_WORDS[mark.stance]}")
    for box in correction.boxes:
        comment = f": {box.comment}" if box.comment else ""
        parts.append(f"A box in the image, {format_category(box.category)}{comment}")
    rated = asdict(correction.ratings)
    parts += [f"{name.capitalize()} {value} of 5" for name, value in rated.items() if value]
    if correction.comment:
        parts.append(f"Comment: {correction.comment}")
    return ". ".join(part.rstrip(".") for part in parts)


def _format_span(span: Span, clip: int) -> str:
    words = f"“{clip_text(span.text, clip)}”"
    return f"{words} → “{clip_text(span.instead, clip)}”" if span.instead else words


def get_evidence_by_part(key: str) -> EvidenceByPart:
    """Return a form's evidence marks by the part of the source that they were made in, or ""."""
    marks: EvidenceByPart = st.session_state.get(f"{key}.evidence") or {}
    return marks


def list_evidence(key: str) -> tuple[EvidenceMark, ...]:
    """Return all evidence marks of a form, each once, ordered by source and offset."""
    marks = dict.fromkeys(mark for marks in get_evidence_by_part(key).values() for mark in marks)
    return tuple(sorted(marks, key=lambda mark: (mark.source_id, mark.start, mark.end)))


def parse_evidence_draft(draft: object) -> EvidenceByPart:
    """Return the evidence marks of a draft, or none if it is unreadable."""
    try:
        marks = from_plain(tuple[EvidenceMark, ...], draft or [])
    except InputError:
        return {}
    return {"": marks} if marks else {}


def _list_parts(source: Source) -> list[tuple[str, int, int]]:
    """Return (name, start, end) of each page, cut into parts of at most `MAX_PART_CHARS`."""
    pages = [(f"p. {page.number}", page.start, page.end) for page in source.pages]
    parts: list[tuple[str, int, int]] = []
    for name, start, end in pages or [("", 0, len(source.text))]:
        cuts = [start]
        while end - cuts[-1] > MAX_PART_CHARS:
            newline = source.text.rfind("\n", cuts[-1] + 1, cuts[-1] + MAX_PART_CHARS)
            cuts.append(newline + 1 if newline > cuts[-1] else cuts[-1] + MAX_PART_CHARS)
        for number, (first, last) in enumerate(pairwise([*cuts, end]), start=1):
            part = f"part {number} of {len(cuts)}" if len(cuts) > 1 else ""
            parts.append((", ".join(filter(None, (name, part))), first, last))
    return parts


def draw_evidence_marks(key: str, sources: Sequence[Source], changed: Callable[[], None]) -> None:
    """Draw the choice of a source and a part of it, and its editor; `changed` keeps the draft."""
    readable = [source for source in sources if source.text]
    if not readable:
        st.caption("There is no text to mark: the case has no source that could be read.")
        return
    left, right = st.columns([3, 2])
    names = {source.id: source.name for source in readable}
    chosen = left.selectbox(
        "Source", list(names), format_func=lambda i: names[i], key=f"{key}.evidence.source"
    )
    source = next((s for s in readable if s.id == chosen), readable[0])
    parts = _list_parts(source)
    place = right.selectbox(
        "Part",
        range(len(parts)),
        format_func=lambda n: parts[n][0] or "the whole text",
        key=f"{key}.evidence.part.{source.id}",
        disabled=len(parts) < 2,
    )
    _, start, end = parts[place or 0]
    _relocate_marks(key, source)
    _draw_part(key, source, start, end, changed)
    for mark in list_evidence(key):
        if not _is_in_part(mark, source, start, end):
            where = names.get(mark.source_id, "?")
            st.caption(
                escape_markdown(f"“{mark.text}” {EVIDENCE_STANCE_WORDS[mark.stance]} ({where})")
            )


def _relocate_marks(key: str, source: Source) -> None:
    """Move marks to where their words stand in the source as it reads now."""

    def relocate_mark(mark: EvidenceMark) -> EvidenceMark:
        if mark.source_id != source.id:
            return mark
        place = relocate_words(source.text, mark.start, mark.end, mark.text)
        return replace(mark, start=place[0], end=place[1]) if place else mark

    if kept := get_evidence_by_part(key):
        st.session_state[f"{key}.evidence"] = {
            part: tuple(map(relocate_mark, marks)) for part, marks in kept.items()
        }


def _is_in_part(mark: EvidenceMark, source: Source, start: int, end: int) -> bool:
    """Return True if the mark is in this part and its words still stand there."""
    is_inside = mark.source_id == source.id and start <= mark.start and mark.end <= end
    return is_inside and source.text[mark.start : mark.end].split() == mark.text.split()


@st.fragment
def _draw_part(key: str, source: Source, start: int, end: int, changed: Callable[[], None]) -> None:
    text = source.text[start:end]
    part = f"{source.id}.{start}"
    current: SpanEditorState | None = st.session_state.get(f"{key}.evidence.{part}")
    if current is None:
        here = [m for m in list_evidence(key) if _is_in_part(m, source, start, end)]
        places = ((m.start - start, m.end - start, m.stance) for m in here)
        current = SpanEditorState(
            marks=tuple(SpanMark(f"kept.{n}", *place) for n, place in enumerate(places))
        )

    def keep_marks(marked: SpanEditorState) -> None:
        st.session_state[f"{key}.evidence.{part}"] = marked
        others = {
            name: tuple(m for m in marks if not _is_in_part(m, source, start, end))
            for name, marks in get_evidence_by_part(key).items()
        }
        in_part = tuple(
            EvidenceMark(
                source.id,
                start + mark.start,
                start + mark.end,
                text[mark.start : mark.end],
                "supports" if mark.category == "supports" else "contradicts",
            )
            for mark in marked.chosen
        )
        st.session_state[f"{key}.evidence"] = others | {part: in_part}
        changed()

    editor = f"{key}.evidence.editor.{part}"
    words = EVIDENCE_STANCE_WORDS
    draw_span_editor(text, current, words, keep_marks, key=editor, language=source.language)


def load_case_sources(case: Case) -> list[Source]:
    """Return the case's readable documents and images that the signed-in person may see."""
    with state.open_store() as store:
        sources = [
            store.readings.get(source_id, store.library.name_of(case.project_id, source_id))
            for source_id in (*case.documents, *case.images)
            if state.can_see_source(store, source_id)
        ]
    return [source for source in sources if source is not None]


def make_mark_id(span: Span) -> str:
    """Return the mark id of a machine's span; the same words by the same agent share one."""
    content = f"{span.start} {span.end} {span.category} {span.source}"
    return MACHINE_MARK_PREFIX + hashlib.sha256(content.encode()).hexdigest()[:16]


def get_marked(key: str, offered: Sequence[Span]) -> SpanEditorState:
    """Return the editor's marks; without changes the offered spans as suggestions."""
    current: SpanEditorState | None = st.session_state.get(f"{key}.marked")
    return current if current is not None else SpanEditorState(marks=make_suggestions(offered))


def make_suggestions(spans: Sequence[Span]) -> tuple[SpanMark, ...]:
    """Return machines' spans as marks to accept or reject."""
    by_id = {make_mark_id(span): span for span in spans}
    return tuple(
        SpanMark(name, s.start, s.end, s.category, s.source, s.p, "suggested", s.instead)
        for name, s in by_id.items()
    )


def merge_offered(marked: SpanEditorState, offered: Sequence[Span]) -> SpanEditorState:
    """Merge the marks with the spans offered now; accepted marks stay the person's."""
    offered_now = {mark.id: mark for mark in make_suggestions(offered)}
    kept = {
        mark.id: mark
        for mark in marked.marks
        if mark.status == "marked"
        or mark.id in offered_now
        or not mark.id.startswith(MACHINE_MARK_PREFIX)
    }
    marks = tuple((offered_now | kept)[name] for name in {**kept, **offered_now})
    return marked if marks == marked.marks else replace(marked, marks=marks)


def add_own_mark(marked: SpanEditorState, start: int, end: int, category: str) -> SpanEditorState:
    """Add a mark of the person's own, unless it is there already."""
    own = [m for m in marked.marks if m.status == "marked"]
    if any((m.start, m.end, m.category) == (start, end, category) for m in own):
        return marked
    mark = SpanMark(new_id(), start, end, category)
    return SpanEditorState(marked.revision + 1, (*marked.marks, mark), none=False, did="mark")


def accept_suggestions(marked: SpanEditorState) -> SpanEditorState:
    """Accept every open suggestion, as agreeing with the verdict does."""
    if all(mark.status != "suggested" for mark in marked.marks):
        return marked
    marks = tuple(
        replace(m, status="marked") if m.status == "suggested" else m for m in marked.marks
    )
    return replace(marked, revision=marked.revision + 1, marks=marks, none=False, did="accept_all")


def list_accepted_spans(
    marked: SpanEditorState, case: Case, machine: Sequence[Span], person: str
) -> list[Span]:
    """Return the marks that count as spans; an accepted, unchanged one stays the machine's.

    One that should say other words than the machine found keeps no quote of the machine's.
    """
    spans: list[Span] = []
    for mark in marked.chosen:
        place = (mark.start, mark.end, mark.category)
        text = case.response[mark.start : mark.end]
        theirs = _find_machine_span(mark, machine)
        if theirs is not None and (theirs.start, theirs.end, theirs.category) == place:
            span = theirs
        else:
            span = Span(mark.start, mark.end, text, 1.0, mark.category, person)
        instead = span.instead if mark.instead is None else mark.instead.strip()
        spans.append(
            span if instead == span.instead else replace(span, instead=instead, quote=None)
        )
    return spans


def list_rejected_spans(marked: SpanEditorState, machine: Sequence[Span]) -> list[Span]:
    """Return the machine's spans that the person rejected."""
    rejected = (
        _find_machine_span(mark, machine) for mark in marked.marks if mark.status == "rejected"
    )
    return [span for span in rejected if span is not None]


def _find_machine_span(mark: SpanMark, machine: Sequence[Span]) -> Span | None:
    return next((span for span in machine if make_mark_id(span) == mark.id), None)


def has_accepted_all(marked: SpanEditorState, offered: Sequence[Span]) -> bool:
    """Return True if every offered span is accepted."""
    accepted = {m.id for m in marked.marks if m.status == "marked"}
    return bool(offered) and all(make_mark_id(span) in accepted for span in offered)


def restore_correction_marks(correction: Correction, offered: Sequence[Span]) -> SpanEditorState:
    """Return the editor's marks as they were when the correction was saved."""
    chosen = {(s.start, s.end, s.category): s.instead for s in correction.spans}
    refused = {(s.start, s.end, s.category) for s in correction.rejected}
    marks: list[SpanMark] = []
    for mark in make_suggestions(offered):
        place = (mark.start, mark.end, mark.category)
        if place in chosen:
            marks.append(replace(mark, status="marked", instead=chosen.pop(place)))
        else:
            marks.append(replace(mark, status="rejected") if place in refused else mark)
    own = [s for s in correction.spans if (s.start, s.end, s.category) in chosen]
    marks += [
        SpanMark(f"saved.{n}", s.start, s.end, s.category, instead=s.instead)
        for n, s in enumerate(own)
    ]
    return SpanEditorState(1, tuple(marks), none=correction.is_unmarked)


def _restore_marks(
    draft: dict[str, Any], text: str, offered: Sequence[Span]
) -> SpanEditorState | None:
    """Return a draft's marks merged with the offered spans; removed categories stay."""
    if "marked" in draft:
        try:
            marked = from_plain(SpanEditorState, draft["marked"])
            parse_span_editor(draft["marked"], text, {mark.category for mark in marked.marks})
        except InputError:
            return None
        return merge_offered(marked, offered)
    if "kept" not in draft and "added" not in draft:
        return None
    kept = draft.get("kept")  # old drafts: numbers of the machine's spans, and places
    marks = [
        replace(mark, status="marked" if not isinstance(kept, list) or n in kept else "rejected")
        for n, mark in enumerate(make_suggestions(offered))
    ]
    for n, row in enumerate(draft.get("added") or []):
        match row:
            case [int(start), int(end), str(category)] if 0 <= start < end <= len(text):
                marks.append(SpanMark(f"draft.{n}", start, end, category))
    return SpanEditorState(1, tuple(marks))


def make_form_key(asked_id: str) -> str:
    """Return the prefix of the keys of all the form's widgets."""
    return f"run.{asked_id}.correct"


def count_seconds(key: str) -> float:
    """Return for how long a form has been on screen; call it whenever it is drawn or saved.

    Another one that stood on the page until now, in place of this one, stops counting.
    """
    now = time.time()
    drawn, at = st.session_state.get(CLOCK, (key, now))
    if f"{drawn}.{WATCH}" in st.session_state:  # no other page came between
        st.session_state[f"{drawn}.seconds"] = (
            st.session_state.get(f"{drawn}.seconds", 0.0) + now - at
        )
    st.session_state[CLOCK] = key, now
    return float(st.session_state.get(f"{key}.seconds", 0.0))


def save_draft(asked_id: str, left: str = "") -> None:
    """Keep the fields as they are; `left` is a text field that has just sent its text."""
    key = make_form_key(asked_id)
    typed: dict[str, str] = st.session_state.setdefault(f"{key}.typed", {})
    typed.pop(left, None)
    values: dict[str, Any] = {name: st.session_state.get(f"{key}.{name}") for name in DRAFT_FIELDS}
    marked = st.session_state.get(f"{key}.marked")
    values["marked"] = None if marked is None else to_plain(marked)
    evidence = [mark for marks in get_evidence_by_part(key).values() for mark in marks]
    values["evidence"] = to_plain(evidence) or None
    values["boxes"] = encode_boxes(get_box_editors(key)) or None
    drafts.save_draft_values(
        key, {name: v for name, v in (values | typed).items() if v is not None}
    )


def draft_field_options(asked_id: str, name: str = "") -> dict[str, Any]:
    """Return widget arguments that keep each change and outlive the page."""
    return {"on_change": save_draft, "args": (asked_id, name), "persist_state": "session"}


def save_typed_texts(asked_id: str, texts: dict[str, str]) -> None:
    """Keep texts that are still being typed, unless a button has just saved the answer."""
    if f"{make_form_key(asked_id)}.label" not in st.session_state:
        return
    st.session_state[f"{make_form_key(asked_id)}.typed"] = texts
    save_draft(asked_id)


def restore_draft(target: CorrectionTarget) -> None:
    """Restore the draft, once a browser session, without what no longer fits the run."""
    key = make_form_key(target.id)
    if st.session_state.get(f"{key}.is_restored"):
        return
    st.session_state[f"{key}.is_restored"] = True
    stored = drafts.load_draft_values(key)
    draft = {OLD_DRAFT_FIELDS.get(name, name): value for name, value in stored.items()}
    if withdrawn_id := str(draft.get("withdrawn") or ""):
        with state.open_store() as store:
            correction = store.corrections.get(withdrawn_id)
        if correction is not None:
            fill_from_correction(target, correction, str(draft.get("newest_seen") or ""))
        return
    if draft.get("label") not in LABEL_WORDS:
        return
    values: dict[str, Any] = {"label": draft["label"]}
    values |= {
        name: draft[name]
        for name in (*TEXT_FIELDS, "newest_seen")
        if isinstance(draft.get(name), str)
    }
    values |= {name: draft[name] for name in RATING_FIELDS if draft.get(name) in range(1, 6)}
    if isinstance(seconds := draft.get("seconds"), int | float):
        values["seconds"] = seconds
    if draft.get("sure") in SURE_WORDS:
        values["sure"] = draft["sure"]
    if draft.get("category") in target.category_words:  # the field offers only these
        values["category"] = draft["category"]
    places = find_exact_places(target.case.response, values.get("quote", ""))
    if draft.get("occurrence") in range(len(places)):
        values["occurrence"] = draft["occurrence"]
    values["accepted_all"] = draft.get("accepted_all") is True
    values["marked"] = _restore_marks(draft, target.case.response, target.suggested_spans)
    values["evidence"] = parse_evidence_draft(draft.get("evidence"))
    values["boxes"] = decode_boxes(draft.get("boxes"))
    _set_fields(key, values)


def fill_from_correction(
    target: CorrectionTarget, correction: Correction, newest_seen: str, *, is_draft: bool = True
) -> None:
    """Fill the form as it was when the correction was saved; it is a draft then, or only shown."""
    key = make_form_key(target.id)
    marked = restore_correction_marks(correction, target.suggested_spans)
    # An editor that is on the page takes over only what is newer than its own.
    revision = get_marked(key, target.suggested_spans).revision + 1
    values = {
        "label": correction.label,
        "newest_seen": newest_seen,
        "reason": correction.reason,
        "answer": correction.corrected_answer,
        "comment": correction.comment,
        "sure": correction.sure,
        "accepted_all": correction.accepted_all,
        **asdict(correction.ratings),
        "marked": replace(marked, revision=revision),
        "evidence": {"": correction.evidence} if correction.evidence else {},
        "boxes": group_boxes_by_image(correction.boxes),
    }
    _set_fields(key, values)
    if is_draft:
        save_draft(target.id)


def _set_fields(key: str, values: dict[str, Any]) -> None:
    """Put values into the fields and clear the evidence editors."""
    for name in [str(name) for name in st.session_state]:
        if name.startswith(f"{key}.evidence."):
            st.session_state.pop(name, None)
    for name, value in values.items():
        st.session_state[f"{key}.{name}"] = value


def discard_draft(asked_id: str) -> None:
    """Empty the form and delete its draft."""
    key = make_form_key(asked_id)
    for name in (
        *DRAFT_FIELDS,
        "marked",
        "evidence",
        "boxes",
        "typed",
        "stamp",
        "conflict",
        "more",
    ):
        st.session_state.pop(f"{key}.{name}", None)
    st.session_state.pop(CLOCK, None)
    _set_fields(key, {})
    drafts.save_draft_values(key, {})


def find_exact_places(text: str, quote: str) -> list[int]:
    """Return the offsets at which the exact words begin, overlapping ones included."""
    places: list[int] = []
    start = text.find(quote) if quote else -1
    while start >= 0:
        places.append(start)
        start = text.find(quote, start + 1)
    return places


def find_typed_place(target: CorrectionTarget) -> tuple[int, int, str]:
    """Return (start, end, category) of the words in the field; offsets in the response."""
    key = make_form_key(target.id)
    quote = str(st.session_state.get(f"{key}.quote") or "")
    places = find_exact_places(target.case.response, quote)
    start = places[min(int(st.session_state.get(f"{key}.occurrence") or 0), len(places) - 1)]
    category = str(st.session_state.get(f"{key}.category") or next(iter(target.category_words)))
    return start, start + len(quote), category
