"""The state of a run, folded from its events: CEDA's state (3.2).

The pipeline resumes from it and the pages draw it: live, after a reload, or a year later.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from core.schema.events import (
    ConsensusWeighed,
    DebateDecided,
    DocumentRead,
    Event,
    ImageDescribed,
    JudgementSampled,
    LabelRevision,
    MemoryEntry,
    PersonSpoke,
    ProblemMet,
    ResponseRevised,
    RoundSummarised,
    SoftLabelled,
    SpanAdjudicated,
    SpanVoted,
    Stage,
    StepsReused,
    ToolUse,
    WordsScored,
    drop_capped_uses,
)
from core.schema.records import (
    Case,
    EvidenceContext,
    Judgement,
    ModelCall,
    Passage,
    Plan,
    RoleAssignment,
    Run,
    Span,
    Statement,
    Turn,
    UnclearCause,
    Verdict,
)

# Causes of an end without a verdict after which a run can be resumed.
RESUMABLE_CAUSES: frozenset[UnclearCause] = frozenset({"agent_failed", "budget_reached"})
# The stage that a run is in after an event of that kind; others do not change it.
_KINDS_BY_STAGE: dict[Stage, str] = {
    "searching": "statement_found passages_found",
    "auditing": "tool_called memory_updated reflection_changed",
    "debating": "context_built turn_started turn_finished round_summarised",
    "judging": "consensus_reached judgement_sampled consensus_weighed judgement_reached",
    "marking": "label_predicted",
}
STAGE_BY_KIND = {kind: stage for stage, kinds in _KINDS_BY_STAGE.items() for kind in kinds.split()}


@dataclass
class RunState:
    """The state of one run; `add` applies its events in order."""

    case: Case | None = None
    plan: Plan | None = None
    roles: tuple[RoleAssignment, ...] = ()
    code: str = ""
    began_at: float = 0.0
    last_at: float = 0.0
    paused: float = 0.0
    stage: Stage = "reading"
    documents: dict[str, DocumentRead] = field(default_factory=dict)
    images: dict[str, ImageDescribed] = field(default_factory=dict)
    statements: dict[int, Statement] = field(default_factory=dict)
    passages: dict[int, tuple[Passage, ...]] = field(default_factory=dict)
    context: EvidenceContext | None = None
    turns: list[Turn] = field(default_factory=list)
    reached_consensus: bool = False
    remarks: list[PersonSpoke] = field(default_factory=list)
    remark_places: list[int] = field(default_factory=list)  # newest turn before each; 0: none
    summaries: list[RoundSummarised] = field(default_factory=list)
    decided: DebateDecided | None = None
    notes: list[str] = field(default_factory=list)  # distinct notes of the debate
    samples: dict[int, JudgementSampled] = field(default_factory=dict)
    sample_places: dict[int, int] = field(default_factory=dict)  # as remark_places
    weighed: ConsensusWeighed | None = None
    revised: ResponseRevised | None = None
    judgement: Judgement | None = None
    tool_uses: list[ToolUse] = field(default_factory=list)
    memory: dict[int, MemoryEntry] = field(default_factory=dict)
    contested: tuple[int, ...] = ()  # statements that an audit debates
    reconsidered: list[LabelRevision] = field(default_factory=list)
    is_reopened: bool = False  # some checked statements must be checked again
    calls: dict[str, ModelCall] = field(default_factory=dict)
    reused: StepsReused | None = None
    verdict: Verdict | None = None
    words: WordsScored | None = None
    proposed: list[Span] = field(default_factory=list)
    votes: list[SpanVoted] = field(default_factory=list)
    soft: SoftLabelled | None = None
    rulings: list[SpanAdjudicated] = field(default_factory=list)
    problems: list[ProblemMet] = field(default_factory=list)
    ending: Event | None = None
    person_spans: tuple[Span, ...] | None = None  # shown in place of the machine's

    def copy_evidence(self) -> RunState:
        """Return what was read and found for the statements, without what anybody says of them."""
        return RunState(
            self.case,
            documents=self.documents,
            images=self.images,
            statements=self.statements,
            passages=self.passages,
        )

    def add(self, event: Event) -> None:  # noqa: C901 - one arm for each kind of event
        """Apply one more event."""
        if event.kind == "run_resumed" and self.began_at:
            self.paused += max(0.0, event.at - self.last_at)
        # A new score after the end is not part of the run's work.
        if self.ending is None or event.kind != "label_predicted":
            self.last_at = event.at
        self.stage = STAGE_BY_KIND.get(event.kind, self.stage)
        match event.kind:
            case "run_started":
                self.case, self.plan, self.roles = event.case, event.plan, event.roles
                self.code, self.began_at = event.code, event.at
            case "progress_made":
                self.stage = event.stage
            case "document_read":
                self._forget_source(event.source_id)
                self.documents[event.source_id] = event
            case "image_described":
                self._forget_source(event.source_id)
                self.images[event.source_id] = event
            case "statement_found":
                self.statements[event.statement.index] = event.statement
            case "passages_found":
                self.passages[event.statement] = event.passages
            case "context_built":
                self.context = event.context
                entries = sorted(self.memory.items())
                self.contested = tuple(i for i, entry in entries if entry.is_contested)
            case "model_called":
                self.calls[event.call.id] = event.call
            case "tool_called":
                self.tool_uses.append(event.use)
            case "memory_updated":
                self.memory[event.entry.statement] = event.entry
            case "reflection_changed":
                self.reconsidered.append(event.change)
            case "turn_finished":
                self.turns.append(event.turn)
            case "consensus_reached":
                self.reached_consensus = True
            case "person_spoke":
                self.remarks.append(event)
                self.remark_places.append(max((turn.number for turn in self.turns), default=0))
            case "round_summarised":
                self.summaries.append(event)
            case "debate_decided":
                self.decided = event
            case "debate_noted":
                if event.words not in self.notes:
                    self.notes.append(event.words)
            case "judgement_sampled":
                self.samples[event.number] = event
                self.sample_places[event.number] = max((t.number for t in self.turns), default=0)
            case "consensus_weighed":
                self.weighed = event
            case "response_revised":
                self.revised = event
            case "judgement_reached":
                self.judgement = event.judgement
            case "label_predicted":
                self.verdict = event.verdict
            case "words_scored":
                self.words = event
            case "span_proposed":
                if event.span not in self.proposed:  # a resumed run proposes it again
                    self.proposed.append(event.span)
            case "span_voted":  # a vote repeated after a Resume replaces the first
                same = (event.extractor, event.adjudicator, event.span)
                votes = [v for v in self.votes if (v.extractor, v.adjudicator, v.span) != same]
                self.votes = [*votes, event]
            case "soft_labelled":
                self.soft, self.rulings = event, []  # rulings follow from the labels
            case "span_adjudicated":
                self.rulings.append(event)
            case "problem_met":
                self._forget_source(event.source_id)
                # A resumed run may meet the same problem again.
                kept = [p for p in self.problems if p.message != event.message]
                self.problems = [*kept, event]
            case "steps_reused":
                self.reused = event
            case "run_finished":
                self.ending, self.verdict = event, event.verdict
            case "run_failed" | "run_stopped":
                self.ending = event
            case "run_resumed":
                self._resume()

    def _resume(self) -> None:
        """Continue a run that ended without a verdict as if it had not ended."""
        self.ending = None
        if self.verdict and self.verdict.cause in RESUMABLE_CAUSES:
            self.verdict = None
            self.problems = [p for p in self.problems if p.cause not in RESUMABLE_CAUSES]
        if self.judgement is None:  # repeat calls that failed at a cap, and those after them
            self.tool_uses, affected = drop_capped_uses(self.tool_uses)
            self.memory = {i: entry for i, entry in self.memory.items() if i not in affected}
            self.is_reopened = self.is_reopened or bool(affected)

    @property
    def first_verdict(self) -> Verdict | None:
        """The verdict that the run ended with if it was scored again since, else None."""
        if self.ending is None or self.ending.kind != "run_finished":
            return None
        return self.ending.verdict if self.ending.verdict != self.verdict else None

    @property
    def classifier(self) -> str:
        """The version that made, or would make, the present verdict."""
        version = self.verdict.classifier if self.verdict else ""
        return version or (self.plan.classifier if self.plan else "")

    @property
    def cost(self) -> float | None:
        """US dollars for all model calls; None if part of it is not known."""
        return sum_costs(self.calls.values())

    def _forget_source(self, source_id: str) -> None:
        """Drop what an earlier attempt reported about a source, before a newer report."""
        if source_id:
            self.problems = [p for p in self.problems if p.source_id != source_id]
            self.documents.pop(source_id, None)
            self.images.pop(source_id, None)

    def seconds(self, now: float | None = None) -> float:
        """Return the seconds worked until `now` or the newest event, excluding pauses."""
        end = self.last_at if now is None else now
        return max(0.0, end - self.began_at - self.paused) if self.began_at else 0.0

    @property
    def sources_read(self) -> frozenset[str]:
        """Ids of the sources that need no further reading."""
        return frozenset(self.documents) | frozenset(self.images)

    @property
    def source_names(self) -> dict[str, str]:
        """The name of every source that was read, by id."""
        documents = {i: event.name for i, event in self.documents.items()}
        return documents | {i: event.name for i, event in self.images.items()}

    @property
    def unreadable_images(self) -> tuple[str, ...]:
        """Names of images in which nothing could be read."""
        names = [event.name for event in self.images.values() if not event.readable]
        names += [p.source for p in self.problems if p.cause == "image_not_readable"]
        return tuple(names)

    @property
    def spans(self) -> tuple[Span, ...]:
        """A person's spans if set, else those that were kept, in order of their position.

        Empty if a new score says that nothing is wrong: marked words would contradict it.
        """
        if self.person_spans is not None:
            return tuple(sorted(self.person_spans, key=lambda span: span.start))
        if self.first_verdict and self.verdict and self.verdict.label == "supported":
            return ()
        kept = [ruling.span for ruling in self.rulings if ruling.kept]
        return tuple(sorted(kept, key=lambda span: span.start))

    @property
    def evidence(self) -> dict[str, Passage]:
        """All passages by id, in order of their statements."""
        return {p.id: p for _, passages in sorted(self.passages.items()) for p in passages}


def can_resume(run: Run) -> bool:
    """Return True for a run that ended, or was cut off, without its verdict."""
    halted = run.status in ("interrupted", "stopped", "failed")
    return halted or (run.status == "finished" and run.cause in RESUMABLE_CAUSES)


def sum_costs(calls: Iterable[ModelCall]) -> float | None:
    """Return the US dollars for these calls; None if part of it is not known."""
    costs = [call.cost for call in calls]
    return None if None in costs else sum((cost for cost in costs if cost is not None), 0.0)


def fold_events(events: Iterable[Event]) -> RunState:
    """Fold the events of a run into its state."""
    progress = RunState()
    for event in events:
        progress.add(event)
    return progress
