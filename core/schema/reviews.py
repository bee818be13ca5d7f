"""People's judgements of cases and runs, as stored: frozen records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from core.schema.records import CATEGORY_WORDS, BoundingBox, Label, Span, WordScore

# State of an item for one person: in hand, answered, passed over, or flagged for a lead.
AssignmentState = Literal["claimed", "submitted", "skipped", "flagged"]
ItemState = Literal["open", "flagged", "adjudicated"]
EvidenceStance = Literal["supports", "contradicts"]
QueueEventKind = Literal[
    "skipped", "flagged", "adjudicated", "opened", "reopened", "imported", "commented"
]  # fmt: skip
LABELS_BY_GRAVITY: tuple[Label, ...] = ("hallucinated", "unclear", "supported")
GoldOrigin = Literal["imported", "adjudicated", "corrected"]


@dataclass(frozen=True)
class EvidenceMark:
    """Words of a source that support or contradict the response (SC-MAKS 4.5).

    `[start, end)` lies in the source's text, and `text` is what stands there.
    """

    source_id: str
    start: int
    end: int
    text: str
    stance: EvidenceStance = "contradicts"


@dataclass(frozen=True)
class ImageBox:
    """A region of an image that bears on the response, as shares of its width and height."""

    source_id: str
    box: BoundingBox
    category: str
    comment: str = ""


@dataclass(frozen=True)
class StatementLabel:
    """What a person says of one statement: `[start, end)` in `Case.response`."""

    start: int
    end: int
    label: Label


@dataclass(frozen=True)
class Ratings:
    """Ratings from 1 (poor) to 5 (good), None where not given (SC-MAKS 4.6)."""

    accuracy: int | None = None
    coherence: int | None = None
    consistency: int | None = None


@dataclass(frozen=True)
class Correction:
    """A person's judgement of a case, and of the run over it that they saw, if any; append-only.

    Undo is another correction: it `withdraws` an earlier one by its id and says nothing else.
    `corrected_answer` is O_gold (SC-MAKS 3.5). `seconds` run from opening the form to saving it,
    `sure` in [0, 1] is how sure the person says they are. `rejected` are the machine's spans that
    the person said are not wrong. `is_blind`: the form hid the machine's verdict, which is recorded
    all the same; of these only a person's first answer on a case counts as given blind.
    `is_unmarked`: they said explicitly that no single word is wrong, which an empty `spans` alone
    does not mean. `accepted_all`: they accepted all of the machine's spans at once. `statements`
    are the labels of the statements that they labelled one by one.
    """

    id: str
    run_id: str | None
    case_id: str
    author: str
    at: float
    label: Label
    spans: tuple[Span, ...] = ()
    reason: str = ""
    corrected_answer: str = ""
    seconds: float = 0.0
    machine_label: Label | None = None
    rejected: tuple[Span, ...] = ()
    is_blind: bool = False
    is_unmarked: bool = False
    evidence: tuple[EvidenceMark, ...] = ()
    boxes: tuple[ImageBox, ...] = ()
    ratings: Ratings = Ratings()
    comment: str = ""
    sure: float | None = None
    accepted_all: bool = False
    withdraws: str = ""
    statements: tuple[StatementLabel, ...] = ()

    @property
    def lacks_marks(self) -> bool:
        """True if a statement that they called wrong has no marked words."""
        wrong = (one for one in self.statements if one.label == "hallucinated")
        return any(
            not any(span.start < one.end and one.start < span.end for span in self.spans)
            for one in wrong
        )


@dataclass(frozen=True)
class GoldAnswer:
    """The right answer of a case from `at` on; earlier ones stay.

    The newest counts, but an imported one never overrules one that was settled here.

    `took` are the corrections that an adjudication rests on. `soft` is the share of annotators who
    found the words wrong, where a public set gives it.
    """

    id: str
    case_id: str
    author: str
    at: float
    origin: GoldOrigin
    label: Label
    spans: tuple[Span, ...] = ()
    soft: tuple[WordScore, ...] = ()
    corrected_answer: str = ""
    reason: str = ""
    took: tuple[str, ...] = ()


@dataclass(frozen=True)
class Suggestion:
    """A proposal about a case from an agent outside Counterpoint; people accept or reject it."""

    id: str
    case_id: str
    agent: str
    at: float
    label: Label | None = None
    p: float | None = None
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class QueueEvent:
    """A person skipped, flagged, settled or reopened a case; `words` say why, or are a comment."""

    case_id: str
    person: str
    at: float
    did: QueueEventKind
    words: str = ""


@dataclass(frozen=True)
class QueueItem:
    """A case that people review, with the result of its newest finished run.

    `disagreement` in [0, 1] is how much its agents disagreed, `teaches` in [0, 1] how much an
    answer would teach (plus 2 where people must decide, so that it comes first), `given` how many
    people have answered, those of imported answers too, less those who are to answer anew.
    """

    case_id: str
    project_id: str
    run_id: str | None
    added_at: float
    label: Label | Literal[""]
    p: float | None
    disagreement: float
    language: str
    teaches: float
    given: int = 0
    state: ItemState = "open"
    differ: int = 0
    stances: tuple[tuple[str, Label], ...] = ()


@dataclass(frozen=True)
class Assignment:
    """An item in a person's hands until `until`, or how they ended it; `why` it came to them.

    Where a lead has assigned it, `assigned_by` names them; until the person opens it, its time has
    not begun, and `until` is past.
    """

    case_id: str
    person: str
    state: AssignmentState
    why: str
    claimed_at: float
    until: float
    ended_at: float | None = None
    assigned_by: str = ""

    @property
    def is_waiting(self) -> bool:
        """Return True if a lead assigned the item and the person has not ended it."""
        return bool(self.assigned_by) and self.state == "claimed"


def combine_statement_labels(labels: Iterable[Label]) -> Label:
    """Return the label of a response whose statements have these labels."""
    given = set(labels)
    return next((label for label in LABELS_BY_GRAVITY if label in given), "unclear")


def format_category(category: str) -> str:
    """Return a category as shown on screen; a project's own categories are shown as they are."""
    words_by_name: dict[str, str] = {str(name): words for name, words in CATEGORY_WORDS.items()}
    return words_by_name.get(category, category)


def introduce_correction(*, in_evidence: bool) -> str:
    """Return what leads up to a span's `instead`: a source says it, or a tool worked it out."""
    return "the evidence says" if in_evidence else "it should say"
