"""How often audits used each tool, what came of it, and how often people agree with its label.

Source: HaluAgent 3.4, figure 2 (usage rate and proportion of successful detection).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

from core.events import AUDIT, ToolOutcome, ToolUse
from core.exchange.outgoing import stored_row
from core.exchange.trajectory import Answer, statement_answers
from core.learning.track_record import Share
from core.progress import Progress, folded
from core.records import Case, Label, Statement
from core.store import Store
from core.store.queries import events_of
from core.tools.registry import toolbox

MOST_RUNS = 1_000
MOST_READ = 100  # audits whose statements all tools' rules are asked about: 30 ms each
KINDS = ("run_started", "statement_found", "tool_called", "memory_updated")
OUTCOMES: tuple[ToolOutcome, ...] = ("found", "nothing", "off", "failed")
Place = int | None  # a statement, or the response as a whole


@dataclass(frozen=True)
class Audited:
    """What one audit did, as it is kept between calls.

    `meant` are the places that each tool's rules read something for; empty where not asked.
    """

    case_id: str
    statements: Mapping[int, Statement]
    uses: tuple[ToolUse, ...]
    labels: Mapping[int, Label]
    meant: Mapping[str, frozenset[Place]]


@dataclass(frozen=True)
class ToolRate:
    """One tool over all audits that were looked at.

    `outcomes` are how many of its calls ended how. `used` are the audits in which it was called, of
    all. `where_meant`: of the statements (and responses as a whole) that the tool's own rules read
    something for, those for which it was called, in the newest audits only; nothing is known of
    tools without such rules.
    `label_right`: of its labels other than unclear, those that people's answers agree with, where
    these say something of the statement; `always` how many saying hallucinated would have got right
    there. `statement_right`: of the statements that it was called
    for, those whose label in the end people agree with, unclear ones among the wrong.
    """

    tool: str
    calls: int
    outcomes: Mapping[ToolOutcome, int]
    seconds: float
    used: Share
    where_meant: Share
    label_right: Share
    always: Share
    statement_right: Share


@dataclass(frozen=True)
class ToolRates:
    """All tools, the one with the most calls first; `decided` of the `audits` have an answer."""

    audits: int
    decided: int
    tools: tuple[ToolRate, ...]


@dataclass
class _Counts:
    """What is counted of one tool; pairs are (right, of how many)."""

    outcomes: dict[ToolOutcome, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    seconds: float = 0.0
    audits: int = 0
    meant: list[bool] = field(default_factory=list)
    labels: list[bool] = field(default_factory=list)
    wrong: list[bool] = field(default_factory=list)
    statements: list[bool] = field(default_factory=list)


def tool_rates(
    store: Store,
    project_id: str,
    known: MutableMapping[str, Audited],
    *,
    most: int = MOST_RUNS,
) -> ToolRates:
    """The rates over the newest finished audits of a project, `most` at most.

    `known` keeps what was read of each run between calls: a finished run's steps do not change.
    The answers are read anew: a settled one, else the newest correction, else the imported gold.
    """
    counts: dict[str, _Counts] = {name: _Counts() for name in toolbox()}
    audits = decided = 0
    with store.reading():
        for run_id, case_id, _ in store.runs.finished(project_id, AUDIT, most):
            case = store.cases.get(case_id)
            if case is None:
                continue
            if run_id not in known:
                progress = folded(events_of(store, run_id, KINDS))
                known[run_id] = _audited(progress, case, is_read=audits < MOST_READ)
            answer = stored_row(store, case).settled
            audits, decided = audits + 1, decided + (answer is not None)
            _count(known[run_id], answer, counts)
    rates = (_rate(name, own, audits) for name, own in counts.items())
    return ToolRates(audits, decided, tuple(sorted(rates, key=lambda r: (-r.calls, r.tool))))


def _audited(progress: Progress, case: Case, *, is_read: bool) -> Audited:
    labels = {number: entry.label for number, entry in progress.memory.items()}
    statements = dict(progress.statements)
    meant = _meant(statements, case) if is_read else {}
    return Audited(case.id, statements, tuple(progress.tool_uses), labels, meant)


def _meant(statements: Mapping[int, Statement], case: Case) -> dict[str, frozenset[Place]]:
    """By tool the places that its rules read something for."""
    places = (None, *statements.values())
    return {
        tool.name: frozenset(
            None if place is None else place.index
            for place in places
            if tool.reads(place, case) is not None
        )
        for tool in toolbox().values()
        if tool.reads is not None
    }


def _count(audit: Audited, answer: Answer | None, counts: dict[str, _Counts]) -> None:
    """Add one audit to the counts."""
    told: dict[Place, Label] = {}
    if answer is not None and answer.label != "unclear":
        told[None] = answer.label
        told.update(statement_answers(audit.statements, answer).items())
    places: dict[str, set[Place]] = {}
    for use in audit.uses:
        own = counts.setdefault(use.tool, _Counts())
        places.setdefault(use.tool, set()).add(use.statement)
        own.outcomes[use.outcome] += 1
        own.seconds += use.seconds
        if use.label != "unclear" and use.statement in told:
            own.labels.append(use.label == told[use.statement])
            own.wrong.append(told[use.statement] == "hallucinated")
    for name, used in places.items():
        counts[name].audits += 1
        counts[name].statements += [
            audit.labels[place] == told[place]
            for place in used
            if place is not None and place in told and place in audit.labels
        ]
    for name, meant in audit.meant.items():
        counts[name].meant += [place in places.get(name, ()) for place in meant]


def _rate(name: str, own: _Counts, audits: int) -> ToolRate:
    return ToolRate(
        tool=name,
        calls=sum(own.outcomes.values()),
        outcomes=own.outcomes,
        seconds=own.seconds,
        used=Share(own.audits, audits),
        where_meant=_share(own.meant),
        label_right=_share(own.labels),
        always=_share(own.wrong),
        statement_right=_share(own.statements),
    )


def _share(said: Sequence[bool]) -> Share:
    return Share(sum(said), len(said))
