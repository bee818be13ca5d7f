"""Define the row that every format is read into and written from, and parse fields and spans.

A row (`ExchangeRow`) is a case with all its answers, as records of the store. Ids, times or authors
that a format does not have are empty; whoever stores the row fills them in. Spans count code
points. Tools written in JavaScript count UTF-16 units. As one tool writes all spans of an answer,
they are read in one unit, which their quotes reveal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Literal, TypeVar, cast, get_args

from core.runtime.errors import InputError, make_printable
from core.schema.events import Event
from core.schema.records import (
    Label,
    Project,
    RoleAssignment,
    Span,
    TruthRule,
    UnclearCause,
    Verdict,
    WordScore,
)
from core.schema.reviews import Correction, GoldAnswer, QueueEvent, Suggestion
from core.store.ground_truth import (
    GroundTruth,
    choose_counting_gold,
    decide_truth,
    select_standing_golds,
)

OffsetUnit = Literal["code points", "utf-16", "code points, CRLF once", "utf-16, CRLF once"]
OFFSET_UNITS: tuple[OffsetUnit, ...] = get_args(OffsetUnit)  # the likeliest first
RawSpan = tuple[object, object, object]  # start, end and quoted text as in the file
MAX_VALUE_CHARS = 60  # characters of a found value in a message
MAX_NAMES_CHARS = 200  # characters of the names of the fields that are there
T = TypeVar("T")
LABEL_BY_ERROR_FLAG: Mapping[str, Label] = {"1": "hallucinated", "0": "supported"}
LABEL_BY_TRUTH_VALUE: Mapping[str, Label] = {"true": "supported", "false": "hallucinated"}
SCHEMA_VERSION = 1  # version of our JSONL and CSV; files of a newer one are refused
UNSPECIFIED_CATEGORY = (
    "unspecified"  # the category of words that a set marks without saying what is wrong
)
UNKNOWN_LANGUAGES = ("", "und")  # language tags that carry no information
IMPORTED_SUFFIX = " (imported)"  # suffix of the names of people from a file
JSON_COLUMN_SUFFIX = "#json"  # suffix of the name of an extra column whose value is JSON, not text
ExtraColumns = tuple[tuple[str, str], ...]


def find_offset_units(response: str, places: Iterable[RawSpan]) -> tuple[OffsetUnit, ...]:
    """Return the units in which all quotes of one answer are found, the likeliest first."""
    quoted = [place for place in places if isinstance(place[2], str)]
    return tuple(
        unit
        for unit in OFFSET_UNITS
        if all(_match_span(response, *place, unit) is not None for place in quoted)
    )


def locate_span(
    response: str,
    start: object,
    end: object,
    quote: object = None,
    units: Sequence[OffsetUnit] = (),
    notices: list[str] | None = None,
) -> tuple[int, int]:
    """Return the span's (start, end) in code points, read in the first of `units`.

    A quoted text decides where they are wrong. With a list of `notices`, a span that ends beyond
    the response is cut back if its quoted text ends the response. The list then gets a notice of
    it, and of a span without quoted text that other units would place elsewhere.

    Raises InputError if it lies outside the response, or the quoted text is not found there.
    """
    if type(start) is not int or type(end) is not int:
        raise InputError(
            f"expected whole numbers as a span’s start and end, found {start!r:.40} and "
            f"{end!r:.40}; correct them."
        )
    tried = (units[:1] or OFFSET_UNITS[:1]) if quote is None else (*units, *OFFSET_UNITS)
    for unit in tried:
        if span := _match_span(response, start, end, quote, unit):
            others = {_match_span(response, start, end, quote, other) for other in units}
            if notices is not None and quote is None and others - {span, None}:
                notices.append(
                    "marks without quoted text may be shifted, because a line end or emoji may "
                    "count once or twice; compare the marked words"
                )
            return span
    if notices is not None and (span := _cut_span(response, start, end, quote)):
        notices.append(
            f"a mark from {start} to {end} ended beyond the response and was cut back to "
            f"“{response[slice(*span)][-40:]}”"
        )
        return span
    if 0 <= start < end <= len(response):
        raise InputError(
            f"expected the span’s text at characters {start} to {end}, found "
            f"“{response[start:end][:40]}” there and “{str(quote)[:40]}” in the span; correct its "
            "start and end, which count code points."
        )
    raise InputError(
        f"expected a span inside a response of {len(response)} characters, found {start} to {end}; "
        "correct its start and end, which count code points."
    )


def convert_offsets(text: str, start: int, end: int, unit: OffsetUnit) -> tuple[int, int] | None:
    """Convert a span to code points; None if it is empty, splits a character or lies outside."""
    if not 0 <= start < end:
        return None
    places = _map_offsets(text, unit)
    try:
        return places[start], places[end]
    except LookupError:
        return None


@lru_cache(maxsize=len(OFFSET_UNITS))
def _map_offsets(text: str, unit: OffsetUnit) -> Mapping[int, int] | Sequence[int]:
    """Return the code point at which each offset of this unit lies."""
    is_utf16 = unit.startswith("utf-16") and max(text, default="") > "\uffff"
    counts_crlf_once = unit.endswith("CRLF once") and "\r\n" in text
    if not is_utf16 and not counts_crlf_once:
        return range(len(text) + 1)
    places: dict[int, int] = {}
    offset = 0
    for place, character in enumerate(text):
        places.setdefault(offset, place)
        if not (counts_crlf_once and text.startswith("\r\n", place)):
            offset += 2 if is_utf16 and character > "\uffff" else 1
    return {**places, offset: len(text)}


def _match_span(
    response: str, start: object, end: object, quote: object, unit: OffsetUnit
) -> tuple[int, int] | None:
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    span = convert_offsets(response, start, end, unit)
    is_found = span and (quote is None or _is_same_text(response[slice(*span)], quote))
    return span if is_found else None


def _cut_span(response: str, start: int, end: int, quote: object) -> tuple[int, int] | None:
    """Return the span up to the end of the response, if it goes beyond and its quote fits."""
    for unit in OFFSET_UNITS if isinstance(quote, str) else ():
        last = max(_map_offsets(response, unit))
        for words in (quote, str(quote).rstrip()) if last < end else ():
            if span := _match_span(response, start, last, words, unit):
                return span
    return None


def _is_same_text(words: str, quote: object) -> bool:
    """Return True if a quote repeats the words; browsers write each line end as one character."""
    return isinstance(quote, str) and words.replace("\r\n", "\n") == quote.replace("\r\n", "\n")


@dataclass(frozen=True)
class FileRecord:
    """One object or table line of a file: its fields and its place. `line` counts from 1.

    Methods that take several names read the first field that the record has. `notices` collects
    what was changed while reading it, with the objects inside it.
    """

    fields: Mapping[str, object]
    file: str
    line: int
    notices: list[str] = field(default_factory=list, compare=False)

    @property
    def place(self) -> str:
        """The file and line as messages name them."""
        return f"{self.file}, line {self.line}"

    def broken(self, expected: str, found: object = None) -> InputError:
        """Return the error to raise for this record."""
        finding = "" if found is None else f", found: “{make_printable(found, MAX_VALUE_CHARS)}”"
        return InputError(f"{self.place}: expected {expected}{finding}.")

    def text(self, *names: str) -> str:
        """Return a text that is not blank."""
        value = self.plain(*names)
        if not value.strip():
            raise self.broken(f"some text in {' or '.join(names)}", value)
        return value

    def plain(self, *names: str) -> str:
        """Return a text, which may be empty."""
        return self._require_whole(self._get_typed(str, "a text", names))

    def spare(self, *names: str) -> str:
        """Return the first text that is not blank, stripped; "" if there is none."""
        values = [self.fields.get(name) for name in names]
        texts = (one.strip() for one in values if isinstance(one, str) and one.strip())
        return self._require_whole(next(texts, ""))

    def number(self, *names: str) -> float:
        """Return a number, also from a text that holds one."""
        value = self._get_first(names)
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ValueError
            return float(value)
        except (ValueError, OverflowError):
            raise self.broken(f"a number called {' or '.join(names)}", value) from None

    def items(self, *names: str) -> list[object]:
        """Return a list of any items."""
        return self._get_typed(list, "a list", names)

    def texts(self, *names: str) -> tuple[str, ...]:
        """Return a list of texts."""
        items = self.items(*names)
        if not all(isinstance(item, str) for item in items):
            raise self.broken(f"a list of texts called {' or '.join(names)}")
        return tuple(self._require_whole(item) for item in cast("list[str]", items))

    def records(self, *names: str) -> list[FileRecord]:
        """Return a list of objects as records at the same place."""
        items = self.items(*names)
        if not all(isinstance(item, dict) for item in items):
            raise self.broken(f"a list of objects called {' or '.join(names)}")
        return [replace(self, fields=item) for item in items if isinstance(item, dict)]

    def inner(self, *names: str) -> FileRecord:
        """Return a nested object as a record at the same place."""
        return replace(self, fields=self._get_typed(dict, "an object", names))

    def chosen(self, meanings: Mapping[str, T], *names: str) -> T:
        """Return the meaning of the field's word in any case; raise InputError for other words."""
        text = self.plain(*names)
        if text.strip().lower() not in meanings:
            expected = f"{' or '.join(names)} to be one of {', '.join(meanings)}"
            raise self.broken(expected, text)
        return meanings[text.strip().lower()]

    def _require_whole(self, text: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise self.broken("whole characters", ascii(text[error.start])) from None
        return text

    def _get_first(self, names: Sequence[str]) -> object:
        return next((self.fields[name] for name in names if name in self.fields), None)

    def _get_typed(self, kind: type[T], called: str, names: Sequence[str]) -> T:
        value = self._get_first(names)
        if isinstance(value, kind):
            return value
        wanted = f"{called} called {' or '.join(names)}"
        if not any(name in self.fields for name in names):
            others = make_printable(", ".join(map(str, self.fields)), MAX_NAMES_CHARS) or "none"
            raise self.broken(f"{wanted} among the fields ({others})")
        raise self.broken(wanted, "null" if value is None else value)


@dataclass(frozen=True)
class GoldSpan:
    """Words that people marked: `[start, end)` in the response, code points.

    `p` is the share of annotators who marked them; 1.0 if the set gives no share.
    """

    start: int
    end: int
    p: float = 1.0


def normalize_word(value: object) -> str:
    """Return a text, number or truth value as one lower-case word; "" for anything else."""
    return str(value).strip().lower() if isinstance(value, str | int) else ""


def parse_set_label(
    record: FileRecord, value: object, meanings: Mapping[str, Label | None]
) -> Label:
    """Return the label that a text, number or truth value stands for in this set."""
    label = meanings.get(normalize_word(value))
    if label is None:
        raise record.broken(f"a label, one of {', '.join(meanings)}", value)
    return label


def find_spans(text: str, pieces: Iterable[str]) -> tuple[GoldSpan, ...]:
    """Return the first match of each piece in the text; touching matches are joined.

    Case is ignored, because annotators' tools changed the case of some first letters. A piece that
    is not in the text marks nothing: in some sets pieces are comments (“incomplete answer”).
    """
    matches = [
        (find_nearest_offset(text, piece.strip(), 0), len(piece.strip())) for piece in pieces
    ]
    return merge_spans(GoldSpan(start, start + size) for start, size in matches if start >= 0)


def find_nearest_offset(text: str, piece: str, place: int) -> int:
    """Return the offset of the piece that is nearest to the place; -1 if it is not in the text.

    Case is ignored only if the piece is nowhere as it is written.
    """
    offsets = _find_all(text, piece)
    low, low_piece = text.lower(), piece.lower()
    # A few letters change their length with their case, which would shift the offsets.
    if not offsets and (len(low), len(low_piece)) == (len(text), len(piece)):
        offsets = _find_all(low, low_piece)
    return min(offsets, key=lambda start: abs(start - place), default=-1)


def _find_all(text: str, piece: str) -> list[int]:
    matches = re.finditer(f"(?={re.escape(piece)})", text) if piece else ()
    return [match.start() for match in matches]


def merge_spans(spans: Iterable[GoldSpan]) -> tuple[GoldSpan, ...]:
    """Return the spans in order; those that overlap or touch become one."""
    merged: list[GoldSpan] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if merged and span.start <= merged[-1].end:
            merged[-1] = GoldSpan(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return tuple(merged)


def compute_marked_shares(marked: Sequence[Iterable[GoldSpan]]) -> tuple[GoldSpan, ...]:
    """Return the marked stretches of a text with the share of annotators who marked them.

    `marked` holds one list of spans per annotator, empty for those who marked nothing.
    """
    by_annotator = [merge_spans(spans) for spans in marked]
    edges = sorted({edge for spans in by_annotator for s in spans for edge in (s.start, s.end)})
    stretches = []
    for start, end in pairwise(edges):
        markers = sum(any(one.start <= start < one.end for one in spans) for spans in by_annotator)
        if markers:
            stretches.append(GoldSpan(start, end, markers / len(by_annotator)))
    return tuple(stretches)


def select_majority_spans(stretches: Iterable[GoldSpan]) -> tuple[GoldSpan, ...]:
    """Return the stretches that more than half of the annotators marked."""
    return merge_spans(GoldSpan(one.start, one.end) for one in stretches if one.p > 0.5)


@dataclass(frozen=True)
class ExchangeDocument:
    """A source file of a case, given by its text, or only by the sha256 of its bytes in `id`.

    `text` is the whole file if it is UTF-8 text.
    """

    name: str
    text: str | None = None
    id: str = ""


@dataclass(frozen=True)
class MachineVerdict:
    """The verdict of the newest finished run over the case."""

    run_id: str
    label: Label
    p_hallucinated: float | None
    confidence: float | None
    rationale: str = ""
    cause: UnclearCause | None = None
    finished_at: float | None = None


@dataclass(frozen=True)
class RecordedRun:
    """A debate over the case that took place elsewhere, from its first turn to its judgement.

    Times of `events` are seconds from its start; all are 0 if none were recorded. `verdict` is its
    final verdict.
    """

    protocol: str
    roster: str
    roles: tuple[RoleAssignment, ...]
    events: tuple[Event, ...]
    verdict: Verdict


@dataclass(frozen=True)
class ExchangeRow:
    """A case with all its answers. `place` is its line or number in the file.

    `notices` say what was changed while reading it, or may be wrong.

    `wanted` and `truth_rule` are those of its project; in a file any one answer may count.

    Spans are code points in `response`. `id` is empty if the file gives none, `language` if it is
    unknown; `role` and `instruction` are None if they are the project's.
    """

    id: str
    response: str
    question: str = ""
    language: str = ""
    role: str | None = None
    instruction: str | None = None
    documents: tuple[ExchangeDocument, ...] = ()
    images: tuple[ExchangeDocument, ...] = ()
    golds: tuple[GoldAnswer, ...] = ()
    corrections: tuple[Correction, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    handlings: tuple[QueueEvent, ...] = ()
    verdict: MachineVerdict | None = None
    others: ExtraColumns = ()
    place: int = 0
    run: RecordedRun | None = None
    wanted: int = 1
    truth_rule: TruthRule = "majority"
    notices: tuple[str, ...] = ()

    @cached_property
    def truth(self) -> GroundTruth:
        """What counts as true by the rule of the project that the row is from."""
        return decide_truth(self.golds, self.people, self.wanted, self.truth_rule, self.reopened_at)

    @property
    def reopened_at(self) -> float:
        """When the case was last given back to the queue, in seconds since 1970; 0 if never."""
        return max((one.at for one in self.handlings if one.did == "reopened"), default=0.0)

    @property
    def standing_golds(self) -> tuple[GoldAnswer, ...]:
        """The golds but for what was settled before the case was last given back."""
        return select_standing_golds(self.golds, self.reopened_at)

    @property
    def answer(self) -> GroundTruth | None:
        """What counts as true, or None while that is not decided."""
        return self.truth if self.truth.is_decided else None

    @property
    def people(self) -> tuple[Correction, ...]:
        """Each person's newest correction, oldest first."""
        newest = {
            correction.author: correction for correction in exclude_withdrawn(self.corrections)
        }
        return tuple(sorted(newest.values(), key=lambda correction: correction.at))

    @property
    def soft(self) -> tuple[WordScore, ...]:
        """The share of people who marked each stretch, if it is known or can be counted.

        The marks of people whom a gold overrules say nothing about what counts.
        """
        if gold := choose_counting_gold(self.golds, self.reopened_at):
            return gold.soft
        marked = [[GoldSpan(span.start, span.end) for span in one.spans] for one in self.people]
        return tuple(
            WordScore(stretch.start, stretch.end, stretch.p)
            for stretch in compute_marked_shares(marked)
        )


@dataclass(frozen=True)
class RowProblem:
    """A row that could not be read, and why; `place` is its line or number in the file."""

    place: int
    reason: str


@dataclass(frozen=True)
class ParsedFile:
    """The rows and problems of a file. `unit` is what places count from 1: lines or rows."""

    rows: tuple[ExchangeRow, ...]
    problems: tuple[RowProblem, ...] = ()
    unit: str = "line"


def get_copy_suffix(project: Project) -> str:
    """Return what ends the ids of a project's cases of which another project has the plain id."""
    return f"@{project.id[:8]}"


def mark_row_imported(row: ExchangeRow) -> ExchangeRow:
    """Return the row with its people renamed so that nobody takes them for members."""
    corrections = (replace(one, author=mark_name_imported(one.author)) for one in row.corrections)
    golds = (
        replace(one, author=mark_name_imported(one.author) if one.author else "")
        for one in row.golds
    )
    return replace(row, corrections=tuple(corrections), golds=tuple(golds))


def mark_name_imported(name: str) -> str:
    """Return the name with the suffix that it came from a file, once."""
    return name if name.endswith(IMPORTED_SUFFIX) else name + IMPORTED_SUFFIX


def exclude_withdrawn(corrections: Sequence[Correction]) -> list[Correction]:
    """Return the corrections that were not withdrawn, oldest first."""
    withdrawn_ids = {one.withdraws for one in corrections if one.withdraws}
    remaining = [one for one in corrections if not one.withdraws and one.id not in withdrawn_ids]
    return sorted(remaining, key=lambda one: one.at)


def build_gold(
    label: Label,
    spans: Sequence[Span] = (),
    *,
    soft: Sequence[WordScore] = (),
    reason: str = "",
    corrected_answer: str = "",
    author: str = "",
) -> GoldAnswer:
    """Return a gold as a file gives it: without id, case and time."""
    return GoldAnswer(
        "", "", author, 0.0, "imported", label, tuple(spans), tuple(soft), corrected_answer, reason
    )


def build_correction(
    person: str,
    label: Label,
    spans: Sequence[Span] = (),
    *,
    reason: str = "",
    corrected_answer: str = "",
) -> Correction:
    """Return a person's answer as a file gives it: without id, case and time."""
    return Correction(
        "", None, "", person, 0.0, label, tuple(spans), reason, corrected_answer=corrected_answer
    )
