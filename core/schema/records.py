"""The records of Counterpoint: frozen values that every package reads.

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

from core.schema.rosters import DEFAULT_OPTIONS, DebateOptions, RosterConfig, TurnMode

Category = Literal[
    "contradicted", "not_in_source", "wrong_entity", "number_or_date", "reasoning",
    "instruction_not_followed", "self_contradiction", "harmless_addition",
]  # fmt: skip

CATEGORY_WORDS: dict[Category, str] = {
    name: name.replace("_", " ").replace("self ", "self-") for name in get_args(Category)
}

Label = Literal["supported", "hallucinated", "unclear"]
Stance = Label
TurnReply = Literal["agree", "deny"]
UnclearCause = Literal[
    "no_evidence", "not_addressed", "sources_disagree", "image_not_readable", "language_not_known",
    "classifier_disagrees",
    "unreadable_reply", "budget_reached", "agent_failed", "not_settled", "model_not_fit",
]  # fmt: skip
PersonRole = Literal["annotator", "lead", "admin"]
# Whose answers decide a case that no lead settled: those of most people, of all, or nobody's.
TruthRule = Literal["majority", "unanimity", "settled"]
SourceKind = str  # a type of file that `core/documents/readers.py` reads
ReadingMethod = Literal["text", "ocr"]
BlockKind = Literal[
    "heading", "paragraph", "list item", "table row", "caption", "footnote", "chart label"
]
# What a statement is checked against: a passage (as a claim or an answer), a document, a table.
MaterialKind = Literal["claim", "answer", "document", "table"]
QuoteStatus = Literal["verified", "fuzzy", "not_found"]
RunStatus = Literal["queued", "running", "finished", "failed", "stopped", "interrupted"]

# Kinds of artefacts learned from corrections.
THRESHOLD_KIND, EXAMPLES_KIND, MEMBER_KIND = "span_threshold", "span_examples", "span_member"
CONSENSUS_KIND = "consensus"
MAX_PROMPT_EXAMPLES = 4
MAX_EXAMPLE_TOKENS = 1200  # of all examples in one prompt together


@dataclass(frozen=True)
class BoundingBox:
    """A rectangle on a page or image, as fractions in [0, 1] of its width and height, y down."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class BoxedText:
    """The page and box where the characters `[start, end)` of the source's text were seen (OCR)."""

    start: int
    end: int
    page: int
    box: BoundingBox
    score: float


@dataclass(frozen=True)
class SourcePage:
    """A page and its range `[start, end)` in the source's text; numbers start at 1."""

    number: int
    start: int
    end: int
    reading: ReadingMethod = "text"


@dataclass(frozen=True)
class TextBlock:
    """The role that the characters `[start, end)` of the source's text have on their page.

    `level` applies to headings: 0 is the document's title. A chart label is the text of an axis or
    a legend, which says nothing by itself.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0


@dataclass(frozen=True)
class Source:
    """A document or image after reading. `id` is the sha256 of its bytes.

    `text` is what was read, never normalised afterwards. For an image it is the OCR text; `boxes`
    say where the text from OCR or from table rows was seen. An image without readable text has an
    empty `text`. `blocks` stand in order and do not overlap; text outside of all blocks is no
    evidence, and a source without any was not divided into blocks.
    """

    id: str
    name: str
    kind: SourceKind
    text: str
    pages: tuple[SourcePage, ...] = ()
    boxes: tuple[BoxedText, ...] = ()
    language: str = "und"
    notes: tuple[str, ...] = ()
    width: int = 0
    height: int = 0
    blocks: tuple[TextBlock, ...] = ()

    @property
    def is_image(self) -> bool:
        """True for images, which are judged by the text read in them."""
        return self.kind == "image"


@dataclass(frozen=True)
class Case:
    """A person's submission. `role` and `instruction` are CEDA's user fields (A.3.1).

    `others` are further columns of the imported row, kept as they were.
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
    """One sentence of the response, `[start, end)` in it, with a self-contained rewrite."""

    index: int
    start: int
    end: int
    text: str
    rewrite: str


@dataclass(frozen=True)
class Passage:
    """One retrieved sentence of a source; `[start, end)` in `Source.text`.

    `before` and `after` are the neighbouring sentences in its section and `heading` the path of
    headings above it (“Annual report 2024 > Water > Prices”), kept for reading. `score` is the
    fused retrieval score, `similarity` the cosine to the query (None where the encoder is muted).
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
    """A debater's citation, checked in code. `score` is 100 if verified, rapidfuzz's if fuzzy."""

    text: str
    status: QuoteStatus
    score: float = 100.0
    source_id: str = ""
    source: str = ""
    page: int | None = None
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True)
class DebatePoint:
    """One finding of a debater: words of the response compared with words of the evidence.

    `finding` says whether the evidence supports (“carried”), contradicts, or does not mention the
    words. `[start, end)` lies in `Case.response`. `weight` in [0, 1] is how sure the debater is.
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
    `about` names the debater whose answer the turn is about, `assigned` the side the debater had to
    take (CopMAD); `doubt` and `confidence` in [0, 1] are what it states about its own claim (ColMAD
    2.3).
    """

    debater: str
    agent: str
    number: int
    round: int
    reply: TurnReply
    stance: Stance
    text: str
    quotes: tuple[Quote, ...] = ()
    points: tuple[DebatePoint, ...] = ()
    confidence: float | None = None
    cut: bool = False
    manner: TurnMode = "debate"
    about: str = ""
    assigned: Stance | None = None
    doubt: str = ""


@dataclass(frozen=True)
class EvidenceShare:
    """The evidence given to one debater (CEDA 3.3): ids of passages."""

    debater: str
    passages: tuple[str, ...]


@dataclass(frozen=True)
class ContextFact:
    """A structured claim by agent C (CEDA 3.3) with the ids of the passages it rests on."""

    claim: str
    passages: tuple[str, ...]


@dataclass(frozen=True)
class EvidenceContext:
    """Agent C's output: each debater's share, all passages for the judge, and the conflicts."""

    shares: tuple[EvidenceShare, ...]
    whole: tuple[str, ...]
    summary: str
    conflicts: tuple[str, ...] = ()
    facts: tuple[ContextFact, ...] = ()


@dataclass(frozen=True)
class ReaderStance:
    """The stance of one of the built-in judge's readers on a statement, given all the evidence."""

    reader: str
    statement: int
    stance: Stance


@dataclass(frozen=True)
class MeasuredAccuracy:
    """The number of `n` verdicts this sure that were `right` on held-out rows of a material."""

    material: MaterialKind
    n: int
    right: int


@dataclass(frozen=True)
class Judgement:
    """The judge's finding. `text` is the concise verdict that the classifier reads (CEDA 3.4).

    `prose` is the text for people, if different. `points` are what the judge itself found in all
    the evidence. `p` is the judge's own calibrated probability that the response is not supported,
    also where it then abstained; None from a judge that gives none. `readers` are the views it
    weighed. `by_tool` names the tool that decided, if one did. `measured` says how reliable `p` was
    on material of the same kind.
    """

    agent: str
    label: Label
    text: str
    agreed: tuple[str, ...] = ()
    disputed: tuple[str, ...] = ()
    cause: UnclearCause | None = None
    cause_words: str = ""
    statement_labels: tuple[Label, ...] = ()
    points: tuple[DebatePoint, ...] = ()
    prose: str = ""
    p: float | None = None
    readers: tuple[ReaderStance, ...] = ()
    by_tool: str = ""
    measured: MeasuredAccuracy | None = None


@dataclass(frozen=True)
class Verdict:
    """The outcome. `confidence = max(p, 1 - p)` (CEDA 3.5); both are None when unclear."""

    label: Label
    p_hallucinated: float | None
    confidence: float | None
    rationale: str
    cause: UnclearCause | None = None
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
        """True if a source has `instead`; False if a tool computed it or no source was found."""
        return self.quote is not None and self.quote.status != "not_found"


@dataclass(frozen=True)
class WordScore:
    """The probability that a word does not hold: `[start, end)` in `Case.response`."""

    start: int
    end: int
    p: float


@dataclass(frozen=True)
class Plan:
    """The plan of a check; stored with the run so that it explains itself years later.

    `sheet`: None is the built-in engine. `token_cap` bounds tokens on models of unknown price,
    `cent_cap` US cents on others, 0 for the setting's. `reuses_replies` also reuses replies of
    the project's other runs, at any temperature. `reader` is the reader of the built-in agents;
    empty is the one chosen in Settings.
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
    options: DebateOptions = DEFAULT_OPTIONS
    agent_weights: int = 0
    cent_cap: int = 0
    reader: str = ""


LEARNED_FIELDS = ("span_threshold", "span_examples", "span_member", "agent_weights")  # of a plan


@dataclass(frozen=True)
class ModelCall:
    """One call to a model as recorded in the trace; `id` is the ledger's.

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
class RoleAssignment:
    """The agent that played a role, and the hash of its prompt or rules."""

    role: str
    agent: str
    built_in: bool
    rule: str
    rule_hash: str


@dataclass(frozen=True)
class Run:
    """One execution of a plan over a case, as the store lists it; `name` is what people call it."""

    id: str
    case_id: str
    project_id: str
    plan: Plan
    status: RunStatus
    started_at: float
    finished_at: float | None = None
    label: Label | None = None
    cause: UnclearCause | None = None
    p_hallucinated: float | None = None
    confidence: float | None = None
    origin: Literal["here", "imported"] = "here"
    parent_id: str | None = None
    name: str = ""


@dataclass(frozen=True)
class Project:
    """People, settings, library and cases that belong together.

    Its queue gives an item to `people_each` people, each for `hold_minutes`. `categories` are the
    kinds of error, `error_rate` is the tolerated share of wrong verdicts, `options` are those of
    its `protocol`. `truth_rule` says which answers count as true without a lead: those that most
    people gave, that all gave, or none.
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
    options: DebateOptions = DEFAULT_OPTIONS
    truth_rule: TruthRule = "majority"


@dataclass(frozen=True)
class Member:
    """A person's role in a project."""

    project_id: str
    person: str
    role: PersonRole
    added_at: float = 0.0


@dataclass(frozen=True)
class LibraryEntry:
    """A file in a project's library, with the results of reading it."""

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
    """Return 128 random bits as hex: on a shared server the link to a run is a capability."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class MarkingLevels:
    """Thresholds from which words are marked: by language and otherwise (None: as shipped)."""

    by_language: tuple[tuple[str, float], ...] = ()
    otherwise: float | None = None

    def at(self, language: str) -> float | None:
        """Return the level for a text in `language`, a BCP 47 tag, or None if none was learned."""
        return dict(self.by_language).get(get_base_language(language), self.otherwise)

    @property
    def words(self) -> str:
        """“de 0.41, en 0.36, else 0.38”; empty if nothing was learned."""
        levels = list(self.by_language)
        if self.otherwise is not None:
            levels.append(("else", self.otherwise))
        return ", ".join(f"{language} {level:.2f}" for language, level in levels)


@dataclass(frozen=True)
class SpanThresholds:
    """Learned thresholds for marking words.

    `reader` applies to the span reader's word scores, `votes` to a language model's votes on spans,
    `panel` to a panel's soft labels where most runs decide, `weighted` where weights do. `number`
    is the store's, 0 for the shipped thresholds.
    """

    number: int = 0
    reader: MarkingLevels = MarkingLevels()
    votes: MarkingLevels = MarkingLevels()
    panel: MarkingLevels = MarkingLevels()
    weighted: MarkingLevels = MarkingLevels()


@dataclass(frozen=True)
class PanelRule:
    """The rule for counting a panel's votes; the defaults are the paper's (MSA 3.3).

    `levels`: the p from which words are wrong. `alone`: by language the member whose run alone
    decides. `weights`: (extractor, adjudicator, weight) of the votes on a run or, where both are
    the same member, of the extractor's own p; without weights all count alike and most runs decide.
    """

    levels: MarkingLevels = MarkingLevels()
    alone: tuple[tuple[str, str], ...] = ()
    weights: tuple[tuple[str, str, float], ...] = ()


MSA_PANEL_RULE = PanelRule()


@dataclass(frozen=True)
class SpanExample:
    """A corrected case as shown to a span extractor; `spans` lie in `response`.

    `id` is the fingerprint of question and response; `tokens` is its approximate length in a
    prompt.
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
    """The learning from corrections for a run's span agents; `examples` fit its case.

    `alone` names by language the member of a panel whose run alone decides.
    """

    threshold: SpanThresholds = SpanThresholds()
    examples: tuple[SpanExample, ...] = ()
    examples_number: int = 0
    alone: tuple[tuple[str, str], ...] = ()

    @property
    def examples_words(self) -> str:
        """The examples as named in the trace; empty if there are none."""
        if not self.examples:
            return ""
        cases = ", ".join(example.case_id for example in self.examples)
        return f"Examples from people's corrections (no. {self.examples_number}): cases {cases}."


SHIPPED_MARKS = LearnedMarks()


def get_base_language(language: str) -> str:
    """Return “zh” for “zh-Hans”: thresholds and examples are kept by language alone."""
    return language.strip().casefold().split("-")[0].split("_")[0] or "und"


def parse_thresholds(number: int, body: Mapping[str, Any]) -> SpanThresholds:
    """Parse the thresholds from a stored body; call this and its like through `parse_body`."""
    kinds = ("reader", "votes", "panel", "weighted")
    return SpanThresholds(number, *(_parse_levels(body.get(kind)) for kind in kinds))


def parse_members(body: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Parse from a stored body, by language, the panel member whose run alone decides."""
    return tuple(sorted((str(name), str(member)) for name, member in body["alone"].items()))


def _parse_levels(stored: Mapping[str, Any] | None) -> MarkingLevels:
    if not stored:
        return MarkingLevels()
    levels = sorted((str(name), float(tau)) for name, tau in stored["by_language"].items())
    return MarkingLevels(tuple(levels), float(stored["otherwise"]))


def parse_examples(body: Mapping[str, Any]) -> tuple[SpanExample, ...]:
    """Parse the examples from a stored body, best first, without those that somebody removed."""
    removed = set(body.get("removed", ()))
    kept = (example for example in body.get("examples", ()) if example["id"] not in removed)
    return tuple(map(_parse_example, kept))


def _parse_example(stored: Mapping[str, Any]) -> SpanExample:
    spans = tuple(
        Span(s["start"], s["end"], s["text"], 1.0, s["category"], "people", s.get("instead", ""))
        for s in stored["spans"]
    )
    texts = {name: stored[name] for name in ("id", "case_id", "language", "question", "response")}
    reason, tokens = stored.get("reason", ""), int(stored["tokens"])
    return SpanExample(**texts, spans=spans, reason=reason, tokens=tokens)


def choose_examples(
    known: Sequence[SpanExample], language: str, own: str
) -> tuple[SpanExample, ...]:
    """Choose at most four examples for a case, those in its language first, never the case itself.

    `own` is the id of the case's own example. An example that exceeds the remaining tokens is
    skipped; shorter ones may still follow.
    """
    candidates = [example for example in known if example.id != own]
    candidates.sort(
        key=lambda example: get_base_language(example.language) != get_base_language(language)
    )
    chosen: list[SpanExample] = []
    tokens_left = MAX_EXAMPLE_TOKENS
    for example in candidates:
        if len(chosen) < MAX_PROMPT_EXAMPLES and example.tokens <= tokens_left:
            tokens_left -= example.tokens
            chosen.append(example)
    return tuple(chosen)


def hash_rule(rule: str) -> str:
    """Return a short hash that names an agent's prompt or rules in traces and learned artefacts."""
    return hashlib.sha256(rule.encode()).hexdigest()[:12]
