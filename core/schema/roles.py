"""The roles of a review as small interfaces; built-in agents and LLM agents both implement them.

A role takes a view (plain records) and returns a record. Nothing downstream knows who played it.
Source: CEDA 3.1 (agents A to E and the judge), MSA for span extraction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from core.runtime.concurrency import Stop
from core.schema.events import Reconsidered, Remembered, SpanVote, ToolUse
from core.schema.events import SpanRuling as SpanRuling  # of an adjudicator
from core.schema.records import (
    AS_THE_PAPER,
    Case,
    Context,
    Judgement,
    Label,
    ModelCall,
    PanelRule,
    Passage,
    Point,
    RoleUsed,
    Source,
    Span,
    Stance,
    Statement,
    Turn,
    WordScore,
)
from core.schema.rosters import PANEL, JudgeManner, Manner

Speak = Callable[[str], None]
LEARNED = ", weights "  # between a weigher's method and the number of what was learned


@dataclass(frozen=True)
class Evidence:
    """What was retrieved: passages by id, and for each statement its ids, best first."""

    passages: Mapping[str, Passage]
    by_statement: Mapping[int, tuple[str, ...]]

    def of(self, statement: int, allowed: frozenset[str] | None = None) -> tuple[Passage, ...]:
        """The statement's passages, best first, cut down to the allowed ids where given."""
        ids = self.by_statement.get(statement, ())
        return tuple(self.passages[i] for i in ids if allowed is None or i in allowed)


@dataclass(frozen=True)
class CaseView:
    """What every agent may see of a case."""

    case: Case
    statements: tuple[Statement, ...]
    evidence: Evidence
    sources: Mapping[str, str]
    unreadable_images: tuple[str, ...] = ()


@dataclass(frozen=True)
class DebateView:
    """What a debater sees when it is its turn: its share, and what it may hear of what was said.

    `conflicts` are all that agent C wrote down; a debater shows itself those of its share.
    `manner` says what is asked of it:

    - debate: AGREE or DENY the last message, with its stance (CEDA A.3.3);
    - answer: its own stance with reasons, confidence and doubt; it hears nobody;
    - reconsider: the same again, after the others' answers, which are `turns` (society of minds);
    - collaborate: add what the others missed, quote, state one failure mode of its own claim and
      its confidence (ColMAD 2.3);
    - compete: win for the side that is `assigned`, which may not be its own (CopMAD 2.2);
    - tit_for_tat: the first speaker gives its view, the second opposes it (MAD);
    - detect, critique, revise: say which words do not hold; why, and how to mend them; and give
      the response mended (MAMM-REFINE);
    - advise, attack: suggest improvements of the answer of `about`, or challenge it (SC-MAKS 3.4).

    `remarks` are what people said in mid-debate, as (who, words); `summary` stands for turns that
    are not shown any more.
    """

    view: CaseView
    debater: str
    share: frozenset[str]
    turns: tuple[Turn, ...]
    number: int
    round: int
    last_message: str
    conflicts: tuple[str, ...] = ()
    manner: Manner = "debate"
    about: str = ""
    assigned: Stance | None = None
    remarks: tuple[tuple[str, str], ...] = ()
    summary: str = ""


@dataclass(frozen=True)
class JudgeView:
    """What the judge sees: the whole evidence and the whole debate, in the order it is to read it.

    `manner`: debate (CEDA A.3.4), collaborate and compete (ColMAD C.1) read a transcript; plain,
    thought and examples read the evidence alone (a single judge); moderate ends MAD's debate with a
    label, or leaves it `unclear` with the cause `not_settled`, and then it goes on. `number` tells
    judgements of one run apart, from 1; those that are sampled are drawn at a temperature above 0.
    """

    view: CaseView
    context: Context
    turns: tuple[Turn, ...]
    reached_consensus: bool
    manner: JudgeManner = "debate"
    number: int = 1
    is_sampled: bool = False
    remarks: tuple[tuple[str, str], ...] = ()
    summary: str = ""

    @property
    def slot(self) -> str:
        """What names the judgement's call in a run; the same after a Resume."""
        return f"judge {self.number}" if self.number > 1 else "judge"


@dataclass(frozen=True)
class AuditView:
    """What picks the next tool sees: the statement, and all that was found out so far.

    `statement` is None where the response is looked at as a whole: its length, its code, a date
    that the question asks for. `used` are the tools called for it so far, with what they said.
    """

    view: CaseView
    statement: Statement | None
    used: tuple[ToolUse, ...]
    memory: tuple[Remembered, ...]


@dataclass(frozen=True)
class Step:
    """What a tool picker wants next, with its thought: a tool's name and its input as JSON.

    An empty `tool` ends the statement; `label` is then the picker's own conclusion, or None where
    what the tools said decides. What is not `is_checkable` could be neither true nor false.
    """

    thought: str
    tool: str = ""
    given: str = ""
    label: Label | None = None
    evidence: str = ""
    is_checkable: bool = True


class Named(Protocol):
    """Anyone with a name for the screen."""

    @property
    def name(self) -> str:
        """The agent's name as people see it."""


class Agent(Named, Protocol):
    """Anyone who plays a role, and what it is ruled by."""

    @property
    def built_in(self) -> bool:
        """True when no language model is behind it."""

    @property
    def rule(self) -> str:
        """The prompt or the rules it follows, shown in the state panel."""


class Segmenter(Agent, Protocol):
    """Cuts a response into statements that stand alone."""

    def segment(self, case: Case, stop: Stop) -> tuple[Statement, ...]:
        """All statements in order, with offsets in `case.response`."""


class ImageReader(Agent, Protocol):
    """CEDA's agent B: turns an image into text about it."""

    def describe(self, case: Case, image: Source, stop: Stop) -> str:
        """One conclusive paragraph, or an empty text when the image cannot be read."""


class ToolPicker(Agent, Protocol):
    """Checks one statement step by step with tools (HaluAgent 2.3)."""

    def next_step(self, view: AuditView, stop: Stop) -> Step:
        """The next tool to call, or the end of the statement."""


class Reflector(Agent, Protocol):
    """Looks over all statements once each has been checked (HaluAgent 2.3)."""

    def reflect(
        self, view: CaseView, memory: Sequence[Remembered], uses: Sequence[ToolUse], stop: Stop
    ) -> tuple[Reconsidered, ...]:
        """What has to change, locally and globally; nothing where all stands."""


class ContextWriter(Agent, Protocol):
    """CEDA's agent C: puts the evidence together and shares it out (3.3)."""

    def write(self, view: CaseView, debaters: Sequence[str], stop: Stop) -> Context:
        """Each debater's share, the judge's whole, and what conflicts."""


@runtime_checkable
class Summariser(Named, Protocol):
    """Keeps the transcript of a long debate in budget (SC-MAKS 3.4)."""

    def summarise(self, view: CaseView, turns: Sequence[Turn], before: str, stop: Stop) -> str:
        """The key points of these turns and of the summary `before` them."""


@runtime_checkable
class Reviser(Named, Protocol):
    """Writes the response as it should read."""

    def revise(self, view: JudgeView, judgement: Judgement, stop: Stop) -> str:
        """The whole response with what is wrong put right; the same text where nothing is."""


class Weigher(Protocol):
    """The consensus policy w(Q; θ): how much each agent's answer counts (SC-MAKS 3.2, 3.5)."""

    @property
    def method(self) -> str:
        """Where the weights come from: uniform, or how they were learned, `LEARNED`, a number."""

    def weights(self, view: CaseView, turns: Sequence[Turn]) -> tuple[tuple[str, float], ...]:
        """(debater, weight) for each who answered, in order; they sum to 1."""


class Debater(Agent, Protocol):
    """Whoever argues: CEDA's agents D and E, and the agents of every other protocol."""

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """One turn; `speak` is called with pieces of its text as they come."""


@runtime_checkable
class Ranker(Named, Protocol):
    """A judge that can also pick the best of several revisions (MAMM-REFINE: rerank)."""

    def best_of(
        self, view: JudgeView, points: Sequence[Point], revisions: Sequence[str], stop: Stop
    ) -> int:
        """The index of the best; `points` are the places that were to be mended."""


@runtime_checkable
class EvidenceReader(Protocol):
    """A judge that can also say what the evidence alone comes to, without a debate or tools."""

    def read(self, view: JudgeView, stop: Stop) -> Judgement:
        """The finding on the statements of the view, with a label for each of them."""

    def read_statement(self, view: CaseView, statement: Statement, stop: Stop) -> Judgement:
        """The finding on one statement over all passages of the view; its prose is the reason."""


class Judge(Agent, Protocol):
    """Reads the debate and concludes (CEDA A.3.4)."""

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """The finding; `unclear` with its cause when the debate cannot carry one."""


class SpanExtractor(Agent, Protocol):
    """Proposes the words of the response that do not hold."""

    def propose(self, view: JudgeView, judgement: Judgement, stop: Stop) -> tuple[Span, ...]:
        """Spans with offsets in `case.response`, quotes equal to the text there."""


@runtime_checkable
class WordScorer(Named, Protocol):
    """A span extractor that also says of every word how likely it is not to hold."""

    def threshold(self, language: str) -> float:
        """The probability from which it would mark a word of a text in that language."""

    def score_words(self, view: CaseView, stop: Stop) -> tuple[WordScore, ...]:
        """All words of the response in order; none where there is no evidence."""


class SpanAdjudicator(Agent, Protocol):
    """Decides about a proposed span."""

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: Stop) -> SpanRuling:
        """Kept or dropped under the verdict's label, with its final probability."""


class SpanPanelist(Agent, Protocol):
    """Marks words by itself, and votes on what others marked (MSA 3.3)."""

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        """Its own spans, with offsets in `case.response`."""

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        """A vote on each span, in their order."""


class _Uniform:
    method = "uniform"

    def weights(self, view: CaseView, turns: Sequence[Turn]) -> tuple[tuple[str, float], ...]:
        names = dict.fromkeys(turn.debater for turn in turns)
        return tuple((name, 1 / len(names)) for name in names)


UNIFORM: Weigher = _Uniform()


@dataclass(frozen=True)
class Roster:
    """An agent for every role. `debaters` maps the name used in the debate to its agent.

    `spare` stands in for an unusable reply: that costs only its role. `calls_made` and `notes_made`
    hand over, once each, the calls to language models and what their agents want said since they
    were last asked; `notices` are what people should know before the debate. Two in `span_panel`
    or more mark in the two span roles' place.
    """

    name: str
    segmenter: Segmenter
    tool_picker: ToolPicker
    reflector: Reflector
    image_reader: ImageReader
    context_writer: ContextWriter
    debaters: Mapping[str, Debater]
    judge: Judge
    span_extractor: SpanExtractor
    span_adjudicator: SpanAdjudicator
    spare: Roster | None = None
    calls_made: Callable[[], tuple[ModelCall, ...]] = tuple
    notes_made: Callable[[], tuple[str, ...]] = tuple
    notices: Callable[[CaseView], tuple[str, ...]] = lambda _: ()
    span_panel: tuple[SpanPanelist, ...] = ()
    panel_rule: PanelRule = AS_THE_PAPER
    weigher: Weigher = UNIFORM

    @property
    def is_deterministic(self) -> bool:
        """True when the same inputs always give the same turns and judgement.

        Only then may a run take steps over from an earlier one unasked. Built-in agents are; an
        agent with a language model behind it would be at temperature 0 at most (design: section 4).
        """
        return all(agent.built_in for _, agent in self._named)

    def roles_used(self, digest: Callable[[str], str]) -> tuple[RoleUsed, ...]:
        """Every role with its agent, rule and the rule's hash, for the trace."""
        return tuple(
            RoleUsed(role, agent.name, agent.built_in, agent.rule, digest(agent.rule))
            for role, agent in self._named
        )

    @property
    def _named(self) -> list[tuple[str, Agent]]:
        panel = [(f"{PANEL}{n}", agent) for n, agent in enumerate(self.span_panel, 1)]
        one, other = self.span_extractor, self.span_adjudicator
        return [
            ("segmenter", self.segmenter),
            ("tool picker", self.tool_picker),
            ("reflector", self.reflector),
            ("image reader", self.image_reader),
            ("context writer", self.context_writer),
            *((f"debater {name}", agent) for name, agent in self.debaters.items()),
            ("judge", self.judge),
            *(panel if len(panel) > 1 else [("span extractor", one), ("span adjudicator", other)]),
        ]
