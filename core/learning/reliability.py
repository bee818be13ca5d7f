"""How reliable agents and tools are, and which pairs of agents correct each other.

Agents: shares of right answers with Wilson's intervals. Pairs: the errors that oracle collaboration
removes (ColMAD 2.1, equation 4). Tools: how often audits used each, with which outcome, and how
often people agree with its label (HaluAgent 3.4, figure 2).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.exchange.trajectory import derive_statement_labels
from core.learning.agent_answers import DEBATER, READER, DecidedRun, SpeakingAgent
from core.learning.metrics import (
    UNCLEAR_VALUE,
    BoolArray,
    FloatArray,
    bootstrap_measures,
)
from core.learning.track_record import MIN_CASES, WilsonShare
from core.schema.events import AUDIT, ToolOutcome, ToolUse
from core.schema.records import Case, Label, Statement
from core.schema.run_state import RunState, fold_events
from core.store import Store
from core.store.ground_truth import GroundTruth
from core.store.queries import load_events
from core.tools.registry import load_tools

MAX_AUDITS = 1_000
MAX_MATCHED_AUDITS = 100  # audits whose statements are matched against all tools' rules: 30 ms each
AUDIT_EVENT_KINDS = ("run_started", "statement_found", "tool_called", "memory_updated")
TOOL_OUTCOMES: tuple[ToolOutcome, ...] = ("found", "nothing", "off", "failed")
StatementIndex = int | None  # a statement, or the response as a whole
PAIR_SEED = 11
KIND_OF_ROW: dict[str, Callable[[DecidedRun], Iterable[str]]] = {
    "language": lambda row: (row.heard.language,),
    "form": lambda row: (row.heard.form,),
    "image": lambda row: ("with an image" if row.heard.has_image else "without images",),
    "documents": lambda row: ("own documents" if row.heard.has_documents else "no documents",),
    "tool": lambda row: (row.heard.tool or "no tool decided",),
    "category": lambda row: row.categories,
}


@dataclass(frozen=True)
class AuditRecord:
    """What an audit did; `meant` are the places that each tool's rules apply to."""

    case_id: str
    statements: Mapping[int, Statement]
    uses: tuple[ToolUse, ...]
    labels: Mapping[int, Label]
    meant: Mapping[str, frozenset[StatementIndex]]


@dataclass(frozen=True)
class ToolRate:
    """How one tool did over all audits that were read.

    `outcomes` counts its calls by outcome; `used` are the audits in which it was called.
    `where_meant`: of the places its own rules apply to, in the newest audits, how many it was
    called for. `label_right`: of its labels other than unclear, those that people agree with;
    `always` is how many of them saying hallucinated would get right. `statement_right`: of the
    statements it was called for, those whose final label people agree with; unclear ones count as
    wrong.
    """

    tool: str
    calls: int
    outcomes: Mapping[ToolOutcome, int]
    seconds: float
    used: WilsonShare
    where_meant: WilsonShare
    label_right: WilsonShare
    always: WilsonShare
    statement_right: WilsonShare


@dataclass(frozen=True)
class ToolRates:
    """All tools, the one with the most calls first; people decided `decided` of the `audits`."""

    audits: int
    decided: int
    tools: tuple[ToolRate, ...]


@dataclass
class _ToolCounts:
    """Counts of one tool; lists hold one flag for each case counted."""

    outcomes: dict[ToolOutcome, int] = field(
        default_factory=lambda: dict.fromkeys(TOOL_OUTCOMES, 0)
    )
    seconds: float = 0.0
    audits: int = 0
    meant: list[bool] = field(default_factory=list)
    labels: list[bool] = field(default_factory=list)
    wrong: list[bool] = field(default_factory=list)
    statements: list[bool] = field(default_factory=list)


def measure_tools(
    store: Store,
    project_id: str,
    known: MutableMapping[str, AuditRecord],
    *,
    most: int = MAX_AUDITS,
) -> ToolRates:
    """Return how each tool did in the newest finished audits; `known` caches what each did."""
    counts: dict[str, _ToolCounts] = {name: _ToolCounts() for name in load_tools()}
    audits = decided = 0
    with store.reading():
        for run_id, case_id, _ in store.runs.finished(project_id, AUDIT, most):
            case = store.cases.get(case_id)
            if case is None:
                continue
            if run_id not in known:
                progress = fold_events(load_events(store, run_id, AUDIT_EVENT_KINDS))
                known[run_id] = _read_audit(progress, case, is_read=audits < MAX_MATCHED_AUDITS)
            truth = store.truths.of_case(case_id)
            audits, decided = audits + 1, decided + truth.is_decided
            _count_audit(known[run_id], truth, counts)
    rates = [
        ToolRate(
            name,
            calls=sum(own.outcomes.values()),
            outcomes=own.outcomes,
            seconds=own.seconds,
            used=WilsonShare(own.audits, audits),
            where_meant=_share_of(own.meant),
            label_right=_share_of(own.labels),
            always=_share_of(own.wrong),
            statement_right=_share_of(own.statements),
        )
        for name, own in counts.items()
    ]
    return ToolRates(audits, decided, tuple(sorted(rates, key=lambda r: (-r.calls, r.tool))))


def _share_of(flags: Sequence[bool]) -> WilsonShare:
    return WilsonShare(sum(flags), len(flags))


def _read_audit(progress: RunState, case: Case, *, is_read: bool) -> AuditRecord:
    places = (None, *progress.statements.values())
    meant = {
        tool.name: frozenset(
            None if place is None else place.index
            for place in places
            if tool.reads(place, case) is not None
        )
        for tool in load_tools().values()
        if tool.reads is not None and is_read
    }
    labels = {number: entry.label for number, entry in progress.memory.items()}
    statements, uses = dict(progress.statements), tuple(progress.tool_uses)
    return AuditRecord(case.id, statements, uses, labels, meant)


def _count_audit(audit: AuditRecord, truth: GroundTruth, counts: dict[str, _ToolCounts]) -> None:
    right_labels: dict[StatementIndex, Label] = {}
    if truth.label is not None and truth.label != "unclear":
        right_labels[None] = truth.label
        right_labels.update(derive_statement_labels(audit.statements, truth).items())
    places: dict[str, set[StatementIndex]] = {}
    for use in audit.uses:
        tool_counts = counts.setdefault(use.tool, _ToolCounts())
        places.setdefault(use.tool, set()).add(use.statement)
        tool_counts.outcomes[use.outcome] += 1
        tool_counts.seconds += use.seconds
        if use.label != "unclear" and use.statement in right_labels:
            tool_counts.labels.append(use.label == right_labels[use.statement])
            tool_counts.wrong.append(right_labels[use.statement] == "hallucinated")
    for name, statements in places.items():
        counts[name].audits += 1
        counts[name].statements += [
            audit.labels[place] == right_labels[place]
            for place in statements
            if place is not None and place in right_labels and place in audit.labels
        ]
    for name, meant in audit.meant.items():
        counts[name].meant += [place in places.get(name, ()) for place in meant]


@dataclass(frozen=True)
class AnswerTable:
    """Each agent's last answer on each case: `said` (n, agents) as in `Votes`, `wrong` (n,)."""

    agents: tuple[SpeakingAgent, ...]
    said: FloatArray
    wrong: FloatArray
    rows: tuple[DecidedRun, ...]


@dataclass(frozen=True)
class AgentRecord:
    """An agent's record over the `n` cases it spoke on, of which it left `unclear` undecided.

    Accuracy, sensitivity (the share of hallucinated cases it called so) and specificity (of
    supported ones) are over those that it decided; `always` is how often saying hallucinated would
    have been right on these.
    """

    agent: SpeakingAgent
    n: int
    unclear: int
    accuracy: WilsonShare
    sensitivity: WilsonShare
    specificity: WilsonShare
    always: float | None

    @property
    def balanced(self) -> float | None:
        """Balanced accuracy where it decided: 0.5 for a constant answer; None without a label."""
        if not (self.sensitivity.n and self.specificity.n):
            return None
        return (self.sensitivity.value + self.specificity.value) / 2


@dataclass(frozen=True)
class KindRecord:
    """An agent's accuracy on the cases of one kind that it decided, beside those it did not."""

    kind: str
    accuracy: WilsonShare
    unclear: int
    always: float | None


def build_answer_table(rows: Sequence[DecidedRun]) -> AnswerTable:
    """Return each agent's newest answer on each case; `rows` come newest first."""
    agents = tuple(sorted({agent for row in rows for agent in row.heard.last}))
    column = {agent: number for number, agent in enumerate(agents)}
    place: dict[str, int] = {}
    newest: list[DecidedRun] = []
    for row in rows:
        if row.decision.group not in place:
            place[row.decision.group] = len(newest)
            newest.append(row)
    said = np.full((len(newest), len(agents)), np.nan)
    for row in rows:
        answers = said[place[row.decision.group]]
        for agent, answer in row.heard.last.items():
            if np.isnan(answers[column[agent]]):
                answers[column[agent]] = answer
    wrong = np.array([float(row.is_wrong) for row in newest])
    return AnswerTable(agents, said, wrong, tuple(newest))


def drop_duplicate_voices(table: AnswerTable) -> AnswerTable:
    """Return the table without built-in agents that stand in it twice, under two parts.

    The built-in judge hears the readers that debate. If a reader said the same in both parts
    wherever it has both, it is one voice: the part with more cases stays, the debater's if both
    have as many. If the two differ both stay, because a debater knows only a share of the evidence.
    """
    left_out: set[SpeakingAgent] = set()
    built_in = [agent for agent in table.agents if not agent.model]
    for reader, debater in itertools.product(built_in, built_in):
        if (reader.part, debater.part, reader.name) != (READER, DEBATER, debater.name):
            continue
        one, other = (table.said[:, table.agents.index(a)] for a in (reader, debater))
        both = ~np.isnan(one) & ~np.isnan(other)
        if both.any() and (one[both] == other[both]).all():
            is_more = (~np.isnan(one)).sum() > (~np.isnan(other)).sum()
            left_out.add(debater if is_more else reader)
    columns = [n for n, agent in enumerate(table.agents) if agent not in left_out]
    agents = tuple(table.agents[number] for number in columns)
    return replace(table, agents=agents, said=table.said[:, columns])


def measure_agent_records(table: AnswerTable) -> list[AgentRecord]:
    """Return every agent's record, the one with the most cases first."""
    results, wrong = [], table.wrong == 1.0
    for agent, said in zip(table.agents, table.said.T, strict=True):
        spoke = ~np.isnan(said)
        decided = spoke & (said != UNCLEAR_VALUE)
        right = decided & ((said > UNCLEAR_VALUE) == wrong)
        accuracy, sensitivity, specificity = (
            WilsonShare(int((right & inside).sum()), int((decided & inside).sum()))
            for inside in (decided, wrong, ~wrong)
        )
        always = float(wrong[decided].mean()) if decided.any() else None
        n, unclear = int(spoke.sum()), int((spoke & ~decided).sum())
        results.append(AgentRecord(agent, n, unclear, accuracy, sensitivity, specificity, always))
    return sorted(results, key=lambda record: (-record.n, record.agent))


def measure_agent_by_kind(
    table: AnswerTable, agent: SpeakingAgent, dimension: str
) -> list[KindRecord]:
    """Return the agent's accuracy by kind, each from the cases of that kind alone."""
    said = table.said[:, table.agents.index(agent)]
    answers: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for answer, row in zip(said.tolist(), table.rows, strict=True):
        for kind in () if np.isnan(answer) else KIND_OF_ROW[dimension](row):
            answers[kind].append((answer, row.is_wrong))
    records = []
    for kind, own in answers.items():
        decided = [(p > UNCLEAR_VALUE, is_wrong) for p, is_wrong in own if p != UNCLEAR_VALUE]
        share = _share_of([said_wrong == is_wrong for said_wrong, is_wrong in decided])
        always = _share_of([is_wrong for _, is_wrong in decided]).value if decided else None
        records.append(KindRecord(kind, share, len(own) - share.n, always))
    return sorted(records, key=lambda record: (-record.accuracy.n, record.kind))


@dataclass(frozen=True)
class AgentPair:
    """Two agents over the `n` cases on which both spoke, as shares of these.

    `oracle` is the share where at least one is right, `gain` what it adds to the better one alone,
    `reduction` ColMAD's measure with its interval, None if undefined.
    """

    one: str
    other: str
    n: int
    both_right: float
    only_one: float
    only_other: float
    both_wrong: float
    reduction: float | None
    low: float | None
    high: float | None

    @property
    def oracle(self) -> float:
        """The share of cases in which at least one of the two is right."""
        return 1.0 - self.both_wrong

    @property
    def gain(self) -> float:
        """The share that the oracle gets right beyond the better of the two."""
        return min(self.only_one, self.only_other)

    @property
    def is_thin(self) -> bool:
        """True if there are too few cases to say anything."""
        return self.n < MIN_CASES


def measure_pairs(agents: Sequence[str], said: FloatArray, labels: FloatArray) -> list[AgentPair]:
    """Return all pairs with a case in common; `said` (n, agents) as in `Votes`."""
    spoke = ~np.isnan(said)
    right = spoke & (said != UNCLEAR_VALUE) & ((said > UNCLEAR_VALUE) == (labels[:, None] == 1.0))
    return [
        measure_pair(agents[i], agents[j], right[both, i], right[both, j])
        for i, j in itertools.combinations(range(len(agents)), 2)
        if (both := spoke[:, i] & spoke[:, j]).any()
    ]


def measure_pair(one: str, other: str, first: BoolArray, second: BoolArray) -> AgentPair:
    """Return two agents compared, from (n,) flags of where each was right."""
    cells = (first & second, first & ~second, ~first & second, ~first & ~second)
    counts = np.array([int(cell.sum()) for cell in cells])
    n = int(counts.sum())
    found = bootstrap_measures({"": _reduction}, np.arange(4), PAIR_SEED, times=counts)[""]
    figures = (None, None, None) if np.isnan(found.value) else found
    return AgentPair(one, other, n, *(counts / n).tolist(), *figures)


def _reduction(counts: FloatArray) -> FloatArray:
    """Return (draws,) of (draws, 4) counts: 1 - errors of both / the better one's, or NaN."""
    least = np.minimum(counts[:, 1], counts[:, 2]) + counts[:, 3]
    return np.where(least == 0, np.nan, 1.0 - counts[:, 3] / np.maximum(1, least))
