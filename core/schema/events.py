"""What happens in a run, as facts in the past tense; replaying them rebuilds the screen.

One union, tagged by `kind`: stages, turns and judgements, what protocols add (people heard, rounds
in brief, votes, revisions), what an audit writes down (tools used, memory, reflection; HaluAgent
2.2, 2.3) and what is decided about spans (MSA 3.3). `turn_delta` and `progress_made` are for the
eye only: they stay in memory and are never stored; all others are durable. `at` is seconds since
the Unix epoch. Offsets are half-open, count Unicode code points, and lie in `Case.response`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from core.schema.records import (
    Case,
    Cause,
    Context,
    Judgement,
    Label,
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
from core.schema.rosters import Manner


@dataclass(frozen=True)
class SpanRuling:
    """What was decided about one span."""

    span: Span
    kept: bool
    reason: str


@dataclass(frozen=True)
class SpanVote:
    """One adjudicator's vote on one span: the probability that its words are hallucinated.

    `p` is None where it gave no vote that can be used; that is no vote, not one half.
    """

    p: float | None
    reason: str


@dataclass(frozen=True)
class SoftLabel:
    """How wrong a stretch of the response is by all runs of a panel.

    `p` is the mean over the runs, `level` the highest threshold at which most of them mark it.
    """

    start: int
    end: int
    p: float
    level: float


AUDIT = "audit"  # the protocol, as plans name it
ToolOutcome = Literal["found", "nothing", "off", "failed"]
Reach = Literal["local", "global"]


@dataclass(frozen=True)
class ToolUse:
    """One call of a tool, as the trace tells it.

    `statement` is the index of the statement it was called for, None for the response as a whole.
    `given` and `gave` are JSON objects as text: the tool's input, and what it worked out for its
    own view. `label` is what follows for the words it was asked about, `unclear` where nothing
    does; `p` is the probability that they are hallucinated, None where the tool gives none.
    `outcome` tells a tool that had nothing to say from one that is off here or that failed: neither
    of the two is ever a label. `agent` chose it, and `thought` is why. `[start, end)` are the words
    that do not hold, and `instead` is what they should say. `is_over_cap` marks a call that failed
    because a cap left no room for it: a resumed run makes it again.
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
class Remembered:
    """The audit's memory of a statement: its label and the evidence for it (HaluAgent 2.3).

    `evidence` is a sentence for people, `tools` are those that were used, in order, and `passages`
    the ids of what was read. A contested statement goes to debate; one that nothing can be checked
    of (a greeting, a question, an opinion) has no part in the verdict.
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
class Reconsidered:
    """What reflection changed about a statement, and why.

    Local: its evidence does not carry its label. Global: it rests on the statements `because_of`,
    which are wrong, or contradicts them.
    """

    statement: int
    reach: Reach
    before: Label
    after: Label
    reason: str
    because_of: tuple[int, ...] = ()
    agent: str = ""


def paid_for(uses: Sequence[ToolUse]) -> tuple[list[ToolUse], frozenset[int | None]]:
    """The uses without those that failed at a cap and all that followed for the same statement.

    (What is left, the statements that lost some; None is the response as a whole.)
    """
    again: set[int | None] = set()
    kept: list[ToolUse] = []
    for use in uses:
        if use.is_over_cap:
            again.add(use.statement)
        elif use.statement not in again:
            kept.append(use)
    return kept, frozenset(again)


LONGEST_REMARK = 2000  # characters


@dataclass(frozen=True)
class _Happened:
    """What every event has: when."""

    at: float


@dataclass(frozen=True)
class PersonSpoke(_Happened):
    """A person spoke in the middle of the debate (SC-MAKS 5.4); the next turns hear it."""

    by: str
    text: str
    kind: Literal["person_spoke"] = "person_spoke"


@dataclass(frozen=True)
class DebateNoted(_Happened):
    """How the debate is held where that is not as the roster or the plan would have it.

    Nothing failed: the same inputs come to the same note, and it keeps nobody from taking over.
    """

    words: str
    kind: Literal["debate_noted"] = "debate_noted"


@dataclass(frozen=True)
class RoundSummarised(_Happened):
    """What was said up to the end of a round, in brief, for the turns after it (SC-MAKS 3.4)."""

    agent: str
    round: int
    text: str
    kind: Literal["round_summarised"] = "round_summarised"


@dataclass(frozen=True)
class DebateDecided(_Happened):
    """Whether an adaptive check goes on to a debate, and why (SC-MAKS 2.2)."""

    is_needed: bool
    why: str
    then: str
    kind: Literal["debate_decided"] = "debate_decided"


@dataclass(frozen=True)
class JudgementSampled(_Happened):
    """One judgement of several that the run's own follows from; `number` starts at 1.

    `note` says what is different about it: a sample, an order of the debaters, a round.
    """

    judgement: Judgement
    number: int
    note: str
    seconds: float
    cost: float | None = 0.0
    kind: Literal["judgement_sampled"] = "judgement_sampled"


@dataclass(frozen=True)
class ConsensusWeighed(_Happened):
    """The agents' weights w(Q), which sum to 1, and what they come to (SC-MAKS 3.2, 3.5).

    `method` names where the weights come from; `p` is the weighted share of those who call the
    response hallucinated, an open stance counting half.
    """

    method: str
    weights: tuple[tuple[str, float], ...]
    p: float
    kind: Literal["consensus_weighed"] = "consensus_weighed"


@dataclass(frozen=True)
class ResponseRevised(_Happened):
    """The response as it should read (SC-MAKS 3.2, MAMM-REFINE); a person takes it or leaves it."""

    agent: str
    text: str
    kind: Literal["response_revised"] = "response_revised"


Stage = Literal["reading", "searching", "auditing", "debating", "judging", "marking"]


@dataclass(frozen=True)
class RunStarted(_Happened):
    """The case and plan as they were, so that the run explains itself later.

    `code` names the program and the encoder; it is empty in runs from before it was kept.
    """

    case: Case
    plan: Plan
    roles: tuple[RoleUsed, ...]
    code: str = ""
    kind: Literal["run_started"] = "run_started"


@dataclass(frozen=True)
class DocumentRead(_Happened):
    """A document is ready to be searched; `reused` when nothing had to be read again."""

    source_id: str
    name: str
    pages: tuple[Page, ...]
    characters: int
    seconds: float
    reused: bool
    notes: tuple[str, ...] = ()
    kind: Literal["document_read"] = "document_read"


@dataclass(frozen=True)
class ImageDescribed(_Happened):
    """What the image reader could say of an image (CEDA agent B); empty `text` if nothing."""

    source_id: str
    name: str
    agent: str
    readable: bool
    text: str
    seconds: float
    kind: Literal["image_described"] = "image_described"


@dataclass(frozen=True)
class StatementFound(_Happened):
    """One statement of the response."""

    statement: Statement
    kind: Literal["statement_found"] = "statement_found"


@dataclass(frozen=True)
class PassagesFound(_Happened):
    """Evidence for one statement, best first (CEDA agent A); `reason` when there is none."""

    statement: int
    passages: tuple[Passage, ...]
    reason: str = ""
    kind: Literal["passages_found"] = "passages_found"


@dataclass(frozen=True)
class ContextBuilt(_Happened):
    """Agent C has put the evidence together and shared it out."""

    agent: str
    context: Context
    kind: Literal["context_built"] = "context_built"


@dataclass(frozen=True)
class ModelCalled(_Happened):
    """An agent had a language model answer; told once the agent's part is done."""

    call: ModelCall
    kind: Literal["model_called"] = "model_called"


@dataclass(frozen=True)
class ToolCalled(_Happened):
    """A tool was used on a statement, or on the whole response (HaluAgent 2.2)."""

    use: ToolUse
    kind: Literal["tool_called"] = "tool_called"


@dataclass(frozen=True)
class MemoryUpdated(_Happened):
    """What the audit holds of a statement; a later one of the same statement replaces it."""

    entry: Remembered
    kind: Literal["memory_updated"] = "memory_updated"


@dataclass(frozen=True)
class ReflectionChanged(_Happened):
    """Reflection changed what was held of a statement (HaluAgent 2.3)."""

    change: Reconsidered
    kind: Literal["reflection_changed"] = "reflection_changed"


@dataclass(frozen=True)
class TurnStarted(_Happened):
    """A debater begins to speak; what was asked of it is told as in `Turn`.

    Runs from before that was kept have the default of each.
    """

    debater: str
    agent: str
    number: int
    round: int
    manner: Manner = "debate"
    about: str = ""
    assigned: Stance | None = None
    kind: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True)
class TurnDelta(_Happened):
    """More words of the turn under way; never stored."""

    number: int
    text: str
    kind: Literal["turn_delta"] = "turn_delta"


@dataclass(frozen=True)
class TurnFinished(_Happened):
    """The whole turn, with its quotes verified in code."""

    turn: Turn
    seconds: float
    cost: float | None = 0.0
    kind: Literal["turn_finished"] = "turn_finished"


@dataclass(frozen=True)
class ConsensusReached(_Happened):
    """Both debaters agreed over a two-turn window (CEDA 3.1)."""

    stance: Stance
    turns: int
    kind: Literal["consensus_reached"] = "consensus_reached"


@dataclass(frozen=True)
class JudgementReached(_Happened):
    """The judge has concluded from the debate."""

    judgement: Judgement
    seconds: float
    cost: float | None = 0.0
    kind: Literal["judgement_reached"] = "judgement_reached"


@dataclass(frozen=True)
class WordsScored(_Happened):
    """Every word of the response has its probability of not holding; whole, in their order.

    Words of at least `threshold` are those that the agent would mark.
    """

    agent: str
    scores: tuple[WordScore, ...]
    threshold: float
    kind: Literal["words_scored"] = "words_scored"


@dataclass(frozen=True)
class SpanProposed(_Happened):
    """An agent says that these words do not hold."""

    span: Span
    kind: Literal["span_proposed"] = "span_proposed"


@dataclass(frozen=True)
class SpanVoted(_Happened):
    """A member of a panel voted on another's span (MSA 3.3); `p` is None where it gave no vote."""

    extractor: str
    adjudicator: str
    span: Span
    p: float | None
    reason: str
    kind: Literal["span_voted"] = "span_voted"


@dataclass(frozen=True)
class SoftLabelled(_Happened):
    """What a panel's votes come to: the stretches that any run marks, in their order.

    `runs` are the members that could say what they would mark, nothing included, in the panel's
    order. `used` names the one whose run alone decides, empty where all do.
    """

    labels: tuple[SoftLabel, ...]
    threshold: float
    runs: tuple[str, ...]
    used: str = ""
    kind: Literal["soft_labelled"] = "soft_labelled"


@dataclass(frozen=True)
class SpanAdjudicated(_Happened):
    """A proposed span was kept or dropped, and why."""

    span: Span
    kept: bool
    reason: str
    kind: Literal["span_adjudicated"] = "span_adjudicated"


@dataclass(frozen=True)
class LabelPredicted(_Happened):
    """The classifier's label and probability over the judge's text.

    After the run's end it is a new score by another version, which `by` asked for.
    """

    verdict: Verdict
    by: str = ""
    kind: Literal["label_predicted"] = "label_predicted"


@dataclass(frozen=True)
class ProblemMet(_Happened):
    """Something failed and the run went on without it; `cause` says what it may lead to.

    `source` and `source_id` name the file that it was about, if it was about one; `reply` is what
    a model said that could not be used; `turn` is the number of the turn that was lost with it.
    """

    stage: Stage
    message: str
    source: str = ""
    cause: Cause | None = None
    source_id: str = ""
    reply: str = ""
    turn: int = 0
    kind: Literal["problem_met"] = "problem_met"


@dataclass(frozen=True)
class ProgressMade(_Happened):
    """How far a stage has come; never stored. `total` is 0 where it is not known."""

    stage: Stage
    note: str
    done: int = 0
    total: int = 0
    kind: Literal["progress_made"] = "progress_made"


@dataclass(frozen=True)
class StepsReused(_Happened):
    """The steps before this event were taken over from a finished run over the same inputs.

    `through` is the last of them: only the statements, or all up to the judgement. Their events
    are copies: they happen now, take no time and cost nothing.
    """

    run_id: str
    through: Literal["statements", "judgement"]
    kind: Literal["steps_reused"] = "steps_reused"


@dataclass(frozen=True)
class RunFinished(_Happened):
    """The run came to its verdict."""

    verdict: Verdict
    seconds: float
    cost: float | None = 0.0
    kind: Literal["run_finished"] = "run_finished"


@dataclass(frozen=True)
class RunFailed(_Happened):
    """The run could not go on; there is no label."""

    stage: Stage
    message: str
    kind: Literal["run_failed"] = "run_failed"


@dataclass(frozen=True)
class RunStopped(_Happened):
    """A person stopped the run; what was found so far stays."""

    by: str = ""
    kind: Literal["run_stopped"] = "run_stopped"


@dataclass(frozen=True)
class RunResumed(_Happened):
    """Somebody took an interrupted, stopped or failed run up again."""

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
TRANSIENT = frozenset({"turn_delta", "progress_made"})
ENDINGS = frozenset({"run_finished", "run_failed", "run_stopped"})


MOST_STEPS = 6
