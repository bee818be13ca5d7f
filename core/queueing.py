"""Which checks people should look at: a finished run becomes an item of the review queue.

An answer teaches most where the machine was unsure or its agents disagreed, so those come first
(`core.choosing`); a share drawn at random keeps measurements honest. `core.reordering` then moves
up what is unlike all that was answered.
"""

from __future__ import annotations

import logging
import sqlite3
from collections import defaultdict

from core.answering import people_first
from core.choosing import unsureness, vote_entropy, worth
from core.errors import ReviewError
from core.progress import Progress, folded
from core.records import Case, Label, Run, Stance
from core.reviews import Item
from core.store import Store

LOGGER = logging.getLogger(__name__)
MOST_AT_ONCE = 100


def item_of(run: Run, case: Case, progress: Progress) -> Item:
    """The case as people get it, with what its run says of it."""
    apart = disagreement(progress)
    return Item(
        case_id=case.id,
        project_id=case.project_id,
        run_id=run.id,
        added_at=run.finished_at or run.started_at,
        label=run.label or "",
        p=run.p_hallucinated,
        disagreement=round(apart, 4),
        language=case.language,
        teaches=round(worth(unsureness(run.p_hallucinated), apart), 4),
        stances=stances(progress),
    )


def stances(progress: Progress) -> tuple[tuple[str, Label], ...]:
    """What each agent said of the whole response at the end, by name; the judge's among them.

    A reader that was asked of several statements says `hallucinated` where one is, `supported`
    where none is and one is supported: as the judge decides over them.
    """
    found: dict[str, Label] = {t.agent: t.stance for t in progress.turns if t.assigned is None}
    if progress.judgement is not None:
        by: dict[str, list[Stance]] = defaultdict(list)
        for view in progress.judgement.readers:
            by[f"{view.reader}, all evidence"].append(view.stance)
        for reader, said in by.items():
            decided = [stance for stance in ("hallucinated", "supported") if stance in said]
            found[reader] = decided[0] if decided else "unclear"
        found[progress.judgement.agent] = progress.judgement.label
    return tuple(sorted(found.items()))


def imported_item(case: Case, now: float, label: Label | None, p: float | None) -> Item:
    """A case that no run has checked, with what an outside agent suggested, if any did."""
    return Item(
        case_id=case.id,
        project_id=case.project_id,
        run_id=None,
        added_at=now,
        label=label or "",
        p=p,
        disagreement=0.0,
        language=case.language,
        teaches=round(worth(unsureness(p), 0.0), 4),
    )


def disagreement(progress: Progress) -> float:
    """How far the agents were apart at the end, in [0, 1]: 0 where all say the same.

    The larger of two: of the debaters' last words, and of the judge's readers over all statements.
    """
    last = {turn.debater: turn.stance for turn in progress.turns if turn.assigned is None}
    readers: dict[int, list[Stance]] = defaultdict(list)
    for view in progress.judgement.readers if progress.judgement else ():
        readers[view.statement].append(view.stance)
    parts = [vote_entropy(own) for own in readers.values()]
    return max(vote_entropy(list(last.values())), sum(parts) / len(parts) if parts else 0.0)


def enqueue(store: Store, run_id: str, now: float) -> bool:
    """Put a finished run's case into the queue; False where it is not finished or unknown."""
    lease = store.projects.settings().lease_seconds
    run = store.runs.get(run_id, now, lease)
    case = store.cases.get(run.case_id) if run else None
    if run is None or case is None or run.status != "finished":
        return False
    progress = folded(event for _, event in store.runs.events(run_id))
    with store.writing():
        item = item_of(run, case, progress)
        store.queue.add(people_first(store, item, run, progress.classifier))
    return True


def offer(store: Store, run_id: str, now: float) -> None:
    """`enqueue` for one who has more to do; where it fails, `fill` makes up for it later."""
    try:
        enqueue(store, run_id, now)
    except (ReviewError, sqlite3.Error) as error:
        LOGGER.warning("run %s is not in the review queue yet: %r", run_id, error)


def fill(store: Store, project_id: str, now: float, most: int = MOST_AT_ONCE) -> int:
    """Put finished runs into the queue that are not there yet, the oldest first; how many."""
    return sum(
        enqueue(store, run_id, now) for run_id in store.queue_lists.missing(project_id, most)
    )
