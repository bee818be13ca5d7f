"""What every format is read into and written from: a case with all that was said of it.

A row holds the records of the store; where a format knows no ids, times or authors they are empty,
and whoever stores the row gives them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.events import Event
from core.formats.marks import GoldSpan, shares
from core.records import Cause, Label, RoleUsed, Span, Verdict, WordScore
from core.reviews import Correction, Gold, Handling, Suggestion
from core.store.golds import counting

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
