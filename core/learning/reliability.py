"""How reliable each agent is, overall and by kind of case, against what people decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.learning.reasoning import DEBATER, READER, Agent, Row
from core.learning.weights import UNCLEAR, Numbers, Share, by_kind, posterior

KINDS: dict[str, Callable[[Row], Iterable[str]]] = {
    "language": lambda row: (row.heard.language,),
    "form": lambda row: (row.heard.form,),
    "image": lambda row: ("with an image" if row.heard.has_image else "without images",),
    "documents": lambda row: ("own documents" if row.heard.has_documents else "no documents",),
    "tool": lambda row: (row.heard.tool or "no tool decided",),
    "category": lambda row: row.categories,
}


@dataclass(frozen=True)
class Table:
    """What each agent said last of each case; a case is all that ask and answer the same.

    `said` is (n, agents) as in `Votes`; `wrong` (n,) tells where people decided hallucinated.
    """

    agents: tuple[Agent, ...]
    said: Numbers
    wrong: Numbers
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Record:
    """An agent's record: of `n` cases it left `unclear` that many open and decided the others.

    Accuracy, sensitivity (of hallucinated cases, how many it called so) and specificity (of
    supported ones) are over those that it decided; `always` is how often “hallucinated” alone would
    have been right on these.
    """

    agent: Agent
    n: int
    unclear: int
    accuracy: Share
    sensitivity: Share
    specificity: Share
    always: float | None


@dataclass(frozen=True)
class KindRecord:
    """An agent's accuracy on the cases of one kind that it decided."""

    kind: str
    accuracy: Share
    unclear: int
    always: float


def table_of(rows: Sequence[Row]) -> Table:
    """The newest word of each agent on each case; `rows` come newest first."""
    agents = tuple(sorted({agent for row in rows for agent in row.heard.last}))
    column = {agent: number for number, agent in enumerate(agents)}
    place: dict[str, int] = {}
    newest: list[Row] = []
    for row in rows:
        if row.decision.group not in place:
            place[row.decision.group] = len(newest)
            newest.append(row)
    said = np.full((len(newest), len(agents)), np.nan)
    for row in rows:
        own = said[place[row.decision.group]]
        for agent, told in row.heard.last.items():
            if np.isnan(own[column[agent]]):
                own[column[agent]] = told
    wrong = np.array([float(row.is_wrong) for row in newest])
    return Table(agents, said, wrong, tuple(newest))


def voices_once(table: Table) -> Table:
    """The table without built-in agents that stand in it a second time under another part.

    The built-in judge hears the readers that debate. Where one said the same in both parts on every
    case on which it has both, it is one voice: the part with more cases stays, the debater's where
    both have as many. Where the two differ they stay two: a debater knows a share of the evidence.
    """
    left_out: set[Agent] = set()
    for reader in table.agents:
        for debater in table.agents:
            if (reader.part, debater.part, reader.name) != (READER, DEBATER, debater.name):
                continue
            if reader.model or debater.model:
                continue
            one, other = (table.said[:, table.agents.index(a)] for a in (reader, debater))
            both = ~np.isnan(one) & ~np.isnan(other)
            if both.any() and (one[both] == other[both]).all():
                is_more = (~np.isnan(one)).sum() > (~np.isnan(other)).sum()
                left_out.add(debater if is_more else reader)
    kept = [n for n, agent in enumerate(table.agents) if agent not in left_out]
    agents = tuple(table.agents[number] for number in kept)
    return replace(table, agents=agents, said=table.said[:, kept])


def records(table: Table) -> list[Record]:
    """Every agent's record, the one with the most cases first."""
    found = [_record(table, number) for number in range(len(table.agents))]
    return sorted(found, key=lambda record: (-record.n, record.agent))


def _record(table: Table, number: int) -> Record:
    said, wrong = table.said[:, number], table.wrong == 1.0
    spoke = ~np.isnan(said)
    decided = spoke & (said != UNCLEAR)
    right = decided & ((said > UNCLEAR) == wrong)

    def share(inside: Numbers) -> Share:
        return posterior(int((right & inside).sum()), int((decided & inside).sum()))

    n = int(decided.sum())
    return Record(
        agent=table.agents[number],
        n=int(spoke.sum()),
        unclear=int((spoke & ~decided).sum()),
        accuracy=share(decided),
        sensitivity=share(wrong),
        specificity=share(~wrong),
        always=float(wrong[decided].mean()) if n else None,
    )


def by_kinds(table: Table, record: Record, dimension: str) -> list[KindRecord]:
    """The agent's accuracy on each kind that it decided cases of, drawn to its own mean.

    Categories of errors are known of hallucinated cases only: there accuracy is sensitivity, and
    the mean that it is drawn to is that one.
    """
    number = table.agents.index(record.agent)
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for place, row in enumerate(table.rows):
        told = table.said[place, number]
        if np.isnan(told):
            continue
        for kind in KINDS[dimension](row):
            own = counts[kind]
            if told == UNCLEAR:
                own[2] += 1
            else:
                own[0] += int((told > UNCLEAR) == row.is_wrong)
                own[1] += 1
                own[3] += int(row.is_wrong)
    whole = record.sensitivity if dimension == "category" else record.accuracy
    shares = by_kind({kind: (own[0], own[1]) for kind, own in counts.items() if own[1]}, whole)
    found = [
        KindRecord(kind, share, counts[kind][2], counts[kind][3] / share.n)
        for kind, share in shares.items()
    ]
    return sorted(found, key=lambda own: (-own.accuracy.n, own.kind))
