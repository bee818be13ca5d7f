"""The roles of a review as small interfaces, implemented by built-in agents and by LLM agents.

A role takes a view (plain records) and returns a record; no caller knows which kind of agent played
it. Source: CEDA 3.1 (agents A to E and the judge), MSA for span extraction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from core.runtime.concurrency import StopSignal
from core.schema.events import LabelRevision, MemoryEntry, SpanVote, ToolUse
from core.schema.events import SpanRuling as SpanRuling  # what an adjudicator returns
from core.schema.records import (
    MSA_PANEL_RULE,
    Case,
    DebatePoint,
    EvidenceContext,
    Judgement,
    Label,
    ModelCall,
    PanelRule,
    Passage,
    RoleAssignment,
    Source,
    Span,
    Stance,
    Statement,
    Turn,
    WordScore,
)
from core.schema.rosters import PANEL_ROLE_PREFIX, JudgeMode, TurnMode

SpeakCallback = Callable[[str], None]
LEARNED_WEIGHTS_MARKER = (
    ", weights "  # between a weigher's method and the number of the learned weights
)


@dataclass(frozen=True)
class Evidence:
    """The retrieved passages by id, and for each statement the ids of its passages, best first."""

    passages: Mapping[str, Passage]
    by_statement: Mapping[int, tuple[str, ...]]

    def of(self, statement: int, allowed: frozenset[str] | None = None) -> tuple[Passage, ...]:
        """Return the statement's passages, best first, restricted to `allowed` ids if given."""
        ids = self.by_statement.get(statement, ())
        return tuple(self.passages[i] for i in ids if allowed is None or i in allowed)


@dataclass(frozen=True)
class CaseView:
    """The parts of a case that every agent may see."""

    case: Case
    statements: tuple[Statement, ...]
    evidence: Evidence
    sources: Mapping[str, str]
    unreadable_images: tuple[str, ...] = ()


@dataclass(frozen=True)
class DebateView:
    """A debater's view at its turn: its share, and the turns that it is shown.

    `conflicts` are all that agent C wrote down; a debater uses those of its share. `manner` says
    what it is asked to do:

    - debate: AGREE or DENY the last message, with its stance (CEDA A.3.3);
    - answer: its own stance with reasons, confidence and doubt; it is shown nobody's turn;
    - reconsider: the same again, after the others' answers, which are `turns` (society of minds);
    - collaborate: add what the others missed, quote, state one failure mode of its own claim and
      its confidence (ColMAD 2.3);
    - compete: win for the side that is `assigned`, which may not be its own (CopMAD 2.2);
    - tit_for_tat: the first speaker gives its view, the second opposes it (MAD);
    - detect, critique, revise: say which words do not hold; why, and how to correct them; and give
      the corrected response (MAMM-REFINE);
    - advise, attack: suggest improvements of the answer of `about`, or challenge it (SC-MAKS 3.4).

    `remarks` are what people said during the debate, as (name, text); `summary` stands for turns
    that are no longer shown.
    """

    case_view: CaseView
    debater: str
    share: frozenset[str]
    turns: tuple[Turn, ...]
    number: int
    round: int
    last_message: str
    conflicts: tuple[str, ...] = ()
    manner: TurnMode = "debate"
    about: str = ""
    assigned: Stance | None = None
    remarks: tuple[tuple[str, str], ...] = ()
    summary: str = ""


@dataclass(frozen=True)
class JudgeView:
    """The judge's view: all the evidence and the whole debate, in reading order.

    `mode`: debate (CEDA A.3.4), collaborate and compete (ColMAD C.1) read a transcript; plain,
    thought and examples read the evidence alone (a single judge); moderate ends MAD's debate with a
    label, or leaves it `unclear` with the cause `not_settled`, and then the debate goes on.
    `number` distinguishes the judgements of one run, from 1; those with `is_sampled` are drawn at a
    temperature above 0.
    """

    case_view: CaseView
    context: EvidenceContext
    turns: tuple[Turn, ...]
    reached_consensus: bool
    mode: JudgeMode = "debate"
    number: int = 1
    is_sampled: bool = False
    remarks: tuple[tuple[str, str], ...] = ()
    summary: str = ""

    @property
    def slot(self) -> str:
        """The name of the judgement's call in a run; the same after a Resume."""
        return f"judge {self.number}" if self.number > 1 else "judge"


@dataclass(frozen=True)
class AuditView:
    """A tool picker's view: the statement, and everything found so far.

    `statement` is None where the response is checked as a whole: its length, its code, a date that
    the question asks for. `used` are the tool calls for it so far, with their results.
    """

    case_view: CaseView
    statement: Statement | None
    used: tuple[ToolUse, ...]
    memory: tuple[MemoryEntry, ...]


@dataclass(frozen=True)
class ToolStep:
    """A tool picker's next step, with its thought: a tool's name and its input as JSON.

    An empty `tool` ends the statement; `label` is then the picker's own conclusion, or None to let
    the results of the tools decide. A statement that is not `is_checkable` can be neither true nor
    false.
    """

    thought: str
    tool: str = ""
    given: str = ""
    label: Label | None = None
    evidence: str = ""
    is_checkable: bool = True


class NamedAgent(Protocol):
    """Anything with a name for the screen."""

    @property
    def name(self) -> str:
        """The agent's name as people see it."""


class Agent(NamedAgent, Protocol):
    """An agent that plays a role, with the prompt or rules that govern it."""

    @property
    def built_in(self) -> bool:
        """True if no language model is behind it."""

    @property
    def rule(self) -> str:
        """The prompt or the rules it follows, shown in the state panel."""


class Segmenter(Agent, Protocol):
    """Splits a response into self-contained statements."""

    def segment(self, case: Case, stop: StopSignal) -> tuple[Statement, ...]:
        """Return all statements in order, with offsets in `case.response`."""


class ImageReader(Agent, Protocol):
    """CEDA's agent B: describes an image in text."""

    def describe(self, case: Case, image: Source, stop: StopSignal) -> str:
        """Return one conclusive paragraph, or an empty text if the image cannot be read."""


class ToolPicker(Agent, Protocol):
    """Checks one statement step by step with tools (HaluAgent 2.3)."""

    def next_step(self, view: AuditView, stop: StopSignal) -> ToolStep:
        """Return the next tool to call, or the end of the statement."""


class Reflector(Agent, Protocol):
    """Reviews all statements together once each has been checked (HaluAgent 2.3)."""

    def reflect(
        self,
        view: CaseView,
        memory: Sequence[MemoryEntry],
        uses: Sequence[ToolUse],
        stop: StopSignal,
    ) -> tuple[LabelRevision, ...]:
        """Return the local and global changes; empty if everything stands."""


class ContextWriter(Agent, Protocol):
    """CEDA's agent C: combines the evidence and divides it among the debaters (3.3)."""

    def write(self, view: CaseView, debaters: Sequence[str], stop: StopSignal) -> EvidenceContext:
        """Return each debater's share, the judge's passages, and the conflicts."""


@runtime_checkable
class Summariser(NamedAgent, Protocol):
    """Keeps the transcript of a long debate within its budget (SC-MAKS 3.4)."""

    def summarise(
        self, view: CaseView, turns: Sequence[Turn], before: str, stop: StopSignal
    ) -> str:
        """Return the key points of these turns and of the summary `before` them."""


@runtime_checkable
class Reviser(NamedAgent, Protocol):
    """Rewrites the response as it should read."""

    def revise(self, view: JudgeView, judgement: Judgement, stop: StopSignal) -> str:
        """Return the whole response with its errors corrected; unchanged if there are none."""


class ConsensusPolicy(Protocol):
    """The consensus policy w(Q; θ): the weight of each agent's answer (SC-MAKS 3.2, 3.5)."""

    @property
    def method(self) -> str:
        """The source of the weights: uniform, or how they were learned and their number."""

    def weights(self, view: CaseView, turns: Sequence[Turn]) -> tuple[tuple[str, float], ...]:
        """Return (debater, weight) for each who answered, in order; the weights sum to 1."""


class Debater(Agent, Protocol):
    """An arguing agent: CEDA's agents D and E, and the agents of every other protocol."""

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        """Return one turn; `speak` is called with pieces of its text as they come."""


@runtime_checkable
class RevisionRanker(NamedAgent, Protocol):
    """A judge that can also pick the best of several revisions (MAMM-REFINE: rerank)."""

    def best_of(
        self,
        view: JudgeView,
        points: Sequence[DebatePoint],
        revisions: Sequence[str],
        stop: StopSignal,
    ) -> int:
        """Return the index of the best revision; `points` are the places to be corrected."""


@runtime_checkable
class EvidenceReader(Protocol):
    """A judge that can also judge the evidence alone, without a debate or tools."""

    def read(self, view: JudgeView, stop: StopSignal) -> Judgement:
        """Return the finding on the statements of the view, with a label for each of them."""

    def read_statement(self, view: CaseView, statement: Statement, stop: StopSignal) -> Judgement:
        """Return the finding on one statement over all passages of the view, reasons in `prose`."""


class Judge(Agent, Protocol):
    """Reads the debate and concludes (CEDA A.3.4)."""

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        """Return the finding; `unclear` with its cause if the debate does not support one."""


class SpanExtractor(Agent, Protocol):
    """Proposes the words of the response that do not hold."""

    def propose(self, view: JudgeView, judgement: Judgement, stop: StopSignal) -> tuple[Span, ...]:
        """Return spans with offsets in `case.response`, quotes equal to the text there."""


@runtime_checkable
class WordScorer(NamedAgent, Protocol):
    """A span extractor that also scores how likely each word is not to hold."""

    def threshold(self, language: str) -> float:
        """Return the probability from which it would mark a word of a text in that language."""

    def score_words(self, view: CaseView, stop: StopSignal) -> tuple[WordScore, ...]:
        """Return scores of all words of the response in order; empty without evidence."""


class SpanAdjudicator(Agent, Protocol):
    """Decides whether a proposed span is kept."""

    def adjudicate(self, view: JudgeView, span: Span, label: Label, stop: StopSignal) -> SpanRuling:
        """Keep or drop the span under the verdict's label, with its final probability."""


class SpanPanelist(Agent, Protocol):
    """Marks words itself, and votes on the spans that others marked (MSA 3.3)."""

    def extract(self, view: CaseView, stop: StopSignal) -> tuple[Span, ...]:
        """Return its own spans, with offsets in `case.response`."""

    def vote(self, view: CaseView, spans: Sequence[Span], stop: StopSignal) -> tuple[SpanVote, ...]:
        """Return a vote on each span, in order."""


class _UniformWeigher:
    method = "uniform"

    def weights(self, view: CaseView, turns: Sequence[Turn]) -> tuple[tuple[str, float], ...]:
        names = dict.fromkeys(turn.debater for turn in turns)
        return tuple((name, 1 / len(names)) for name in names)


UNIFORM_POLICY: ConsensusPolicy = _UniformWeigher()


@dataclass(frozen=True)
class Roster:
    """An agent for every role. `debaters` maps the name used in the debate to its agent.

    `spare` replaces an agent whose reply is unusable: only its role is lost. `calls_made` and
    `notes_made` return the model calls, and the notes of agents, since they were last called, once
    each; `notices` are what people should know before the debate. Two or more members of
    `span_panel` mark words in place of the two span roles.
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
    panel_rule: PanelRule = MSA_PANEL_RULE
    weigher: ConsensusPolicy = UNIFORM_POLICY

    @property
    def is_deterministic(self) -> bool:
        """True if the same inputs always give the same turns and judgement.

        Only then may a run reuse steps of an earlier one without being asked to. Built-in agents
        are deterministic; a language model is so at most at temperature 0.
        """
        return all(agent.built_in for _, agent in self._agents_by_role)

    def roles_used(self, digest: Callable[[str], str]) -> tuple[RoleAssignment, ...]:
        """Return every role with its agent, rule and the rule's hash, for the trace."""
        return tuple(
            RoleAssignment(role, agent.name, agent.built_in, agent.rule, digest(agent.rule))
            for role, agent in self._agents_by_role
        )

    @property
    def _agents_by_role(self) -> list[tuple[str, Agent]]:
        markers: list[tuple[str, Agent]] = [
            ("span extractor", self.span_extractor),
            ("span adjudicator", self.span_adjudicator),
        ]
        if len(self.span_panel) > 1:
            markers = [
                (f"{PANEL_ROLE_PREFIX}{n}", agent) for n, agent in enumerate(self.span_panel, 1)
            ]
        return [
            ("segmenter", self.segmenter),
            ("tool picker", self.tool_picker),
            ("reflector", self.reflector),
            ("image reader", self.image_reader),
            ("context writer", self.context_writer),
            *((f"debater {name}", agent) for name, agent in self.debaters.items()),
            ("judge", self.judge),
            *markers,
        ]
