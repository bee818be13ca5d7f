"""Which checks people should look at, and which verdicts a project answers by itself.

An answer teaches most where the machine was unsure or its agents disagreed, so those come first
(`core.store.queue`); a share drawn at random keeps measurements honest. How unlike an item is to
what was answered changes with every answer, so a thread of its own works that out for the items
that teach most. A project says how many of the verdicts that nobody looks at may be wrong; a limit
on confidence, fitted on people's answers (`core/learning/track_record.py`), holds that. Where
nothing can be promised, the project answers nothing by itself.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.baseline.export import load_multilingual_encoder
from core.llm.encoder import Embedder
from core.runtime.errors import ConfigError, InputError, ReviewError
from core.schema.progress import Progress, folded
from core.schema.records import Case, Label, Project, Run, Stance
from core.schema.reviews import Item
from core.store import Store, open_store
from core.store.queue import FIRST, SHARES, PendingItem, spread, unsureness, vote_entropy, worth
from core.store.sqlite import Mark
from core.store.versions import SEED_VERSION, read_body

KIND = "selective"
LOWEST, HIGHEST = 0.005, 0.5  # error rates that may be wanted
ASSURANCE = 0.9  # how sure it is that the errors stay below what is wanted


@dataclass(frozen=True)
class Limit:
    """From which confidence on verdicts of a classifier version stand, with one roster.

    `threshold` is None where nothing can be promised. Of the `n` answered verdicts that it was
    fitted on `answered` are at it or above, `wrong` of these; `is_random`: only those that were
    drawn at random were taken.
    """

    version: str
    roster: str
    threshold: float | None
    n: int
    answered: int
    wrong: int
    is_random: bool = False


@dataclass(frozen=True)
class Policy:
    """What a project wants, and the limits that hold it; `problem` says why there are none."""

    wanted: float
    limits: tuple[Limit, ...] = ()
    problem: str = ""

    def limit(self, version: str, roster: str) -> Limit | None:
        """The limit of that version with that roster; None where none was fitted."""
        known = {(limit.version, limit.roster): limit for limit in self.limits}
        return known.get((version or SEED_VERSION, roster))

    def threshold(self, version: str, roster: str) -> float | None:
        """From which confidence on such verdicts stand; None where none does."""
        limit = self.limit(version, roster)
        return None if limit is None else limit.threshold

    def is_for_people(self, run: Run, version: str = "") -> bool:
        """True where a run has a probability that is not enough; what is unclear says so itself.

        `version` is the classifier of its present verdict: a run that was scored again keeps its
        plan. Without one it is the plan's.
        """
        if run.confidence is None:
            return False
        threshold = self.threshold(version or run.plan.classifier, run.plan.roster)
        return threshold is None or run.confidence < threshold


def body_of(wanted: float, limits: Iterable[Limit]) -> dict[str, Any]:
    """The limits as plain values, as `store.learned` keeps them."""
    return {"wanted": wanted, "assurance": ASSURANCE, "limits": [asdict(limit) for limit in limits]}


def require_rate(wanted: float) -> None:
    """Refuse (InputError) a rate that is not between half a percent and a half."""
    if not LOWEST <= wanted <= HIGHEST:
        raise InputError(
            f"Expected a target error rate from {LOWEST:.1%} to {HIGHEST:.0%}, found "
            f"{wanted:.1%}; correct it."
        )


def policy_of(store: Store, project: Project | None) -> Policy | None:
    """What the project answers by itself as of now; None where it wants nothing of the kind."""
    if project is None or project.error_rate is None:
        return None
    wanted = project.error_rate
    try:
        kept = store.learned.in_use(KIND, project.id)
        if kept is None or kept.body.get("wanted") != wanted:
            return Policy(wanted)
        return Policy(wanted, read_body(kept, _limits_in))
    except ConfigError as error:
        return Policy(wanted, problem=str(error))


def _limits_in(body: Mapping[str, Any]) -> tuple[Limit, ...]:
    found = [Limit(**limit) for limit in body["limits"]]
    return tuple(replace(own, threshold=own.threshold and float(own.threshold)) for own in found)


def reorder(store: Store, project: Project) -> None:
    """Bring the whole queue in line with what the project answers; call inside `writing()`."""
    policy = policy_of(store, project)
    limits = None
    if policy is not None:
        known = ((own.version, own.roster, own.threshold) for own in policy.limits)
        limits = [(version, roster, level) for version, roster, level in known if level is not None]
    store.queue_lists.put_first(project.id, limits)


LOGGER = logging.getLogger(__name__)
FEWEST = 20  # of fewer all are answered soon, in whatever order
MOST = 500  # a claim gives what stands on top: the others wait for their turn
MOST_ANSWERED = 500
AT_ONCE = 500  # items changed in one transaction
VECTORS_KEPT = 4000  # some 6 MB
EVERY_SECONDS = 30.0
BREATH = 0.005  # seconds between two texts, or transactions: pages want their turn, too
Load = Callable[[], Embedder]


class Reordering:
    """The orders of all queues of one home; at most one is worked out at a time."""

    def __init__(
        self,
        home: Path,
        load: Load = load_multilingual_encoder,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.home = home
        self._load = load
        self._clock = clock
        # By project: as what its queue was known when it was put in order, and last looked at.
        self._seen: dict[str, tuple[Mark, float]] = {}
        self._vectors: OrderedDict[str, npt.NDArray[np.float32]] = OrderedDict()
        self._busy = threading.Lock()

    def ask(self, store: Store, project_id: str, people: int) -> bool:
        """Have the order worked out if anything has changed; True where that begins now.

        It costs a glance at most every half minute, and never waits. `people` answer each item.
        """
        now = self._clock()
        seen, at = self._seen.get(project_id, ((), -math.inf))
        if now - at < EVERY_SECONDS:
            return False
        mark = (*_mark(store), float(people))
        if mark == seen or not store.queue_order.has(project_id, people, FEWEST):
            self._seen[project_id] = (seen, now)
            return False
        if not self._busy.acquire(blocking=False):
            return False
        self._seen[project_id] = (mark, now)
        threading.Thread(
            target=self._work, args=(project_id, people), daemon=True, name="queue order"
        ).start()
        return True

    def wait(self, seconds: float) -> bool:
        """Wait until no order is being worked out; False when the time is up first."""
        has_ended = self._busy.acquire(timeout=seconds)
        if has_ended:
            self._busy.release()
        return has_ended

    def _work(self, project_id: str, people: int) -> None:
        try:
            with open_store(self.home) as store:
                self.refresh(store, project_id, people)
        except (ReviewError, sqlite3.Error) as error:
            LOGGER.warning("the queue of %s keeps its order for now: %r", project_id, error)
            self._seen.pop(project_id, None)
        finally:
            self._busy.release()

    def refresh(self, store: Store, project_id: str, people: int) -> int:
        """Work the order out now; how many items may have moved.

        The `MOST` items that teach most are spread; the others follow as their runs tell.
        """
        waiting = store.queue_order.waiting(project_id, people, MOST)
        answered = store.queue_order.answered(project_id, people, MOST_ANSWERED)
        placed = self._spread(store, waiting, answered) if len(waiting) >= FEWEST else []
        names = [item.case_id for item in placed]
        with store.writing():
            store.queue_order.put(placed)
            changed = store.queue_order.reset(project_id, names, AT_ONCE)
        while changed == AT_ONCE:
            time.sleep(BREATH)
            with store.writing():
                changed = store.queue_order.reset(project_id, names, AT_ONCE)
        return len(placed)

    def _spread(
        self, store: Store, waiting: Sequence[PendingItem], answered: Sequence[PendingItem]
    ) -> list[PendingItem]:
        """The items with what they teach once near copies are told apart; ruled ones first."""
        known = self._matrix(store, answered)
        placed: list[PendingItem] = []
        for first in (FIRST, 0.0):
            own = [item for item in waiting if (item.teaches >= FIRST) == (first > 0.0)]
            vectors = self._matrix(store, own)
            worths = np.array([item.teaches - first for item in own])
            order, teaches = spread(worths, vectors, known, SHARES.unlike)
            placed += [
                replace(own[place], teaches=first + value)
                for place, value in zip(order, teaches, strict=True)
            ]
            known = np.concatenate([known, vectors])
        return placed

    def _matrix(self, store: Store, items: Sequence[PendingItem]) -> npt.NDArray[np.float32]:
        encoder = self._load()
        rows = [self._vector(store, item, encoder) for item in items]
        return np.stack(rows) if rows else np.zeros((0, encoder.width), dtype=np.float32)

    def _vector(self, store: Store, item: PendingItem, encoder: Embedder) -> Any:
        """Of what the classifier reads; zeros where the encoder does not know the language."""
        key = item.run_id or item.case_id
        found = self._vectors.get(key)
        if found is None:
            text = _text(store, item)
            time.sleep(BREATH)
            is_mute = not text or bool(encoder.muted([text])[0])
            none = np.zeros(encoder.width, dtype=np.float32)
            found = self._vectors[key] = none if is_mute else encoder.encode([text])[0]
            if len(self._vectors) > VECTORS_KEPT:
                self._vectors.popitem(last=False)
        self._vectors.move_to_end(key)
        return found


def _mark(store: Store) -> Mark:
    """Changes with each answer, each run that ends, and each version taken into use."""
    changes = store.changes
    return (*changes.of_corrections(), *changes.of_runs(), *changes.of_learned())


def _text(store: Store, item: PendingItem) -> str:
    """What the judge wrote; of a case that nobody judged, what was to be checked."""
    judgement = store.runs.judgement(item.run_id) if item.run_id else None
    if judgement is not None and judgement.text:
        return judgement.text
    case = store.cases.get(item.case_id)
    return f"{case.question} {case.response}".strip() if case else ""


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
    """Put a finished run's case into the queue, what people must decide first; False if not one."""
    lease = store.projects.settings().lease_seconds
    run = store.runs.get(run_id, now, lease)
    case = store.cases.get(run.case_id) if run else None
    if run is None or case is None or run.status != "finished":
        return False
    progress = folded(event for _, event in store.runs.events(run_id))
    item = item_of(run, case, progress)
    with store.writing():
        policy = policy_of(store, store.projects.get(item.project_id))
        if policy is not None and policy.is_for_people(run, progress.classifier):
            item = replace(item, teaches=item.teaches + FIRST)
        store.queue.add(item)
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
