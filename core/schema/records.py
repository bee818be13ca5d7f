"""The records of Counterpoint: frozen values that every package reads and none may change.

Offsets are half-open `[start, end)` and count Unicode code points of a text stored exactly as it
was given: `Case.response` for statements, points and spans; `Source.text` for passages and quotes.
Times are seconds since the Unix epoch (UTC). Bare 0/1 labels never appear here: the papers encode
them in opposite ways, so numbers become a `Label` at the boundary that reads them.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from core.schema.rosters import AS_IS, DebateOptions, Manner, RosterConfig

Category = Literal[
    "contradicted", "not_in_source", "wrong_entity", "number_or_date", "reasoning",
    "instruction_not_followed", "self_contradiction", "harmless_addition",
]  # fmt: skip

CATEGORY_WORDS: dict[Category, str] = {
    name: name.replace("_", " ").replace("self ", "self-") for name in get_args(Category)
}


Label = Literal["supported", "hallucinated", "unclear"]
Stance = Label
Reply = Literal["agree", "deny"]
Cause = Literal[
    "no_evidence", "not_addressed", "sources_disagree", "image_not_readable", "language_not_known",
    "classifier_disagrees",
    "unreadable_reply", "budget_reached", "agent_failed", "not_settled", "model_not_fit",
]  # fmt: skip
PersonRole = Literal["annotator", "lead", "admin"]
SourceKind = str  # of a type of file that `core/documents/readers.py` reads
Reading = Literal["text", "ocr"]
BlockKind = Literal[
    "heading", "paragraph", "list item", "table row", "caption", "footnote", "chart label"
]
QuoteStatus = Literal["verified", "fuzzy", "not_found"]
RunStatus = Literal["queued", "running", "finished", "failed", "stopped", "interrupted"]


@dataclass(frozen=True)
class Box:
    """A rectangle on a page or image, as shares of its width and height in [0, 1], y downwards."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class BoxedText:
    """Where on which page the characters `[start, end)` of the source's text were seen (OCR)."""

    start: int
    end: int
    page: int
    box: Box
    score: float


@dataclass(frozen=True)
class Page:
    """A page and its `[start, end)` in the source's text; numbers start at 1."""

    number: int
    start: int
    end: int
    reading: Reading = "text"


@dataclass(frozen=True)
class Block:
    """What the characters `[start, end)` of the source's text are on their page.

    `level` counts for headings: 0 is the document's title. A chart label is text of an axis or a
    legend, which says nothing by itself.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0


@dataclass(frozen=True)
class Source:
    """A document or image after reading. `id` is the sha256 of its bytes.

    `text` is what was read, never normalised afterwards. For an image it is what OCR saw;
    `boxes` say where what OCR or a table's rows hold was seen. An image without readable text has
    an empty `text`. `blocks` stand in order and do not overlap; text outside of all of them is no
    evidence, and a source without any was not divided into blocks.
    """

    id: str
    name: str
    kind: SourceKind
    text: str
    pages: tuple[Page, ...] = ()
    boxes: tuple[BoxedText, ...] = ()
    language: str = "und"
    notes: tuple[str, ...] = ()
    width: int = 0
    height: int = 0
    blocks: tuple[Block, ...] = ()

    @property
    def is_image(self) -> bool:
        """True for pictures, which are judged by what could be read in them."""
        return self.kind == "image"


@dataclass(frozen=True)
class Case:
    """What a person submits. `role` and `instruction` are CEDA's user fields (A.3.1).

    `others` are further columns of the row that it was imported from, kept as they were.
    """

    id: str
    project_id: str
    response: str
    question: str = ""
    documents: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    role: str = ""
    instruction: str = ""
    language: str = "und"
    author: str = ""
    created_at: float = 0.0
    others: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Statement:
    """One sentence of the response, `[start, end)` in it, with a rewrite that stands alone."""

    index: int
    start: int
    end: int
    text: str
    rewrite: str


@dataclass(frozen=True)
class Passage:
    """One retrieved sentence of a source; `[start, end)` in `Source.text`.

    `before` and `after` are the neighbouring sentences of its section and `heading` the path of
    headings above it (“Annual report 2024 > Water > Prices”), kept for
    reading. `score` is the fused retrieval score, `similarity` the cosine to the query
    (None where the encoder is muted).
    """

    id: str
    source_id: str
    source: str
    is_image: bool
    page: int | None
    start: int
    end: int
    text: str
    score: float
    similarity: float | None = None
    before: str = ""
    after: str = ""
    heading: str = ""


@dataclass(frozen=True)
class Quote:
    """A debater's citation, checked in code. `score` is 100 for verified, rapidfuzz's for fuzzy."""

    text: str
    status: QuoteStatus
    score: float = 100.0
    source_id: str = ""
    source: str = ""
    page: int | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class Point:
    """One thing a debater found: these words of the response against those of the evidence.

    `finding` says whether the evidence carries, contradicts, or does not mention the words.
    `[start, end)` lies in `Case.response`. `weight` in [0, 1] is how sure the debater is.
    """

    statement: int
    finding: Literal["carried", "contradicted", "missing"]
    start: int
    end: int
    text: str
    category: Category
    evidence: str
    explanation: str
    weight: float
    quote: Quote | None = None


@dataclass(frozen=True)
class Turn:
    """One utterance (CEDA A.3.3). `reply` answers the last message, `stance` is on the claim.

    The two differ: in the paper's illusion example both agents agree and the claim is false.
    `about` names whose answer it speaks of, `assigned` the side it had to take (CopMAD); `doubt`
    and `confidence` in [0, 1] are what it states of its own claim (ColMAD 2.3).
    """

    debater: str
    agent: str
    number: int
    round: int
    reply: Reply
    stance: Stance
    text: str
    quotes: tuple[Quote, ...] = ()
    points: tuple[Point, ...] = ()
    confidence: float | None = None
    cut: bool = False
    manner: Manner = "debate"
    about: str = ""
    assigned: Stance | None = None
    doubt: str = ""


@dataclass(frozen=True)
class Share:
    """The evidence one debater is given (CEDA 3.3): ids of passages, by statement."""

    debater: str
    passages: tuple[str, ...]


@dataclass(frozen=True)
class Fact:
    """A structured claim of agent C (CEDA 3.3) with the ids of the passages that it rests on."""

    claim: str
    passages: tuple[str, ...]


@dataclass(frozen=True)
class Context:
    """Agent C's product: each debater's share, the judge's whole, and what conflicts."""

    shares: tuple[Share, ...]
    whole: tuple[str, ...]
    summary: str
    conflicts: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()


# What a statement is checked against: a passage (as a claim or an answer), a document, a table.
MaterialKind = Literal["claim", "answer", "document", "table"]


@dataclass(frozen=True)
class ReaderView:
    """What one of the built-in judge's readers makes of a statement in the whole evidence."""

    reader: str
    statement: int
    stance: Stance


@dataclass(frozen=True)
class MeasuredShare:
    """How many of `n` verdicts this sure were `right` on held-out rows of one kind of material."""

    material: MaterialKind
    n: int
    right: int


@dataclass(frozen=True)
class Judgement:
    """The judge's finding. `text` is the concise verdict that the classifier reads (CEDA 3.4).

    `prose` is what people read where that is another text. `points` are what the judge saw itself,
    in the whole evidence. `p` is the judge's own calibrated probability that the response is not
    supported, also where it then abstained; None from a judge that gives none. `readers` are what
    it weighed. `by_tool` names the tool that decided, where one did. `measured` says what `p` was
    worth on material of the same kind.
    """

    agent: str
    label: Label
    text: str
    agreed: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()
    cause: Cause | None = None
    cause_words: str = ""
    statement_labels: tuple[Label, ...] = ()
    points: tuple[Point, ...] = ()
    prose: str = ""
    p: float | None = None
    readers: tuple[ReaderView, ...] = ()
    by_tool: str = ""
    measured: MeasuredShare | None = None


@dataclass(frozen=True)
class Verdict:
    """The outcome. `confidence = max(p, 1 - p)` (CEDA 3.5); both are None when unclear."""

    label: Label
    p_hallucinated: float | None
    confidence: float | None
    rationale: str
    cause: Cause | None = None
    cause_words: str = ""
    classifier: str = ""


@dataclass(frozen=True)
class Span:
    """Words of the response that do not hold: `[start, end)` in `Case.response`.

    `source` names the agents (or the person) who marked it; `instead` is what they should say, and
    `quote` the place where a source says so. `category` is a `Category`, or one of a project's own.
    """

    start: int
    end: int
    text: str
    p: float
    category: str
    source: str
    instead: str = ""
    quote: Quote | None = None

    @property
    def in_evidence(self) -> bool:
        """A source has `instead`; else a tool worked it out, or nobody found where it stands."""
        return self.quote is not None and self.quote.status != "not_found"


@dataclass(frozen=True)
class WordScore:
    """How likely it is that a word does not hold: `[start, end)` in `Case.response`."""

    start: int
    end: int
    p: float


@dataclass(frozen=True)
class Plan:
    """How a case is to be checked; kept with the run so that it explains itself years later.

    `sheet`: None is the built-in engine. `token_cap` bounds tokens on models of no known price,
    `cent_cap` cents on others, 0 for the setting's. `reuses_replies`: others' at any temperature.
    `reader` is what built-in agents read with; empty is the one that Settings chose.
    """

    protocol: str = "ceda"
    roster: str = "builtin"
    max_turns: int = 5
    passages: int = 5
    classifier: str = ""
    sheet: RosterConfig | None = None
    token_cap: int = 0
    reuses_replies: bool = False
    span_threshold: int = 0
    span_examples: int = 0
    span_member: int = 0
    options: DebateOptions = AS_IS
    agent_weights: int = 0
    cent_cap: int = 0
    reader: str = ""


@dataclass(frozen=True)
class ModelCall:
    """One call to a model as the trace tells it; `id` is the ledger's.

    `cost` is in US dollars, None where it is not known. `origin` says whether the reply was paid
    for now, taken from this run's ledger after a Resume, or from another run's. `cut` says what did
    not fit the model's window, `problem` why there is no usable reply.
    """

    id: str
    role: str
    slot: str
    model: str
    prompt: str
    prompt_hash: str
    tokens_in: int
    tokens_out: int
    cost: float | None
    seconds: float
    origin: Literal["called", "resumed", "reused"] = "called"
    cut: str = ""
    problem: str = ""


@dataclass(frozen=True)
class RoleUsed:
    """Which agent played a role, and the hash of its prompt or rules."""

    role: str
    agent: str
    built_in: bool
    rule: str
    rule_hash: str


@dataclass(frozen=True)
class Run:
    """One execution of a plan over a case, as the store lists it."""

    id: str
    case_id: str
    project_id: str
    plan: Plan
    status: RunStatus
    started_at: float
    finished_at: float | None = None
    label: Label | None = None
    cause: Cause | None = None
    p_hallucinated: float | None = None
    confidence: float | None = None
    origin: Literal["here", "imported"] = "here"
    parent_id: str | None = None


@dataclass(frozen=True)
class Project:
    """People, settings, library and cases that belong together.

    Its queue deals an item to `people_each`, each for `hold_minutes`. `categories` say what may be
    wrong with words, `error_rate` how many verdicts, `options` what is chosen of its `protocol`.
    """

    id: str
    name: str
    created_at: float
    description: str = ""
    roster: str = "builtin"
    protocol: str = "ceda"
    role: str = "Fact verifier"
    instruction: str = "Verify from the sources whether the claim is correct or hallucinated."
    people_each: int = 1
    is_blind: bool = False
    random_share: float = 0.2
    hold_minutes: int = 30
    categories: tuple[str, ...] = tuple(CATEGORY_WORDS)
    error_rate: float | None = None
    options: DebateOptions = AS_IS


@dataclass(frozen=True)
class Member:
    """A person's role in a project."""

    project_id: str
    person: str
    role: PersonRole
    added_at: float = 0.0


@dataclass(frozen=True)
class LibraryEntry:
    """A file in a project's library: what it is, and what reading it gave."""

    id: str
    project_id: str
    name: str
    kind: SourceKind
    size: int
    status: Literal["waiting", "reading", "ready", "refused"]
    added_by: str
    added_at: float
    problem: str = ""
    pages: int = 0
    ocr_pages: tuple[int, ...] = ()
    characters: int = 0
    language: str = "und"
    notes: tuple[str, ...] = ()


def new_id() -> str:
    """128 random bits: a run's link is a capability on a shared server."""
    return uuid.uuid4().hex


# Kinds of learned things.
THRESHOLD, EXAMPLES, MEMBER = "span_threshold", "span_examples", "span_member"
CONSENSUS = "consensus"
MOST_EXAMPLES = 4
MOST_TOKENS = 1200  # of all examples of one prompt together


@dataclass(frozen=True)
class Levels:
    """From which probability words are marked: by language, and elsewhere (None: as it ships)."""

    by_language: tuple[tuple[str, float], ...] = ()
    otherwise: float | None = None

    def at(self, language: str) -> float | None:
        """The level for a text in `language`, a BCP 47 tag; None where none was learned."""
        return dict(self.by_language).get(base_of(language), self.otherwise)

    @property
    def words(self) -> str:
        """“de 0.41, en 0.36, else 0.38”; empty where nothing was learned."""
        told = [*self.by_language, *([] if self.otherwise is None else [("else", self.otherwise)])]
        return ", ".join(f"{language} {level:.2f}" for language, level in told)


@dataclass(frozen=True)
class SpanThreshold:
    """`reader`: of the span reader's word scores; `votes`: of a language model's votes on spans.

    `panel`: of what the votes of a panel come to where most runs decide, `weighted` where weights
    do. `number` is the store's, 0 for what ships.
    """

    number: int = 0
    reader: Levels = Levels()
    votes: Levels = Levels()
    panel: Levels = Levels()
    weighted: Levels = Levels()


@dataclass(frozen=True)
class PanelRule:
    """How a panel's votes are counted; the defaults are the paper's (MSA 3.3).

    `levels`: from which p words are wrong. `alone`: by language the member whose run alone decides.
    `weights`: (extractor, adjudicator, weight), of the votes on a run or, where both are one, of
    the extractor's own p; without any all count alike and most runs decide.
    """

    levels: Levels = Levels()
    alone: tuple[tuple[str, str], ...] = ()
    weights: tuple[tuple[str, str, float], ...] = ()


AS_THE_PAPER = PanelRule()


@dataclass(frozen=True)
class SpanExample:
    """A corrected case as an extractor is shown it; `spans` lie in `response`.

    `id` is the fingerprint of question and response; `tokens` about how long it is in a prompt.
    """

    id: str
    case_id: str
    language: str
    question: str
    response: str
    spans: tuple[Span, ...]
    reason: str = ""
    tokens: int = 0


@dataclass(frozen=True)
class LearnedMarks:
    """What a run's span agents were taught; `examples` are chosen for its case already.

    `alone` names by language the member of a panel whose run alone decides.
    """

    threshold: SpanThreshold = SpanThreshold()
    examples: tuple[SpanExample, ...] = ()
    examples_number: int = 0
    alone: tuple[tuple[str, str], ...] = ()

    @property
    def examples_words(self) -> str:
        """Names the examples for the trace; empty where there are none."""
        if not self.examples:
            return ""
        cases = ", ".join(example.case_id for example in self.examples)
        return f"Examples from people's corrections (no. {self.examples_number}): cases {cases}."


SHIPPED = LearnedMarks()


def base_of(language: str) -> str:
    """“zh” of “zh-Hans”: thresholds and examples go by the language alone."""
    return language.strip().casefold().split("-")[0].split("_")[0] or "und"


def threshold_from(number: int, body: Mapping[str, Any]) -> SpanThreshold:
    """The thresholds of a kept body; this and its like are called through `read_body`."""
    kinds = ("reader", "votes", "panel", "weighted")
    return SpanThreshold(number, *(_levels(body.get(kind)) for kind in kinds))


def members_from(body: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """By language the member of a panel whose run alone decides, of a kept body."""
    return tuple(sorted((str(name), str(member)) for name, member in body["alone"].items()))


def _levels(told: Mapping[str, Any] | None) -> Levels:
    if not told:
        return Levels()
    own = tuple(sorted((str(name), float(tau)) for name, tau in told["by_language"].items()))
    return Levels(own, float(told["otherwise"]))


def examples_from(body: Mapping[str, Any]) -> tuple[SpanExample, ...]:
    """The examples of a kept body, best first; those that somebody removed are not among them."""
    removed = set(body.get("removed", ()))
    return tuple(_example(own) for own in body.get("examples", ()) if own["id"] not in removed)


def _example(told: Mapping[str, Any]) -> SpanExample:
    spans = tuple(
        Span(s["start"], s["end"], s["text"], 1.0, s["category"], "people", s.get("instead", ""))
        for s in told["spans"]
    )
    return SpanExample(
        told["id"], told["case_id"], told["language"], told["question"], told["response"], spans,
        told.get("reason", ""), int(told["tokens"]),
    )  # fmt: skip


def fitting_examples(
    known: Sequence[SpanExample], language: str, own: str
) -> tuple[SpanExample, ...]:
    """At most four for one case: first those in its language; never the case itself (`own`).

    One that does not fit the tokens of all together does not stop shorter ones.
    """
    other = [example for example in known if example.id != own]
    other.sort(key=lambda example: base_of(example.language) != base_of(language))
    found: list[SpanExample] = []
    left = MOST_TOKENS
    for example in other:
        if len(found) < MOST_EXAMPLES and example.tokens <= left:
            left -= example.tokens
            found.append(example)
    return tuple(found)


def rule_digest(rule: str) -> str:
    """Names an agent's prompt or rules in a trace and in what is learned of it."""
    return hashlib.sha256(rule.encode()).hexdigest()[:12]
