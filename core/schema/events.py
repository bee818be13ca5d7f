"""The events of a run, as immutable facts; replaying them rebuilds a run's state.

One union, tagged by `kind`: stages, turns and judgements, what protocols add (remarks of people,
round summaries, votes, revisions), what an audit records (tool calls, memory, reflection; HaluAgent
2.2, 2.3) and decisions about spans (MSA 3.3). `turn_delta` and `progress_made` only update the
screen: they stay in memory and are never stored; all others are durable. `at` is seconds since the
Unix epoch. Offsets are half-open, count Unicode code points, and lie in `Case.response`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from core.schema.records import (
    Case,
    EvidenceContext,
    Judgement,
    Label,
    ModelCall,
    Passage,
    Plan,
    RoleAssignment,
    SourcePage,
    Span,
    Stance,
    Statement,
    Turn,
    UnclearCause,
    Verdict,
    WordScore,
)
from core.schema.rosters import TurnMode

AUDIT = "audit"  # the name of the audit protocol in a plan
MAX_STEPS_PER_STATEMENT = 6  # tool calls for one statement of an audit
MAX_REMARK_CHARACTERS = 2000  # characters

ToolOutcome = Literal["found", "nothing", "off", "failed"]
ReflectionScope = Literal["local", "global"]
Stage = Literal["reading", "searching", "auditing", "debating", "judging", "marking"]


@dataclass(frozen=True)
class SpanRuling:
    """The decision about one span."""

    span: Span
    kept: bool
    reason: str


@dataclass(frozen=True)
class SpanVote:
    """One adjudicator's vote on one span: the probability that its words are hallucinated.

    `p` is None where the adjudicator gave no usable vote. That counts as no vote, not as 0.5.
    """

    p: float | None
    reason: str


@dataclass(frozen=True)
class SoftLabel:
    """The probability that a stretch of the response is wrong, from all runs of a panel.

    `p` is the mean over the runs, `level` the highest threshold at which most of them mark it.
    """

    start: int
    end: int
    p: float
    level: float


@dataclass(frozen=True)
class ToolUse:
    """One call of a tool, as recorded in the trace.

    `statement` is the index of the statement it was called for, None for the response as a whole.
    `given` and `gave` are JSON objects as text: the tool's input, and its output for the tool's own
    view. `label` is what the result implies for the words that the tool was asked about, `unclear`
    where it implies nothing; `p` is the probability that they are hallucinated, None where the tool
    gives none. `outcome` distinguishes a tool that found nothing from one that is off here or that
    failed: neither of the last two is ever a label. `agent` chose the tool, and `thought` is why.
    `[start, end)` are the words that do not hold, and `instead` is what they should say.
    `is_over_cap` marks a call that failed because a cap left no room for it: a resumed run makes it
    again.
    """

    tool: str
    statement: int | None
    given: str
    gave: str
    outcome: ToolOutcome
    label: Label
    words: str
    seconds: float
    p: float | None = None
    agent: str = ""
    thought: str = ""
    start: int | None = None
    end: int | None = None
    instead: str = ""
    category: str = ""
    is_over_cap: bool = False


@dataclass(frozen=True)
class MemoryEntry:
    """An audit's memory of one statement: its label and the evidence for it (HaluAgent 2.3).

    `evidence` is a sentence for people, `tools` are the tools that were used, in order, and
    `passages` the ids of the passages that were read. A contested statement goes to debate; a
    statement with nothing to check (a greeting, a question, an opinion) does not count towards the
    verdict.
    """

    statement: int
    label: Label
    p: float | None
    evidence: str
    tools: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    is_contested: bool = False
    is_checkable: bool = True


@dataclass(frozen=True)
class LabelRevision:
    """A change that reflection made to a statement, and why.

    Local: its evidence does not support its label. Global: it rests on the statements `because_of`,
    which are wrong, or contradicts them.
    """

    statement: int
    reach: ReflectionScope
    before: Label
    after: Label
    reason: str
    because_of: tuple[int, ...] = ()
    agent: str = ""


def drop_capped_uses(uses: Sequence[ToolUse]) -> tuple[list[ToolUse], frozenset[int | None]]:
    """Drop the uses that failed at a cap and all later uses for the same statement.

    Return (the remaining uses, the statements that lost some; None is the response as a whole).
    """
    affected: set[int | None] = set()
    remaining: list[ToolUse] = []
    for use in uses:
        if use.is_over_cap:
            affected.add(use.statement)
        elif use.statement not in affected:
            remaining.append(use)
    return remaining, frozenset(affected)


@dataclass(frozen=True)
class _TimedEvent:
    """The time that every event carries."""

    at: float


@dataclass(frozen=True)
class PersonSpoke(_TimedEvent):
    """A person spoke during the debate (SC-MAKS 5.4); the next turns are shown it."""

    by: str
    text: str
    kind: Literal["person_spoke"] = "person_spoke"


@dataclass(frozen=True)
class DebateNoted(_TimedEvent):
    """A note on how the debate deviates from the roster or the plan.

    It is not a failure: the same inputs produce the same note, and later runs may still reuse the
    steps.
    """

    words: str
    kind: Literal["debate_noted"] = "debate_noted"


@dataclass(frozen=True)
class RoundSummarised(_TimedEvent):
    """A summary of the debate up to the end of a round, for later turns (SC-MAKS 3.4)."""

    agent: str
    round: int
    text: str
    kind: Literal["round_summarised"] = "round_summarised"


@dataclass(frozen=True)
class DebateDecided(_TimedEvent):
    """The decision whether an adaptive check needs a debate, and why (SC-MAKS 2.2)."""

    is_needed: bool
    why: str
    then: str
    kind: Literal["debate_decided"] = "debate_decided"


@dataclass(frozen=True)
class JudgementSampled(_TimedEvent):
    """One of several judgements that the run's final judgement is derived from.

    `number` starts at 1. `note` says how it differs: a sample, an order of the debaters, a round.
    """

    judgement: Judgement
    number: int
    note: str
    seconds: float
    cost: float | None = 0.0
    kind: Literal["judgement_sampled"] = "judgement_sampled"


@dataclass(frozen=True)
class ConsensusWeighed(_TimedEvent):
    """The agents' weights w(Q), which sum to 1, and the resulting probability (SC-MAKS 3.2, 3.5).

    `method` names where the weights come from; `p` is the weighted share of the agents that call
    the response hallucinated, where an unclear stance counts half.
    """

    method: str
    weights: tuple[tuple[str, float], ...]
    p: float
    kind: Literal["consensus_weighed"] = "consensus_weighed"


@dataclass(frozen=True)
class ResponseRevised(_TimedEvent):
    """A corrected response (SC-MAKS 3.2, MAMM-REFINE), which a person accepts or rejects."""

    agent: str
    text: str
    kind: Literal["response_revised"] = "response_revised"


@dataclass(frozen=True)
class RunStarted(_TimedEvent):
    """The case and plan at the start, so that the run still explains itself later.

    `code` names the program and the encoder; it is empty in runs from before it was recorded.
    """

    case: Case
    plan: Plan
    roles: tuple[RoleAssignment, ...]
    code: str = ""
    kind: Literal["run_started"] = "run_started"


@dataclass(frozen=True)
class DocumentRead(_TimedEvent):
    """A document is ready to be searched; `reused` if it did not have to be read again."""

    source_id: str
    name: str
    pages: tuple[SourcePage, ...]
    characters: int
    seconds: float
    reused: bool
    notes: tuple[str, ...] = ()
    kind: Literal["document_read"] = "document_read"


@dataclass(frozen=True)
class ImageDescribed(_TimedEvent):
    """The image reader's description of an image (CEDA agent B); empty `text` if it found none."""

    source_id: str
    name: str
    agent: str
    readable: bool
    text: str
    seconds: float
    kind: Literal["image_described"] = "image_described"


@dataclass(frozen=True)
class StatementFound(_TimedEvent):
    """One statement of the response."""

    statement: Statement
    kind: Literal["statement_found"] = "statement_found"


@dataclass(frozen=True)
class PassagesFound(_TimedEvent):
    """The evidence for one statement, best first (CEDA agent A); `reason` if there is none."""

    statement: int
    passages: tuple[Passage, ...]
    reason: str = ""
    kind: Literal["passages_found"] = "passages_found"


@dataclass(frozen=True)
class ContextBuilt(_TimedEvent):
    """Agent C has combined the evidence and divided it among the debaters."""

    agent: str
    context: EvidenceContext
    kind: Literal["context_built"] = "context_built"


@dataclass(frozen=True)
class ModelCalled(_TimedEvent):
    """An agent called a language model; emitted once the agent has finished its task."""

    call: ModelCall
    kind: Literal["model_called"] = "model_called"


@dataclass(frozen=True)
class ToolCalled(_TimedEvent):
    """A tool was called for a statement, or for the whole response (HaluAgent 2.2)."""

    use: ToolUse
    kind: Literal["tool_called"] = "tool_called"


@dataclass(frozen=True)
class MemoryUpdated(_TimedEvent):
    """The audit's memory of a statement; a later event for the same statement replaces it."""

    entry: MemoryEntry
    kind: Literal["memory_updated"] = "memory_updated"


@dataclass(frozen=True)
class ReflectionChanged(_TimedEvent):
    """Reflection changed the memory of a statement (HaluAgent 2.3)."""

    change: LabelRevision
    kind: Literal["reflection_changed"] = "reflection_changed"


@dataclass(frozen=True)
class TurnStarted(_TimedEvent):
    """A debater begins its turn; the fields are those of `Turn`.

    Runs from before a field was recorded have its default.
    """

    debater: str
    agent: str
    number: int
    round: int
    manner: TurnMode = "debate"
    about: str = ""
    assigned: Stance | None = None
    kind: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True)
class TurnDelta(_TimedEvent):
    """More text of the current turn; never stored."""

    number: int
    text: str
    kind: Literal["turn_delta"] = "turn_delta"


@dataclass(frozen=True)
class TurnFinished(_TimedEvent):
    """A complete turn, with its quotes verified in code."""

    turn: Turn
    seconds: float
    cost: float | None = 0.0
    kind: Literal["turn_finished"] = "turn_finished"


@dataclass(frozen=True)
class ConsensusReached(_TimedEvent):
    """Both debaters agreed over a two-turn window (CEDA 3.1)."""

    stance: Stance
    turns: int
    kind: Literal["consensus_reached"] = "consensus_reached"


@dataclass(frozen=True)
class JudgementReached(_TimedEvent):
    """The judge's conclusion from the debate."""

    judgement: Judgement
    seconds: float
    cost: float | None = 0.0
    kind: Literal["judgement_reached"] = "judgement_reached"


@dataclass(frozen=True)
class WordsScored(_TimedEvent):
    """The probability of every word of the response that it is wrong, in order.

    The agent would mark the words whose probability is at least `threshold`.
    """

    agent: str
    scores: tuple[WordScore, ...]
    threshold: float
    kind: Literal["words_scored"] = "words_scored"


@dataclass(frozen=True)
class SpanProposed(_TimedEvent):
    """An agent proposes a span of words that do not hold."""

    span: Span
    kind: Literal["span_proposed"] = "span_proposed"


@dataclass(frozen=True)
class SpanVoted(_TimedEvent):
    """A panel member voted on another's span (MSA 3.3); `p` is None where it gave no vote."""

    extractor: str
    adjudicator: str
    span: Span
    p: float | None
    reason: str
    kind: Literal["span_voted"] = "span_voted"


@dataclass(frozen=True)
class SoftLabelled(_TimedEvent):
    """The result of a panel's votes: every stretch that any run marks, in order.

    `runs` are the members that said which words they would mark, even if none, in the panel's
    order. `used` names the member whose run alone decides, empty where all do.
    """

    labels: tuple[SoftLabel, ...]
    threshold: float
    runs: tuple[str, ...]
    used: str = ""
    kind: Literal["soft_labelled"] = "soft_labelled"


@dataclass(frozen=True)
class SpanAdjudicated(_TimedEvent):
    """A proposed span was kept or dropped, and why."""

    span: Span
    kept: bool
    reason: str
    kind: Literal["span_adjudicated"] = "span_adjudicated"


@dataclass(frozen=True)
class LabelPredicted(_TimedEvent):
    """The classifier's label and probability for the judge's text.

    After the end of the run it is a new score by another version, which `by` asked for.
    """

    verdict: Verdict
    by: str = ""
    kind: Literal["label_predicted"] = "label_predicted"


@dataclass(frozen=True)
class ProblemMet(_TimedEvent):
    """Something failed and the run went on without it; `cause` is the verdict's possible cause.

    `source` and `source_id` name the file concerned, if any; `reply` is a model's unusable reply;
    `turn` is the number of the turn that was lost with it.
    """

    stage: Stage
    message: str
    source: str = ""
    cause: UnclearCause | None = None
    source_id: str = ""
    reply: str = ""
    turn: int = 0
    kind: Literal["problem_met"] = "problem_met"


@dataclass(frozen=True)
class ProgressMade(_TimedEvent):
    """The progress of a stage; never stored. `total` is 0 where it is not known."""

    stage: Stage
    note: str
    done: int = 0
    total: int = 0
    kind: Literal["progress_made"] = "progress_made"


@dataclass(frozen=True)
class StepsReused(_TimedEvent):
    """The steps before this event were copied from a finished run over the same inputs.

    `through` is the last of them: only the statements, or everything up to the judgement. The
    copied events are dated now, take no time and cost nothing.
    """

    run_id: str
    through: Literal["statements", "judgement"]
    kind: Literal["steps_reused"] = "steps_reused"


@dataclass(frozen=True)
class RunFinished(_TimedEvent):
    """The run reached its verdict."""

    verdict: Verdict
    seconds: float
    cost: float | None = 0.0
    kind: Literal["run_finished"] = "run_finished"


@dataclass(frozen=True)
class RunFailed(_TimedEvent):
    """The run could not continue; there is no label."""

    stage: Stage
    message: str
    kind: Literal["run_failed"] = "run_failed"


@dataclass(frozen=True)
class RunStopped(_TimedEvent):
    """A person stopped the run; the events so far stay."""

    by: str = ""
    kind: Literal["run_stopped"] = "run_stopped"


@dataclass(frozen=True)
class RunResumed(_TimedEvent):
    """Somebody resumed an interrupted, stopped or failed run."""

    by: str = ""
    kind: Literal["run_resumed"] = "run_resumed"


Event = (
    RunStarted | DocumentRead | ImageDescribed | StatementFound | PassagesFound | ContextBuilt
    | ModelCalled | ToolCalled | MemoryUpdated | ReflectionChanged | TurnStarted | TurnDelta
    | TurnFinished | ConsensusReached | PersonSpoke | RoundSummarised | DebateDecided
    | DebateNoted | JudgementSampled | ConsensusWeighed | ResponseRevised | JudgementReached
    | WordsScored | SpanProposed | SpanVoted | SoftLabelled | SpanAdjudicated | LabelPredicted
    | ProblemMet | ProgressMade | StepsReused | RunFinished | RunFailed | RunStopped | RunResumed
)  # fmt: skip

EVENT_TYPES: dict[str, type[Event]] = {
    cls.__dataclass_fields__["kind"].default: cls for cls in Event.__args__
}
TRANSIENT_KINDS = frozenset({"turn_delta", "progress_made"})
ENDING_KINDS = frozenset({"run_finished", "run_failed", "run_stopped"})
