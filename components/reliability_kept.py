"""What the Reliability page counts, kept between reruns until somebody answers or a run ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from components import state
from core.learning.complement import Pair, pairs
from core.learning.debate_worth import Worth, worth
from core.learning.heard import MOST_RUNS, Agent, Known, Row, rows_of, words_of
from core.learning.reliability import (
    KINDS,
    KindRecord,
    Record,
    Table,
    by_kinds,
    records,
    table_of,
    voices_once,
)
from core.store import open_store
from core.store.changes import Mark

MOST_KEPT = 4  # projects
MOST_PAIRED = 12  # agents in the heat map: those with the most cases


@dataclass(frozen=True)
class Figures:
    """All that is drawn. `cases` are those that people decided; `is_cut`: only the newest runs."""

    rows: tuple[Row, ...]
    table: Table
    records: tuple[Record, ...]
    words: dict[Agent, str]
    kinds: dict[tuple[Agent, str], tuple[KindRecord, ...]]
    paired: tuple[Agent, ...]
    pairs: tuple[Pair, ...]
    worth: Worth | None

    @property
    def cases(self) -> int:
        """How many decided cases are counted, equal ones once."""
        return len(self.table.rows)

    @property
    def is_cut(self) -> bool:
        """There may be older runs that were not looked at."""
        return len(self.rows) == MOST_RUNS


def figures() -> tuple[str, Figures]:
    """The project at hand and its figures as of now."""
    with state.open_store() as store:
        mark = (*store.changes.of_corrections(), *store.changes.of_runs())
        project_id = state.project(store).id
    return project_id, _figures(str(state.home()), project_id, mark)


@st.cache_resource(max_entries=MOST_KEPT, show_spinner=False)
def _known(home: str, project_id: str) -> Known:
    """What was heard in each run: after the next answer, only new runs are read."""
    return {}


@st.cache_resource(max_entries=MOST_KEPT, show_spinner="Counting what agents said")
def _figures(home: str, project_id: str, mark: Mark) -> Figures:
    """Kept until somebody says something or a run ends."""
    with open_store(Path(home)) as store:
        rows = rows_of(store, project_id, _known(home, project_id))
    table = voices_once(table_of(rows))
    found = records(table)
    paired = tuple(record.agent for record in found[:MOST_PAIRED])
    columns = [table.agents.index(agent) for agent in paired]
    return Figures(
        rows=tuple(rows),
        table=table,
        records=tuple(found),
        words=words_of(table.agents),
        kinds={(r.agent, kind): tuple(by_kinds(table, r, kind)) for r in found for kind in KINDS},
        paired=paired,
        pairs=tuple(pairs([a.key for a in paired], table.said[:, columns], table.wrong)),
        worth=worth(rows),
    )


def shown_names(agents: Sequence[Agent]) -> dict[str, str]:
    """Names on screen by key."""
    return {agent.key: words for agent, words in words_of(agents).items()}
