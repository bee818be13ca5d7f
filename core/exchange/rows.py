"""What every format is read into and written from, and how fields, labels and spans are read.

A row (`ExchangeRow`) is a case with all that was said of it, as records of the store; where a
format knows no ids, times or authors they are empty, and whoever stores the row gives them. Spans
count code points. Tools written in JavaScript count UTF-16 units; one tool writes all of an answer,
so that its spans are read in one unit, which their quotes show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeVar, cast

from core.runtime.errors import InputError, shown
from core.schema.events import Event
from core.schema.records import Cause, Label, RoleUsed, Span, Verdict, WordScore
from core.schema.reviews import Correction, Gold, Handling, Suggestion
from core.store.corrections import counting

Unit = Literal["code points", "utf-16"]
Place = tuple[object, object, object]  # start, end and the quoted words, as the file has them


def unit_of(response: str, places: Iterable[Place]) -> Unit | None:
    """What the spans of one answer count; None where their quotes do not tell.

    One quote that stands only where the unit leads tells, if it leads to all the others too.
    """
    if max(response, default="") <= "\uffff":
        return None  # every character is one unit
    quoted = [(start, end, quote) for start, end, quote in places if isinstance(quote, str)]
    by_points = [_by_points(response, *place) is not None for place in quoted]
    by_units = [_by_units(response, *place) is not None for place in quoted]
    if by_points == by_units:
        return None
    return "utf-16" if all(by_units) else "code points" if all(by_points) else None


def placed(
    response: str, start: object, end: object, quote: object = None, unit: Unit | None = None
) -> tuple[int, int]:
    """Where the span lies, counted in code points; without a unit the quoted words decide.

    Raises InputError: it does not lie in the response, or the quoted words do not stand there.
    """
    if type(start) is not int or type(end) is not int:
        raise InputError(
            f"expected whole numbers as a span’s start and end, found {start!r:.40} and "
            f"{end!r:.40}; correct them."
        )
    found = _by_units(response, start, end, quote) if unit == "utf-16" else None
    found = found or _by_points(response, start, end, quote)
    if found is None and isinstance(quote, str):
        found = _by_units(response, start, end, quote)
    if found is not None:
        return found
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


def from_utf16(text: str, start: int, end: int) -> tuple[int, int] | None:
    """UTF-16 offsets as code points; None where they cut a character or lie outside."""
    units = text.encode("utf-16-le")
    try:
        before = len(units[: 2 * start].decode("utf-16-le"))
        inside = len(units[2 * start : 2 * end].decode("utf-16-le"))
    except UnicodeDecodeError:
        return None
    return (before, before + inside) if 2 * end <= len(units) else None


def _by_points(response: str, start: object, end: object, quote: object) -> tuple[int, int] | None:
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    is_there = 0 <= start < end <= len(response) and (quote is None or response[start:end] == quote)
    return (start, end) if is_there else None


def _by_units(response: str, start: object, end: object, quote: object) -> tuple[int, int] | None:
    if not isinstance(start, int) or not isinstance(end, int) or not 0 <= start < end:
        return None
    found = from_utf16(response, start, end)
    if found is None or (quote is not None and response[found[0] : found[1]] != quote):
        return None
    return found


MOST_SHOWN = 60  # characters of a found value in a message
MOST_NAMES = 200  # characters of the names of the fields that are there
T = TypeVar("T")


@dataclass(frozen=True)
class Record:
    """One object or table line: its fields, and where it lies. `line` counts from 1.

    Where several names are given, the first that the record has is read.
    """

    fields: Mapping[str, object]
    file: str
    line: int

    @property
    def place(self) -> str:
        """File and line, as messages name them."""
        return f"{self.file}, line {self.line}"

    def broken(self, expected: str, found: object = None) -> InputError:
        """The error to raise for this record."""
        tail = "" if found is None else f", found: “{shown(found, MOST_SHOWN)}”"
        return InputError(f"{self.place}: expected {expected}{tail}.")

    def text(self, *names: str) -> str:
        """A text with something other than white space in it."""
        value = self.plain(*names)
        if not value.strip():
            raise self.broken(f"some text in {' or '.join(names)}", value)
        return value

    def plain(self, *names: str) -> str:
        """A text, perhaps empty."""
        return self._whole(self._of_kind(str, "a text", names))

    def spare(self, *names: str) -> str:
        """The first text that is there and not blank; "" where none is or all are null."""
        values = [self.fields.get(name) for name in names]
        said = (one.strip() for one in values if isinstance(one, str) and one.strip())
        return self._whole(next(said, ""))

    def number(self, *names: str) -> float:
        """A number, or a text that is one."""
        value = self._first(names)
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise ValueError
            return float(value)
        except (ValueError, OverflowError):
            raise self.broken(f"a number called {' or '.join(names)}", value) from None

    def items(self, *names: str) -> list[object]:
        """A list of whatever it holds."""
        return self._of_kind(list, "a list", names)

    def texts(self, *names: str) -> tuple[str, ...]:
        """A list of texts."""
        found = self.items(*names)
        if not all(isinstance(item, str) for item in found):
            raise self.broken(f"a list of texts called {' or '.join(names)}")
        return tuple(self._whole(item) for item in cast("list[str]", found))

    def records(self, *names: str) -> list[Record]:
        """A list of objects, each a record at the same place."""
        found = self.items(*names)
        if not all(isinstance(item, dict) for item in found):
            raise self.broken(f"a list of objects called {' or '.join(names)}")
        return [Record(item, self.file, self.line) for item in found if isinstance(item, dict)]

    def inner(self, *names: str) -> Record:
        """An object inside, as a record at the same place."""
        return Record(self._of_kind(dict, "an object", names), self.file, self.line)

    def chosen(self, meanings: Mapping[str, T], *names: str) -> T:
        """What the field's word means, in any case; a word that is not listed is an error."""
        word = self.plain(*names)
        if word.strip().lower() not in meanings:
            expected = f"{' or '.join(names)} to be one of {', '.join(meanings)}"
            raise self.broken(expected, word)
        return meanings[word.strip().lower()]

    def _whole(self, text: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise self.broken("whole characters", ascii(text[error.start])) from None
        return text

    def _first(self, names: Sequence[str]) -> object:
        return next((self.fields[name] for name in names if name in self.fields), None)

    def _of_kind(self, kind: type[T], called: str, names: Sequence[str]) -> T:
        value = self._first(names)
        if isinstance(value, kind):
            return value
        wanted = f"{called} called {' or '.join(names)}"
        if not any(name in self.fields for name in names):
            others = shown(", ".join(map(str, self.fields)), MOST_NAMES) or "none"
            raise self.broken(f"{wanted} among the fields ({others})")
        raise self.broken(wanted, "null" if value is None else value)


@dataclass(frozen=True)
class GoldSpan:
    """Words that people marked: `[start, end)` in the response, code points.

    `p` is the share of annotators who marked them; 1.0 where the set gives no share.
    """

    start: int
    end: int
    p: float = 1.0


WRONG_IS_TRUE: Mapping[str, Label] = {"1": "hallucinated", "0": "supported"}
FACT_IS_TRUE: Mapping[str, Label] = {"true": "supported", "false": "hallucinated"}


def word(value: object) -> str:
    """A text, number or truth value as one lower-case word; anything else is ""."""
    return str(value).strip().lower() if isinstance(value, str | int) else ""


def label_of(record: Record, value: object, meanings: Mapping[str, Label | None]) -> Label:
    """The label that a text, a number or a truth value stands for in this set."""
    found = meanings.get(word(value))
    if found is None:
        raise record.broken(f"a label, one of {', '.join(meanings)}", value)
    return found


def found_spans(text: str, pieces: Iterable[str]) -> tuple[GoldSpan, ...]:
    """Where the pieces stand in the text, the first match of each, touching ones joined.

    Annotators' tools changed a first letter's case here and there, so case does not count. Among
    the pieces of some sets stand comments (“incomplete answer”): what is not in the text marks
    nothing.
    """
    bare = [(nearest(text, piece.strip(), 0), len(piece.strip())) for piece in pieces]
    return joined(GoldSpan(start, start + size) for start, size in bare if start >= 0)


def nearest(text: str, piece: str, place: int) -> int:
    """Where the piece stands in the text, nearest to the place; -1 where it does not stand.

    As it is written if it stands so anywhere, else in any case.
    """
    places = _places(text, piece)
    low, low_piece = text.lower(), piece.lower()
    # A few letters change their length with their case: offsets would then be of another text.
    if not places and (len(low), len(low_piece)) == (len(text), len(piece)):
        places = _places(low, low_piece)
    return min(places, key=lambda start: abs(start - place), default=-1)


def _places(text: str, piece: str) -> list[int]:
    found = re.finditer(f"(?={re.escape(piece)})", text) if piece else ()
    return [one.start() for one in found]


def joined(spans: Iterable[GoldSpan]) -> tuple[GoldSpan, ...]:
    """The spans in order; those that overlap or touch become one."""
    done: list[GoldSpan] = []
    for one in sorted(spans, key=lambda span: (span.start, span.end)):
        if done and one.start <= done[-1].end:
            done[-1] = GoldSpan(done[-1].start, max(done[-1].end, one.end))
        else:
            done.append(one)
    return tuple(done)


def shares(marked: Sequence[Iterable[GoldSpan]]) -> tuple[GoldSpan, ...]:
    """Stretches of a text with the share of annotators who marked them.

    `marked` holds the spans of each annotator, also of those who marked nothing.
    """
    sides = [joined(spans) for spans in marked]
    edges = sorted({edge for spans in sides for one in spans for edge in (one.start, one.end)})
    stretches = []
    for start, end in pairwise(edges):
        count = sum(any(one.start <= start < one.end for one in spans) for spans in sides)
        if count:
            stretches.append(GoldSpan(start, end, count / len(sides)))
    return tuple(stretches)


def majority(stretches: Iterable[GoldSpan]) -> tuple[GoldSpan, ...]:
    """The stretches that more than half of the annotators marked."""
    return joined(GoldSpan(one.start, one.end) for one in stretches if one.p > 0.5)


SCHEMA = 1  # of JSONL and CSV; a file of a newer one is refused
UNSPECIFIED = "unspecified"  # the category of words that a set marks without saying what is wrong
UNKNOWN = ("", "und")  # languages that say nothing
IMPORTED = " (imported)"  # ends the names of people whom a file names
OTHER_JSON = "#json"  # ends the name of a further column whose value is JSON, not a text
Others = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Document:
    """A file that a case rests on: by its text, or by the sha256 of its bytes where only that is.

    `text` is the whole file, which is UTF-8 text then.
    """

    name: str
    text: str | None = None
    id: str = ""


@dataclass(frozen=True)
class MachineVerdict:
    """What the newest finished run over the case said."""

    run_id: str
    label: Label
    p_hallucinated: float | None
    confidence: float | None
    rationale: str = ""
    cause: Cause | None = None
    finished_at: float | None = None


@dataclass(frozen=True)
class RecordedRun:
    """A debate over the case that was held elsewhere, from its first turn to its judgement.

    Times of `events` count seconds from its start; all are 0 where none were recorded. `verdict` is
    what it ended with.
    """

    protocol: str
    roster: str
    roles: tuple[RoleUsed, ...]
    events: tuple[Event, ...]
    verdict: Verdict


@dataclass(frozen=True)
class ExchangeRow:
    """A case with all that was said of it. `place` is its line or number in the file.

    Spans lie in `response`, code points. `id` is empty where the file gives none; `language` where
    nobody said it; `role` and `instruction` are None where they are the project's.
    """

    id: str
    response: str
    question: str = ""
    language: str = ""
    role: str | None = None
    instruction: str | None = None
    documents: tuple[Document, ...] = ()
    images: tuple[Document, ...] = ()
    golds: tuple[Gold, ...] = ()
    corrections: tuple[Correction, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    handlings: tuple[Handling, ...] = ()
    verdict: MachineVerdict | None = None
    others: Others = ()
    place: int = 0
    run: RecordedRun | None = None

    @property
    def answer(self) -> Gold | Correction | None:
        """What counts: a settled gold, else what was said here last, else what came along."""
        gold = counting(self.golds)
        if gold is not None and gold.origin != "imported":
            return gold
        given = standing(self.corrections)
        here = [one for one in given if one.id and not one.author.endswith(IMPORTED)]
        return here[-1] if here else gold or (given[-1] if given else None)

    @property
    def settled(self) -> Gold | Correction | None:
        """The answer that counts, unless it is only one of several that came along."""
        answer = self.answer
        is_one_of_many = isinstance(answer, Correction) and answer.author.endswith(IMPORTED)
        return None if is_one_of_many and len(self.people) > 1 else answer

    @property
    def people(self) -> tuple[Correction, ...]:
        """Each person's newest correction, in the order in which they were given."""
        newest = {given.author: given for given in standing(self.corrections)}
        return tuple(sorted(newest.values(), key=lambda given: given.at))

    @property
    def soft(self) -> tuple[WordScore, ...]:
        """The share of people who marked each stretch, where it is known or can be counted."""
        answer = self.answer
        if isinstance(answer, Gold) and answer.origin == "imported":
            return answer.soft
        marked = [[GoldSpan(span.start, span.end) for span in given.spans] for given in self.people]
        return tuple(WordScore(one.start, one.end, one.p) for one in shares(marked))


@dataclass(frozen=True)
class Problem:
    """A row that could not be read, and why; `place` is its line or number in the file."""

    place: int
    reason: str


@dataclass(frozen=True)
class Read:
    """What a file held. `unit` says what places count: lines or rows, from 1."""

    rows: tuple[ExchangeRow, ...]
    problems: tuple[Problem, ...] = ()
    unit: str = "line"


def imported_row(row: ExchangeRow) -> ExchangeRow:
    """The row with its people named so that nobody takes them for members."""
    corrections = (replace(one, author=imported_name(one.author)) for one in row.corrections)
    golds = (replace(g, author=imported_name(g.author) if g.author else "") for g in row.golds)
    return replace(row, corrections=tuple(corrections), golds=tuple(golds))


def imported_name(name: str) -> str:
    """The name with a mark that it came from a file; once is enough."""
    return name if name.endswith(IMPORTED) else name + IMPORTED


def standing(corrections: Sequence[Correction]) -> list[Correction]:
    """The corrections that nobody took back, oldest first."""
    gone = {given.withdraws for given in corrections if given.withdraws}
    left = [given for given in corrections if not given.withdraws and given.id not in gone]
    return sorted(left, key=lambda given: given.at)


def gold_of(
    label: Label,
    spans: Sequence[Span] = (),
    *,
    soft: Sequence[WordScore] = (),
    reason: str = "",
    corrected_answer: str = "",
    author: str = "",
) -> Gold:
    """A gold as a file tells it: without id, case and time."""
    return Gold(
        "", "", author, 0.0, "imported", label, tuple(spans), tuple(soft), corrected_answer, reason
    )


def correction_of(
    person: str,
    label: Label,
    spans: Sequence[Span] = (),
    *,
    reason: str = "",
    corrected_answer: str = "",
) -> Correction:
    """A person's answer as a file tells it: without id, case and time."""
    return Correction(
        "", None, "", person, 0.0, label, tuple(spans), reason, corrected_answer=corrected_answer
    )
