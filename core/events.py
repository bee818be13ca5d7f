"""What happens in a run, as facts in the past tense; replaying them rebuilds the screen.

`turn_delta` and `progress_made` are for the eye only: they stay in memory and are never stored.
All others are durable. `at` is seconds since the Unix epoch. Design: one union, tagged by `kind`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.argued import (
    ConsensusWeighed,
    DebateDecided,
    DebateNoted,
    JudgementSampled,
    PersonSpoke,
    ResponseRevised,
    RoundSummarised,
)
from core.audited import Reconsidered, Remembered, ToolUse
from core.manners import Manner
from core.records import (
    Case,
    Cause,
    Context,
    Judgement,
    ModelCall,
    Page,
    Passage,
    Plan,
    RoleUsed,
    Span,
    Stance,
    Statement,
    Turn,
    Verdict,
    WordScore,
)
from core.voted import SoftLabel

Stage = Literal["reading", "searching", "auditing", "debating", "judging", "marking"]


@dataclass(frozen=True)
class RunStarted:
    """The case and plan as they were, so that the run explains itself later.

    `code` names the program and the encoder; it is empty in runs from before it was kept.
    """

    at: float
    case: Case
    plan: Plan
    roles: tuple[RoleUsed, ...]
    code: str = ""
    kind: Literal["run_started"] = "run_started"


@dataclass(frozen=True)
class DocumentRead:
    """A document is ready to be searched; `reused` when nothing had to be read again."""

    at: float
    source_id: str
    name: str
    pages: tuple[Page, ...]
    characters: int
    seconds: float
    reused: bool
    notes: tuple[str, ...] = ()
    kind: Literal["document_read"] = "document_read"


@dataclass(frozen=True)
class ImageDescribed:
    """What the image reader could say of an image (CEDA agent B); empty `text` if nothing."""

    at: float
    source_id: str
    name: str
    agent: str
    readable: bool
    text: str
    seconds: float
    kind: Literal["image_described"] = "image_described"


@dataclass(frozen=True)
class StatementFound:
    """One statement of the response."""

    at: float
    statement: Statement
    kind: Literal["statement_found"] = "statement_found"


@dataclass(frozen=True)
class PassagesFound:
    """Evidence for one statement, best first (CEDA agent A); `reason` when there is none."""

    at: float
    statement: int
    passages: tuple[Passage, ...]
    reason: str = ""
    kind: Literal["passages_found"] = "passages_found"


@dataclass(frozen=True)
class ContextBuilt:
    """Agent C has put the evidence together and shared it out."""

    at: float
    agent: str
    context: Context
    kind: Literal["context_built"] = "context_built"


@dataclass(frozen=True)
class ModelCalled:
    """An agent had a language model answer; told once the agent's part is done."""

    at: float
    call: ModelCall
    kind: Literal["model_called"] = "model_called"


@dataclass(frozen=True)
class ToolCalled:
    """A tool was used on a statement, or on the whole response (HaluAgent 2.2)."""

    at: float
    use: ToolUse
    kind: Literal["tool_called"] = "tool_called"


@dataclass(frozen=True)
class MemoryUpdated:
    """What the audit holds of a statement; a later one of the same statement replaces it."""

    at: float
    entry: Remembered
    kind: Literal["memory_updated"] = "memory_updated"


@dataclass(frozen=True)
class ReflectionChanged:
    """Reflection changed what was held of a statement (HaluAgent 2.3)."""

    at: float
    change: Reconsidered
    kind: Literal["reflection_changed"] = "reflection_changed"


@dataclass(frozen=True)
class TurnStarted:
    """A debater begins to speak; what was asked of it is told as in `Turn`.

    Runs from before that was kept have the default of each.
    """

    at: float
    debater: str
    agent: str
    number: int
    round: int
    manner: Manner = "debate"
    about: str = ""
    assigned: Stance | None = None
    kind: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True)
class TurnDelta:
    """More words of the turn under way; never stored."""

    at: float
    number: int
    text: str
    kind: Literal["turn_delta"] = "turn_delta"


@dataclass(frozen=True)
class TurnFinished:
    """The whole turn, with its quotes verified in code."""

    at: float
    turn: Turn
    seconds: float
    cost: float | None = 0.0
    kind: Literal["turn_finished"] = "turn_finished"


@dataclass(frozen=True)
class ConsensusReached:
    """Both debaters agreed over a two-turn window (CEDA 3.1)."""

    at: float
    stance: Stance
    turns: int
    kind: Literal["consensus_reached"] = "consensus_reached"


@dataclass(frozen=True)
class JudgementReached:
    """The judge has concluded from the debate."""

    at: float
    judgement: Judgement
    seconds: float
    cost: float | None = 0.0
    kind: Literal["judgement_reached"] = "judgement_reached"


@dataclass(frozen=True)
class WordsScored:
    """Every word of the response has its probability of not holding; whole, in their order.

    Words of at least `threshold` are those that the agent would mark.
    """

    at: float
    agent: str
    scores: tuple[WordScore, ...]
    threshold: float
    kind: Literal["words_scored"] = "words_scored"


@dataclass(frozen=True)
class SpanProposed:
    """An agent says that these words do not hold."""

    at: float
    span: Span
    kind: Literal["span_proposed"] = "span_proposed"


@dataclass(frozen=True)
class SpanVoted:
    """A member of a panel voted on another's span (MSA 3.3); `p` is None where it gave no vote."""

    at: float
    extractor: str
    adjudicator: str
    span: Span
    p: float | None
    reason: str
    kind: Literal["span_voted"] = "span_voted"


@dataclass(frozen=True)
class SoftLabelled:
    """What a panel's votes come to: the stretches that any run marks, in their order.

    `runs` are the members that could say what they would mark, nothing included, in the panel's
    order. `used` names the one whose run alone decides, empty where all do.
    """

    at: float
    labels: tuple[SoftLabel, ...]
    threshold: float
    runs: tuple[str, ...]
    used: str = ""
    kind: Literal["soft_labelled"] = "soft_labelled"


@dataclass(frozen=True)
class SpanAdjudicated:
    """A proposed span was kept or dropped, and why."""

    at: float
    span: Span
    kept: bool
    reason: str
    kind: Literal["span_adjudicated"] = "span_adjudicated"


@dataclass(frozen=True)
class LabelPredicted:
    """The classifier's label and probability over the judge's text.

    After the run's end it is a new score by another version, which `by` asked for.
    """

    at: float
    verdict: Verdict
    by: str = ""
    kind: Literal["label_predicted"] = "label_predicted"


@dataclass(frozen=True)
class ProblemMet:
    """Something failed and the run went on without it; `cause` says what it may lead to.

    `source` and `source_id` name the file that it was about, if it was about one; `reply` is what
    a model said that could not be used; `turn` is the number of the turn that was lost with it.
    """

    at: float
    stage: Stage
    message: str
    source: str = ""
    cause: Cause | None = None
    source_id: str = ""
    reply: str = ""
    turn: int = 0
    kind: Literal["problem_met"] = "problem_met"


@dataclass(frozen=True)
class ProgressMade:
    """How far a stage has come; never stored. `total` is 0 where it is not known."""

    at: float
    stage: Stage
    note: str
    done: int = 0
    total: int = 0
    kind: Literal["progress_made"] = "progress_made"


@dataclass(frozen=True)
class StepsReused:
    """The steps before this event were taken over from a finished run over the same inputs.

    `through` is the last of them: only the statements, or all up to the judgement. Their events
    are copies: they happen now, take no time and cost nothing.
    """

    at: float
    run_id: str
    through: Literal["statements", "judgement"]
    kind: Literal["steps_reused"] = "steps_reused"


@dataclass(frozen=True)
class RunFinished:
    """The run came to its verdict."""

    at: float
    verdict: Verdict
    seconds: float
    cost: float | None = 0.0
    kind: Literal["run_finished"] = "run_finished"


@dataclass(frozen=True)
class RunFailed:
    """The run could not go on; there is no label."""

    at: float
    stage: Stage
    message: str
    kind: Literal["run_failed"] = "run_failed"


@dataclass(frozen=True)
class RunStopped:
    """A person stopped the run; what was found so far stays."""

    at: float
    by: str = ""
    kind: Literal["run_stopped"] = "run_stopped"


@dataclass(frozen=True)
class RunResumed:
    """Somebody took an interrupted, stopped or failed run up again."""

    at: float
    by: str = ""
    kind: Literal["run_resumed"] = "run_resumed"


Event = (
    RunStarted
    | DocumentRead
    | ImageDescribed
    | StatementFound
    | PassagesFound
    | ContextBuilt
    | ModelCalled
    | ToolCalled
    | MemoryUpdated
    | ReflectionChanged
    | TurnStarted
    | TurnDelta
    | TurnFinished
    | ConsensusReached
    | PersonSpoke
    | RoundSummarised
    | DebateDecided
    | DebateNoted
    | JudgementSampled
    | ConsensusWeighed
    | ResponseRevised
    | JudgementReached
    | WordsScored
    | SpanProposed
    | SpanVoted
    | SoftLabelled
    | SpanAdjudicated
    | LabelPredicted
    | ProblemMet
    | ProgressMade
    | StepsReused
    | RunFinished
    | RunFailed
    | RunStopped
    | RunResumed
)

EVENT_TYPES: dict[str, type[Event]] = {
    cls.__dataclass_fields__["kind"].default: cls for cls in Event.__args__
}
TRANSIENT = frozenset({"turn_delta", "progress_made"})
ENDINGS = frozenset({"run_finished", "run_failed", "run_stopped"})
