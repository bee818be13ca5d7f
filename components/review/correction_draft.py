"""The draft of a correction: its fields, kept at each change and brought back.

Marked words become spans from suggestions and edits. Evidence is marked in a part of a source at a
time (SC-MAKS 4.5): what is kept are stretches of the source's text, while the editor's own offsets
count from the part that it shows.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import streamlit as st

from components.app import state
from components.widgets import drafts
from components.widgets.annotation_editors import (
    Mark,
    Marked,
    boxes_again,
    boxes_from,
    boxes_kept,
    boxes_to,
    marked_from,
    span_editor,
)
from components.widgets.wording import LABEL_WORDS, clipped, escaped, when
from core.documents.quotes import relocate
from core.review.adjudication import record
from core.runtime.errors import InputError
from core.schema.progress import Progress
from core.schema.records import CATEGORY_WORDS, Case, Label, Run, Source, Span, new_id
from core.schema.reviews import Correction, EvidenceMark, Gold, Suggestion, category_words
from core.store import Store
from core.store.sqlite import from_plain, to_plain

STANCE_WORDS = {"contradicts": "contradicts it", "supports": "supports it"}


@dataclass(frozen=True)
class CorrectionTarget:
    """What a person is asked about; `after` is called in the transaction that saves the answer.

    Without a run nobody has checked the case here; `suggestions` are what agents outside say of it.
    Blind, they are told nothing of what machines found, neither label nor words. Where people
    answer alone, what others say meanwhile is no conflict. `settles`: what they say becomes the
    case's right answer, in the way of `record`; `marked_by` are then the spans of all versions, and
    `corrects` says that there is a right answer already.
    """

    run: Run | None
    case: Case
    progress: Progress
    is_blind: bool = False
    is_alone: bool = False
    after: Callable[[Store, Correction], object] = lambda store, correction: None
    suggestions: tuple[Suggestion, ...] = ()
    categories: tuple[str, ...] = tuple(CATEGORY_WORDS)
    settles: bool = False
    corrects: bool = False
    record: Callable[[Store, Correction, Case], None] = record
    marked_by: tuple[Span, ...] | None = None

    @property
    def id(self) -> str:
        """What the form's fields are kept under."""
        if self.settles:
            return f"{self.case.id}.settle"
        # In the queue a case may be checked again while somebody writes: the case names the form.
        return self.case.id if self.is_alone or self.run is None else self.run.id

    @property
    def machine(self) -> Label | None:
        """What the verdict says, also when the run was stopped after it; None without a run."""
        if self.run is None:
            return None
        return self.progress.verdict.label if self.progress.verdict else "unclear"

    @property
    def told(self) -> Label | None:
        """What the person is told of it; who settles weighs it as one version among others."""
        return None if self.is_blind or self.settles else self.machine

    @property
    def offered(self) -> tuple[Span, ...]:
        """The spans that machines found, as far as the person is shown them."""
        if self.marked_by is not None:
            return self.marked_by
        if self.is_blind:
            return ()
        outside = (
            replace(span, source=said.agent) for said in self.suggestions for span in said.spans
        )
        return (*self.progress.spans, *outside)

    @property
    def words(self) -> dict[str, str]:
        """The project's categories, and those of offered spans, in words."""
        used = [*self.categories, *(span.category for span in self.offered)]
        return {name: category_words(name) for name in used}


def draw_settled(golds: Sequence[Gold]) -> None:
    """What the case was settled as, if a lead has done so."""
    settled = [gold for gold in golds if gold.origin != "imported"]
    if not settled:
        return
    last = settled[-1]
    right = f" Right: {escaped(last.corrected_answer)}." if last.corrected_answer else ""
    reason = f": {escaped(last.reason)}" if last.reason else ""
    st.info(
        f"Settled by **{escaped(last.author)}** on {when(last.at)} as "
        f"{LABEL_WORDS[last.label].lower()}{reason}.{right} What you say is kept beside it.",
        icon=":material/gavel:",
    )


def said_words(correction: Correction) -> str:
    """What a person said, as Markdown without their name."""
    return escaped(f"said {plain_words(correction)}")


def plain_words(correction: Correction, clip: int = 60) -> str:
    """What a person said, as text on one line; quotes are cut after `clip` characters."""
    words = LABEL_WORDS[correction.label].lower()
    if correction.machine_label and correction.machine_label != correction.label:
        words += f" (the machine: {LABEL_WORDS[correction.machine_label].lower()})"
    parts = [f"{words}: {correction.reason}" if correction.reason else words]
    if marked := [f"“{clipped(s.text, clip)}”" for s in correction.spans]:
        parts.append(f"Wrong words: {', '.join(marked)}")
    if correction.is_unmarked:
        parts.append("No single word is wrong")
    if correction.corrected_answer:
        parts.append(f"Right: {correction.corrected_answer}")
    for mark in correction.evidence:
        parts.append(f"“{clipped(mark.text, clip)}” {STANCE_WORDS[mark.stance]}")
    for box in correction.boxes:
        comment = f": {box.comment}" if box.comment else ""
        parts.append(f"A box in the image, {category_words(box.category)}{comment}")
    rated = asdict(correction.ratings)
    parts += [f"{name.capitalize()} {value} of 5" for name, value in rated.items() if value]
    if correction.comment:
        parts.append(f"Comment: {correction.comment}")
    return ". ".join(part.rstrip(".") for part in parts)


A_PART = 20_000  # characters: what the editor draws at once without a pause
Kept = dict[str, tuple[EvidenceMark, ...]]


def evidence_kept(key: str) -> Kept:
    """The marks of a form, by the part of the source that they were made in; "" where unknown."""
    found: Kept = st.session_state.get(f"{key}.evidence") or {}
    return found


def evidence_of(key: str) -> tuple[EvidenceMark, ...]:
    """All marks of a form, each once, in the order of the sources."""
    marks = dict.fromkeys(mark for marks in evidence_kept(key).values() for mark in marks)
    return tuple(sorted(marks, key=lambda mark: (mark.source_id, mark.start, mark.end)))


def evidence_from(draft: object) -> Kept:
    """What a draft kept, where it can still be read."""
    try:
        marks = from_plain(tuple[EvidenceMark, ...], draft or [])
    except InputError:
        return {}
    return {"": marks} if marks else {}


def _parts_of(source: Source) -> list[tuple[str, int, int]]:
    """Pages of a source, or pieces that end with a line: what each is called, and its offsets."""
    whole = [(f"p. {page.number}", page.start, page.end) for page in source.pages]
    found: list[tuple[str, int, int]] = []
    for name, start, end in whole or [("", 0, len(source.text))]:
        cuts = [start]
        while end - cuts[-1] > A_PART:
            newline = source.text.rfind("\n", cuts[-1] + 1, cuts[-1] + A_PART)
            cuts.append(newline + 1 if newline > cuts[-1] else cuts[-1] + A_PART)
        for number, (first, last) in enumerate(pairwise([*cuts, end]), start=1):
            part = f"part {number} of {len(cuts)}" if len(cuts) > 1 else ""
            found.append((", ".join(filter(None, (name, part))), first, last))
    return found


def draw_evidence_marks(key: str, sources: Sequence[Source], changed: Callable[[], None]) -> None:
    """A source and a part of it to choose, and the editor over it; `changed` keeps the draft."""
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
    parts = _parts_of(source)
    place = right.selectbox(
        "Part",
        range(len(parts)),
        format_func=lambda n: parts[n][0] or "the whole text",
        key=f"{key}.evidence.part.{source.id}",
        disabled=len(parts) < 2,
    )
    _, start, end = parts[place or 0]
    _follow(key, source)
    _draw_part(key, source, start, end, changed)
    for mark in evidence_of(key):
        if not _lies(mark, source, start, end):
            where = names.get(mark.source_id, "?")
            st.caption(escaped(f"“{mark.text}” {STANCE_WORDS[mark.stance]} ({where})"))


def _follow(key: str, source: Source) -> None:
    """Move marks to where their words stand in the source as it is read now."""

    def moved(mark: EvidenceMark) -> EvidenceMark:
        if mark.source_id != source.id:
            return mark
        place = relocate(source.text, mark.start, mark.end, mark.text)
        return replace(mark, start=place[0], end=place[1]) if place else mark

    if kept := evidence_kept(key):
        st.session_state[f"{key}.evidence"] = {
            part: tuple(map(moved, marks)) for part, marks in kept.items()
        }


def _lies(mark: EvidenceMark, source: Source, start: int, end: int) -> bool:
    """True for a mark of this part whose words still stand there."""
    is_inside = mark.source_id == source.id and start <= mark.start and mark.end <= end
    return is_inside and source.text[mark.start : mark.end].split() == mark.text.split()


@st.fragment
def _draw_part(key: str, source: Source, start: int, end: int, changed: Callable[[], None]) -> None:
    text = source.text[start:end]
    part = f"{source.id}.{start}"
    held: Marked | None = st.session_state.get(f"{key}.evidence.{part}")
    if held is None:
        own = [m for m in evidence_of(key) if _lies(m, source, start, end)]
        places = ((m.start - start, m.end - start, m.stance) for m in own)
        held = Marked(marks=tuple(Mark(f"kept.{n}", *place) for n, place in enumerate(places)))

    def told(marked: Marked) -> None:
        st.session_state[f"{key}.evidence.{part}"] = marked
        others = {
            name: tuple(m for m in marks if not _lies(m, source, start, end))
            for name, marks in evidence_kept(key).items()
        }
        here = tuple(
            EvidenceMark(
                source.id, start + mark.start, start + mark.end, text[mark.start : mark.end],
                "supports" if mark.category == "supports" else "contradicts",
            )
            for mark in marked.chosen
        )  # fmt: skip
        st.session_state[f"{key}.evidence"] = others | {part: here}
        changed()

    editor = f"{key}.evidence.editor.{part}"
    span_editor(text, held, STANCE_WORDS, told, key=editor, language=source.language)


def sources_of(case: Case) -> list[Source]:
    """The case's documents and images that were read, and that whoever is here may see."""
    with state.open_store() as store:
        found = [
            store.readings.get(source_id, store.library.name_of(case.project_id, source_id))
            for source_id in (*case.documents, *case.images)
            if state.may_see_source(store, source_id)
        ]
    return [source for source in found if source is not None]


SUGGESTED = "machine."  # what the ids of spans that machines marked begin with


def id_of(span: Span) -> str:
    """The mark's id of a span that a machine marked: the same words of the same agent are one."""
    told = f"{span.start} {span.end} {span.category} {span.source}"
    return SUGGESTED + hashlib.sha256(told.encode()).hexdigest()[:16]


def marked_of(key: str, offered: Sequence[Span]) -> Marked:
    """What stands in the editor; the offered spans as suggestions where nobody changed any."""
    held: Marked | None = st.session_state.get(f"{key}.marked")
    return held if held is not None else Marked(marks=suggested(offered))


def suggested(spans: Sequence[Span]) -> tuple[Mark, ...]:
    """Spans that machines found as marks to accept or reject."""
    by_id = {id_of(span): span for span in spans}
    return tuple(
        Mark(name, s.start, s.end, s.category, s.source, s.p, "suggested")
        for name, s in by_id.items()
    )


def with_offered(marked: Marked, offered: Sequence[Span]) -> Marked:
    """The marks beside what is offered now; what a person accepted stays theirs."""
    now = {mark.id: mark for mark in suggested(offered)}
    kept = {
        mark.id: mark
        for mark in marked.marks
        if mark.status == "marked" or mark.id in now or not mark.id.startswith(SUGGESTED)
    }
    marks = tuple((now | kept)[name] for name in {**kept, **now})
    return marked if marks == marked.marks else replace(marked, marks=marks)


def with_words(marked: Marked, start: int, end: int, category: str) -> Marked:
    """Another mark of a person's own; the same one twice is one."""
    own = [m for m in marked.marks if m.status == "marked"]
    if any((m.start, m.end, m.category) == (start, end, category) for m in own):
        return marked
    mark = Mark(new_id(), start, end, category)
    return Marked(marked.revision + 1, (*marked.marks, mark), none=False, did="mark")


def accepting_open(marked: Marked) -> Marked:
    """What a person agrees with by agreeing: every suggestion that they did not reject."""
    if all(mark.status != "suggested" for mark in marked.marks):
        return marked
    marks = tuple(replace(m, status="marked") if m.status == "suggested" else m
                  for m in marked.marks)  # fmt: skip
    return replace(marked, revision=marked.revision + 1, marks=marks, none=False, did="accept_all")


def spans_of(marked: Marked, case: Case, machine: Sequence[Span], person: str) -> list[Span]:
    """The marks that count as spans; an accepted one that nobody changed stays the machine's."""
    found: list[Span] = []
    for mark in marked.chosen:
        place = (mark.start, mark.end, mark.category)
        text = case.response[mark.start : mark.end]
        theirs = _machines(mark, machine)
        if theirs is not None and (theirs.start, theirs.end, theirs.category) == place:
            found.append(theirs)
        else:
            found.append(Span(mark.start, mark.end, text, 1.0, mark.category, person))
    return found


def rejected_of(marked: Marked, machine: Sequence[Span]) -> list[Span]:
    """The machine's spans that a person rejected."""
    rejected = (_machines(mark, machine) for mark in marked.marks if mark.status == "rejected")
    return [span for span in rejected if span is not None]


def _machines(mark: Mark, machine: Sequence[Span]) -> Span | None:
    return next((span for span in machine if id_of(span) == mark.id), None)


def accepted_all(marked: Marked, offered: Sequence[Span]) -> bool:
    """True when every offered span stands accepted."""
    accepted = {m.id for m in marked.marks if m.status == "marked"}
    return bool(offered) and all(id_of(span) in accepted for span in offered)


def from_correction(correction: Correction, offered: Sequence[Span]) -> Marked:
    """What stood in the editor when this was saved."""
    chosen = {(s.start, s.end, s.category) for s in correction.spans}
    refused = {(s.start, s.end, s.category) for s in correction.rejected}
    marks: list[Mark] = []
    for mark in suggested(offered):
        place = (mark.start, mark.end, mark.category)
        if place in chosen:
            marks.append(replace(mark, status="marked"))
            chosen.discard(place)
        else:
            marks.append(replace(mark, status="rejected") if place in refused else mark)
    own = [s for s in correction.spans if (s.start, s.end, s.category) in chosen]
    marks += [Mark(f"saved.{n}", s.start, s.end, s.category) for n, s in enumerate(own)]
    return Marked(1, tuple(marks), none=correction.is_unmarked)


def _from_draft(draft: dict[str, Any], text: str, offered: Sequence[Span]) -> Marked | None:
    """What a draft kept, beside what is offered now; categories given up since stay."""
    if "marked" in draft:
        try:
            found = from_plain(Marked, draft["marked"])
            marked_from(draft["marked"], text, {mark.category for mark in found.marks})
        except InputError:
            return None
        return with_offered(found, offered)
    if "kept" not in draft and "added" not in draft:
        return None
    kept = draft.get("kept")  # before the editor: numbers of the machine's spans, and places
    marks = [
        replace(mark, status="marked" if not isinstance(kept, list) or n in kept else "rejected")
        for n, mark in enumerate(suggested(offered))
    ]
    for n, row in enumerate(draft.get("added") or []):
        match row:
            case [int(start), int(end), str(category)] if 0 <= start < end <= len(text):
                marks.append(Mark(f"draft.{n}", start, end, category))
    return Marked(1, tuple(marks))


TEXTS = ("reason", "answer", "quote", "comment")
RATINGS = ("accuracy", "coherence", "consistency")
SURE_WORDS = {0.5: "a guess", 0.75: "fairly sure", 1.0: "certain"}
FIELDS = ("label", "which", "category", "seen", "all", "sure", *RATINGS, *TEXTS)


def key_of(asked_id: str) -> str:
    """What the keys of all the form's widgets begin with."""
    return f"run.{asked_id}.correct"


def keep(asked_id: str, left: str = "") -> None:
    """Keep the fields as they are now; `left` is a text field that has just told its text."""
    key = key_of(asked_id)
    typed: dict[str, str] = st.session_state.setdefault(f"{key}.typed", {})
    typed.pop(left, None)
    values: dict[str, Any] = {name: st.session_state.get(f"{key}.{name}") for name in FIELDS}
    marked = st.session_state.get(f"{key}.marked")
    values["marked"] = None if marked is None else to_plain(marked)
    evidence = [mark for marks in evidence_kept(key).values() for mark in marks]
    values["evidence"] = to_plain(evidence) or None
    values["boxes"] = boxes_to(boxes_kept(key)) or None
    drafts.keep(key, {name: v for name, v in (values | typed).items() if v is not None})


def kept_field(asked_id: str, name: str = "") -> dict[str, Any]:
    """How each field of the form is drawn: its change is kept, and it outlives the page."""
    return {"on_change": keep, "args": (asked_id, name), "persist_state": "session"}


def keep_typed(asked_id: str, texts: dict[str, str]) -> None:
    """Keep texts that are still being typed."""
    st.session_state[f"{key_of(asked_id)}.typed"] = texts
    keep(asked_id)


def restore(asked: CorrectionTarget) -> None:
    """Bring back what was kept, once a session; what does not fit the run any more is left out."""
    key = key_of(asked.id)
    if st.session_state.get(f"{key}.looked"):
        return
    st.session_state[f"{key}.looked"] = True
    draft = drafts.kept(key)
    if taken_back := str(draft.get("from") or ""):
        with state.open_store() as store:
            correction = store.corrections.get(taken_back)
        if correction is not None:
            refill(asked, correction, str(draft.get("seen") or ""))
        return
    if draft.get("label") not in LABEL_WORDS:
        return
    found: dict[str, Any] = {"label": draft["label"], "began": time.time()}
    found |= {name: draft[name] for name in (*TEXTS, "seen") if isinstance(draft.get(name), str)}
    found |= {name: draft[name] for name in RATINGS if draft.get(name) in range(1, 6)}
    if draft.get("sure") in SURE_WORDS:
        found["sure"] = draft["sure"]
    if draft.get("category") in asked.words:  # the field offers no others
        found["category"] = draft["category"]
    places = places_of(asked.case.response, found.get("quote", ""))
    if draft.get("which") in range(len(places)):
        found["which"] = draft["which"]
    found["all"] = draft.get("all") is True
    found["marked"] = _from_draft(draft, asked.case.response, asked.offered)
    found["evidence"] = evidence_from(draft.get("evidence"))
    found["boxes"] = boxes_from(draft.get("boxes"))
    _fill(key, found)


def refill(asked: CorrectionTarget, correction: Correction, seen: str) -> None:
    """Open the form as it was when this was saved; `seen` is the newest entry by now."""
    found = {
        "label": correction.label,
        "began": time.time(),
        "seen": seen,
        "reason": correction.reason,
        "answer": correction.corrected_answer,
        "comment": correction.comment,
        "sure": correction.sure,
        "all": correction.accepted_all,
        **asdict(correction.ratings),
        "marked": from_correction(correction, asked.offered),
        "evidence": {"": correction.evidence} if correction.evidence else {},
        "boxes": boxes_again(correction.boxes),
    }
    _fill(key_of(asked.id), found)
    keep(asked.id)


def _fill(key: str, values: dict[str, Any]) -> None:
    """Put values into the fields, and let go of what stands in the editors over sources."""
    for name in [str(name) for name in st.session_state]:
        if name.startswith(f"{key}.evidence."):
            st.session_state.pop(name, None)
    for name, value in values.items():
        st.session_state[f"{key}.{name}"] = value


def forget(asked_id: str) -> None:
    """Empty the form and drop what was kept of it."""
    key = key_of(asked_id)
    for name in (*FIELDS, "marked", "evidence", "boxes", "began", "typed", "stamp", "conflict",
                 "more"):  # fmt: skip
        st.session_state.pop(f"{key}.{name}", None)
    _fill(key, {})
    drafts.keep(key, {})


def places_of(text: str, quote: str) -> list[int]:
    """Where the exact words begin, overlapping places too."""
    found: list[int] = []
    start = text.find(quote) if quote else -1
    while start >= 0:
        found.append(start)
        start = text.find(quote, start + 1)
    return found


def typed_place(asked: CorrectionTarget) -> tuple[int, int, str]:
    """Where the words in the field stand in the response, and their category."""
    key = key_of(asked.id)
    quote = str(st.session_state.get(f"{key}.quote") or "")
    places = places_of(asked.case.response, quote)
    start = places[min(int(st.session_state.get(f"{key}.which") or 0), len(places) - 1)]
    category = str(st.session_state.get(f"{key}.category") or next(iter(asked.words)))
    return start, start + len(quote), category
